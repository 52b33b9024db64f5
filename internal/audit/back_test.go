package audit

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// Backwards the log has the same records as forwards, over both logs and rotated files, from any mark on.
func TestReadBack(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "audit")
	l, err := Options{MaxBytes: 16 << 10, Keep: 3}.Open(dir)
	must(t, err)
	start := time.Date(2026, 11, 28, 0, 0, 0, 0, time.UTC)
	for i := range 300 {
		r := Record{Time: start.Add(time.Duration(i) * time.Second), Phase: "outcome", Call: fmt.Sprint(i), Pattern: strings.Repeat("x", i%7*300)}
		if i%3 == 0 {
			must(t, l.AppendChange(r))
		} else {
			must(t, l.Append(r))
		}
	}
	must(t, l.Close())
	f, err := os.OpenFile(filepath.Join(dir, FileName), os.O_APPEND|os.O_WRONLY, 0)
	must(t, err)
	_, err = f.WriteString("{\"torn\n[]\n{\"not yet")
	must(t, err)
	must(t, f.Close())
	var want []string
	for _, pattern := range []string{dir, ChangesDir(dir)} {
		files, err := filepath.Glob(filepath.Join(pattern, FileName+"*"))
		must(t, err)
		for _, name := range files {
			for line := range strings.Lines(string(file(t, name))) {
				if line, whole := strings.CutSuffix(line, "\n"); whole && strings.HasPrefix(line, begun) {
					want = append(want, line)
				}
			}
		}
	}
	slices.SortFunc(want, func(a, b string) int { return strings.Compare(timeIn([]byte(b)), timeIn([]byte(a))) })
	if len(want) < 100 || len(want) == 300 {
		t.Fatalf("%d records are left", len(want))
	}
	var got []string
	marks := []Mark{{}}
	read := func(from Mark, until time.Time, changes bool, most int) (lines []string, at Mark) {
		must(t, ReadBack(t.Context(), dir, from, until, changes, func(line []byte, e *Entry, m Mark, change bool) bool {
			var i int
			if _, err := fmt.Sscan(e.Call, &i); err != nil || change != (i%3 == 0) {
				t.Error(e.Call, change)
			}
			lines, at = append(lines, string(line)), m
			return len(lines) == most
		}))
		return lines, at
	}
	for {
		lines, at := read(marks[len(marks)-1], time.Time{}, false, 7)
		if lines == nil {
			break
		}
		if m, ok := ParseMark(at.String()); !ok || m != at {
			t.Error(at)
		}
		got, marks = append(got, lines...), append(marks, at)
	}
	if !slices.Equal(got, want) {
		t.Errorf("%d records, want %d", len(got), len(want))
	}
	lines, _ := read(Mark{}, start.Add(250*time.Second), true, 0)
	n := slices.IndexFunc(want, func(line string) bool { return strings.Contains(line, `"call":"249"`) })
	rest := slices.DeleteFunc(slices.Clone(want[n:]), func(line string) bool {
		var i int
		_, _ = fmt.Sscanf(line[strings.Index(line, `"call":"`)+8:], "%d", &i)
		return i%3 != 0
	})
	if !slices.Equal(lines, rest) {
		t.Errorf("of changes until then %d, want %d", len(lines), len(rest))
	}
	if err := ReadBack(t.Context(), t.TempDir(), Mark{}, time.Time{}, false, nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("without a log: %v", err)
	}
	for _, bad := range []string{"", "1", "1.", ".1", "1.-1", "1.2.3", "x.1", "99999999999999999999.1"} {
		if m, ok := ParseMark(bad); ok {
			t.Errorf("%q is %v", bad, m)
		}
	}
}
