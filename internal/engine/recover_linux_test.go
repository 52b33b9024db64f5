//go:build linux && !rooted

package engine_test

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"moltisfs/checkpoint"
	"moltisfs/config"
	"moltisfs/internal/engine"
	"moltisfs/internal/guardfs"
	"moltisfs/internal/testdir"
)

// A kill before the swap of one file leaves it, one after the swap has changed it. What a call is cut off before, for each.
var cutAt = map[bool]string{false: "rename", true: "unlink"}

func (x *tree) outcome(id checkpoint.ID) checkpoint.Outcome {
	x.t.Helper()
	op, err := x.call("s").Checkpoint(ctx, id)
	must(x.t, err)
	return op.Outcome
}

// A change that was made counts as made, whatever is at its path by now. A dry run changes neither the tree nor the history.
func TestWhatWasMadeStaysMade(t *testing.T) {
	for _, killed := range []bool{false, true} {
		x := grow(t, nil)
		x.write("a", "x")
		x.write("b", "x")
		first := x.put("s", "a", "y")
		var second checkpoint.ID
		if killed {
			second = x.cut("unlink", 1, writes("y", "b"))
		} else {
			second = x.put("s", "b", "y")
		}
		third := x.put("s", "n/m/f", "new")
		x.reopen()
		x.write("b", "x") // as it was before, by others
		must(t, os.Remove(x.ws+"/n/m/f"))
		looks := x.looks()
		other := x.open2(x.ws)
		for _, want := range []checkpoint.ID{third, second, first} {
			dry, err := other.Begin(x.call("s")).Undo(ctx, engine.RestoreOptions{DryRun: true})
			if err != nil || dry.Plan.UndoOf != want || x.looks() != looks {
				t.Fatalf("killed %v: the dry run takes back %v, want %s: %v\n%s", killed, dry, want, err, x.looks())
			}
			if o := other.outcome(want); o == checkpoint.Aborted {
				t.Fatalf("killed %v: %s is %v", killed, want, o)
			}
			done, err := other.Begin(x.call("s")).Undo(ctx, engine.RestoreOptions{})
			if err != nil || done.Plan.UndoOf != want {
				t.Fatalf("killed %v: taken back %v, want %s: %v", killed, done, want, err)
			}
			looks = x.looks()
		}
		x.has("a", "x")
	}
}

// A change of one file, there or new, that a kill cut off before it was made is passed over.
func TestWhatTheKillCutOff(t *testing.T) {
	for name, at := range map[string]string{"b": "rename", "new": "link"} {
		x := grow(t, nil)
		x.writeAll("x", "a", "b")
		want := x.put("s", "a", "y")
		id := x.cut(at, 1, writes("y", name))
		if x.halfWay() == nil {
			t.Fatal("nothing was cut off: the test tests nothing")
		}
		x.reopen()
		if o := x.outcome(id); o != checkpoint.Aborted {
			t.Errorf("%s: it is %q", name, o)
		}
		for _, dry := range []bool{true, false} {
			done, err := x.call("s").Undo(ctx, engine.RestoreOptions{DryRun: dry})
			if err != nil || done.Plan.UndoOf != want {
				t.Errorf("%s, dry run %v: taken back %+v, want %s: %v", name, dry, done, want, err)
			}
		}
		x.settled()
	}
}

// A text that somebody wrote into the file right before the rename, and that the process that died could not put back, is put back.
func TestWhatWasWrittenRightBeforeTheKillIsKept(t *testing.T) {
	for _, saved := range []bool{true, false} {
		x := grow(t, func(fs *config.FS) { fs.CheckpointBeforeMutation = saved })
		x.write("b", "x")
		x.put("s", "a", "y") // so that there is a history, if there is to be one
		run := x.cutting("unlink", 1)
		func() {
			defer func() { _ = recover() }() // without a checkpoint there is none to name
			run(writes("y", "b"))
		}()
		holds, _ := filepath.Glob(x.ws + "/.moltis-*.tmp")
		if len(holds) != 1 {
			t.Fatalf("there is %v", holds)
		}
		must(t, os.WriteFile(holds[0], []byte("theirs"), 0o600))
		x.reopen()
		x.has("b", "theirs")
		if left, _ := filepath.Glob(x.ws + "/.moltis-*"); left != nil {
			t.Errorf("saved %v: there is still %v", saved, left)
		}
	}
}

