// Package diff tells how one text became another: the changed lines, hunks, unified diffs that git
// takes, and three-way merges. It is pure, and its functions are safe for concurrent use.
package diff

import (
	"bytes"
	"sort"
)

// A Change says that lines [a0,a1) of one text became lines [b0,b1) of the other.
type Change struct{ A0, A1, B0, B1 int }

// Changes gives the changes between two lists of whole lines, in order, none touching the next.
//
// Common ends are cut off first. Between them it is Myers' linear-space algorithm; where that would
// cost too much, lines that are unique on both sides divide the work, and where there are none, the
// stretch is reported as replaced in one piece. Time is so bounded by a constant times the lines.
func Changes(a, b [][]byte) []Change {
	head := 0
	for head < len(a) && head < len(b) && bytes.Equal(a[head], b[head]) {
		head++
	}
	tail := 0
	for tail < len(a)-head && tail < len(b)-head && bytes.Equal(a[len(a)-1-tail], b[len(b)-1-tail]) {
		tail++
	}
	a, b = a[head:len(a)-tail], b[head:len(b)-tail]
	d := differ{budget: 1 << 23}
	ids := make(map[string]int32)
	number := func(lines [][]byte) []int32 {
		out := make([]int32, len(lines))
		for i, l := range lines {
			id, ok := ids[string(l)]
			if !ok {
				id = int32(len(ids))
				ids[string(l)] = id
			}
			out[i] = id
		}
		return out
	}
	if len(a) > 0 && len(b) > 0 {
		d.a, d.b = number(a), number(b)
	}
	d.solve(0, len(a), 0, len(b), 0)
	for i := range d.out {
		c := &d.out[i]
		c.A0, c.A1, c.B0, c.B1 = c.A0+head, c.A1+head, c.B0+head, c.B1+head
	}
	return d.out
}

// Runes gives the changes between two texts by character. Texts with little in common are one.
func Runes(a, b []rune) []Change {
	d := differ{a: a, b: b, budget: 1 << 18}
	d.solve(0, len(a), 0, len(b), maxDepth)
	return d.out
}

type differ struct {
	a, b   []int32 // lines by number
	budget int     // steps left for Myers
	out    []Change

	forward, backward []int // by diagonal, from -half to half
	half              int
}

const (
	maxDistance = 1024 // of one search for a middle
	maxDepth    = 8    // of dividing at unique lines
)

// emit adds a change, joined with the last one if they touch.
func (d *differ) emit(a0, a1, b0, b1 int) {
	if n := len(d.out); n > 0 && d.out[n-1].A1 == a0 && d.out[n-1].B1 == b0 {
		d.out[n-1].A1, d.out[n-1].B1 = a1, b1
		return
	}
	d.out = append(d.out, Change{a0, a1, b0, b1})
}

// solve finds the changes that make lines [b0,b1) of lines [a0,a1). depth counts the divisions at unique lines.
func (d *differ) solve(a0, a1, b0, b1, depth int) {
	for a0 < a1 && b0 < b1 && d.a[a0] == d.b[b0] {
		a0, b0 = a0+1, b0+1
	}
	for a0 < a1 && b0 < b1 && d.a[a1-1] == d.b[b1-1] {
		a1, b1 = a1-1, b1-1
	}
	if a0 == a1 || b0 == b1 {
		if a0 < a1 || b0 < b1 {
			d.emit(a0, a1, b0, b1)
		}
		return
	}
	if x, y, ok := d.middle(a0, a1, b0, b1); ok {
		d.solve(a0, x, b0, y, depth)
		d.solve(x, a1, y, b1, depth)
		return
	}
	var between []pairing
	if depth < maxDepth {
		between = d.anchors(a0, a1, b0, b1)
	}
	if len(between) == 0 {
		d.emit(a0, a1, b0, b1)
		return
	}
	for _, p := range between {
		d.solve(a0, p.a, b0, p.b, depth+1)
		a0, b0 = p.a+1, p.b+1
	}
	d.solve(a0, a1, b0, b1, depth+1)
}

