// Package frequency knows how often each byte, and each pair of bytes, occurs in source text and prose. It only helps
// to choose the bytes to look for: a bad guess costs time, never a match.
package frequency

import (
	_ "embed"
	"math"
	"sync"
)

// pairs has a line for each sign and a letter in it for each sign that may follow: how often the two stand so in Go, C,
// Python, JavaScript, assembler and device trees, and English documentation, 5 MB each. The signs are the printable
// bytes, line feed, tab, all from 0x80 on, and the rest. The letter '!' is every time, and five letters later is a
// quarter of it.
//
//go:embed pairs.txt
var pairs string

const signs = '~' - ' ' + 1 + 4

// sign gives the sign of a byte, and how many bytes it stands for.
func sign(b byte) (s int, bytes float32) {
	switch {
	case ' ' <= b && b <= '~':
		return int(b - ' '), 1
	case b == '\n':
		return signs - 4, 1
	case b == '\t':
		return signs - 3, 1
	case b >= 0x80:
		return signs - 2, 128
	}
	return signs - 1, 31
}

type tables struct {
	pair   [signs][signs]float32
	single [signs]float32
}

var read = sync.OnceValue(func() *tables {
	t := new(tables)
	var chance [128]float32
	for i := range chance {
		chance[i] = float32(math.Exp2(float64('!'-i) / 2.5))
	}
	for s := range t.pair {
		for f, c := range []byte(pairs[s*(signs+1):][:signs]) {
			t.pair[s][f] = chance[c]
			t.single[s] += chance[c]
		}
	}
	return t
})

// Set is a set of bytes. It holds the share of each sign's bytes that are in it.
type Set struct {
	bytes int
	signs []int
	share [signs]float32
}

// Of gives the set of the bytes that has names.
func Of(has func(b byte) bool) *Set {
	x := new(Set)
	for b := range 256 {
		if !has(byte(b)) {
			continue
		}
		x.bytes++
		s, n := sign(byte(b))
		if x.share[s] == 0 {
			x.signs = append(x.signs, s)
		}
		x.share[s] += 1 / n
	}
	return x
}

// Chance is the estimated share of positions in a text at which a byte of x stands.
func (x *Set) Chance() float64 {
	t, sum := read(), float32(0)
	for _, s := range x.signs {
		sum += t.single[s] * x.share[s]
	}
	return min(1, float64(sum))
}

// Then is the estimated share of those positions behind which a byte of y stands.
func (x *Set) Then(y *Set) float64 {
	t, both, all := read(), float32(0), float32(0)
	for _, s := range x.signs {
		all += t.single[s] * x.share[s]
		for _, f := range y.signs {
			both += t.pair[s][f] * x.share[s] * y.share[f]
		}
	}
	if all == 0 {
		return 0
	}
	return min(1, float64(both/all))
}

// Near is Then for a byte of y that stands a few places behind. Text comes in runs: a digit behind a digit is likely, a
// digit behind a capital is not.
func (x *Set) Near(y *Set) float64 {
	t, both := read(), float32(0)
	for _, s := range y.signs {
		both += t.single[s] * y.share[s] * x.share[s]
	}
	chance := y.Chance()
	if y.bytes <= 2 || float64(both) > chance/2 {
		return min(1, 8*chance)
	}
	return min(1, 2*chance)
}

// Chance is Set.Chance of the bytes that has names.
func Chance(has func(b byte) bool) float64 { return Of(has).Chance() }
