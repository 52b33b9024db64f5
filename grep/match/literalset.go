package match

import "moltisfs/grep/match/literal"

// literalSet is a pattern that is a choice of literals and nothing else. Its matches need no
// automaton.
type literalSet struct {
	words []literal.Literal // in order of preference
	teddy *teddy
}

// count gives the number of matches in text[from:end], which is a line, and the place of the first
// match behind it, -1 for none. first is the place of the first match in the line, -1 when unknown.
// c belongs to this text.
func (w *literalSet) count(
	text []byte, from, end, first int, c *teddyCursor, m *meter,
) (n, ahead int) {
	k := first
	if k < 0 {
		k = w.teddy.nextWith(text, from, c, m)
	}
	for ; ; n++ {
		if k < 0 || k >= end {
			return n, k
		}
		k = w.teddy.nextWith(text, k+w.length(text[k:]), c, m)
	}
}

// length gives the length of the preferred literal at the start of text. Leftmost-first: of "a|ab" it
// is 1, for "a".
func (w *literalSet) length(text []byte) int {
	for _, l := range w.words {
		if l.At(text) {
			return len(l.Bytes)
		}
	}
	return 1
}
