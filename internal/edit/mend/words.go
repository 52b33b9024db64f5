package mend

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// CutsWord says that an offset lies within a word.
func CutsWord(text []byte, at int) bool {
	before, _ := utf8.DecodeLastRune(text[:at])
	after, _ := utf8.DecodeRune(text[at:])
	return at > 0 && at < len(text) && wordRune(before) && wordRune(after)
}

// HasWord says that a text has the word, as a word.
func HasWord(text []byte, word string) bool {
	for at := 0; ; {
		i := bytes.Index(text[at:], []byte(word))
		if i < 0 {
			return false
		}
		before, _ := utf8.DecodeLastRune(text[:at+i])
		after, _ := utf8.DecodeRune(text[at+i+len(word):])
		if !wordRune(before) && !wordRune(after) {
			return true
		}
		at += i + len(word)
	}
}

// Whole widens a stretch so that it cuts no word.
func Whole(text []byte, from, to int) (int, int) {
	for from > 0 && (!utf8.RuneStart(text[from]) || CutsWord(text, from)) {
		from--
	}
	for to < len(text) && (!utf8.RuneStart(text[to]) || CutsWord(text, to)) {
		to++
	}
	return from, to
}

// Deepened puts blanks before every line that has any text.
func Deepened(s, in string) string {
	lines := strings.Split(s, "\n")
	for i, l := range lines {
		if strings.TrimSpace(l) != "" {
			lines[i] = in + l
		}
	}
	return strings.Join(lines, "\n")
}
