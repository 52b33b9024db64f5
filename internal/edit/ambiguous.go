package edit

import (
	"slices"
	"strings"

	"moltisfs/internal/edit/mend"
)

// How the lines that New adds are indented where the rest of the edit was moved by a rule.
type column int

const (
	asTold column = iota // by the rule, unless that is in doubt
	moved                // by the rule
	stays                // as they are sent
)

// ambiguous gives the two edits that may be meant where the place is certain and what should become
// of New is not: what New adds was damaged as Old was, or it stands for itself. Both are tried. It is
// nil where there are not two, or they come to the same.
func (of *mender) ambiguous(h *haystack) []Edit {
	e := of.sent
	m := &mender{h: h, sent: e}
	both := func(a, b *plan) []Edit {
		m.found = nil
		for _, p := range []*plan{a, b} {
			if p == nil || len(p.rs) != 1 {
				return nil
			}
			m.add(p.rs[0].start, p.rs[0].end, p.rs[0].with)
		}
		return m.offers()
	}
	all := append(repairs(e), folded(repair{old: e.Old, new: e.New})...)
	slices.Reverse(all) // what undoes most first
	for _, r := range all {
		if r.unsure == "" || r.other == r.new || strings.TrimSpace(r.old) == "" {
			continue
		}
		a, _ := r.place(h, false)
		if a != nil && len(a.rs) == 1 && shallow(h, Edit{Old: r.old, New: r.new}, a.rs[0].start) {
			a, _ = r.deepened(h, a.rs[0].start).place(h, false)
		}
		r.new = r.other
		b, _ := r.place(h, false)
		if out := both(a, b); out != nil {
			return out
		}
	}
	for _, r := range m.readings() {
		if a, b := r.ended(h); a != nil {
			return both(a, b)
		}
	}
	along, still := *h, *h
	along.added, still.added = moved, stays
	a, _ := find(&along, e, false)
	b, _ := find(&still, e, false)
	if out := both(a, b); out != nil {
		return out
	}
	if !of.nothing() {
		return nil
	}
	of.alike(mend.First)
	of.alike(mend.Second)
	return of.offers()
}

// offers makes the edits that are sent of what was found, if it is two things and both can be sent.
func (m *mender) offers() (out []Edit) {
	if len(m.found) != 2 {
		return nil
	}
	for _, o := range m.found {
		sent := smaller(m.h, m.offer(o))
		if sent == nil {
			return nil
		}
		out = append(out, *sent)
	}
	return out
}
