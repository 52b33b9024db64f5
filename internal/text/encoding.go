// Package text knows how text is written as bytes: the encodings and their names, which of them a
// file is in, and the way from bytes to UTF-8 and back. Reading, searching and editing
// ask here, so that a line that was shown can be quoted in an edit.
//
// A detected encoding may be a guess, and on a few words it is often wrong: callers let theirs
// overrule it. The functions are pure and safe for concurrent use.
package text

import (
	"slices"
	"strings"
	"sync"
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
	"golang.org/x/text/runes"
	"golang.org/x/text/transform"
)

// Encoding is one row of the encodings that can be named.
type Encoding struct {
	Name    string
	Codec   encoding.Encoding // of the text behind the mark
	Unit    int               // bytes of a code unit: a newline is a whole unit
	Big     bool              // byte order of a unit
	Mark    string            // the byte order mark that a text may start with; empty when it has none
	aliases string            // folded as by fold
	odds    float64           // against a text being in it, in nats; 0: it is never guessed
	common  [2]byte           // the first and the last lead byte of its frequent ideographs, where it has any
}

// The marks of Unicode's encodings.
const (
	markUTF8    = "\xef\xbb\xbf"
	markUTF16LE = "\xff\xfe"
	markUTF16BE = "\xfe\xff"
	markUTF32LE = "\xff\xfe\x00\x00"
	markUTF32BE = "\x00\x00\xfe\xff"
)

