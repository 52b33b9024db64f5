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
		return charset.Wide(head) == ""
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

// detect names the encoding of a text without a byte order mark. Valid UTF-8 always wins: text in another encoding is
// almost never valid by chance.
func detect(b []byte) string {
	if bytes.IndexByte(b[:min(len(b), 8192)], 0) >= 0 {
		if wide := charset.Wide(b[:min(len(b), sampleBytes)]); wide != "" {
			return wide
		}
		return "utf-8"
	}
	if charset.Escaped(b) {
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