// Somebody renames a file over ours right before the rename of a change of one file, and the change is cut off by a kill right after that: theirs
// comes back.
func TestRenamedOverRightBeforeTheKill(t *testing.T) {
	x := grow(t, nil)
	x.write("a", "old")
	theirs := x.write("theirs", "theirs")
	var armed, over atomic.Bool
	y := *x
	y.cfg.RequireApproval = false
	y.fault = func(called string) *guardfs.Fault {
		switch {
		case over.Load():
			return &guardfs.Fault{Err: syscall.EIO}
		case called == "rename" && armed.Load():
			over.Store(true)
			must(t, os.Rename(theirs, x.ws+"/a"))
		}
		return nil
	}
	y.open()
	armed.Store(true)
	y.does(writes("new", "a")) //nolint:errcheck // it is cut off
	if y.Close(); !over.Load() {
		t.Fatal("there was no rename")
	}
	x.has("a", "new")
	x.reopen()
	x.has("a", "theirs")
	if left, _ := filepath.Glob(x.ws + "/.moltis-*"); left != nil {
		t.Error(left)
	}
}

// A tree came back from the trash by a rewind that was cut off then. It goes to the trash again, unless others have put something into it.
func TestUsedAfterItCameBack(t *testing.T) {
	for _, used := range []bool{false, true} {
		x := grow(t, small)
		x.needsTrash()
		x.write("t/big.bin", strings.Repeat("b", 101))
		x.write("a", "old")
		must(t, deletes("t")(ctx, x.turn("s", "t1"), x.ws))
		c := x.call("s")
		c.Turn = "t1"
		must(t, writes("new", "a")(ctx, c, x.ws))
		id := x.cut("rename", 2, func(ctx context.Context, c *engine.Call, _ string) error {
			return errOf(c.Restore(ctx, rewindTo("t1"), engine.RestoreOptions{}))
		})
		x.has("t/big.bin", strings.Repeat("b", 101))
		want, outcome := "-", checkpoint.Aborted
		if used {
			x.write("t/theirs", "theirs")
			want, outcome = strings.Repeat("b", 101), checkpoint.Foreign
		}
		x.reopen()
		x.has("t/big.bin", want)
		if used {
			x.has("t/theirs", "theirs")
		}
		if x.has("a", "new"); x.outcome(id) != outcome {
			t.Errorf("used %v: it is %s", used, x.outcome(id))
		}
	}
}

// Where others removed what a change that was cut off had displaced, as git clean does, it comes back from the checkpoint; also where the start
// that does that is cut off. What the checkpoint does not hold can't come back: then the new content stays.
func TestDisplacedIsRemovedByOthers(t *testing.T) {
	for _, stored := range []bool{true, false} {
		for n := int64(1); ; n++ {
			x := grow(t, func(fs *config.FS) {
				if !stored {
					fs.Checkpoint.MaxFileBytes = 2
				}
			})
			system := callsOf(x)
			x.writeAll("old", "a", "b", "c")
			must(t, os.Chmod(x.ws+"/a", 0o640))
			id := x.cut("rename", 3, writes("new", "a", "b", "c"))
			x.has("b", "new")
			temps, _ := filepath.Glob(x.ws + "/.moltis-*-[01].tmp")
			if len(temps) != 2 {
				t.Fatal(temps)
			}
			for _, name := range temps {
				must(t, os.Remove(name))
			}
			x.Close()
			met, _ := system.ends(n, func() error { x.open(); return nil })
			x.reopen()
			want, outcome := "old", checkpoint.Aborted
			if !stored {
				want, outcome = "new", checkpoint.Foreign
			}
			x.has("a", want)
			x.has("b", want)
			x.has("c", "old")
			if left, _ := filepath.Glob(x.ws + "/.moltis-*"); left != nil || x.outcome(id) != outcome {
				t.Fatalf("stored %v, cut off before %d: %v is left, it is %s", stored, n, left, x.outcome(id))
			}
			if i, err := os.Stat(x.ws + "/a"); err != nil || i.Mode() != 0o640 {
				t.Errorf("%v %v", i, err)
			}
			if !met {
				break
			}
		}
	}
}

