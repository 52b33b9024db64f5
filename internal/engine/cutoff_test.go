//go:build linux && !rooted

package engine_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"moltisfs/checkpoint"
	"moltisfs/internal/engine"
)

// A change that was made counts as made, whatever is at its path by now: the process that made it may live, or have been killed after its answer. Only one that was
// under way at the kill is looked at, and a dry run changes neither the tree nor the history.
func TestWhatWasMadeStaysMade(t *testing.T) {
	for _, killed := range []bool{false, true} {
		x := grow(t, nil)
		x.write("a", "x")
		x.write("b", "x")
		first := x.put("s", "a", "y")
		second := x.put("s", "b", "y")
		third := x.put("s", "n/m/f", "new")
		if killed { // its file stays, and nobody holds it
			x.asKilled(func() { x.Close() })
			x.open()
		}
		x.write("b", "x") // as it was before, by others
		if err := os.Remove(x.ws + "/n/m/f"); err != nil {
			t.Fatal(err)
		}
		looks := x.looks()
		other, err := engine.OpenOver(engine.Options{Config: x.cfg, Judge: inside{x.ws, x.deny}, DataDir: x.data})
		if err != nil {
			t.Fatal(err)
		}
		defer other.Close()
		for _, want := range []checkpoint.ID{third, second, first} {
			dry, err := other.Undo(ctx, x.call("s"), engine.RestoreOptions{DryRun: true})
			if err != nil || dry.Plan.UndoOf != want || x.looks() != looks {
				t.Fatalf("killed %v: the dry run takes back %v, want %s: %v\n%s", killed, dry, want, err, x.looks())
			}
			if op, err := other.Checkpoint(ctx, x.call("s"), want); err != nil || op.Outcome == checkpoint.Aborted {
				t.Fatalf("killed %v: %s is %v, %v", killed, want, op, err)
			}
			done, err := other.Undo(ctx, x.call("s"), engine.RestoreOptions{})
			if err != nil || done.Plan.UndoOf != want {
				t.Fatalf("killed %v: taken back %v, want %s: %v", killed, done, want, err)
			}
			looks = x.looks()
		}
		x.has("a", "x")
	}
}

// A change that a killed process had under way and never made is passed over; one that it had made counts, and goes on counting when its path is put
// back outside.
func TestWhatTheKillCutOff(t *testing.T) {
	for _, made := range []bool{false, true} {
		x := grow(t, nil)
		x.write("a", "x")
		x.write("b", "x")
		first := x.put("s", "a", "y")
		x.Close()
		db, err := checkpoint.Open(x.data+"/checkpoints", checkpoint.Options{Durability: checkpoint.Relaxed, Settles: true})
		if err != nil {
			t.Fatal(err)
		}
		state := func(s string) checkpoint.State {
			return checkpoint.State{Kind: checkpoint.File, Mode: 0o640, UID: uint32(os.Getuid()), GID: uint32(os.Getgid()), Size: int64(len(s)), Hash: engine.HashOf([]byte(s))}
		}
		saved, err := db.Save(ctx, checkpoint.Op{Tool: "Edit", Kind: checkpoint.KindEdit, Principal: "p", Session: "s", Changes: []checkpoint.Change{{Path: x.ws + "/b", Role: "target",
			Before: state("x"), Content: []byte("x"), After: state("y"), AfterContent: []byte("y")}}})
		if err != nil {
			t.Fatal(err)
		}
		want := first
		if made {
			x.write("b", "y")
			want = saved.ID
		}
		x.asKilled(func() { db.Close() })
		if !checkpoint.AnyCutOff(x.data + "/checkpoints") {
			t.Fatal("nothing was cut off: the test tests nothing")
		}
		x.open()
		x.write("b", "x")
		for _, dry := range []bool{true, false} {
			done, err := x.Undo(ctx, x.call("s"), engine.RestoreOptions{DryRun: dry})
			if err != nil || done.Plan.UndoOf != want {
				t.Errorf("made %v, dry run %v: taken back %+v, want %s: %v", made, dry, done, want, err)
			}
		}
		if checkpoint.AnyCutOff(x.data + "/checkpoints") {
			t.Error("it is asked about again")
		}
	}
}

