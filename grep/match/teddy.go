package match

import (
	"cmp"
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
// 32 places at once which buckets accept it. Three bytes of each literal are looked at, which stand at
// the same places in all of them: so candidates come in the order in which they begin. A nibble pair
// accepts more bytes than were put in, so verify compares.
type teddy struct {
	m        masks
	off      [3]int // where the three bytes stand, in order
	shortest int    // length of the shortest literal
	members  []member
	buckets  [8][]member
	level    level
}

// member is a literal of a teddy. Most that do not stand in the text differ from it in the last eight bytes.
type member struct {
	literal.Literal
	end   eightBytes
	order int // in the set
}

// eightBytes are the up to eight bytes that end a literal, from place at on: (text|fold)&mask == word.
type eightBytes struct {
	at               int
	word, fold, mask uint64
}

func lastEight(l literal.Literal) (e eightBytes) {
	e.at = max(0, len(l.Bytes)-8)
	for i, b := range l.Bytes[e.at:] {
		e.word |= uint64(b) << (8 * i)
		e.fold |= uint64(l.Mask[e.at+i]) << (8 * i)
		e.mask |= 0xff << (8 * i)
	}
	return e
}

// newTeddy wants literals of at least two bytes.
func newTeddy(set []literal.Literal, v level) *teddy {
	f := &teddy{level: v, shortest: (literal.Set{Members: set}).Shortest()}
	best, off := math.Inf(1), [3]int{0, 1, 1}
	for w := 0; w+3 <= f.shortest; w++ {
		c := 0.0
		for _, l := range set {
			c += l.Part(w, w+3).Frequency()
		}
		if c < best {
			best, off = c, [3]int{w, w + 1, w + 2}
		}
	}
	for i, l := range set {
		f.members = append(f.members, member{l, lastEight(l), i})
	}
	return f.at(off)
}

// at is f that looks at other places.
func (f *teddy) at(off [3]int) *teddy {
	g := &teddy{level: f.level, shortest: f.shortest, off: off, members: slices.Clone(f.members)}
	// Literals with similar bytes share a bucket. A bucket of unlike ones would accept mixtures
	// that none of them has.
	slices.SortStableFunc(g.members, func(a, b member) int {
		return cmp.Or(cmp.Compare(a.Bytes[off[0]], b.Bytes[off[0]]), cmp.Compare(a.Bytes[off[1]], b.Bytes[off[1]]), cmp.Compare(a.Bytes[off[2]], b.Bytes[off[2]]))
	})
	for i, l := range g.members {
		bucket := i * 8 / max(8, len(g.members))
		g.buckets[bucket] = append(g.buckets[bucket], l)
		for place, at := range off {
			g.m.add(place, bucket, l.Bytes[at])
			g.m.add(place, bucket, l.Bytes[at]&^l.Mask[at])
		}
	}
	return g
}

// learn is f that looks where its literals differ most from this text: each place is the one that leaves the fewest starts, of those
// that the places before have left. In a log "[worker-6" and "[worker-7" differ from most lines in their last byte only.
func (f *teddy) learn(text []byte) *teddy {
	const most = 32 // places
	accept := make([][256]uint64, min(f.shortest, most))
	for i := range accept {
		for k, l := range f.members {
			accept[i][l.Bytes[i]] |= 1 << k
			accept[i][l.Bytes[i]&^l.Mask[i]] |= 1 << k
		}
	}
	var starts []int
	var left []uint64 // the literals that may begin there
	for at := 0; at+len(accept) <= len(text); at++ {
		starts, left = append(starts, at), append(left, 1<<len(f.members)-1)
	}
	var off [3]int
	for place := range off {
		best, fewest := 0, len(starts)+1
		for i := range accept {
			n := 0
			for k, at := range starts {
				if left[k]&accept[i][text[at+i]] != 0 {
					n++
				}
			}
			if n < fewest {
				best, fewest = i, n
			}
		}
		n := 0
		for k, at := range starts {
			if left[k] &= accept[best][text[at+best]]; left[k] != 0 {
				starts[n], left[n] = at, left[k]
				n++
			}
		}
		off[place], starts, left = best, starts[:n], left[:n]
	}
	slices.Sort(off[:])
	return f.at(off)
}

// verify gives the length of the literal that begins at text[at], 0 for none. Of several it takes the one that the
// pattern prefers.
func (f *teddy) verify(text []byte, at int, m *meter) (size int) {
	order := 0
	for b := f.m.has(text[at+f.off[0]], text[at+f.off[1]], text[at+f.off[2]]); b != 0; b &= b - 1 {
		in := f.buckets[bits.TrailingZeros8(b)]
		m.spend(len(in))
		for i := range in {
			l := &in[i]
			if e := at + l.end.at; e+8 <= len(text) && (load64(unsafe.Pointer(&text[e]))|l.end.fold)&l.end.mask != l.end.word {
				continue
			}
			if (size == 0 || l.order < order) && l.At(text[at:]) {
				size, order = len(l.Bytes), l.order
			}
		}
	}
	return size
}

// teddyCursor keeps the hits that maskScan found ahead, for a prefilter that is asked for one place
// after the other in the same text. Its zero value holds none.
type teddyCursor struct {
	list            [16]blockHits
	i, n            int // list[i:n] is still to be looked at
	base            int // the places in list count from here
	at              int // how far the text is scanned
	batch           int // blocks to ask for next: few at first, since often the first hit is all
	size            int // of the literal that was found last
	misses, scanned int // hits without a literal, and bytes, since Scanner.teddy was made
}

func (f *teddy) next(text []byte, from int, m *meter) int {
	var c teddyCursor
	return f.nextWith(text, from, &c, m)
}

func (f *teddy) nextWith(text []byte, from int, c *teddyCursor, m *meter) int {
	c.at = max(c.at, from)
	end := len(text) - f.shortest + 1 // first place that is too late
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
				at := b.at + bits.TrailingZeros64(b.hits)
				if c.size = f.verify(text, at, m); c.size > 0 {
					return at
				} else if m.stopped {
					return -1
				}
				c.misses++
			}
		}
		left := end - c.at
		if left < block {
			break
		}
		c.batch = min(2*c.batch+1, len(c.list))
		var far int
		p, tables := unsafe.Pointer(&text[c.at+f.off[0]]), (*[96]byte)(&f.m)
		c.n, far = f.level.maskScan(p, left, f.off[1]-f.off[0], f.off[2]-f.off[0], tables, &c.list[0], c.batch)
		c.i, c.base = 0, c.at
		c.at += min(far, left)
		c.scanned += far
	}
	for at := max(c.at, from); at < end && !m.stopped; at++ {
		if c.size = f.verify(text, at, m); c.size > 0 {
			return at
		}
	}
	return -1
}
