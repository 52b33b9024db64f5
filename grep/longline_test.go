package grep

import (
	"strings"
	"testing"
	"testing/fstest"

	"moltisfs/grep/match"
)

// TestLongLines: a match is found in full in a line that fits the big buffer, and its end at least in one that does not.
func TestLongLines(t *testing.T) {
	middle := "ab" + strings.Repeat("x", 600_000) + "cd"
	size, most := defaultSizes(), 9_000_000
	if testing.Short() {
		size.big, most = size.big/8, most/8
	}
	huge := strings.Repeat("x", most) + "needle" + strings.Repeat("y", 100)
	for _, c := range []struct {
		text, pattern string
		matches, long int
	}{
		{middle, `b.*c`, 1, 0},
		{middle, `x+`, 1, 0},
		{middle, `^a\w+d$`, 1, 0},
		{huge, `x+needle`, 1, 1},
		{huge, `x.*needle`, 1, 1},
		{huge, `x.*y$`, 1, 1},
		{huge, `^xn`, 0, 1},
		{huge, `^needle`, 0, 1},
		{huge, `\bneedle`, 0, 1},
		{huge, `y$`, 1, 1},
	} {
		d := FS(fstest.MapFS{"f": &fstest.MapFile{Data: []byte("first\n" + c.text + "\nlast\n")}})
		m, err := match.Compile(c.pattern, match.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, q := range []Query{{Mode: Count}, {Mode: Content, OnlyMatching: true}, {Mode: Content}, {Mode: FilesWithMatches}} {
			q.Matcher = m
			r, err := searchSized(t.Context(), Walk{Dir: d, Workers: 2}, q, size)
			if err != nil {
				t.Fatal(err)
			}
			rows := 0
			if q.Mode == Content {
				rows = c.matches
			}
			counted := q.Mode == Count || q.OnlyMatching
			if r.Totals.Files != c.matches || counted && r.Totals.Matches != c.matches || len(r.Rows) != rows || r.Skipped.LongLines != c.long {
				t.Errorf("%s mode %d: %+v", c.pattern, q.Mode, r.Totals)
			}
			if rows == 1 && (r.Rows[0].Line != 2 || r.Rows[0].Bytes != len(c.text)) {
				t.Errorf("%s: line %d of %d bytes", c.pattern, r.Rows[0].Line, r.Rows[0].Bytes)
			}
		}
	}
}
