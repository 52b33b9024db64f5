package edit

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/korean"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/traditionalchinese"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/encoding/unicode/utf32"
)

// coding is one way to write text as bytes. All of them are stateless: decoding may start at any character, which is
// what lets an offset in the text be found in the bytes again. (That is why the ISO-2022 family and HZ are missing.)
type coding struct {
	name string
	enc  encoding.Encoding // nil: UTF-8, the text is the bytes
	bom  string            // the mark that this charset may start with, "" when it has none
}

// charsets is the list of all that can be edited; the first name is the one that results carry, the rest are aliases.
// Aliases are compared without case, blanks, '-', '_', '.' and ':'.
func charsets() []struct {
	names string
	enc   encoding.Encoding
	bom   string
} {
	return []struct {
		names string
		enc   encoding.Encoding
		bom   string
	}{
		{"utf-8 utf8sig utf8bom unicode11utf8 ascii usascii ansix341968", nil, "\xef\xbb\xbf"},
		{"utf-16le unicodefffe", unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM), "\xff\xfe"},
		{"utf-16be unicodefeff", unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM), "\xfe\xff"},
		{"utf-32le ucs4le", utf32.UTF32(utf32.LittleEndian, utf32.IgnoreBOM), "\xff\xfe\x00\x00"},
		{"utf-32be ucs4be", utf32.UTF32(utf32.BigEndian, utf32.IgnoreBOM), "\x00\x00\xfe\xff"},
		{"iso-8859-1 latin1 l1 iso88591 cp819 ibm819", charmap.ISO8859_1, ""},
		{"iso-8859-2 latin2 l2", charmap.ISO8859_2, ""},
		{"iso-8859-3 latin3 l3", charmap.ISO8859_3, ""},
		{"iso-8859-4 latin4 l4", charmap.ISO8859_4, ""},
		{"iso-8859-5 cyrillic", charmap.ISO8859_5, ""},
		{"iso-8859-6 arabic", charmap.ISO8859_6, ""},
		{"iso-8859-7 greek", charmap.ISO8859_7, ""},
		{"iso-8859-8 hebrew", charmap.ISO8859_8, ""},
		{"iso-8859-9 latin5 l5", charmap.ISO8859_9, ""},
		{"iso-8859-10 latin6 l6", charmap.ISO8859_10, ""},
		{"iso-8859-13 latin7 l7", charmap.ISO8859_13, ""},
		{"iso-8859-14 latin8 l8", charmap.ISO8859_14, ""},
		{"iso-8859-15 latin9 l9", charmap.ISO8859_15, ""},
		{"iso-8859-16 latin10 l10", charmap.ISO8859_16, ""},
		{"windows-1250 cp1250 1250", charmap.Windows1250, ""},
		{"windows-1251 cp1251 1251", charmap.Windows1251, ""},
		{"windows-1252 cp1252 1252 ansi", charmap.Windows1252, ""},
		{"windows-1253 cp1253 1253", charmap.Windows1253, ""},
		{"windows-1254 cp1254 1254", charmap.Windows1254, ""},
		{"windows-1255 cp1255 1255", charmap.Windows1255, ""},
		{"windows-1256 cp1256 1256", charmap.Windows1256, ""},
		{"windows-1257 cp1257 1257", charmap.Windows1257, ""},
		{"windows-1258 cp1258 1258", charmap.Windows1258, ""},
		{"windows-874 cp874 tis620 iso885911", charmap.Windows874, ""},
		{"koi8-r", charmap.KOI8R, ""},
		{"koi8-u", charmap.KOI8U, ""},
		{"macintosh macroman mac", charmap.Macintosh, ""},
		{"x-mac-cyrillic maccyrillic", charmap.MacintoshCyrillic, ""},
		{"ibm437 cp437 437 oem", charmap.CodePage437, ""},
		{"ibm850 cp850 850", charmap.CodePage850, ""},
		{"ibm852 cp852 852", charmap.CodePage852, ""},
		{"ibm855 cp855 855", charmap.CodePage855, ""},
		{"ibm866 cp866 866", charmap.CodePage866, ""},
		{"gb18030", simplifiedchinese.GB18030, ""},
		{"gbk gb2312 cp936 ms936 936 euccn chinese", simplifiedchinese.GBK, ""},
		{"big5 big5hkscs cp950 950 ms950", traditionalchinese.Big5, ""},
		{"shift_jis sjis shiftjis cp932 ms932 windows31j 932 mskanji", japanese.ShiftJIS, ""},
		{"euc-jp ujis xeucjp cp51932", japanese.EUCJP, ""},
		{"euc-kr cp949 uhc 949 ks_c_5601-1987 ksc5601 windows949 korean", korean.EUCKR, ""},
	}
}

// plainName folds the spelling of a charset's name.
func plainName(s string) string {
	return strings.Map(func(r rune) rune {
		switch r {
		case '-', '_', '.', ':', ' ':
			return -1
		}
		if 'A' <= r && r <= 'Z' {
			r += 'a' - 'A'
		}
		return r
	}, s)
}

