package edit

import (
	"bytes"
	"sort"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/rivo/uniseg"
	"golang.org/x/text/unicode/norm"
)

// foldRune gives the ASCII that stands for a typographic character, "" for an invisible one. ok is
// false for all others. Only characters that a reader or a model takes for the ASCII one are here;
// guillemets and primes of other scripts are not.
func foldRune(r rune) (s string, ok bool) {
	switch r {
	case 0x2018, 0x2019, 0x201a, 0x201b, 0x2032, 0x02bc, 0xff07:
		return "'", true
	case 0x201c, 0x201d, 0x201e, 0x201f, 0x2033, 0xff02:
		return `"`, true
	case 0x2010, 0x2011, 0x2012, 0x2013, 0x2014, 0x2015, 0x2212, 0xfe58, 0xfe63, 0xff0d:
		return "-", true
	case 0x2026:
		return "...", true
	case 0x200b, 0x2060, 0xfeff, 0x00ad:
		return "", true
	}
	if oddSpace(r) {
		return " ", true
	}
	return "", false
}

// oddSpace reports spaces that look like a blank and are none.
func oddSpace(r rune) bool {
	switch {
	case r == 0xa0, r == 0x1680, 0x2000 <= r && r <= 0x200a, r == 0x202f, r == 0x205f, r == 0x3000:
		return true
	}
	return false
}

// Plain writes b with typographic characters as ASCII.
func Plain(b []byte) []byte {
	out := make([]byte, 0, len(b))
	for i := 0; i < len(b); {
		if b[i] < utf8.RuneSelf {
			out = append(out, b[i])
			i++
			continue
		}
		r, n := utf8.DecodeRune(b[i:])
		if s, ok := foldRune(r); ok {
			out = append(out, s...)
		} else {
			out = append(out, b[i:i+n]...)
		}
		i += n
	}
	return out
}

// oddRunes gives the characters of s that stand for ASCII ones, or for nothing.
func oddRunes(s string) string {
	return strings.Map(func(r rune) rune {
		if _, odd := foldRune(r); odd {
			return r
		}
		return -1
	}, s)
}

// A text is folded by decomposing it, writing typography as ASCII, and leaving all white space out. Two texts that any tier up to
// indentation takes for equal are the same bytes when folded. So one search for the folded Old finds the candidates of all tiers at
// once, and only they have to be compared.

// appendFolded appends the character at src[at:], folded, to dst, and gives the offset of the next one. Of "é" it appends "e" and an
// acute accent, of "“" a straight quote, of a blank nothing.
func appendFolded(dst, src []byte, at int) ([]byte, int) {
	c := src[at]
	if c < utf8.RuneSelf {
		if c == ' ' || '\t' <= c && c <= '\r' {
			return dst, at + 1
		}
		return append(dst, c), at + 1
	}
	r, n := utf8.DecodeRune(src[at:])
	if r == utf8.RuneError {
		return append(dst, src[at:at+n]...), at + n
	}
	if s, ok := foldRune(r); ok {
		if s == " " {
			s = ""
		}
		return append(dst, s...), at + n
	}
	p := norm.NFD.Properties(src[at:])
	hangul := 0xac00 <= r && r <= 0xd7a3
	if !hangul && p.CCC() == 0 && p.Decomposition() == nil {
		return append(dst, src[at:at+n]...), at + n
	}
	// Marks are put in order only together with their letter.
	end := at + n
	for end < len(src) && src[end] >= utf8.RuneSelf {
		q := norm.NFD.Properties(src[end:])
		if q.CCC() == 0 || q.Size() == 0 {
			break
		}
		end += q.Size()
	}
	if d := p.Decomposition(); !hangul && end == at+n { // a letter by itself has no marks to sort
		if d == nil {
			d = src[at:end]
		}
		return append(dst, d...), end
	}
	return norm.NFD.Append(dst, src[at:end]...), end
}

// foldMarks is the distance between the marks of a folded text, in bytes of the source.
const foldMarks = 2048

// foldMark ties an offset in a folded text to the offset in the source where the same character starts.
type foldMark struct{ text, raw int }

// foldText gives src folded, and marks to find the way back.
func foldText(src []byte) ([]byte, []foldMark) {
	out := make([]byte, 0, len(src)*3/4+16)
	marks := make([]foldMark, 0, len(src)/foldMarks+1)
	for at, due := 0, 0; at < len(src); {
		if at >= due {
			marks = append(marks, foldMark{len(out), at})
			due = at + foldMarks
		}
		if c := src[at]; c < utf8.RuneSelf {
			if c > ' ' {
				out = append(out, c)
			} else if c != ' ' && (c < '\t' || c > '\r') {
				out = append(out, c)
			}
			at++
			continue
		}
		out, at = appendFolded(out, src, at)
	}
	return out, marks
}

