package moltisfs

import (
	"bytes"
	"flag"
	"fmt"
	"go/ast"
	"go/token"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"moltisfs/config"
)

var update = flag.Bool("update", false, "rewrite what is rendered: moltis.example.toml, the table in README.md")

func TestEveryPackageHasOneComment(t *testing.T) {
	has := map[string][]string{}
	name := map[string]string{}
	for _, s := range sources(t) {
		if s.test {
			continue
		}
		has[s.pkg()] = append(has[s.pkg()], "")[:len(has[s.pkg()])]
		name[s.pkg()] = s.file.Name.Name
		if s.file.Doc == nil {
			continue
		}
		begin := "Package " + s.file.Name.Name + " "
		if s.file.Name.Name == "main" {
			begin = "Command " + path.Base(s.pkg()) + " "
		}
		if !strings.HasPrefix(s.file.Doc.Text(), begin) {
			t.Errorf("%s: the package comment must begin with %q", s.path, begin)
		}
		has[s.pkg()] = append(has[s.pkg()], s.path)
	}
	for pkg, in := range has {
		switch {
		case len(in) == 0:
			t.Errorf("package %s has no comment", pkg)
		case len(in) > 1:
			t.Errorf("package %s has %d comments: %v", pkg, len(in), in)
		}
	}
}

// TestManners holds what CONTRIBUTING.md asks for and a machine can see.
func TestManners(t *testing.T) {
	vague := []string{"util", "utils", "common", "helper", "helpers", "manager", "service", "misc", "base", "types"}
	unfinished := regexp.MustCompile(`\b(TODO|FIXME|XXX|HACK)\b`)
	for _, s := range sources(t) {
		if stem := strings.TrimSuffix(strings.TrimSuffix(path.Base(s.path), ".go"), "_test"); slices.Contains(vague, stem) || slices.Contains(vague, s.file.Name.Name) {
			t.Errorf("%s: the name says nothing; use the word of the config or the docs", s.path)
		}
		for _, d := range s.file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name == "init" {
				t.Errorf("%s: init() runs behind the reader's back; build the value where it is declared", s.path)
			}
		}
		for _, c := range s.file.Comments {
			if m := unfinished.FindString(c.Text()); m != "" && s.path != "house_test.go" {
				t.Errorf("%s: %s in a comment; do it, or write an issue", s.path, m)
			}
		}
	}
}

// A machinePath is a place on the machine of whoever wrote the file, which is nobody else's business. The homes of "user", "you"
// and "u" are examples.
var machinePath = regexp.MustCompile("(?:^|[\\s\"'`=(,])((?:/(?:root|work|mnt/[a-z]+|home/[a-z]+|Users/[A-Za-z]+|var/folders)/|[A-Z]:\\\\+Users\\\\+)[^\\s\"'`),]*)")

func TestNoMachinePaths(t *testing.T) {
	examples := []string{"/home/user/", "/home/you/", "/home/u/", "/Users/you/"}
	for _, p := range files(t, []string{""}) {
		text, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.IndexByte(text, 0) >= 0 {
			continue
		}
		for _, m := range machinePath.FindAllSubmatch(text, -1) {
			found := string(m[1])
			if !slices.ContainsFunc(examples, func(e string) bool { return strings.HasPrefix(found, e) }) {
				t.Errorf("%s names a place on somebody's machine: %s", p, found)
			}
		}
	}
}

func TestExampleTOML(t *testing.T) { rendered(t, "moltis.example.toml", config.Example()) }

