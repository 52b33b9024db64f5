package text

import (
	"testing"
)

// TestSniff tells binary files from UTF-16 without a mark.
func TestSniff(t *testing.T) {
	utf16le, utf16be := Content{Wide: Lookup("utf-16le")}, Content{Wide: Lookup("utf-16be")}
	for sample, want := range map[string]Content{
		"\x00needle": Binary, "needle\x00": Binary, "a\x00b\x00": utf16le, "\x00a\x00b\x00\n": utf16be, "\x00\x01\x02\x03": Binary, "plain": Plain,
		"ELF\x00\x00\x00\x01": Binary, "\xff\xfea\x00": utf16le, "n\x00e\x00\xe9\x00d\x00": utf16le, "abc\x00def\x00ghi": Binary,
		"\x00\x00\x4e\x00\x00\x00\x30\x8b\x00\x00\x00\n": {Wide: Lookup("utf-32be")}, "\x01\x00\x00\x00\x02\x00\x00\x00\x03\x00\x00\x00": Binary,
		"a\x00 \x00=\xd8\x1e\xde": utf16le, "a\x00 \x00=\xd8b\x00": Binary, // a character of two surrogates, and a lone one
	} {
		if got := Sniff([]byte(sample)); got != want {
			t.Errorf("%q: %v, want %v", sample, got, want)
		}
	}
}

// A list of names with NULs between, as find -print0 writes it, is no UTF-16, although two letters make an ideograph.
func TestNamesApartAreNotWide(t *testing.T) {
	for _, s := range []string{"abc\x00def\x00ghi", "src/a.go\x00src/b.go\x00cmd/main.go\x00", "ab\x00cd\x00efgh\x00ijklmn\x00", "foo\x00foo\n", "hello\x00world\nabc\n"} {
		if name := Wide([]byte(s)); name != "" {
			t.Errorf("%q is taken for %s", s, name)
		}
	}
	for s, want := range map[string]string{"a\x00b\x00": "utf-16le", "\x00a\x00\n": "utf-16be", "\x1f\x04@\x048\x04 \x00": "utf-16le"} {
		if name := Wide([]byte(s)); name != want {
			t.Errorf("%q is taken for %q, not %s", s, name, want)
		}
	}
}

// TestDeclared: a text's own word about its encoding holds where it explains the bytes, and only where programs look for it.
func TestDeclared(t *testing.T) {
	for text, want := range map[string]string{
		"<?xml version='1.0' encoding='ISO-8859-2'?>\n<a>Erd\xf5s</a>": "iso-8859-2", "<html><head><META CHARSET=windows-1250><p>P\xf8idat": "windows-1250",
		"<meta http-equiv=x content=\"text/html; charset=koi8-r\">\xcd\xc9\xd2": "koi8-r", "@charset \"latin1\";\n/* \xe9 */": "iso-8859-1", "@charset \"latin1\";\n/* \x80 */": "windows-1252",
		"#!/usr/bin/python\n# -*- coding: cp1251 -*-\n\xc4\xe0": "windows-1251", "# encoding: euc-jp\n# \xc6\xfc": "euc-jp", "/* -*- coding: latin-2-unix -*- */ \xb1": "iso-8859-2",
		"# x\nmsgid \"\"\nmsgstr \"\"\n\"Content-Type: text/plain; charset=cp1257\\n\"\n\xe0": "windows-1257", "%x\n\\usepackage[applemac]{inputenc}\n\x8a": "macintosh",
		"# coding: latin-1\nascii\n": "iso-8859-1",
		// The bytes are another, there is no such encoding, it stands where nobody looks, or it says nothing.
		"# coding: shift_jis\n\xff\xff": "", "# coding: utf-16\nx": "", "# coding: martian\nx": "", "a\nb\n# coding: latin-1\n\xe9": "", "text <meta charset=latin1> \xe9": "",
		"# coding: ascii\nx": "", "<?xml version='1.0' encoding='iso-8859-2'?>\x85": "", "decoding: latin1\n\xe9": "", "": "",
	} {
		if e := Declared([]byte(text)); want == "" && e != nil || want != "" && (e == nil || e.Name != want) {
			t.Errorf("%q: %+v, want %q", text, e, want)
		}
	}
	if d := Detect([]byte("# coding: latin-1\n# \u00fc\n")); d.Encoding != UTF8 {
		t.Errorf("valid UTF-8 is taken for %s, which it declares", d.Name)
	}
	if d := Detect([]byte("# coding: koi8-r\n# \xcd\xc9\xd2\n")); d.Name != "koi8-r" || d.Guessed {
		t.Errorf("%+v is no declaration", d)
	}
	if d := Detect([]byte("~{VPND~} text\n")); d.Name != "hz-gb-2312" {
		t.Errorf("HZ is taken for %s", d.Name)
	}
}

func TestWithoutCodes(t *testing.T) {
	for line, want := range map[string]string{
		"\x1b[1;32mok\x1b[0m \x1b[Kx": "ok x", "\x1b]8;;http://x\x1b\\link\x1b]8;;\x07": "link", "\x1b(Bplain": "plain", "\x1b": "\x1b", "a\x1b[": "a\x1b[", "\x1b[1": "\x1b[1",
		"\x1b]0;never ends": "\x1b]0;never ends", "\x1b[1\xc3\xa9m": "\x1b[1\xc3\xa9m", "\x1bZ": "\x1bZ", "": "",
	} {
		if got := string(WithoutCodes([]byte(line))); got != want {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
}
