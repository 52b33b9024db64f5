package text

import "testing"

// TestSniff tells binary files from UTF-16 without a mark.
func TestSniff(t *testing.T) {
	utf16le, utf16be := Content{Wide: Lookup("utf-16le")}, Content{Wide: Lookup("utf-16be")}
	for sample, want := range map[string]Content{
		"\x00needle": Binary, "needle\x00": Binary, "a\x00b\x00": utf16le, "\x00a\x00b\x00\n": utf16be, "\x00\x01\x02\x03": Binary, "plain": Plain,
		"ELF\x00\x00\x00\x01": Binary, "\xff\xfea\x00": utf16le, "n\x00e\x00\xe9\x00d\x00": utf16le, "abc\x00def\x00ghi": Binary,
	} {
		if got := Sniff([]byte(sample)); got != want {
			t.Errorf("%q: %v, want %v", sample, got, want)
		}
	}
}
