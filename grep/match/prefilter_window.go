package match

import (
	"math/bits"
	"unsafe"

	"moltisfs/grep/match/frequency"
)

// windowPrefilter is for patterns without a literal, such as "[0-9]+\.[0-9]+" or
// "[A-Z]{6}[0-9]{4}". It finds places where each of the next bytes is in its set. The three most
// selective places are scanned for with vectors; then all are checked.
type windowPrefilter struct {
	m     masks
	off   [3]int // the scanned places; the scan starts from the first
	sets  [256]uint32
	width int // places that are checked, at most maxWindow
	level level
	item  int // the item of the concatenation with which the window begins

	scanned, all float64 // estimated shares of positions at which the scanned places hold, and all of them
}

const (
	maxWindow       = 24
	maxItems        = 24   // items at which a window is tried
	maxWindowStates = 2000 // threads while a window is tried
)

// byteSet is a set of bytes.
type byteSet [256]bool

// newWindowPrefilter tries each item of the concatenation and gives the rarest window, or nil when
// there is none.
func newWindowPrefilter(p *program, v level) *windowPrefilter {
	var best *windowPrefilter
	sim := windowSim{p: p, seen: make([]uint32, len(p.insts))}
	var bestSets []byteSet
	for i, pc := range p.itemStarts {
		if i >= maxItems {
			break
		}
		sets := sim.follow(pc)
		if f := pickPlaces(sets, v); f != nil && (best == nil || f.scanned < best.scanned) {
			best, f.item, bestSets = f, i, sets
		}
	}
	if best != nil {
		best.fill(bestSets)
	}
	return best
}

// windowSim walks all ways from an instruction at once and notes which bytes are possible at each
// place. It takes assertions to hold, so it finds too many bytes, never too few.
type windowSim struct {
	p     *program
	seen  []uint32
	gen   uint32
	stack []int32
}

func (w *windowSim) follow(pc int32) []byteSet {
	var out []byteSet
	now := []int32{pc}
	for len(out) < maxWindow {
		w.gen++
		var set byteSet
		var then []int32
		w.stack = append(w.stack[:0], now...)
		for len(w.stack) > 0 {
			pc := w.stack[len(w.stack)-1]
			w.stack = w.stack[:len(w.stack)-1]
			if w.seen[pc] == w.gen {
				continue
			}
			w.seen[pc] = w.gen
			x := &w.p.insts[pc]
			switch x.op {
			case instMatch:
				return out // a match may end here: anything can follow
			case instAlt:
				w.stack = append(w.stack, x.out, x.alt)
			case instLook:
				w.stack = append(w.stack, x.out)
			case instByte:
				for b := int(x.lo); b <= int(x.hi); b++ {
					set[b] = true
				}
				then = append(then, x.out)
			case instEdges:
				for _, e := range x.edges {
					for b := int(e.lo); b <= int(e.hi); b++ {
						set[b] = true
					}
					then = append(then, x.target(e))
				}
			}
		}
		if len(then) > maxWindowStates {
			return out
		}
		out = append(out, set)
		now = then
	}
	return out
}

// pickPlaces takes the three places whose bytes are rarest together. fill makes the tables later.
func pickPlaces(sets []byteSet, v level) *windowPrefilter {
	if len(sets) == 0 {
		return nil
	}
	f := &windowPrefilter{width: len(sets), level: v, scanned: 2}
	places := make([]*frequency.Set, len(sets))
	rare := make([]float64, len(sets))
	for i := range sets {
		places[i] = frequency.Of(func(b byte) bool { return sets[i][b] })
		rare[i] = places[i].Chance()
		for b := range 256 {
			if sets[i][b] {
				f.sets[b] |= 1 << i
			}
		}
	}
	n := len(sets)
	given := make([][maxWindow]float64, n) // the chance of place j where place i holds
	for i := range n {
		given[i][i] = 1
		for j := i + 1; j < n; j++ {
			if given[i][j] = places[i].Near(places[j]); j == i+1 {
				given[i][j] = places[i].Then(places[j])
			}
		}
	}
	for i := range n {
		for j := i; j < n; j++ {
			for k := j; k < n; k++ {
				if (i == j || j == k) && n >= 3 || i == j && n >= 2 {
					continue
				}
				// Of places that look alike the farthest count: the end of a run of digits is rarer than its middle.
				if c := rare[i] * given[i][j] * given[j][k]; c <= f.scanned {
					f.scanned, f.off = c, [3]int{i, j, k}
				}
			}
		}
	}
	f.all = rare[0]
	for i := 1; i < n; i++ {
		f.all *= given[i-1][i]
	}
	f.all = min(f.all, f.scanned)
	return f
}