func TestConfigTable(t *testing.T) {
	var b strings.Builder
	section := ""
	for _, r := range config.Table() {
		if r.Section != section {
			section = r.Section
			fmt.Fprintf(&b, "\n**`[%s]`**\n\n| key | value | default | |\n|---|---|---|---|\n", section)
		}
		def := "–"
		if r.Default != "" {
			def = "`" + r.Default + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", r.Key, cell(strings.ReplaceAll(r.Type, `"`, "`")), def, cell(r.Doc))
	}
	between(t, "README.md", "config", b.String())
}

func cell(s string) string { return strings.ReplaceAll(s, "|", `\|`) }

// between compares, or with -update rewrites, what stands between the markers of name.
func between(t *testing.T, file, name, want string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	begin, end := []byte("<!-- "+name+": rendered, do not edit -->\n"), []byte("\n<!-- end of "+name+" -->")
	head, rest, ok := bytes.Cut(text, begin)
	_, tail, ok2 := bytes.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s lacks the markers %q and %q", file, begin, end)
	}
	rendered(t, file, slices.Concat(head, begin, []byte(want), end, tail))
}

func rendered(t *testing.T, file string, want []byte) {
	t.Helper()
	got, err := os.ReadFile(file)
	if err == nil && bytes.Equal(got, want) {
		return
	}
	if !*update {
		t.Fatalf("%s is not what the code renders; run: go test . -update", file)
	}
	if err := os.WriteFile(file, want, 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestDependenciesHaveReasons(t *testing.T) {
	text, err := os.ReadFile("docs/dependencies.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, ok := strings.Cut(string(text), "\n## Modules\n")
	if !ok {
		t.Fatal(`docs/dependencies.md has no section "Modules"`)
	}
	section, _, _ = strings.Cut(section, "\n## ")
	have := directModules(t)
	listed := map[string]bool{}
	for line := range strings.Lines(section) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		module := strings.Trim(strings.TrimSpace(cells[0]), "`")
		if len(cells) < 3 || !strings.Contains(module, ".") {
			continue
		}
		listed[module] = true
		if have[module] == "" {
			t.Errorf("docs/dependencies.md lists %s, which go.mod does not require directly", module)
		}
		for _, c := range cells[1:] {
			if len(strings.TrimSpace(c)) < 10 {
				t.Errorf("docs/dependencies.md: %s has an empty reason", module)
			}
		}
	}
	for m := range have {
		if !listed[m] {
			t.Errorf("docs/dependencies.md does not say what %s is for and why it is not our own", m)
		}
	}
}

// documents are what people read; every one is held to what it says.
func documents(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, p := range files(t, []string{".md"}, "testdata") {
		text, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		out[p] = string(text)
	}
	for _, must := range []string{"README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md"} {
		if out[must] == "" {
			t.Errorf("%s is missing", must)
		}
	}
	return out
}

var (
	fence    = regexp.MustCompile("(?ms)^```.*?^```")
	linked   = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	spoken   = regexp.MustCompile("`([^`\n]+)`")
	aPath    = regexp.MustCompile(`^[\w.*-]+(/[\w.*-]*)+$`)
	anIdent  = regexp.MustCompile(`^([a-z]+)\.([A-Z]\w*)(\.\w+)?(\(\))?$`)
	heading  = regexp.MustCompile(`(?m)^#+ +(.*)$`)
	testName = regexp.MustCompile(`\b(?:Test|Fuzz|Benchmark|Example)[A-Z]\w*\b`)
	target   = regexp.MustCompile(`(?m)^([a-z][a-z-]*):`)
)

func TestLinks(t *testing.T) {
	docs := documents(t)
	for _, doc := range slices.Sorted(maps.Keys(docs)) {
		for _, m := range linked.FindAllStringSubmatch(fence.ReplaceAllString(docs[doc], ""), -1) {
			to, anchor, _ := strings.Cut(m[1], "#")
			if strings.Contains(to, ":") {
				continue // the web
			}
			file := doc
			if to != "" {
				file = path.Join(path.Dir(doc), to)
			}
			if _, err := os.Stat(file); err != nil {
				t.Errorf("%s links to %s, which is not there", doc, m[1])
			} else if anchor != "" && !slices.Contains(anchors(docs[file]), anchor) {
				t.Errorf("%s links to %s, a heading that is not there", doc, m[1])
			}
		}
	}
}

// anchors are the fragments that GitHub makes of headings.
func anchors(text string) (out []string) {
	for _, m := range heading.FindAllStringSubmatch(text, -1) {
		out = append(out, strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case unicode.IsLetter(r) || unicode.IsDigit(r) || r == '-' || r == '_':
				return unicode.ToLower(r)
			}
			return -1
		}, m[1]))
	}
	return out
}

