package syntax

import (
	"slices"
	"unicode/utf8"
)

// Flatten lifts groups and inner concatenations into the outer one, so that its items are as small
// as can be: a prefilter may begin at any item.
func Flatten(n *Node) *Node {
	for n.Op == OpGroup {
		n = n.Subs[0]
	}
	if n.Op != OpConcat {
		return n
	}
	var subs []*Node
	for _, s := range n.Subs {
		if s = Flatten(s); s.Op == OpConcat {
			subs = append(subs, s.Subs...)
		} else {
			subs = append(subs, s)
		}
	}
	return Concat(subs)
}

// Prune gives n without the parts that match nothing but the empty string, as a{0} and (((){1000}){1000}){1000}.
func Prune(n *Node) *Node {
	if len(n.Subs) == 0 {
		return n
	}
	c := *n
	c.Subs = slices.Clone(n.Subs)
	for i := range c.Subs {
		c.Subs[i] = Prune(c.Subs[i])
	}
	if c.emitsNothing() {
		return &Node{Op: OpEmpty}
	}
	return &c
}

// emitsNothing says that n adds nothing to a program. "(((){1000}){1000}){1000}" would only take
// time.
func (n *Node) emitsNothing() bool {
	switch n.Op {
	case OpRepeat:
		return n.Max == 0 || n.Subs[0].Op == OpEmpty
	case OpGroup, OpConcat:
		return !slices.ContainsFunc(n.Subs, func(s *Node) bool { return s.Op != OpEmpty })
	}
	return false
}

// HasBytes says whether n matches raw bytes.
func (n *Node) HasBytes() bool {
	return n.Op == OpBytes || slices.ContainsFunc(n.Subs, (*Node).HasBytes)
}

// NamesNonASCII says whether a pattern names characters outside ASCII. It takes every \x, \u and \p
// for a character outside ASCII. A mistake costs a look at the encoding, no more.
func NamesNonASCII(pattern string, literal bool) bool {
	for i := 0; i < len(pattern); i++ {
		if pattern[i] >= utf8.RuneSelf {
			return true
		}
		if pattern[i] == '\\' && i+1 < len(pattern) && !literal {
			i++
			switch pattern[i] {
			case 'x', 'u', 'U', 'p', 'P':
				return true
			}
		}
	}
	return false
}
