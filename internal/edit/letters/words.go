package letters

import (
	"unicode"
	"unicode/utf8"

	"github.com/rivo/uniseg"
)

// IsWord says that a character is part of a word.
func IsWord(r rune) bool {
	return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.Is(unicode.Mn, r)
}

// Cuts says that an offset lies within a word or a grapheme.
func Cuts(text []byte, at int) bool {
	if at <= 0 || at >= len(text) {
		return false
	}
	before, _ := utf8.DecodeLastRune(text[:at])
	after, _ := utf8.DecodeRune(text[at:])
	return IsWord(before) && IsWord(after) || cutsGrapheme(text, at)
}

// cutsGrapheme says that an offset lies within what a reader takes for one character.
func cutsGrapheme(text []byte, at int) bool {
	if text[at] < utf8.RuneSelf {
		return false
	}
	from := at
	for from > 0 && text[from-1] >= utf8.RuneSelf && at-from < 256 {
		from--
	}
	if from > 0 && text[from-1] > ' ' {
		from-- // a sign of ASCII that marks stand on
	}
	for rest := text[from:]; from < at; {
		var grapheme []byte
		grapheme, rest, _, _ = uniseg.FirstGraphemeCluster(rest, -1)
		from += len(grapheme)
	}
	return from != at
}

// Tokens gives the offsets at which the words and the other graphemes of a text end. An ideograph is a word.
func Tokens(text []byte) (ends []int) {
	state := -1
	for at, rest := 0, text; len(rest) > 0; {
		var grapheme []byte
		grapheme, rest, _, state = uniseg.FirstGraphemeCluster(rest, state)
		r, _ := utf8.DecodeRune(grapheme)
		word := IsWord(r) && !unicode.Is(unicode.Ideographic, r)
		if at += len(grapheme); word && len(rest) > 0 {
			if next, _ := utf8.DecodeRune(rest); IsWord(next) && !unicode.Is(unicode.Ideographic, next) {
				continue
			}
		}
		ends = append(ends, at)
	}
	return ends
}

// Whole widens a stretch so that it cuts no word and no grapheme.
func Whole(text []byte, from, to int) (int, int) {
	for from > 0 && (!utf8.RuneStart(text[from]) || Cuts(text, from)) {
		from--
	}
	for to < len(text) && (!utf8.RuneStart(text[to]) || Cuts(text, to)) {
		to++
	}
	return from, to
}
