package engine_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"moltisfs/checkpoint"
	"moltisfs/internal/engine"
	"moltisfs/internal/guardfs"
)

// A restored file is as new to builds as any changed one, unless it is to have its old time; one that is as it was keeps everything.
func TestTimes(t *testing.T) {
	x := grow(t, nil)
	old := time.Unix(1e9, 7)
	a, b := x.write("a.txt", "a\n"), x.write("b.txt", "b\n")
	for _, p := range []string{a, b} {
		must(t, os.Chtimes(p, old, old))
	}
	c := x.turn("s", "t")
	change := func(content string) {
		t.Helper()
		must(t, errOf(c.ChangeFiles(ctx, engine.Files{Paths: []string{a, b}, Next: func(ts []*engine.Target) error {
			ts[0].After = engine.After{Kind: guardfs.KindFile, Content: []byte(content)}
			ts[1].After = engine.After{Kind: guardfs.KindFile, Content: []byte("b\n")}
			return nil
		}})))
	}
	for _, keep := range []bool{false, true} {
		change("new\n")
		must(t, errOf(c.Restore(ctx, rewindTo("t"), engine.RestoreOptions{KeepTimes: keep})))
		i, err := os.Stat(a)
		if err != nil || i.ModTime().Equal(old) != keep {
			t.Errorf("keep %v: it is of %v %v", keep, i.ModTime(), err)
		}
		if i, err := os.Stat(b); err != nil || !i.ModTime().Equal(old) {
			t.Errorf("keep %v: the other one was touched: %v %v", keep, i.ModTime(), err)
		}
	}
}

// A path that is denied by now is in no rewind's way: it is left alone, and counted, not named. A
// restore that names the checkpoint is refused.
func TestDeniedByNow(t *testing.T) {
	x := grow(t, nil)
	a, b := x.write("a.txt", "a\n"), x.write("b.txt", "b\n")
	c := x.turn("s", "t")
	done, err := c.ChangeFiles(ctx, engine.Files{Paths: []string{a, b}, Next: holding("new\n")})
	must(t, err)
	changed := x.looks()
	x.deny = b
	x.reopen()
	x.Begin(c)
	if _, err := c.Restore(ctx, checkpoint.Restore{ID: checkpoint.ID(done.Checkpoint)},
		engine.RestoreOptions{OnConflict: engine.OnConflictForce}); err == nil || x.looks() != changed {
		t.Errorf("restored by its id: %v\n%s", err, x.looks())
	}
	r, err := c.Restore(ctx, rewindTo("t"), engine.RestoreOptions{OnConflict: engine.OnConflictForce})
	if err != nil || r.Denied != 1 || len(r.Skipped) != 0 {
		t.Fatalf("rewound %+v %v", r, err)
	}
	for path, want := range map[string]string{a: "a\n", b: "new\n"} {
		if got, err := os.ReadFile(path); err != nil || string(got) != want {
			t.Errorf("%s holds %q %v", path, got, err)
		}
	}
}

// A rewind takes back what was changed in a tree, that it was deleted, and what came into its place, one after the other under one
// answer; one undo takes back the rewind. Where a piece is refused, those before it stand, and the same call again goes on.
func TestRewindOverDeletedTrees(t *testing.T) {
	x := grow(t, small)
	big := strings.Repeat("b", 101)
	x.write("d/big", big)
	x.write("o", "o\n")
	old := x.looks()
	c := x.turn("s", "one")
	change := func(name, content string) {
		t.Helper()
		must(t, errOf(c.ChangeFiles(ctx, x.becomes(content, name))))
	}
	remove := func() {
		t.Helper()
		must(t, errOf(c.Delete(ctx, x.ws+"/d", engine.DeleteOptions{Recursive: true})))
	}
	change("d/f", "new\n")
	change("o", "new\n")
	remove()
	change("d/g", "g\n")
	remove()
	change("d/h", "h\n")
	changed := x.looks()
	dry, err := c.Restore(ctx, rewindTo("one"), engine.RestoreOptions{DryRun: true})
	if err != nil || x.looks() != changed || dry.Plan.More == "" {
		t.Fatalf("%+v %v", dry, err)
	}
	done, err := c.Restore(ctx, rewindTo("one"), engine.RestoreOptions{})
	if err != nil || x.looks() != old || len(done.Plan.Undoes) != 6 || done.Plan.More != "" || len(done.Targets) < 3 || len(done.Moved) < 2 {
		t.Fatalf("%+v %v\n%s", done, err, x.looks())
	}
	if _, err := c.Undo(ctx, engine.RestoreOptions{}); err != nil || x.looks() != changed {
		t.Fatalf("the rewind undone: %v\n%s\nwas\n%s", err, x.looks(), changed)
	}
	if _, err := c.Restore(ctx, rewindTo("one"), engine.RestoreOptions{}); err != nil || x.looks() != old {
		t.Fatalf("rewound again: %v\n%s", err, x.looks())
	}

	c.Turn = "two"
	c.BeginTurn(ctx)
	change("d/f", "new\n")
	x.write("d/f", "somebody's\n")
	remove()
	_, err = c.Restore(ctx, rewindTo("two"), engine.RestoreOptions{})
	part, _ := engine.Reason(err).Facts.(engine.PartFacts)
	if !engine.PartTaken.In(err) || !slices.Equal(part.Back, []string{x.ws + "/d"}) || len(part.Checkpoints) != 1 || !engine.Conflicts.In(part.Err) {
		t.Fatalf("%v %+v", err, part)
	}
	x.has("d/f", "somebody's\n")
	x.write("d/f", "new\n")
	if _, err := c.Restore(ctx, rewindTo("two"), engine.RestoreOptions{}); err != nil || x.looks() != old {
		t.Errorf("it goes on: %v\n%s", err, x.looks())
	}
}

