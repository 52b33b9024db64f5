package moltisfs

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/doc"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

// longLines is how many lines of Go without tests are wider than lineWidth, a tab counted as one.
// It may only go down: break the lines that you touch, and write here how many are left. The line
// of a struct tag does not count, since nothing can break it.
const (
	lineWidth = 100
	longLines = 1186
)

func TestLineLength(t *testing.T) {
	count := 0
	by := map[string]int{}
	for _, s := range sources(t) {
		if s.test {
			continue
		}
		text, err := os.ReadFile(s.path)
		if err != nil {
			t.Fatal(err)
		}
		tagged := map[int]bool{}
		ast.Inspect(s.file, func(n ast.Node) bool {
			if f, ok := n.(*ast.Field); ok && f.Tag != nil {
				tagged[s.fset.Position(f.Tag.Pos()).Line] = true
			}
			return true
		})
		for i, line := range strings.Split(string(text), "\n") {
			if utf8.RuneCountInString(line) > lineWidth && !tagged[i+1] {
				count++
				by[s.pkg()]++
			}
		}
	}
	if count > longLines {
		t.Errorf("%d lines are wider than %d columns, and longLines allows %d: %v", count, lineWidth, longLines, by)
	}
}

// aPackage is a row of the table of packages.
var aPackage = regexp.MustCompile("(?m)^\\| `(.*)` \\| ([0-9]+) \\|")

// TestPackagesInArchitecture: the table has each package, what it is for in the first sentence of
// its comment, and its lines. A figure stays until it is wrong by more than a tenth, so that the
// table does not change with every commit.
func TestPackagesInArchitecture(t *testing.T) {
	lines, purpose := map[string]int{}, map[string]string{}
	for _, s := range sources(t) {
		if s.test {
			continue
		}
		lines[s.pkg()] += s.lines
		if s.file.Doc != nil {
			var p doc.Package
			sentence := strings.TrimSuffix(p.Synopsis(s.file.Doc.Text()), ".")
			for _, name := range []string{"Package " + s.file.Name.Name, "Command " + path.Base(s.pkg())} {
				sentence = strings.TrimPrefix(sentence, name+" ")
			}
			purpose[s.pkg()] = sentence
		}
	}
	text, err := os.ReadFile("ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range aPackage.FindAllStringSubmatch(string(text), -1) {
		written, err := strconv.Atoi(m[2])
		if now := lines[m[1]]; err == nil && now > 0 && max(written-now, now-written) <= max(now/10, 50) {
			lines[m[1]] = written
		}
	}
	var b strings.Builder
	b.WriteString("\n| package | lines | what it does |\n|---|---:|---|\n")
	largest := func(p, q string) int { return cmp.Or(cmp.Compare(lines[q], lines[p]), cmp.Compare(p, q)) }
	for _, pkg := range slices.SortedFunc(maps.Keys(lines), largest) {
		fmt.Fprintf(&b, "| `%s` | %d | %s |\n", pkg, lines[pkg], cell(purpose[pkg]))
	}
	between(t, "ARCHITECTURE.md", "packages", b.String())
}
