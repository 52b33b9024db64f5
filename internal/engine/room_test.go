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
	var was syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &was); err != nil {
		t.Fatal(err)
	}
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip("SKIPPED: open files can't be counted: ", err)
	}
	now := was
	now.Cur = uint64(len(fds)) + 64 + 3*3*each + 20 // three groups
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &now); err != nil {
		t.Skip("SKIPPED: the limit can't be set: ", err)
	}
	defer syscall.Setrlimit(syscall.RLIMIT_NOFILE, &was) //nolint:errcheck // it was so before
	var limit *engine.LimitError
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
