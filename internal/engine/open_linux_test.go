//go:build linux && !rooted

package engine_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"moltisfs/checkpoint"
	"moltisfs/internal/engine"
)

// cutBoth has two changes of one path killed, the second by who may not reach all of the first, and both brought to their end by a start
// that may. fell is what is broken then; met says whether either was killed.
func cutBoth(t *testing.T, first, second int64, bad string) (met [2]bool, fell string) {
	x := grow(t, nil)
	want := map[string]string{"r2/a": "old", "r1/b": "old", "r1/c": "old"}
	for name := range want {
		x.write(name, "old")
	}
	whole, part := *x, *x
	part.root = x.ws + "/r1"
	last := x.open2(x.ws)
	ids := [2]checkpoint.ID{}
	for i, by := range []struct {
		*tree
		at    int64
		names []string
	}{{&whole, first, []string{"r1/b", "r2/a"}}, {&part, second, []string{"r1/b", "r1/c"}}} {
		system := callsOf(by.tree)
		met[i], _ = system.ends(by.at, func() error { return by.does(writes(fmt.Sprint("new", i), by.names...)) })
		page, err := by.call("s").Checkpoints(ctx, checkpoint.Filter{AllSessions: true, Limit: 1})
		must(t, err)
		if len(page.Checkpoints) > 0 {
			ids[i] = page.Checkpoints[0].ID
		}
		must(t, by.Close())
	}
	if ids[0] == ids[1] { // the second came to no checkpoint
		ids[1] = ""
	}
	last.RecoverBy(ctx, bad) //nolint:errcheck // it may be bad
	x.reopen()
	for i, names := range [][]string{{"r1/b", "r2/a"}, {"r1/b", "r1/c"}} {
		if ids[i] != "" && x.outcome(ids[i]) != checkpoint.Aborted && x.outcome(ids[i]) != checkpoint.Foreign {
			for _, name := range names {
				want[name] = fmt.Sprint("new", i)
			}
		}
	}
	for name, c := range want {
		if b, err := os.ReadFile(x.ws + "/" + name); err != nil || string(b) != c {
			fell += fmt.Sprintf("%s is %q, not %q; ", name, b, c)
		}
	}
	if left := x.halfWay(); left != nil || strings.Contains(x.looks(), "/.moltis-") {
		fell += fmt.Sprintf("left: %v\n%s", left, x.looks())
	}
	must(t, x.Close())
	must(t, os.RemoveAll(x.dir()))
	return met, fell
}

// Two changes of one path are killed, each before any of its calls: the newer is taken back first.
func TestTwoOpen(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{"newest", "oldest"} {
		pairs, falls := 0, ""
		more := [2]bool{true, true}
		for first := int64(5); more[0] && falls == ""; first++ {
			more[1] = true
			for second := int64(5); more[1] && falls == ""; second++ {
				var fell string
				if more, fell = cutBoth(t, first, second, bad); fell != "" {
					falls = fmt.Sprintf("killed before %d and %d: %s", first, second, fell)
				}
				pairs++
			}
		}
		t.Logf("%s first: %d pairs; %s", bad, pairs, falls)
		if (falls == "") != (bad == "newest") || pairs < 20 && falls == "" {
			t.Errorf("%s first: %d pairs; %s", bad, pairs, falls)
		}
	}
}

// A change of one file that was made stays made where the disk does not have its outcome.
func TestOutcomeIsLost(t *testing.T) {
	for _, bad := range []string{"", "undoalways"} {
		x := grow(t, nil)
		x.write("f", "old")
		other := x.open2(x.ws)
		x.cut("fsync", 2, writes("new", "f")) // all is done but its outcome
		other.RecoverBy(ctx, bad)             //nolint:errcheck // it may be bad
		b, err := os.ReadFile(x.ws + "/f")
		must(t, err)
		if (string(b) == "new") != (bad == "") {
			t.Errorf("%q: it is %q", bad, b)
		}
	}
}

// Another process that comes while a change is under way, before any of its calls, neither touches it nor waits for it. One that finds no
// lock of it does.
func TestAliveIsNotRecovered(t *testing.T) {
	play := func(bad string, n int64) (met bool, fell string) {
		x := grow(t, nil)
		x.writeAll("old", "a", "b")
		other := x.open2(x.ws)
		other.SetLockWait(time.Hour)
		x.calls = (&plot{exchange: true, nameless: n%2 == 0}).calls(t) // what is made ready has a name, or none
		system := callsOf(x)
		hook := moment(n, func() {
			met = true
			was := x.objects()
			if bad == "no lock" {
				unlockBelow(t, x.dir())
			}
			soon, cancel := context.WithTimeout(ctx, map[string]time.Duration{"": time.Minute, "no lock": time.Minute, "no lock of its own": 100 * time.Millisecond}[bad])
			defer cancel()
			err := other.Recover(soon)
			if err != nil || soon.Err() != nil || x.objects() != was {
				fell = fmt.Sprintf("killed before call %d: %v, %v\n%s\nwas\n%s", n, err, soon.Err(), x.objects(), was)
			}
		})
		err := system.meet(hook, func() error { return x.does(writes("new", "a", "b")) })
		if err != nil {
			fell += err.Error()
		}
		return met, fell
	}
	for _, bad := range []string{"", "no lock", "no lock of its own"} {
		t.Run(bad, func(t *testing.T) {
			if bad == "no lock of its own" {
				defer engine.WithoutOpLock()()
			}
			calls, fell := int64(0), ""
			for met := true; met && fell == ""; calls += 3 {
				met, fell = play(bad, calls+1)
			}
			t.Logf("%d calls; %.300s", calls, fell)
			if (fell == "") != (bad == "") || bad == "" && calls < 20 {
				t.Errorf("%d calls; %s", calls, fell)
			}
		})
	}
}
