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
