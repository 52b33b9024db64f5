// Package letters knows which characters a reader takes for others: typographic for ASCII, odd spaces
// for blanks, the invisible for nothing. It shows what sets two texts apart. It is pure, and its
// functions are safe for concurrent use.
package letters

import (
	"strings"
	"unicode/utf8"
)

// Fold gives the ASCII that stands for a typographic character, "" for an invisible one. ok is
// false for all others. Only characters that a reader or a model takes for the ASCII one are here;
// guillemets and primes of other scripts are not.
func Fold(r rune) (s string, ok bool) {
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
	if OddSpace(r) {
		return " ", true
	}
	return "", false
}

func OddSpace(r rune) bool {
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
		if s, ok := Fold(r); ok {
			out = append(out, s...)
		} else {
			out = append(out, b[i:i+n]...)
		}
		i += n
	}
	return out
}

// Odd gives the characters of s that stand for ASCII ones, or for nothing.
func Odd(s string) string {
	return strings.Map(func(r rune) rune {
		if _, odd := Fold(r); odd {
			return r
		}
		return -1
	}, s)
}