// charsetNamed finds a charset by any of its names. mark says that the name itself asks for a byte order mark
// ("utf-16", "utf-8-sig"), which matters only for a file that is created.
func charsetNamed(name string) (cs coding, mark, ok bool) {
	want := plainName(name)
	switch want {
	case "utf16", "unicode", "ucs2":
		want, mark = "utf16le", true
	case "utf32", "ucs4":
		want, mark = "utf32le", true
	case "utf8sig", "utf8bom":
		mark = true
	}
	for _, c := range charsets() {
		names := strings.Fields(c.names)
		for _, n := range names {
			if plainName(n) == want {
				return coding{names[0], c.enc, c.bom}, mark, true
			}
		}
	}
	return coding{}, false, false
}

// utf8Set is the charset that everything is when nothing speaks against it.
func utf8Set() coding { return coding{name: "utf-8", bom: "\xef\xbb\xbf"} }

// mapped reports whether text and bytes differ, so that offsets have to be translated.
func (c coding) mapped() bool { return c.enc != nil }

// encode writes text in the charset. A character that it cannot hold, or that would read back as another one, is
// reported by its byte offset in text.
func (c coding) encode(text string) (raw []byte, bad int) {
	if !c.mapped() {
		return []byte(text), -1
	}
	if utf8.ValidString(text) {
		raw, err := c.enc.NewEncoder().Bytes([]byte(text))
		if err == nil && c.reads(raw, text) {
			return raw, -1
		}
	}
	for i, r := range text {
		_, n := utf8.DecodeRuneInString(text[i:])
		if r == utf8.RuneError && n <= 1 {
			return nil, i
		}
		one, err := c.enc.NewEncoder().Bytes([]byte(text[i : i+n]))
		if err != nil || !c.reads(one, text[i:i+n]) {
			return nil, i
		}
	}
	// Every character alone is fine and the whole is not: the first is as good a culprit as any.
	return nil, 0
}

func (c coding) reads(raw []byte, text string) bool {
	back, err := c.enc.NewDecoder().Bytes(raw)
	return err == nil && string(back) == text
}

// mark ties an offset in the text to the offset in the bytes where the same character starts.
type mark struct{ text, raw int }

// opaque stands in the text for bytes that are no character of the charset. It is no valid UTF-8, so that nothing a
// caller can send matches it, and as long as U+FFFD, which the decoders write in such places, so that lengths agree.
const opaque = "\xff\xff\xff"

const (
	decodeChunk  = 1024
	decodeSample = 64 << 10 // of the text, from which its size is told
)

// decode gives the text of raw and marks at least every decodeChunk bytes of it.
func (c coding) decode(raw []byte) ([]byte, []mark) {
	dec := c.enc.NewDecoder()
	out := make([]byte, 0, min(len(raw), decodeSample)+decodeChunk)
	marks := make([]mark, 0, len(raw)/decodeChunk+1)
	for pos := 0; pos < len(raw); {
		marks = append(marks, mark{len(out), pos})
		if cap(out)-len(out) < decodeChunk {
			// As long as what is done suggests, and a little more: the text of a large file is taken only once.
			size := len(out) + decodeChunk + 4096
			if pos > 0 {
				size += int(float64(len(out)) / float64(pos) * float64(len(raw)-pos) * 1.03)
			}
			grown := make([]byte, len(out), size)
			copy(grown, out)
			out = grown
		}
		n, used, _ := dec.Transform(out[len(out):len(out)+decodeChunk], raw[pos:], true)
		if used == 0 {
			break // cannot happen: every decoder here takes at least a byte of any input
		}
		chunk := out[len(out) : len(out)+n]
		out = out[:len(out)+n]
		c.markOpaque(chunk, raw[pos:pos+used])
		pos += used
	}
	return out, marks
}

// markOpaque replaces each U+FFFD in chunk that is not written as such in raw.
func (c coding) markOpaque(chunk, raw []byte) {
	const sign = "\ufffd"
	at := bytes.Index(chunk, []byte(sign))
	if at < 0 {
		return
	}
	real, _ := c.enc.NewEncoder().Bytes([]byte(sign))
	for pos := 0; at >= 0; {
		from := c.rawOffset(raw, at)
		to := c.rawOffset(raw, at+len(sign))
		if len(real) == 0 || !bytes.Equal(raw[from:to], real) {
			copy(chunk[at:], opaque)
		}
		pos = at + len(sign)
		if at = bytes.Index(chunk[pos:], []byte(sign)); at >= 0 {
			at += pos
		}
	}
}

// rawOffset tells how many bytes of raw the first n bytes of its text take. An n inside a character counts as its start.
func (c coding) rawOffset(raw []byte, n int) int {
	if n == 0 {
		return 0
	}
	_, used, _ := c.enc.NewDecoder().Transform(make([]byte, n), raw, true)
	return used
}