// TestSectionsOnce: a section that stands in a document twice is a merge gone wrong, and one of the two is out of date.
func TestSectionsOnce(t *testing.T) {
	docs := documents(t)
	for _, doc := range slices.Sorted(maps.Keys(docs)) {
		seen := map[string]bool{}
		var above []string // the headings that the current one stands under, by level
		for _, h := range heading.FindAllString(fence.ReplaceAllString(docs[doc], ""), -1) {
			level := len(h) - len(strings.TrimLeft(h, "#"))
			above = append(above[:min(level-1, len(above))], h)
			whole := strings.Join(above, "\n")
			if seen[whole] {
				t.Errorf("%s has %q twice", doc, h)
			}
			seen[whole] = true
		}
	}
}

// TestDocumentsNameWhatIsThere holds paths, Go names, make targets and tests that a document sets in backticks.
func TestDocumentsNameWhatIsThere(t *testing.T) {
	docs := documents(t)
	top := map[string]bool{}
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		top[e.Name()] = true
	}
	src := sources(t)
	declared, tests := declarations(src)
	targets := makeTargets(t)
	for _, doc := range slices.Sorted(maps.Keys(docs)) {
		text := fence.ReplaceAllString(docs[doc], "")
		for _, m := range spoken.FindAllStringSubmatch(text, -1) {
			word := m[1]
			if first, _, _ := strings.Cut(word, "/"); aPath.MatchString(word) && top[first] {
				if found, _ := filepath.Glob(strings.TrimSuffix(word, "/")); len(found) == 0 {
					t.Errorf("%s: %s is not there", doc, word)
				}
			}
			if id := anIdent.FindStringSubmatch(word); id != nil {
				if names := declared[id[1]]; names != nil && !names[id[2]+id[3]] {
					t.Errorf("%s: %s is not declared", doc, word)
				}
			}
			if goal, ok := strings.CutPrefix(word, "make "); ok && !targets[goal] {
				t.Errorf("%s: the Makefile has no target %s", doc, goal)
			}
		}
		for _, name := range testName.FindAllString(docs[doc], -1) {
			if !tests[name] {
				t.Errorf("%s: there is no %s", doc, name)
			}
		}
	}
}

// TestRecipesRunTests: a misspelt name after -run runs nothing and passes. Whatever the Makefile and .ci/run name, the package that the
// line tests must have; the flags too.
func TestRecipesRunTests(t *testing.T) {
	tests := map[string]map[string]bool{} // by package: its tests and its flags
	for _, s := range sources(t) {
		if !s.test {
			continue
		}
		has := tests[s.pkg()]
		if has == nil {
			has = map[string]bool{}
			tests[s.pkg()] = has
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				has[n.Name.Name] = true
			case *ast.CallExpr:
				if f, ok := n.Fun.(*ast.SelectorExpr); ok && len(n.Args) == 3 {
					if x, ok := f.X.(*ast.Ident); ok && x.Name == "flag" {
						if name, ok := n.Args[0].(*ast.BasicLit); ok {
							has["-"+strings.Trim(name.Value, `"`)] = true
						}
					}
				}
			}
			return true
		})
	}
	// -update of the golden calls is declared in toolstest.
	known := []string{"-run", "-bench", "-benchmem", "-benchtime", "-count", "-timeout", "-race", "-short", "-skip", "-fuzz", "-fuzztime", "-list", "-tags", "-args", "-update", "-v", "-vet"}
	named := 0
	for _, file := range []string{"Makefile", ".ci/run"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			_, command, ok := strings.Cut(line, "go test ")
			if !ok || strings.Contains(command, "$$pkg") {
				continue
			}
			command, _, _ = strings.Cut(command, " #")
			var pkgs []string
			for _, word := range strings.Fields(command) {
				if word == "." || strings.HasPrefix(word, "./") && word != "./..." {
					pkgs = append(pkgs, path.Clean(word))
				}
			}
			has := func(name string) bool {
				return slices.ContainsFunc(pkgs, func(p string) bool {
					return slices.ContainsFunc(slices.Collect(maps.Keys(tests[p])), func(n string) bool {
						return n == name || strings.HasPrefix(name, "Test") && strings.HasPrefix(n, name) && !strings.Contains(command, "$$'")
					})
				})
			}
			for _, name := range testName.FindAllString(command, -1) {
				named++
				if !has(name) {
					t.Errorf("%s: there is no %s in %v", file, name, pkgs)
				}
			}
			for _, word := range strings.Fields(command) {
				if f, _, _ := strings.Cut(word, "="); strings.HasPrefix(f, "-") && len(f) > 1 && !slices.Contains(known, f) && !has(f) {
					t.Errorf("%s: %v have no flag %s", file, pkgs, f)
				}
			}
		}
	}
	if named < 20 {
		t.Errorf("only %d tests named: this test looks in the wrong place", named)
	}
}

