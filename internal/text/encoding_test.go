package text

import (
	"strings"
	"testing"
)

// TestEveryNameIsOfOneEncoding: no alias stands in two rows, and all are folded as Lookup folds them.
func TestEveryNameIsOfOneEncoding(t *testing.T) {
	of := map[string]string{}
	for _, e := range encodings {
		for _, n := range append(strings.Fields(e.aliases), fold(e.Name)) {
			if n != fold(n) {
				t.Errorf("%s: the alias %q is not folded", e.Name, n)
			}
			if of[n] != "" {
				t.Errorf("%q is %s and %s", n, of[n], e.Name)
			}
			of[n] = e.Name
		}
	}
}

// TestNames: the spellings of Python's codecs, of iconv and of WHATWG find their encodings.
func TestNames(t *testing.T) {
	for want, names := range map[string]string{
		"utf-8": "utf_8 UTF8 utf_8_sig unicode-1-1-utf-8", "utf-16le": "utf_16_le UTF-16LE csunicode unicodefeff", "utf-16be": "utf_16_be unicodefffe", "utf-32le": "utf_32_le UCS-4LE",
		"iso-8859-1": "latin_1 iso8859_1 ISO_8859-1:1987 csisolatin1 iso-ir-100", "windows-1252": "cp1252 WINDOWS-1252 MS-ANSI ansinew", "windows-1250": "cp1250 MS-EE", "windows-1251": "MS-CYRL",
		"iso-8859-2": "iso8859_2 latin2 ISO_8859-2:1987", "macintosh": "mac_roman MACINTOSH x-mac-roman", "x-mac-cyrillic": "mac_cyrillic MAC-CYRILLIC x-mac-ukrainian", "koi8-u": "KOI8_U koi8-ru",
		"ibm437": "cp437 IBM437", "ibm850": "cp850 850", "ibm858": "cp858", "ibm862": "CP862", "ibm866": "csibm866", "windows-874": "cp874 tis_620 dos-874", "shift_jis": "sjis cp932 x-sjis windows-31j",
		"euc-jp": "eucjp ujis x-euc-jp", "euc-kr": "cp949 uhc ks_c_5601-1987", "big5": "big5hkscs cp950 cn-big5", "gbk": "gb2312 cp936 iso-ir-58", "hz-gb-2312": "hz", "iso-2022-jp": "iso2022_jp", "us-ascii": "ascii 646 ANSI_X3.4-1968",
		"": "martian utf-7 iso2022_kr",
	} {
		for name := range strings.FieldsSeq(names) {
			if e := Lookup(name); want == "" && e != nil || want != "" && (e == nil || e.Name != want) {
				t.Errorf("%s: %+v, want %q", name, e, want)
			}
		}
	}
}

func TestOf(t *testing.T) {
	for _, c := range []struct {
		asked, content, name string
		mark                 int
	}{
		{"", "\xef\xbb\xbfx", "utf-8", 3},
		{"", "\xff\xfe\x00\x00x\x00\x00\x00", "utf-32le", 4},
		{"utf-16", "\xfe\xff\x00a", "utf-16be", 2},
		{"UTF_16", "a\x00", "utf-16le", 0},
		{"utf-16le", "\xfe\xffa\x00", "utf-16le", 0},
		{"latin1", "\xef\xbb\xbfx", "iso-8859-1", 0},
		{"", "caf\xe9 \x80", "windows-1252", 0},
		{"utf-7", "x", "", 0},
		{"windows-1250?", "caf\xe9", "windows-1250", 0}, {"windows-1250?", "caf\u00e9", "utf-8", 0}, {"windows-1250?", "\xff\xfea\x00", "utf-16le", 2},
	} {
		e, mark := Of(c.asked, []byte(c.content))
		if e.Encoding == nil && c.name != "" || e.Encoding != nil && e.Name != c.name || mark != c.mark {
			t.Errorf("%q asked for %q: %+v, mark of %d", c.content, c.asked, e, mark)
		}
	}
}
