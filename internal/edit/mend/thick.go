package mend

import (
	"hash/maphash"
	"strings"
)

var gramSeed = maphash.MakeSeed()

// gram is how many bytes are looked up at once.
const gram = 4

// Thick finds the stretch of a long line, as long as old and a quarter more, that shares most with
// old: runs of bytes, each counted once. ok is false where that is less than a quarter of them.
func Thick(line, old []byte) (from, to int, ok bool) {
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
	from, to = Whole(line, first, min(len(line), last+gram))
	return from, to, true
}

// gramKey is a key of the first bytes that are no blanks; n is 0 where there are too few.
func gramKey(b, buf []byte) (key uint64, n int) {
	buf = buf[:0]
	for n = 0; n < len(b) && len(buf) < gram; n++ {
		if c := b[n]; strings.IndexByte(" \t\r\n\f\v", c) < 0 {
			buf = append(buf, c)
		} else if len(buf) == 0 {
			return 0, 0
		}
	}
	if len(buf) < gram {
		return 0, 0
	}
	return maphash.Bytes(gramSeed, buf) | 1, n
}
