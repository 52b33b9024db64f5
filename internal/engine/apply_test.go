//go:build linux && !rooted

package engine_test

import (
	"strings"
	"sync"
	"syscall"
	"testing"

	"moltisfs/checkpoint"
	"moltisfs/internal/engine"
	"moltisfs/internal/guardfs"
)

func renewed(ts []*engine.Target) error {
	ts[0].After = engine.After{Kind: guardfs.KindFile, Content: []byte("new\n")}
	return nil
}

// synced grows a tree where everything is on stable storage before it counts; meet sees every call to the tree.
func synced(t *testing.T, meet func(op string) *guardfs.Fault) *tree {
	x := grow(t, nil)
	x.Close()
	x.fault = meet
	x.open()
	return x
}

// An edit writes the new file, saves the checkpoint and syncs both, and only then swaps. What was
// there goes once the directory is synced.
func TestOrderOfAnEdit(t *testing.T) {
	var mu sync.Mutex
	var ops []string
	x := synced(t, func(op string) *guardfs.Fault {
		mu.Lock()
		defer mu.Unlock()
		switch op {
		case "write", "fsync", "link", "rename", "unlink":
			ops = append(ops, op)
		}
		return nil
	})
	for name, want := range map[string]string{"old.txt": "write fsync link rename fsync unlink", "new.txt": "write fsync link fsync"} {
		if name == "old.txt" {
			x.write(name, "old\n")
		}
		ops = nil
		if _, err := x.ChangeFiles(ctx, x.call("s"), engine.Files{Paths: []string{x.ws + "/" + name}, Next: renewed}); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(ops, " "); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

// A small file that can't be written leaves no checkpoint of a change that was not made; one that can't be synced leaves no change.
func TestSmallFileThatCannotBeWritten(t *testing.T) {
	for _, bad := range []string{"write", "fsync"} {
		t.Run(bad, func(t *testing.T) {
			fail := false
			x := synced(t, func(op string) *guardfs.Fault {
				if fail && op == bad {
					return &guardfs.Fault{Err: syscall.EIO}
				}
				return nil
			})
			x.write("f", "old\n")
			before := x.looks()
			fail = true
			if _, err := x.ChangeFiles(ctx, x.call("s"), engine.Files{Paths: []string{x.ws + "/f"}, Next: renewed}); err == nil {
				t.Fatal("it was changed all the same")
			}
			fail = false
			if x.looks() != before {
				t.Errorf("left behind:\n%s\nwant\n%s", x.looks(), before)
			}
			x.Close()
			db, err := checkpoint.Open(x.data+"/checkpoints", checkpoint.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			page, err := db.List(ctx, checkpoint.Filter{AllSessions: true, Principal: "p"})
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range page.Checkpoints {
				if bad == "write" || c.Outcome != checkpoint.Aborted {
					t.Errorf("a checkpoint of a change that was not made: %+v", c)
				}
			}
		})
	}
}
