package grep

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"moltisfs/grep/match"
)

var rounds = flag.Int("rounds", 1500, "random files in TestSeams")

// tiny is sizes small enough that every file meets every seam: chunks, the big buffer, ranges.
func tiny(r *rand.Rand) sizes {
	b := 16 + r.IntN(200)
	return sizes{
		buffer: b, big: 2000, pieceLap: 100, multiLap: 300,
		longLine: 40 + r.IntN(100),
		split:    int64(50 + r.IntN(600)), segment: int64(20 + r.IntN(300)),
	}
}

func randomText(r *rand.Rand) string {
	var b strings.Builder
	for range r.IntN(60) {
		for range r.IntN(8) {
			b.WriteString([]string{"foo", "bar", "x", " ", "é", "fooo", "baz foo", strings.Repeat("y", r.IntN(40))}[r.IntN(8)])
		}
		b.WriteByte('\n')
	}
	s := b.String()
	if r.IntN(3) == 0 {
		s = strings.TrimSuffix(s, "\n")
	}
	return s
}

// plainSearch is Search by the book, for one file.
func plainSearch(text string, re *regexp.Regexp, q Query) (rows []string, lines, matches int) {
	all := strings.Split(text, "\n")
	if all[len(all)-1] == "" {
		all = all[:len(all)-1]
	}
	show := map[int]string{}
	for i, line := range all {
		spans := re.FindAllStringIndex(line, -1)
		if spans == nil {
			continue
		}
		lines++
		matches += len(spans)
		if q.OnlyMatching {
			for _, s := range spans {
				rows = append(rows, fmt.Sprintf("%d:%d:%s", i+1, s[0]+1, line[s[0]:s[1]]))
			}
			continue
		}
		show[i] = fmt.Sprintf("%d:%d:%s", i+1, spans[0][0]+1, line)
		for k := max(0, i-q.Before); k < min(len(all), i+q.After+1); k++ {
			if show[k] == "" {
				show[k] = fmt.Sprintf("%d-%s", k+1, all[k])
			}
		}
	}
	for i := range all {
		if show[i] != "" {
			rows = append(rows, show[i])
		}
	}
	return rows, lines, matches
}

func rowText(r Row) string {
	if r.Context {
		return fmt.Sprintf("%d-%s", r.Line, r.Text)
	}
	return fmt.Sprintf("%d:%d:%s", r.Line, r.Column, r.Text)
}

// seams is how many files are made: fewer in the short run, which the race detector slows down.
func seams() int {
	if testing.Short() {
		return *rounds / 5
	}
	return *rounds
}

// TestSeams compares Search with the plain reading of a file, whatever the sizes of buffers and
// ranges.
func TestSeams(t *testing.T) {
	t.Parallel()
	for i := range seams() {
		r := rand.New(rand.NewPCG(11, uint64(i)))
		text := randomText(r)
		pattern := []string{"foo", "fo+", "^foo", "foo$", "x.*foo", `[a-c]ar`, "^$", "é", "zzz", "y{3}x", "foo|bar x"}[r.IntN(11)]
		q := Query{Mode: Mode(r.IntN(3)), Before: r.IntN(4), After: r.IntN(4), OnlyMatching: r.IntN(4) == 0}
		q.Matcher = compile(t, pattern, match.Options{})
		fs := fstest.MapFS{"f": &fstest.MapFile{Data: []byte(text)}}
		size := tiny(r)
		res := searched(t, Walk{Dir: FS(fs), Workers: 1 + r.IntN(3)}, q, size)
		rows, lines, matches := plainSearch(text, regexp.MustCompile(pattern), q)
		fail := func(what string, got, want any) {
			t.Errorf("round %d, %q mode %d -B%d -A%d -o %v, sizes %+v\n%q\n%s: %v\nwant %v", i, pattern, q.Mode, q.Before, q.After, q.OnlyMatching, size, text, what, got, want)
		}
		switch q.Mode {
		case FilesWithMatches:
			if (res.Totals.Files == 1) != (lines > 0) {
				fail("files", res.Totals.Files, lines)
			}
		case Count:
			if res.Totals.Lines != lines || res.Totals.Matches != matches {
				fail("counts", res.Totals, []int{lines, matches})
			}
		case Content:
			var got []string
			for _, row := range res.Rows {
				got = append(got, rowText(row))
			}
			if !slices.Equal(got, rows) || res.Totals.Rows != len(rows) || res.Totals.Lines != lines {
				fail("rows", strings.Join(got, "\n"), strings.Join(rows, "\n"))
			}
			limit := 1 + r.IntN(5)
			q.Limit, q.Offset = limit, r.IntN(4)
			res = searched(t, Walk{Dir: FS(fs), Workers: 1 + r.IntN(3)}, q, size)
			want := rows[min(q.Offset, len(rows)):]
			want = want[:min(limit, len(want))]
			got = nil
			for _, row := range res.Rows {
				got = append(got, rowText(row))
			}
			if !slices.Equal(got, want) || res.Totals.Rows != len(rows) || res.Totals.Lines != lines {
				fail("page", got, want)
				fail("totals", res.Totals, len(rows))
			}
		}
		if t.Failed() {
			t.FailNow()
		}
	}
}

// TestSeamsMultiline does the same for matches over line ends.
func TestSeamsMultiline(t *testing.T) {
	t.Parallel()
	for i := range seams() / 2 {
		r := rand.New(rand.NewPCG(12, uint64(i)))
		text := randomText(r) + randomText(r)
		pattern := []string{`foo\s+x`, `x\nfoo`, `o\n+`, `\n\n`, "foo", `(?s)bar.{0,9}foo`, "^x", `y+\n`, `o$`}[r.IntN(9)]
		q := Query{Mode: Count, Multiline: true, Matcher: compile(t, pattern, match.Options{Multiline: true})}
		fs := fstest.MapFS{"f": &fstest.MapFile{Data: []byte(text)}}
		size := tiny(r)
		size.big, size.multiLap = 600, 200
		res := searched(t, Walk{Dir: FS(fs), Workers: 2}, q, size)
		matches, touched := 0, map[int]bool{}
		for _, m := range regexp.MustCompile("(?ms)"+pattern).FindAllStringIndex(text, -1) {
			if m[0] == len(text) && (text == "" || text[len(text)-1] == '\n') {
				continue
			}
			matches++
			for p := m[0]; p == m[0] || p < m[1]; p++ {
				touched[strings.Count(text[:p], "\n")] = true
			}
		}
		if res.Totals.Matches != matches || res.Totals.Lines != len(touched) {
			t.Fatalf("round %d %q sizes %+v\n%q\ngot %+v, want %d matches on %d lines", i, pattern, size, text, res.Totals, matches, len(touched))
		}
		q.Mode = Content
		res = searched(t, Walk{Dir: FS(fs), Workers: 2}, q, size)
		for _, row := range res.Rows {
			if !touched[row.Line-1] || strings.Split(text, "\n")[row.Line-1] != row.Text {
				t.Fatalf("round %d %q sizes %+v\n%q\nwrong row %+v", i, pattern, size, text, row)
			}
		}
		if len(res.Rows) != len(touched) {
			t.Fatalf("round %d: %d rows, want %d", i, len(res.Rows), len(touched))
		}
	}
}
