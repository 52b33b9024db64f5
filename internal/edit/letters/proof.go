package letters

import (
	"bytes"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// What may keep two texts apart.
const (
	LineEndings    = "line_endings"
	TrailingBlanks = "trailing_blanks"
	Indentation    = "indentation"
	TabsVsSpaces   = "tabs_vs_spaces"
	UnicodeSpace   = "unicode_space"
	Quotes         = "quotes"
	Normalisation  = "normalisation"
	Whitespace     = "whitespace"
	Case           = "case"
)

// A refusal names a cause only where that alone keeps old_string and the region apart, blanks at line
// ends and line endings aside: whoever repairs what is named must not fail again.

// plainly are the causes of which the two texts are compared, and what makes both the same then.
var plainly = []struct {
	cause string
	same  func(s string) string
}{
	{LineEndings, lf},
	{TrailingBlanks, endless},
	{Indentation, eachLine(func(l string) string { return strings.TrimLeft(l, " \t") })},
	{UnicodeSpace, eachLine(func(l string) string { return foldSome(l, true) })},
	{Quotes, eachLine(func(l string) string { return foldSome(l, false) })},
	{Normalisation, eachLine(norm.NFC.String)},
	{Whitespace, func(s string) string { return strings.Join(strings.Fields(s), "") }},
	{Case, eachLine(strings.ToLower)},
}

// Proven gives the cause if it alone explains the difference, or the one that does, and
// unknown where none does.
func Proven(cause, unknown, old, there string) string {
	named := cause
	if cause == TabsVsSpaces {
		named = Indentation
	}
	other := unknown
	for _, p := range plainly {
		if p.same(old) != p.same(there) {
			continue
		}
		if p.cause == named {
			return cause
		}
		if other == unknown {
			other = p.cause
		}
	}
	return other
}

// endless is a text without blanks at line ends and without the break behind the last line.
func endless(s string) string {
	lines := strings.Split(lf(s), "\n")
	for i, l := range lines {
		lines[i] = strings.TrimRight(l, " \t\r\f\v")
	}
	return strings.Trim(strings.Join(lines, "\n"), "\n")
}

// eachLine is endless after a change of every line.
func eachLine(f func(l string) string) func(string) string {
	return func(s string) string {
		lines := strings.Split(lf(s), "\n")
		for i, l := range lines {
			lines[i] = f(l)
		}
		return endless(strings.Join(lines, "\n"))
	}
}

// foldSome folds the odd spaces of a line, or all that is typographic.
func foldSome(l string, spaces bool) string {
	if !spaces {
		return string(Plain([]byte(l)))
	}
	var b bytes.Buffer
	for _, r := range l {
		f, ok := Fold(r)
		if ok && (f == "" || unicode.IsSpace(r)) {
			b.WriteString(f)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

func lf(s string) string { return strings.ReplaceAll(s, "\r\n", "\n") }
