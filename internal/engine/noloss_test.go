package engine_test

import (
	"encoding/base64"
	"errors"
	"flag"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"

	"moltisfs/checkpoint"
	"moltisfs/config"
	"moltisfs/internal/edit"
	"moltisfs/internal/engine"
	"moltisfs/internal/guardfs"
)

// becomes is a mutation that gives each path the content.
func (x *tree) becomes(content string, names ...string) engine.Files {
	m := engine.Files{Next: func(ts []*engine.Target) error {
		for _, t := range ts {
			t.After = engine.After{Kind: guardfs.KindFile, Content: []byte(content)}
		}
		return nil
	}}
	for _, name := range names {
		m.Paths = append(m.Paths, x.ws+"/"+name)
	}
	return m
}

func (x *tree) reads(name, want string) {
	x.t.Helper()
	if b, err := os.ReadFile(x.ws + "/" + name); err != nil || string(b) != want {
		x.t.Errorf("%s holds %.40q, should %.40q: %v", name, b, want, err)
	}
}

// Not even by force does a restore overwrite what the store can't hold: it could not be brought back.
func TestForceLosesNothing(t *testing.T) {
	x := grow(t, func(fs *config.FS) { fs.Checkpoint.MaxFileBytes = 100 })
	x.write("a", "one\n")
	c := x.call("s")
	done, err := x.ChangeFiles(ctx, c, x.becomes("two\n", "a"))
	if err != nil {
		t.Fatal(err)
	}
	in := checkpoint.Restore{ID: checkpoint.ID(done.Checkpoint)}
	large := strings.Repeat("x", 101)
	x.write("a", large)
	if _, err := x.Restore(ctx, c, in, engine.RestoreOptions{OnConflict: engine.OnConflictForce}); !engine.WouldLose.In(err) {
		t.Errorf("what nobody holds was overwritten: %v", err)
	}
	x.reads("a", large)
	// The plan looks first; should the file have grown since, the store says what it does not hold.
	m := x.becomes("three\n", "a")
	m.Whole, m.Checkpoint = true, true
	if _, err := x.ChangeFiles(ctx, c, m); !engine.NotStored.In(err) || !strings.Contains(err.Error(), x.ws+"/a") {
		t.Errorf("what the checkpoint does not hold was overwritten: %v", err)
	}
	x.reads("a", large)
	x.write("a", "small\n")
	back, err := x.Restore(ctx, c, in, engine.RestoreOptions{OnConflict: engine.OnConflictForce})
	if err != nil {
		t.Fatal(err)
	}
	x.reads("a", "one\n")
	if _, err := x.Restore(ctx, c, checkpoint.Restore{ID: checkpoint.ID(back.Checkpoint)}, engine.RestoreOptions{}); err != nil {
		t.Fatal(err)
	}
	x.reads("a", "small\n")
}

// Without checkpoint_before_mutation a change of one path goes without; one of several does not, because after a crash half-way nobody could
// take it back.
func TestSeveralPathsHaveACheckpoint(t *testing.T) {
	x := grow(t, func(fs *config.FS) { fs.CheckpointBeforeMutation = false })
	for _, names := range [][]string{{"a"}, {"a", "b"}} {
		done, err := x.ChangeFiles(ctx, x.call("s"), x.becomes(strings.Repeat("1", len(names)), names...))
		if err != nil || (done.Checkpoint != "") != (len(names) > 1) {
			t.Errorf("%v: %+v %v", names, done, err)
		}
	}
}

