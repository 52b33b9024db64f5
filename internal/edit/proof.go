package edit

import (
	"bytes"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"moltisfs/internal/edit/letters"
)

// A refusal names a cause only where that alone keeps old_string and the region apart, blanks at line
// ends and line endings aside: whoever repairs what is named must not fail again.

// plainly are the causes of which the two texts are compared, and what makes both the same then.
var plainly = []struct {
	cause string
	same  func(s string) string
}{
	{CauseLineEndings, lf},
	{CauseTrailingBlanks, endless},
	{CauseIndentation, eachLine(func(l string) string { return strings.TrimLeft(l, " \t") })},
	{CauseUnicodeSpace, eachLine(func(l string) string { return foldSome(l, true) })},
	{CauseQuotes, eachLine(func(l string) string { return foldSome(l, false) })},
	{CauseNormalisation, eachLine(norm.NFC.String)},
	{CauseWhitespace, func(s string) string { return strings.Join(strings.Fields(s), "") }},
	{CauseCase, eachLine(strings.ToLower)},
}

// proven gives the cause if it alone explains the difference, or the one that does, and
// CauseUnknown where none does. What was undone in old before, such as line numbers, is proven by
// the place that was found.
func proven(cause, old, there string) string {
	switch cause {
	case CauseEscaped, CauseEntity, CauseLineNumbers, CauseStale, CauseApplied, CauseUnknown:
		return cause
	}
	named := cause
	if cause == CauseTabsVsSpaces {
		named = CauseIndentation
	}
	other := CauseUnknown
	for _, p := range plainly {
		if p.same(old) != p.same(there) {
			continue
		}
		if p.cause == named {
			return cause
		}
		if other == CauseUnknown {
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
		return string(letters.Plain([]byte(l)))
	}
	var b bytes.Buffer
	for _, r := range l {
		f, ok := letters.Fold(r)
		if ok && (f == "" || unicode.IsSpace(r)) {
			b.WriteString(f)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}
