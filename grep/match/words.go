package match

// wordSet is a pattern that is a choice between literals and nothing else: what matches can be told without an automaton.
type wordSet struct {
	words []literal // in the order of preference
	find  *setFinder
}

// count gives the number of matches in text[from:end], which is a line, and the place of the first one behind it, -1 for none. first
// is the place of the first one, -1 for unknown; c is for this text.
func (w *wordSet) count(text []byte, from, end, first int, c *cursor, m *meter) (n, ahead int) {
	k := first
	if k < 0 {
		k = w.find.nextIn(text, from, c, m)
	}
	for ; ; n++ {
		if k < 0 || k >= end {
			return n, k
		}
		k = w.find.nextIn(text, k+w.length(text[k:]), c, m)
	}
}

// length is that of the preferred word at the start of text, where there is one.
func (w *wordSet) length(text []byte) int {
	for _, l := range w.words {
		if l.at(text) {
			return len(l.bytes)
		}
	}
	return 1
}
