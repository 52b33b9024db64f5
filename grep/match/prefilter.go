package match

import (
	"bytes"
	"slices"
	"unsafe"

	"moltisfs/grep/match/frequency"
	"moltisfs/grep/match/literal"
)

// prefilter looks for text that every match must hold.
//
// next gives the place of the first candidate in text[from:], or -1. A candidate is a byte that may
// lie within a match; no match is passed over. Once m has stopped, next gives -1 too. Candidates of
// one line may come out of order, those of different lines do not.
type prefilter interface {
	next(text []byte, from int, m *meter) int
}

// pairPrefilter finds one literal by its two rarest bytes. Rare bytes stop the scan less often than
// the first two would: in "return", "u" and "r" are better than "re". memchr, which ripgrep uses,
// calls this a packed pair.
type pairPrefilter struct {
	literal.Literal
	pair
	level  level
	folds  bool
	rarest int // the place of the rarest byte
}

// pair is a pair of bytes, and the literal around them, that pairScan looks for. The kernels know this layout: change both together.
//
// Byte b1 must stand at i1 and b2 at i2, after f1 and f2 are or-ed to the text (0x20 folds case).
// Then the first eight bytes of the literal, or as many as it has, are compared: (text|fold)&mask
// == word.
type pair struct {
	b1, b2, f1, f2   uint8
	i1, i2           int // i1 <= i2
	word, fold, mask uint64
}

func newPairPrefilter(l literal.Literal, v level) *pairPrefilter {
	order := make([]int, len(l.Bytes))
	rare := make([]float64, len(l.Bytes))
	for i := range order {
		order[i] = i
		rare[i] = frequency.Chance(func(x byte) bool { return x|l.Mask[i] == l.Bytes[i] })
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
		// Two different bytes exclude more than one byte twice.
		if l.Bytes[i] != l.Bytes[i1] || i2 == i1 {
			if i2 = i; l.Bytes[i] != l.Bytes[i1] {
				break
			}
		}
	}
	f := &pairPrefilter{Literal: l, level: v, folds: l.Folds(), rarest: i1}
	i1, i2 = min(i1, i2), max(i1, i2)
	f.pair = pair{b1: l.Bytes[i1], b2: l.Bytes[i2], f1: l.Mask[i1], f2: l.Mask[i2], i1: i1, i2: i2}
	for i := range min(8, len(l.Bytes)) {
		f.word |= uint64(l.Bytes[i]) << (8 * i)
		f.fold |= uint64(l.Mask[i]) << (8 * i)
		f.pair.mask |= 0xff << (8 * i)
	}
	return f
}

func (f *pairPrefilter) next(text []byte, from int, m *meter) int {
	if !f.level.pairs() && !f.folds {
		if k := bytes.Index(text[from:], f.Bytes); k >= 0 {
			return from + k
		}
		return -1
	}
	end := len(text) - len(f.Bytes) + 1 // first place that is too late
	at := from
	for last := min(end, len(text)-7); f.level.pairs() && last-at >= 32; {
		k := f.level.pairScan(unsafe.Pointer(&text[at]), last-at, &f.pair)
		if k < 0 {
			at = last
			break
		}
		if at += k; len(f.Bytes) <= 8 || f.At(text[at:]) {
			return at
		}
		if at++; m.pass(len(f.Bytes)) {
			return -1
		}
	}
	if !f.level.pairs() {
		return f.nextPortable(text, at, end, m)
	}
	for ; at < end; at++ {
		if text[at+f.i1]|f.f1 == f.b1 && text[at+f.i2]|f.f2 == f.b2 && f.At(text[at:]) {
			return at
		}
	}
	return -1
}

// nextPortable is next without vectors for a literal that ignores case. It looks for either case of
// the rarest byte.
func (f *pairPrefilter) nextPortable(text []byte, from, end int, m *meter) int {
	small := f.Bytes[f.rarest]
	large := small &^ f.Mask[f.rarest]
	for at := from; at < end; {
		part := text[at+f.rarest : min(at+4096, end)+f.rarest]
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
			if f.At(text[at:]) {
				return at
			}
			at++
			part = part[k+1:]
			if m.pass(len(f.Bytes)) {
				return -1
			}
		}
	}
	return -1
}
