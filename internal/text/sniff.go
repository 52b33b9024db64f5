package text

import (
	"bytes"
	"unicode/utf8"
)

// Content is the finding of Sniff about the first bytes of a file. Reading, searching and editing all ask Sniff.
type Content struct {
	NUL  bool      // it is binary
	Wide *Encoding // UTF-16 or UTF-32
}

// Plain is text with bytes to search as they are; Binary is no text.
var (
	Plain  = Content{}
	Binary = Content{NUL: true}
)

// sniffLen bytes are looked at: a NUL byte in this much makes a file binary, as in git.
const sniffLen = 8000

// Sniff tells text from UTF-16, UTF-32 and binary by the first bytes of a file. One whose first NUL comes after sniffLen is text.
func Sniff(b []byte) Content {
	if e := ByMark(b); e != nil && e.Unit > 1 {
		return Content{Wide: e}
	}
	head := b[:min(len(b), sniffLen)]
	if bytes.IndexByte(head, 0) < 0 {
		return Plain
	}
	if e := Lookup(Wide(head)); e != nil {
		return Content{Wide: e}
	}
	return Binary
}

// IsPlainUTF8 says that b is UTF-8 without an escape to another character set.
func IsPlainUTF8(b []byte) bool { return bytes.IndexByte(b, 0x1b) < 0 && utf8.Valid(b) }
