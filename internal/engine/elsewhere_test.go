//go:build linux && !rooted

package engine_test

import (
	"errors"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"moltisfs/checkpoint"
	"moltisfs/internal/engine"
	"moltisfs/internal/guardfs"
)

// swap makes a link to another directory of the place where dir was.
func (x *tree) swap(dir, to string) {
	x.t.Helper()
	if err := errors.Join(os.Rename(x.ws+"/"+dir, x.ws+"/"+to), os.Symlink(to, x.ws+"/"+dir)); err != nil {
		x.t.Fatal(err)
	}
}

// What was parked does not come back by way of a link that took the place of its directory since.
func TestParkedComesBackByNoLink(t *testing.T) {
	for _, kept := range []bool{true, false} { // that something else was in the directory
		x := grow(t, small)
		x.write("a/t/big.bin", strings.Repeat("b", 101))
		if kept {
			x.write("a/kept.txt", "k\n")
		}
		if _, err := x.Delete(ctx, x.call("s"), x.ws+"/a/t", engine.DeleteOptions{Recursive: true}); err != nil {
			t.Fatal(err)
		}
		x.swap("a", "real")
		before := x.looks()
		var link *guardfs.SymlinkError
		if _, err := x.Undo(ctx, x.call("s"), engine.RestoreOptions{}); !errors.As(err, &link) || x.looks() != before {
			t.Errorf("kept %v: %v\n%s", kept, err, x.looks())
		}
	}
}

// Nor is a file restored by way of such a link.
func TestRestoredByNoLink(t *testing.T) {
	for _, how := range []string{engine.OnConflictRefuse, engine.OnConflictForce, engine.OnConflictMerge} {
		x := grow(t, nil)
		x.write("a/f", "old\n")
		x.put("s", "a/f", "new\n")
		x.swap("a", "real")
		before := x.looks()
		var link *guardfs.SymlinkError
		if _, err := x.Undo(ctx, x.call("s"), engine.RestoreOptions{OnConflict: how}); !errors.As(err, &link) || x.looks() != before {
			t.Errorf("%s: %v\n%s", how, err, x.looks())
		}
	}
}

// What a start takes back of a change that was cut off it takes back in the directory where it was made, or not at all.
func TestTakenBackByNoLink(t *testing.T) {
	for n := int64(41); n < 400; n += 2 {
		x := grow(t, nil)
		system := callsOf(x)
		paths := []string{x.write("d/a", "old\n"), x.write("e/b", "old\n")}
		system.fail(n, badCalls()["EIO ever after"], func() error {
			_, err := x.ChangeFiles(ctx, x.call("s"), engine.Files{Paths: paths, Next: func(ts []*engine.Target) error {
				for _, t := range ts {
					t.After = engine.After{Kind: guardfs.KindFile, Content: []byte("new\n")}
				}
				return nil
			}})
			return err
		})
		marks := x.halfWay()
		if a, err := os.ReadFile(x.ws + "/d/a"); err != nil || string(a) != "new\n" || marks == nil {
			x.Close()
			continue
		}
		x.Close()
		x.swap("d", "real")
		x.open()
		x.has("real/a", "new\n")
		return
	}
	t.Error("no change was cut off half-way: the test tests nothing")
}

// Where a file is the same but for its mode, and the session's changes made that another, the mode comes back.
func TestModeAloneComesBack(t *testing.T) {
	x := grow(t, nil)
	path := x.write("f", "same\n")
	c := x.call("s")
	c.Turn = "t"
	x.BeginTurn(ctx, c)
	if _, err := x.Delete(ctx, c, path, engine.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	x.put("s", "f", "same\n")
	if mode, _, _, _ := x.meta("f"); mode.Perm() == 0o640 {
		t.Fatalf("the new file has %v already", mode)
	}
	if _, err := x.Restore(ctx, c, checkpoint.Restore{Turn: "t"}, engine.RestoreOptions{}); err != nil {
		t.Fatal(err)
	}
	if mode, _, _, _ := x.meta("f"); mode.Perm() != 0o640 {
		t.Errorf("mode %v", mode)
	}
}

// A directory with the name of our trash that others may write to is none of ours.
func TestTrashOfOthersIsNotUsed(t *testing.T) {
	x := grow(t, small)
	x.write("t/big.bin", strings.Repeat("b", 101))
	planted := x.data + "/" + guardfs.TrashPrefix + "-" + strconv.Itoa(os.Getuid())
	if err := errors.Join(os.Mkdir(planted, 0o700), os.Chmod(planted, 0o777)); err != nil {
		t.Fatal(err)
	}
	before := x.looks()
	if _, err := x.Delete(ctx, x.call("s"), x.ws+"/t", engine.DeleteOptions{Recursive: true}); !errors.Is(err, fs.ErrPermission) || x.looks() != before {
		t.Errorf("%v\n%s", err, x.looks())
	}
}

// Of a change of several files both are on the disk when it is done, their names too.
func TestNamesOfManyAreSynced(t *testing.T) {
	x := grow(t, nil)
	var syncs atomic.Int64
	x.fault = func(op string) *guardfs.Fault {
		if op == "fsync" {
			syncs.Add(1)
		}
		return nil
	}
	x.Close()
	x.open()
	paths := []string{x.write("d/a", "old\n"), x.write("e/b", "old\n")}
	syncs.Store(0)
	done, err := x.ChangeFiles(ctx, x.call("s"), engine.Files{Paths: paths, Next: func(ts []*engine.Target) error {
		for _, t := range ts {
			t.After = engine.After{Kind: guardfs.KindFile, Content: []byte("new\n")}
		}
		return nil
	}})
	if err != nil || done.Targets[0].Published == nil || syncs.Load() < 4 {
		t.Errorf("%d syncs of two files and two directories, %v", syncs.Load(), err)
	}
}
