//go:build linux && !rooted

package engine_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"moltisfs/checkpoint"
	"moltisfs/internal/engine"
)

// dirsOf says what became of directories in a restore.
func (x *tree) dirsOf(done *engine.Restored) string {
	var kept []string
	for _, k := range done.Kept {
		kept = append(kept, k.Path)
	}
	return strings.ReplaceAll(fmt.Sprintf("made %v removed %v kept %v skipped %d", done.Made, done.Dropped, kept, len(done.Skipped)), x.ws, "")
}

// both is a dry run and then the restore, which says the same of the directories and has nothing in its checkpoint of those that stay.
func (x *tree) both(r checkpoint.Restore, how, want string) {
	x.t.Helper()
	before := x.looks()
	for _, dry := range []bool{true, false} {
		done, err := x.Restore(ctx, x.call("s"), r, engine.RestoreOptions{OnConflict: how, DryRun: dry})
		must(x.t, err)
		if got := x.dirsOf(done); got != want {
			x.t.Errorf("dry run %v: %s\nwant %s", dry, got, want)
		}
		if dry && x.looks() != before {
			x.t.Errorf("a dry run changed something:\n%s", x.looks())
		}
		if done.Checkpoint == "" {
			continue
		}
		op, err := x.Checkpoint(ctx, x.call("s"), checkpoint.ID(done.Checkpoint))
		must(x.t, err)
		for _, c := range op.Changes {
			_, err := os.Lstat(c.Path)
			if there := err == nil; there != (c.After.Kind != checkpoint.Absent) {
				x.t.Errorf("the checkpoint says that %s became %s; there: %v", c.Path, c.After.Kind, there)
			}
		}
	}
}

func TestDirsOfARestore(t *testing.T) {
	t.Run("what is skipped holds its directories", func(t *testing.T) {
		x := grow(t, nil)
		x.puts("t", "b/a/f", "f\n")
		x.puts("t", "b/a/g", "g\n")
		x.write("b/a/f", "theirs\n")
		x.both(rewindTo("t"), engine.OnConflictSkip, "made [] removed [] kept [/b/a /b] skipped 1")
	})
	t.Run("and what comes back as well", func(t *testing.T) {
		x := grow(t, nil)
		x.puts("t", "b/g", "g\n")
		theirs := x.write("b/f", "theirs\n")
		x.puts("t", "b/f", "f\n")
		_, err := x.Delete(ctx, x.call("s"), theirs, engine.DeleteOptions{})
		must(t, err)
		x.both(rewindTo("t"), engine.OnConflictForce, "made [] removed [] kept [/b] skipped 0")
		x.has("b/f", "theirs\n")
	})
	t.Run("what is parked and stays", func(t *testing.T) {
		x := grow(t, small)
		big := strings.Repeat("b", 101)
		x.puts("t", "b/f", big)
		x.write("b/f", big+"theirs")
		x.puts("t", "b/g", "g\n")
		x.both(rewindTo("t"), engine.OnConflictSkip, "made [] removed [] kept [/b] skipped 1")
	})
	t.Run("none is made for what is skipped", func(t *testing.T) {
		x := grow(t, nil)
		x.puts("t", "c/d/x", "x\n")
		x.puts("t", "c/y", "y\n")
		for range 2 {
			_, err := x.Undo(ctx, x.call("s"), engine.RestoreOptions{})
			must(t, err)
		}
		done, err := x.Redo(ctx, x.call("s"), engine.RestoreOptions{DryRun: true})
		if err != nil || x.dirsOf(done) != "made [/c /c/d] removed [] kept [] skipped 0" {
			t.Errorf("%s %v", x.dirsOf(done), err)
		}
		x.put("other", "c/d/x", "theirs\n")
		must(t, os.RemoveAll(x.ws+"/c"))
		row, err := x.Checkpoints(ctx, x.call("s"), checkpoint.Filter{Limit: 1, Session: "s"})
		must(t, err)
		r := checkpoint.Restore{ID: row.Checkpoints[0].ID}
		x.both(r, engine.OnConflictSkip, "made [] removed [] kept [] skipped 1")
		if _, err := os.Lstat(x.ws + "/c"); err == nil {
			t.Error("a directory was made")
		}
		x.both(r, engine.OnConflictForce, "made [/c /c/d] removed [] kept [] skipped 0")
	})
	t.Run("it says what it removes", func(t *testing.T) {
		x := grow(t, nil)
		x.puts("t", "c/x", "x\n")
		must(t, os.RemoveAll(x.ws+"/c"))
		must(t, os.Mkdir(x.ws+"/c", 0o755))
		x.both(rewindTo("t"), "", "made [] removed [/c] kept [] skipped 0")
	})
}

// Paths that can't be there together, because one was a file when the other was not below it yet, are a conflict in the dry run as in the restore.
func TestAFileAndWhatIsBelowIt(t *testing.T) {
	x := grow(t, nil)
	x.puts("t", "b", "b\n")
	must(t, errors.Join(os.Remove(x.ws+"/b"), os.Mkdir(x.ws+"/b", 0o755)))
	x.puts("t", "b/c", "c\n")
	must(t, os.RemoveAll(x.ws+"/b"))
	c := x.call("s")
	c.Turn = "u"
	x.BeginTurn(ctx, c)
	row, err := x.Checkpoints(ctx, c, checkpoint.Filter{Limit: 1})
	if err != nil || len(row.Checkpoints) != 1 || row.Checkpoints[0].Kind != checkpoint.KindExternal {
		t.Fatalf("%+v %v", row, err)
	}
	r := checkpoint.Restore{ID: row.Checkpoints[0].ID}
	before := x.looks()
	for _, how := range []string{"", engine.OnConflictForce, engine.OnConflictMerge} {
		for _, dry := range []bool{true, false} {
			_, err := x.Restore(ctx, x.call("s"), r, engine.RestoreOptions{OnConflict: how, DryRun: dry})
			no, ok := factsOf[[]engine.Blocked](err, engine.BothKinds)
			if !ok || len(no) != 2 || no[0].Path != x.ws+"/b" || no[1].Path != x.ws+"/b/c" || x.looks() != before {
				t.Errorf("%q, dry run %v: %v\n%s", how, dry, err, x.looks())
			}
		}
	}
	x.both(r, engine.OnConflictSkip, "made [/b] removed [] kept [] skipped 1")
	x.has("b/c", "c\n")
}
