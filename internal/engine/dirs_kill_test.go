//go:build linux

package engine_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"moltisfs/checkpoint"
	"moltisfs/internal/engine"
	"moltisfs/internal/guardfs"
	"moltisfs/internal/testdir"
)

// makings are changes that make directories, or take them away, and what is there before them.
var makings = map[string]struct {
	lay func(x *tree)
	run func(e *engine.Engine, ws string) error
}{
	"write": {func(x *tree) { x.write("f", "f\n") }, func(e *engine.Engine, ws string) error {
		_, err := e.ChangeFiles(ctx, maker(), engine.Files{Paths: []string{ws + "/x/y/z/f"}, Parents: true, Next: func(ts []*engine.Target) error {
			ts[0].After = engine.After{Kind: guardfs.KindFile, Content: []byte("new\n")}
			return nil
		}})
		return err
	}},
	"make directories": {func(x *tree) { x.write("f", "f\n") }, func(e *engine.Engine, ws string) error {
		a := engine.MkdirArgs{Path: ws + "/x/y/z", Rules: engine.Rules{Parents: true}}
		_, err := e.Mkdir(ctx, maker(), a)
		return err
	}},
	"move a tree": {func(x *tree) {
		x.write("d/a/f", "f\n")
		x.write("d/g", "g\n")
	}, func(e *engine.Engine, ws string) error {
		a := engine.MoveArgs{From: ws + "/d", To: ws + "/x/y/d", Rules: engine.Rules{Parents: true}}
		_, err := e.Move(ctx, maker(), a)
		return err
	}},
	"move a tree back": {func(x *tree) {
		x.write("d/a/f", "f\n")
		_, err := x.Move(ctx, maker(), engine.MoveArgs{From: x.ws + "/d", To: x.ws + "/e"})
		must(x.t, err)
	}, func(e *engine.Engine, _ string) error {
		_, err := e.Undo(ctx, maker(), engine.RestoreOptions{})
		return err
	}},
	"take back": {func(x *tree) {
		x.put("s", "x/y/z/f", "new\n")
	}, func(e *engine.Engine, _ string) error {
		_, err := e.Undo(ctx, maker(), engine.RestoreOptions{})
		return err
	}},
	"bring back a tree": {func(x *tree) {
		for _, f := range []string{"t/a/1", "t/b/c/2", "kept"} {
			x.write(f, f+"\n")
		}
		must(x.t, os.Mkdir(x.ws+"/t/hollow", 0o711))
		x.remove("t")
	}, func(e *engine.Engine, _ string) error {
		_, err := e.Undo(ctx, maker(), engine.RestoreOptions{})
		return err
	}},
	"bring back what is parked": {func(x *tree) {
		x.needsTrash()
		x.write("u/v/t/big.bin", strings.Repeat("b", 101))
		x.remove("u/v/t")
		must(x.t, os.RemoveAll(x.ws+"/u"))
	}, func(e *engine.Engine, _ string) error {
		_, err := e.Undo(ctx, maker(), engine.RestoreOptions{})
		return err
	}},
	"bring back directories alone": {func(x *tree) {
		must(x.t, os.MkdirAll(x.ws+"/t/a/b", 0o750))
		x.remove("t")
	}, func(e *engine.Engine, _ string) error {
		_, err := e.Undo(ctx, maker(), engine.RestoreOptions{})
		return err
	}},
	"take back a run": {func(x *tree) { x.run() }, func(e *engine.Engine, _ string) error {
		_, err := e.Undo(ctx, maker(), engine.RestoreOptions{})
		return err
	}},
	"bring back a run": {func(x *tree) {
		x.run()
		_, err := x.Undo(ctx, maker(), engine.RestoreOptions{})
		must(x.t, err)
	}, func(e *engine.Engine, _ string) error {
		_, err := e.Redo(ctx, maker(), engine.RestoreOptions{})
		return err
	}},
	"trade places": {func(x *tree) { x.trade() }, rewind},
	"trade places back": {func(x *tree) {
		x.trade()
		must(x.t, rewind(x.Engine, x.ws))
	}, func(e *engine.Engine, _ string) error {
		_, err := e.Undo(ctx, maker(), engine.RestoreOptions{})
		return err
	}},
	"a file becomes directories alone": {func(x *tree) {
		must(x.t, os.MkdirAll(x.ws+"/t/a/b", 0o750))
		c := x.call("s")
		c.Turn = "t"
		x.BeginTurn(ctx, c)
		_, err := x.Delete(ctx, c, x.ws+"/t", engine.DeleteOptions{Recursive: true})
		must(x.t, err)
		x.puts("t", "t", "file\n")
	}, rewind},
	"delete a tree": {func(x *tree) {
		x.write("t/a/1", "1\n")
		must(x.t, os.Symlink("nowhere", x.ws+"/t/a/link"))
	}, func(e *engine.Engine, ws string) error {
		_, err := e.Delete(ctx, maker(), ws+"/t", engine.DeleteOptions{Recursive: true})
		return err
	}},
	"delete directories alone": {func(x *tree) {
		must(x.t, os.MkdirAll(x.ws+"/t/a/b", 0o750))
	}, func(e *engine.Engine, ws string) error {
		_, err := e.Delete(ctx, maker(), ws+"/t", engine.DeleteOptions{Recursive: true})
		return err
	}},
}

func rewind(e *engine.Engine, _ string) error {
	_, err := e.Restore(ctx, maker(), rewindTo("t"), engine.RestoreOptions{})
	return err
}

