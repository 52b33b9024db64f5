package edit

import (
	"hash/maphash"

	"moltisfs/internal/edit/mend"
)

// In minified code a line is the whole file. What is shown or sent of such a line is a window around
// the place, not its beginning.

const (
	longLine   = 2048 // bytes; of a longer region only a window is shown
	windowEdge = 80   // bytes shown on either side of the place
)

// window shows text[from:to], whole lines, of which start to end is the place.
func window(text []byte, from, to, start, end int) string {
	if to-from <= longLine || end-start > longLine/2 {
		return clip(string(text[from:to]), longLine)
	}
	a, b := mend.Whole(text, max(from, start-windowEdge), min(to, end+windowEdge))
	s := clip(string(text[max(a, from):min(b, to)]), longLine)
	if a > from {
		s = "…" + s
	}
	if b < to {
		s += "…"
	}
	return s
}

// uniqueWithin gives text[start:end] with as much around it on its lines, in whole words, as is in
// the text once.
func uniqueWithin(text []byte, from, to, start, end int, budget *int) (string, bool) {
	for n := 8; n <= longLine/4 && *budget > 0; n *= 2 {
		a, b := mend.Whole(text, max(from, start-n), min(to, end+n))
		a, b = max(a, from), min(b, to)
		if once(text, text[a:b], a, budget) {
			return string(text[a:b]), true
		}
	}
	return "", false
}

// gram is how many bytes are looked up at once.
const gram = 4

// thick finds the stretch of a long line, as long as old and a quarter more, that shares most with
// old: runs of bytes, each counted once. ok is false where that is less than a quarter of them.
func thick(line, old []byte) (from, to int, ok bool) {
	want := make(map[uint64]bool, len(old))
	var buf []byte
	for at := 0; at < len(old); at++ {
		if k, n := gramKey(old[at:], buf); n > 0 {
			want[k] = true
		}
	}
	size := len(old) + len(old)/4 + gram
	keys := make([]uint64, len(line)) // 0: not of old
	inside := make(map[uint64]int, len(want))
	best, first, last := 0, 0, 0
	for at := range line {
		if k, n := gramKey(line[at:], buf); n > 0 && want[k] {
			keys[at] = k
			inside[k]++
		}
		if out := at - size; out >= 0 && keys[out] != 0 {
			if inside[keys[out]]--; inside[keys[out]] == 0 {
				delete(inside, keys[out])
			}
		}
		if len(inside) > best {
			best, first, last = len(inside), max(0, at-size+1), at
		}
	}
	if len(want) == 0 || 4*best < len(want) {
		return 0, 0, false
	}
	for keys[first] == 0 {
		first++
	}
	from, to = mend.Whole(line, first, min(len(line), last+gram))
	return from, to, true
}

// gramKey is a key of the first bytes that are no blanks; n is 0 where there are too few.
func gramKey(b, buf []byte) (key uint64, n int) {
	buf = buf[:0]
	for n = 0; n < len(b) && len(buf) < gram; n++ {
		if c := b[n]; !isBlankByte(c) && c != '\n' {
			buf = append(buf, c)
		} else if len(buf) == 0 {
			return 0, 0
		}
	}
	if len(buf) < gram {
		return 0, 0
	}
	return maphash.Bytes(lineSeed, buf) | 1, n
}
