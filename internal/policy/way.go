package policy

import "moltisfs/internal/guardfs"

// A directory that is not allowed may lie on the way to something that is. It can be walked through then, and shows only what is
// allowed. Which name it has, and that it is there, is told of those only that a rule passes by name: what a wildcard passes
// through could be anything.

// passes reports whether o is a directory on the way to something that is allowed, as far as a needs to know.
func (p *Policy) passes(o *guardfs.Object, a guardfs.Access) bool {
	if o.Info.Kind != guardfs.KindDir || a > guardfs.Read {
		return false
	}
	if n := p.allow.at(o.True); n != nil && n.leads() {
		return true
	}
	if a != guardfs.Walk {
		return false
	}
	cursors, _, _ := p.allow.here(o.True, nil)
	return len(cursors) > 0
}

// leads reports whether a rule may cover something below n.
func (n *node) leads() bool {
	for i := range n.rules {
		if p := n.rules[i].pattern; p.Live(p.Start()) {
			return true
		}
	}
	return len(n.below) > 0
}
