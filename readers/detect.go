package readers

import (
	"bytes"
	"unicode/utf8"

	"moltisfs/internal/charset"
)

// sampleBytes is how much text the detector looks at.
const sampleBytes = 64 << 10

// looksBinary decides by the first bytes that a file is not text in any encoding.
func looksBinary(head []byte, ended bool) bool {
	if _, n := byteOrderMark(head); n > 0 {
		return false
	}
	if len(head) > 8192 {
		head, ended = head[:8192], false
	}
	if bytes.IndexByte(head, 0) >= 0 {
		return wideText(head) == ""
	}
	if validStart(head, ended) {
		return tooManyControls(head, 10)
	}
	if tooManyControls(head, 50) {
		return true
	}
	return binaryMagic(head)
}

// validStart is utf8.Valid for the beginning of a text that may be cut in a character.
func validStart(b []byte, ended bool) bool {
	if utf8.Valid(b) {
		return true
	}
	if ended {
		return false
	}
	for cut := 1; cut < utf8.UTFMax && cut <= len(b); cut++ {
		if tail := b[len(b)-cut:]; utf8.RuneStart(tail[0]) {
			return !utf8.FullRune(tail) && utf8.Valid(b[:len(b)-cut])
		}
	}
	return false
}

// tooManyControls reports whether more than one byte in per is a control character that texts do not use.
func tooManyControls(b []byte, per int) bool {
	n := 0
	for _, c := range b {
		n += int(foreign[c])
	}
	return n*per > len(b)
}

// foreign is 1 for control characters that texts do not use, else 0.
var foreign = func() (t [256]uint8) {
	for c := range 0x20 {
		t[c] = 1
	}
	for _, c := range "\t\n\r\f\b\x1b" {
		t[c] = 0
	}
	return t
}()

// wideText recognises UTF-16 and UTF-32 without a mark by where the NULs are: in one position of each unit only, and
// with newlines or spaces that are whole units.
func wideText(b []byte) string {
	if len(b) < 4 {
		return ""
	}
	b = b[:len(b)&^3]
	var nul [4]int
	for i, c := range b {
		if c == 0 {
			nul[i&3]++
		}
	}
	quads := len(b) / 4
	switch {
	case nul[3] == quads && nul[2] > quads*9/10 && nul[0] == 0:
		return "utf-32le"
	case nul[0] == quads && nul[1] > quads*9/10 && nul[3] == 0:
		return "utf-32be"
	}
	even, odd := nul[0]+nul[2], nul[1]+nul[3]
	if even > 0 && odd > 0 && min(even, odd)*20 > max(even, odd) {
		return wideCJK(b)
	}
	name, big := "utf-16le", false
	if even > odd {
		name, big = "utf-16be", true
	}
	// Latin text has a NUL in nearly every unit; other scripts only in their spaces and newlines, but there always.
	units, controls, plain := len(b)/2, 0, 0
	var rows [256]int
	for i := 0; i+1 < len(b); i += 2 {
		lo, hi := b[i], b[i+1]
		if big {
			lo, hi = hi, lo
		}
		rows[hi]++
		switch {
		case hi == 0 && (lo < ' ' && lo != '\t' && lo != '\n' && lo != '\r' && lo != '\f' || lo == 0):
			controls++
		case hi == 0 && lo < 0x7f:
			plain++
		case hi >= 0xd8 && hi <= 0xdf || hi >= 0xe0 && hi <= 0xf8 || hi == 0xff && lo >= 0xfe:
			controls++ // surrogates are rare, private characters rarer
		}
	}
	if controls*20 > units || plain == 0 {
		return ""
	}
	// Text keeps to few rows of Unicode; only ideographs spread.
	used, ideographs := 0, 0
	for row, n := range rows {
		if n == 0 {
			continue
		}
		if row >= 0x4e && row <= 0x9f || row >= 0xac && row <= 0xd7 {
			ideographs += n
		} else {
			used++
		}
	}
	if used > 12 && ideographs*4 < units {
		return ""
	}
	return name
}

// wideCJK recognises Chinese, Japanese and Korean in UTF-16, where NULs stand in both places because some of their characters end in one: all
// units but one in fifty are of their blocks or ASCII.
func wideCJK(b []byte) string {
	const fewest = 12 // units; noise passes for so many once in thousands
	for _, big := range []bool{false, true} {
		strange, units := 0, len(b)/2
		for i := 0; i+1 < len(b); i += 2 {
			u := uint16(b[i]) | uint16(b[i+1])<<8
			if big {
				u = u<<8 | u>>8
			}
			switch {
			case u == '\n', u == '\r', u == '\t', u >= ' ' && u < 0x7f, u >= 0x3000 && u <= 0x30ff, u >= 0x4e00 && u <= 0x9fff,
				u >= 0xac00 && u <= 0xd7a3, u >= 0xff01 && u <= 0xff5e, u >= 0x2010 && u <= 0x2026:
			default:
				strange++
			}
		}
		if units >= fewest && strange*50 <= units {
			if big {
				return "utf-16be"
			}
			return "utf-16le"
		}
	}
	return ""
}

// detect names the encoding of a text without a byte order mark. Valid UTF-8 always wins: text in another encoding is
// almost never valid by chance.
func detect(b []byte) string {
	if bytes.IndexByte(b[:min(len(b), 8192)], 0) >= 0 {
		if wide := wideText(b[:min(len(b), sampleBytes)]); wide != "" {
			return wide
		}
		return "utf-8"
	}
	if bytes.IndexByte(b, 0x1b) >= 0 && (bytes.Contains(b, []byte("\x1b$B")) || bytes.Contains(b, []byte("\x1b$@"))) && asciiPrefix(b) == len(b) {
		return "iso-2022-jp"
	}
	if utf8.Valid(b) {
		return "utf-8"
	}
	if charset.MostlyUTF8(b) {
		return "utf-8" // a few damaged characters do not make it another encoding
	}
	if e, err := lookupEncoding(charset.Guess(b)); err == nil && e.unit == 1 {
		return e.name
	}
	return "windows-1252"
}