// Where others have put another file in the place of one that a change had replaced before it was cut off, theirs stays. The one that was there
// before goes only if it is what was looked at and the checkpoint has it; else it is kept beside.
func TestDisplacedWhereOthersHaveItsPlace(t *testing.T) {
	for what, c := range map[string]struct {
		stored      bool
		there, kept string
	}{
		"as it was":              {true, "old", ""},
		"not in the checkpoint":  {false, "old", "old"},
		"written into meanwhile": {true, "theirs", "theirs"},
	} {
		x := grow(t, func(fs *config.FS) {
			if !c.stored {
				fs.Checkpoint.MaxFileBytes = 2
			}
		})
		x.writeAll("old", "a", "b", "c")
		id := x.cut("rename", 3, writes("new", "a", "b", "c"))
		temps, _ := filepath.Glob(x.ws + "/.moltis-*-0.tmp")
		if len(temps) != 1 {
			t.Fatal(temps)
		}
		x.write(filepath.Base(temps[0]), c.there)
		must(t, os.Remove(x.ws+"/a"))
		x.write("a", "newer")
		x.reopen()
		x.has("a", "newer")
		x.has("b", "old")
		kept, err := engine.Kept(ctx, x.data, engine.Location{}, false)
		if err != nil || (len(kept) == 1) != (c.kept != "") || x.outcome(id) != checkpoint.Foreign {
			t.Fatalf("%s: kept %v %v, it is %s", what, kept, err, x.outcome(id))
		}
		if c.kept != "" {
			x.has(filepath.Base(kept[0].Path), c.kept)
		}
		if left, _ := filepath.Glob(x.ws + "/.moltis-*.tmp"); left != nil {
			t.Errorf("%s: %v is left", what, left)
		}
	}
}

// A change that was made before its process was killed is settled before a later one stands on it: that may put back what it changed.
func TestACutOffChangeThatALaterOneChangedBack(t *testing.T) {
	x := grow(t, nil)
	x.write("b", "x")
	x.put("s", "a", "y")
	cut := x.cut("unlink", 1, writes("y", "b"))
	later := x.put("s", "b", "x") // by a process that began before the kill
	x.reopen()
	if o := x.outcome(cut); o == checkpoint.Aborted {
		t.Fatalf("it is %q", o)
	}
	for _, want := range []struct {
		of      checkpoint.ID
		content string
	}{{later, "y"}, {cut, "x"}} {
		done, err := x.call("s").Undo(ctx, engine.RestoreOptions{})
		if err != nil || done.Plan.UndoOf != want.of {
			t.Fatalf("taken back %+v, want %s: %v", done, want.of, err)
		}
		x.has("b", want.content)
	}
}

// Of what killed processes had under way, a process that may not look at all of it settles what it can, and does not wait for the rest; whoever may settles that.
func TestAnotherRootSettlesItsPart(t *testing.T) {
	x := grow(t, nil)
	var ids []checkpoint.ID
	names := []string{"r2/a", "r1/b", "r2/c", "r1/d", "r2/made"}
	var runs []func(act) checkpoint.ID // all begin before the first is killed
	for _, name := range names {
		x.write(name, "old")
		runs = append(runs, x.cutting(cutAt[name == "r2/made"], 1))
	}
	for i, name := range names {
		ids = append(ids, runs[i](writes("new", name)))
	}
	x.Close()
	other := x.open2(x.ws + "/r2")
	must(t, errOf(other.Begin(x.call("s")).Restore(ctx, checkpoint.Restore{ID: ids[4]}, engine.RestoreOptions{})))
	must(t, other.Close())
	x.has("r2/made", "old")
	const aborted, presumed, committed = checkpoint.Aborted, checkpoint.Presumed, checkpoint.Committed
	has := func(want ...checkpoint.Outcome) {
		t.Helper()
		db, err := checkpoint.Open(x.data+"/checkpoints", checkpoint.Options{})
		must(t, err)
		defer db.Close()
		for i, id := range ids {
			if op, err := db.Get(ctx, id, checkpoint.Scope{AllSessions: true}); err != nil || op.Outcome != want[i] {
				t.Errorf("%d: %q, want %q: %v", i, op.Outcome, want[i], err)
			}
		}
	}
	has(aborted, presumed, aborted, presumed, committed)
	x.open()
	has(aborted, aborted, aborted, aborted, committed)
	if left := x.halfWay(); left != nil {
		t.Errorf("asked about again are %v", left)
	}
}

