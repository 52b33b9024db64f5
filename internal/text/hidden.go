package text

import "strings"

// Hidden counts the characters of s that are in it but can't be seen: Invisible ones, and control
// characters.
func Hidden(s string) int {
	n := 0
	for _, r := range s {
		if Invisible(r) || r < ' ' && r != '\n' && r != '\t' && r != '\r' {
			n++
		}
	}
	return n
}

// HiddenLines is Hidden, with the first 20 lines that have such characters, counted from 1.
func HiddenLines(s string) (n int, at []int) {
	line := 0
	for l := range strings.Lines(s) {
		line++
		here := Hidden(l)
		if n += here; here > 0 && len(at) < 20 {
			at = append(at, line)
		}
	}
	return n, at
}

// Invisible reports characters that change a text without showing: zero width, direction overrides,
// separators of lines, tags, variation selectors, fillers. A joiner counts too, though some scripts
// and emoji need it: a count of them only says "look closer".
func Invisible(r rune) bool {
	switch {
	case r < 0xa0:
		return r >= 0x7f
	case r == 0xad, r == 0x34f, r == 0x61c, r == 0x115f, r == 0x1160, r == 0x17b4, r == 0x17b5, r == 0x3164, r == 0xffa0:
		return true
	case r < 0x180b:
		return false
	case r <= 0x180f, r >= 0x200b && r <= 0x200f, r >= 0x2028 && r <= 0x202e, r >= 0x2060 && r <= 0x206f:
		return true
	case r >= 0xfe00 && r <= 0xfe0f, r == 0xfeff, r >= 0xfff0 && r <= 0xfffb:
		return true
	case r >= 0x1bca0 && r <= 0x1bca3, r >= 0x1d173 && r <= 0x1d17a, r >= 0xe0000 && r <= 0xe0fff:
		return true
	}
	return false
}
