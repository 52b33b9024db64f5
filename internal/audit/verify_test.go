package audit

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// chained makes a log of three files with a key that holds from the third record on. It gives the
// directory and the key.
func chained(t testing.TB, records int) (string, Key) {
	t.Helper()
	dir := t.TempDir()
	l, err := Options{MaxBytes: 2000, Keep: 100}.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var key Key
	for i := range records {
		r := Record{Time: time.Unix(int64(i), 0), Phase: "outcome", Tool: "Read", Error: fmt.Sprint("record ", i)}
		if i == 1 {
			key, err = l.NewKey(r)
		} else {
			err = l.Append(r)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir, key
}

func verify(t testing.TB, dir string, after uint64, keys ...Key) Proof {
	t.Helper()
	p, err := Verify(t.Context(), dir, keys, Archived{All: after})
	if err != nil {
		t.Fatal(err)
	}
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
	dir, key := chained(t, 20)
	if n := len(logsOf(dir)); n < 3 {
		t.Fatalf("%d files: nothing was moved away", n)
	}
	for _, keys := range [][]Key{nil, {key}} {
		p := verify(t, dir, 0, keys...)
		if len(p.Flaws)+len(p.Notes) > 0 || p.Records != 20 || p.First != 1 || p.Last != 20 ||
			p.Proven != uint64(18*len(keys)) {
			t.Errorf("%+v", p)
		}
	}
	back, err := ParseKey(" " + key.String() + "\n")
	if err != nil || back != key {
		t.Errorf("%v, %v", back, err)
	}
	for _, bad := range []string{"", key.String() + "0", strings.Replace(key.String(), ":3:", ":0:", 1), "x" + key.String()} {
		if _, err := ParseKey(bad); err != ErrBadKey {
			t.Errorf("%q is a key: %v", bad, err)
		}
	}
}

// Whatever is done to any record is found, and where: by a key to the line, without one to the line
// or the next.
func TestMangled(t *testing.T) {
	t.Parallel()
	dir, key := chained(t, 13)
	manglings := []struct {
		name string
		flaw []Flaw
		do   func(lines []string, i int) []string // nil: not here
	}{
		{"a byte", []Flaw{Changed}, func(l []string, i int) []string {
			l[i] = strings.Replace(l[i], "record", "Record", 1)
			return l
		}},
		{"its number", []Flaw{Changed, Dropped}, func(l []string, i int) []string {
			l[i] = strings.Replace(l[i], `,"seq":`, `,"seq":1`, 1)
			return l
		}},
		{"its mac", []Flaw{Changed}, func(l []string, i int) []string {
			at := strings.Index(l[i], `"mac":"`) + 9
			l[i] = l[i][:at] + string('A'+(l[i][at]-'A'+1)%26) + l[i][at+1:]
			return l
		}},
		{"its end", []Flaw{Changed, Truncated}, func(l []string, i int) []string {
			l[i] = l[i][:strings.Index(l[i], `,"seq"`)] + "}\n"
			return l
		}},
		{"dropped", []Flaw{Dropped, Truncated}, func(l []string, i int) []string { return slices.Delete(l, i, i+1) }},
		{"swapped", []Flaw{Reordered}, func(l []string, i int) []string {
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
				for _, keys := range [][]Key{nil, {key}} {
					lines := m.do(slices.Clone(whole), i)
					if lines == nil {
						continue
					}
					put(t, log, lines)
					p := verify(t, dir, 0, keys...)
					name := fmt.Sprintf("%s, file %d, line %d, keys %d", m.name, f, i+1, len(keys))
					if len(p.Flaws) == 0 {
						t.Errorf("%s: not found: %+v", name, p)
						continue
					}
					got := p.Flaws[0]
					if !slices.Contains(m.flaw, got.Flaw) {
						t.Errorf("%s: %+v", name, p.Flaws)
					}
					near := got.File == filepath.Base(log) && got.Line >= i-1+len(keys) && got.Line <= i+2
					if !near && got.Flaw == Dropped { // it is told before the first record that is there
						near = got.Line == 1
					}
					if !near && got.Flaw != Truncated {
						t.Errorf("%s: told at %s:%d: %+v", name, got.File, got.Line, p.Flaws)
					}
				}
			}
		}
		put(t, log, whole)
	}
}