// A change that was made before its process was killed, and whose file another process has changed back since, was made: what is there now says nothing of it.
func TestACutOffChangeThatALaterOneChangedBack(t *testing.T) {
	x := grow(t, nil)
	x.write("b", "x")
	x.put("s", "a", "y")
	db, err := checkpoint.Open(x.data+"/checkpoints", checkpoint.Options{Durability: checkpoint.Relaxed, Settles: true})
	must(t, err)
	state := func(s string) checkpoint.State {
		return checkpoint.State{Kind: checkpoint.File, Mode: 0o640, UID: uint32(os.Getuid()), GID: uint32(os.Getgid()), Size: int64(len(s)), Hash: engine.HashOf([]byte(s))}
	}
	cut, err := db.Save(ctx, checkpoint.Op{Tool: "Edit", Kind: checkpoint.KindEdit, Principal: "p", Session: "s", Changes: []checkpoint.Change{{Path: x.ws + "/b", Role: "target",
		Before: state("x"), Content: []byte("x"), After: state("y"), AfterContent: []byte("y")}}})
	must(t, err)
	x.write("b", "y")
	x.asKilled(func() { db.Close() })
	later := x.put("s", "b", "x") // by a process that began before the kill
	x.Close()
	x.open()
	if op, err := x.Checkpoint(ctx, x.call("s"), cut.ID); err != nil || op.Outcome == checkpoint.Aborted {
		t.Fatalf("%+v, %v", op, err)
	}
	for _, want := range []struct {
		of      checkpoint.ID
		content string
	}{{later, "y"}, {cut.ID, "x"}} {
		done, err := x.Undo(ctx, x.call("s"), engine.RestoreOptions{})
		if err != nil || done.Plan.UndoOf != want.of {
			t.Fatalf("taken back %+v, want %s: %v", done, want.of, err)
		}
		x.has("b", want.content)
	}
}

// asKilled leaves behind, after end, what a process that is killed at that moment leaves of what it has under way.
func (x *tree) asKilled(end func()) {
	x.t.Helper()
	left := map[string][]byte{}
	names, _ := filepath.Glob(x.data + "/checkpoints/writers/*")
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil {
			x.t.Fatal(err)
		}
		left[name] = b
	}
	end()
	for name, b := range left {
		if err := os.WriteFile(name, b, 0o600); err != nil {
			x.t.Fatal(err)
		}
	}
}

// What was cut off in one root is not decided by a process that is confined to another: it is left for whoever may reach the paths.
func TestAnotherRootLeavesWhatWasCutOff(t *testing.T) {
	for _, marked := range []bool{true, false} {
		x := grow(t, nil)
		x.write("r1/a", "new")
		x.write("r1/b", "old")
		x.write("r2/c", "c")
		x.Close()
		db, err := checkpoint.Open(x.data+"/checkpoints", checkpoint.Options{Durability: checkpoint.Relaxed, Settles: true})
		must(t, err)
		state := func(s string) checkpoint.State {
			return checkpoint.State{Kind: checkpoint.File, Mode: 0o640, UID: uint32(os.Getuid()), GID: uint32(os.Getgid()), Size: int64(len(s)), Hash: engine.HashOf([]byte(s))}
		}
		op := checkpoint.Op{Tool: "Edit", Kind: checkpoint.KindEdit, Principal: "p", Session: "s"}
		names := []string{"b"} // was not changed
		if marked {
			names = []string{"a", "b"} // half of it was
		}
		for _, name := range names {
			op.Changes = append(op.Changes, checkpoint.Change{Path: x.ws + "/r1/" + name, Role: "target", Before: state("old"), Content: []byte("old"), After: state("new"), AfterContent: []byte("new")})
		}
		saved, err := db.Save(ctx, op)
		must(t, err)
		if marked {
			in, err := db.Intend(saved.ID)
			must(t, err)
			must(t, in.Leave())
		}
		x.asKilled(func() { db.Close() })
		waits := func() bool {
			ids, err := checkpoint.Unfinished(x.data + "/checkpoints")
			must(t, err)
			return len(ids) > 0 || checkpoint.AnyCutOff(x.data+"/checkpoints")
		}
		other, err := engine.OpenOver(engine.Options{Config: x.cfg, Judge: inside{x.ws + "/r2", ""}, DataDir: x.data})
		must(t, err)
		_, err = other.ChangeFiles(ctx, x.call("z"), x.becomes("mine", "r2/c"))
		must(t, err)
		must(t, other.Close())
		x.has("r2/c", "mine")
		if !waits() {
			t.Fatalf("marked %v: the other root has decided it", marked)
		}
		x.open()
		if waits() {
			t.Errorf("marked %v: it is not decided", marked)
		}
		x.has("r1/b", "old")
		if marked {
			x.has("r1/a", "old")
		}
		if got, err := x.Checkpoint(ctx, x.call("s"), saved.ID); err != nil || got.Outcome != checkpoint.Aborted {
			t.Errorf("marked %v: it is %v, %v", marked, got, err)
		}
	}
}

