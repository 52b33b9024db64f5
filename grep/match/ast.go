package match

import (
	"slices"
	"unicode"
)

// nodeOp is the kind of a syntax tree node. Captures are not kept: only where a match begins and
// ends is asked for.
type nodeOp uint8

const (
	opEmpty  nodeOp = iota // matches the empty string
	opNever                // matches nothing
	opClass                // one code point out of ranges
	opBytes                // one raw byte out of ranges (only under (?-u))
	opLook                 // an assertion of width zero
	opConcat               // subs, one after the other
	opAlt                  // one of subs, the first preferred
	opRepeat               // subs[0], min to max times; max < 0: no bound
	opGroup                // capturing group number min; only back-references ask for it

	// Only the backtracking engine can run what follows; see linearSuperset.
	opAround  // look-around: subs[0] ahead or behind, negated or not
	opAtomic  // subs[0] without going back into it
	opBackref // what group min matched
)

// look is an assertion. The ASCII kinds come from (?-u).
type look uint8

const (
	lookTextStart look = iota
	lookTextEnd
	lookLineStart
	lookLineEnd
	lookWord // \b
	lookNotWord
	lookWordStart // \<, \b{start}
	lookWordEnd
	lookWordStartHalf // no word character before
	lookWordEndHalf   // no word character after
	lookWordASCII
	lookNotWordASCII
	lookWordStartASCII
	lookWordEndASCII
	lookWordStartHalfASCII
	lookWordEndHalfASCII
)

func (l look) unicodeWord() bool { return l >= lookWord && l <= lookWordEndHalf }
func (l look) word() bool        { return l >= lookWord }

// mirror is the assertion that holds in the reversed text where l holds in the text.
func (l look) mirror() look {
	switch l {
	case lookTextStart:
		return lookTextEnd
	case lookTextEnd:
		return lookTextStart
	case lookLineStart:
		return lookLineEnd
	case lookLineEnd:
		return lookLineStart
	case lookWordStart:
		return lookWordEnd
	case lookWordEnd:
		return lookWordStart
	case lookWordStartHalf:
		return lookWordEndHalf
	case lookWordEndHalf:
		return lookWordStartHalf
	case lookWordStartASCII:
		return lookWordEndASCII
	case lookWordEndASCII:
		return lookWordStartASCII
	case lookWordStartHalfASCII:
		return lookWordEndHalfASCII
	case lookWordEndHalfASCII:
		return lookWordStartHalfASCII
	}
	return l
}

type node struct {
	op       nodeOp
	look     look
	lazy     bool
	behind   bool // opAround
	negated  bool // opAround
	fold     bool // opBackref under (?i)
	min, max int
	ranges   []rune // pairs, sorted, disjoint, never adjacent
	subs     []*node
}

// nullable says whether n can match the empty string.
func (n *node) nullable() bool {
	switch n.op {
	case opEmpty, opLook:
		return true
	case opConcat:
		for _, s := range n.subs {
			if !s.nullable() {
				return false
			}
		}
		return true
	case opAlt:
		return slices.ContainsFunc(n.subs, (*node).nullable)
	case opRepeat:
		return n.min == 0 || n.subs[0].nullable()
	case opGroup:
		return n.subs[0].nullable()
	}
	return false
}

// any says whether f holds for n or for a node below it.
func (n *node) any(f func(*node) bool) bool {
	if f(n) {
		return true
	}
	for _, s := range n.subs {
		if s.any(f) {
			return true
		}
	}
	return false
}

func classNode(ranges []rune) *node {
	if len(ranges) == 0 {
		return &node{op: opNever}
	}
	return &node{op: opClass, ranges: ranges}
}

func concatNode(subs []*node) *node {
	switch len(subs) {
	case 0:
		return &node{op: opEmpty}
	case 1:
		return subs[0]
	}
	return &node{op: opConcat, subs: subs}
}

// Sets of code points, as sorted pairs.

func cleanRanges(r []rune) []rune {
	if len(r) <= 2 {
		if len(r) == 2 && r[0] > r[1] {
			return nil
		}
		return r
	}
	type pair struct{ lo, hi rune }
	p := make([]pair, 0, len(r)/2)
	for i := 0; i < len(r); i += 2 {
		if r[i] <= r[i+1] {
			p = append(p, pair{r[i], r[i+1]})
		}
	}
	slices.SortFunc(p, func(a, b pair) int {
		if a.lo != b.lo {
			return int(a.lo - b.lo)
		}
		return int(b.hi - a.hi)
	})
	out := r[:0:0]
	for _, x := range p {
		if n := len(out); n > 0 && x.lo <= out[n-1]+1 {
			out[n-1] = max(out[n-1], x.hi)
			continue
		}
		out = append(out, x.lo, x.hi)
	}
	return out
}

// negateRanges wants clean ranges.
func negateRanges(r []rune, top rune) []rune {
	var out []rune
	next := rune(0)
	for i := 0; i < len(r); i += 2 {
		if r[i] > next {
			out = append(out, next, r[i]-1)
		}
		next = r[i+1] + 1
	}
	if next <= top {
		out = append(out, next, top)
	}
	return out
}

func intersectRanges(a, b []rune) []rune {
	var out []rune
	for i, j := 0, 0; i < len(a) && j < len(b); {
		lo, hi := max(a[i], b[j]), min(a[i+1], b[j+1])
		if lo <= hi {
			out = append(out, lo, hi)
		}
		if a[i+1] < b[j+1] {
			i += 2
		} else {
			j += 2
		}
	}
	return out
}

func hasRune(r []rune, c rune) bool {
	for i := 0; i < len(r) && r[i] <= c; i += 2 {
		if c <= r[i+1] {
			return true
		}
	}
	return false
}

func countRunes(r []rune) int {
	n := 0
	for i := 0; i < len(r); i += 2 {
		n += int(r[i+1]-r[i]) + 1
	}
	return n
}

// foldRanges adds the simple case folds of every member.
func foldRanges(r []rune) []rune {
	out := slices.Clone(r)
	for i := 0; i < len(r); i += 2 {
		lo, hi := r[i], r[i+1]
		// The set of everything folds onto itself. Walking a million code points finds nothing new.
		if lo == 0 && hi >= unicode.MaxRune {
			return cleanRanges(out)
		}
		for _, f := range foldable.runes(lo, hi) {
			for g := unicode.SimpleFold(f); g != f; g = unicode.SimpleFold(g) {
				out = append(out, g, g)
			}
		}
	}
	return cleanRanges(out)
}

// foldASCII is foldRanges for (?-u): only A-Z and a-z fold.
func foldASCII(r []rune) []rune {
	out := slices.Clone(r)
	for i := 0; i < len(r); i += 2 {
		for c := r[i]; c <= min(r[i+1], 'z'); c++ {
			if l := c | 0x20; l >= 'a' && l <= 'z' {
				out = append(out, c^0x20, c^0x20)
			}
		}
	}
	return cleanRanges(out)
}