// The taking back of a change that made a new file in a new directory waits for whoever makes the same, and leaves it to them.
func TestTakingBackWaitsForWhoMakesTheSame(t *testing.T) {
	x := grow(t, nil)
	x.SetLockWait(20 * time.Millisecond)
	id := x.cut("rename", 1, writes("same\n", "d/f"))
	locks, err := guardfs.OpenLocks(filepath.Join(x.data, "locks"))
	must(t, err)
	lock := func(name string) func() {
		unlock, err := locks.Lock(ctx, guardfs.NameKey(x.ws+"/"+name))
		must(t, err)
		return unlock
	}
	for _, name := range []string{"d", "d/f"} {
		unlock := lock(name)
		must(t, x.Recover(ctx))
		unlock()
		if left := x.halfWay(); len(left) != 1 {
			t.Fatalf("while %s is locked: half-way are %v", name, left)
		}
	}
	// They make it while it is waited for them: their directory has a lock of its own, and their file is theirs.
	unlock := lock("d")
	x.SetLockWait(time.Minute)
	done := make(chan error)
	go func() { done <- x.Recover(ctx) }()
	x.write("d/f", "same\n")
	unlock()
	must(t, <-done)
	x.has("d/f", "same\n")
	if o := x.outcome(id); o != checkpoint.Aborted || x.halfWay() != nil {
		t.Errorf("it is %q, half-way are %v", o, x.halfWay())
	}
}

// A call that meets a change left half-way takes that back first, and then makes all of its own change.
func TestWhoeverWaitedTakesBackFirst(t *testing.T) {
	all := []string{"a", "b", "c"}
	lay := func(t *testing.T) *tree {
		x := grow(t, nil)
		x.writeAll("old", all...)
		return x
	}
	t.Run("write", func(t *testing.T) {
		x := lay(t)
		x.cut("rename", 2, writes("new", all...))
		x.has("a", "new")
		must(t, x.does(writes("mine", "c")))
		x.has("a", "old")
		x.has("b", "old")
		x.has("c", "mine")
	})
	t.Run("rewind", func(t *testing.T) {
		x := lay(t)
		c := x.turn("s", "t")
		must(t, errOf(c.ChangeFiles(ctx, x.becomes("new", all...))))
		var asked atomic.Bool
		c.Approver = meanwhile(func() { // the same rewind by another, who had the locks, and dies
			if !asked.Swap(true) {
				x.cut("rename", 2, rewinds)
			}
		})
		x.cfg.RequireApproval = true
		x.reopen()
		must(t, errOf(x.Begin(c).Restore(ctx, rewindTo("t"), engine.RestoreOptions{})))
		x.haveAll("old", all...)
	})
	t.Run("taken back by another", func(t *testing.T) {
		x := lay(t)
		id := x.cut("rename", 2, writes("new", all...))
		unlock := x.LockOp(ctx, id) // and waits for the locks of its paths
		done := make(chan error, 1)
		go func() { done <- x.does(writes("mine", "a")) }()
		testdir.Running(t, "lockFor")
		x.has("a", "new")
		unlock()
		must(t, <-done)
		x.has("a", "mine")
		x.has("b", "old")
	})
}

// A restore does not plan with a change of which it is not known whether it was made, because a process that stands still holds the locks of its paths, or another one
// waits for them to find out: it is refused. One that is not about that change does not wait for it.
func TestRestoreOfWhatIsNotSettled(t *testing.T) {
	x := grow(t, nil)
	x.writeAll("old", "a", "b", "c")
	x.put("other", "c", "edited")
	x.put("s", "b", "edited")
	cut := x.cut("rename", 1, writes("new", "a"))
	locks, err := guardfs.OpenLocks(filepath.Join(x.data, "locks"))
	must(t, err)
	letGo, err := locks.Lock(ctx, x.LockKey(x.ws+"/a"))
	must(t, err)
	refused := func(when string) {
		t.Helper()
		x.SetLockWait(50 * time.Millisecond)
		done, err := x.call("s").Undo(ctx, engine.RestoreOptions{})
		if e, ok := errors.AsType[*engine.Refusal](err); !ok || e.Cause != engine.Unsettled || e.Facts != cut {
			t.Fatalf("%s: %+v, %v", when, done, err)
		}
		x.has("b", "edited")
	}
	refused("its path is locked")
	x.SetLockWait(30 * time.Second)
	err = errOf(x.call("other").Undo(ctx, engine.RestoreOptions{}))
	if _, shares := errors.AsType[*guardfs.LockedError](err); shares {
		t.Skip("c, or a directory above it, happens to have the same one of the 1,024 locks as a")
	}
	must(t, err)
	x.has("c", "old")

	letGo()
	letGo = x.LockOp(ctx, cut) // as another process does that finds out
	refused("another looks")
	letGo()
	must(t, x.does(undoes))
	if o := x.outcome(cut); o != checkpoint.Aborted {
		t.Errorf("it is %q", o)
	}
	x.has("b", "old")
}

