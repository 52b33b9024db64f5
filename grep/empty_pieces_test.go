package grep

import (
	"strings"
	"testing"
	"testing/fstest"

	"moltisfs/grep/match"
)

// TestEmptyMatchesInPieces: empty matches of a line in pieces are as many as those of one that a
// buffer holds.
func TestEmptyMatchesInPieces(t *testing.T) {
	t.Parallel()
	small := defaultSizes()
	small.buffer, small.big, small.pieceLap, small.longLine = 64, 256, 32, 64
	for _, pattern := range []string{"x*", "x*|b", `\b`, "$", "^", "(x|)", "b*", `\B`} {
		m := compile(t, pattern, match.Options{CRLF: true})
		for _, part := range []string{"a", "a b ", "é", "語a", "ab"} {
			for n := 200; n < 700; n += 41 {
				line := strings.Repeat(part, n/len(part))
				for _, text := range []string{line, line + "\n", line + "\r\n", "one\n" + line + "\nlast"} {
					d := FS(fstest.MapFS{"f": {Data: []byte(text)}})
					count := func(size sizes) int {
						r := searched(t, Walk{Dir: d, Workers: 1}, Query{Matcher: m, Mode: Count}, size)
						return r.Totals.Matches
					}
					if got, want := count(small), count(defaultSizes()); got != want {
						t.Fatalf("%s in %d × %q, %q: %d matches, want %d", pattern, n/len(part), part, text[len(text)-4:], got, want)
					}
				}
			}
		}
	}
}
