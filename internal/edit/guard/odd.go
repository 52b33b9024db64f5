package guard

import (
	"bytes"
	"regexp"
	"unicode/utf8"

	"moltisfs/internal/edit/diff"
)

// maxOdd bounds the texts that are looked at, in bytes: a hint is not worth more.
const maxOdd = 1 << 20

var oddLines = []struct {
	says string
	is   *regexp.Regexp
}{
	{"a marker of a merge stands in it", regexp.MustCompile(`^(?:<{7}|>{7}|\|{7})(?: |$)`)},
	{"a line begins with a line number", regexp.MustCompile(`^\s*\d+→`)},
	{"a code fence stands in it", regexp.MustCompile("^\\s*```")},
}

// Odd gives what looks broken in a text after a change and did not before, in a few words; "" where
// nothing does, or it is no UTF-8. It is no reason to refuse.
func Odd(before, after []byte) string {
	if len(before) > maxOdd || len(after) > maxOdd || len(bytes.TrimSpace(before)) == 0 ||
		!utf8.Valid(after) || bytes.IndexByte(after, 0) >= 0 {
		return ""
	}
	head, tail := diff.SameEnds(before, after, '\n')
	added := diff.Lines(after[head:len(after)-tail], false)
	for _, o := range oddLines {
		for _, l := range added {
			if o.is.Match(l) && !has(before, o.is) {
				return o.says
			}
		}
	}
	was, now := brackets(before), brackets(after)
	for i, pair := range []string{"()", "[]", "{}"} {
		if was[i] == 0 && now[i] != 0 {
			return "its " + pair + " balanced before and don't now"
		}
	}
	tabs, blanks := indents(diff.Lines(before, false))
	moreTabs, moreBlanks := indents(added)
	switch {
	case tabs > 1 && blanks == 0 && moreBlanks > 0:
		return "new lines are indented with blanks, all others with tabs"
	case blanks > 1 && tabs == 0 && moreTabs > 0:
		return "new lines are indented with tabs, all others with blanks"
	}
	return ""
}

func has(text []byte, is *regexp.Regexp) bool {
	for _, l := range diff.Lines(text, false) {
		if is.Match(l) {
			return true
		}
	}
	return false
}

// brackets counts those that open, less those that close, of each of the three kinds.
func brackets(text []byte) (n [3]int) {
	for _, c := range text {
		switch c {
		case '(':
			n[0]++
		case ')':
			n[0]--
		case '[':
			n[1]++
		case ']':
			n[1]--
		case '{':
			n[2]++
		case '}':
			n[2]--
		}
	}
	return n
}

// indents counts the lines that begin with a tab, and with two blanks or more.
func indents(lines [][]byte) (tabs, blanks int) {
	for _, l := range lines {
		switch {
		case len(bytes.TrimSpace(l)) == 0:
		case l[0] == '\t':
			tabs++
		case bytes.HasPrefix(l, []byte("  ")):
			blanks++
		}
	}
	return tabs, blanks
}
