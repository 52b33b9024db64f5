//go:build linux && !rooted

package engine_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
	"moltisfs/checkpoint"
	"moltisfs/internal/approval"
	"moltisfs/internal/engine"
	"moltisfs/internal/guardfs"
	"moltisfs/internal/testdir"
)

// A directory that holds something does not go unasked, a file in the way stays, nothing moves from or to a denied path, and a tree is taken back with its
// changes, step by step.
func TestParkedRefusals(t *testing.T) {
	x := grow(t, small)
	big := x.write("t/big.bin", strings.Repeat("b", 101))
	a := x.write("t/a.txt", "a\n")
	c := x.turn("s", "one")
	old := x.looks()
	must(t, errOf(c.ChangeFiles(ctx, engine.Files{Paths: []string{a}, Next: holding("new\n")})))
	if _, err := c.Delete(ctx, x.ws+"/t", engine.DeleteOptions{}); !engine.NotEmpty.In(err) {
		t.Errorf("a directory that holds something: %v", err)
	}
	done, err := c.Delete(ctx, x.ws+"/t", engine.DeleteOptions{Recursive: true})
	must(t, err)
	c.Turn = "two" // what is in the trash was not changed from outside
	c.BeginTurn(ctx)
	x.write("t/other.txt", "somebody's\n")
	if _, err := c.Untrash(ctx, done.Trashed[0].ID, false); !engine.Conflicts.In(err) {
		t.Errorf("over something that is there: %v", err)
	}
	if _, err := c.Undo(ctx, engine.RestoreOptions{}); !engine.Conflicts.In(err) {
		t.Errorf("undone over something that is there: %v", err)
	}
	must(t, os.RemoveAll(x.ws+"/t"))
	for range 2 { // the deletion, then the edit
		must(t, errOf(c.Undo(ctx, engine.RestoreOptions{})))
	}
	x.same("undone", old)
	x.deny = big
	x.reopen()
	x.write("u/secret.txt", "s\n")
	for _, dir := range []string{"/t", "/u"} { // one would be parked, one goes path by path
		x.Close()
		x.deny = map[string]string{"/t": big, "/u": x.ws + "/u/secret.txt"}[dir]
		x.write("u/open.txt", "o\n")
		x.open()
		x.Begin(c)
		whole := x.looks()
		if _, err := c.Delete(ctx, x.ws+dir, engine.DeleteOptions{Recursive: true}); err == nil || x.looks() != whole {
			t.Errorf("a tree with something denied in it went: %v\n%s\nwas\n%s", err, x.looks(), whole)
		}
	}
	x.deny = ""
	x.reopen()
	x.Begin(c)
	if done, err = c.Delete(ctx, x.ws+"/t", engine.DeleteOptions{Recursive: true}); err != nil {
		t.Fatal(err)
	}
	x.deny = x.ws + "/t"
	x.reopen()
	x.Begin(c)
	if _, err := c.Untrash(ctx, done.Trashed[0].ID, false); err == nil {
		t.Error("came back to a path that is denied by now")
	}
	x.deny = ""
	x.reopen()
	x.Begin(c)
	// Another thing in its place is not what was parked.
	files, _ := x.trashed()
	must(t, errors.Join(os.Rename(files[0], x.data+"/aside"), os.Mkdir(files[0], 0o700)))
	if _, err := c.Untrash(ctx, done.Trashed[0].ID, false); !engine.NotStored.In(err) {
		t.Errorf("a planted tree came back: %v", err)
	}
}

// An entry of the trash that has expired goes, with directories that nobody may enter, and not what its links lead to.
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
		must(t, err)
	}
	done, err := x.call("s").Delete(ctx, x.ws+"/t", engine.DeleteOptions{Recursive: true})
	must(t, err)
	x.Close()
	db, err := checkpoint.Open(x.data+"/checkpoints", checkpoint.Options{})
	must(t, err)
	must(t, engine.EmptyTrash(ctx, engine.Location{}, db, done.Trashed))
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
	if err := x.does(undoes); err == nil {
		t.Error("it came back from nowhere")
	}
}

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
	must(x.t, x.does(undoes))
	x.has(dir+"/f", "-")
}

