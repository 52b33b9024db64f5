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

// A line that a crash broke is left out, and the ones after it are whole.
func TestReadTorn(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	text := "{\"torn\n\n{\"tool\":\"a\",\"paths\":[\"/x\",{\"bytes\":\"/w==\"}]}\n{\"not yet"
	must(t, os.WriteFile(filepath.Join(dir, FileName), []byte(text), 0o600))
	got := recordsOf(t, dir)
	if len(got) != 1 || len(got[0].Paths) != 2 || got[0].Paths[1] != "\xff" {
		t.Errorf("%+v", got)
	}
}

// Records that hold a hash are counted in both logs, and long ones that are not of ours, too.
func TestCountMentions(t *testing.T) {
	dir := t.TempDir()
	l := opened(t, dir)
	defer l.Close()
	a, b := strings.Repeat("ab", 32), strings.Repeat("cd", 32)
	for i, r := range []Record{{Before: a, After: b}, {After: a}, {After: b}, {Error: a + "0"}, {Error: "it is " + a + "."}} {
		if i%2 == 0 {
			must(t, l.AppendChange(r))
		} else {
			must(t, l.Append(r))
		}
	}
	must(t, os.WriteFile(filepath.Join(dir, FileName+".1"), []byte(`{"x":"`+strings.Repeat("x", 3<<20)+" "+a+"\"}\n"), 0o600))
	for _, x := range []struct {
		hashes []string
		want   int
	}{{nil, 0}, {[]string{a}, 4}, {[]string{a, b}, 5}, {[]string{strings.Repeat("ef", 32)}, 0}} {
		if n, err := CountMentions(dir, x.hashes); err != nil || n != x.want {
			t.Errorf("%.4v: %d %v, want %d", x.hashes, n, err, x.want)
		}
	}
	if n, err := CountMentions(t.TempDir(), []string{a}); err != nil || n > 0 {
		t.Errorf("without a log: %d %v", n, err)
	}
}

// noisy is a log of small files, with changes long ago and so many other records since.
func noisy(t *testing.T, changed time.Time, changes, others int) (dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "audit")
	l, err := Options{MaxBytes: 8 << 10, Keep: 1}.Open(dir)
	must(t, err)
	defer l.Close()
	for i := range changes {
		must(t, l.AppendChange(Record{Time: changed.Add(time.Duration(i)), Phase: "intent", Call: fmt.Sprint("change", i), Tool: "Write"}))
	}
	for i := range others {
		must(t, l.Append(Record{Time: changed.Add(time.Minute + time.Duration(i)), Phase: "outcome", Call: fmt.Sprint("read", i), Tool: "Read"}))
	}
	return dir
}

// recordsOf are the records of both logs, the oldest first.
func recordsOf(t *testing.T, dir string) (all []Entry) {
	t.Helper()
	must(t, ReadBack(t.Context(), dir, Mark{}, time.Time{}, false, func(_ []byte, e *Entry, _ Mark, _ bool) bool {
		all = append(all, *e)
		return false
	}))
	slices.Reverse(all)
	return all
}

// callsOf are the calls of these records.
func callsOf(t *testing.T, dir string) (calls []string) {
	t.Helper()
	for _, e := range recordsOf(t, dir) {
		calls = append(calls, e.Call)
	}
	return calls
}

// However many other records come, those of changes are there, listed once and before later ones.
func TestChangesStay(t *testing.T) {
	t.Parallel()
	for _, others := range []int{0, 3, 30, 500} {
		dir := noisy(t, time.Now(), 4, others)
		calls := callsOf(t, dir)
		if got := strings.Join(calls[:4], " "); got != "change0 change1 change2 change3" {
			t.Errorf("%d others: it begins with %s", others, got)
		}
		if others > 0 && calls[len(calls)-1] != fmt.Sprint("read", others-1) {
			t.Errorf("%d others: it ends with %s", others, calls[len(calls)-1])
		}
		n := len(calls)
		slices.Sort(calls)
		if len(slices.Compact(calls)) != n {
			t.Errorf("%d others: some are there twice", others)
		}
		p, err := VerifyChanges(t.Context(), dir, Known{})
		if err != nil || told(p) != "" || p.Records != 4 {
			t.Errorf("%d others: %+v %v", others, p, err)
		}
	}
}

// Where rotation removed records of changes, verify says so unless the others reach back far enough, or somebody has the first ones.
func TestEarlyRotation(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	for _, c := range []struct {
		age     time.Duration
		changes int
		flaw    string
	}{
		{0, 10, ""}, {0, 100, "early|gone"}, {29 * day, 100, "early|gone"}, {31 * day, 100, "|gone"}, {-day, 100, "early|gone"},
	} {
		dir := noisy(t, time.Now().Add(-c.age), c.changes, 0)
		p, err := VerifyChanges(t.Context(), dir, Known{})
		if err != nil || told(p) != c.flaw {
			t.Errorf("%v, %d changes: %+v %v", c.age, c.changes, p, err)
		}
		taken, err := VerifyChanges(t.Context(), dir, Known{Archived: p.First - 1})
		if err != nil || len(taken.Flaws) > 0 {
			t.Errorf("%v, %d changes, archived: %+v %v", c.age, c.changes, taken, err)
		}
	}
}

// Damage to the log of changes is found as in the other one, also where all of it is gone.
func TestChangesAreChecked(t *testing.T) {
	t.Parallel()
	for want, do := range map[string]func(log string) error{
		"changed": func(log string) error {
			return os.WriteFile(log, []byte(strings.Replace(string(file(t, log)), "change1", "change7", 1)), 0o600)
		},
		"truncated": os.Remove,
		"no_end":    func(log string) error { return os.RemoveAll(filepath.Dir(log)) },
	} {
		dir := noisy(t, time.Now(), 4, 4)
		must(t, do(filepath.Join(ChangesDir(dir), FileName)))
		if p, err := VerifyChanges(t.Context(), dir, Known{}); err != nil || told(p) != want {
			t.Errorf("%+v %v, want %s", p, err, want)
		}
		if got := told(check(t, dir)); got != "" {
			t.Errorf("%s: the other log: %s", want, got)
		}
	}
}