// A process dies while a directory has the name of ours that it has between two names: whoever comes next finds
// it under its old name. If somebody has made another thing there meanwhile that stays, and the tree goes on to its new name.
func TestKilledBetweenTwoNames(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		meanwhile func(x *tree)
		goesOn    bool
	}{
		"a start": {func(*tree) {}, false},
		"a call below the old name": {func(x *tree) {
			other := x.open2(x.ws)
			_, err := other.Begin(x.call("s")).Create(ctx, x.ws+"/d/n/new", []byte("new\n"), engine.Rules{Parents: true})
			must(t, errors.Join(err, other.Close()))
			must(t, os.RemoveAll(x.ws+"/d/n"))
		}, false},
		"a call below the new name": {func(x *tree) {
			other := x.open2(x.ws)
			_, err := other.Begin(x.call("s")).Create(ctx, x.ws+"/e/g/new", []byte("new\n"), engine.Rules{Parents: true})
			must(t, errors.Join(err, other.Close()))
			must(t, os.RemoveAll(x.ws+"/e/g"))
		}, false},
		"another at the new name": {func(x *tree) { x.write("e/g/theirs", "theirs\n") }, false},
		"another at the old name": {func(x *tree) { x.write("d/theirs", "theirs\n") }, true},
		"a file at the old name":  {func(x *tree) { x.write("d", "theirs\n") }, true},
	} {
		x := grow(t, nil)
		x.layMove()
		was := x.looks()
		x.cut("rename", 2, moves("d", "e/g"))
		if _, err := os.Lstat(x.ws + "/d"); !errors.Is(err, os.ErrNotExist) || x.halfWay() == nil {
			t.Fatalf("%s: it was not cut off between its names: %v", what, err)
		}
		c.meanwhile(x)
		x.reopen()
		must(t, x.Recover(ctx))
		kept, err := engine.Kept(ctx, x.data, engine.Location{}, false)
		if err != nil || x.halfWay() != nil || len(kept) != 0 {
			t.Errorf("%s: kept %v %v, half-way %v", what, kept, err, x.halfWay())
		}
		if c.goesOn {
			theirs := x.looks()
			must(t, errors.Join(os.RemoveAll(x.ws+"/d"), os.Rename(x.ws+"/e/g", x.ws+"/d")))
			if x.looks() == theirs {
				t.Errorf("%s: nothing of theirs was there", what)
			}
		}
		must(t, os.RemoveAll(x.ws+"/e/g"))
		if now := x.looks(); now != was {
			t.Errorf("%s: it is\n%s\nand was\n%s", what, now, was)
		}
	}
}