// isBack fails unless what was parked is in its place, and nothing of it in the trash.
func (x *tree) isBack(what, dir string) {
	x.t.Helper()
	x.has(dir+"/f", strings.Repeat("b", 101))
	page, err := x.call("s").Trash(ctx, checkpoint.TrashFilter{})
	files, info := x.trashed()
	if err != nil || len(page.Entries) > 0 || files != nil || info != nil {
		x.t.Fatalf("%s: listed %+v %v, in the trash %v %v", what, page.Entries, err, files, info)
	}
}

// A call that waits to bring something back may find that its directory is there by now, made by somebody else, or that another has brought it back: then
// nothing is left to do, and the trash does not have it again.
func TestParkedComesBackMeanwhile(t *testing.T) {
	for _, kept := range []bool{true, false} {
		for _, redone := range []bool{true, false} {
			x := grow(t, small)
			x.parkedNew("big", kept)
			cfg := x.cfg
			cfg.RequireApproval = true
			other, err := engine.OpenOver(engine.Options{Config: cfg, Judge: inside(x.ws, x.deny), DataDir: x.data})
			must(t, err)
			defer other.Close()
			c := x.call("s")
			c.Approver = meanwhile(func() {
				if !redone {
					_ = os.Mkdir(x.ws+"/big", 0o755)
				} else if _, err := x.call("s").Redo(ctx, engine.RestoreOptions{}); err != nil {
					t.Error(err)
				}
			})
			done, err := other.Begin(c).Redo(ctx, engine.RestoreOptions{})
			if err != nil || done.Idle != redone || done.Idle != (done.Checkpoint == "") {
				t.Fatalf("kept %v, redone %v: %+v %v", kept, redone, done, err)
			}
			x.isBack("redone", "big")
			for range 2 { // the history has it once
				must(t, x.does(undoes))
				x.has("big/f", "-")
				must(t, x.does(redoes))
				x.isBack("and again", "big")
			}
		}
	}
}

// The directory of a parked file appears before any one system call: the file comes back, or stays in the trash and comes back the next time.
func TestParkedAndItsDirectoryAppears(t *testing.T) {
	t.Parallel()
	x := grow(t, small)
	system := callsOf(x)
	refused, reached := 0, int64(0)
	for n := int64(1); ; n++ {
		x.parkedNew("big", false)
		met, err := system.beside(n, func() { _ = os.Mkdir(x.ws+"/big", 0o755) }, func() error { return x.does(redoes) })
		if err != nil {
			refused++
			x.has("big/f", "-")
			if err := x.does(redoes); err != nil {
				t.Fatalf("before call %d, the next time: %v", n, err)
			}
		}
		x.isBack("redone", "big")
		must(t, os.RemoveAll(x.ws+"/big"))
		if reached = n; !met {
			break
		}
	}
	t.Logf("%d calls, %d refused", reached, refused)
}

