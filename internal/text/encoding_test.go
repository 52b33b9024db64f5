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
	} {
		e, mark := Of(c.asked, []byte(c.content))
		if e.Encoding == nil && c.name != "" || e.Encoding != nil && e.Name != c.name || mark != c.mark {
			t.Errorf("%q asked for %q: %+v, mark of %d", c.content, c.asked, e, mark)
		}
	}
}