func maker() *engine.Call {
	return &engine.Call{ID: "c", Principal: "p", Session: "s", Tool: "test"}
}

// remove deletes a tree by way of the engine.
func (x *tree) remove(name string) {
	x.t.Helper()
	_, err := x.Delete(ctx, x.call("s"), x.ws+"/"+name, engine.DeleteOptions{Recursive: true})
	must(x.t, err)
}

// dirs lists the directories of a tree.
func (x *tree) dirs() (out []string) {
	for line := range strings.Lines(x.looks()) {
		if name, mode, _ := strings.Cut(line, " "); strings.HasPrefix(mode, "d") {
			out = append(out, name)
		}
	}
	return out
}

// recorded lists the directories that the newest change in the store makes, and says whether it has a mark.
func (x *tree) recorded() (made []string, marked bool) {
	x.t.Helper()
	db, err := checkpoint.Open(x.data+"/checkpoints", checkpoint.Options{})
	must(x.t, err)
	defer db.Close()
	page, err := db.List(ctx, checkpoint.Filter{AllSessions: true, Limit: 1})
	must(x.t, err)
	if len(page.Checkpoints) == 0 {
		return nil, false
	}
	for _, c := range page.Checkpoints[0].Changes {
		if c.Before.Kind != checkpoint.Dir && c.After.Kind == checkpoint.Dir {
			made = append(made, strings.TrimPrefix(c.Path, x.ws))
		}
	}
	open, err := db.Open(ctx)
	must(x.t, err)
	return made, len(open) > 0
}

// A process is killed before every system call of changes that make directories or take them away. Never is a directory there that its checkpoint,
// and while others are missing its mark, does not tell of; after the next start everything is as before or as it should become, directories
// included; but what others put into such a directory, or made in its place, stays.
func TestKilledMaking(t *testing.T) {
	for step, making := range makings {
		t.Run(step, func(t *testing.T) {
			x := growIn(t, testdir.Disk(t), small) // where a new inode takes the number of one that went
			making.lay(x)
			k := killedMaking{tree: x, step: step, old: x.looks(), had: x.dirs()}
			var again func()
			if step == "bring back what is parked" { // it knows its own
				again = func() { making.lay(x) }
			}
			kills(t, step, x, again, k.look)
			t.Logf("%d cut with directories, %d taken back", k.cut, k.back)
			if k.back == 0 {
				t.Error("nothing was ever taken back: the test tests nothing")
			}
		})
	}
}

// killedMaking is a tree in which a change is killed.
type killedMaking struct {
	*tree
	step, old string   // the tree before
	had       []string // its directories
	cut, back int      // with a directory of its own half-way; taken back
}

// look looks at the tree after a kill, lets others use what is half made, and starts anew.
func (k *killedMaking) look(n int64, over bool, done string) string {
	t := k.t
	t.Helper()
	var fresh []string
	for _, d := range k.dirs() {
		if !slices.Contains(k.had, d) && !guardfs.ReservedPath(d) {
			fresh = append(fresh, d)
		}
	}
	killed := k.looks()
	var made []string
	marked := false
	if len(fresh) > 0 {
		made, marked = k.recorded()
	}
	for _, d := range fresh {
		if !slices.Contains(made, d) && k.step != "bring back what is parked" ||
			!over && len(made) > 1 && !marked && len(fresh) < len(made) {
			t.Fatalf("killed before call %d: %s is there, the checkpoint tells of %v, marked: %v", n, d, made, marked)
		}
	}
	theirs, others := "", ""
	if !over && len(fresh) > 0 && (len(fresh) < len(made) || marked) {
		theirs, others = k.use(fresh[len(fresh)-1], n)
	}
	k.open()
	now := k.looks()
	must(t, k.Close())
	gone := func(p string) bool {
		_, err := os.Stat(k.ws + p)
		return p != "" && (errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR))
	}
	// An empty directory does not keep a file or link away that was there, whoever made the directory.
	gaveWay := func(p string) bool {
		for ; len(p) > 1; p = filepath.Dir(p) {
			if i, err := os.Lstat(k.ws + p); err == nil {
				return !i.IsDir()
			}
		}
		return false
	}
	if gone(others) && gaveWay(others) {
		others = "" // then all is as before, or as it should become
	}
	switch {
	case gone(theirs) || gone(others):
		t.Fatalf("killed before call %d: what is somebody else's is gone\n%s", n, now)
	case theirs != "" || others != "":
		k.cut++
	case over:
	case now == k.old:
		k.back++
	case now != done: // then all of it
		t.Fatalf("killed before call %d: after the next start\n%s\nit was\n%s\nand should have become\n%s", n, now, k.old, done)
	case len(fresh) > 0:
		k.cut++
	}
	if _, left := k.recorded(); left {
		t.Fatalf("killed before call %d: something is open still", n)
	}
	return killed + "then\n" + now
}

// use has others use the innermost directory that was made, or make it anew, or neither.
func (k *killedMaking) use(dir string, n int64) (theirs, others string) {
	switch n % 3 {
	case 0:
		theirs = dir + "/theirs"
		must(k.t, os.WriteFile(k.ws+theirs, []byte("t"), 0o600))
	case 1:
		if k.bestEffort() {
			break // the new one may get the number of the old one, and nothing else tells
		}
		if os.Remove(k.ws+dir) == nil { // else it holds something already
			others = dir
			testdir.Tick(k.t) // the number of the old one is taken again, so that only the time tells
			must(k.t, os.Mkdir(k.ws+dir, 0o700))
		}
	}
	return theirs, others
}