// An object that moves to the trash from the lower layer of an overlay file system becomes another object by that, and is known there all the same.
func TestParkedFromTheLowerLayer(t *testing.T) {
	for _, options := range []string{"", ",redirect_dir=on"} {
		x := grow(t, small)
		lower := t.TempDir()
		upper, err := os.MkdirTemp("/dev/shm", "overlay")
		if err != nil {
			t.Skip("SKIPPED: no place for the layers: ", err)
		}
		t.Cleanup(func() { os.RemoveAll(upper) })
		big := strings.Repeat("b", 101)
		at := x.ws + "/ov"
		for _, d := range []string{at, upper + "/up", upper + "/work", lower + "/w", lower + "/w/tree"} {
			must(t, os.Mkdir(d, 0o700))
		}
		for _, f := range []string{"big", "tree/big"} {
			must(t, os.WriteFile(lower+"/w/"+f, []byte(big), 0o600))
		}
		must(t, os.Link(lower+"/w/big", lower+"/w/second"))
		if err := unix.Mount("overlay", at, "overlay", 0, "lowerdir="+lower+",upperdir="+upper+"/up,workdir="+upper+"/work"+options); err != nil {
			t.Skip("SKIPPED: no overlay file system can be mounted here: ", err)
		}
		t.Cleanup(func() { unix.Unmount(at, unix.MNT_DETACH) })
		for _, name := range []string{"/w/big", "/w/second", "/w/tree"} {
			if name == "/w/tree" && options == "" {
				continue // such a directory can't be renamed there at all
			}
			done, err := x.call("s").Delete(ctx, at+name, engine.DeleteOptions{Recursive: true})
			if err != nil || len(done.Trashed) != 1 {
				t.Fatalf("deleting %s%s: %+v %v", name, options, done, err)
			}
			if _, err := os.Lstat(at + name); err == nil {
				t.Errorf("%s is still there", name)
			}
			if _, err := x.call("s").Untrash(ctx, done.Trashed[0].ID, false); err != nil {
				t.Fatalf("%s%s does not come back: %v", name, options, err)
			}
			if _, err := os.Lstat(at + name); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// A thing that others put into the place of a file or directory that came out of the trash is not taken along when that goes there again, nor for what was there.
func TestOtherThingInTheParkedPlace(t *testing.T) {
	t.Parallel()
	makes := map[string]func(path string) error{
		"dir": func(p string) error {
			return errors.Join(os.Mkdir(p, 0o755), os.WriteFile(p+"/work", []byte("mine\n"), 0o600))
		},
		"link": func(p string) error { return os.Symlink("nowhere", p) },
		"file": func(p string) error { return os.WriteFile(p, []byte("mine\n"), 0o600) },
	}
	for what, mk := range makes {
		for _, of := range []string{"f", "d"} {
			x := growIn(t, testdir.Disk(t), small) // where a new inode takes the number of one that went
			big := strings.Repeat("b", 101)
			place := x.ws + "/" + of
			x.write(map[string]string{"f": "f", "d": "d/big"}[of], big)
			del, err := x.call("s").Delete(ctx, place, engine.DeleteOptions{Recursive: true})
			must(t, err)
			back, err := x.call("s").Untrash(ctx, del.Trashed[0].ID, false)
			must(t, err)
			testdir.Tick(t)
			must(t, errors.Join(os.RemoveAll(place), mk(place)))
			theirs := x.looks()
			untouched := func(step string) {
				t.Helper()
				if now := x.looks(); now != theirs {
					t.Fatalf("%s for %s, %s: \n%s\nwant\n%s", what, of, step, now, theirs)
				}
			}
			for _, dry := range []bool{true, false} {
				_, err = x.call("s").Restore(ctx, checkpoint.Restore{ID: checkpoint.ID(back.Checkpoint)}, engine.RestoreOptions{DryRun: dry})
				if !engine.Conflicts.In(err) {
					t.Errorf("%s for %s is taken to the trash: %v", what, of, err)
				}
				untouched("refused")
				done, err := x.call("s").Restore(ctx, checkpoint.Restore{ID: checkpoint.ID(back.Checkpoint)}, engine.RestoreOptions{OnConflict: engine.OnConflictSkip, DryRun: dry})
				if err != nil || len(done.Skipped) != 1 {
					t.Errorf("%s for %s is not skipped: %v", what, of, err)
				}
				untouched("skipped")
				_, err = x.call("s").Restore(ctx, checkpoint.Restore{ID: checkpoint.ID(del.Checkpoint)}, engine.RestoreOptions{DryRun: dry})
				if !engine.NotStored.In(err) {
					t.Errorf("%s counts as %s: %v", what, of, err)
				}
				done, err = x.call("s").Restore(ctx, checkpoint.Restore{ID: checkpoint.ID(del.Checkpoint)}, engine.RestoreOptions{OnConflict: engine.OnConflictSkip, DryRun: dry})
				if err != nil || len(done.Skipped) != 1 {
					t.Errorf("%s for what was %s is not skipped: %v", what, of, err)
				}
			}
			untouched("looked at")
			if _, err := x.call("s").Restore(ctx, checkpoint.Restore{ID: checkpoint.ID(back.Checkpoint)}, engine.RestoreOptions{OnConflict: engine.OnConflictForce}); err != nil {
				t.Fatalf("%s for %s, forced: %v", what, of, err)
			}
			for range 2 {
				must(t, x.does(undoes))
				untouched("undone")
				must(t, x.does(redoes))
				if _, err := os.Lstat(place); err == nil {
					t.Fatalf("%s for %s stays", what, of)
				}
			}
		}
	}
}

// A tree that is as it was is back already, also when a directory was worked in meanwhile.
func TestBackAlready(t *testing.T) {
	x := grow(t, small)
	x.write("d/big", strings.Repeat("b", 101))
	del, err := x.call("s").Delete(ctx, x.ws+"/d", engine.DeleteOptions{Recursive: true})
	must(t, err)
	must(t, errOf(x.call("s").Untrash(ctx, del.Trashed[0].ID, false)))
	testdir.Tick(t)
	x.puts("t", "d/new", "x\n")
	done, err := x.call("s").Restore(ctx, checkpoint.Restore{ID: checkpoint.ID(del.Checkpoint)}, engine.RestoreOptions{})
	if err != nil || !done.Idle {
		t.Errorf("%+v %v", done, err)
	}
	for range 2 {
		must(t, x.does(undoes))
	}
	x.has("d", "-")
}

// The same where directories are made for more files than may be open, which have temporary names in them then.
func TestFaultsOfAParkedRewind(t *testing.T) {
	const parked = 12
	faultsOfARewind(t, 97, func(x *tree) {
		for i := range parked {
			x.puts("t", fmt.Sprintf("new/n%d", i), fmt.Sprintln("new", i))
			x.puts("t", fmt.Sprintf("wide/n%d", i), fmt.Sprintln("new", i))
		}
		must(x.t, x.does(rewinds))
		if closed := x.closedDuring(78, undoes); closed < parked {
			x.t.Fatalf("only %d were parked", closed)
		}
	})
}

// A restore that finds the disk full, while more new contents than may be open wait in the directories that it has made, leaves no directory.
func TestParkedRestoreFindsTheDiskFull(t *testing.T) {
	x := grow(t, nil)
	system := callsOf(x)
	x.turn("s", "t")
	for i := range 30 {
		x.puts("t", fmt.Sprintf("file/n%d", i), fmt.Sprintln("new", i))
	}
	done, err := x.call("s").Restore(ctx, rewindTo("t"), engine.RestoreOptions{})
	must(t, err)
	old := x.looks()
	openFiles(t, true, 78)
	waiting := 0
	var mu sync.Mutex
	full := func(op string) *guardfs.Fault {
		mu.Lock()
		defer mu.Unlock()
		if names, _ := filepath.Glob(x.ws + "/.moltis-*/n*"); op == "write" && len(names) >= 5 {
			waiting = max(waiting, len(names))
			return &guardfs.Fault{Err: syscall.ENOSPC}
		}
		return nil
	}
	err = system.meet(full, func() error { return errOf(x.restore(checkpoint.ID(done.Checkpoint), engine.OnConflictForce)) })
	if !errors.Is(err, syscall.ENOSPC) || waiting == 0 || x.looks() != old {
		t.Errorf("%d waited: %v\n%s\nit was\n%s", waiting, err, x.looks(), old)
	}
	x.settled()
}

// A directory in the lower layer of an overlay, as a container's image is, can't be renamed: it is deleted and moved one by one, as one
// change, and comes back.
func TestTreesOfALowerLayer(t *testing.T) {
	if !testdir.OwnMounts(t) {
		return
	}
	x := grow(t, nil)
	must(t, x.Close())
	layers := t.TempDir()
	testdir.Mount(t, "tmpfs", layers, 0)
	for _, d := range []string{"low/d/sub/deep", "low/d/hollow", "low/hollow", "up", "work"} {
		must(t, os.MkdirAll(layers+"/"+d, 0o750))
	}
	for _, f := range []string{"d/a", "d/sub/b", "d/sub/deep/c"} {
		must(t, os.WriteFile(layers+"/low/"+f, []byte(f+"\n"), 0o640))
	}
	must(t, os.Symlink("sub/b", layers+"/low/d/link"))
	o := "lowerdir=" + layers + "/low,upperdir=" + layers + "/up,workdir=" + layers + "/work"
	if err := syscall.Mount("overlay", x.ws, "overlay", 0, o); err != nil {
		t.Skip("SKIPPED: no overlay file system can be mounted here: ", err)
	}
	t.Cleanup(func() { syscall.Unmount(x.ws, syscall.MNT_DETACH) })
	x.open()
	looks := func() (out string) { // but for the trash, which is on the same volume
		err := filepath.WalkDir(x.ws, func(p string, d fs.DirEntry, err error) error {
			if err == nil && strings.HasPrefix(d.Name(), ".moltis-trash") {
				return filepath.SkipDir
			}
			b, _ := os.ReadFile(p)
			out += strings.TrimPrefix(p, x.ws) + " " + d.Type().String() + " " + string(b) + "\n"
			return err
		})
		must(t, err)
		return out
	}
	was := looks()
	if err := os.Rename(x.ws+"/d", x.ws+"/e"); !errors.Is(err, syscall.EXDEV) {
		t.Skip("SKIPPED: this overlay renames directories of its lower layer: ", err)
	}
	for name, do := range map[string]func() error{
		"delete": func() error {
			return x.does(deletes("d"))
		},
		"delete an empty one": func() error {
			return x.does(deletes("hollow"))
		},
		"move": func() error {
			return errOf(x.call("s").Move(ctx, engine.MoveArgs{From: x.ws + "/d", To: x.ws + "/e"}))
		},
	} {
		if err := do(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		now := looks()
		if strings.Contains(now, "/d d") != (name == "delete an empty one") || strings.Contains(now, "/e/sub/deep/c ") != (name == "move") {
			t.Errorf("%s: %s", name, now)
		}
		if err := x.does(undoes); err != nil || looks() != was {
			t.Fatalf("%s, undone: %v\n%s\nwas\n%s", name, err, looks(), was)
		}
		if err := x.does(redoes); err != nil || looks() != now {
			t.Fatalf("%s, redone: %v\n%s\nwas\n%s", name, err, looks(), now)
		}
		must(t, x.does(undoes))
	}
}

// A fault at the N-th system call of a deletion, and of its undo: the tree is whole, at one of its two places, and the trash says which.
func TestFaultAtEveryCallOfAParking(t *testing.T) {
	t.Parallel()
	f := faults{stride: 5, open: true, late: true, run: deletes("t"), back: undoes,
		grow: func(t *testing.T) *tree { return grow(t, small) },
		lay: func(x *tree) {
			x.write("t/big.bin", strings.Repeat("b", 101))
			x.write("t/sub/b.txt", "b\n")
			x.write("u.txt", "u\n")
		},
		looks: func(x *tree) string {
			page, err := x.call("s").Trash(ctx, checkpoint.TrashFilter{})
			must(x.t, err)
			files, _ := x.trashed()
			files = slices.DeleteFunc(files, func(f string) bool { return guardfs.Temporary(filepath.Base(f)) })
			in := ""
			if len(files) == 1 && len(page.Entries) == 1 && page.Entries[0].Parked == files[0] {
				b, err := os.ReadFile(files[0] + "/sub/b.txt")
				in = fmt.Sprint(string(b), err)
			} else if len(files)+len(page.Entries) > 0 {
				in = fmt.Sprintf("the trash has %v and lists %+v", files, page.Entries)
			}
			return bare(x.looks()) + in
		}}
	f.play(t)
}

// closedDuring carries an act out with so many open files more, and says how many files with a temporary name were there at the same time.
func (x *tree) closedDuring(files int, step act) int {
	x.t.Helper()
	most, was := 0, x.fault
	var mu sync.Mutex
	x.fault = func(op string) *guardfs.Fault {
		if op == "link" || op == "rename" {
			mu.Lock()
			defer mu.Unlock()
			names, _ := filepath.Glob(x.ws + "/.moltis-*/*")
			most = max(most, len(names))
		}
		return nil
	}
	x.reopen()
	openFiles(x.t, true, files)
	must(x.t, x.does(step))
	x.fault = was
	x.reopen()
	return most
}
