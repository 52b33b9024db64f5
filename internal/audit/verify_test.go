package audit

import (
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// chained makes a log of several files with records of number 1 to so many.
func chained(t testing.TB, records int) (dir string) {
	t.Helper()
	dir = t.TempDir()
	l, err := Options{MaxBytes: 1500, Keep: 100}.Open(dir)
	must(t, err)
	defer l.Close()
	for i := range records {
		must(t, l.Append(Record{Time: time.Unix(int64(i), 0), Phase: "outcome", Tool: "Read", Error: fmt.Sprint("record ", i)}))
	}
	return dir
}

func check(t testing.TB, dir string, seen ...Seen) Proof {
	t.Helper()
	p, err := Verify(t.Context(), dir, Known{Seen: seen})
	must(t, err)
	return p
}

// logsOf are the files of a log, the oldest first.
func logsOf(dir string) []string {
	names, _ := filepath.Glob(filepath.Join(dir, FileName+".*"))
	slices.SortFunc(names, func(a, b string) int {
		var i, j int
		fmt.Sscan(strings.TrimPrefix(filepath.Ext(a), "."), &i)
		fmt.Sscan(strings.TrimPrefix(filepath.Ext(b), "."), &j)
		return j - i
	})
	return append(names, filepath.Join(dir, FileName))
}

func linesOf(t testing.TB, path string) []string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return strings.SplitAfter(strings.TrimSuffix(string(text), "\n")+"\n", "\n")[:strings.Count(string(text), "\n")]
}

func put(t testing.TB, path string, lines []string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(strings.Join(lines, "")), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestWholeLogs(t *testing.T) {
	t.Parallel()
	dir := chained(t, 20)
	if n := len(logsOf(dir)); n < 3 {
		t.Fatalf("%d files: nothing was moved away", n)
	}
	p := check(t, dir)
	if len(p.Flaws)+len(p.Notes) > 0 || p.Records != 20 || p.First != 1 || p.Last != 20 || len(p.Hash) != 64 {
		t.Errorf("%+v", p)
	}
}

// Whoever writes the log anew from some record on, hashes and all, is found by a last record that was kept elsewhere.
func TestRewritten(t *testing.T) {
	t.Parallel()
	dir := chained(t, 4)
	seen := check(t, dir)
	log := filepath.Join(dir, FileName)
	l, err := Open(dir)
	must(t, err)
	for range 3 {
		must(t, l.Append(full))
	}
	must(t, l.Close())
	kept := Seen{seen.Last, seen.Hash}
	if got := told(check(t, dir, kept)); got != "" {
		t.Fatalf("nothing was done: %q", got)
	}
	for name, c := range map[string]struct {
		from, want int // the first record that is another, and so many
		told       string
	}{
		"another text": {2, 7, "not_seen"}, "fewer": {4, 3, "not_seen"}, "only later ones": {5, 7, ""}, "begun anew": {1, 2, "not_seen"},
	} {
		dir := t.TempDir()
		l, err := Open(dir)
		must(t, err)
		for i, line := range linesOf(t, log) {
			if i+1 == c.from {
				break
			}
			at := strings.Index(line, `,"seq":`)
			c := l.calls
			c.mu.Lock()
			ok, err := c.write([]byte(line[:at]))
			c.mu.Unlock()
			if must(t, err); !ok {
				t.Fatal("not written")
			}
		}
		for i := c.from; i <= c.want; i++ {
			must(t, l.Append(Record{Phase: "outcome", Error: "forged"}))
		}
		must(t, l.Close())
		if got := told(check(t, dir)); got != "" {
			t.Errorf("%s: without it %q: that is more than is promised", name, got)
		}
		if got := told(check(t, dir, kept)); got != c.told {
			t.Errorf("%s: %q, want %q", name, got, c.told)
		}
	}
	zero := Seen{1 << 60, hex.EncodeToString(make([]byte, 32))}
	if got := told(check(t, dir, zero, kept)); got != "not_seen" {
		t.Errorf("of another log: %q", got)
	}
}

// Whatever is done to any record is found, and where: at the line, the one before or the next.
func TestMangled(t *testing.T) {
	t.Parallel()
	dir := chained(t, 20)
	manglings := []struct {
		name string
		flaw []Flaw
		do   func(lines []string, i int) []string // nil: not here
	}{
		{"a byte", []Flaw{Changed}, func(l []string, i int) []string {
			l[i] = strings.Replace(l[i], "record", "Record", 1)
			return l
		}},
		{"its number", []Flaw{Changed}, func(l []string, i int) []string {
			l[i] = strings.Replace(l[i], `,"seq":`, `,"seq":1`, 1)
			return l
		}},
		{"its prev", []Flaw{Changed}, func(l []string, i int) []string {
			at := strings.Index(l[i], `"prev":"`) + 9
			l[i] = l[i][:at] + string('a'+(l[i][at]-'a'+1)%6) + l[i][at+1:]
			return l
		}},
		{"its end", []Flaw{Changed, Inserted, Dropped, Truncated}, func(l []string, i int) []string {
			l[i] = l[i][:strings.Index(l[i], `,"seq"`)] + "}\n"
			return l
		}},
		{"dropped", []Flaw{Dropped, Truncated}, func(l []string, i int) []string { return slices.Delete(l, i, i+1) }},
		{"swapped", []Flaw{Inserted, Dropped, Changed}, func(l []string, i int) []string {
			if i+1 == len(l) {
				return nil
			}
			l[i], l[i+1] = l[i+1], l[i]
			return l
		}},
		{"twice", []Flaw{Inserted}, func(l []string, i int) []string { return slices.Insert(l, i, l[i]) }},
		{"a line more", []Flaw{Inserted}, func(l []string, i int) []string {
			return slices.Insert(l, i, `{"time":"2026-11-23T00:00:00Z","phase":"outcome"}`+"\n")
		}},
		{"cut here", []Flaw{Dropped, Truncated}, func(l []string, i int) []string { return l[:i] }},
		{"cut within", []Flaw{Dropped, Truncated}, func(l []string, i int) []string {
			return append(l[:i:i], l[i][:40])
		}},
	}
	for f, log := range logsOf(dir) {
		whole := linesOf(t, log)
		for i := range whole {
			for _, m := range manglings {
				lines := m.do(slices.Clone(whole), i)
				if lines == nil {
					continue
				}
				put(t, log, lines)
				p := check(t, dir)
				name := fmt.Sprintf("%s, file %d, line %d", m.name, f, i+1)
				if len(p.Flaws) == 0 {
					t.Errorf("%s: not found: %+v", name, p)
					continue
				}
				near := false
				for _, got := range p.Flaws {
					near = near || got.File == filepath.Base(log) && got.Line >= i && got.Line <= i+2 || got.Flaw == Truncated ||
						got.Flaw == Dropped && got.Line == 1 // it is told before the first record that is there
					if !slices.Contains(m.flaw, got.Flaw) {
						t.Errorf("%s: %+v", name, p.Flaws)
					}
				}
				if !near {
					t.Errorf("%s: told elsewhere: %+v", name, p.Flaws)
				}
			}
		}
		put(t, log, whole)
	}
}
