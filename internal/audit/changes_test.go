package audit

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

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

// callsOf are the calls that Read gives, in its order.
func callsOf(t *testing.T, dir string) (calls []string) {
	t.Helper()
	must(t, Read(t.Context(), dir, false, nil, func(line []byte) error {
		var e Entry
		err := json.Unmarshal(line, &e)
		calls = append(calls, e.Call)
		return err
	}))
	return calls
}

// However many other records come, those of changes are there, listed once and before what came later.
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

// Both logs are given in the order of time, also where their records take turns.
func TestMerged(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l, err := Options{MaxBytes: 1000, Keep: -1}.Open(dir)
	must(t, err)
	defer l.Close()
	var want []string
	for i := range 60 {
		r := Record{Time: time.Unix(int64(i/2), 0), Phase: "outcome", Call: fmt.Sprint(i)}
		want = append(want, r.Call)
		if i%2 == 0 || i%7 == 0 {
			must(t, l.Append(r))
		} else {
			must(t, l.AppendChange(r))
		}
	}
	got := callsOf(t, dir)
	at := func(call string) (n int) { fmt.Sscan(call, &n); return n / 2 }
	if !slices.IsSortedFunc(got, func(a, b string) int { return at(a) - at(b) }) || len(got) != len(want) {
		t.Error(got)
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

// What was done to the log of changes is found as in the other one.
func TestChangesAreChecked(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		do   func(log string) error
		want string
	}{
		"changed": {func(log string) error {
			return os.WriteFile(log, []byte(strings.Replace(string(file(t, log)), "change1", "change7", 1)), 0o600)
		}, "changed"},
		"cut off": {func(log string) error { return os.Truncate(log, 400) }, "truncated|interrupted"},
		"removed": {os.Remove, "truncated"},
		"its end": {func(log string) error { return os.Remove(filepath.Join(filepath.Dir(log), lastName)) }, "no_end"},
		"both": {func(log string) error {
			return errors.Join(os.Remove(log), os.Remove(filepath.Join(filepath.Dir(log), lastName)))
		}, "no_end"},
		"all of it": {func(log string) error { return os.RemoveAll(filepath.Dir(log)) }, "no_end"},
	} {
		dir := noisy(t, time.Now(), 4, 4)
		must(t, c.do(filepath.Join(ChangesDir(dir), FileName)))
		if p, err := VerifyChanges(t.Context(), dir, Known{}); err != nil || told(p) != c.want {
			t.Errorf("%s: %+v %v, want %s", name, p, err, c.want)
		}
		if got := told(check(t, dir)); got != "" {
			t.Errorf("%s: the other log: %s", name, got)
		}
	}
}
