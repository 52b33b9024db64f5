package unreadable

import (
	"strconv"
	"strings"
)

// Bytes writes a size: "12 bytes", "20 KB".
func Bytes(n int64) string {
	switch {
	case n == 1:
		return "1 byte"
	case n < 10<<10:
		return Number(n) + " bytes"
	case n < 10<<20:
		return strconv.FormatInt(n>>10, 10) + " KB"
	}
	return strconv.FormatInt(n>>20, 10) + " MB"
}

// Number writes 1234567 as 1,234,567.
func Number(n int64) string {
	s := strconv.FormatInt(n, 10)
	from := 0
	if n < 0 {
		from = 1
	}
	for i := len(s) - 3; i > from; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// Plural counts a noun: "1 page", "1,200 entries".
func Plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	if stem, ok := strings.CutSuffix(noun, "ry"); ok {
		noun = stem + "rie"
	}
	return Number(int64(n)) + " " + noun + "s"
}

// Entry shows a name from inside an archive. Such names come from strangers: they are quoted when they hold
// anything that does not show, and cut.
func Entry(name string, size int64) string {
	return Clip(Graphic(name), 1000) + " (" + Bytes(size) + ")"
}

// Graphic is a stranger's name, quoted when it holds anything that does not show.
func Graphic(name string) string {
	if q := strconv.QuoteToGraphic(name); q != `"`+name+`"` {
		return q
	}
	return name
}

// Clip cuts a string to n bytes at a character.
func Clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && s[n]&0xc0 == 0x80 {
		n--
	}
	return s[:n] + "…"
}
