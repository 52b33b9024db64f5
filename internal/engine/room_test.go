//go:build linux && !rooted

package engine_test

import (
	"errors"
	"fmt"
	"os"
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
