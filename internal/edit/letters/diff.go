package letters

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"moltisfs/internal/edit/diff"
)

const (
	maxDiffLines = 8
	maxDiffBytes = 2048
	lineContext  = 24 // characters shown on either side of a difference
)

// Diff shows what separates two texts, line by line: [-sent-]{+in the file+}, blanks and odd
// characters visible there. first is the number of have's first line. Same lines are left out.
func Diff(sent, have string, first int) string {
	a, b := diff.Lines([]byte(lf(sent))), diff.Lines([]byte(lf(have)))
	cs := diff.Changes(a, b)
	if len(cs) == 0 && sent != have { // only the line breaks differ
		a, b = diff.Lines([]byte(sent)), diff.Lines([]byte(have))
		cs = diff.Changes(a, b)
	}
	var out strings.Builder
	shown := 0
	put := func(format string, args ...any) bool {
		if shown == maxDiffLines || out.Len() > maxDiffBytes {
			return false
		}
		shown++
		fmt.Fprintf(&out, format, args...)
		return true
	}
	left := 0
	for _, c := range cs {
		i, j := c.A0, c.B0
		for i < c.A1 || j < c.B1 {
			ok := false
			switch {
			case i < c.A1 && j < c.B1:
				ok = put("line %d: %s\n", first+j, charDiff(string(a[i]), string(b[j])))
				i, j = i+1, j+1
			case i < c.A1:
				ok = put("only sent: [-%s-]\n", visible(short(string(a[i]))))
				i++
			default:
				ok = put("line %d, only in the file: {+%s+}\n", first+j, visible(short(string(b[j]))))
				j++
			}
			if !ok {
				left++
			}
		}
	}
	if left > 0 {
		fmt.Fprintf(&out, "%d line%s more\n", left, strings.Repeat("s", min(left-1, 1)))
	}
	return out.String()
}

func short(s string) string { return Clip(s, 160) }

// charDiff marks the differences of two lines. Long ones are compared by their common ends only.
func charDiff(a, b string) string {
	x, y := []rune(a), []rune(b)
	cs := diff.Runes(x, y)
	// Differences that nearly touch read better as one.
	joined := cs[:0]
	for _, c := range cs {
		if n := len(joined); n > 0 && c.A0-joined[n-1].A1 <= 2 {
			joined[n-1].A1, joined[n-1].B1 = c.A1, c.B1
			continue
		}
		joined = append(joined, c)
	}
	var out strings.Builder
	pos := 0
	for i, c := range joined {
		gap := x[pos:c.A0]
		switch {
		case i == 0 && len(gap) > lineContext:
			out.WriteString("…" + string(gap[len(gap)-lineContext:]))
		case i > 0 && len(gap) > 2*lineContext:
			out.WriteString(string(gap[:lineContext]) + "…" + string(gap[len(gap)-lineContext:]))
		default:
			out.WriteString(string(gap))
		}
		if c.A0 < c.A1 {
			out.WriteString("[-" + visible(short(string(x[c.A0:c.A1]))) + "-]")
		}
		if c.B0 < c.B1 {
			out.WriteString("{+" + visible(short(string(y[c.B0:c.B1]))) + "+}")
		}
		pos = c.A1
	}
	rest := strings.TrimRight(string(x[pos:]), "\r\n")
	if utf8.RuneCountInString(rest) > lineContext {
		rest = string([]rune(rest)[:lineContext]) + "…"
	}
	return out.String() + rest
}

// visible writes blanks as signs and odd characters by their number.
func visible(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, "<%02X>", s[i])
		case r == ' ':
			b.WriteRune('·')
		case r == '\t':
			b.WriteRune('→')
		case r == '\r':
			b.WriteRune('␍')
		case r == '\n':
			b.WriteRune('␊')
		case r == 0xa0:
			b.WriteString("<NBSP>")
		case r == 0x200b:
			b.WriteString("<ZWSP>")
		case r == 0xfeff:
			b.WriteString("<BOM>")
		case r < ' ' || r == 0x7f || OddSpace(r) || unicode.Is(unicode.Mn, r) || unicode.Is(unicode.Cf, r):
			fmt.Fprintf(&b, "<U+%04X>", r)
		default:
			b.WriteRune(r)
			if _, odd := Fold(r); odd {
				fmt.Fprintf(&b, "<U+%04X>", r)
			}
		}
		i += n
	}
	return b.String()
}

// Clip shortens s to about max bytes, at characters, and says so by an ellipsis.
func Clip(s string, max int) string {
	if len(s) <= max {
		return strings.ToValidUTF8(s, "\ufffd")
	}
	cut := max
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return strings.ToValidUTF8(s[:cut], "\ufffd") + "…"
}
