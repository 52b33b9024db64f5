package grep

import (
	"strings"
	"testing"
	"testing/fstest"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"

	"moltisfs/grep/match"
)

// TestEncodingAnywhere: where in a file its encoding shows, and in what a part the search comes by
// there, changes nothing.
func TestEncodingAnywhere(t *testing.T) {
	t.Parallel()
	size := defaultSizes()
	size.buffer, size.big, size.pieceLap, size.multiLap, size.longLine = 4<<10, 64<<10, 1<<10, 8<<10, 4<<10
	encode := func(e encoding.Encoding, text string) string {
		s, err := e.NewEncoder().String(text)
		must(t, err)
		return s
	}
	latin := encode(charmap.ISO8859_1, "café needle")
	sjis := encode(japanese.ShiftJIS, "ソフトウェア本体の表示予定能力 needle")
	jis := encode(japanese.ISO2022JP, "検索語needle")
	run := strings.Repeat("plain line\n", 30_000)
	dots := strings.Repeat(".", 300_000)
	wide := encode(japanese.ISO2022JP, strings.Repeat("語", 100_000))
	for _, c := range []struct {
		name, text, pattern string
		lines               int
	}{
		{"latin", latin, "café", 1},
		{"latin, behind many lines", run + latin, "café", 1},
		{"latin, in a long line", dots + latin + dots, "café", 1},
		{"latin, at the end of a long line", dots + latin, "café needle$", 1},
		{"latin, behind a long line", dots + "\n" + latin, "café", 1},
		{"ISO-2022-JP", jis, "索語", 1},
		{"ISO-2022-JP, behind many lines", run + jis, "索語", 1},
		{"ISO-2022-JP, in a long line", dots + jis + dots, "索語", 1},
		{"Shift-JIS, in a long line", dots + sjis + dots, "予定", 1},
		{"UTF-8, in a long line", dots + "é" + strings.Repeat("é", 100_000) + "x", "éx", 1},
		// no match within characters
		{"Shift-JIS backslash", sjis, `\\`, 0},
		{"Shift-JIS backslash, behind many lines", run + sjis, `\\`, 0},
		{"Shift-JIS backslash, in a long line", dots + sjis + dots, `\\`, 0},
		{"Shift-JIS backslash, at the end of a long line", dots + encode(japanese.ShiftJIS, "ソフトウェアの表示予定"), `\\`, 0},
		{"Shift-JIS needle, in a long line", dots + sjis + dots, `needle`, 1},
		{"ISO-2022-JP bytes", jis, `\$B`, 0},
		{"ISO-2022-JP bytes, behind many lines", run + jis, `\$B|8l`, 0},
		{"ISO-2022-JP bytes, behind a colour", strings.Repeat("\x1b[1mcoloured 8L\x1b[m\n", 9) + jis, `(?i)8l`, 9},
		{"ISO-2022-JP bytes, in a long line", dots + jis + dots, `\$B|8l`, 0},
		{"ISO-2022-JP bytes, far behind the escape", wide, `[a-z8]l`, 0},
		{"ISO-2022-JP bytes, behind many matches", strings.Repeat("8l\n", 1000) + jis, `8l`, 1000},
	} {
		for _, split := range []int64{100_000, 1 << 30} {
			size.split, size.segment = split, 50_000
			for _, multiline := range []bool{false, true} {
				m := compile(t, c.pattern, match.Options{Multiline: multiline})
				for _, mode := range []Mode{FilesWithMatches, Count, Content} {
					q := Query{Matcher: m, Multiline: multiline, Mode: mode}
					d := FS(fstest.MapFS{"f": &fstest.MapFile{Data: []byte(c.text + "\n")}})
					r := searched(t, Walk{Dir: d, Workers: 2}, q, size)
					if r.Totals.Files != min(c.lines, 1) || mode != FilesWithMatches && r.Totals.Lines != c.lines || r.Skipped.Encoding != 0 {
						t.Errorf("%s, %s, mode %d, multiline %v, split %d: %+v, %v", c.name, c.pattern, mode, multiline, split, r.Totals, r.Skipped.Notes())
					}
				}
			}
		}
	}
}
