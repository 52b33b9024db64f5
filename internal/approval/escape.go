package approval

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Escape makes text safe to show to the person who decides. For example a right-to-left mark, which
// could make "exe.txt" read as "txt.exe", becomes \u{202e}.
//
// Every character that a terminal obeys or that cannot be seen becomes \u{…}: C0 and C1 controls,
// DEL, bidirectional marks, zero-width and other invisible code points, tags, line and paragraph
// separators. Every byte that is no character becomes \x{…}. With lines, line ends and tabs stay. A
// backslash stays as it is: the text is for reading, not for parsing.
func Escape(text string, lines bool) string {
	if isPlain(text, lines) {
		return text
	}
	var b strings.Builder
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x{%02x}`, text[i])
		case invisible(r) && (!lines || r != '\n' && r != '\t'):
			fmt.Fprintf(&b, `\u{%x}`, r)
		default:
			b.WriteString(text[i : i+size])
		}
		i += size
	}
	return b.String()
}

func isPlain(text string, lines bool) bool {
	for i := 0; i < len(text); i++ {
		c := text[i]
		if c >= 0x7f || c < ' ' && (!lines || c != '\n' && c != '\t') {
			return false
		}
	}
	return true
}

// invisible reports whether r shows nothing, or changes how other characters are shown. Combining
// marks and the ordinary blank are fine. Other blanks are not: they look like the ordinary one.
func invisible(r rune) bool {
	switch {
	case r < ' ' || 0x7f <= r && r < 0xa0:
		return true
	case r < 0xa0:
		return false
	case unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Zs, unicode.Co, unicode.Cs):
		return true // Cf holds the bidirectional and zero-width marks, the soft hyphen and the tags
	case unicode.Is(unicode.Variation_Selector, r),
		unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r):
		return true
	}
	return !unicode.IsPrint(r) && !unicode.IsMark(r)
}
