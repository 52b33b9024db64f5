// Package syntax parses a pattern in the language of ripgrep's regex crate, or of Go where ripgrep refuses,
// into a tree, or gives an error with a pattern to write instead.
//
// The tree has no captures and no case: a class holds all that it matches, folded, and without "\n"
// where lines are searched one by one. So the engines of package match need not know any option.
package syntax

import (
	"slices"
	"unicode"
)

// Op is the kind of a syntax tree node. Captures are not kept: only where a match begins and
// ends is asked for.
type Op uint8

const (
	OpEmpty  Op = iota // matches the empty string
	OpNever            // matches nothing
	OpClass            // one code point out of Ranges
	OpBytes            // one raw byte out of Ranges (only under (?-u))
	OpLook             // an assertion of width zero
	OpConcat           // subs, one after the other
	OpAlt              // one of Subs, the first preferred
	OpRepeat           // Subs[0], Min to Max times; Max < 0: no bound
	OpGroup            // Subs[0]
)

// Look is an assertion. The ASCII kinds come from (?-u).
type Look uint8

const (
	LookTextStart Look = iota
	LookTextEnd
	LookLineStart
	LookLineEnd
	LookWord // \b
	LookNotWord
	LookWordStart // \<, \b{start}
	LookWordEnd
	LookWordStartHalf // no word character before
	LookWordEndHalf   // no word character after
	LookWordASCII
	LookNotWordASCII
	LookWordStartASCII
	LookWordEndASCII
	LookWordStartHalfASCII
	LookWordEndHalfASCII
)

// UnicodeWord says that l asks for word characters of Unicode.
func (l Look) UnicodeWord() bool { return l >= LookWord && l <= LookWordEndHalf }

// Word says that l asks for word characters.
func (l Look) Word() bool { return l >= LookWord }

// Mirror is the assertion that holds in the reversed text where l holds in the text. The two stand
// side by side above.
func (l Look) Mirror() Look {
	switch l {
	case LookWord, LookNotWord, LookWordASCII, LookNotWordASCII:
		return l
	}
	return l ^ 1
}

// HoldsWord decides a word assertion. l is one of the Unicode kinds.
func (l Look) HoldsWord(before, after bool) bool {
	switch l {
	case LookWord:
		return before != after
	case LookNotWord:
		return before == after
	case LookWordStart:
		return !before && after
	case LookWordEnd:
		return before && !after
	case LookWordStartHalf:
		return !before
	case LookWordEndHalf:
		return !after
	}
	return false
}

// Node is one construct of a pattern, with its parts in Subs.
type Node struct {
	Op       Op
	Look     Look
	Lazy     bool
	Min, Max int
	Ranges   []rune // pairs, sorted, disjoint, never adjacent
	Subs     []*Node
}

// Nullable says whether n can match the empty string.
func (n *Node) Nullable() bool {
	switch n.Op {
	case OpEmpty, OpLook:
		return true
	case OpConcat:
		for _, s := range n.Subs {
			if !s.Nullable() {
				return false
			}
		}
		return true
	case OpAlt:
		return slices.ContainsFunc(n.Subs, (*Node).Nullable)
	case OpRepeat:
		return n.Min == 0 || n.Subs[0].Nullable()
	case OpGroup:
		return n.Subs[0].Nullable()
	}
	return false
}

// Any says whether f holds for n or for a node below it.
func (n *Node) Any(f func(*Node) bool) bool {
	if f(n) {
		return true
	}
	for _, s := range n.Subs {
		if s.Any(f) {
			return true
		}
	}
	return false
}

// Class matches a code point out of Ranges.
func Class(ranges []rune) *Node {
	if len(ranges) == 0 {
		return &Node{Op: OpNever}
	}
	return &Node{Op: OpClass, Ranges: ranges}
}

// Concat matches subs one after the other.
func Concat(subs []*Node) *Node {
	switch len(subs) {
	case 0:
		return &Node{Op: OpEmpty}
	case 1:
		return subs[0]
	}
	return &Node{Op: OpConcat, Subs: subs}
}

// cleanRanges sorts and joins ranges. A set of code points is a list of pairs, sorted and apart: 'a', 'c', 'x', 'x' is [a-cx].
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

// Intersect gives the characters that are in both sets.
func Intersect(a, b []rune) []rune {
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

// HasRune says whether c is in the set.
func HasRune(r []rune, c rune) bool {
	for i := 0; i < len(r) && r[i] <= c; i += 2 {
		if c <= r[i+1] {
			return true
		}
	}
	return false
}

// CountRunes is the number of members.
func CountRunes(r []rune) int {
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
		from, _ := slices.BinarySearch(foldable(), lo)
		to, _ := slices.BinarySearch(foldable(), hi+1)
		for _, f := range foldable()[from:to] {
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
