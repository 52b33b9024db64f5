//go:build linux && !rooted

package engine_test

import (
	"context"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"moltisfs/checkpoint"
	"moltisfs/internal/approval"
	"moltisfs/internal/engine"
	"moltisfs/internal/guardfs"
)

// meanwhile approves of everything, after something else has happened.
type meanwhile func()

func (f meanwhile) Ask(context.Context, approval.Question) (approval.Answer, error) {
	f()
	return approval.Answer{Decision: approval.Approved}, nil
}

// parkedNew has a file that is parked, made in a new directory and taken back; the directory goes too, unless something else is in it.
func (x *tree) parkedNew(dir string, kept bool) {
	x.t.Helper()
	x.put("s", dir+"/f", strings.Repeat("b", 101))
	if kept {
		x.put("z", dir+"/kept", "k\n")
	}
	if _, err := x.Undo(ctx, x.call("s"), engine.RestoreOptions{}); err != nil {
		x.t.Fatal(err)
	}
	x.has(dir+"/f", "-")
}

// isBack fails unless what was parked is in its place, and nothing of it in the trash.
func (x *tree) isBack(what, dir string) {
	x.t.Helper()
	x.has(dir+"/f", strings.Repeat("b", 101))
	page, err := x.Trash(ctx, x.call("s"), checkpoint.TrashFilter{})
	files, info := x.trashed()
	if err != nil || len(page.Entries) > 0 || files != nil || info != nil {
		x.t.Fatalf("%s: listed %+v %v, in the trash %v %v", what, page.Entries, err, files, info)
	}
}

// Whoever waits to bring something back may find that its directory is there by now, made by somebody else, or that another has brought it back: then
// nothing is left to do, and the trash does not have it again.
func TestParkedComesBackMeanwhile(t *testing.T) {
	for _, kept := range []bool{true, false} {
		for _, redone := range []bool{true, false} {
			x := grow(t, small)
			x.parkedNew("big", kept)
			cfg := x.cfg
			cfg.RequireApproval = true
			other, err := engine.OpenOver(engine.Options{Config: cfg, Judge: inside(x.ws, x.deny), DataDir: x.data})
			if err != nil {
				t.Fatal(err)
			}
			defer other.Close()
			c := x.call("s")
			c.Approver = meanwhile(func() {
				if !redone {
					_ = os.Mkdir(x.ws+"/big", 0o755)
				} else if _, err := x.Redo(ctx, x.call("s"), engine.RestoreOptions{}); err != nil {
					t.Error(err)
				}
			})
			done, err := other.Redo(ctx, c, engine.RestoreOptions{})
			if err != nil || done.Idle != redone || done.Idle != (done.Checkpoint == "") {
				t.Fatalf("kept %v, redone %v: %+v %v", kept, redone, done, err)
			}
			x.isBack("redone", "big")
			for range 2 { // the history has it once
				if _, err := x.Undo(ctx, x.call("s"), engine.RestoreOptions{}); err != nil {
					t.Fatal(err)
				}
				x.has("big/f", "-")
				if _, err := x.Redo(ctx, x.call("s"), engine.RestoreOptions{}); err != nil {
					t.Fatal(err)
				}
				x.isBack("and again", "big")
			}
		}
	}
}

// Whichever system call its directory appears before: what was parked comes back, or stays in the trash and comes back the next time.
func TestParkedAndItsDirectoryAppears(t *testing.T) {
	t.Parallel()
	x := grow(t, small)
	system := callsOf(x)
	refused, reached := 0, int64(0)
	for n := int64(1); ; n++ {
		x.parkedNew("big", false)
		var calls atomic.Int64
		hook := func(string) *guardfs.Fault {
			if calls.Add(1) == n {
				_ = os.Mkdir(x.ws+"/big", 0o755)
			}
			return nil
		}
		system.hook.Store(&hook)
		_, err := x.Redo(ctx, x.call("s"), engine.RestoreOptions{})
		system.hook.Store(nil)
		if err != nil {
			refused++
			x.has("big/f", "-")
			if _, err := x.Redo(ctx, x.call("s"), engine.RestoreOptions{}); err != nil {
				t.Fatalf("before call %d, the next time: %v", n, err)
			}
		}
		x.isBack("redone", "big")
		if err := os.RemoveAll(x.ws + "/big"); err != nil {
			t.Fatal(err)
		}
		if reached = n; calls.Load() < n {
			break
		}
	}
	t.Logf("%d calls, %d refused", reached, refused)
}