// Of what one killed process had under way, a process that may not look at all of it settles what it can, and does not wait for the rest; whoever may settles that.
func TestAnotherRootSettlesItsPart(t *testing.T) {
	x := grow(t, nil)
	x.Close()
	db, err := checkpoint.Open(x.data+"/checkpoints", checkpoint.Options{Durability: checkpoint.Relaxed, Settles: true})
	must(t, err)
	state := func(s string) checkpoint.State {
		return checkpoint.State{Kind: checkpoint.File, Mode: 0o640, UID: uint32(os.Getuid()), GID: uint32(os.Getgid()), Size: int64(len(s)), Hash: engine.HashOf([]byte(s))}
	}
	var ids []checkpoint.ID
	for _, name := range []string{"r2/a", "r1/b", "r2/c", "r1/d", "r2/made"} {
		now := "old"
		if name == "r2/made" {
			now = "new"
		}
		x.write(name, now)
		saved, err := db.Save(ctx, checkpoint.Op{Tool: "Edit", Kind: checkpoint.KindEdit, Principal: "p", Session: "s", Changes: []checkpoint.Change{{Path: x.ws + "/" + name, Role: "target",
			Before: state("old"), Content: []byte("old"), After: state("new"), AfterContent: []byte("new")}}})
		must(t, err)
		ids = append(ids, saved.ID)
	}
	x.asKilled(func() { db.Close() })
	outcomes := func() (out [5]checkpoint.Outcome) {
		db, err := checkpoint.Open(x.data+"/checkpoints", checkpoint.Options{})
		must(t, err)
		defer db.Close()
		for i, id := range ids {
			op, err := db.Get(ctx, id, checkpoint.Scope{AllSessions: true})
			must(t, err)
			out[i] = op.Outcome
		}
		return out
	}
	left := func() []checkpoint.ID {
		ids := checkpoint.CutOffIDs(x.data + "/checkpoints")
		slices.Sort(ids)
		return ids
	}
	other, err := engine.OpenOver(engine.Options{Config: x.cfg, Judge: inside{x.ws + "/r2", ""}, DataDir: x.data})
	must(t, err)
	_, err = other.Restore(ctx, x.call("s"), checkpoint.Restore{ID: ids[4]}, engine.RestoreOptions{})
	must(t, err)
	must(t, other.Close())
	x.has("r2/made", "old")
	const aborted, presumed = checkpoint.Aborted, checkpoint.Presumed
	if got, want := outcomes(), [5]checkpoint.Outcome{aborted, presumed, aborted, presumed, presumed}; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if want := []checkpoint.ID{ids[1], ids[3]}; !slices.Equal(left(), want) {
		t.Errorf("asked about again are %v, want %v", left(), want)
	}
	x.open() // and what was made is not looked at again, though its file is as before
	if got, want := outcomes(), [5]checkpoint.Outcome{aborted, aborted, aborted, aborted, presumed}; got != want || len(left()) > 0 {
		t.Errorf("%q, want %q; asked about again are %v", got, want, left())
	}
}
