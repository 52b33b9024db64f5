package match

import (
	"bytes"
	"slices"
	"unsafe"
)

// finder looks for what every match must hold. next gives the place of the first candidate in text[from:], a byte that lies
// within the match if there is one, or -1, which it also is once m is over. Candidates of one line may come out of order, those of
// different lines don't.
type finder interface {
	next(text []byte, from int, m *meter) int
}

// pairFinder finds one literal by its two rarest bytes.
type pairFinder struct {
	literal
	pair
	level level
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

func newPairFinder(l literal, v level) *pairFinder {
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
	f := &pairFinder{literal: l, level: v, folds: l.folds(), rare: i1}
	i1, i2 = min(i1, i2), max(i1, i2)
	f.pair = pair{b1: l.bytes[i1], b2: l.bytes[i2], f1: l.mask[i1], f2: l.mask[i2], i1: i1, i2: i2}
	for i := range min(8, len(l.bytes)) {
		f.word |= uint64(l.bytes[i]) << (8 * i)
		f.fold |= uint64(l.mask[i]) << (8 * i)
		f.pair.mask |= 0xff << (8 * i)
	}
	return f
}

func (f *pairFinder) next(text []byte, from int, m *meter) int {
	if !f.level.pairs() && !f.folds {
		if k := bytes.Index(text[from:], f.bytes); k >= 0 {
			return from + k
		}
		return -1
	}
	end := len(text) - len(f.bytes) + 1 // first place that is too late
	at := from
	for last := min(end, len(text)-7); f.level.pairs() && last-at >= 32; {
		k := f.level.pairScan(unsafe.Pointer(&text[at]), last-at, &f.pair)
		if k < 0 {
			at = last
			break
		}
		if at += k; len(f.bytes) <= 8 || f.at(text[at:]) {
			return at
		}
		if at++; m.pass(len(f.bytes)) {
			return -1
		}
	}
	if !f.level.pairs() {
		return f.nextPortable(text, at, end, m)
	}
	for ; at < end; at++ {
		if text[at+f.i1]|f.f1 == f.b1 && text[at+f.i2]|f.f2 == f.b2 && f.at(text[at:]) {
			return at
		}
	}
	return -1
}

// nextPortable is next for a literal that ignores case, where there are no vectors: it goes by either case of the rarest byte.
func (f *pairFinder) nextPortable(text []byte, from, end int, m *meter) int {
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
			if m.pass(len(f.bytes)) {
				return -1
			}
		}
	}
	return -1
}
