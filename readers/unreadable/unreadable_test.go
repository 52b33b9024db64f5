package unreadable

import (
	"errors"
	"fmt"
	"math"
	"testing"
	"unicode/utf8"
)

func TestWords(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ got, want string }{
		{Bytes(0), "0 bytes"}, {Bytes(1), "1 byte"}, {Bytes(1234), "1,234 bytes"}, {Bytes(10<<10 - 1), "10,239 bytes"},
		{Bytes(10 << 10), "10 KB"}, {Bytes(10<<20 - 1), "10239 KB"}, {Bytes(10 << 20), "10 MB"},
		{Number(0), "0"}, {Number(999), "999"}, {Number(1000), "1,000"}, {Number(1234567), "1,234,567"}, {Number(-999), "-999"},
		{Number(-1000), "-1,000"}, {Number(math.MinInt64), "-9,223,372,036,854,775,808"},
		{Plural(0, "page"), "0 pages"}, {Plural(1, "page"), "1 page"}, {Plural(1200, "entry"), "1,200 entries"}, {Plural(1, "entry"), "1 entry"},
		{Graphic("naïve name.txt"), "naïve name.txt"}, {Graphic("a\nb"), `"a\nb"`}, {Graphic("a\u202eb"), `"a\u202eb"`}, {Graphic("\xff"), `"\xff"`},
		{Graphic(`a"b`), `"a\"b"`},
		{Entry("dir/\x1b[2J", 3), `"dir/\x1b[2J" (3 bytes)`},
	} {
		if c.got != c.want {
			t.Errorf("%q, want %q", c.got, c.want)
		}
	}
}

func TestClip(t *testing.T) {
	t.Parallel()
	const s = "aé€𝄞z"
	for n := range len(s) + 2 {
		got := Clip(s, n)
		if n >= len(s) && got != s {
			t.Errorf("%d: %q", n, got)
		}
		if n < len(s) && (!utf8.ValidString(got) || len(got) > n+len("…") || got[len(got)-3:] != "…") {
			t.Errorf("%d: %q", n, got)
		}
	}
	if got := Clip("\xbf\xbf\xbf", 2); got != "…" {
		t.Errorf("no character begins in it: %q", got)
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err  Hinter
		want string
	}{
		{&Damaged{"PDF", "it has no pages"}, "the PDF is damaged: it has no pages"},
		{&Encrypted{"PDF"}, "the PDF is encrypted and needs a password"},
		{&Unsupported{"a fax", "of its age", "Call."}, "a fax cannot be read: of its age"},
		{&Limit{"archive", "compression ratio", 0, RatioCap, ""}, "the archive unpacks to more than 300 times its size"},
		{&Limit{"image", "pixels", 2000, 1000, ""}, "the image needs 2,000 pixels; the limit is 1,000"},
		{&Limit{"PDF", "entries", 0, 1000, ""}, "the PDF goes over the limit of 1,000 entries"},
		{&Limit{"PDF", "time", 0, 0, ""}, "the PDF goes over its limit of time"},
	} {
		var h Hinter
		if err := fmt.Errorf("reading: %w", c.err); c.err.Error() != c.want || !errors.As(err, &h) || h.Hint() == "" {
			t.Errorf("%q with %q, want %q", c.err, c.err.Hint(), c.want)
		}
	}
	hints := map[string]bool{}
	for _, what := range []string{"PDF", "image", "archive"} {
		hints[(&Limit{What: what}).Hint()] = true
	}
	if len(hints) != 3 {
		t.Errorf("%v", hints)
	}
}