// encodings begins with the common ones.
var encodings = [...]Encoding{
	{Name: "utf-8", aliases: "utf8sig utf8bom unicode11utf8 unicode20utf8", Codec: utf.UTF8, Unit: 1, Mark: markUTF8},
	{Name: "utf-16le", aliases: "utf16 ucs2 unicode csunicode iso10646ucs2 unicodefeff", Codec: utf.UTF16(utf.LittleEndian, utf.IgnoreBOM), Unit: 2, Mark: markUTF16LE},
	{Name: "utf-16be", aliases: "unicodefffe", Codec: utf.UTF16(utf.BigEndian, utf.IgnoreBOM), Unit: 2, Big: true, Mark: markUTF16BE},
	{Name: "windows-1252", aliases: "cp1252 ansi 1252 msansi ansinew", Codec: charmap.Windows1252, Unit: 1, odds: 0.15},
	{Name: "iso-8859-1", aliases: "latin1 l1 88591 cp819 ibm819 isoir100 csisolatin1 iso885911987", Codec: charmap.ISO8859_1, Unit: 1, odds: 0.1},
	{Name: "gb18030", Codec: simplifiedchinese.GB18030, Unit: 1, odds: 0.2, common: [2]byte{0xb0, 0xd7}},
	{Name: "shift_jis", aliases: "sjis cp932 ms932 windows31j 932 mskanji csshiftjis xsjis", Codec: japanese.ShiftJIS, Unit: 1, odds: 0.1, common: [2]byte{0x88, 0x97}},
	{Name: "euc-jp", aliases: "ujis xeucjp cp51932 cseucpkdfmtjapanese", Codec: japanese.EUCJP, Unit: 1, odds: 0.1, common: [2]byte{0xb0, 0xcf}},
	{Name: "euc-kr", aliases: "cp949 uhc 949 ksc56011987 ksc5601 windows949 korean cseuckr csksc56011987 isoir149 ksc56011989", Codec: korean.EUCKR, Unit: 1, odds: 0.1, common: [2]byte{0xb0, 0xc8}},
	{Name: "big5", aliases: "big5hkscs cp950 950 ms950 cnbig5 csbig5 xxbig5", Codec: traditionalchinese.Big5, Unit: 1, odds: 0.1, common: [2]byte{0xa4, 0xc6}},
	{Name: "windows-1251", aliases: "cp1251 1251 mscyrl", Codec: charmap.Windows1251, Unit: 1, odds: 0.1},
	{Name: "koi8-r", aliases: "koi8 koi cskoi8r", Codec: charmap.KOI8R, Unit: 1, odds: 0.5},
	{Name: "koi8-u", aliases: "koi8ru", Codec: charmap.KOI8U, Unit: 1, odds: 0.6},
	{Name: "windows-1250", aliases: "cp1250 1250 msee", Codec: charmap.Windows1250, Unit: 1, odds: 0.2},
	{Name: "windows-1253", aliases: "cp1253 1253 msgreek", Codec: charmap.Windows1253, Unit: 1, odds: 0.4},
	{Name: "windows-1254", aliases: "cp1254 1254 msturk", Codec: charmap.Windows1254, Unit: 1, odds: 0.5},
	{Name: "windows-1255", aliases: "cp1255 1255 mshebr", Codec: charmap.Windows1255, Unit: 1, odds: 0.4},
	{Name: "windows-1256", aliases: "cp1256 1256 msarab", Codec: charmap.Windows1256, Unit: 1, odds: 0.4},
	{Name: "windows-1257", aliases: "cp1257 1257 winbaltrim", Codec: charmap.Windows1257, Unit: 1, odds: 0.5},
	{Name: "windows-1258", aliases: "cp1258 1258", Codec: charmap.Windows1258, Unit: 1, odds: 2},
	{Name: "windows-874", aliases: "cp874 tis620 iso885911 dos874 tis6200 tis62025331 xwindows874", Codec: charmap.Windows874, Unit: 1, odds: 0.4},
	{Name: "iso-8859-2", aliases: "latin2 l2 isoir101 csisolatin2 iso885921987", Codec: charmap.ISO8859_2, Unit: 1, odds: 0.3},
	{Name: "iso-8859-3", aliases: "latin3 l3 isoir109 csisolatin3 iso885931988", Codec: charmap.ISO8859_3, Unit: 1, odds: 2},
	{Name: "iso-8859-4", aliases: "latin4 l4 isoir110 csisolatin4 iso885941988", Codec: charmap.ISO8859_4, Unit: 1},
	{Name: "iso-8859-5", aliases: "cyrillic isoir144 csisolatincyrillic iso885951988", Codec: charmap.ISO8859_5, Unit: 1, odds: 1},
	{Name: "iso-8859-6", aliases: "arabic asmo708 ecma114 isoir127 csisolatinarabic iso885961987", Codec: charmap.ISO8859_6, Unit: 1, odds: 1},
	{Name: "iso-8859-7", aliases: "greek ecma118 elot928 greek8 isoir126 csisolatingreek iso885971987 suneugreek", Codec: charmap.ISO8859_7, Unit: 1, odds: 0.5},
	{Name: "iso-8859-8", aliases: "hebrew isoir138 csisolatinhebrew iso885981988 visual iso88598e", Codec: charmap.ISO8859_8, Unit: 1, odds: 1},
	{Name: "iso-8859-9", aliases: "latin5 l5 isoir148 csisolatin5 iso885991989", Codec: charmap.ISO8859_9, Unit: 1, odds: 0.6},
	{Name: "iso-8859-10", aliases: "latin6 l6 isoir157 csisolatin6", Codec: charmap.ISO8859_10, Unit: 1},
	{Name: "iso-8859-13", aliases: "latin7 l7", Codec: charmap.ISO8859_13, Unit: 1, odds: 1},
	{Name: "iso-8859-14", aliases: "latin8 l8 isoceltic isoir199", Codec: charmap.ISO8859_14, Unit: 1, odds: 4},
	{Name: "iso-8859-15", aliases: "latin9 l9 csisolatin9 isoir203", Codec: charmap.ISO8859_15, Unit: 1, odds: 1},
	{Name: "iso-8859-16", aliases: "latin10 l10 isoir226", Codec: charmap.ISO8859_16, Unit: 1},
	{Name: "macintosh", aliases: "macroman mac xmacroman csmacintosh applemac", Codec: charmap.Macintosh, Unit: 1, odds: 2},
	{Name: "x-mac-cyrillic", aliases: "maccyrillic xmacukrainian", Codec: charmap.MacintoshCyrillic, Unit: 1, odds: 3},
	{Name: "ibm437", aliases: "cp437 437 oem cspc8codepage437", Codec: charmap.CodePage437, Unit: 1, odds: 2.2},
	{Name: "ibm850", aliases: "cp850 850 cspc850multilingual", Codec: charmap.CodePage850, Unit: 1, odds: 2},
	{Name: "ibm852", aliases: "cp852 852 cspcp852", Codec: charmap.CodePage852, Unit: 1, odds: 2.2},
	{Name: "ibm855", aliases: "cp855 855 csibm855", Codec: charmap.CodePage855, Unit: 1, odds: 4},
	{Name: "ibm858", aliases: "cp858 858", Codec: charmap.CodePage858, Unit: 1},
	{Name: "ibm860", aliases: "cp860 860", Codec: charmap.CodePage860, Unit: 1},
	{Name: "ibm862", aliases: "cp862 862", Codec: charmap.CodePage862, Unit: 1},
	{Name: "ibm863", aliases: "cp863 863", Codec: charmap.CodePage863, Unit: 1},
	{Name: "ibm865", aliases: "cp865 865", Codec: charmap.CodePage865, Unit: 1},
	{Name: "ibm866", aliases: "cp866 866 csibm866", Codec: charmap.CodePage866, Unit: 1, odds: 1},
	{Name: "iso-2022-jp", aliases: "jis csiso2022jp", Codec: japanese.ISO2022JP, Unit: 1},
	{Name: "hz-gb-2312", aliases: "hz", Codec: simplifiedchinese.HZGB2312, Unit: 1},
	{Name: "utf-32le", aliases: "utf32 ucs4 ucs4le", Codec: utf32.UTF32(utf32.LittleEndian, utf32.IgnoreBOM), Unit: 4, Mark: markUTF32LE},
	{Name: "utf-32be", aliases: "ucs4be", Codec: utf32.UTF32(utf32.BigEndian, utf32.IgnoreBOM), Unit: 4, Big: true, Mark: markUTF32BE},
	// A file in GBK is read as GB 18030; written in GBK, it must hold nothing beyond GBK.
	{Name: "gbk", aliases: "gb2312 cp936 ms936 936 euccn xgbk chinese csgb2312 csiso58gb231280 gb231280 isoir58 eucgb2312cn", Codec: simplifiedchinese.GBK, Unit: 1},
	// A file in ASCII is read as UTF-8; written in ASCII, it must hold nothing beyond ASCII.
	{Name: "us-ascii", aliases: "ascii ansix341968 isoir6 iso646us us ibm367 cp367 csascii ansix341986 646", Codec: asciiCodec{}, Unit: 1},
}

