package policy

import (
	"errors"
	"path"
	"strings"
	"sync"
	"sync/atomic"

	"moltisfs/internal/glob"
)

// Paths are the files that a list of globs names, for lists which are no rules of access: what is never stored, what is to be purged.
// They are read as a deny list is: whatever a pattern names covers all below it, and its literal beginning holds as it is spelled
// and with links followed. Unlike there a pattern without a slash holds at any depth, and letters are those that are written: more
// than was named would be lost for good. A wildcard stands for true names only. Safe for concurrent use.
type Paths struct {
	canonical func(string) string
	patterns  []*glob.Pattern

	mu    sync.Mutex // for following again
	names map[followed]bool
	tree  atomic.Pointer[node]
}

// followed is a pattern under one of the beginnings that it has, or had.
type followed struct {
	pattern *glob.Pattern
	root    string
}

// NewPaths compiles globs and follows the links in them, by canonical: guardfs.Canonical. The error joins one *RuleError for each that
// can't be used.
func NewPaths(globs []string, canonical func(string) string) (*Paths, error) {
	p := &Paths{canonical: canonical, names: map[followed]bool{}}
	var errs []error
	for _, g := range globs {
		whole := g
		if g != "" && !strings.Contains(g, "/") {
			whole = "**/" + g
		}
		c, err := glob.CompileRule(whole, nil)
		if err != nil {
			errs = append(errs, ruleError(g, err))
			continue
		}
		p.patterns = append(p.patterns, c.Patterns()...)
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	p.tree.Store(&node{})
	p.Follow()
	return p, nil
}

// Follow looks where the links lead by now. Where they led before is covered still: what was written there is what it was.
func (p *Paths) Follow() {
	p.mu.Lock()
	defer p.mu.Unlock()
	known := len(p.names)
	for _, g := range p.patterns {
		root := "/" + strings.Join(g.Literal(), "/")
		p.names[followed{g, root}] = true
		if root == "/" {
			continue
		}
		p.names[followed{g, path.Clean(p.canonical(root))}] = true
		// The last name may be a link by now, and have been a file: its directory is followed by itself.
		if dir, name := path.Split(root); dir != "/" {
			p.names[followed{g, path.Join(p.canonical(path.Clean(dir)), name)}] = true
		}
	}
	if len(p.names) == known {
		return
	}
	tree := &node{}
	for n := range p.names {
		tree.hang(segments(n.root), rule{denied, n.pattern})
	}
	p.tree.Store(tree)
}

// Covers reports whether path, a true name, is named or below what is, as far as links were followed.
func (p *Paths) Covers(path string) bool {
	return strings.HasPrefix(path, "/") && p.tree.Load().refuses(path) != none
}
