package readers

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/korean"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/traditionalchinese"
	utf "golang.org/x/text/encoding/unicode"
	"golang.org/x/text/encoding/unicode/utf32"
)

// textEncoding is one row of the encodings that can be named.
type textEncoding struct {
	name    string
	aliases string // separated by spaces, folded as by foldName
	codec   func() encoding.Encoding
	unit    int  // bytes of a code unit: a newline is a whole unit
	big     bool // byte order of a unit
}

// A byte order mark is taken off before a codec sees the text, so that all of them run without.
var textEncodings = [...]textEncoding{
	{name: "utf-8", aliases: "utf8 utf8sig utf8bom ascii usascii", codec: func() encoding.Encoding { return utf.UTF8 }, unit: 1},
	{name: "utf-16le", aliases: "utf16 ucs2 unicode utf16le", codec: func() encoding.Encoding { return utf.UTF16(utf.LittleEndian, utf.IgnoreBOM) }, unit: 2},
	{name: "utf-16be", aliases: "utf16be", codec: func() encoding.Encoding { return utf.UTF16(utf.BigEndian, utf.IgnoreBOM) }, unit: 2, big: true},
	{name: "windows-1252", aliases: "cp1252 ansi 1252", codec: fixed(charmap.Windows1252), unit: 1},
	{name: "iso-8859-1", aliases: "latin1 l1 88591", codec: fixed(charmap.ISO8859_1), unit: 1},
	{name: "gb18030", aliases: "gbk gb2312 cp936 euccn xgbk", codec: fixed(simplifiedchinese.GB18030), unit: 1},
	{name: "shift_jis", aliases: "shiftjis sjis cp932 windows31j mskanji", codec: fixed(japanese.ShiftJIS), unit: 1},
	{name: "euc-jp", aliases: "eucjp ujis", codec: fixed(japanese.EUCJP), unit: 1},
	{name: "euc-kr", aliases: "euckr cp949 uhc ksc56011987", codec: fixed(korean.EUCKR), unit: 1},
	{name: "big5", aliases: "big5hkscs cp950", codec: fixed(traditionalchinese.Big5), unit: 1},
	{name: "windows-1251", aliases: "cp1251 1251", codec: fixed(charmap.Windows1251), unit: 1},
	{name: "koi8-r", aliases: "koi8r koi8", codec: fixed(charmap.KOI8R), unit: 1},
	{name: "koi8-u", aliases: "koi8u", codec: fixed(charmap.KOI8U), unit: 1},
	{name: "windows-1250", aliases: "cp1250 1250", codec: fixed(charmap.Windows1250), unit: 1},
	{name: "windows-1253", aliases: "cp1253 1253", codec: fixed(charmap.Windows1253), unit: 1},
	{name: "windows-1254", aliases: "cp1254 1254", codec: fixed(charmap.Windows1254), unit: 1},
	{name: "windows-1255", aliases: "cp1255 1255", codec: fixed(charmap.Windows1255), unit: 1},
	{name: "windows-1256", aliases: "cp1256 1256", codec: fixed(charmap.Windows1256), unit: 1},
	{name: "windows-1257", aliases: "cp1257 1257", codec: fixed(charmap.Windows1257), unit: 1},
	{name: "windows-1258", aliases: "cp1258 1258", codec: fixed(charmap.Windows1258), unit: 1},
	{name: "windows-874", aliases: "cp874 tis620 iso885911", codec: fixed(charmap.Windows874), unit: 1},
	{name: "iso-8859-2", aliases: "latin2", codec: fixed(charmap.ISO8859_2), unit: 1},
	{name: "iso-8859-3", aliases: "latin3", codec: fixed(charmap.ISO8859_3), unit: 1},
	{name: "iso-8859-4", aliases: "latin4", codec: fixed(charmap.ISO8859_4), unit: 1},
	{name: "iso-8859-5", aliases: "cyrillic", codec: fixed(charmap.ISO8859_5), unit: 1},
	{name: "iso-8859-6", aliases: "arabic", codec: fixed(charmap.ISO8859_6), unit: 1},
	{name: "iso-8859-7", aliases: "greek", codec: fixed(charmap.ISO8859_7), unit: 1},
	{name: "iso-8859-8", aliases: "hebrew", codec: fixed(charmap.ISO8859_8), unit: 1},
	{name: "iso-8859-9", aliases: "latin5", codec: fixed(charmap.ISO8859_9), unit: 1},
	{name: "iso-8859-10", aliases: "latin6", codec: fixed(charmap.ISO8859_10), unit: 1},
	{name: "iso-8859-13", aliases: "latin7", codec: fixed(charmap.ISO8859_13), unit: 1},
	{name: "iso-8859-14", aliases: "latin8", codec: fixed(charmap.ISO8859_14), unit: 1},
	{name: "iso-8859-15", aliases: "latin9", codec: fixed(charmap.ISO8859_15), unit: 1},
	{name: "iso-8859-16", aliases: "latin10", codec: fixed(charmap.ISO8859_16), unit: 1},
	{name: "macintosh", aliases: "macroman mac", codec: fixed(charmap.Macintosh), unit: 1},
	{name: "x-mac-cyrillic", aliases: "maccyrillic", codec: fixed(charmap.MacintoshCyrillic), unit: 1},
	{name: "ibm437", aliases: "cp437 437", codec: fixed(charmap.CodePage437), unit: 1},
	{name: "ibm850", aliases: "cp850 850", codec: fixed(charmap.CodePage850), unit: 1},
	{name: "ibm852", aliases: "cp852 852", codec: fixed(charmap.CodePage852), unit: 1},
	{name: "ibm855", aliases: "cp855 855", codec: fixed(charmap.CodePage855), unit: 1},
	{name: "ibm866", aliases: "cp866 866", codec: fixed(charmap.CodePage866), unit: 1},
	{name: "iso-2022-jp", aliases: "iso2022jp jis", codec: fixed(japanese.ISO2022JP), unit: 1},
	{name: "hz-gb-2312", aliases: "hz hzgb2312", codec: fixed(simplifiedchinese.HZGB2312), unit: 1},
	{name: "utf-32le", aliases: "utf32 utf32le", codec: func() encoding.Encoding { return utf32.UTF32(utf32.LittleEndian, utf32.IgnoreBOM) }, unit: 4},
	{name: "utf-32be", aliases: "utf32be", codec: func() encoding.Encoding { return utf32.UTF32(utf32.BigEndian, utf32.IgnoreBOM) }, unit: 4, big: true},
}

