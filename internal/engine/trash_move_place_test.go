//go:build linux && !rooted

package engine_test

import (
	"errors"
	"os"
	"strings"
	"testing"

	"moltisfs/checkpoint"
	"moltisfs/internal/engine"
	"moltisfs/internal/testdir"
)

// What others put into the place of a file or directory that came out of the trash is not taken along when that goes there again, nor for what was there.
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
			del, err := x.Delete(ctx, x.call("s"), place, engine.DeleteOptions{Recursive: true})
			must(t, err)
			back, err := x.Untrash(ctx, x.call("s"), del.Trashed[0].ID, false)
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
				_, err = x.Restore(ctx, x.call("s"), checkpoint.Restore{ID: checkpoint.ID(back.Checkpoint)}, engine.RestoreOptions{DryRun: dry})
				if !engine.Conflicts.In(err) {
					t.Errorf("%s for %s is taken to the trash: %v", what, of, err)
				}
				untouched("refused")
				done, err := x.Restore(ctx, x.call("s"), checkpoint.Restore{ID: checkpoint.ID(back.Checkpoint)}, engine.RestoreOptions{OnConflict: engine.OnConflictSkip, DryRun: dry})
				if err != nil || len(done.Skipped) != 1 {
					t.Errorf("%s for %s is not skipped: %v", what, of, err)
				}
				untouched("skipped")
				_, err = x.Restore(ctx, x.call("s"), checkpoint.Restore{ID: checkpoint.ID(del.Checkpoint)}, engine.RestoreOptions{DryRun: dry})
				if !engine.NotStored.In(err) {
					t.Errorf("%s counts as %s: %v", what, of, err)
				}
				done, err = x.Restore(ctx, x.call("s"), checkpoint.Restore{ID: checkpoint.ID(del.Checkpoint)}, engine.RestoreOptions{OnConflict: engine.OnConflictSkip, DryRun: dry})
				if err != nil || len(done.Skipped) != 1 {
					t.Errorf("%s for what was %s is not skipped: %v", what, of, err)
				}
			}
			untouched("looked at")
			if _, err := x.Restore(ctx, x.call("s"), checkpoint.Restore{ID: checkpoint.ID(back.Checkpoint)}, engine.RestoreOptions{OnConflict: engine.OnConflictForce}); err != nil {
				t.Fatalf("%s for %s, forced: %v", what, of, err)
			}
			for range 2 {
				_, err = x.Undo(ctx, x.call("s"), engine.RestoreOptions{})
				must(t, err)
				untouched("undone")
				_, err = x.Redo(ctx, x.call("s"), engine.RestoreOptions{})
				must(t, err)
				if _, err := os.Lstat(place); err == nil {
					t.Fatalf("%s for %s stays", what, of)
				}
			}
		}
	}
}

// What is as it was is back already, also when a directory was worked in meanwhile.
func TestBackAlready(t *testing.T) {
	x := grow(t, small)
	x.write("d/big", strings.Repeat("b", 101))
	del, err := x.Delete(ctx, x.call("s"), x.ws+"/d", engine.DeleteOptions{Recursive: true})
	must(t, err)
	_, err = x.Untrash(ctx, x.call("s"), del.Trashed[0].ID, false)
	must(t, err)
	testdir.Tick(t)
	x.puts("t", "d/new", "x\n")
	done, err := x.Restore(ctx, x.call("s"), checkpoint.Restore{ID: checkpoint.ID(del.Checkpoint)}, engine.RestoreOptions{})
	if err != nil || !done.Idle {
		t.Errorf("%+v %v", done, err)
	}
	for range 2 {
		_, err = x.Undo(ctx, x.call("s"), engine.RestoreOptions{})
		must(t, err)
	}
	if _, err := os.Lstat(x.ws + "/d"); err == nil {
		t.Error("undone, and still there")
	}
}
