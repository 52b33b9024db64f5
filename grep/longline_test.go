package grep

import (
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"

	"moltisfs/grep/match"
)

// TestLongLines: a match is found in full in a line that fits the big buffer, and its end at
// least in one that does not.
func TestLongLines(t *testing.T) {
	t.Parallel()
	middle := "ab" + strings.Repeat("x", 600_000) + "cd"
	size := defaultSizes()
	size.big /= 8 // the rules are the same at an eighth of the size, and sixty searches take seconds less
	huge := strings.Repeat("x", 9_000_000/8) + "needle" + strings.Repeat("y", 100)
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
		{huge, `^x+n`, 1, 1},
		{huge, `^x+needley+$`, 1, 1},
		{huge, `^[^n]+needle\w*z`, 0, 1},
		{huge + "\r", `^x.*y$`, 1, 1},
		{huge + "é", `^x+\b.`, 0, 2}, // what only the slow engine can say is not said
		{huge, `^xn`, 0, 1},
		{huge, `^needle`, 0, 1},
		{huge, `\bneedle`, 0, 1},
		{huge, `y$`, 1, 1},
	} {
		d := FS(fstest.MapFS{"f": &fstest.MapFile{Data: []byte("first\n" + c.text + "\nlast\n")}})
		m := compile(t, c.pattern, match.Options{CRLF: true})
		for _, q := range []Query{{Mode: Count}, {Mode: Content, OnlyMatching: true}, {Mode: Content}, {Mode: FilesWithMatches}} {
			q.Matcher = m
			r := searched(t, Walk{Dir: d, Workers: 2}, q, size)
			rows := 0
			if q.Mode == Content {
				rows = c.matches
			}
			long := c.long
			if q.Mode == FilesWithMatches {
				long-- // whether the line matches is known
			}
			if long = min(long, 1); c.text == middle {
				long = 0
			}
			counted := q.Mode == Count || q.OnlyMatching
			if r.Totals.Files != c.matches || counted && r.Totals.Matches != c.matches || len(r.Rows) != rows || r.Skipped.LongLines != long {
				t.Errorf("%s mode %d: %+v, long %d", c.pattern, q.Mode, r.Totals, r.Skipped.LongLines)
			}
			if rows == 1 && (r.Rows[0].Line != 2 || r.Rows[0].Bytes != len(strings.TrimSuffix(c.text, "\r"))) {
				t.Errorf("%s: line %d of %d bytes", c.pattern, r.Rows[0].Line, r.Rows[0].Bytes)
			}
		}
	}
}

// TestLongLinesAreDecided: which lines match is known of lines of any length, whatever the match
// spans.
func TestLongLinesAreDecided(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 1))
	for _, p := range []string{`^a+b`, `^a+b$`, `b.*c.*b`, `c$`, `^[ab]+$`, `a{70,}`, `^(ab?)+c`, `(?i)B+C`, `\Aa*\z`, `^$`, `ca+c`, `é.*a`, `[^a]a+$`} {
		re := regexp.MustCompile(p)
		m := compile(t, p, match.Options{CRLF: true})
		for range 60 {
			var text strings.Builder
			want := 0
			for range 1 + r.IntN(4) {
				var line strings.Builder
				for range r.IntN(8) {
					line.WriteString(strings.Repeat([]string{"a", "ab", "b", "c", "é", "x"}[r.IntN(1+r.IntN(6))], r.IntN(60)))
				}
				if re.MatchString(line.String()) {
					want++
				}
				text.WriteString(line.String() + []string{"\n", "\r\n"}[r.IntN(2)])
			}
			d := FS(fstest.MapFS{"f": &fstest.MapFile{Data: []byte(text.String())}})
			size := sizes{buffer: 32, big: 64 + r.IntN(64), pieceLap: 8, multiLap: 16, longLine: 40, split: int64(50 + r.IntN(600)), segment: int64(20 + r.IntN(300)), automata: 1 << 20}
			count := searched(t, Walk{Dir: d, Workers: 2}, Query{Matcher: m, Mode: Count}, size)
			list := searched(t, Walk{Dir: d, Workers: 2}, Query{Matcher: m}, size)
			if count.Totals.Lines != want || list.Totals.Files != min(want, 1) || list.Skipped.LongLines != 0 {
				t.Fatalf("%s: %d lines, %d files, %d in doubt; want %d lines\n%q", p, count.Totals.Lines, list.Totals.Files, list.Skipped.LongLines, want, text.String())
			}
		}
	}
}