func fixed(e encoding.Encoding) func() encoding.Encoding {
	return func() encoding.Encoding { return e }
}

// Encodings lists the names that Options.Encoding takes, the common ones first. Usual aliases are taken too.
func Encodings() []string {
	names := make([]string, len(textEncodings))
	for i := range textEncodings {
		names[i] = textEncodings[i].name
	}
	return names
}

// lookupEncoding finds a row by name or alias.
func lookupEncoding(name string) (*textEncoding, error) {
	folded := foldName(name)
	for i := range textEncodings {
		e := &textEncodings[i]
		if folded == foldName(e.name) || slices.Contains(strings.Fields(e.aliases), folded) {
			return e, nil
		}
	}
	return nil, &BadEncoding{Name: name, Why: "it is not known here"}
}

// mustEncoding finds a row by its own name; UTF-8 for a name that is none.
func mustEncoding(name string) *textEncoding {
	for i := range textEncodings {
		if textEncodings[i].name == name {
			return &textEncodings[i]
		}
	}
	return &textEncodings[0]
}

// foldName makes the spellings of an encoding's name equal: "ISO_8859-1", "iso8859-1".
func foldName(s string) string {
	return strings.Map(func(r rune) rune {
		switch r {
		case '-', '_', ' ', ':':
			return -1
		}
		return unicode.ToLower(r)
	}, s)
}

// byteOrderMark returns the encoding that the first bytes declare, and how long the mark is.
func byteOrderMark(b []byte) (name string, length int) {
	switch {
	case len(b) >= 3 && b[0] == 0xef && b[1] == 0xbb && b[2] == 0xbf:
		return "utf-8", 3
	case len(b) >= 4 && b[0] == 0xff && b[1] == 0xfe && b[2] == 0 && b[3] == 0:
		return "utf-32le", 4
	case len(b) >= 4 && b[0] == 0 && b[1] == 0 && b[2] == 0xfe && b[3] == 0xff:
		return "utf-32be", 4
	case len(b) >= 2 && b[0] == 0xff && b[1] == 0xfe:
		return "utf-16le", 2
	case len(b) >= 2 && b[0] == 0xfe && b[1] == 0xff:
		return "utf-16be", 2
	}
	return "", 0
}

// decodeWhole turns a whole file into UTF-8. For UTF-8 the result is the file itself, bad bytes included. asked
// overrules detection.
func decodeWhole(raw []byte, asked string) (name string, content []byte, err error) {
	mark, skip := byteOrderMark(raw)
	if asked != "" {
		e, err := lookupEncoding(asked)
		if err != nil {
			return "", nil, err
		}
		if foldName(asked) == "utf16" && (mark == "utf-16le" || mark == "utf-16be") {
			e = mustEncoding(mark) // asked without a byte order: the mark has it
		}
		if e.name != mark {
			skip = 0
		}
		content, err = e.decode(raw[skip:])
		return e.label(skip), content, err
	}
	if mark == "" {
		mark = detect(raw)
	}
	e := mustEncoding(mark)
	content, err = e.decode(raw[skip:])
	return e.label(skip), content, err
}

func (e *textEncoding) label(mark int) string {
	if mark > 0 {
		return e.name + " with BOM"
	}
	return e.name
}

// decode returns UTF-8. Bytes that the encoding does not know become U+FFFD.
func (e *textEncoding) decode(b []byte) ([]byte, error) {
	if e.name == "utf-8" {
		return b, nil
	}
	out, err := e.codec().NewDecoder().Bytes(b)
	if err != nil {
		return nil, &BadEncoding{Name: e.name, Why: fmt.Sprintf("the file is not in it (%v)", err)}
	}
	return out, nil
}

// countReplaced counts what a decoder showed as U+FFFD. In UTF-8 the page counts it, where the bad bytes are still there; a U+FFFD that was written
// as such, which other encodings can hardly hold, is counted with the others.
func (t *Text) countReplaced() {
	name, _, _ := strings.Cut(t.Encoding, " ")
	if e := mustEncoding(name); e.name != "utf-8" {
		t.InvalidBytes += strings.Count(t.Content, "\uFFFD") * e.unit
	}
}

// skipChars returns how many bytes the first n characters take, and how many of the n there were.
func skipChars(b []byte, n int) (size, chars int) {
	for chars < n && size < len(b) {
		if b[size] < utf8.RuneSelf {
			size++
		} else {
			_, w := utf8.DecodeRune(b[size:])
			size += w
		}
		chars++
	}
	return size, chars
}
