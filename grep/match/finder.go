package match

import (
	"bytes"
	"math"
	"math/bits"
	"slices"
	"unsafe"
)

// finder looks for what every match must hold. next gives the place of the first candidate in text[from:], a byte that lies
// within the match if there is one, or -1. Candidates of one line may come out of order, those of different lines don't.
type finder interface {
	next(text []byte, from int) int
}

// pairFinder finds one literal by its two rarest bytes.
type pairFinder struct {
	literal
	pair
	wide  bool
	folds bool
	rare  int // the place of the rarest byte
}

// pair is what pairScan looks for, laid out as it wants it: two bytes b at places i, where f is or-ed to the text, and then the
// first eight bytes of the literal, or as many as it has.
type pair struct {
	b1, b2, f1, f2   uint8
	i1, i2           int // i1 <= i2
	word, fold, mask uint64
}

func newPairFinder(l literal, wide bool) *pairFinder {
	order := make([]int, len(l.bytes))
	rare := make([]float64, len(l.bytes))
	for i := range order {
		order[i] = i
		rare[i] = chance(func(x byte) bool { return x|l.mask[i] == l.bytes[i] })
	}
	slices.SortStableFunc(order, func(a, b int) int {
		switch {
		case rare[a] < rare[b]:
			return -1
		case rare[a] > rare[b]:
			return 1
		}
		return 0
	})
	i1, i2 := order[0], order[0]
	for _, i := range order[1:] {
		if l.bytes[i] != l.bytes[i1] || i2 == i1 { // two different bytes say more than one byte twice
			if i2 = i; l.bytes[i] != l.bytes[i1] {
				break
			}
		}
	}
	f := &pairFinder{literal: l, wide: wide, folds: l.folds(), rare: i1}
	i1, i2 = min(i1, i2), max(i1, i2)
	f.pair = pair{b1: l.bytes[i1], b2: l.bytes[i2], f1: l.mask[i1], f2: l.mask[i2], i1: i1, i2: i2}
	for i := range min(8, len(l.bytes)) {
		f.word |= uint64(l.bytes[i]) << (8 * i)
		f.fold |= uint64(l.mask[i]) << (8 * i)
		f.pair.mask |= 0xff << (8 * i)
	}
	return f
}

func (f *pairFinder) next(text []byte, from int) int {
	if !f.wide && !f.folds {
		if k := bytes.Index(text[from:], f.bytes); k >= 0 {
			return from + k
		}
		return -1
	}
	end := len(text) - len(f.bytes) + 1 // first place that is too late
	at := from
	for last := min(end, len(text)-7); f.wide && last-at >= 32; {
		k := pairScan(unsafe.Pointer(&text[at]), last-at, &f.pair)
		if k < 0 {
			at = last
			break
		}
		if at += k; len(f.bytes) <= 8 || f.at(text[at:]) {
			return at
		}
		at++
	}
	if !f.wide {
		return f.nextPortable(text, at, end)
	}
	for ; at < end; at++ {
		if text[at+f.i1]|f.f1 == f.b1 && text[at+f.i2]|f.f2 == f.b2 && f.at(text[at:]) {
			return at
		}
	}
	return -1
}

// nextPortable is next for a literal that ignores case, where there are no vectors: it goes by either case of the rarest byte.
func (f *pairFinder) nextPortable(text []byte, from, end int) int {
	small := f.bytes[f.rare]
	large := small &^ f.literal.mask[f.rare]
	for at := from; at < end; {
		part := text[at+f.rare : min(at+4096, end)+f.rare]
		for len(part) > 0 {
			k := bytes.IndexByte(part, small)
			if k < 0 {
				k = len(part)
			}
			if small != large {
				if other := bytes.IndexByte(part[:k], large); other >= 0 {
					k = other
				}
			}
			at += k
			if k == len(part) {
				break
			}
			if f.at(text[at:]) {
				return at
			}
			at++
			part = part[k+1:]
		}
	}
	return -1
}

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
	m    masks
	in   [8][]placed
	wide bool
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
func newSetFinder(set []literal, wide, aligned bool) *setFinder {
	f := &setFinder{wide: wide, aligned: aligned}
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
func (f *setFinder) verify(text []byte, from, w int, buckets byte) int {
	best := -1
	for ; buckets != 0; buckets &= buckets - 1 {
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

func (f *setFinder) next(text []byte, from int) int {
	var c cursor
	return f.nextIn(text, from, &c)
}

func (f *setFinder) nextIn(text []byte, from int, c *cursor) int {
	c.at = max(c.at, from)
	for f.wide {
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
				if r := f.verify(text, from, w, f.m.has(text[w], text[w+1], text[w+2])); r >= 0 {
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
		c.n, far = maskScan(unsafe.Pointer(&text[c.at]), left, 1, 2, (*[96]byte)(&f.m), &c.list[0], c.room)
		c.i, c.base = 0, c.at
		c.at += min(far, left)
	}
	for at := max(c.at, from); at+1 < len(text); at++ {
		var third byte
		if at+2 < len(text) {
			third = text[at+2]
		}
		if buckets := f.m.has(text[at], text[at+1], third); buckets != 0 {
			if r := f.verify(text, from, at, buckets); r >= 0 {
				return r
			}
		}
	}
	return -1
}
