package grep

import "strings"

// filter decides by name which files are searched: at least one of the positive globs, none of the negative
// ones, and one of the types.
type filter struct {
	yes, no []*glob
	types   *fileTypes
}

// newFilter reads the lists. Each element of globs may hold several, split at commas and spaces; "!" negates.
func newFilter(globs, types []string) (*filter, error) {
	f := &filter{}
	for _, list := range globs {
		for _, p := range splitGlobs(list) {
			p, not := strings.CutPrefix(p, "!")
			g, err := compileGlob(p)
			if err != nil {
				return nil, err
			}
			if not {
				f.no = append(f.no, g)
			} else {
				f.yes = append(f.yes, g)
			}
		}
	}
	var err error
	f.types, err = newFileTypes(types)
	return f, err
}

func (f *filter) wants(rel, name string, w *worker) bool {
	if f.types != nil && !f.types.match(name) {
		return false
	}
	if len(f.yes) == 0 && len(f.no) == 0 {
		return true
	}
	for _, g := range f.no {
		if g.match(rel, name, &w.scratch) {
			return false
		}
	}
	for _, g := range f.yes {
		if g.match(rel, name, &w.scratch) {
			return true
		}
	}
	return len(f.yes) == 0
}

func (f *filter) descend(rel string) bool {
	if len(f.yes) == 0 {
		return true
	}
	for _, g := range f.yes {
		if g.under(rel) {
			return true
		}
	}
	return false
}
