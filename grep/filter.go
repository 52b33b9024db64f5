package grep

import (
	"strings"

	"moltisfs/grep/ignore"
)

// filter decides by name which files are searched, as ripgrep's -g and -t do: they are of one of the types, and the last glob that
// matches decides; where none does they are searched unless there is a glob that is not excluding. An excluding one that matches
// a directory shuts out everything below it.
type filter struct {
	globs []fileGlob
	some  bool // a glob that is not excluding
	types *fileTypes
}

type fileGlob struct {
	*glob
	not bool
}

// newFilter reads the lists of a Query. A glob may begin with the name of the directory that is searched; any other that begins with
// a slash is anchored there.
func newFilter(globs, types []string, roots []string) (*filter, error) {
	f := &filter{}
	for _, list := range globs {
		err := f.addList(list, ListGlobs(list), func(p string) (string, error) {
			if rel, ok := below(roots, p); ok {
				p = rel
			}
			return p, nil
		})
		if err != nil {
			return nil, err
		}
	}
	var err error
	f.types, err = newFileTypes(types)
	return f, err
}

// newGlobFilter reads the pattern of a GlobQuery. An absolute glob names a place below the directory that is searched.
func newGlobFilter(p string, roots []string) (*filter, error) {
	f := &filter{}
	if p == "" {
		return f, nil
	}
	return f, f.addList(p, SplitGlobs(p, ","), func(p string) (string, error) {
		if rel, ok := below(roots, p); ok || roots[0] == "" || !strings.HasPrefix(p, "/") {
			return rel, nil
		}
		return "", &GlobError{Glob: p, Why: "it is absolute and does not lie below " + roots[0], Climbs: true}
	})
}

// addList reads a list of globs, of these parts; "!" excludes. A list is also the one glob that it is as a whole, for
// names with a comma or a blank in them; its parts come later, and overrule it.
func (f *filter) addList(list string, parts []string, rooted func(string) (string, error)) error {
	if len(parts) != 1 || parts[0] != list {
		if err := f.add(list, rooted); err != nil && len(parts) == 0 {
			return err
		}
	}
	for _, p := range parts {
		if err := f.add(p, rooted); err != nil {
			return err
		}
	}
	return nil
}

func (f *filter) add(p string, rooted func(string) (string, error)) error {
	p, not := strings.CutPrefix(p, "!")
	p, err := rooted(p)
	if err != nil {
		return err
	}
	g, err := compileGlob(p, not)
	if err != nil {
		return err
	}
	f.globs = append(f.globs, fileGlob{g, not})
	f.some = f.some || !not
	return nil
}

// below makes a pattern that begins with the name of the root relative to it.
func below(roots []string, p string) (rel string, ok bool) {
	for _, root := range roots {
		if root == "" || !strings.HasPrefix(p, "/") {
			continue
		}
		if p == root {
			return ".", true
		}
		if rel, ok := strings.CutPrefix(p, strings.TrimSuffix(root, "/")+"/"); ok {
			return "/" + rel, true // still anchored, should it have become a bare name
		}
	}
	return p, false
}

func (f *filter) wants(rel, name string, w *worker) bool {
	return (f.types == nil || f.types.match(name)) && f.decide(rel, name, false, &w.scratch) >= 0
}

// decide is 1 for an entry that is wanted by a glob, -1 for one that is not wanted, 0 where that is for others to say.
func (f *filter) decide(rel, name string, isDir bool, s *ignore.Scratch) int {
	for i := len(f.globs) - 1; i >= 0; i-- {
		g := &f.globs[i]
		switch {
		case !g.match(rel, name, isDir, s):
		case g.not:
			return -1
		default:
			return 1
		}
	}
	if f.some && !isDir {
		return -1
	}
	return 0
}

func (f *filter) descend(rel string) bool {
	if len(f.globs) == 0 {
		return true
	}
	path := strings.TrimSuffix(rel, "/")
	at := strings.LastIndexByte(path, '/') + 1
	var s ignore.Scratch
	if f.decide(path[:at], path[at:], true, &s) < 0 {
		return false
	}
	return !f.some || f.any(func(g *glob) bool { return g.under(rel) })
}

func (f *filter) picks() bool { return len(f.globs) > 0 || f.types != nil }

// leads says whether a glob names directory rel as one to go through.
func (f *filter) leads(rel string) bool {
	return f.any(func(g *glob) bool { return g.leads(rel) })
}

func (f *filter) any(ask func(*glob) bool) bool {
	for i := range f.globs {
		if !f.globs[i].not && ask(f.globs[i].glob) {
			return true
		}
	}
	return false
}
