package grep

import (
	"slices"
	"strings"

	"moltisfs/grep/filetype"
	"moltisfs/grep/ignore"
)

// TypeError is a type in [Query].Type that is unknown: its Name, and the Nearest that is known.
type TypeError = filetype.Unknown

// filter decides by name which files are searched, as ripgrep's -g and -t do. A file must be of one
// of the types. Then the last glob that matches decides. A file that no glob matches is searched,
// unless some glob includes. An excluding glob that matches a directory excludes everything below
// it.
type filter struct {
	globs []fileGlob
	some  bool // there is an including glob
	types *filetype.Choice
}

type fileGlob struct {
	*glob
	not bool
	all bool // every name fits
}

// newFilter reads the lists of a Query. A glob may begin with the name of the directory that is
// searched. Any other that begins with a slash is anchored there.
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
	f.types, err = filetype.Choose(types)
	return f, err
}

// newGlobFilter reads the pattern of a GlobQuery. An absolute glob must lie below the directory
// that is searched.
func newGlobFilter(p string, roots []string) (*filter, error) {
	f := &filter{}
	if p == "" {
		return f, nil
	}
	return f, f.addList(p, SplitGlobs(p, ","), func(p string) (string, error) {
		if rel, ok := below(roots, p); ok || roots[0] == "" || !strings.HasPrefix(p, "/") {
			return rel, nil
		}
		why := "it is absolute and does not lie below " + roots[0]
		return "", &GlobError{Glob: p, Why: why, Climbs: true}
	})
}

// addList reads a list of globs, given as its parts; "!" excludes. The list as a whole is one more
// glob, for names with a comma or a blank in them. Its parts come later and so overrule it.
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

// add reads one glob of a list.
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
	bare := strings.TrimPrefix(strings.TrimPrefix(p, "./"), "/")
	f.globs = append(f.globs, fileGlob{g, not, p == "*" || bare == "**" || bare == "**/*"})
	f.some = f.some || !not
	return nil
}

// below takes the name of the root off the beginning of a pattern.
func below(roots []string, p string) (rel string, ok bool) {
	for _, root := range roots {
		if root == "" || !strings.HasPrefix(p, "/") {
			continue
		}
		if p == root {
			return ".", true
		}
		if rel, ok := strings.CutPrefix(p, strings.TrimSuffix(root, "/")+"/"); ok {
			return "/" + rel, true // the slash keeps a bare name anchored
		}
	}
	return p, false
}

func (f *filter) wants(rel, name string, w *worker) bool {
	return (f.types == nil || f.types.Match(name)) && f.decide(rel, name, false, &w.scratch) >= 0
}

// decide is 1 when a glob includes the entry, -1 when one excludes it, and 0 when no glob decides.
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

func (f *filter) picks() bool {
	return f.types != nil || slices.ContainsFunc(f.globs, func(g fileGlob) bool { return g.not || !g.all })
}

// leads says whether a glob names directory rel as one to pass through.
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
