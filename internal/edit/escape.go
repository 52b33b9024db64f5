package edit

import (
	"fmt"
	"html"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"moltisfs/internal/edit/letters"
)

// unescaping undoes one kind of escapes.
type unescaping struct {
	cause string
	kinds string // the letters behind the backslash; "" for entities
	undo  func(string) string
}

// unescapings lists them, simple ones first.
func unescapings() (out []unescaping) {
	for _, kinds := range []string{"u", `"'` + "`", "ntr", "ntr\"'`", `\`, "untr\"'`\\/bf"} {
		out = append(out, unescaping{CauseEscaped, kinds, func(s string) string { return unbackslash(s, kinds) }})
	}
	return append(out, unescaping{CauseEntity, "", unentity})
}

// unbackslash undoes backslash escapes of the given kinds and leaves all others alone.
func unbackslash(s, kinds string) string {
	if strings.IndexByte(s, '\\') < 0 {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		c := s[i+1]
		if strings.IndexByte(kinds, c) < 0 {
			b.WriteString(s[i : i+2]) // both, so that the second of two backslashes does not start an escape
			i++
			continue
		}
		i++
		switch c {
		case 'n':
			b.WriteByte('\n')
		case 't':
			b.WriteByte('\t')
		case 'r':
			b.WriteByte('\r')
		case 'b':
			b.WriteByte('\b')
		case 'f':
			b.WriteByte('\f')
		case 'u':
			r, n := unhex(s[i+1:])
			if n == 0 {
				b.WriteString(`\u`)
				continue
			}
			i += n
			if utf16.IsSurrogate(r) && strings.HasPrefix(s[i+1:], `\u`) {
				if low, m := unhex(s[i+3:]); m == 4 && utf16.DecodeRune(r, low) != utf8.RuneError {
					r = utf16.DecodeRune(r, low)
					i += 6
				}
			}
			b.WriteRune(r)
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

// unhex reads XXXX or {X…} and gives the bytes it took, 0 for anything else.
func unhex(s string) (rune, int) {
	n := 4
	digits := s
	if strings.HasPrefix(s, "{") {
		n = strings.IndexByte(s, '}') + 1
		if n < 3 || n > 8 {
			return 0, 0
		}
		digits = s[1 : n-1]
	} else if len(s) < 4 {
		return 0, 0
	} else {
		digits = s[:4]
	}
	v, err := strconv.ParseUint(digits, 16, 32)
	if err != nil || v > utf8.MaxRune {
		return 0, 0
	}
	return rune(v), n
}

// unentity decodes the HTML entities that end in a semicolon.
func unentity(s string) string {
	var b strings.Builder
	for {
		i := strings.IndexByte(s, '&')
		if i < 0 {
			b.WriteString(s)
			return b.String()
		}
		b.WriteString(s[:i])
		s = s[i:]
		n := strings.IndexByte(s[:min(len(s), 12)], ';') + 1
		if n == 0 {
			b.WriteByte('&')
			s = s[1:]
			continue
		}
		got := html.UnescapeString(s[:n])
		if strings.HasSuffix(got, ";") && n > 0 && got != s[:n] && !strings.HasSuffix(s[:n-1], "&semi") {
			got = s[:n] // an entity without semicolon inside: not what was meant
		}
		b.WriteString(got)
		s = s[n:]
	}
}

// escaping writes text as a file may have it.
type escaping struct {
	cause string
	do    func(string) string
}

// escapings lists them.
func escapings() []escaping {
	return []escaping{
		{CauseEntity, strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace},
		{CauseEntity, strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;").Replace},
		{CauseEntity, strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;", "'", "&#39;").Replace},
		{CauseEscaped, func(s string) string { return unicodeEscapes(s, "%04x") }},
		{CauseEscaped, func(s string) string { return unicodeEscapes(s, "%04X") }},
		{CauseEscaped, strings.NewReplacer(`"`, `\"`).Replace},
		{CauseEscaped, strings.NewReplacer("\n", `\n`, "\t", `\t`).Replace},
		{CauseEscaped, strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\t", `\t`, "\r", `\r`).Replace},
	}
}

// unicodeEscapes writes all but ASCII as \u escapes, their digits by format.
func unicodeEscapes(s, format string) string {
	var b strings.Builder
	for _, r := range s {
		switch {
		case r < utf8.RuneSelf:
			b.WriteRune(r)
		case r > 0xffff:
			hi, lo := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u`+format+`\u`+format, hi, lo)
		default:
			fmt.Fprintf(&b, `\u`+format, r)
		}
	}
	return b.String()
}

// systematic says that the escapes of new, from one offset to another, come from what befell old as
// well: in neither string anything of that kind stands bare, and none of them is within a literal,
// where it may stand for itself.
func (u unescaping) systematic(old, new string, from, to int) bool {
	if u.kinds == "" {
		bare := strings.NewReplacer("&amp;", "", "&lt;", "", "&gt;", "", "&quot;", "", "&#34;", "", "&#39;", "")
		return !strings.ContainsAny(bare.Replace(old+new), "&<>") && !u.within(new, from, to)
	}
	for _, c := range u.kinds {
		plain := map[rune]string{'n': "\n", 't': "\t", 'r': "\r"}[c]
		if plain == "" {
			plain = string(c)
		}
		escaped := `\` + string(c)
		if c == 'u' || c == 'b' || c == 'f' || c == '/' || !strings.Contains(old+new, escaped) {
			continue
		}
		if rest := strings.ReplaceAll(old+"\x00"+new, escaped, ""); strings.Contains(rest, plain) ||
			!strings.Contains(old, escaped) {
			return false
		}
	}
	return u.kinds == `\` || !u.within(new, from, to)
}

// within says that one of the escapes stands between quotes that are not escaped like it.
func (u unescaping) within(s string, from, to int) bool {
	var open byte
	quote := func(c byte) (inside bool) {
		switch open {
		case 0:
			open = c
		case c:
			open = 0
		default:
			return true
		}
		return false
	}
	for i := 0; i < len(s); i++ {
		own := i >= from && i < to
		c, n, escaped := s[i], 1, false
		if u.kinds != "" && c == '\\' && i+1 < len(s) {
			c, n = s[i+1], 2
			if escaped = strings.IndexByte(u.kinds, c) >= 0; !escaped {
				i++
				continue
			}
		} else if u.kinds == "" && c == '&' {
			if end := strings.IndexByte(s[i:min(len(s), i+8)], ';'); end > 0 {
				if got := html.UnescapeString(s[i : i+end+1]); len(got) == 1 {
					c, n, escaped = got[0], end+1, true
				}
			}
		}
		if escaped && own && (c == 'n' || c == 't') && i > 0 && s[i-1] == ' ' && strings.HasPrefix(s[i+n:], " ") {
			return true // prose speaks of it
		}
		isQuote := c == '"' || c == '\'' || c == '`'
		switch {
		case c == '\n' && !escaped, escaped && c == 'n' && open == 0:
			open = 0
		case isQuote && c == '\'' && apostrophe(s[:i], s[i+n:]):
		case isQuote:
			if quote(c) && escaped && own {
				return true
			}
		case escaped && own && open != 0 && c != '\\':
			return true
		}
		i += n - 1
	}
	return false
}

// apostrophe tells that of "it's" and "don't" from a quote.
func apostrophe(before, after string) bool {
	r, _ := utf8.DecodeLastRuneInString(before)
	if len(after) == 0 || !letters.IsWord(r) || after[0] != 's' && after[0] != 't' {
		return false
	}
	next, _ := utf8.DecodeRuneInString(after[1:])
	return !letters.IsWord(next) && next != '\'' && next != '\\'
}
