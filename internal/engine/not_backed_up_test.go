//go:build linux && !rooted

package engine_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"moltisfs/checkpoint"
	"moltisfs/config"
	"moltisfs/internal/engine"
)

// restore restores the checkpoint; what to do with conflicts is how.
func (x *tree) restore(id checkpoint.ID, how string) (*engine.Restored, error) {
	return x.Restore(ctx, x.call("s"), checkpoint.Restore{ID: id}, engine.RestoreOptions{OnConflict: how})
}

// A restore that removes what the store can't or must not hold parks it, whether the tools made it or somebody outside changed it, and undo, redo
// and the trash bring it back.
func TestRestoreParksWhatTheStoreDoesNotHold(t *testing.T) {
	t.Parallel()
	big := strings.Repeat("b", 500)
	for _, c := range []struct {
		name, file, made, outside, how string
		restore                        func(x *tree, id checkpoint.ID, o engine.RestoreOptions) (*engine.Restored, error)
	}{
		{name: "too large", file: "d/big", made: big},
		{name: "excluded", file: "d/new.env", made: "KEY=1\n"},
		{name: "made too large outside", file: "d/n", made: "n\n", outside: big, how: engine.OnConflictForce},
	} {
		for _, by := range []string{"id", "undo", "turn"} {
			t.Run(c.name+" by "+by, func(t *testing.T) {
				x := grow(t, func(fs *config.FS) { small(fs); fs.Checkpoint.Exclude = []string{"*.env"} })
				call := x.call("s")
				call.Turn = "t1"
				x.BeginTurn(ctx, call)
				id := x.put("s", c.file, c.made)
				content := c.made
				if c.outside != "" {
					content = c.outside
					x.write(c.file, content)
				}
				restore := func(o engine.RestoreOptions) (*engine.Restored, error) {
					switch by {
					case "id":
						return x.Restore(ctx, call, checkpoint.Restore{ID: id}, o)
					case "turn":
						return x.Restore(ctx, call, checkpoint.Restore{Turn: "t1"}, o)
					}
					return x.Undo(ctx, call, o)
				}
				if c.how != "" {
					for _, how := range []string{"", engine.OnConflictMerge} {
						if _, err := restore(engine.RestoreOptions{OnConflict: how}); !engine.Conflicts.In(err) {
							t.Fatalf("%q must be a conflict: %v", how, err)
						}
					}
					if done, err := restore(engine.RestoreOptions{OnConflict: engine.OnConflictSkip}); err != nil || len(done.Skipped) != 1 {
						t.Fatalf("skip: %+v %v", done, err)
					}
					if by == "undo" { // that was walked over
						return
					}
				}
				dry, err := restore(engine.RestoreOptions{OnConflict: c.how, DryRun: true})
				if err != nil || len(dry.Moved) != 1 {
					t.Fatalf("a dry run says %+v %v", dry, err)
				}
				x.has(c.file, content)
				done, err := restore(engine.RestoreOptions{OnConflict: c.how})
				if err != nil || len(done.Moved) != 1 || len(done.Trashed) != 1 || done.Done.Skipped != "" {
					t.Fatalf("restored %+v %v", done, err)
				}
				if _, err := os.Lstat(x.ws + "/d"); err == nil {
					t.Error("the directory that was made for it is still there")
				}
				if files, _ := x.trashed(); len(files) != 1 {
					t.Fatalf("in the trash: %v", files)
				}
				if by == "turn" {
					if _, err := x.Untrash(ctx, call, done.Trashed[0].ID, false); err != nil {
						t.Fatal(err)
					}
				} else if _, err := x.Restore(ctx, call, checkpoint.Restore{ID: checkpoint.ID(done.Checkpoint)}, engine.RestoreOptions{}); err != nil {
					t.Fatal(err)
				}
				x.has(c.file, content)
				if _, err := x.Undo(ctx, call, engine.RestoreOptions{}); err != nil { // of the restore: it goes again
					t.Fatal(err)
				}
				x.has(c.file, "-")
				if _, err := x.Redo(ctx, call, engine.RestoreOptions{}); err != nil {
					t.Fatal(err)
				}
				x.has(c.file, content)
			})
		}
	}
}

// What came back from the trash is the session's own still, and goes again; what somebody else put there meanwhile does not.
func TestRestoreParksAgainWhatCameBack(t *testing.T) {
	for _, outside := range []bool{false, true} {
		x := grow(t, small)
		c := x.call("s")
		c.Turn = "t1"
		x.BeginTurn(ctx, c)
		big := strings.Repeat("b", 500)
		x.put("s", "n0/k/g", big)
		rewind := func() (*engine.Restored, error) {
			return x.Restore(ctx, c, checkpoint.Restore{Turn: "t1"}, engine.RestoreOptions{})
		}
		if _, err := rewind(); err != nil {
			t.Fatal(err)
		}
		if _, err := x.Undo(ctx, c, engine.RestoreOptions{}); err != nil {
			t.Fatal(err)
		}
		x.has("n0/k/g", big)
		if outside {
			x.write("n0/k/g", big+"!")
			if _, err := rewind(); !slices.Equal(blockedBy(err), []engine.Why{engine.ChangedOutside}) {
				t.Errorf("changed outside: %v", err)
			}
			x.has("n0/k/g", big+"!")
			continue
		}
		if _, err := rewind(); err != nil {
			t.Errorf("nobody changed it, and it does not go again: %v", err)
		}
		x.has("n0/k/g", "-")
	}
}

