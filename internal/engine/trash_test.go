package engine_test

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"moltisfs/checkpoint"
	"moltisfs/config"
	"moltisfs/internal/engine"
	"moltisfs/internal/guardfs"
	"moltisfs/internal/policy"
)

// inside is the real policy: dir is allowed, and denied is not.
func inside(dir, denied string) guardfs.Judge {
	o := policy.Options{Allow: []string{dir + "/**"}, Canonical: guardfs.Canonical}
	if denied != "" {
		o.Deny = []string{denied}
	}
	free, err := everything()
	if err == nil {
		o.Identify, o.Census = policy.Identify(free), policy.Census(free)
	}
	p, perr := policy.New(o)
	if err = errors.Join(err, perr); err != nil {
		panic(err)
	}
	return p
}

// everything is what the policy itself looks at the tree with.
var everything = sync.OnceValues(func() (*guardfs.FS, error) {
	return guardfs.New(guardfs.Options{Judge: policy.AllowAll{}})
})

type tree struct {
	*engine.Engine
	t    testing.TB
	ws   string
	data string
	cfg  config.FS
	deny string
	root string // that may be touched, unless it is ws

	fault func(op string) *guardfs.Fault
	calls guardfs.Calls // nil: those of this machine
}

// grow makes an engine over a fresh tree. change may be nil.
func grow(t testing.TB, change func(*config.FS)) *tree {
	t.Helper()
	return growIn(t, t.TempDir(), change)
}

func growIn(t testing.TB, dir string, change func(*config.FS)) *tree {
	t.Helper()
	dir, err := filepath.EvalSymlinks(dir)
	must(t, err)
	x := &tree{t: t, ws: dir + "/ws", data: dir + "/data", cfg: config.Default().Tools.FS}
	for _, d := range []string{x.ws, x.data} {
		must(t, os.Mkdir(d, 0o700))
	}
	x.cfg.RequireApproval, x.cfg.CheckpointBeforeMutation = false, true
	if change != nil {
		change(&x.cfg)
	}
	x.open()
	t.Cleanup(func() { x.Close() })
	return x
}

// small makes everything above 100 bytes too large for the store, so that it is parked.
func small(fs *config.FS) { fs.Checkpoint.MaxFileBytes = 100 }

func (x *tree) open() {
	x.t.Helper()
	e, err := engine.OpenOver(engine.Options{Config: x.cfg, Judge: inside(cmp.Or(x.root, x.ws), x.deny), DataDir: x.data, Fault: x.fault, Calls: x.calls})
	must(x.t, err)
	if x.Engine = e; x.calls != nil {
		e.AtHome()
	}
}

// reopen is the next start.
func (x *tree) reopen() {
	x.t.Helper()
	must(x.t, x.Close())
	x.open()
}

// open2 is another engine over the tree, which may touch root only.
func (x *tree) open2(root string) *tree {
	x.t.Helper()
	y := *x
	e, err := engine.OpenOver(engine.Options{Config: x.cfg, Judge: inside(root, x.deny), DataDir: x.data})
	must(x.t, err)
	y.Engine = e
	x.t.Cleanup(func() { e.Close() })
	return &y
}

func (x *tree) call(session string) *engine.Call {
	return x.Begin(&engine.Call{ID: "c", Principal: "p", Session: session, Tool: "test"})
}

// turn is a call with which a turn of the session begins.
func (x *tree) turn(session, turn string) *engine.Call {
	c := x.call(session)
	c.Turn = turn
	c.BeginTurn(ctx)
	return c
}

func (x *tree) write(name, content string) string {
	x.t.Helper()
	path := x.ws + "/" + name
	must(x.t, os.MkdirAll(filepath.Dir(path), 0o750))
	must(x.t, os.WriteFile(path, []byte(content), 0o640))
	return path
}