// product is a set of bytes: every combination of some high nibbles with some low nibbles. One
// bucket of maskScan can hold one such set in one place.
type product struct{ hi, lo uint16 }

func (p product) chance() float64 {
	return frequency.Chance(func(b byte) bool { return p.hi>>(b>>4)&1 != 0 && p.lo>>(b&15)&1 != 0 })
}

// products splits s into disjoint products.
func products(s *byteSet) []product {
	var out []product
	for hi := range 16 {
		var lo uint16
		for l := range 16 {
			if s[hi<<4|l] {
				lo |= 1 << l
			}
		}
		if lo == 0 {
			continue
		}
		found := false
		for i := range out {
			if out[i].lo == lo {
				out[i].hi |= 1 << hi
				found = true
			}
		}
		if !found {
			out = append(out, product{1 << hi, lo})
		}
	}
	return out
}

// fill makes the tables of maskScan. A bucket holds one product for each of the three places. When
// all combinations do not fit into eight buckets, the two products that grow least are merged. More
// passes then than should; holds sorts that out.
func (f *windowPrefilter) fill(sets []byteSet) {
	var parts [3][]product
	for place, at := range f.off {
		parts[place] = products(&sets[at])
		if len(parts[place]) == 0 { // nothing can match
			parts[place] = []product{{}}
		}
	}
	for len(parts[0])*len(parts[1])*len(parts[2]) > 8 {
		bestPlace, bestI, bestJ, least := -1, 0, 0, 9.0
		for place := range parts {
			for i := range parts[place] {
				for j := range i {
					a, b := parts[place][i], parts[place][j]
					grow := product{a.hi | b.hi, a.lo | b.lo}.chance() - a.chance() - b.chance()
					if grow < least {
						bestPlace, bestI, bestJ, least = place, i, j, grow
					}
				}
			}
		}
		p := parts[bestPlace]
		p[bestJ] = product{p[bestI].hi | p[bestJ].hi, p[bestI].lo | p[bestJ].lo}
		parts[bestPlace] = append(p[:bestI], p[bestI+1:]...)
	}
	bucket := 0
	for _, a := range parts[0] {
		for _, b := range parts[1] {
			for _, c := range parts[2] {
				for place, x := range [3]product{a, b, c} {
					for n := range 16 {
						if x.lo>>n&1 != 0 {
							f.m[place*32+n] |= 1 << bucket
						}
						if x.hi>>n&1 != 0 {
							f.m[place*32+16+n] |= 1 << bucket
						}
					}
				}
				bucket++
			}
		}
	}
}

// holds checks all places of the window that begins at w.
func (f *windowPrefilter) holds(text []byte, w int) bool {
	for i := range f.width {
		if f.sets[text[w+i]]>>i&1 == 0 {
			return false
		}
	}
	return true
}

// next takes the same time for every byte, whatever the text: it need not ask the meter.
func (f *windowPrefilter) next(text []byte, from int, _ *meter) int {
	end := len(text) - f.width + 1
	at := from
	o := f.off[0]
	for f.level.masks() && end-at >= block {
		var b blockHits
		p, tables := unsafe.Pointer(&text[at+o]), (*[96]byte)(&f.m)
		n, far := f.level.maskScan(p, end-at, f.off[1]-o, f.off[2]-o, tables, &b, 1)
		if n == 0 {
			return -1
		}
		for ; b.hits != 0; b.hits &= b.hits - 1 {
			if w := at + b.at + bits.TrailingZeros64(b.hits); f.holds(text, w) {
				return w
			}
		}
		at += far
	}
	for ; at < end; at++ {
		if f.holds(text, at) {
			return at
		}
	}
	return -1
}