// A redo takes the directories that were made for what it parks, as the restore did that it repeats.
func TestRedoOfAParkingTakesItsDirectories(t *testing.T) {
	x := grow(t, small)
	c := x.call("s")
	c.Turn = "t1"
	x.BeginTurn(ctx, c)
	x.put("s", "n0/k/g", strings.Repeat("b", 500))
	if _, err := x.Restore(ctx, c, checkpoint.Restore{Turn: "t1"}, engine.RestoreOptions{}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if now := x.looks(); strings.Contains(now, "/n0") {
			t.Fatalf("left behind:\n%s", now)
		}
		if _, err := x.Undo(ctx, c, engine.RestoreOptions{}); err != nil {
			t.Fatal(err)
		}
		x.has("n0/k/g", strings.Repeat("b", 500))
		if _, err := x.Redo(ctx, c, engine.RestoreOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

// An undo that has to leave everything alone is walked over, so that those beyond it are in reach; its redo walks back.
func TestUndoGoesOnBeyondWhatItSkips(t *testing.T) {
	x := grow(t, small)
	x.put("s", "a", "a\n")
	x.put("s", "g", "old\n")
	id := x.put("s", "g", strings.Repeat("b\n", 200))
	c := x.call("s")
	skip := engine.RestoreOptions{OnConflict: engine.OnConflictSkip}
	dry := skip
	dry.DryRun = true
	for range 2 {
		if done, err := x.Undo(ctx, c, dry); err != nil || done.Passed || done.Plan.UndoOf != id {
			t.Fatalf("a dry run walks over it: %+v %v", done, err)
		}
	}
	done, err := x.Undo(ctx, c, skip)
	if err != nil || !done.Passed || done.Checkpoint != "" || len(done.Skipped) != 1 {
		t.Fatalf("%+v %v", done, err)
	}
	if done, err = x.Redo(ctx, c, skip); err != nil || done.Checkpoint == "" || len(done.Skipped) != 0 {
		t.Fatalf("the redo of nothing: %+v %v", done, err)
	}
	if done, err = x.Undo(ctx, c, skip); err != nil || !done.Passed {
		t.Fatalf("again: %+v %v", done, err)
	}
	x.has("g", strings.Repeat("b\n", 200))
	for _, name := range []string{"g", "a"} { // the making of g, by which what it is now is parked, and then that of a
		if _, err := x.Undo(ctx, c, skip); err != nil {
			t.Fatal(err)
		}
		x.has(name, "-")
	}
}

// Nothing is put in the place of what the store does not hold.
func TestRestoreDoesNotOverwriteWhatTheStoreDoesNotHold(t *testing.T) {
	big := strings.Repeat("b\n", 200)
	x := grow(t, small)
	const lines = "1\n2\n3\n4\n"
	x.write("f", "old\n"+lines)
	id := x.put("s", "f", "new\n"+lines)
	x.write("f", "new\n"+lines+big)
	for _, how := range []string{engine.OnConflictForce, engine.OnConflictMerge} {
		for _, dry := range []bool{true, false} {
			if _, err := x.Restore(ctx, x.call("s"), checkpoint.Restore{ID: id}, engine.RestoreOptions{OnConflict: how, DryRun: dry}); !engine.WouldLose.In(err) {
				t.Errorf("%s, dry %v: %v", how, dry, err)
			}
		}
	}
	x.has("f", "new\n"+lines+big)
	if done, err := x.restore(id, engine.OnConflictSkip); err != nil || len(done.Skipped) != 1 {
		t.Errorf("skip: %+v %v", done, err)
	}
	x.has("f", "new\n"+lines+big)

	x.put("s", "g", "old\n")
	mine := x.put("s", "g", big) // by the tools; nobody else touched it
	if _, err := x.restore(mine, ""); !engine.WouldLose.In(err) {
		t.Errorf("what the tools made too large: %v", err)
	}
	if _, err := x.Delete(ctx, x.call("s"), x.ws+"/g", engine.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := x.restore(mine, ""); err != nil {
		t.Errorf("and after it went to the trash: %v", err)
	}
	x.has("g", "old\n")
}

// The directories that a change makes are recorded as they were made.
func TestMadeDirectoriesAreRecordedWhole(t *testing.T) {
	x := grow(t, small)
	id := x.put("s", "made/deep/f", "f\n")
	done, err := x.restore(id, engine.OnConflictRefuse)
	if err != nil {
		t.Fatal(err)
	}
	if done, err = x.restore(checkpoint.ID(done.Checkpoint), engine.OnConflictRefuse); err != nil {
		t.Fatal(err)
	}
	for _, id := range []checkpoint.ID{id, checkpoint.ID(done.Checkpoint)} {
		op, err := x.Checkpoint(ctx, x.call("s"), id)
		if err != nil {
			t.Fatal(err)
		}
		dirs := 0
		for _, c := range op.Changes {
			if c.After.Kind != checkpoint.Dir {
				continue
			}
			dirs++
			if fi, err := os.Stat(c.Path); err != nil || c.After.Mode.Perm() != fi.Mode().Perm() {
				t.Errorf("%s: recorded with mode %v, is %v %v", c.Path, c.After.Mode, fi, err)
			}
		}
		if dirs != 2 {
			t.Errorf("%d directories are recorded, not 2", dirs)
		}
	}
}
