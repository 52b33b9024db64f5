package text

import (
	"strings"
	"testing"
)

// undecodable has bytes that are no text of their encoding.
var undecodable = []struct{ name, raw string }{
	{"utf-8", "a\xff"}, {"utf-8", "\xed\xa0\x80"}, {"us-ascii", "caf\x80"}, {"us-ascii", "é"},
	{"utf-16le", "a\x00b"}, {"utf-16le", "a\x00\x00\xd8b\x00"}, {"utf-16le", "\x00\xdca\x00"}, {"utf-16be", "\x00a\xd8\x00"}, {"utf-16be", "\x00ab"},
	{"utf-32le", "a\x00\x00"}, {"utf-32le", "\x00\xd8\x00\x00"}, {"utf-32be", "\x00\x11\x00\x00"}, {"utf-32le", "abcd"}, {"utf-32be", "text"},
	{"shift_jis", "a\x81"}, {"shift_jis", "\x81\x20"}, {"gbk", "\x81\xff"}, {"gbk", "a\x81"}, {"gb18030", "\x81\x30\x81"}, {"gb18030", "\xff"},
	{"big5", "\x81\x81"}, {"big5", "a\xa4"}, {"euc-jp", "\xa4"}, {"euc-jp", "\x8f\xa1"}, {"euc-kr", "\xb0"}, {"euc-kr", "\xff\xff"},
	{"iso-2022-jp", "\x1b$B\x24"}, {"iso-2022-jp", "\x80"}, {"hz-gb-2312", "~{\x80"}, {"hz-gb-2312", "~{VP\xff~}"},
	{"windows-1252", "a\x81"}, {"windows-1253", "\xaa"}, {"iso-8859-6", "\xa1"}, {"windows-874", "\xdb"}, {"windows-1255", "\xd9"}, {"iso-8859-8", "\xa1"},
}

func TestExact(t *testing.T) {
	for _, c := range undecodable {
		if out, ok := Lookup(c.name).Exact([]byte(c.raw)); ok {
			t.Errorf("%q in %s is %q", c.raw, c.name, out)
		}
	}
	for _, name := range []string{"utf-8", "utf-16le", "utf-16be", "utf-32le", "utf-32be", "gb18030"} {
		raw, _ := Lookup(name).Encode("a\ufffdb")
		if out, ok := Lookup(name).Exact(raw); !ok || string(out) != "a\ufffdb" {
			t.Errorf("a U+FFFD in %s: %q, %v", name, out, ok)
		}
	}
}

// textFor has letters of the encoding, and ASCII before and behind them, long enough that no place near the middle is certain.
func textFor(name string) string {
	for _, s := range []string{"z\ufffd\U0001f600\U00010000", "字ソ表能予。カ", "我能吞下玻璃镕", "許功蓋我能", "나는유리를", "ќ№ё", "ґїєЖ", "жщъ", "łęőř", "ğışé", "ēšģ", "λόγοςΏ", "אבג", "سلام", "กขฃ", "éüß", "ơ₫é", "éñ", "plain"} {
		long := "a\n" + strings.Repeat(s, 3) + "z " + s + "\r\n"
		if raw, bad := Lookup(name).Encode(long); bad < 0 {
			if back, ok := Lookup(name).Exact(raw); ok && string(back) == long {
				return long
			}
		}
	}
	return "plain\n"
}

// Parts side by side are the whole text in every encoding, wherever they cut.
func TestPartsAreTheText(t *testing.T) {
	for _, name := range Names() {
		e, text := Lookup(name), textFor(name)
		raw, _ := e.Encode(text)
		for n := 1; n <= len(raw)+1; n++ {
			var all strings.Builder
			last := 0
			for lo := 0; lo < len(raw); lo += n {
				part, from, to, ok := e.Part(raw, lo, min(lo+n, len(raw)), true)
				if !ok || from < last {
					t.Fatalf("%s: %d bytes from %d on are %q, %d to %d", name, n, lo, part, from, to)
				}
				all.Write(part)
				last = to
			}
			if all.String() != text {
				t.Fatalf("%s: parts of %d bytes are %q", name, n, all.String())
			}
		}
		for lo := range raw { // what begins at a certain place reads like the whole
			if at := e.Certain(raw[:lo]); at >= 0 && !e.Stateful() {
				a, from, _, ok := e.Part(raw, lo, len(raw), true)
				b, again, _, okAgain := e.Part(raw[at:], lo-at, len(raw)-at, true)
				if string(a) != string(b) || from != again+at || !ok || !okAgain {
					t.Fatalf("%s: from %d on, with %d certain: %q and %q", name, lo, at, a, b)
				}
			}
		}
	}
}