// Somebody moves a directory before the N-th system call of a rewind that removes what is in it, for some N: what can't
// be put back is told, and nothing is made again at the old place. It comes back as soon as the directory does.
func TestDirectoryMovedDuringARewind(t *testing.T) {
	t.Parallel()
	names := []string{"n1", "n2", "sub/n3", "sub/n4"}
	told := 0
	stride := cmp.Or(*every, 23)
	for n := first(t, stride); ; n += stride {
		x := grow(t, nil)
		system := callsOf(x)
		x.write("kept", "old")
		x.call("s").BeginTurn(ctx)
		for _, name := range names {
			x.puts("t", "new/"+name, name)
		}
		x.puts("t", "kept", "new")
		moved := false
		met, err := system.beside(n, func() { moved = os.Rename(x.ws+"/new", x.ws+"/moved") == nil }, func() error { return x.does(rewinds) })
		if !met {
			break
		}
		there := func(dir, name string) bool {
			_, err := os.Lstat(x.ws + dir + name)
			return err == nil
		}
		var missing []string
		for _, name := range names {
			if !there("/moved/", name) && !there("/new/", name) {
				missing = append(missing, x.ws+"/new/"+name)
			}
		}
		half, ok := factsOf[engine.HalfFacts](err, engine.HalfMade)
		if err != nil && missing != nil {
			told++
			if !ok || slices.ContainsFunc(missing, func(name string) bool { return !slices.Contains(half.Left, name) }) {
				t.Errorf("moved before call %d: %v is gone: %v", n, missing, err)
			}
		}
		x.reopen()
		for _, name := range names {
			if moved && err != nil && there("/moved/", name) && there("/new/", name) {
				t.Errorf("moved before call %d: %s is there twice, after %v", n, name, err)
			}
		}
		if moved && err != nil && !there("", "/new") { // what is in no place is in the directory, under a temporary name
			must(t, os.Rename(x.ws+"/moved", x.ws+"/new"))
			x.reopen()
		}
		for _, name := range names {
			if moved && err != nil && !there("/moved/", name) && !there("/new/", name) {
				t.Errorf("moved before call %d: %s is gone, after %v", n, name, err)
			}
		}
		if left := x.halfWay(); left != nil {
			t.Errorf("moved before call %d: %v is still half-way", n, left)
		}
		if err != nil && !strings.Contains(x.looks(), "/kept") {
			t.Errorf("moved before call %d: kept is gone", n)
		}
	}
	if told == 0 {
		t.Error("nothing was ever removed before the directory was moved: the test tests nothing")
	}
}

// A change outside between two calls of one turn is a conflict for every restore that crosses it, merge keeps it, and having been
// kept once it is still not dropped.
func TestChangedOutsideBetweenTwoCalls(t *testing.T) {
	const old = "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n"
	edited := func(s string, lines ...string) string {
		for _, l := range lines {
			s = strings.Replace(s, l+"\n", l+" edited\n", 1)
		}
		return s
	}
	for _, by := range []string{"id", "turn", "since"} {
		t.Run(by, func(t *testing.T) {
			x := grow(t, nil)
			x.write("f", old)
			c := x.turn("s", "t1")
			start := time.Now()
			first := x.put("s", "f", edited(old, "2"))
			x.write("f", edited(old, "2", "6"))
			x.put("s", "f", edited(old, "2", "6", "10"))
			in := map[string]checkpoint.Restore{"id": {ID: first}, "turn": {Turn: "t1"}, "since": {Since: start}}[by]
			restore := func(how string) (*engine.Restored, error) {
				return c.Restore(ctx, in, engine.RestoreOptions{OnConflict: how})
			}
			refused := func() {
				t.Helper()
				if _, err := restore(""); !engine.Conflicts.In(err) {
					t.Fatalf("it must be a conflict: %v", err)
				}
			}
			refused()
			if done, err := restore(engine.OnConflictSkip); err != nil || len(done.Skipped) != 1 {
				t.Fatalf("skip: %+v %v", done, err)
			}
			x.has("f", edited(old, "2", "6", "10"))
			must(t, errOf(restore(engine.OnConflictMerge)))
			x.has("f", edited(old, "6"))
			refused() // what was kept is kept
			must(t, errOf(c.Undo(ctx, engine.RestoreOptions{})))
			x.has("f", edited(old, "2", "6", "10"))
			if _, err := c.Undo(ctx, engine.RestoreOptions{}); err != nil { // of the second edit alone
				t.Fatal(err)
			}
			x.has("f", edited(old, "2", "6"))
			if _, err := c.Undo(ctx, engine.RestoreOptions{}); !engine.Conflicts.In(err) {
				t.Fatalf("undo over it must be a conflict: %v", err)
			}
			must(t, errOf(c.Undo(ctx, engine.RestoreOptions{OnConflict: engine.OnConflictMerge})))
			x.has("f", edited(old, "6"))
			refused()
			must(t, errOf(restore(engine.OnConflictForce)))
			x.has("f", old)
		})
	}
}

func (x *tree) meta(name string) (mode os.FileMode, uid, gid uint32, attr string) {
	x.t.Helper()
	i, err := os.Stat(x.ws + "/" + name)
	must(x.t, err)
	st := i.Sys().(*syscall.Stat_t)
	var v [64]byte
	n, _ := unix.Getxattr(x.ws+"/"+name, "user.x", v[:])
	return i.Mode(), st.Uid, st.Gid, string(v[:max(n, 0)])
}