// middle finds a point on a shortest path through a box with different corners, by search from both
// ends at once. ok is false when the path is longer than the budget allows. Diagonals are numbered
// x-y; forward[k] and backward[k] are the furthest x reached on them.
func (d *differ) middle(a0, a1, b0, b1 int) (x, y int, ok bool) {
	a, b := d.a[a0:a1], d.b[b0:b1]
	n, m := len(a), len(b)
	limit := maxDistance
	if d.budget <= 0 {
		limit = 16
	}
	if d.forward == nil {
		d.half = min(maxDistance, len(d.a)+len(d.b)) + 2 // no later stretch needs more diagonals
		d.forward, d.backward = make([]int, 2*d.half+1), make([]int, 2*d.half+1)
	}
	corner := n - m // the diagonal that the backward search starts on
	f, g := d.forward, d.backward
	of, og := d.half, d.half-corner
	fmin, fmax, gmin, gmax := 0, 0, corner, corner
	f[of], g[og+corner] = 0, n
	odd := corner&1 != 0
	for dist := 1; dist <= limit; dist++ {
		d.budget -= 2 * dist
		if fmin > -m {
			fmin--
			f[of+fmin-1] = -1
		} else {
			fmin++
		}
		if fmax < n {
			fmax++
			f[of+fmax+1] = -1
		} else {
			fmax--
		}
		for k := fmax; k >= fmin; k -= 2 {
			i := f[of+k+1]
			if f[of+k-1] >= i {
				i = f[of+k-1] + 1
			}
			j := i - k
			for i < n && j < m && a[i] == b[j] {
				i, j = i+1, j+1
			}
			f[of+k] = i
			if odd && gmin <= k && k <= gmax && g[og+k] <= i {
				return a0 + i, b0 + j, true
			}
		}
		if gmin > -m {
			gmin--
			g[og+gmin-1] = n + m + 1
		} else {
			gmin++
		}
		if gmax < n {
			gmax++
			g[og+gmax+1] = n + m + 1
		} else {
			gmax--
		}
		for k := gmax; k >= gmin; k -= 2 {
			i := g[og+k+1] - 1
			if g[og+k-1] < i+1 {
				i = g[og+k-1]
			}
			j := i - k
			for i > 0 && j > 0 && a[i-1] == b[j-1] {
				i, j = i-1, j-1
			}
			g[og+k] = i
			if !odd && fmin <= k && k <= fmax && i <= f[of+k] {
				return a0 + i, b0 + j, true
			}
		}
	}
	return 0, 0, false
}

type pairing struct{ a, b int }

// anchors pairs lines that are unique on both sides, as many as keep their order.
func (d *differ) anchors(a0, a1, b0, b1 int) []pairing {
	type seen struct{ countA, countB, a int32 }
	where := make(map[int32]seen, a1-a0)
	for i := a0; i < a1; i++ {
		s := where[d.a[i]]
		s.countA++
		s.a = int32(i)
		where[d.a[i]] = s
	}
	for j := b0; j < b1; j++ {
		if s, ok := where[d.b[j]]; ok {
			s.countB++
			where[d.b[j]] = s
		}
	}
	var pairs []pairing
	for j := b0; j < b1; j++ {
		if s, ok := where[d.b[j]]; ok && s.countA == 1 && s.countB == 1 {
			pairs = append(pairs, pairing{int(s.a), j})
		}
	}
	return rising(pairs)
}

// rising gives a longest run of pairs whose a rises too.
func rising(pairs []pairing) []pairing {
	var (
		piles []int // index of the pair on top of each pile
		back  = make([]int, len(pairs))
	)
	for i, p := range pairs {
		k := sort.Search(len(piles), func(k int) bool { return pairs[piles[k]].a >= p.a })
		back[i] = -1
		if k > 0 {
			back[i] = piles[k-1]
		}
		if k == len(piles) {
			piles = append(piles, i)
		} else {
			piles[k] = i
		}
	}
	out := make([]pairing, len(piles))
	if len(piles) > 0 {
		for i, k := piles[len(piles)-1], len(piles)-1; k >= 0; i, k = back[i], k-1 {
			out[k] = pairs[i]
		}
	}
	return out
}
