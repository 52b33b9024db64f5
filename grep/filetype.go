package grep

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"moltisfs/grep/ignore"
	"moltisfs/internal/nearest"
)

// TypeError is an unknown file type, with up to three known names that it may mean, the likeliest
// first.
type TypeError struct {
	Type    string
	Nearest []string
}

func (e *TypeError) Error() string {
	if len(e.Nearest) == 0 {
		return fmt.Sprintf("unknown file type %q", e.Type)
	}
	near := strings.Join(e.Nearest, ", ")
	return fmt.Sprintf("unknown file type %q; the nearest are %s", e.Type, near)
}

// TypeNames lists every type, sorted.
func TypeNames() []string {
	var out []string
	for line := range strings.SplitSeq(strings.TrimSpace(typeTable), "\n") {
		name, _, _ := strings.Cut(line, ":")
		out = append(out, name)
	}
	return out
}

// fileTypes is a choice of types: the globs of all of them, the common "*.ext" ones by extension.
type fileTypes struct {
	ext   map[string]bool // what follows the last dot
	name  map[string]bool
	globs []*ignore.Glob
}

// newFileTypes is nil for no types. An element may hold several names, split at commas and spaces.
func newFileTypes(types []string) (*fileTypes, error) {
	var want []string
	for _, list := range types {
		between := func(r rune) bool { return r == ',' || r == ' ' }
		want = append(want, strings.FieldsFunc(list, between)...)
	}
	if len(want) == 0 {
		return nil, nil
	}
	t := new(fileTypes)
	for _, name := range want {
		globs, ok := typeGlobs(strings.ToLower(name))
		if !ok {
			return nil, &TypeError{name, nearestTypes(name)}
		}
		for _, p := range globs {
			t.add(p)
		}
	}
	return t, nil
}

// oneType is the type of a name in the table.
func oneType(name string) *fileTypes {
	t := new(fileTypes)
	globs, _ := typeGlobs(name)
	for _, p := range globs {
		t.add(p)
	}
	return t
}

func (t *fileTypes) add(p string) {
	if t.ext == nil {
		t.ext, t.name = map[string]bool{}, map[string]bool{}
	}
	switch ext, ok := strings.CutPrefix(p, "*."); {
	case ok && !strings.ContainsAny(ext, `*?[{\.`):
		t.ext[ext] = true
	case !strings.ContainsAny(p, `*?[{\`):
		t.name[p] = true
	default:
		texts, err := expand(p)
		for _, text := range texts {
			g, err2 := ignore.Compile(text, ignore.Dialect{Runes: true, Strict: true})
			if err != nil || err2 != nil {
				panic("grep: bad glob in the type table: " + p)
			}
			t.globs = append(t.globs, g)
		}
	}
}

func (t *fileTypes) match(name string) bool {
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
		for _, n := range TypeNames() {
			globs, _ := typeGlobs(n)
			all = append(all, globs...)
		}
		return all, true
	}
	if strings.ContainsAny(name, ":\n") || name == "" {
		return nil, false
	}
	_, rest, ok := strings.Cut(typeTable, "\n"+name+": ")
	if !ok {
		return nil, false
	}
	line, _, _ := strings.Cut(rest, "\n")
	return strings.Split(line, ", "), true
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
// those with such an extension. Else those that begin the name, or that it begins (by half of the
// longer one at least), and those a typing mistake away.
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
	for _, n := range TypeNames() {
		d := nearest.Distance(name, n)
		apart[n] = d
		begins := strings.HasPrefix(name, n) && 2*len(n) >= len(name) || strings.HasPrefix(n, name)
		switch {
		case oneType(n).match("x." + name):
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
