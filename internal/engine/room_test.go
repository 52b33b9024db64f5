//go:build linux && !rooted

package engine_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"moltisfs/checkpoint"
	"moltisfs/internal/engine"
)

// A restore that needs more open files than there may be is refused before anything changes, and says how many go; so many do go.
func TestRestoreWithinOpenFiles(t *testing.T) {
	x := grow(t, nil)
	c := x.call("s")
	c.Turn = "t1"
	x.BeginTurn(ctx, c)
	const groups, each = 8, 25
	name := func(i, j int) string { return fmt.Sprintf("d%d/f%d", i, j) }
	for i := range groups {
		for j := range each {
			x.write(name(i, j), "old\n")
			x.put("s", name(i, j), "new\n")
		}
	}
	for j := range 2 * each {
		x.put("s", fmt.Sprintf("made/f%d", j), "new\n")
	}
	var was syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &was); err != nil {
		t.Fatal(err)
	}
	defer syscall.Setrlimit(syscall.RLIMIT_NOFILE, &was) //nolint:errcheck // it was so before
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip("SKIPPED: open files can't be counted: ", err)
	}
	now := was
	var limit *engine.LimitError
	// As few as they are, these are too many where there is hardly any room: before they are looked at, and after.
	for n, o := range []struct {
		room  int
		paths []string
	}{{2*each - 10, []string{"d0", "d1"}}, {4*each + 8, []string{"made"}}} {
		now.Cur = uint64(len(fds) + o.room)
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &now); err != nil {
			t.Skip("SKIPPED: the limit can't be set: ", err)
		}
		r := checkpoint.Restore{Turn: "t1"}
		for _, p := range o.paths {
			r.Paths = append(r.Paths, x.ws+"/"+p)
		}
		limit = nil
		_, err := x.Restore(ctx, c, r, engine.RestoreOptions{})
		if !errors.As(err, &limit) || limit.Most < 4 || limit.Most >= 2*each {
			t.Errorf("%d more files may be open: it must be refused: %v", o.room, err)
		}
		if limit == nil {
			continue
		}
		r.Paths = nil
		for j := range min(limit.Most, each-1) {
			r.Paths = append(r.Paths, x.ws+"/"+name(n+2, each-1-j))
		}
		if done, err := x.Restore(ctx, c, r, engine.RestoreOptions{}); err != nil || done.Checkpoint == "" {
			t.Errorf("%d more files may be open: %d paths must go: %v", o.room, limit.Most, err)
		}
	}
	now.Cur = uint64(len(fds)) + 64 + 3*3*each + 20 // three groups
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &now); err != nil {
		t.Skip("SKIPPED: the limit can't be set: ", err)
	}
	for _, o := range []engine.RestoreOptions{{DryRun: true}, {}} {
		if _, err := x.Restore(ctx, c, checkpoint.Restore{Turn: "t1"}, o); !errors.As(err, &limit) || limit.Most < 2*each || limit.Most > 4*each {
			t.Fatalf("%+v: it must be refused, and about %d do: %v", o, 3*each, err)
		}
	}
	for i := range groups {
		x.has(name(i, 0), "new\n")
	}
	for i := 0; i < groups; i += 2 {
		r := checkpoint.Restore{Turn: "t1", Paths: []string{x.ws + fmt.Sprintf("/d%d", i), x.ws + fmt.Sprintf("/d%d", i+1)}}
		if done, err := x.Restore(ctx, c, r, engine.RestoreOptions{}); err != nil || done.Checkpoint == "" {
			t.Fatalf("two groups must go: %v", err)
		}
	}
	for i := range groups {
		for j := range each {
			x.has(name(i, j), "old\n")
		}
	}
}

// The locks of names at which nothing is count too, and the directories that have to be made: with however few open files, a restore of what was removed
// is refused or goes, and never fails half-way.
func TestRestoreOfRemovedWithinOpenFiles(t *testing.T) {
	var was syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &was); err != nil {
		t.Fatal(err)
	}
	defer syscall.Setrlimit(syscall.RLIMIT_NOFILE, &was) //nolint:errcheck // it was so before
	const files = 200
	for _, c := range []struct {
		name string
		gone bool
	}{{"d/f%d", false}, {"d%d/f", true}} { // kept directories, and one to make for each
		x := grow(t, nil)
		who := x.call("s")
		who.Turn = "t1"
		x.BeginTurn(ctx, who)
		for i := range files {
			name := fmt.Sprintf(c.name, i)
			x.write(name, "old\n")
			x.put("s", name, "new\n")
			if err := os.Remove(x.ws + "/" + name); err != nil {
				t.Fatal(err)
			}
			if c.gone {
				if err := os.Remove(filepath.Dir(x.ws + "/" + name)); err != nil {
					t.Fatal(err)
				}
			}
		}
		fds, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Skip("SKIPPED: open files can't be counted: ", err)
		}
		refused := 0
		for more := 3 * files; ; more += 20 {
			now := was
			now.Cur = uint64(len(fds) + more)
			if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &now); err != nil {
				t.Skip("SKIPPED: the limit can't be set: ", err)
			}
			var limit *engine.LimitError
			_, err := x.Restore(ctx, who, checkpoint.Restore{Turn: "t1"}, engine.RestoreOptions{OnConflict: engine.OnConflictForce})
			if err == nil {
				break
			}
			if refused++; !errors.As(err, &limit) {
				t.Fatalf("%s: with %d open files more: %v", c.name, more, err)
			}
			if more > 8*files {
				t.Fatalf("%s: %d open files more are not enough: %v", c.name, more, err)
			}
		}
		if refused == 0 {
			t.Errorf("%s: nothing was refused: the test tests nothing", c.name)
		}
		x.has(fmt.Sprintf(c.name, 0), "old\n")
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &was); err != nil {
			t.Fatal(err)
		}
	}
}
