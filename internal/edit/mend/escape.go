package mend

import (
	"fmt"
	"html"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// What may have befallen a text: causes that a refusal names.
const (
	Escaped = "escaped" // backslash or \u escapes
	Entity  = "entity"  // HTML entities
)

// An Unescaping undoes one kind of escapes.
type Unescaping struct {
	Cause string
	Undo  func(string) string
}

// Unescapings lists them, simple ones first.
func Unescapings() (out []Unescaping) {
	for _, kinds := range []string{"u", `"'` + "`", "ntr", "ntr\"'`", `\`, "untr\"'`\\/bf"} {
		out = append(out, Unescaping{Escaped, func(s string) string { return Unbackslash(s, kinds) }})
	}
	return append(out, Unescaping{Entity, unentity})
}

// Unbackslash undoes backslash escapes of the given kinds and leaves all others alone.
func Unbackslash(s, kinds string) string {
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

// An Escaping writes text as a file may have it.
type Escaping struct {
	Cause string
	Do    func(string) string
}

// Escapings lists them.
func Escapings() []Escaping {
	return []Escaping{
		{Entity, strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace},
		{Entity, strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;").Replace},
		{Entity, strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;", "'", "&#39;").Replace},
		{Escaped, func(s string) string { return UnicodeEscapes(s, "%04x") }},
		{Escaped, func(s string) string { return UnicodeEscapes(s, "%04X") }},
		{Escaped, strings.NewReplacer(`"`, `\"`).Replace},
		{Escaped, strings.NewReplacer("\n", `\n`, "\t", `\t`).Replace},
		{Escaped, strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\t", `\t`, "\r", `\r`).Replace},
	}
}

// UnicodeEscapes writes all but ASCII as \u escapes, their digits by format.
func UnicodeEscapes(s, format string) string {
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
