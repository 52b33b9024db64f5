package policy

import (
	"errors"
	"strings"
	"sync"
	"sync/atomic"

	"moltisfs/internal/glob"
)

// Paths are the files that a list of globs names. It is for lists that are not about access: files
// that are never stored, or are to be purged.
//
// They are read like a deny list. A pattern covers everything below the paths that it names. Its literal
// beginning holds as it is spelled and with links followed, and it holds by its own letters. Two things differ,
// because other files would be lost for good: a wildcard stands for real names only, and letter case counts.
// And a pattern without a slash holds at any depth.
//
// Safe for concurrent use.
type Paths struct {
	canonical func(string) string
	patterns  []*glob.Pattern

	mu    sync.Mutex // held by Follow
	names map[followed]bool
	tree  atomic.Pointer[node]
}

// followed is a pattern under one of the beginnings that it has, or had.
type followed struct {
	pattern *glob.Pattern
	root    string
}

// NewPaths compiles globs and follows the links in them with canonical: guardfs.Canonical. The
// error joins one *RuleError for each bad glob.
func NewPaths(globs []string, canonical func(string) string) (*Paths, error) {
	p := &Paths{canonical: canonical, names: map[followed]bool{}}
	var errs []error
	for _, g := range globs {
		whole := g
		if g != "" && !strings.Contains(g, "/") {
			whole = "**/" + g
		}
		c, err := glob.CompileClosing(whole, nil)
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

// Follow looks where the links lead now. Where they led before stays covered: the files written
// there are still there.
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
		for _, name := range leadsTo(root, p.canonical) {
			p.names[followed{g, name}] = true
		}
	}
	if len(p.names) == known {
		return
	}
	tree := &node{}
	for n := range p.names {
		tree.insert(segments(n.root), rule{denied, n.pattern})
	}
	p.tree.Store(tree)
}

// Covers reports whether a pattern names path, a real name, or something above it, as far as links
// have been followed.
func (p *Paths) Covers(path string) bool {
	return strings.HasPrefix(path, "/") && p.tree.Load().refuses(path) != none
}