// Nothing is changed whose checkpoint can't be stored: not one file, not several, and nothing is deleted.
func TestNoChangeWithoutAStore(t *testing.T) {
	x := grow(t, nil)
	for _, name := range []string{"a", "b"} {
		x.write(name, "old\n")
	}
	must(t, os.WriteFile(x.data+"/checkpoints", []byte("in the way"), 0o600))
	c := x.call("s")
	if _, err := x.ChangeFiles(ctx, c, x.becomes("new\n", "a", "b")); err == nil {
		t.Error("several paths were changed without a checkpoint")
	}
	if _, err := x.Delete(ctx, c, x.ws+"/a", engine.DeleteOptions{}); err == nil {
		t.Error("deleted without a checkpoint")
	}
	if _, err := x.ChangeFiles(ctx, c, x.becomes("new\n", "a")); err == nil {
		t.Error("an edit without its checkpoint")
	}
	x.reads("a", "old\n")
	x.reads("b", "old\n")
}

// A checkpoint that the store could not take is no checkpoint: the file stays as it was, the very
// object, and nothing of ours is beside it. What makes the edit fail here is the save itself: the store opens, and is full.
func TestNoEditWithoutItsCheckpoint(t *testing.T) {
	x := grow(t, func(fs *config.FS) { fs.Checkpoint.MaxBytes = 1 << 20 })
	noise := make([]byte, 2<<20)
	rand.NewChaCha8([32]byte{}).Read(noise)
	was := "one\n" + base64.StdEncoding.EncodeToString(noise) + "\n"
	path := x.write("a", was)
	before, err := os.Stat(path)
	must(t, err)
	done, _, err := x.Edit(ctx, x.call("s"), engine.EditArgs{Path: path, Edits: []edit.Edit{{Old: "one\n", New: "two\n"}}})
	if full, ok := errors.AsType[*checkpoint.FullError](err); !ok || full.Max != 1<<20 || !engine.NotSaved.In(err) {
		t.Errorf("an edit without its checkpoint: %+v %v", done, err)
	}
	now, serr := os.Stat(path)
	names, rerr := os.ReadDir(x.ws)
	if serr != nil || rerr != nil || len(names) != 1 {
		t.Errorf("%v is left, %v %v", names, serr, rerr)
	}
	if x.reads("a", was); !os.SameFile(before, now) || !before.ModTime().Equal(now.ModTime()) {
		t.Error("it is another file by now")
	}
}

var manyFiles = flag.Int("files", 300, "how many files a test of very many files changes at once")

// A tree that is too much for the store, though none of its files is, is parked.
func TestLargeTreesAreParked(t *testing.T) {
	t.Parallel()
	x := grow(t, nil)
	for _, n := range []int{1, 2} {
		for i := range n { // of 64 MB that a tree may have; holes take no time
			if err := os.Truncate(x.write("t/"+strings.Repeat("f", i+1), ""), 33<<20); err != nil {
				t.Fatal(err)
			}
		}
		done, err := x.Delete(ctx, x.call("s"), x.ws+"/t", engine.DeleteOptions{Recursive: true})
		if err != nil || len(done.Trashed) != 1 || (done.Trashed[0].Parked != "") != (n > 1) {
			t.Errorf("%d files: %+v %v", n, done, err)
		}
	}
	for _, n := range []int{10_000, 10_001} {
		if n == 10_000 && *manyFiles < n { // storing so many takes long
			continue
		}
		for i := range n {
			x.write("many/"+strconv.Itoa(i), "")
		}
		done, err := x.Delete(ctx, x.call("s"), x.ws+"/many", engine.DeleteOptions{Recursive: true})
		if err != nil || len(done.Trashed) != 1 || (done.Trashed[0].Parked != "") != (n > 10_000) {
			t.Errorf("%d files: %+v %v", n, done, err)
		}
	}
}