// sourceRange translates the offsets [from,to) of a folded text into those of the bytes of src that made them. ok is false if a
// character of the source is cut, or a combining mark parted from its letter.
func sourceRange(src []byte, marks []foldMark, from, to int) (start, end int, ok bool) {
	start, ok = -1, true
	i := sort.Search(len(marks), func(i int) bool { return marks[i].text > from }) - 1
	if i < 0 {
		return 0, 0, false
	}
	var buf [64]byte
	for n, at := marks[i].text, marks[i].raw; at < len(src); {
		got, next := appendFolded(buf[:0], src, at)
		if len(got) > 0 {
			if start < 0 && n+len(got) > from {
				if n != from {
					return 0, 0, false
				}
				start = at
			}
			if n += len(got); n >= to {
				end = next
				if n != to {
					return 0, 0, false
				}
				break
			}
			// A long stretch is skipped by the marks.
			if start >= 0 && to-n > 2*foldMarks {
				if j := sort.Search(len(marks), func(i int) bool { return marks[i].text > to }) - 1; j >= 0 && marks[j].raw > next {
					n, next = marks[j].text, marks[j].raw
				}
			}
		}
		at = next
	}
	if start < 0 || end == 0 {
		return 0, 0, false
	}
	if r, _ := utf8.DecodeRune(src[end:]); unicode.Is(unicode.Mn, r) {
		return 0, 0, false
	}
	return start, end, true
}

// isWord says that a character is part of a word.
func isWord(r rune) bool {
	return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.Is(unicode.Mn, r)
}

// cutsWord says that an offset lies within a word or a grapheme.
func cutsWord(text []byte, at int) bool {
	if at <= 0 || at >= len(text) {
		return false
	}
	before, _ := utf8.DecodeLastRune(text[:at])
	after, _ := utf8.DecodeRune(text[at:])
	return isWord(before) && isWord(after) || cutsGrapheme(text, at)
}

// cutsGrapheme says that an offset lies within a grapheme: one character to a reader, as 🇬🇧, which is two code points.
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

// tokenEnds gives the offsets at which the words and the other graphemes of a text end. An ideograph is a word.
func tokenEnds(text []byte) (ends []int) {
	state := -1
	for at, rest := 0, text; len(rest) > 0; {
		var grapheme []byte
		grapheme, rest, _, state = uniseg.FirstGraphemeCluster(rest, state)
		r, _ := utf8.DecodeRune(grapheme)
		word := isWord(r) && !unicode.Is(unicode.Ideographic, r)
		if at += len(grapheme); word && len(rest) > 0 {
			if next, _ := utf8.DecodeRune(rest); isWord(next) && !unicode.Is(unicode.Ideographic, next) {
				continue
			}
		}
		ends = append(ends, at)
	}
	return ends
}

// wholeWords widens a stretch so that it cuts no word and no grapheme.
func wholeWords(text []byte, from, to int) (int, int) {
	for from > 0 && (!utf8.RuneStart(text[from]) || cutsWord(text, from)) {
		from--
	}
	for to < len(text) && (!utf8.RuneStart(text[to]) || cutsWord(text, to)) {
		to++
	}
	return from, to
}

// common gives how many bytes a and b begin with alike.
func common[A, B string | []byte](a A, b B) (n int) {
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// commonEnds gives how many bytes a and b begin with alike, and with how many of the others they end alike, in whole characters.
func commonEnds[A, B string | []byte](a A, b B) (head, tail int) {
	head = common(a, b)
	for head > 0 && (head < len(a) && !utf8.RuneStart(a[head]) || head < len(b) && !utf8.RuneStart(b[head])) {
		head--
	}
	a, b = a[head:], b[head:]
	for tail < len(a) && tail < len(b) && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	for tail > 0 && !utf8.RuneStart(a[len(a)-tail]) {
		tail--
	}
	return head, tail
}

// line is the content text[start:end] and the line break text[end:next], empty at the end.
type line struct{ start, end, next int }

// lineFrom gives the rest of the line that holds offset at, from at on.
func lineFrom(text []byte, at int) line {
	i := bytes.IndexByte(text[at:], '\n')
	if i < 0 {
		return line{at, len(text), len(text)}
	}
	l := line{at, at + i, at + i + 1}
	if i > 0 && text[l.end-1] == '\r' {
		l.end--
	}
	return l
}

// lineStart gives the start of the line that holds offset at.
func lineStart(text []byte, at int) int {
	return bytes.LastIndexByte(text[:at], '\n') + 1
}

// splitLines cuts text at its line breaks. A final break makes an empty last line, and so does no
// text.
func splitLines(text []byte) []line {
	lines := make([]line, 0, 16)
	for at := 0; ; {
		l := lineFrom(text, at)
		lines = append(lines, l)
		if l.next == l.end {
			return lines
		}
		at = l.next
	}
}

// lineAt numbers the line that holds offset at, from 1.
func lineAt(text []byte, at int) int {
	return 1 + bytes.Count(text[:at], []byte{'\n'})
}

// lineEnding names the line breaks of a text.
func lineEnding(text []byte) string {
	lf, crlf := bytes.Count(text, []byte("\n")), 0
	if bytes.IndexByte(text, '\r') >= 0 {
		crlf = bytes.Count(text, []byte("\r\n"))
	}
	switch {
	case lf == 0:
		return "none"
	case crlf == 0:
		return "lf"
	case crlf == lf:
		return "crlf"
	}
	return "mixed"
}

// lf writes all CRLF as LF.
func lf(s string) string { return strings.ReplaceAll(s, "\r\n", "\n") }
