package mend

// A Like is the stretch of a text that is most like a pattern.
type Like struct {
	Start, End int
	Distance   int // letters put in, dropped and exchanged
	Second     int // that of the next best stretch elsewhere; the pattern's length if there is none
}

// Budget bounds the work of the searches for one edit: bytes of text times 64 letters of the pattern.
const Budget = 12 << 20

// Approx finds the stretch of text that is most like pattern, by edit distance, in one pass of bit
// vectors (Myers, in blocks as Hyyrö has it). ok is false where that would cost more than the
// budget, of which it takes its part, or where more than a third of the pattern is not there.
func Approx(text, pattern []byte, budget *int) (l Like, ok bool) {
	m := len(pattern)
	blocks := (m + 63) / 64
	if m == 0 || len(text) == 0 || m > 1<<14 || blocks*len(text) > *budget {
		return l, false
	}
	*budget -= blocks * len(text)
	scores := distances(text, pattern, blocks)
	best := 0
	for j, s := range scores {
		if int(s) < int(scores[best]) {
			best = j
		}
	}
	l.Distance = int(scores[best])
	if 3*l.Distance > m || l.Distance*m > 1<<22 {
		return l, false
	}
	l.End = best + 1
	l.Start = begin(text[:l.End], pattern, l.Distance)
	l.Second = m
	for j, s := range scores {
		if away := j + 1 - l.End; away > m/2 || -away > m/2 {
			l.Second = min(l.Second, int(s))
		}
	}
	return l, true
}

// distances gives for each byte of text how far the pattern is from the best stretch that ends
// there.
func distances(text, pattern []byte, blocks int) []uint16 {
	m := len(pattern)
	same := make([]uint64, 256*blocks)
	for i, c := range pattern {
		same[int(c)*blocks+i/64] |= 1 << (i % 64)
	}
	up, down := make([]uint64, blocks), make([]uint64, blocks)
	for b := range up {
		up[b] = ^uint64(0)
	}
	out := make([]uint16, len(text))
	score := m
	for j, c := range text {
		in := 0
		for b := range blocks {
			top := uint64(1) << 63
			if b == blocks-1 {
				top = 1 << ((m - 1) % 64)
			}
			eq, pv, mv := same[int(c)*blocks+b], up[b], down[b]
			xv := eq | mv
			if in < 0 {
				eq |= 1
			}
			xh := ((eq & pv) + pv) ^ pv | eq
			ph, mh := mv|^(xh|pv), pv&xh
			next := 0
			if ph&top != 0 {
				next = 1
			} else if mh&top != 0 {
				next = -1
			}
			ph, mh = ph<<1, mh<<1
			if in < 0 {
				mh |= 1
			} else if in > 0 {
				ph |= 1
			}
			up[b], down[b] = mh|^(xv|ph), ph&xv
			in = next
		}
		score += in
		out[j] = uint16(score)
	}
	return out
}

// begin is where the stretch begins that ends with text and is so far from the pattern: of several
// the one whose length is nearest to that of the pattern. Nothing further from the diagonal than the
// distance is looked at.
func begin(text, pattern []byte, distance int) int {
	m := len(pattern)
	n := min(len(text), m+distance)
	row := make([]int, m+1)
	for i := range row {
		row[i] = i
	}
	best, at := 1<<30, 0
	for j := 1; j <= n; j++ {
		from, to := max(1, j-distance), min(m, j+distance)
		diagonal := row[from-1]
		if row[from-1] = j; from > 1 {
			row[from-1] = distance + 1
		}
		if to == j+distance {
			row[to] = distance + 1
		}
		for i := from; i <= to; i++ {
			c := diagonal
			if pattern[m-i] != text[len(text)-j] {
				c++
			}
			c = min(c, row[i]+1, row[i-1]+1)
			diagonal, row[i] = row[i], c
		}
		if off := max(j-m, m-j); to == m && row[m] == distance && off < best {
			best, at = off, j
		}
	}
	return len(text) - at
}

// Sure says that the stretch is meant: few letters differ, and nothing else is nearly as like.
func (l Like) Sure(length int) bool {
	return 4*l.Distance <= length && l.Second > 2*l.Distance && l.Second-l.Distance >= 2
}
