package diff

import "bytes"

// Conflict is a stretch that both sides changed differently.
type Conflict struct {
	Line               int // where it starts in merged, 1-based
	Base, Ours, Theirs string
}

// Merge combines two changes of the same base, line by line (diff3). Where both sides changed the
// same lines, or lines that touch, in different ways, merged holds ours and conflicts says what the
// others have; without conflicts merged is complete. The three are texts in the same charset with
// ASCII line breaks, so UTF-16 has to be decoded first.
func Merge(base, ours, theirs []byte) (merged []byte, conflicts []Conflict) {
	o, a, b := Lines(base), Lines(ours), Lines(theirs)
	ca, cb := Changes(o, a), Changes(o, b)
	var (
		pos, posA, posB int // next line of each that is not in merged yet
		lines           int // in merged
	)
	put := func(ls [][]byte) {
		for _, l := range ls {
			merged = append(merged, l...)
		}
		lines += len(ls)
	}
	for len(ca) > 0 || len(cb) > 0 {
		// Take the first change and whatever touches it, from either side, as one stretch of the base.
		from, to := -1, -1
		var na, nb int
		switch {
		case len(cb) == 0 || len(ca) > 0 && ca[0].A0 <= cb[0].A0:
			from, to = ca[0].A0, ca[0].A1
		default:
			from, to = cb[0].A0, cb[0].A1
		}
		for grown := true; grown; {
			grown = false
			for na < len(ca) && ca[na].A0 <= to {
				to, na, grown = max(to, ca[na].A1), na+1, true
			}
			for nb < len(cb) && cb[nb].A0 <= to {
				to, nb, grown = max(to, cb[nb].A1), nb+1, true
			}
		}
		put(o[pos:from])
		posA, posB = posA+from-pos, posB+from-pos
		endA, endB := posA+to-from, posB+to-from
		for _, c := range ca[:na] {
			endA += (c.B1 - c.B0) - (c.A1 - c.A0)
		}
		for _, c := range cb[:nb] {
			endB += (c.B1 - c.B0) - (c.A1 - c.A0)
		}
		sideA, sideB := a[posA:endA], b[posB:endB]
		switch {
		case na == 0:
			put(sideB)
		case nb == 0:
			put(sideA)
		default:
			if !equalLines(sideA, sideB) {
				join := func(ls [][]byte) string { return string(bytes.Join(ls, nil)) }
				conflicts = append(conflicts, Conflict{lines + 1, join(o[from:to]), join(sideA), join(sideB)})
			}
			put(sideA)
		}
		pos, posA, posB = to, endA, endB
		ca, cb = ca[na:], cb[nb:]
	}
	put(o[pos:])
	return merged, conflicts
}

func equalLines(a, b [][]byte) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !bytes.Equal(a[i], b[i]) {
			return false
		}
	}
	return true
}
