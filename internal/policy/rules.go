package policy

import (
	"errors"
	"iter"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"moltisfs/internal/glob"
)

// RuleError is a rule that cannot be used.
type RuleError struct {
	Rule   string // as written
	Offset int    // byte in Rule that Why is about
	Why    string
}

func (e *RuleError) Error() string {
	return (&glob.SyntaxError{Pattern: e.Rule, Offset: e.Offset, Why: e.Why}).Error()
}

func ruleError(pattern string, err error) error {
	var bad *glob.SyntaxError
	if errors.As(err, &bad) {
		return &RuleError{Rule: pattern, Offset: bad.Offset, Why: bad.Why}
	}
	return err
}

// rank orders the reasons to refuse a path. The strongest is told.
type rank uint8

const (
	none rank = iota
	denied
	secret
	protected
)

// rule is one pattern without braces. Without a pattern it covers everything at and below its node.
type rule struct {
	rank    rank
	pattern *glob.Pattern
}

// node is one segment of the literal beginnings of all rules: they form a tree. A path is compared
// with the rules on the nodes that it passes, so rules about other directories cost nothing.
type node struct {
	below          map[string]*node
	rules          []rule
	holdsProtected bool // something protected is here or below
}

// insert adds a rule whose literal beginning is segments.
func (n *node) insert(segments []string, r rule) {
	for _, name := range segments {
		if r.rank == protected {
			n.holdsProtected = true
		}
		c := n.below[name]
		if c == nil {
			c = &node{}
			if n.below == nil {
				n.below = map[string]*node{}
			}
			n.below[name] = c
		}
		n = c
	}
	if r.rank == protected {
		n.holdsProtected = true
	}
	n.rules = append(n.rules, r)
}

// insertGlob adds the patterns of a glob, as their literal beginnings are spelled and with links followed once. It gives the real beginnings.
func (n *node) insertGlob(g *glob.Glob, r rank, canonical func(string) string) (real []string) {
	for _, p := range g.Patterns() {
		spelled := "/" + strings.Join(p.Literal(), "/")
		n.insert(p.Literal(), rule{r, p})
		to := path.Clean(canonical(spelled))
		if to != spelled {
			n.insert(segments(to), rule{r, p})
		}
		real = append(real, to)
	}
	return real
}

// coversRoot reports whether r covers the very node that it stands on.
func (r *rule) coversRoot() bool { return r.pattern == nil || r.pattern.Done(r.pattern.Start()) }

// covers reports whether r covers rest, a path below its node. With ancestors, covering a directory
// on the way to rest is enough.
func (r *rule) covers(rest string, ancestors bool) bool {
	if r.pattern == nil {
		return true
	}
	s := r.pattern.Start()
	for {
		if r.pattern.Done(s) && (ancestors || rest == "") {
			return true
		}
		if rest == "" || s == 0 {
			return false
		}
		var name string
		name, rest, _ = strings.Cut(rest, "/")
		s = r.pattern.Step(s, name)
	}
}

// along yields the nodes that path passes, the first one is n, each with the rest of the path below it. For /a/b that are n with "a/b", n's node a with
// "b", and the node b below that with "".
func (n *node) along(path string) iter.Seq2[*node, string] {
	return func(yield func(*node, string) bool) {
		for rest := path[1:]; n != nil && yield(n, rest) && rest != ""; {
			var name string
			name, rest, _ = strings.Cut(rest, "/")
			n = n.below[name]
		}
	}
}

// refuses gives the strongest rank of the rules that cover path or a directory above it.
func (n *node) refuses(path string) rank {
	worst := none
	for n, rest := range n.along(path) {
		for i := range n.rules {
			if r := &n.rules[i]; r.rank > worst && r.covers(rest, true) {
				worst = r.rank
			}
		}
	}
	return worst
}

// allows reports whether an allow rule covers path itself.
func (n *node) allows(path string) bool {
	for n, rest := range n.along(path) {
		for i := range n.rules {
			if n.rules[i].covers(rest, false) {
				return true
			}
		}
	}
	return false
}

// find gives the node of path, or nil when no rule begins at or below path.
func (n *node) find(path string) *node {
	for n, rest := range n.along(path) {
		if rest == "" {
			return n
		}
	}
	return nil
}

// cursor is a rule halfway through a path.
type cursor struct {
	pattern *glob.Pattern
	state   glob.State
}

// cursorsAt collects the rules that can still cover something below the directory path: those halfway, as cursors, and
// those that begin below it, as nodes. rest reports whether one rule covers everything below path. Rules that cover
// path itself are not meant.
func (n *node) cursorsAt(path string) (cursors []cursor, below map[string]*node, rest bool) {
	for n, tail := range n.along(path) {
		for i := range n.rules {
			p := n.rules[i].pattern
			if p == nil {
				continue
			}
			s, t := p.Start(), tail
			for t != "" && s != 0 {
				var name string
				name, t, _ = strings.Cut(t, "/")
				s = p.Step(s, name)
			}
			if p.Live(s) {
				cursors = append(cursors, cursor{p, s})
				rest = rest || p.Rest(s)
			}
		}
		if tail == "" {
			below = n.below
		}
	}
	return cursors, below, rest
}

