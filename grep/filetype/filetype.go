// Package filetype knows files by their kind of language or format, as ripgrep's -t does: "go" is
// *.go, "make" also Makefile. It looks at names only. The table is the output of `rg --type-list`,
// version 15; models know these names by heart.
package filetype

import (
	"cmp"
	_ "embed"
	"fmt"
	"slices"
	"strings"

	"moltisfs/grep/ignore"
	"moltisfs/internal/args"
)

// table has a type a line.
//
//go:embed types.txt
var table string

// Unknown is an unknown file type, with up to three known names that it may mean, the likeliest
// first.
type Unknown struct {
	Type    string
	Nearest []string
}

func (e *Unknown) Error() string {
	if len(e.Nearest) == 0 {
		return fmt.Sprintf("unknown file type %q", e.Type)
	}
	near := strings.Join(e.Nearest, ", ")
	return fmt.Sprintf("unknown file type %q; the nearest are %s", e.Type, near)
}

// Names lists every type, sorted.
func Names() []string {
	var out []string
	for line := range strings.Lines(table) {
		name, _, _ := strings.Cut(line, ":")
		out = append(out, name)
	}
	return out
}

// Choice is some types: the globs of all of them, the common "*.ext" ones by extension.
type Choice struct {
	ext   map[string]bool // the part after the last dot
	name  map[string]bool
	globs []*ignore.Glob
}

// Choose is nil for no types. An element may hold several names, split at commas and spaces.
func Choose(types []string) (*Choice, error) {
	var want []string
	for _, list := range types {
		between := func(r rune) bool { return r == ',' || r == ' ' }
		want = append(want, strings.FieldsFunc(list, between)...)
	}
	if len(want) == 0 {
		return nil, nil
	}
	t := new(Choice)
	for _, name := range want {
		globs, ok := typeGlobs(strings.ToLower(name))
		if !ok {
			return nil, &Unknown{name, nearestTypes(name)}
		}
		for _, p := range globs {
			t.add(p)
		}
	}
	return t, nil
}

func (t *Choice) add(p string) {
	if t.ext == nil {
		t.ext, t.name = map[string]bool{}, map[string]bool{}
	}
	switch ext, ok := strings.CutPrefix(p, "*."); {
	case ok && !strings.ContainsAny(ext, `*?[{\.`):
		t.ext[ext] = true
	case !strings.ContainsAny(p, `*?[{\`):
		t.name[p] = true
	default:
		g, err := ignore.Compile(p, ignore.Dialect{Runes: true, Strict: true})
		if err != nil {
			panic("filetype: bad glob in the table: " + p)
		}
		t.globs = append(t.globs, g)
	}
}

// Match says whether a file of this name is of one of the types.
func (t *Choice) Match(name string) bool {
	if i := strings.LastIndexByte(name, '.'); i >= 0 && t.ext[name[i+1:]] {
		return true
	}
	if t.name[name] {
		return true
	}
	for _, g := range t.globs {
		if g.Match(name) {
			return true
		}
	}
	return false
}

// typeGlobs looks a type up in the table.
func typeGlobs(name string) ([]string, bool) {
	if name == "all" { // every known type, as in ripgrep
		var all []string
		for _, n := range Names() {
			globs, _ := typeGlobs(n)
			all = append(all, globs...)
		}
		return all, true
	}
	if strings.ContainsAny(name, ":\n") || name == "" {
		return nil, false
	}
	for line := range strings.Lines(table) {
		if globs, ok := strings.CutPrefix(line, name+": "); ok {
			return strings.Split(strings.TrimSpace(globs), ", "), true
		}
	}
	return nil, false
}

// commonNames are languages and shells under names that are neither types of ripgrep's nor near
// one.
var commonNames = map[string]string{
	"bash": "sh", "c#": "csharp", "c++": "cpp", "dockerfile": "docker", "golang": "go",
	"javascript": "js", "javascriptreact": "js", "jsx": "js", "makefile": "make", "node": "js",
	"nodejs": "js", "objective-c": "objc", "plaintext": "txt", "python3": "py", "react": "js",
	"rustlang": "rust", "shell": "sh", "text": "txt", "tsx": "ts", "typescriptreact": "ts",
	"visualbasic": "vb", "zsh": "sh",
}

// nearestTypes gives up to three names that are really near. First the type that people call so, or
// the types with such an extension. Else the types that begin the name, or that it begins (by half of the
// longer one at least), and the types a typing mistake away.
func nearestTypes(name string) []string {
	name = strings.TrimLeft(strings.TrimPrefix(strings.ToLower(name), "*"), ".")
	if to, ok := commonNames[name]; ok {
		return []string{to}
	}
	if _, ok := typeGlobs(name); ok {
		return []string{name} // it was sent with a dot
	}
	if len(name) < 2 || len(name) > 64 {
		return nil
	}
	var same, near []string
	apart := map[string]int{}
	for _, n := range Names() {
		d := args.Distance(name, n)
		apart[n] = d
		begins := strings.HasPrefix(name, n) && 2*len(n) >= len(name) || strings.HasPrefix(n, name)
		switch t, _ := Choose([]string{n}); {
		case t.Match("x." + name):
			same = append(same, n)
		case begins, d <= len(name)/3:
			near = append(near, n)
		}
	}
	if same == nil {
		same = near
	}
	slices.SortStableFunc(same, func(a, b string) int { return cmp.Compare(apart[a], apart[b]) })
	return same[:min(len(same), 3)]
}