// A file that somebody else removed or changed comes back by the checkpoint of that with the metadata that the tools had left it.
func TestExternalComesBackWithItsMetadata(t *testing.T) {
	x := grow(t, nil)
	path := x.write("old", "old\n")
	must(t, os.Chmod(path, 0o640))
	if err := unix.Setxattr(path, "user.x", []byte("kept"), 0); err != nil {
		t.Skip("no extended attributes here:", err)
	}
	if os.Getuid() == 0 {
		must(t, os.Chown(path, 1000, 1001))
	}
	c := x.call("s")
	turn := func(name string) {
		c.Turn = name
		c.BeginTurn(ctx)
	}
	turn("t1")
	x.put("s", "old", "old, edited\n")
	x.put("s", "made", "made\n")
	x.put("s", "shared", "made\n")
	type meta struct {
		mode     os.FileMode
		uid, gid uint32
		attr     string
	}
	look := func(name string) meta { m, u, g, a := x.meta(name); return meta{m, u, g, a} }
	was := map[string]meta{"old": look("old"), "made": look("made"), "shared": look("shared")}
	must(t, errors.Join(os.Remove(path), os.Remove(x.ws+"/made")))
	x.write("shared", "by hand\n")
	turn("t2")
	page, err := c.Checkpoints(ctx, checkpoint.Filter{Kind: checkpoint.KindExternal})
	if err != nil || len(page.Checkpoints) != 1 {
		t.Fatalf("%+v %v", page, err)
	}
	must(t, errOf(c.Restore(ctx, checkpoint.Restore{ID: page.Checkpoints[0].ID}, engine.RestoreOptions{})))
	x.has("old", "old, edited\n")
	x.has("made", "made\n")
	x.has("shared", "made\n")
	for name, want := range was {
		if got := look(name); got != want {
			t.Errorf("%s came back with %+v, want %+v", name, got, want)
		}
	}
}

// Others write before each call of a change from its rename on, into the file or by another one in its place: theirs is there in the end. What was
// there before is in its place, in the checkpoint, or beside under a name that the answer tells. Where only that file was in the way it is no half-made change.
func TestOthersAtEveryCallFromTheRenameOn(t *testing.T) {
	for _, c := range []struct{ saved, inPlace bool }{{true, true}, {true, false}, {false, true}, {false, false}} {
		conflicts := 0
		for n := int64(1); ; n++ {
			x := grow(t, func(fs *config.FS) { fs.CheckpointBeforeMutation = c.saved })
			x.write("a", "old")
			var count atomic.Int64
			var on, acted atomic.Bool
			hook := func(op string) *guardfs.Fault {
				if op == "rename" {
					on.Store(true)
				}
				if on.Load() && count.Add(1) == n {
					acted.Store(true)
					name := x.ws + "/a"
					if !c.inPlace {
						name = x.ws + "/theirs"
					}
					must(t, errors.Join(os.WriteFile(name, []byte("theirs"), 0o600), os.Rename(name, x.ws+"/a")))
				}
				return nil
			}
			system := callsOf(x)
			err := system.meet(hook, func() error { return x.does(writes("new", "a")) })
			if !acted.Load() {
				must(t, err)
				break
			}
			left, _ := filepath.Glob(x.ws + "/.moltis-*")
			var beside string
			for _, name := range left {
				b, rerr := os.ReadFile(name)
				must(t, rerr)
				beside += string(b)
				if !guardfs.IsKept(filepath.Base(name)) || err == nil || !strings.Contains(err.Error(), filepath.Base(name)) {
					t.Errorf("%+v, before call %d: %v is left: %v", c, n, name, err)
				}
			}
			if b, rerr := os.ReadFile(x.ws + "/a"); rerr != nil || string(b) != "theirs" {
				t.Errorf("%+v, before call %d: it has %q, beside is %q: %v %v", c, n, b, beside, rerr, err)
			}
			if _, is := errors.AsType[*guardfs.ConflictError](err); is {
				conflicts++
			} else if err != nil {
				t.Errorf("%+v, before call %d: %v", c, n, err)
			}
			if !c.saved && !c.inPlace && err != nil && n > 1 && beside != "old" {
				t.Errorf("%+v, before call %d: what was there is gone: %v", c, n, err)
			}
		}
		if conflicts == 0 {
			t.Errorf("%+v: nobody was in the way: the test tests nothing", c)
		}
	}
}
