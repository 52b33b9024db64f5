package match

import (
	"bytes"
	"math"
	"math/bits"
	"slices"
	"unsafe"
)

const block = 64 // bytes that maskScan takes at once

// blockHits is a block in which something was found: bit i of hits stands for its byte i.
type blockHits struct {
	at   int
	hits uint64
}

// masks are the tables of maskScan: three places, eight buckets.
type masks [96]byte

// add lets bucket accept b in place.
func (m *masks) add(place, bucket int, b byte) {
	m[place*32+int(b&15)] |= 1 << bucket
	m[place*32+16+int(b>>4)] |= 1 << bucket
}

// has says in which buckets all three bytes are.
func (m *masks) has(a, b, c byte) byte {
	return m[a&15] & m[16+a>>4] & m[32+b&15] & m[48+b>>4] & m[64+c&15] & m[80+c>>4]
}

// setFinder finds any literal of a set by three neighbouring bytes of each, two where a literal has no more.
type setFinder struct {
	m     masks
	in    [8][]placed
	level level
	// aligned: the candidates come in the order of where they begin.
	aligned bool
}

// placed is a literal and where in it the window stands.
type placed struct {
	literal
	window int
}

// newSetFinder wants literals of at least two bytes. With aligned set the window is at the same place in all of them, and the
// candidates come in the order of where they begin.
func newSetFinder(set []literal, v level, aligned bool) *setFinder {
	f := &setFinder{level: v, aligned: aligned}
	together := literals{set: set}
	best, at := math.Inf(1), 0
	for w := 0; aligned && w+3 <= together.shortest(); w++ {
		c := 0.0
		for _, l := range set {
			c += l.part(w, w+3).frequency()
		}
		if c < best {
			best, at = c, w
		}
	}
	var all []placed
	for _, l := range set {
		best := 2.0
		if !aligned {
			at = 0
		}
		for w := 0; !aligned && w+3 <= len(l.bytes); w++ {
			if c := l.part(w, w+3).frequency(); c < best {
				best, at = c, w
			}
		}
		all = append(all, placed{l, at})
	}
	// Literals with like windows share a bucket, so that a bucket accepts little that none of them has.
	slices.SortFunc(all, func(a, b placed) int { return bytes.Compare(a.bytes[a.window:], b.bytes[b.window:]) })
	for i, l := range all {
		bucket := i * 8 / max(8, len(all))
		f.in[bucket] = append(f.in[bucket], l)
		for place := range 3 {
			if l.window+place >= len(l.bytes) { // a literal of two bytes
				for b := range 256 {
					f.m.add(place, bucket, byte(b))
				}
				continue
			}
			b, m := l.bytes[l.window+place], l.mask[l.window+place]
			f.m.add(place, bucket, b)
			if m != 0 {
				f.m.add(place, bucket, b&^m)
			}
		}
	}
	return f
}

// verify gives where a literal of one of the buckets begins whose window is at w, or -1; the leftmost, if there are several.
func (f *setFinder) verify(text []byte, from, w int, buckets byte, m *meter) int {
	best := -1
	for ; buckets != 0; buckets &= buckets - 1 {
		m.spend(len(f.in[bits.TrailingZeros8(buckets)]))
		for i := range f.in[bits.TrailingZeros8(buckets)] {
			l := &f.in[bits.TrailingZeros8(buckets)][i]
			if at := w - l.window; at >= from && l.at(text[at:]) && (best < 0 || at < best) {
				best = at
			}
		}
	}
	return best
}

// cursor remembers what maskScan found ahead, for a finder that is asked for one place after the other of the same text. Its zero
// value remembers nothing.
type cursor struct {
	list [16]blockHits
	i, n int // list[i:n] is to be looked at
	base int // what the places in list count from
	at   int // how far the text was scanned; 0: not at all
	room int // blocks to ask for next: few at first, for there may be no second question
}

func (f *setFinder) next(text []byte, from int, m *meter) int {
	var c cursor
	return f.nextIn(text, from, &c, m)
}

func (f *setFinder) nextIn(text []byte, from int, c *cursor, m *meter) int {
	c.at = max(c.at, from)
	for f.level.masks() {
		for ; c.i < c.n; c.i++ {
			b := c.list[c.i]
			b.at += c.base
			if passed := from - b.at; passed >= block {
				continue
			} else if passed > 0 {
				b.hits = b.hits >> passed << passed
			}
			for ; b.hits != 0; b.hits &= b.hits - 1 {
				w := b.at + bits.TrailingZeros64(b.hits)
				if r := f.verify(text, from, w, f.m.has(text[w], text[w+1], text[w+2]), m); r >= 0 || m.over {
					return r
				}
			}
		}
		left := len(text) - 2 - c.at
		if left < block {
			break
		}
		c.room = min(2*c.room+1, len(c.list))
		var far int
		c.n, far = f.level.maskScan(unsafe.Pointer(&text[c.at]), left, 1, 2, (*[96]byte)(&f.m), &c.list[0], c.room)
		c.i, c.base = 0, c.at
		c.at += min(far, left)
	}
	for at := max(c.at, from); at+1 < len(text); at++ {
		var third byte
		if at+2 < len(text) {
			third = text[at+2]
		}
		if buckets := f.m.has(text[at], text[at+1], third); buckets != 0 {
			if r := f.verify(text, from, at, buckets, m); r >= 0 || m.over {
				return r
			}
		}
	}
	return -1
}
