package grep

import (
	"context"
	"strings"
	"testing"
	"testing/fstest"

	"moltisfs/grep/match"
)

// TestFileByName: a file that is asked for by name is searched although it is not text, as in ripgrep. Where
// lines are asked for it is named, and none is shown. In a tree its beginning is searched.
func TestFileByName(t *testing.T) {
	big := strings.Repeat("some line\n", 700_000)
	for name, text := range map[string]string{
		"begins": "\x00\x01\x02needle\nneedle needle\n", "middle": "\x00needle\n" + big + "\x00needle\n", "long": "\x00" + strings.Repeat("x", 12<<20) + "needle",
		"legacy": "\x00\xe9\xff\xfe\x80 needle \xe9\n",
	} {
		d := FS(fstest.MapFS{name: {Data: []byte(text)}})
		for _, pattern := range []string{"needle", "needle|é", "ne{2}dle"} {
			for _, multi := range []bool{false, true} {
				m := compile(t, pattern, match.Options{Multiline: multi})
				for mode, want := range map[Mode]int{FilesWithMatches: 1, Count: 1, Content: 0} {
					f, err := d.OpenFile(name)
					must(t, err)
					r, err := Search(context.Background(), Walk{File: f, Name: "/" + name, Workers: 2}, Query{Matcher: m, Mode: mode, Multiline: multi})
					f.Close()
					must(t, err)
					if len(r.Files) != want || r.Totals.Files != want || len(r.Binary) != 1-want || r.Skipped.Binary != 0 || len(r.Rows) > 0 {
						t.Errorf("%s %s mode %d multiline %v: %+v", name, pattern, mode, multi, r)
					}
					if n := strings.Count(text, "needle"); mode == Count && (r.Totals.Matches != n) {
						t.Errorf("%s %s multiline %v: %d matches, want %d", name, pattern, multi, r.Totals.Matches, n)
					}
				}
				r := searched(t, Walk{Dir: d}, Query{Matcher: m, Multiline: multi})
				if name == "long" {
					if r.Skipped.Binary != 1 {
						t.Errorf("%s %s in a walk: %+v", name, pattern, r)
					}
				} else if len(r.Files) != 0 || len(r.Binary) != 1 {
					t.Errorf("%s %s in a walk: %+v", name, pattern, r)
				}
			}
		}
	}
}

// TestOnlyOnLongLine: -o gives the matches of a line that no buffer holds, not the line; and
// matches count where they are asked for.
func TestOnlyOnLongLine(t *testing.T) {
	x := strings.Repeat("x", 10<<20)
	d := FS(fstest.MapFS{"f": {Data: []byte("first\n" + x + "needle" + x + " needle " + x + "\nneedle\n")}})
	m := compile(t, "needle", match.Options{})
	r := searched(t, Walk{Dir: d}, Query{Matcher: m, Mode: Content, OnlyMatching: true})
	if len(r.Rows) != 3 || r.Totals.Matches != 3 || r.Totals.Rows != 3 || r.Totals.Lines != 2 {
		t.Fatalf("%d rows, totals %+v", len(r.Rows), r.Totals)
	}
	for i, want := range []Row{
		{Path: "f", Line: 2, Text: "needle", Column: 10<<20 + 1, From: 10 << 20, Bytes: 30<<20 + 14},
		{Path: "f", Line: 2, Text: "needle", Column: 20<<20 + 8, From: 20<<20 + 7, Bytes: 30<<20 + 14},
		{Path: "f", Line: 3, Text: "needle", Column: 1, Bytes: 6},
	} {
		if r.Rows[i] != want {
			t.Errorf("%+v, want %+v", r.Rows[i], want)
		}
	}
	for _, mode := range []Mode{FilesWithMatches, Content} {
		if r, err := Search(t.Context(), Walk{Dir: d}, Query{Matcher: m, Mode: mode}); err != nil || r.Totals.Matches != 0 {
			t.Errorf("mode %d: %d matches that were not asked for, %v", mode, r.Totals.Matches, err)
		}
	}
}
