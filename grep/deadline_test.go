//go:build linux

package grep

import (
	"bytes"
	"context"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"moltisfs/grep/match"
)

// TestManyMatchesInOneLine: what is done for a match does not depend on the length of its line, or
// this takes many minutes.
func TestManyMatchesInOneLine(t *testing.T) {
	t.Parallel()
	n := 60_000
	if testing.Short() {
		n = 3_000
	}
	text := strings.Repeat("foobar and more text here, padded to be seventy bytes long .......... ", n) + "\nend\n"
	d := FS(fstest.MapFS{"f": &fstest.MapFile{Data: []byte(text)}})
	for _, p := range []string{`foo\s*bar`, `fo+bar`} {
		for _, multiline := range []bool{true, false} {
			for _, only := range []bool{true, false} {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				m := compile(t, p, match.Options{Multiline: multiline})
				q := Query{Matcher: m, Multiline: multiline, Mode: Count, Limit: 3}
				if only {
					q.Mode, q.OnlyMatching = Content, true
				}
				r, err := Search(ctx, Walk{Dir: d, Workers: 2}, q)
				cancel()
				if err != nil || r.Partial || r.Totals.Matches != n || r.Totals.Lines != 1 || only && len(r.Rows) != 3 {
					t.Fatalf("%s multiline %v: %+v, %v", p, multiline, r, err)
				}
			}
		}
	}
}

// expiring is a context that a test lets reach its deadline.
type expiring struct {
	context.Context
	done chan struct{}
}

func (e *expiring) Done() <-chan struct{} { return e.done }
func (e *expiring) Err() error {
	select {
	case <-e.done:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

// logFile is a file with a match at its start, whose reader lets the deadline come after so many
// bytes.
type logFile struct {
	endless
	size int64
}

func (f *logFile) Info() Info { return Info{Kind: KindFile, Size: f.size} }
func (f *logFile) ReadAt(p []byte, off int64) (int, error) {
	n, err := f.endless.ReadAt(p, off)
	if off == 0 {
		copy(p, "needle\n")
	}
	return n, err
}
func (f *logFile) Read(p []byte) (int, error) {
	n, err := f.endless.Read(p)
	copy(p, "needle\n")
	return n, err
}

// TestDeadlineKeepsRows: the rows that were found in the ranges of a big file before the
// deadline are shown. Reading a range again for them has a limit of its own, which a busy machine
// can pass: then the row is counted only, and the search tried once more.
func TestDeadlineKeepsRows(t *testing.T) {
	for _, before := range []int{0, 2} {
		for try := 1; ; try++ {
			ctx := &expiring{t.Context(), make(chan struct{})}
			f := &logFile{size: 1 << 40}
			if f.after = 256 << 20; testing.Short() {
				f.after = 48 << 20
			}
			f.cancel = sync.OnceFunc(func() { close(ctx.done) })
			r, err := Search(ctx, Walk{File: f, Name: "/f", Workers: 2}, Query{Matcher: compile(t, "needle", match.Options{}), Mode: Content, Limit: 9, Before: before})
			if err != nil || !r.Partial || r.Skipped.Deadline != 1 || r.Totals.Lines != 1 {
				t.Fatalf("%+v, %v", r, err)
			}
			if len(r.Rows) == 0 && try < 10 {
				continue
			}
			if len(r.Rows) != 1 || r.Rows[0].Line != 1 {
				t.Fatalf("%+v, %v", r, err)
			}
			break
		}
	}
}

// TestCompleteIsNotPartial: a deadline that passes when everything was looked at has left out
// nothing.
func TestCompleteIsNotPartial(t *testing.T) {
	ctx := &expiring{t.Context(), make(chan struct{})}
	f := &lastRead{bytes.NewReader([]byte("a needle\n")), func() { close(ctx.done) }}
	r, err := Search(ctx, Walk{File: f, Name: "/f", Workers: 1}, Query{Matcher: compile(t, "needle", match.Options{}), Mode: Count})
	if err != nil || r.Partial || r.Totals.Lines != 1 {
		t.Fatalf("%+v, %v", r, err)
	}
}

type lastRead struct {
	*bytes.Reader
	end func()
}

func (f *lastRead) Info() Info { return Info{Kind: KindFile, Size: f.Size()} }
func (f *lastRead) Read(p []byte) (int, error) {
	n, err := f.Reader.Read(p)
	if f.Len() == 0 && f.end != nil {
		f.end()
		f.end = nil
	}
	return n, err
}
func (f *lastRead) Close() error { return nil }
