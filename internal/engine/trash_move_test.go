//go:build linux && !rooted

package engine_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"moltisfs/checkpoint"
	"moltisfs/internal/engine"
	"moltisfs/internal/guardfs"
)

// A file and a tree that the store can't hold go to the trash by one rename and come back as the same objects, times and all; undo and redo know
// them too.
func TestParked(t *testing.T) {
	x := grow(t, small)
	big := strings.Repeat("b", 101)
	x.write("big.bin", big)
	x.write("t/big.bin", big)
	x.write("t/sub/b.txt", "b\n")
	for _, err := range []error{os.Mkdir(x.ws+"/t/hollow", 0o711), os.Symlink("b.txt", x.ws+"/t/link"), os.Chmod(x.ws+"/t/sub", 0o700)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	old := time.Unix(1e9, 5)
	if err := os.Chtimes(x.ws+"/t/sub/b.txt", old, old); err != nil {
		t.Fatal(err)
	}
	before := x.looks()
	same := func() {
		t.Helper()
		if now := x.looks(); now != before {
			t.Fatalf("came back as\n%s\nand was\n%s", now, before)
		}
		if i, err := os.Stat(x.ws + "/t/sub/b.txt"); err != nil || !i.ModTime().Equal(old) {
			t.Errorf("its time is %v %v", i.ModTime(), err)
		}
	}
	for _, path := range []string{x.ws + "/big.bin", x.ws + "/t"} {
		inode := inodeOf(t, path)
		done, err := x.Delete(ctx, x.call("s"), path, engine.DeleteOptions{Recursive: true})
		if err != nil || len(done.Trashed) != 1 || done.Skipped != "" || done.Checkpoint == "" {
			t.Fatalf("%s: %+v %v", path, done, err)
		}
		e := done.Trashed[0]
		files, info := x.trashed()
		if _, err := os.Lstat(path); err == nil || len(files) != 1 || len(info) != 1 || e.Parked != files[0] || inodeOf(t, files[0]) != inode {
			t.Fatalf("%s: %+v, in the trash %v %v", path, e, files, info)
		}
		if i, err := os.Stat(filepath.Dir(filepath.Dir(files[0]))); err != nil || i.Mode().Perm() != 0o700 {
			t.Errorf("the trash is open to others: %v %v", i.Mode(), err)
		}
		card, err := os.ReadFile(info[0])
		if err != nil || !strings.Contains(string(card), "Path="+path+"\n") || !strings.Contains(string(card), string(e.ID)) {
			t.Errorf("the sidecar: %s %v", card, err)
		}
		page, err := x.Trash(ctx, x.call("s"), checkpoint.TrashFilter{})
		if err != nil || len(page.Entries) != 1 || page.Entries[0].ID != e.ID {
			t.Fatalf("listed %+v %v", page, err)
		}
		if _, err := x.Untrash(ctx, x.call("another session"), e.ID, false); err != nil {
			t.Fatal(err)
		}
		same()
		if files, info := x.trashed(); files != nil || info != nil || inodeOf(t, path) != inode {
			t.Errorf("left in the trash: %v %v", files, info)
		}
		if _, err := x.Untrash(ctx, x.call("s"), e.ID, false); !errors.Is(err, checkpoint.ErrNotFound) {
			t.Errorf("it came back twice: %v", err)
		}
	}
	for range 2 { // the history knows it too, again and again
		c := x.call("z")
		if _, err := x.Delete(ctx, c, x.ws+"/t", engine.DeleteOptions{Recursive: true}); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if _, err := x.Undo(ctx, c, engine.RestoreOptions{}); err != nil {
				t.Fatal(err)
			}
			same()
			if _, err := x.Redo(ctx, c, engine.RestoreOptions{}); err != nil {
				t.Fatal(err)
			}
			if _, err := os.Lstat(x.ws + "/t"); err == nil {
				t.Fatal("redone, and still there")
			}
		}
		if _, err := x.Undo(ctx, c, engine.RestoreOptions{}); err != nil {
			t.Fatal(err)
		}
		same()
	}
	if files, info := x.trashed(); files != nil || info != nil {
		t.Errorf("left in the trash: %v %v", files, info)
	}
}