// segments splits an absolute clean path.
func segments(path string) []string {
	if path == "/" {
		return nil
	}
	return strings.Split(path[1:], "/")
}

// denials are the denied and protected paths, under all names that are known to lead there. It never
// changes: one judgement takes one denials from beginning to end.
type denials struct {
	deny        node // by the names in the rules
	folded      node // the same rules, folded
	shortNames  []shortName
	censusRoots []string // where a census must look
	full        bool     // links led to too many places: everything is denied
}

// denyRule is a deny rule or a protected path, with all names of its literal beginning: as it is
// spelled, and where links have led from there.
type denyRule struct {
	roots         []string
	exact, folded *glob.Pattern // nil: protected
}

// ruleTracker keeps the denials up to date with the links that rules go through. Where a link once
// led stays denied. Otherwise a link could be turned away and back, and open what is denied in
// between.
type ruleTracker struct {
	sources    []*denyRule
	otherRoots []string // more places where a census must look
	canonical  func(string) string
	now        func() time.Time
	started    time.Time
	mu         sync.Mutex
	followed   int          // names added after the start
	nextCheck  atomic.Int64 // when to look again, after begun
	denials    atomic.Pointer[denials]
}

const (
	// linkCheckInterval is how long a look at the links is good for: a new link is noticed that
	// late at most. Slow looks are made less often, so that they take a fiftieth of the time at
	// most.
	linkCheckInterval = 10 * time.Millisecond
	// maxFollowed bounds the memory: an agent may turn links again and again.
	maxFollowed = 1000
)

// current gives the denials of this moment.
func (f *ruleTracker) current() *denials {
	if int64(f.now().Sub(f.started)) < f.nextCheck.Load() {
		return f.denials.Load()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.now().Sub(f.started)
	d := f.denials.Load()
	if int64(now) < f.nextCheck.Load() {
		return d
	}
	changed := d == nil
	for _, s := range f.sources {
		if spelled := s.roots[0]; spelled != "/" && f.followed <= maxFollowed {
			for _, name := range leadsTo(spelled, f.canonical) {
				changed = s.add(name, &f.followed) || changed
			}
		}
	}
	if d == nil {
		f.followed = 0
	}
	if changed {
		d = f.build()
		f.denials.Store(d)
	}
	end := f.now().Sub(f.started)
	f.nextCheck.Store(int64(end + max(linkCheckInterval, 50*(end-now))))
	return d
}

// leadsTo gives the real names of a path with links in it: with all followed, and with all but its last name, which may be a link and have
// been a file before. For example, where /a leads to /b and /b/c to /d, /a/c is /d and /b/c.
func leadsTo(spelled string, canonical func(string) string) []string {
	real := path.Clean(canonical(spelled))
	dir, name := path.Split(spelled)
	if real == spelled || dir == "/" {
		return []string{real}
	}
	return []string{real, path.Join(canonical(path.Clean(dir)), name)}
}

func (s *denyRule) add(name string, count *int) bool {
	if slices.Contains(s.roots, name) {
		return false
	}
	s.roots = append(s.roots, name)
	*count++
	return true
}

func (f *ruleTracker) build() *denials {
	d := &denials{full: f.followed > maxFollowed}
	roots := slices.Clone(f.otherRoots)
	for _, s := range f.sources {
		for i, name := range s.roots {
			exact, folded := rule{rank: protected}, segments(foldPath(name))
			if s.exact != nil {
				exact = rule{denied, s.exact}
				if i == 0 {
					folded = s.folded.Literal()
				}
			}
			d.deny.insert(segments(name), exact)
			d.folded.insert(folded, rule{exact.rank, s.folded})
			if name != "/" {
				roots = append(roots, name)
			}
			if s.exact == nil {
				d.addShortNames(folded)
			}
		}
		if s.exact != nil {
			d.addShortNames(s.folded.Names())
		}
	}
	d.censusRoots = outermost(roots)
	return d
}

func (d *denials) addShortNames(names []string) {
	for _, name := range names {
		s, ok := newShortName(name)
		for i := range d.shortNames {
			ok = ok && d.shortNames[i].long != s.long
		}
		if ok {
			d.shortNames = append(d.shortNames, s)
		}
	}
}

// refusesAny tries all names of one thing.
func (d *denials) refusesAny(name string, also []string) rank {
	worst := d.refuses(name)
	for _, other := range also {
		worst = max(worst, d.refuses(other))
	}
	return worst
}

// holdsProtected says whether removing a thing would remove something protected with it.
func (d *denials) holdsProtected(name string) bool {
	if !d.folded.holdsProtected {
		return false
	}
	n := d.folded.find(foldPath(name))
	return n != nil && n.holdsProtected
}

// mayCoverBelow reports whether a deny rule may cover something below a directory. It may say yes
// too often.
func (d *denials) mayCoverBelow(dir string) bool {
	if ambiguous(dir) {
		return true
	}
	cursors, below, _ := d.folded.cursorsAt(foldPath(dir))
	if len(cursors) > 0 || len(below) > 0 {
		return true
	}
	cursors, below, _ = d.deny.cursorsAt(dir)
	return len(cursors) > 0 || len(below) > 0
}