// A tree that went and is back at its path stays there in a rewind. What others had put there meanwhile, and the session deleted, stays in the trash.
func TestRewindOverATreeThatIsBack(t *testing.T) {
	x := grow(t, small)
	x.write("d/f", "ours\n")
	old := x.looks()
	c := x.turn("s", "one")
	remove := func() checkpoint.TrashID {
		t.Helper()
		done, err := c.Delete(ctx, x.ws+"/d", engine.DeleteOptions{Recursive: true})
		must(t, err)
		return done.Trashed[0].ID
	}
	ours := remove()
	x.write("d/g", "theirs\n")
	theirs := remove()
	must(t, errOf(c.Untrash(ctx, ours, false)))
	if _, err := c.Restore(ctx, rewindTo("one"), engine.RestoreOptions{}); err != nil || x.looks() != old {
		t.Errorf("%v\n%s\nwas\n%s", err, x.looks(), old)
	}
	page, err := c.Trash(ctx, checkpoint.TrashFilter{})
	if err != nil || len(page.Entries) != 1 || page.Entries[0].ID != theirs {
		t.Errorf("in the trash: %+v %v", page.Entries, err)
	}
}

// A file, a link, an empty directory and a tree go to the trash, by one rename each, and come back as the same objects, times and all.
func TestDeleteAndUntrash(t *testing.T) {
	x := grow(t, small)
	x.write("t/a.txt", "a\n")
	x.write("t/big.bin", strings.Repeat("b", 101)) // too large for the store, which does not matter
	x.write("t/sub/b.txt", "b\n")
	x.write("keep.txt", "k\n")
	old := time.Unix(1e9, 5)
	must(t, errors.Join(os.Mkdir(x.ws+"/t/hollow", 0o711), os.Symlink("a.txt", x.ws+"/t/link"), os.Chmod(x.ws+"/t/a.txt", 0o755),
		os.Chmod(x.ws+"/t/sub", 0o700), os.Chtimes(x.ws+"/t/sub/b.txt", old, old)))
	before := x.looks()
	back := func(what string) {
		t.Helper()
		x.same(what, before)
		if i, err := os.Stat(x.ws + "/t/sub/b.txt"); err != nil || !i.ModTime().Equal(old) {
			t.Errorf("%s: its time is %v %v", what, i.ModTime(), err)
		}
		if files, info := x.trashed(); files != nil || info != nil {
			t.Errorf("%s: left in the trash: %v %v", what, files, info)
		}
	}
	for _, c := range []struct {
		path string
		kind checkpoint.Kind
	}{{"/t/a.txt", checkpoint.File}, {"/t/big.bin", checkpoint.File}, {"/t/link", checkpoint.Symlink}, {"/t/hollow", checkpoint.Dir}, {"/t", checkpoint.Dir}} {
		path := x.ws + c.path
		object, err := os.Lstat(path)
		must(t, err)
		done, err := x.call("s").Delete(ctx, path, engine.DeleteOptions{Recursive: c.path == "/t"})
		if err != nil || len(done.Trashed) != 1 || done.Skipped != "" || done.Checkpoint == "" {
			t.Fatalf("%s: %+v %v", c.path, done, err)
		}
		e := done.Trashed[0]
		files, info := x.trashed()
		if _, err := os.Lstat(path); err == nil || e.Kind != c.kind || e.Path != path || e.Expires.Sub(e.Deleted) != 24*time.Hour || !slices.Equal(files, []string{e.Parked}) {
			t.Fatalf("%s: %+v, in the trash %v", c.path, e, files)
		}
		if i, err := os.Stat(filepath.Dir(filepath.Dir(files[0]))); err != nil || i.Mode().Perm() != 0o700 {
			t.Errorf("the trash is open to others: %v %v", i.Mode(), err)
		}
		card, err := os.ReadFile(info[0])
		if err != nil || !strings.Contains(string(card), "Path="+path+"\n") || !strings.Contains(string(card), string(e.ID)) {
			t.Errorf("the sidecar: %s %v", card, err)
		}
		page, err := x.call("another session").Trash(ctx, checkpoint.TrashFilter{})
		if err != nil || len(page.Entries) != 1 || page.Entries[0].ID != e.ID {
			t.Fatalf("%s: listed %+v %v", c.path, page, err)
		}
		stranger := x.call("s")
		stranger.Principal = "q"
		if _, err := stranger.Untrash(ctx, e.ID, false); !errors.Is(err, checkpoint.ErrNotFound) {
			t.Errorf("%s: another principal: %v", c.path, err)
		}
		must(t, errOf(x.call("another session").Untrash(ctx, e.ID, false)))
		back(c.path)
		if now, err := os.Lstat(path); err != nil || x.Containment() != "best_effort" && !os.SameFile(now, object) {
			t.Errorf("%s: it is another one: %v", c.path, err)
		}
		if _, err := x.call("s").Untrash(ctx, e.ID, false); !errors.Is(err, checkpoint.ErrNotFound) {
			t.Errorf("%s: it came back twice: %v", c.path, err)
		}
	}
	for range 2 { // the deletion is a change like any other
		must(t, x.does(deletes("t")))
		for range 2 {
			must(t, x.does(undoes))
			back("undone")
			must(t, x.does(redoes))
			x.has("t", "-")
		}
		must(t, x.does(undoes))
	}
	back("at last")
}