func inodeOf(t *testing.T, path string) uint64 {
	t.Helper()
	i, err := os.Lstat(path)
	if err != nil {
		t.Fatal(err)
	}
	return i.Sys().(*syscall.Stat_t).Ino
}

// What is in the way stays, what is denied is neither moved nor brought back to, and a tree is taken back with what was changed in it, step by step.
func TestParkedRefusals(t *testing.T) {
	x := grow(t, small)
	big := x.write("t/big.bin", strings.Repeat("b", 101))
	a := x.write("t/a.txt", "a\n")
	c := x.call("s")
	c.Turn = "one"
	x.BeginTurn(ctx, c)
	edit := engine.Files{Paths: []string{a}, Next: func(ts []*engine.Target) error {
		ts[0].After = engine.After{Kind: guardfs.KindFile, Content: []byte("new\n")}
		return nil
	}}
	old := x.looks()
	if _, err := x.ChangeFiles(ctx, c, edit); err != nil {
		t.Fatal(err)
	}
	done, err := x.Delete(ctx, c, x.ws+"/t", engine.DeleteOptions{Recursive: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := x.Restore(ctx, c, rewindTo("one"), engine.RestoreOptions{}); !slices.Equal(blockedBy(err), []engine.Why{engine.MovedWhole}) {
		t.Errorf("a tree and what was changed in it, in one step: %v", err)
	}
	c.Turn = "two" // what is in the trash was not changed from outside
	x.BeginTurn(ctx, c)
	x.write("t/other.txt", "somebody's\n")
	if _, err := x.Untrash(ctx, c, done.Trashed[0].ID, false); !engine.Conflicts.In(err) {
		t.Errorf("over something that is there: %v", err)
	}
	if _, err := x.Undo(ctx, c, engine.RestoreOptions{}); !engine.Conflicts.In(err) {
		t.Errorf("undone over something that is there: %v", err)
	}
	if err := os.RemoveAll(x.ws + "/t"); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the deletion, then the edit
		if _, err := x.Undo(ctx, c, engine.RestoreOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if now := x.looks(); now != old {
		t.Errorf("undone:\n%s\nwas\n%s", now, old)
	}
	x.Close()
	x.deny = big
	x.open()
	x.write("u/secret.txt", "s\n")
	for _, dir := range []string{"/t", "/u"} { // one would be parked, one goes path by path
		x.Close()
		x.deny = map[string]string{"/t": big, "/u": x.ws + "/u/secret.txt"}[dir]
		x.write("u/open.txt", "o\n")
		x.open()
		whole := x.looks()
		if _, err := x.Delete(ctx, c, x.ws+dir, engine.DeleteOptions{Recursive: true}); err == nil || x.looks() != whole {
			t.Errorf("a tree with something denied in it went: %v\n%s\nwas\n%s", err, x.looks(), whole)
		}
	}
	x.Close()
	x.deny = ""
	x.open()
	if done, err = x.Delete(ctx, c, x.ws+"/t", engine.DeleteOptions{Recursive: true}); err != nil {
		t.Fatal(err)
	}
	x.Close()
	x.deny = x.ws + "/t"
	x.open()
	if _, err := x.Untrash(ctx, c, done.Trashed[0].ID, false); err == nil {
		t.Error("came back to a path that is denied by now")
	}
	x.Close()
	x.deny = ""
	x.open()
	// Another thing in its place is not what was parked.
	files, _ := x.trashed()
	if err := errors.Join(os.Rename(files[0], x.data+"/aside"), os.Mkdir(files[0], 0o700)); err != nil {
		t.Fatal(err)
	}
	if _, err := x.Untrash(ctx, c, done.Trashed[0].ID, false); !engine.NotStored.In(err) {
		t.Errorf("a planted tree came back: %v", err)
	}
}

// What has expired goes, with directories that nobody may enter, and not what its links lead to.
func TestParkedExpires(t *testing.T) {
	x := grow(t, small)
	kept := x.write("kept.txt", "k\n")
	x.write("t/big.bin", strings.Repeat("b", 101))
	deep := "t"
	for range 150 { // deeper than the removal goes down
		deep += "/d"
	}
	x.write(deep+"/f.txt", "f\n")
	x.write("t/shut/f.txt", "f\n")
	for _, err := range []error{os.Symlink(kept, x.ws+"/t/link"), os.Symlink(x.ws, x.ws+"/t/dirlink"), os.Chmod(x.ws+"/t/shut", 0o500)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	done, err := x.Delete(ctx, x.call("s"), x.ws+"/t", engine.DeleteOptions{Recursive: true})
	if err != nil {
		t.Fatal(err)
	}
	x.Close()
	db, err := checkpoint.Open(x.data+"/checkpoints", checkpoint.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := engine.EmptyTrash(ctx, engine.Place{}, db, done.Trashed); err != nil {
		t.Fatal(err)
	}
	if files, info := x.trashed(); files != nil || info != nil {
		t.Errorf("still there: %v %v", files, info)
	}
	page, err := db.TrashList(ctx, checkpoint.TrashFilter{AllPrincipals: true})
	if err != nil || len(page.Entries) != 0 {
		t.Errorf("still listed: %+v %v", page, err)
	}
	db.Close()
	if _, err := os.Stat(kept); err != nil {
		t.Error("it followed a link")
	}
	x.open()
	if _, err := x.Undo(ctx, x.call("s"), engine.RestoreOptions{}); err == nil {
		t.Error("it came back from nowhere")
	}
}

// Whatever goes wrong with the N-th system call of a deletion that parks, and of its undo, for every N: the tree is whole, at one of its two places,
// and the trash says which; where everything goes wrong from the N-th call on, after the next start.
func TestFaultAtEveryCallOfAParking(t *testing.T) {
	t.Parallel()
	cells, again := 0, 0
	for name, bad := range badCalls() {
		t.Run(name, func(t *testing.T) {
			x := grow(t, small)
			system := callsOf(x)
			x.write("t/big.bin", strings.Repeat("b", 101))
			x.write("t/sub/b.txt", "b\n")
			x.write("u.txt", "u\n")
			present := bare(x.looks())
			c := x.call("s")
			steps := []func() error{
				func() error {
					_, err := x.Delete(ctx, x.call("s"), x.ws+"/t", engine.DeleteOptions{Recursive: true})
					return err
				},
				func() error { _, err := x.Undo(ctx, x.call("s"), engine.RestoreOptions{}); return err },
			}
			if err := errors.Join(steps[0](), steps[1]()); err != nil {
				t.Fatal(err)
			}
			// here says where the tree is, and fails when it is not whole there or the trash says otherwise.
			here := func(what string) bool {
				t.Helper()
				now := bare(x.looks())
				page, err := x.Trash(ctx, c, checkpoint.TrashFilter{})
				if err != nil {
					t.Fatal(err)
				}
				var files []string
				all, _ := x.trashed()
				for _, f := range all {
					if !guardfs.Temporary(filepath.Base(f)) {
						files = append(files, f)
					}
				}
				switch {
				case now == present && len(files) == 0 && len(page.Entries) == 0:
					return true
				case len(files) == 1 && len(page.Entries) == 1 && page.Entries[0].Parked == files[0] && !strings.Contains(now, "/t/"):
					if b, err := os.ReadFile(files[0] + "/sub/b.txt"); err != nil || string(b) != "b\n" {
						t.Fatalf("%s: %s %v", what, b, err)
					}
					return false
				}
				t.Fatalf("%s: in the tree\n%s\nin the trash %v, listed %+v", what, now, files, page.Entries)
				return false
			}
			for step := range 2 {
				for n := int64(1); ; n++ {
					if there := here("before"); there != (step == 0) { // it went through in spite of the fault
						if err := steps[1-step](); err != nil {
							t.Fatalf("going back: %v", err)
						}
					}
					call, err := system.fail(n, bad, steps[step])
					if call == "" {
						if err != nil {
							t.Fatal(err)
						}
						break
					}
					cells++
					what := fmt.Sprintf("step %d, call %d (%s): %v", step, n, call, err)
					if left := x.halfWay(); left != nil {
						again++
						x.Close()
						x.open()
					}
					if left := x.halfWay(); left != nil {
						t.Fatalf("%s: marks are left", what)
					}
					if there := here(what); err == nil && there == (step == 0) {
						t.Fatalf("%s: said to be done", what)
					}
				}
			}
		})
	}
	t.Logf("%d faults; the next start had to mend %d", cells, again)
}

// Before a tree moves the catalog says durably that it is on its way, so that whoever comes after a crash looks where it is; what says that it lies
// in the trash, or that it does not, comes after the move.
func TestPhaseIsAheadOfTheMove(t *testing.T) {
	x := grow(t, small)
	system := callsOf(x)
	x.write("t/big.bin", strings.Repeat("b", 101))
	other, err := checkpoint.Open(x.data+"/checkpoints", checkpoint.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	for _, c := range []struct {
		step func() error
		gone string // what the move takes away
		want checkpoint.Phase
	}{
		{func() error {
			_, err := x.Delete(ctx, x.call("s"), x.ws+"/t", engine.DeleteOptions{Recursive: true})
			return err
		}, x.ws + "/t", checkpoint.Parking},
		{func() error { _, err := x.Undo(ctx, x.call("s"), engine.RestoreOptions{}); return err }, x.data + "/.moltis-trash-*/files/*", checkpoint.Returning},
	} {
		var last []checkpoint.Trashed // what the catalog said of what is on its way before the last call with the tree in its old place
		hook := func(string) *guardfs.Fault {
			if there, _ := filepath.Glob(c.gone); there != nil {
				page, err := other.TrashList(ctx, checkpoint.TrashFilter{AllPrincipals: true, Unsettled: true})
				if err != nil {
					t.Error(err)
				}
				last = page.Entries
			}
			return nil
		}
		system.hook.Store(&hook)
		err := c.step()
		system.hook.Store(nil)
		if err != nil {
			t.Fatal(err)
		}
		if there, _ := filepath.Glob(c.gone); there != nil {
			t.Fatalf("it did not move: %v", there)
		}
		if len(last) != 1 || last[0].Phase != c.want {
			t.Errorf("at the move the catalog said %+v, not that it is %s", last, c.want)
		}
	}
}

// Of two trees that went from one place each comes back by its own checkpoint, and they don't replace one another.
func TestParkedTwice(t *testing.T) {
	x := grow(t, small)
	c := x.call("s")
	var ids []string
	for _, name := range []string{"one", "two"} {
		x.write("t/big.bin", strings.Repeat("b", 101))
		x.write("t/"+name, "")
		done, err := x.Delete(ctx, c, x.ws+"/t", engine.DeleteOptions{Recursive: true})
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, done.Checkpoint)
	}
	for i, name := range []string{"one", "two"} {
		in := checkpoint.Restore{ID: checkpoint.ID(ids[i])}
		done, err := x.Restore(ctx, c, in, engine.RestoreOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(x.ws + "/t/" + name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := x.Restore(ctx, c, checkpoint.Restore{ID: checkpoint.ID(ids[1-i])}, engine.RestoreOptions{OnConflict: engine.OnConflictForce}); i == 0 && !engine.Conflicts.In(err) {
			t.Errorf("over the other one: %v", err)
		}
		if _, err := x.Restore(ctx, c, checkpoint.Restore{ID: checkpoint.ID(done.Checkpoint)}, engine.RestoreOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}
