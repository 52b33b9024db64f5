package policy

import (
	"errors"
	"strings"

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

// refuses gives the strongest rank of the rules that cover path or a directory above it.
func (n *node) refuses(path string) rank {
	worst := none
	rest := path[1:]
	for {
		for i := range n.rules {
			if r := &n.rules[i]; r.rank > worst && r.covers(rest, true) {
				worst = r.rank
			}
		}
		if rest == "" || len(n.below) == 0 {
			return worst
		}
		var name string
		name, rest, _ = strings.Cut(rest, "/")
		if n = n.below[name]; n == nil {
			return worst
		}
	}
}

// allows reports whether an allow rule covers path itself.
func (n *node) allows(path string) bool {
	rest := path[1:]
	for {
		for i := range n.rules {
			if n.rules[i].covers(rest, false) {
				return true
			}
		}
		if rest == "" || len(n.below) == 0 {
			return false
		}
		var name string
		name, rest, _ = strings.Cut(rest, "/")
		if n = n.below[name]; n == nil {
			return false
		}
	}
}

// find gives the node of path, or nil when no rule begins at or below path.
func (n *node) find(path string) *node {
	for rest := path[1:]; rest != "" && n != nil; {
		var name string
		name, rest, _ = strings.Cut(rest, "/")
		n = n.below[name]
	}
	return n
}

// cursor is a rule halfway through a path.
type cursor struct {
	pattern *glob.Pattern
	state   glob.State
}

// cursorsAt collects what can still cover something below the directory path: rules halfway, and
// the nodes below. rest reports whether one rule covers everything below path. Rules that cover
// path itself are not meant.
func (n *node) cursorsAt(
	path string, into []cursor,
) (cursors []cursor, below map[string]*node, rest bool) {
	tail := path[1:]
	for {
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
				into = append(into, cursor{p, s})
				rest = rest || p.Rest(s)
			}
		}
		if tail == "" {
			return into, n.below, rest
		}
		var name string
		name, tail, _ = strings.Cut(tail, "/")
		if n = n.below[name]; n == nil {
			return into, nil, rest
		}
	}
}

// segments splits an absolute clean path.
func segments(path string) []string {
	if path == "/" {
		return nil
	}
	return strings.Split(path[1:], "/")
}
