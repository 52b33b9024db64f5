package policy

import "moltisfs/internal/guardfs"

// A directory that is not allowed may lie above something that is: /ws is above what
// allow_paths = ["/ws/src/**"] allows. It can be walked then, and shows only what is allowed. Its
// name and existence are told only where a rule names it. A wildcard passes through any name, so it
// tells none.

// leadsToAllowed reports whether o is a directory above something that is allowed, as far as a
// needs to know.
func (p *Policy) leadsToAllowed(o *guardfs.Object, a guardfs.Access) bool {
	if o.Info.Kind != guardfs.KindDir || a > guardfs.Read {
		return false
	}
	if n := p.allow.find(o.True); n != nil && n.coversBelow() {
		return true
	}
	if a != guardfs.Walk {
		return false
	}
	cursors, _, _ := p.allow.cursorsAt(o.True, nil)
	return len(cursors) > 0
}

// coversBelow reports whether a rule may cover something below n.
func (n *node) coversBelow() bool {
	for i := range n.rules {
		if p := n.rules[i].pattern; p.Live(p.Start()) {
			return true
		}
	}
	return len(n.below) > 0
}
