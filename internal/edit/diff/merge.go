package diff

import "bytes"

// Conflict is a stretch that both sides changed differently.
type Conflict struct {
	Line               int // where it starts in merged, 1-based
	Base, Ours, Theirs string
}

// Merge combines two changes of the same base, line by line (diff3). Where both sides changed the
// same lines, or lines that touch, in different ways, merged holds ours and conflicts
// has all three; without conflicts merged is complete. The three are texts in the same charset with
// ASCII line breaks, so UTF-16 has to be decoded first.
func Merge(base, ours, theirs []byte) (merged []byte, conflicts []Conflict) {
	lines := 0
	for _, s := range stretches(Lines(base), Lines(ours), Lines(theirs), true) {
		if s.clash {
			conflicts = append(conflicts, Conflict{lines + 1, joined(s.base), joined(s.ours), joined(s.theirs)})
		}
		put := s.put()
		merged = append(merged, joined(put)...)
		lines += len(put)
	}
	return merged, conflicts
}

// MergeWords combines two changes as Merge does, and those that conflict word by word: there they may
// touch. words divides a text. ok is false where both sides changed the same words, or put something in at
// the same place.
func MergeWords(base, ours, theirs []byte, words func([]byte) [][]byte) (merged []byte, ok bool) {
	for _, s := range stretches(Lines(base), Lines(ours), Lines(theirs), true) {
		if !s.clash {
			merged = append(merged, joined(s.put())...)
			continue
		}
		split := func(parts [][]byte) [][]byte { return words(bytes.Join(parts, nil)) }
		for _, w := range stretches(split(s.base), split(s.ours), split(s.theirs), false) {
			if w.clash && !w.replaced {
				return nil, false
			}
			w.mine = w.mine && !w.clash
			merged = append(merged, joined(w.put())...)
		}
	}
	return merged, true
}

// A stretch is some parts of a base, and what either side made of them.
type stretch struct {
	base, ours, theirs [][]byte
	mine               bool // ours changed it
	clash              bool // both did, differently
	replaced           bool // theirs put something in the place of all of it
}

// put gives the parts that a merge puts in.
func (s *stretch) put() [][]byte {
	if s.mine {
		return s.ours
	}
	return s.theirs
}

func joined(parts [][]byte) string { return string(bytes.Join(parts, nil)) }

// stretches divides o at the changes that lead to a and to b. Changes that overlap are one stretch, and so are
// those that put something in at one place, and if touch is set those that touch.
func stretches(o, a, b [][]byte, touch bool) (out []stretch) {
	ca, cb := Changes(o, a), Changes(o, b)
	pos, posA, posB := 0, 0, 0 // next part of each
	cut := func(to, endA, endB int, mine, clash bool) {
		s := stretch{base: o[pos:to], ours: a[posA:endA], theirs: b[posB:endB], mine: mine}
		s.clash = clash && joined(s.ours) != joined(s.theirs)
		out = append(out, s)
		pos, posA, posB = to, endA, endB
	}
	for len(ca) > 0 || len(cb) > 0 {
		// Take the first change and whatever meets it, from either side.
		first := cb
		if len(cb) == 0 || len(ca) > 0 && (ca[0].A0 < cb[0].A0 || ca[0].A0 == cb[0].A0 && ca[0].A1 <= cb[0].A1) {
			first = ca
		}
		from, to := first[0].A0, first[0].A1
		meets := func(cs []Change, n int) bool {
			return n < len(cs) && (cs[n].A0 < to || cs[n].A0 == to && (touch || cs[n].A1 == from))
		}
		na, nb := 0, 0
		for meets(ca, na) || meets(cb, nb) {
			if meets(ca, na) {
				to, na = max(to, ca[na].A1), na+1
			} else {
				to, nb = max(to, cb[nb].A1), nb+1
			}
		}
		cut(from, posA+from-pos, posB+from-pos, true, false)
		endA, endB := posA+to-from, posB+to-from
		for _, c := range ca[:na] {
			endA += (c.B1 - c.B0) - (c.A1 - c.A0)
		}
		for _, c := range cb[:nb] {
			endB += (c.B1 - c.B0) - (c.A1 - c.A0)
		}
		cut(to, endA, endB, na > 0, na > 0 && nb > 0)
		out[len(out)-1].replaced = nb == 1 && from < to && cb[0].A0 == from && cb[0].A1 == to
		ca, cb = ca[na:], cb[nb:]
	}
	cut(len(o), len(a), len(b), true, false)
	return out
}
