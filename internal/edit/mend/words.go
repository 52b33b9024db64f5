package mend

import (
	"bytes"
	"regexp"
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

var dots = regexp.MustCompile(`(?m)^[ \t]*(?://|#|--|/\*|<!--|;|%)?[ \t]*(?:\.\.\.|…)[^"'\n]*\n`)

// Dots divides a text at its one line of dots, which stands for others. There are lines before it
// and behind.
func Dots(s string) (head, mark, tail string, ok bool) {
	all := dots.FindAllStringIndex(s, 2)
	if len(all) != 1 {
		return "", "", "", false
	}
	at := all[0]
	head, mark, tail = s[:at[0]], s[at[0]:at[1]], s[at[1]:]
	return head, mark, tail, strings.TrimSpace(head) != "" && strings.TrimSpace(tail) != ""
}

// Deeper says that all lines of a text are indented deeper than another.
func Deeper(s, than string) bool {
	in := len(indentOf([]byte(than)))
	for l := range strings.SplitSeq(s, "\n") {
		if strings.TrimSpace(l) != "" && len(indentOf([]byte(l))) <= in {
			return false
		}
	}
	return true
}
