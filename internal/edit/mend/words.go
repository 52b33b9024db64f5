package mend

import (
	"bytes"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/rivo/uniseg"
)

// Cuts says that an offset lies within a word or a grapheme.
func Cuts(text []byte, at int) bool {
	if at <= 0 || at >= len(text) {
		return false
	}
	before, _ := utf8.DecodeLastRune(text[:at])
	after, _ := utf8.DecodeRune(text[at:])
	return wordRune(before) && wordRune(after) || cutsGrapheme(text, at)
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
		word := wordRune(r) && !unicode.Is(unicode.Ideographic, r)
		if at += len(grapheme); word && len(rest) > 0 {
			if next, _ := utf8.DecodeRune(rest); wordRune(next) && !unicode.Is(unicode.Ideographic, next) {
				continue
			}
		}
		ends = append(ends, at)
	}
	return ends
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
