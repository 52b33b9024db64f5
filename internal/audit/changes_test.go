package audit

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// noisy is a log of small files, with a change long ago and so many other records since.
func noisy(t *testing.T, changed time.Time, changes, others int) (dir string, keys []Key) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "audit")
	l, err := Options{MaxBytes: 8 << 10, Keep: 1}.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, one := range []*Log{l, l.Changes()} {
		k, err := one.NewKey(Record{Time: changed, Phase: "outcome", Tool: "audit_key"})
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, k)
	}
	for i := range changes {
		if err := l.AppendChange(Record{Time: changed.Add(time.Duration(i)), Phase: "intent", Call: fmt.Sprint("change", i), Tool: "Write"}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range others {
		if err := l.Append(Record{Time: changed.Add(time.Minute + time.Duration(i)), Phase: "outcome", Call: fmt.Sprint("read", i), Tool: "Read"}); err != nil {
			t.Fatal(err)
		}
	}
	return dir, keys
}

// callsOf are the calls that Read gives, in its order.
func callsOf(t *testing.T, dir string) (calls []string) {
	t.Helper()
	var last time.Time
	err := Read(t.Context(), dir, false, nil, func(line []byte) error {
		var e Entry
		if err := json.Unmarshal(line, &e); err != nil {
			return err
		}
		if e.Time.Before(last) {
			t.Errorf("%s comes too late", e.Call)
		}
		last = e.Time
		if e.Call != "" {
			calls = append(calls, e.Call)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return calls
}

// However many other records come, those of changes are there, listed once and before what came later, and proven.
func TestChangesStay(t *testing.T) {
	t.Parallel()
	for _, others := range []int{0, 3, 30, 500} {
		dir, keys := noisy(t, time.Now(), 4, others)
		calls := callsOf(t, dir)
		if got := strings.Join(calls[:4], " "); got != "change0 change1 change2 change3" {
			t.Errorf("%d others: it begins with %s", others, got)
		}
		seen := map[string]bool{}
		for _, c := range calls {
			if seen[c] {
				t.Errorf("%d others: %s is there twice", others, c)
			}
			seen[c] = true
		}
		if others > 0 && calls[len(calls)-1] != fmt.Sprint("read", others-1) {
			t.Errorf("%d others: it ends with %s", others, calls[len(calls)-1])
		}
		p := verify(t, dir, 0, keys...)
		if !p.Whole() || p.Changes == nil || p.Changes.Proven != 4 {
			t.Errorf("%d others: %+v", others, p)
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
		whole   bool
	}{
		{0, 10, true}, {0, 100, false}, {29 * day, 100, false}, {31 * day, 100, true}, {-day, 100, false},
	} {
		dir, keys := noisy(t, time.Now().Add(-c.age), c.changes, 0)
		p := verify(t, dir, 0, keys...)
		if p.Whole() != c.whole || len(p.Flaws) > 0 || !c.whole && p.Changes.Flaws[0].Flaw != Early {
			t.Errorf("%v, %d changes: %+v", c.age, c.changes, p)
		}
		taken, err := Verify(t.Context(), dir, keys, Archived{Changes: p.Changes.First - 1})
		if err != nil || !taken.Whole() {
			t.Errorf("%v, %d changes, archived: %+v %v", c.age, c.changes, taken, err)
		}
	}
}

// What was done to the log of changes is found as in the other one.
func TestChangesAreProven(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		do   func(dir string) error
		flaw Flaw
	}{
		"changed": {func(dir string) error {
			log := filepath.Join(ChangesDir(dir), FileName)
			b, err := os.ReadFile(log)
			if err == nil {
				err = os.WriteFile(log, []byte(strings.Replace(string(b), "change1", "change7", 1)), 0o600)
			}
			return err
		}, Changed},
		"cut off":   {func(dir string) error { return os.Truncate(filepath.Join(ChangesDir(dir), FileName), 400) }, Truncated},
		"gone":      {func(dir string) error { return os.Remove(filepath.Join(ChangesDir(dir), FileName)) }, Truncated},
		"no key":    {func(dir string) error { return os.Remove(filepath.Join(ChangesDir(dir), keyName)) }, KeyState},
		"all of it": {func(dir string) error { return os.RemoveAll(ChangesDir(dir)) }, NewChain},
	} {
		dir, keys := noisy(t, time.Now(), 4, 4)
		if err := c.do(dir); err != nil {
			t.Fatal(err)
		}
		p := verify(t, dir, 0, keys...)
		flaws := p.Flaws
		if p.Changes != nil {
			flaws = append(flaws, p.Changes.Flaws...)
		}
		if p.Whole() || len(flaws) == 0 || flaws[0].Flaw != c.flaw && flaws[len(flaws)-1].Flaw != c.flaw {
			t.Errorf("%s: %+v, want %s", name, flaws, c.flaw)
		}
	}
}