// declarations gives what each package of the house declares, methods and fields as "Type.name", and the names of all tests.
func declarations(src []*source) (declared map[string]map[string]bool, tests map[string]bool) {
	declared, tests = map[string]map[string]bool{}, map[string]bool{}
	for _, s := range src {
		pkg := s.file.Name.Name
		if declared[pkg] == nil {
			declared[pkg] = map[string]bool{}
		}
		names := declared[pkg]
		for _, d := range s.file.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Recv == nil {
					names[d.Name.Name] = true
					if s.test {
						tests[d.Name.Name] = true
					}
					continue
				}
				names[receiver(d.Recv.List[0].Type)+"."+d.Name.Name] = true
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					switch spec := spec.(type) {
					case *ast.TypeSpec:
						names[spec.Name.Name] = true
						for _, member := range members(spec.Type) {
							names[spec.Name.Name+"."+member] = true
						}
					case *ast.ValueSpec:
						for _, n := range spec.Names {
							names[n.Name] = true
						}
					}
				}
			}
		}
	}
	return declared, tests
}

func receiver(e ast.Expr) string {
	for {
		switch x := e.(type) {
		case *ast.StarExpr:
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.Ident:
			return x.Name
		default:
			return token.ILLEGAL.String()
		}
	}
}

func members(e ast.Expr) (out []string) {
	var list *ast.FieldList
	switch x := e.(type) {
	case *ast.StructType:
		list = x.Fields
	case *ast.InterfaceType:
		list = x.Methods
	default:
		return nil
	}
	for _, f := range list.List {
		for _, n := range f.Names {
			out = append(out, n.Name)
		}
	}
	return out
}

func makeTargets(t *testing.T) map[string]bool {
	t.Helper()
	text, err := os.ReadFile("Makefile")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]bool{}
	for _, m := range target.FindAllStringSubmatch(string(text), -1) {
		out[m[1]] = true
	}
	return out
}

// TestEveryKeyIsRead: a key that nobody reads is a promise that nobody keeps. A field counts as read where it is selected from
// something outside package config.
func TestEveryKeyIsRead(t *testing.T) {
	read := map[string]bool{}
	var fields []string
	for _, s := range sources(t) {
		if s.test || strings.HasSuffix(s.pkg(), "test") {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.SelectorExpr:
				if s.pkg() != "config" {
					read[n.Sel.Name] = true
				}
			case *ast.Field:
				if s.pkg() == "config" && n.Tag != nil && strings.Contains(n.Tag.Value, "toml:") {
					fields = append(fields, n.Names[0].Name)
				}
			}
			return true
		})
	}
	sections := map[string]bool{"tools": true} // they are fields, too
	for _, row := range config.Table() {
		sections[row.Section] = true
	}
	if len(fields) != len(config.Table())+len(sections) {
		t.Fatalf("%d fields for %d keys: this test looks in the wrong place", len(fields), len(config.Table()))
	}
	for _, f := range fields {
		if !read[f] {
			t.Errorf("nobody reads the key of config field %s", f)
		}
	}
}
