//go:build linux && !rooted

package engine_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"moltisfs/checkpoint"
	"moltisfs/internal/engine"
	"moltisfs/internal/guardfs"
)

// The same where directories are made for more files than may be open, which have temporary names in them then.
func TestFaultsOfAParkedTrade(t *testing.T) {
	const parked = 12
	faultsOfATrade(t, cmp.Or(*every, 36), parked, func(x *tree, system *calls) {
		openFiles(t, true, 78)
		if closed := x.closedDuring(system, (*engine.Engine).Undo); closed < parked {
			t.Fatalf("only %d were parked", closed)
		}
		_, err := x.Redo(ctx, x.call("s"), engine.RestoreOptions{})
		must(t, err)
	})
}

// A restore that finds the disk full, after it has taken away what stands in the way and while more new contents than may be open wait in the directories that it
// has made, brings back what it took, and no directory stays.
func TestParkedTradeFindsTheDiskFull(t *testing.T) {
	for _, inTheWay := range []bool{true, false} {
		x := grow(t, nil)
		system := callsOf(x)
		c := x.call("s")
		c.Turn = "t"
		x.BeginTurn(ctx, c)
		for i := range 30 {
			x.puts("t", fmt.Sprintf("file/n%d", i), fmt.Sprintln("new", i))
		}
		done, err := x.Restore(ctx, x.call("s"), rewindTo("t"), engine.RestoreOptions{})
		must(t, err)
		if inTheWay {
			x.puts("t2", "file", "a file\n")
		}
		old := x.looks()
		openFiles(t, true, 78)
		waiting := 0
		var mu sync.Mutex
		full := func(op string) *guardfs.Fault {
			mu.Lock()
			defer mu.Unlock()
			if names, _ := filepath.Glob(x.ws + "/.moltis-*"); op == "write" && len(names) >= 5 {
				waiting = max(waiting, len(names))
				return &guardfs.Fault{Err: syscall.ENOSPC}
			}
			return nil
		}
		system.hook.Store(&full)
		_, err = x.Restore(ctx, x.call("s"), checkpoint.Restore{ID: checkpoint.ID(done.Checkpoint)}, engine.RestoreOptions{OnConflict: engine.OnConflictForce})
		system.hook.Store(nil)
		if !errors.Is(err, syscall.ENOSPC) || waiting == 0 || x.looks() != old {
			t.Errorf("in the way %v, %d waited: %v\n%s\nit was\n%s", inTheWay, waiting, err, x.looks(), old)
		}
		if left := x.halfWay(); left != nil {
			t.Errorf("marks are left: %v", left)
		}
	}
}

// closedDuring is how many files with a temporary name were there at the same time while step ran.
func (x *tree) closedDuring(system *calls, step func(*engine.Engine, context.Context, *engine.Call, engine.RestoreOptions) (*engine.Restored, error)) int {
	x.t.Helper()
	most := 0
	var mu sync.Mutex
	look := func(op string) *guardfs.Fault {
		if op == "link" || op == "rename" {
			mu.Lock()
			defer mu.Unlock()
			names, _ := filepath.Glob(x.ws + "/*/.moltis-*")
			beside, _ := filepath.Glob(x.ws + "/.moltis-*")
			most = max(most, len(names)+len(beside))
		}
		return nil
	}
	system.hook.Store(&look)
	defer system.hook.Store(nil)
	_, err := step(x.Engine, ctx, x.call("s"), engine.RestoreOptions{})
	must(x.t, err)
	return most
}
