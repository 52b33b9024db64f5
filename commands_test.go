package moltisfs

import (
	"go/ast"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// goTest is a command to run tests, in the Makefile, in .ci/run, in a document or in a comment.
// Words in single quotes may hold anything, as in a shell.
var goTest = regexp.MustCompile("\\bgo test((?: +(?:'[^'\n]*'|[^\\s'`\"#]+))+)")

// TestCommandsNameTests: a pattern after -run, -bench, -fuzz or -skip that matches nothing runs nothing and passes. Each of its
// alternatives has to match a test of a package that the command names.
func TestCommandsNameTests(t *testing.T) {
	names := map[string][]string{} // by directory
	for _, s := range sources(t) {
		for _, d := range s.file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && s.test && f.Recv == nil {
				names[s.pkg()] = append(names[s.pkg()], f.Name.Name)
			}
		}
	}
	commands := 0
	for _, p := range append(files(t, []string{".md", ".go", "Makefile"}, "testdata"), ".ci/run") {
		text, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range goTest.FindAllStringSubmatch(strings.ReplaceAll(string(text), "$$", "$"), -1) {
			words := regexp.MustCompile(`'[^']*'|\S+`).FindAllString(m[1], -1)
			if slices.Contains(words, "./...") {
				continue
			}
			var known []string
			for _, w := range words {
				known = append(known, names[path.Clean(w)]...)
			}
			for i, w := range words[:len(words)-1] {
				if len(known) > 0 && slices.Contains([]string{"-run", "-bench", "-fuzz", "-skip"}, w) {
					commands++
					for _, none := range matchNothing(t, strings.ReplaceAll(strings.Trim(words[i+1], "'"), `\|`, "|"), known) {
						t.Errorf("%s: go test%s: there is no test %q", p, m[1], none)
					}
				}
			}
		}
	}
	if commands < 60 {
		t.Errorf("only %d commands found", commands)
	}
}

// matchNothing lists the alternatives of a pattern that match none of the names.
// The pattern that is to match nothing is ^$ or -.
func matchNothing(t *testing.T, pattern string, names []string) (none []string) {
	t.Helper()
	if pattern == "^$" || pattern == "-" {
		return nil
	}
	pattern, _, _ = strings.Cut(pattern, "/") // what follows names a subtest
	front, rest, grouped := strings.Cut(pattern, "(")
	all, end := pattern, ""
	if grouped {
		all, end, _ = strings.Cut(rest, ")")
	} else {
		front = ""
	}
	for one := range strings.SplitSeq(all, "|") {
		re, err := regexp.Compile(front + one + end)
		if err != nil {
			t.Fatalf("%s: %v", pattern, err)
		}
		if !slices.ContainsFunc(names, re.MatchString) {
			none = append(none, one)
		}
	}
	return none
}
