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

// newFilter reads the lists. Each element of globs may hold several, split at commas and spaces; "!" excludes. A glob may begin
// with root, the name of the directory that is searched.
func newFilter(globs, types []string, root string) (*filter, error) {
	f := &filter{}
	for _, list := range globs {
		for _, p := range splitGlobs(list) {
			p, not := strings.CutPrefix(p, "!")
			if rel, ok := strings.CutPrefix(p, strings.TrimSuffix(root, "/")+"/"); ok && root != "" {
				p = "/" + rel
			}
			g, err := compileGlob(p, not)
			if err != nil {
				return nil, err
			}
			f.globs = append(f.globs, fileGlob{g, not})
			f.some = f.some || !not
		}
	}
	var err error
	f.types, err = newFileTypes(types)
	return f, err
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
