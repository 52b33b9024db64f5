package moltisfs

import (
	"go/ast"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// goTest is a command to run tests, in the Makefile, in .ci/run, in a document or in a comment.
// Words in single quotes may hold anything, as in a shell.
var goTest = regexp.MustCompile("\\bgo test((?: +(?:'[^'\n]*'|[^\\s'`\"#]+))+)")

// ofGo are flags of the go command itself. All others are defined by the tests that they are for.
var ofGo = strings.Fields("args bench benchmem benchtime count cpuprofile fuzz fuzztime list race run short skip tags timeout v vet")

// A named test of a command is one of the package that the command runs, and so are its flags.
// Without this, a test that got another name would leave `make soak` with nothing to run, and green.
func TestCommandsNameTests(t *testing.T) {
	names, flags := testsAndFlags(t)
	commands := 0
	for _, p := range append(files(t, []string{".md", ".go", "Makefile"}, "testdata"), ".ci/run") {
		text, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range goTest.FindAllStringSubmatch(strings.ReplaceAll(string(text), "$$", "$"), -1) {
			words := regexp.MustCompile(`'[^']*'|\S+`).FindAllString(m[1], -1)
			pkgs := slices.Clone(words)
			pkgs = slices.DeleteFunc(pkgs, func(w string) bool { return !strings.HasPrefix(w, "./") && w != "." })
			if len(pkgs) == 0 || slices.Contains(pkgs, "./...") {
				continue
			}
			commands++
			var known, takes []string
			for _, pkg := range pkgs {
				known, takes = append(known, names[path.Clean(pkg)]...), append(takes, flags[path.Clean(pkg)]...)
			}
			for i, w := range words {
				name, isFlag := strings.CutPrefix(w, "-")
				name, _, _ = strings.Cut(name, "=")
				switch {
				case !isFlag || name == "":
				case slices.Contains([]string{"run", "bench", "fuzz", "skip"}, name) && i+1 < len(words):
					for _, none := range matchNothing(t, strings.ReplaceAll(strings.Trim(words[i+1], "'"), `\|`, "|"), known) {
						t.Errorf("%s: go test%s: %v has no test %q", p, m[1], pkgs, none)
					}
				case !slices.Contains(ofGo, name) && !slices.Contains(takes, name):
					t.Errorf("%s: go test%s: %v has no flag -%s", p, m[1], pkgs, name)
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

// testsAndFlags lists, for each directory, the tests, benchmarks and fuzz targets of its package, and
// the flags that they define or that a package defines which they import.
func testsAndFlags(t *testing.T) (names, flags map[string][]string) {
	t.Helper()
	names, flags = map[string][]string{}, map[string][]string{}
	target := regexp.MustCompile(`^(Test|Benchmark|Fuzz)`)
	imported := map[string]map[string]bool{}
	for _, s := range sources(t) {
		for _, i := range s.file.Imports {
			if of, ours := strings.CutPrefix(i.Path.Value, `"moltisfs/`); s.test && ours {
				if imported[s.pkg()] == nil {
					imported[s.pkg()] = map[string]bool{}
				}
				imported[s.pkg()][strings.TrimSuffix(of, `"`)] = true
			}
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				if s.test && n.Recv == nil && target.MatchString(n.Name.Name) {
					names[s.pkg()] = append(names[s.pkg()], n.Name.Name)
				}
			case *ast.CallExpr:
				f, ok := n.Fun.(*ast.SelectorExpr)
				if !ok || len(n.Args) != 3 {
					break
				}
				if of, ok := f.X.(*ast.Ident); ok && of.Name == "flag" {
					if lit, ok := n.Args[0].(*ast.BasicLit); ok {
						name, _ := strconv.Unquote(lit.Value)
						flags[s.pkg()] = append(flags[s.pkg()], name)
					}
				}
			}
			return true
		})
	}
	takes := map[string][]string{}
	for pkg := range names {
		takes[pkg] = slices.Clone(flags[pkg])
		for other := range imported[pkg] {
			takes[pkg] = append(takes[pkg], flags[other]...)
		}
	}
	return names, takes
}