// asciiCodec knows the characters below 0x80.
type asciiCodec struct{}

func (asciiCodec) NewDecoder() *encoding.Decoder {
	return &encoding.Decoder{Transformer: below(utf8.RuneError)}
}
func (asciiCodec) NewEncoder() *encoding.Encoder { return &encoding.Encoder{Transformer: below('?')} }

func below(instead rune) transform.Transformer {
	return runes.Map(func(r rune) rune {
		if r < utf8.RuneSelf {
			return r
		}
		return instead
	})
}

// byName finds a row by its folded name or alias.
var byName = sync.OnceValue(func() map[string]*Encoding {
	m := map[string]*Encoding{}
	for i := range encodings {
		e := &encodings[i]
		m[fold(e.Name)] = e
		for _, a := range strings.Fields(e.aliases) {
			m[a] = e
		}
	}
	return m
})

// UTF8 is the encoding of a file when nothing speaks against it.
var UTF8 = &encodings[0]

// Names lists the encodings, the common ones first. Lookup knows usual aliases too.
func Names() []string {
	names := make([]string, len(encodings))
	for i := range encodings {
		names[i] = encodings[i].Name
	}
	return names
}

// Lookup finds an encoding by any of its names; nil when it is not known.
func Lookup(name string) *Encoding { return byName()[fold(name)] }

// fold makes the spellings of an encoding's name equal: "ISO_8859-1", "iso8859-1".
func fold(s string) string {
	return strings.Map(func(r rune) rune {
		switch r {
		case '-', '_', '.', ':', ' ':
			return -1
		}
		return unicode.ToLower(r)
	}, s)
}

// AnyOrder says that the name leaves the byte order open, which a mark then decides: "utf-16".
func AnyOrder(name string) bool {
	return slices.Contains([]string{"utf16", "unicode", "ucs2", "utf32", "ucs4"}, fold(name))
}

// AsksForMark says that a file of this name begins with a byte order mark: "utf-16", "utf-8-sig".
func AsksForMark(name string) bool {
	return AnyOrder(name) || slices.Contains([]string{"utf8sig", "utf8bom"}, fold(name))
}

// Stateful says that the meaning of a byte depends on those before it.
func (e *Encoding) Stateful() bool { return e.Name == "iso-2022-jp" || e.Name == "hz-gb-2312" }

// EndsInASCII: the last byte of a character may be one of ASCII, so a letter may be half a
// character.
func (e *Encoding) EndsInASCII() bool {
	return slices.Contains([]string{"shift_jis", "gb18030", "gbk", "big5", "euc-kr"}, e.Name)
}
