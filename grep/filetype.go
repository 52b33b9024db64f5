package grep

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"moltisfs/grep/ignore"
)

// TypeError is an unknown file type, with the known names nearest to it.
type TypeError struct {
	Type    string
	Nearest []string
}

func (e *TypeError) Error() string {
	return fmt.Sprintf("unknown file type %q; the nearest are %s", e.Type, strings.Join(e.Nearest, ", "))
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
		want = append(want, strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' })...)
	}
	if len(want) == 0 {
		return nil, nil
	}
	t := &fileTypes{ext: map[string]bool{}, name: map[string]bool{}}
	for _, name := range want {
		globs, ok := typeGlobs(strings.ToLower(name))
		if !ok {
			return nil, &TypeError{name, nearest(strings.ToLower(name), TypeNames())}
		}
		for _, p := range globs {
			t.add(p)
		}
	}
	return t, nil
}

func (t *fileTypes) add(p string) {
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
	if name == "all" {
		return []string{"*"}, true
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

// spoken are languages and shells by names that are no types of ripgrep's, nor near one.
var spoken = map[string]string{
	"bash": "sh", "c#": "csharp", "c++": "cpp", "golang": "go", "javascript": "js", "javascriptreact": "js", "jsx": "js", "node": "js",
	"plaintext": "txt", "python3": "py", "shell": "sh", "text": "txt", "tsx": "ts", "typescriptreact": "ts", "visualbasic": "vb", "zsh": "sh",
}

// nearest gives three names: the type that people call so, those with such an extension, those that begin the name or that it
// begins, the longest first, then the rest by edit distance.
func nearest(name string, names []string) []string {
	rank := func(n string) int {
		globs, _ := typeGlobs(n)
		switch {
		case spoken[name] == n:
			return 0
		case slices.Contains(globs, "*."+name):
			return 1
		case len(n) > 1 && strings.HasPrefix(name, n), strings.HasPrefix(n, name):
			return 1000 - min(len(n), len(name))
		}
		return 1000 + distance(name, n)
	}
	names = slices.Clone(names)
	slices.SortStableFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(distance(name, a), distance(name, b)))
	})
	return names[:3]
}

// distance is Levenshtein's.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diag := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			diag, row[j+1] = row[j+1], min(diag+cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
