package match

import (
	"bytes"
	"math"
	"math/bits"
	"slices"
	"unsafe"

	"moltisfs/grep/match/literal"
)

const block = 64 // bytes that maskScan takes at once

// blockHits is a block in which something was found: bit i of hits stands for its byte i.
type blockHits struct {
	at   int
	hits uint64
}

// masks are the tables of maskScan: for each of three places, the buckets of every low nibble and
// of every high nibble.
type masks [96]byte

// add lets bucket accept b in place.
func (m *masks) add(place, bucket int, b byte) {
	m[place*32+int(b&15)] |= 1 << bucket
	m[place*32+16+int(b>>4)] |= 1 << bucket
}

// has says which buckets accept all three bytes.
func (m *masks) has(a, b, c byte) byte {
	return m[a&15] & m[16+a>>4] & m[32+b&15] & m[48+b>>4] & m[64+c&15] & m[80+c>>4]
}

// teddy finds any literal of a set. It is Teddy, from Hyperscan and ripgrep: the literals are
// spread over eight buckets, and two table look-ups per byte, one for each nibble, tell for 16 or
// 32 places at once which buckets accept it. Three neighbouring bytes of each literal are looked
// at, or two where it has no more. A nibble pair accepts more bytes than were put in, so verify
// compares.
type teddy struct {
	m       masks
	buckets [8][]placed
	level   level
	aligned bool // candidates come in the order in which they begin
}

// placed is a literal, and where in it the three bytes stand.
type placed struct {
	literal.Literal
	window int
	order  int // in the set
}

// newTeddy wants literals of at least two bytes. With aligned the three bytes stand at the same
// place in all of them, so candidates come in the order in which they begin. Without it each
// literal uses its rarest three.
func newTeddy(set []literal.Literal, v level, aligned bool) *teddy {
	f := &teddy{level: v, aligned: aligned}
	together := literal.Set{Members: set}
	best, at := math.Inf(1), 0
	for w := 0; aligned && w+3 <= together.Shortest(); w++ {
		c := 0.0
		for _, l := range set {
			c += l.Part(w, w+3).Frequency()
		}
		if c < best {
			best, at = c, w
		}
	}
	var all []placed
	for i, l := range set {
		best := 2.0
		if !aligned {
			at = 0
		}
		for w := 0; !aligned && w+3 <= len(l.Bytes); w++ {
			if c := l.Part(w, w+3).Frequency(); c < best {
				best, at = c, w
			}
		}
		all = append(all, placed{l, at, i})
	}
	// Literals with similar windows share a bucket. A bucket of unlike ones would accept mixtures
	// that none of them has.
	slices.SortFunc(all, func(a, b placed) int {
		return bytes.Compare(a.Bytes[a.window:], b.Bytes[b.window:])
	})
	for i, l := range all {
		bucket := i * 8 / max(8, len(all))
		f.buckets[bucket] = append(f.buckets[bucket], l)
		for place := range 3 {
			if l.window+place >= len(l.Bytes) { // a literal of two bytes
				for b := range 256 {
					f.m.add(place, bucket, byte(b))
				}
				continue
			}
			b, m := l.Bytes[l.window+place], l.Mask[l.window+place]
			f.m.add(place, bucket, b)
			if m != 0 {
				f.m.add(place, bucket, b&^m)
			}
		}
	}
	return f
}

// verify gives where a literal of one of the buckets begins whose window is at w, or -1, and its length. When there are several
// it gives the leftmost, and of those the one that the pattern prefers.
func (f *teddy) verify(text []byte, from, w int, buckets byte, m *meter) (best, size int) {
	best, order := -1, 0
	for ; buckets != 0; buckets &= buckets - 1 {
		in := f.buckets[bits.TrailingZeros8(buckets)]
		m.spend(len(in))
		for i := range in {
			l := &in[i]
			if at := w - l.window; at >= from && l.At(text[at:]) && (best < 0 || at < best || at == best && l.order < order) {
				best, size, order = at, len(l.Bytes), l.order
			}
		}
	}
	return best, size
}

// teddyCursor keeps the hits that maskScan found ahead, for a prefilter that is asked for one place
// after the other in the same text. Its zero value holds none.
type teddyCursor struct {
	list  [16]blockHits
	i, n  int // list[i:n] is still to be looked at
	base  int // the places in list count from here
	at    int // how far the text is scanned
	batch int // blocks to ask for next: few at first, since often the first hit is all
	size  int // of the literal that was found last
}

func (f *teddy) next(text []byte, from int, m *meter) int {
	var c teddyCursor
	return f.nextWith(text, from, &c, m)
}

func (f *teddy) nextWith(text []byte, from int, c *teddyCursor, m *meter) int {
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
				buckets := f.m.has(text[w], text[w+1], text[w+2])
				var r int
				if r, c.size = f.verify(text, from, w, buckets, m); r >= 0 || m.stopped {
					return r
				}
			}
		}
		left := len(text) - 2 - c.at
		if left < block {
			break
		}
		c.batch = min(2*c.batch+1, len(c.list))
		var far int
		p, tables := unsafe.Pointer(&text[c.at]), (*[96]byte)(&f.m)
		c.n, far = f.level.maskScan(p, left, 1, 2, tables, &c.list[0], c.batch)
		c.i, c.base = 0, c.at
		c.at += min(far, left)
	}
	for at := max(c.at, from); at+1 < len(text); at++ {
		var third byte
		if at+2 < len(text) {
			third = text[at+2]
		}
		if buckets := f.m.has(text[at], text[at+1], third); buckets != 0 {
			var r int
			if r, c.size = f.verify(text, from, at, buckets, m); r >= 0 || m.stopped {
				return r
			}
		}
	}
	return -1
}
