package match

import (
	"encoding/binary"
	"slices"
	"sync"
	"unicode/utf8"

	"moltisfs/grep/match/syntax"
)

// template is the byte automaton of one class: nodes of edges, equal tails shared. Forwards it is
// deterministic. Reversed, the edges of one node may overlap.
type template struct {
	nodes [][]edge
	root  int32
}

// sequence is a run of byte ranges that encodes a block of code points.
type sequence struct {
	n      int
	lo, hi [utf8.UTFMax]byte
}

func (c *compiler) template(ranges []rune) *template {
	if slices.Equal(ranges, syntax.WordRanges()) { // in every other pattern, and the largest of all
		if c.reverse {
			return wordReverse()
		}
		return wordForward()
	}
	key := make([]byte, 0, 4*len(ranges))
	for _, r := range ranges {
		key = binary.LittleEndian.AppendUint32(key, uint32(r))
	}
	if t, ok := c.templates[string(key)]; ok {
		return t
	}
	t := newTemplate(ranges, c.reverse)
	c.templates[string(key)] = t
	return t
}

var (
	wordForward = sync.OnceValue(func() *template { return newTemplate(syntax.WordRanges(), false) })
	wordReverse = sync.OnceValue(func() *template { return newTemplate(syntax.WordRanges(), true) })
)

func newTemplate(ranges []rune, reverse bool) *template {
	var seqs []sequence
	for i := 0; i < len(ranges); i += 2 {
		seqs = appendSequences(seqs, ranges[i], ranges[i+1])
	}
	if reverse {
		for i := range seqs {
			s := &seqs[i]
			slices.Reverse(s.lo[:s.n])
			slices.Reverse(s.hi[:s.n])
		}
		slices.SortFunc(seqs, compareSequences)
	}
	b := templateBuilder{t: &template{}, index: map[string]int32{}}
	b.t.root = b.build(seqs, 0)
	return b.t
}

func compareSequences(a, b sequence) int {
	for i := range utf8.UTFMax {
		if a.lo[i] != b.lo[i] {
			return int(a.lo[i]) - int(b.lo[i])
		}
		if a.hi[i] != b.hi[i] {
			return int(a.hi[i]) - int(b.hi[i])
		}
	}
	return a.n - b.n
}

type templateBuilder struct {
	t     *template
	index map[string]int32
}

// build makes the node for the tails of seqs from depth on; -1 is the way out.
func (b *templateBuilder) build(seqs []sequence, depth int) int32 {
	var edges []edge
	for i := 0; i < len(seqs); {
		lo, hi := seqs[i].lo[depth], seqs[i].hi[depth]
		j := i
		leaf := false
		for j < len(seqs) && seqs[j].lo[depth] == lo && seqs[j].hi[depth] == hi {
			leaf = leaf || seqs[j].n == depth+1
			j++
		}
		to := int32(-1)
		if !leaf { // lengths agree where the first byte, or in reverse the last, agrees
			to = b.build(seqs[i:j], depth+1)
		}
		if n := len(edges); n > 0 && edges[n-1].to == to && int(edges[n-1].hi)+1 == int(lo) {
			edges[n-1].hi = hi
		} else {
			edges = append(edges, edge{lo, hi, to})
		}
		i = j
	}
	key := make([]byte, 0, 8*len(edges))
	for _, e := range edges {
		key = append(key, e.lo, e.hi)
		key = binary.LittleEndian.AppendUint32(key, uint32(e.to))
	}
	if n, ok := b.index[string(key)]; ok {
		return n
	}
	n := int32(len(b.t.nodes))
	b.t.nodes = append(b.t.nodes, edges)
	b.index[string(key)] = n
	return n
}

// appendSequences splits lo..hi into blocks whose encodings are products of byte ranges, in order,
// as RE2 does. Surrogates have no encoding.
func appendSequences(out []sequence, lo, hi rune) []sequence {
	if lo > hi {
		return out
	}
	if lo < 0xe000 && hi >= 0xd800 {
		out = appendSequences(out, lo, min(hi, 0xd7ff))
		return appendSequences(out, max(lo, 0xe000), hi)
	}
	for _, edge := range [...]rune{0x7f, 0x7ff, 0xffff} {
		if lo <= edge && edge < hi {
			out = appendSequences(out, lo, edge)
			return appendSequences(out, edge+1, hi)
		}
	}
	if hi > 0x7f {
		for i := 1; i < utf8.UTFMax; i++ {
			mask := rune(1)<<(6*i) - 1
			if lo&^mask == hi&^mask {
				continue
			}
			if lo&mask != 0 {
				out = appendSequences(out, lo, lo|mask)
				return appendSequences(out, (lo|mask)+1, hi)
			}
			if hi&mask != mask {
				out = appendSequences(out, lo, hi&^mask-1)
				return appendSequences(out, hi&^mask, hi)
			}
		}
	}
	var s sequence
	s.n = utf8.EncodeRune(s.lo[:], lo)
	utf8.EncodeRune(s.hi[:], hi)
	return append(out, s)
}