// A directory that a link leads to by now is another one: neither is one made in it nor removed from it.
func TestDirectoriesBehindALinkStay(t *testing.T) {
	x := grow(t, nil)
	c := x.call("s")
	swap := func() {
		t.Helper()
		if err := errors.Join(os.Rename(x.ws+"/a", x.ws+"/other"), os.Symlink("other", x.ws+"/a")); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(x.ws+"/a/empty", 0o750); err != nil {
		t.Fatal(err)
	}
	if _, err := x.Delete(ctx, c, x.ws+"/a/empty", engine.DeleteOptions{Recursive: true}); err != nil {
		t.Fatal(err)
	}
	swap()
	if _, err := x.Undo(ctx, c, engine.RestoreOptions{}); err == nil {
		t.Error("a directory came back behind a link")
	}
	if _, err := os.Lstat(x.ws + "/other/empty"); err == nil {
		t.Error("a directory was made behind a link")
	}
}

// externals counts what is on record as changed outside.
func (x *tree) externals() (n int) {
	x.t.Helper()
	page, err := x.Checkpoints(ctx, x.call("s"), checkpoint.Filter{Limit: 100})
	if err != nil {
		x.t.Fatal(err)
	}
	for _, c := range page.Checkpoints {
		if c.Kind == checkpoint.KindExternal {
			n++
		}
	}
	return n
}

// Each turn notices what was changed outside since the one before, also where it has looked before.
func TestEveryTurnLooksAnew(t *testing.T) {
	x := grow(t, nil)
	c := x.call("s")
	if _, err := x.ChangeFiles(ctx, c, x.becomes("0\n", "a")); err != nil {
		t.Fatal(err)
	}
	for turn, content := range []string{"0\n", "1\n", "1\n", "2\n", "3\n"} {
		x.write("a", content)
		c.Turn = strconv.Itoa(turn)
		x.BeginTurn(ctx, c)
		if n, want := x.externals(), int(content[0]-'0'); n != want {
			t.Fatalf("turn %d: %d changes outside, should %d", turn, n, want)
		}
	}
}

// What is in the trash was not removed from outside; what the tools have put in its place since, and is gone, was.
func TestRemovedAfterTheTreeWasParked(t *testing.T) {
	x := grow(t, func(fs *config.FS) { fs.Checkpoint.MaxFileBytes = 100 })
	c := x.call("s")
	x.write("t/big.bin", strings.Repeat("b", 101))
	again := x.becomes("a\n", "t/a")
	again.Parents = true
	for i, want := range []int{0, 1} {
		if _, err := x.ChangeFiles(ctx, c, again); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			if done, err := x.Delete(ctx, c, x.ws+"/t", engine.DeleteOptions{Recursive: true}); err != nil || done.Trashed[0].Parked == "" {
				t.Fatalf("%+v %v", done, err)
			}
		} else if err := os.RemoveAll(x.ws + "/t"); err != nil {
			t.Fatal(err)
		}
		c.Turn = strconv.Itoa(i)
		x.BeginTurn(ctx, c)
		if n := x.externals(); n != want {
			t.Errorf("step %d: %d changes outside, should %d", i, n, want)
		}
	}
}

// A restore that may skip passes by what a link has come in the way of, and restores the rest.
func TestSkipPassesByALinkOnTheWay(t *testing.T) {
	x := grow(t, nil)
	x.write("d/f", "old\n")
	x.write("g", "old\n")
	c := x.call("s")
	c.Turn = "t"
	x.BeginTurn(ctx, c)
	if _, err := x.ChangeFiles(ctx, c, x.becomes("new\n", "d/f", "g")); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Rename(x.ws+"/d", x.ws+"/other"), os.Symlink("other", x.ws+"/d")); err != nil {
		t.Fatal(err)
	}
	in := checkpoint.Restore{Turn: "t"}
	if _, err := x.Restore(ctx, c, in, engine.RestoreOptions{}); err == nil {
		t.Error("restored behind a link")
	}
	x.reads("g", "new\n")
	done, err := x.Restore(ctx, c, in, engine.RestoreOptions{OnConflict: engine.OnConflictSkip})
	if err != nil || len(done.Skipped) != 1 || done.Skipped[0].Path != x.ws+"/d/f" {
		t.Errorf("%+v %v", done, err)
	}
	x.reads("g", "old\n")
	x.reads("other/f", "new\n")
}