// put writes a file by way of the engine and returns its checkpoint.
func (x *tree) put(session, name, content string) checkpoint.ID {
	x.t.Helper()
	done, err := x.call(session).ChangeFiles(ctx, x.becomes(content, name))
	must(x.t, err)
	return checkpoint.ID(done.Checkpoint)
}

// holding is a Files.Next that gives each file the content.
func holding(content string) func([]*engine.Target) error {
	return func(ts []*engine.Target) error {
		for _, t := range ts {
			t.After = engine.After{Kind: guardfs.KindFile, Content: []byte(content)}
		}
		return nil
	}
}

// gone is a Files.Next that removes each file.
func gone(ts []*engine.Target) error {
	for _, t := range ts {
		t.After = engine.After{Kind: guardfs.KindAbsent}
	}
	return nil
}

// unput removes a file as a restore does: the store has what it was.
func (x *tree) unput(c *engine.Call, name string) checkpoint.ID {
	x.t.Helper()
	done, err := c.ChangeFiles(ctx, engine.Files{Paths: []string{x.ws + "/" + name}, Next: gone})
	must(x.t, err)
	return checkpoint.ID(done.Checkpoint)
}

// looks is the tree as text: a line a name, with mode and content.
func (x *tree) looks() string {
	x.t.Helper()
	var out string
	err := filepath.WalkDir(x.ws, func(p string, e os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		out += p[len(x.ws):] + " " + info.Mode().String()
		switch {
		case info.Mode()&os.ModeSymlink != 0:
			to, _ := os.Readlink(p)
			out += " -> " + to
		case info.Mode().IsRegular():
			b, err := os.ReadFile(p)
			if err != nil {
				return err
			}
			out += " " + string(b)
		}
		out += "\n"
		return nil
	})
	must(x.t, err)
	return out
}

// same fails unless the tree looks as it did.
func (x *tree) same(when, was string) {
	x.t.Helper()
	if now := x.looks(); now != was {
		x.t.Fatalf("%s:\n%s\nwas\n%s", when, now, was)
	}
}

func rewindTo(turn string) checkpoint.Restore { return checkpoint.Restore{Turn: turn} }

var ctx = context.Background()

// A file, a link, an empty directory and a tree go to the trash and come back as they were: content, modes, links, empty directories.
func TestDeleteAndUntrash(t *testing.T) {
	x := grow(t, nil)
	x.write("t/a.txt", "a\n")
	x.write("t/sub/b.txt", "b\n")
	x.write("t/sub/empty.txt", "")
	x.write("keep.txt", "k\n")
	for _, err := range []error{os.Mkdir(x.ws+"/t/hollow", 0o711), os.Symlink("a.txt", x.ws+"/t/link"), os.Chmod(x.ws+"/t/a.txt", 0o755)} {
		must(t, err)
	}
	before := x.looks()
	for _, c := range []struct {
		path string
		kind checkpoint.Kind
	}{{"/t/a.txt", checkpoint.File}, {"/t/link", checkpoint.Symlink}, {"/t/hollow", checkpoint.Dir}, {"/t", checkpoint.Dir}} {
		path := x.ws + c.path
		done, err := x.call("s").Delete(ctx, path, engine.DeleteOptions{Recursive: c.path == "/t"})
		if err != nil {
			t.Fatalf("%s: %v", c.path, err)
		}
		if _, err := os.Lstat(path); err == nil || len(done.Trashed) != 1 || done.Trashed[0].Kind != c.kind || done.Trashed[0].Path != path {
			t.Fatalf("%s: %+v", c.path, done.Trashed)
		}
		if left := done.Trashed[0].Expires.Sub(done.Trashed[0].Deleted); left != 24*time.Hour {
			t.Errorf("%s: kept for %v", c.path, left)
		}
		page, err := x.call("another session").Trash(ctx, checkpoint.TrashFilter{})
		if err != nil || len(page.Entries) != 1 || page.Entries[0].ID != done.Trashed[0].ID {
			t.Fatalf("%s: listed %+v %v", c.path, page, err)
		}
		stranger := x.call("s")
		stranger.Principal = "q"
		if _, err := stranger.Untrash(ctx, done.Trashed[0].ID, false); !errors.Is(err, checkpoint.ErrNotFound) {
			t.Errorf("%s: another principal: %v", c.path, err)
		}
		if _, err := x.call("another session").Untrash(ctx, done.Trashed[0].ID, false); err != nil {
			t.Fatalf("%s: coming back: %v", c.path, err)
		}
		if now := x.looks(); now != before {
			t.Fatalf("%s came back as\n%s\nand was\n%s", c.path, now, before)
		}
		if _, err := x.call("s").Untrash(ctx, done.Trashed[0].ID, false); !errors.Is(err, checkpoint.ErrNotFound) {
			t.Errorf("%s: it came back twice: %v", c.path, err)
		}
	}
	// The history knows it too: the deletion is a change like any other.
	must(t, errOf(x.call("z").Delete(ctx, x.ws+"/t", engine.DeleteOptions{Recursive: true})))
	if _, err := x.call("z").Undo(ctx, engine.RestoreOptions{}); err != nil || x.looks() != before {
		t.Fatalf("undone: %v\n%s\nwas\n%s", err, x.looks(), before)
	}
	must(t, errOf(x.call("z").Redo(ctx, engine.RestoreOptions{})))
	x.has("t", "-")
}

