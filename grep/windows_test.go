package grep

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"moltisfs/grep/match"
)

// TestRowsOfWindows: a row of a line that several windows of a multiline search share says of it
// what is true of the whole line, and is the line's only one.
func TestRowsOfWindows(t *testing.T) {
	size := defaultSizes()
	size.buffer, size.big, size.multiLap, size.split = 4<<10, 64<<10, 8<<10, 1<<40
	for _, at := range [][]int{{10}, {60_000}, {63_000}, {100_000}, {200_000}, {10, 200_000}, {57_000, 57_340, 120_000}, {299_990}} {
		line := []byte(strings.Repeat(".", 300_000))
		for _, k := range at {
			copy(line[k:], "needle")
		}
		text := "head\n" + string(line) + "\nneedle\n" + string(line) + "\r\n"
		d := FS(fstest.MapFS{"f": &fstest.MapFile{Data: []byte(text)}})
		for _, only := range []bool{false, true} {
			q := Query{Matcher: compile(t, "needle", match.Options{Multiline: true, CRLF: true}), Multiline: true, Mode: Content, OnlyMatching: only}
			r := searched(t, Walk{Dir: d, Workers: 1}, q, size)
			var got, want []string
			for _, row := range r.Rows {
				got = append(got, fmt.Sprint(row.Line, row.Column, row.Bytes, row.Cut))
				if row.Line != 3 && row.Text != string(line[row.From:row.From+len(row.Text)]) {
					t.Errorf("at %v, only %v, line %d: From is %d", at, only, row.Line, row.From)
				}
			}
			for n, l := range map[int][]int{2: at, 3: {0}, 4: at} {
				bytes := len(line)
				if n == 3 {
					bytes = len("needle")
				}
				for i, k := range l {
					if only || i == 0 {
						want = append(want, fmt.Sprint(n, k+1, bytes, n != 3 && !only))
					}
				}
			}
			if len(got) != len(want) || r.Totals.Lines != 3 {
				t.Errorf("at %v, only %v: %v, want %v, %+v", at, only, got, want, r.Totals)
			}
			for _, w := range want {
				if !strings.Contains(strings.Join(got, ","), w) {
					t.Errorf("at %v, only %v: %v, want %v", at, only, got, w)
				}
			}
		}
	}
}
