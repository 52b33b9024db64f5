package grep

import (
	"bytes"
	"strings"
	"testing"
	"testing/fstest"
	"testing/iotest"

	"moltisfs/grep/match"
)

// TestAcrossPieces: a match no longer than the overlap of the pieces of a giant line is found
// once and whole, wherever it lies.
func TestAcrossPieces(t *testing.T) {
	size := defaultSizes()
	size.buffer, size.big, size.pieceLap, size.longLine = 64, 256, 32, 64
	m := compile(t, "need(le)?|^first|last$", match.Options{}) // the longer one, also where a piece shows the shorter
	for at := range 3 * size.big {
		line := strings.Repeat("x", at) + "needle" + strings.Repeat("y", 1000)
		d := FS(fstest.MapFS{"f": {Data: []byte("one\n" + line + "\nfirst\n")}})
		for _, q := range []Query{{Mode: Count}, {Mode: Content, OnlyMatching: true}, {Mode: FilesWithMatches}} {
			q.Matcher = m
			r := searched(t, Walk{Dir: d, Workers: 1}, q, size)
			if r.Totals.Files != 1 || q.Mode != FilesWithMatches && (r.Totals.Matches != 2 || r.Totals.Lines != 2) {
				t.Fatalf("at column %d, mode %d: %+v", at+1, q.Mode, r.Totals)
			}
			if q.Mode == Content && (r.Rows[0].Text != "needle" || r.Rows[0].Column != at+1 || r.Rows[0].Line != 2 || r.Rows[1].Line != 3) {
				t.Fatalf("at column %d: %+v", at+1, r.Rows)
			}
		}
	}
}

// trickle is a file that gives a byte at a time.
type trickle struct{ *bytes.Reader }

func (f trickle) Read(p []byte) (int, error) { return iotest.OneByteReader(f.Reader).Read(p) }
func (f trickle) Info() Info                 { return Info{Kind: KindFile, Size: f.Size()} }
func (f trickle) Close() error               { return nil }

// TestShortReads: a read that gives less than was asked for is not the end of a file.
func TestShortReads(t *testing.T) {
	for _, multiline := range []bool{false, true} {
		for _, lines := range []int{1, 300, 30_000} {
			text := strings.Repeat("a line without it\n", lines) + "the needle\n"
			q := Query{Matcher: compile(t, "needle", match.Options{Multiline: multiline}), Mode: Content, Multiline: multiline}
			r, err := Search(t.Context(), Walk{File: trickle{bytes.NewReader([]byte(text))}, Name: "/f", Workers: 1}, q)
			if err != nil || len(r.Rows) != 1 || r.Rows[0].Line != lines+1 {
				t.Errorf("%d lines, multiline %v: %+v, %v", lines+1, multiline, r, err)
			}
		}
	}
}