// A file in the way stays, a file that the store can't hold is parked, and a denied one is neither deleted nor brought back.
func TestTrashRefusals(t *testing.T) {
	x := grow(t, func(fs *config.FS) { fs.Checkpoint.MaxFileBytes = 100; fs.Checkpoint.Exclude = []string{".env*"} })
	a := x.write("a.txt", "a\n")
	d := x.write("d/f.txt", "f\n")
	done, err := x.call("s").Delete(ctx, a, engine.DeleteOptions{})
	must(t, err)
	x.write("a.txt", "somebody's\n")
	if _, err := x.call("s").Untrash(ctx, done.Trashed[0].ID, false); !engine.Conflicts.In(err) {
		t.Errorf("over something that is there: %v", err)
	}
	if _, err := x.call("s").Delete(ctx, filepath.Dir(d), engine.DeleteOptions{}); !engine.NotEmpty.In(err) {
		t.Errorf("a directory that holds something: %v", err)
	}
	before := x.looks()
	for _, name := range []string{"big.bin", "d/.env.local"} { // what the store does not hold is parked
		p := x.write(name, string(make([]byte, 101)))
		for _, victim := range []string{p, filepath.Dir(d)} {
			if done, err := x.call("s").Delete(ctx, victim, engine.DeleteOptions{Recursive: true}); err != nil || len(done.Trashed) != 1 || done.Trashed[0].Parked == "" {
				t.Errorf("%s: %+v %v", victim, done, err)
			}
			must(t, errOf(x.call("s").Undo(ctx, engine.RestoreOptions{})))
		}
		must(t, os.Remove(p))
	}
	x.same("not as it was", before)
	os.Remove(a)
	x.deny = a
	x.reopen()
	if _, err := x.call("s").Untrash(ctx, done.Trashed[0].ID, false); err == nil {
		t.Error("came back to a path that is denied by now")
	}
	if _, err := os.Lstat(a); err == nil {
		t.Error("it is there")
	}
}

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

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// bare leaves out directories, and files with the temporary names of guardfs: either may stay behind where nothing worked any more.
func bare(looks string) string {
	var out []string
	for line := range strings.Lines(looks) {
		name, mode, _ := strings.Cut(line, " ")
		if mode != "" && !strings.HasPrefix(mode, "d") && !strings.Contains(name, "/.moltis-") {
			out = append(out, line)
		}
	}
	return strings.Join(out, "")
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
