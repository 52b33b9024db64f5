package text

import (
	"bytes"
	"unicode/utf8"

	"moltisfs/internal/lazy"
)

// marked has UTF-32 before UTF-16, whose mark begins like it.
var marked = [...]*Encoding{UTF8, Lookup("utf-32le"), Lookup("utf-32be"), Lookup("utf-16le"), Lookup("utf-16be")}

// ByMark returns the encoding whose byte order mark the text starts with; nil when it has none.
func ByMark(b []byte) *Encoding {
	for _, e := range marked {
		if bytes.HasPrefix(b, []byte(e.Mark)) {
			return e
		}
	}
	return nil
}

// Detect finds the encoding of the text b by its mark, or by its bytes. Valid UTF-8 always wins:
// text in another encoding is almost never valid by chance. guessed: by statistics.
func Detect(b []byte) (e *Encoding, guessed bool) {
	if e := ByMark(b); e != nil {
		return e, false
	}
	if bytes.IndexByte(b[:min(len(b), sniffLen)], 0) >= 0 {
		if wide := Lookup(Wide(b[:min(len(b), sampleBytes)])); wide != nil {
			return wide, true
		}
		return UTF8, !utf8.Valid(b) // NULs in any other encoding mean binary data
	}
	switch {
	case Escaped(b):
		return Lookup("iso-2022-jp"), true
	case utf8.Valid(b):
		return UTF8, false
	case MostlyUTF8(b):
		return UTF8, true // a few damaged characters do not make it another encoding
	}
	if e := Lookup(Guess(b)); e != nil && e.Unit == 1 {
		return e, true
	}
	return Lookup("windows-1252"), true
}

// Of is the encoding in which a file is read: the one asked for, where a name without a byte order
// leaves that to the file's mark; detected when asked is empty. mark is the length of the byte
// order mark. e is nil when the name is not known.
func Of(asked string, b []byte) (e *Encoding, mark int, guessed bool) {
	if asked == "" {
		e, guessed = Detect(b)
	} else if e = Lookup(asked); AnyOrder(asked) {
		if marked := ByMark(b); marked != nil && marked.Unit == e.Unit {
			e = marked
		}
	}
	if e != nil && bytes.HasPrefix(b, []byte(e.Mark)) {
		mark = len(e.Mark)
	}
	return e, mark, guessed
}

// ToRead is Of for reading only: GBK is read as GB 18030, which holds all of it, and ASCII as UTF-8.
func ToRead(asked string, b []byte) (e *Encoding, mark int) {
	switch e, mark, _ = Of(asked, b); {
	case e == nil:
	case e.Name == "gbk":
		e = Lookup("gb18030")
	case e.Name == "us-ascii":
		e = UTF8
	}
	return e, mark
}

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

// Escaped recognises ISO-2022-JP (RFC 1468): ASCII bytes and an escape that begins Japanese.
func Escaped(b []byte) bool {
	return bytes.IndexByte(b, 0x1b) >= 0 && (bytes.Contains(b, []byte("\x1b$B")) || bytes.Contains(b, []byte("\x1b$@"))) && isASCII(b)
}

func isASCII(b []byte) bool {
	return bytes.IndexFunc(b, func(r rune) bool { return r >= utf8.RuneSelf }) < 0
}

// stateful are sequences that give ASCII bytes other letters: escapes of ISO 2022, brackets of HZ.
var stateful = lazy.Regexp("\x1b\\$(?:[@AB]|[()*+][@-Z])|\x1b\\(I|~\\{(?:[!-w][!-~])+~\\}")

// Stateful names the encoding of the ASCII bytes b in which the meaning of a byte depends on those before it;
// "" for all others. Such a text can't be searched by bytes: two letters may be one kanji.
func Stateful(b []byte) string {
	if bytes.IndexByte(b, 0x1b) < 0 && !bytes.Contains(b, []byte("~{")) || !isASCII(b) {
		return ""
	}
	switch found := stateful().Find(b); {
	case found == nil:
		return ""
	case found[0] == '~':
		return "hz-gb-2312"
	case Escaped(b):
		return "iso-2022-jp"
	}
	return "iso-2022"
}

// Wide recognises UTF-16 and UTF-32 without a mark by where the NULs are: in one position of each
// unit only, and with newlines or spaces that are whole units.
func Wide(b []byte) string {
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
	name, high := "utf-16le", 1 // high: where a unit has its high byte
	if even > odd {
		name, high = "utf-16be", 0
	}
	// Latin text has a NUL in nearly every unit, other scripts in their spaces and newlines.
	units, controls, plain, pairs := len(b)/2, 0, 0, 0
	var rows [256]int
	for i := 0; i+1 < len(b); i += 2 {
		lo, hi := b[i+1-high], b[i+high]
		rows[hi]++
		if textual(lo) && textual(hi) {
			pairs++
		}
		switch {
		case hi == 0 && (lo < ' ' && lo != '\t' && lo != '\n' && lo != '\r' && lo != '\f' || lo == 0):
			controls++
		case hi == 0 && lo < 0x7f:
			plain++
		case hi >= 0xd8 && hi <= 0xdb && i+3 < len(b) && b[i+2+high]&0xfc == 0xdc:
			i += 2 // two surrogates are one character
		case hi >= 0xd8 && hi <= 0xdf || hi >= 0xe0 && hi <= 0xf8 || hi == 0xff && lo >= 0xfe:
			controls++ // a lone surrogate is none, and private characters are rare
		}
	}
	if controls*20 > units || plain == 0 || namesApart(pairs, units-plain) {
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

// wideCJK recognises Chinese, Japanese and Korean in UTF-16, where NULs stand in both places since
// some of their characters end in one: 49 of 50 units are of their blocks or ASCII.
func wideCJK(b []byte) string {
	const fewest = 12 // units; noise passes for so many once in thousands
	for _, big := range []bool{false, true} {
		strange, plain, pairs, units := 0, 0, 0, len(b)/2
		for i := 0; i+1 < len(b); i += 2 {
			u := uint16(b[i]) | uint16(b[i+1])<<8
			if big {
				u = u<<8 | u>>8
			}
			if textual(b[i]) && textual(b[i+1]) {
				pairs++
			}
			switch {
			case u == '\n', u == '\r', u == '\t', u >= ' ' && u < 0x7f:
				plain++
			case u >= 0x3000 && u <= 0x30ff, u >= 0x4e00 && u <= 0x9fff,
				u >= 0xac00 && u <= 0xd7a3, u >= 0xff01 && u <= 0xff5e, u >= 0x2010 && u <= 0x2026:
			default:
				strange++
			}
			if strange*50 > units {
				break // enough is known: a walk asks this of every binary file
			}
		}
		if units >= fewest && strange*50 <= units && !namesApart(pairs, units-plain) {
			if big {
				return "utf-16be"
			}
			return "utf-16le"
		}
	}
	return ""
}

// namesApart tells ASCII with NULs between, as find -print0 writes it, from ideographs: two letters
// make an ideograph too, but ideographs are not that often two letters. others are the other units.
func namesApart(pairs, others int) bool { return pairs*4 > others*3 }

// textual: printable, or white space.
func textual(c byte) bool { return c >= '\t' && c < 0x7f }
