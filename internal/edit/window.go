package edit

import (
	"unicode/utf8"

	"moltisfs/internal/edit/letters"
)

// In minified code a line is the whole file. What is shown or sent of such a line is a window around
// the place, not its beginning.

const (
	longLine   = 2048 // bytes; of a longer region only a window is shown
	windowEdge = 80   // bytes shown on either side of the place
)

// window shows text[from:to], whole lines, of which start to end is the place.
func window(text []byte, from, to, start, end int) string {
	if to-from <= longLine || end-start > longLine/2 {
		return letters.Clip(string(text[from:to]), longLine)
	}
	a, b := letters.Whole(text, max(from, start-windowEdge), min(to, end+windowEdge))
	s := letters.Clip(string(text[max(a, from):min(b, to)]), longLine)
	if a > from {
		s = "…" + s
	}
	if b < to {
		s += "…"
	}
	return s
}

// uniqueWithin gives text[start:end] with as much around it on its lines, in whole words, as is in
// the text once. It gives none that is not valid UTF-8: that could not be sent.
func uniqueWithin(text []byte, from, to, start, end int, budget *int) (string, bool) {
	for n := 8; n <= longLine/4 && *budget > 0; n *= 2 {
		a, b := letters.Whole(text, max(from, start-n), min(to, end+n))
		a, b = max(a, from), min(b, to)
		if once(text, text[a:b], a, budget) {
			return string(text[a:b]), utf8.Valid(text[a:b])
		}
	}
	return "", false
}
