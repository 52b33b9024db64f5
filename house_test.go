package moltisfs

import (
	"bytes"
	"flag"
	"fmt"
	"go/ast"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"moltisfs/config"
)

var update = flag.Bool("update", false, "rewrite what is rendered: moltis.example.toml, the table in docs/configuration.md")

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
	var b bytes.Buffer
	cell := strings.NewReplacer("|", `\|`).Replace
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
	text, err := os.ReadFile("docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	begin, end := []byte("<!-- config: rendered, do not edit -->\n"), []byte("\n<!-- end of config -->")
	head, rest, ok := bytes.Cut(text, begin)
	_, tail, ok2 := bytes.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("docs/configuration.md lacks the markers %q and %q", begin, end)
	}
	rendered(t, "docs/configuration.md", slices.Concat(head, begin, b.Bytes(), end, tail))
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

// documents gives what people read, by path, without fenced blocks.
func documents(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, p := range files(t, []string{".md"}, "testdata") {
		text, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		out[p] = fence.ReplaceAllString(string(text), "")
	}
	return out
}

var (
	fence    = regexp.MustCompile("(?ms)^```.*?^```")
	linked   = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	spoken   = regexp.MustCompile("`([^`\n]+)`")
	aPath    = regexp.MustCompile(`^[\w.*-]+(/[\w.*-]*)+$`)
	aName    = regexp.MustCompile(`^([a-z]+)\.([A-Z]\w*|[a-z]+[A-Z]\w*)(?:\.(\w+))?(?:\(\))?$`)
	heading  = regexp.MustCompile(`(?m)^#+ +(.*)$`)
	testName = regexp.MustCompile(`\b(?:Test|Fuzz|Benchmark)[A-Z]\w*\b`)
	noAnchor = regexp.MustCompile(`[^\pL\pN_-]`)
)

func TestLinks(t *testing.T) {
	docs := documents(t)
	for doc, text := range docs {
		for _, m := range linked.FindAllStringSubmatch(text, -1) {
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
		out = append(out, noAnchor.ReplaceAllString(strings.ReplaceAll(strings.ToLower(m[1]), " ", "-"), ""))
	}
	return out
}

// TestDocumentsNameWhatIsThere finds the paths, Go names and make targets that a document sets in backticks, and the tests that it names,
// where there are none. A name in small letters, like `tools.policy`, may be a key.
func TestDocumentsNameWhatIsThere(t *testing.T) {
	declared := map[string]bool{} // "package.Name" of functions, types, variables, methods and fields, and "Name" of tests
	for _, s := range sources(t) {
		pkg := s.file.Name.Name + "."
		declared[pkg] = true
		ast.Inspect(s.file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				declared[pkg+n.Name.Name], declared[n.Name.Name] = true, true
			case *ast.TypeSpec:
				declared[pkg+n.Name.Name] = true
			case *ast.ValueSpec:
				for _, name := range n.Names {
					declared[pkg+name.Name] = true
				}
			case *ast.Field:
				for _, name := range n.Names {
					declared[pkg+name.Name] = true
				}
			}
			return true
		})
	}
	makefile, err := os.ReadFile("Makefile")
	if err != nil {
		t.Fatal(err)
	}
	for doc, text := range documents(t) {
		for _, m := range spoken.FindAllStringSubmatch(text, -1) {
			word := m[1]
			if first, _, _ := strings.Cut(word, "/"); aPath.MatchString(word) && first != "." {
				_, err := os.Stat(first)
				if found, _ := filepath.Glob(strings.TrimSuffix(word, "/")); err == nil && len(found) == 0 {
					t.Errorf("%s: %s is not there", doc, word)
				}
			}
			if id := aName.FindStringSubmatch(word); id != nil && declared[id[1]+"."] {
				if !declared[id[1]+"."+id[2]] || id[3] != "" && !declared[id[1]+"."+id[3]] {
					t.Errorf("%s: %s is not declared", doc, word)
				}
			}
			if goal, ok := strings.CutPrefix(word, "make "); ok && !bytes.Contains(makefile, []byte("\n"+goal+":")) {
				t.Errorf("%s: the Makefile has no target %s", doc, goal)
			}
		}
		for _, name := range testName.FindAllString(text, -1) {
			if !declared[name] {
				t.Errorf("%s: there is no %s", doc, name)
			}
		}
	}
}

// TestEveryKeyIsRead: a key that nobody reads is a promise that nobody keeps. A field counts as read where it is selected from
// something outside package config.
func TestEveryKeyIsRead(t *testing.T) {
	read, fields := map[string]bool{}, map[string]bool{}
	for _, s := range program(t) {
		ast.Inspect(s.file, func(n ast.Node) bool {
			if f, ok := n.(*ast.Field); ok && s.pkg() == "config" && f.Tag != nil && strings.Contains(f.Tag.Value, "toml:") {
				fields[f.Names[0].Name] = true
			}
			if x, ok := n.(*ast.SelectorExpr); ok && s.pkg() != "config" {
				read[x.Sel.Name] = true
			}
			return true
		})
	}
	if len(fields) < 30 {
		t.Fatalf("only %d fields for %d keys: this test looks in the wrong place", len(fields), len(config.Table()))
	}
	for f := range fields {
		if !read[f] {
			t.Errorf("nobody reads the key of config field %s", f)
		}
	}
}
