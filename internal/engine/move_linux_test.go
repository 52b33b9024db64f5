//go:build linux && !rooted

package engine_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"moltisfs/checkpoint"
	"moltisfs/config"
	"moltisfs/internal/approval"
	"moltisfs/internal/engine"
	"moltisfs/internal/guardfs"
	"moltisfs/internal/policy"
	"moltisfs/internal/testdir"
)

// mover is Move; apart: where no rename leads from one name to another.
func (x *tree) mover(apart bool) func(context.Context, *engine.Call, engine.MoveArgs) (*engine.Done, error) {
	if !apart {
		return func(ctx context.Context, c *engine.Call, a engine.MoveArgs) (*engine.Done, error) {
			return c.Move(ctx, a)
		}
	}
	system := callsOf(x)
	return func(ctx context.Context, c *engine.Call, a engine.MoveArgs) (*engine.Done, error) {
		var once atomic.Bool
		hook := func(op string) *guardfs.Fault {
			if op == "rename" && once.CompareAndSwap(false, true) {
				return &guardfs.Fault{Err: syscall.EXDEV}
			}
			return nil
		}
		system.hook.Store(&hook)
		defer system.hook.Store(nil)
		return c.Move(ctx, a)
	}
}

// To another volume all is made anew, times and modes too, by one change with one
// undo.
func TestMoveToAnotherVolume(t *testing.T) {
	t.Parallel()
	shm := testdir.Elsewhere(t)
	x := grow(t, nil)
	x.layMove()
	var a, b syscall.Stat_t
	must(t, errors.Join(syscall.Stat(shm, &a), syscall.Stat(x.ws, &b), x.Close()))
	if a.Dev == b.Dev {
		t.Skip("SKIPPED: no second volume here")
	}
	e := under(t, func(cfg *config.FS) { cfg.AllowPaths = []string{x.ws + "/**", shm + "/**"} })
	was, at := x.looks(), &tree{t: t, ws: shm}
	sub := func(looks string) (out []string) {
		for line := range strings.Lines(looks) {
			if rest, ok := strings.CutPrefix(line, "/d"); ok && !strings.HasPrefix(rest, "angling") {
				out = append(out, rest)
			}
		}
		return out
	}
	old := time.Unix(1e9, 5)
	must(t, os.Chtimes(x.ws+"/d/a", old, old))
	var done *engine.Done
	ask := &asker{}
	must(t, through(e, func(ctx context.Context, c *engine.Call) (err error) {
		c.Tier, c.Approver = approval.TierAsk, ask
		args := engine.MoveArgs{From: x.ws + "/d", To: shm + "/n/d", Rules: engine.Rules{Parents: true}}
		done, err = c.Move(ctx, args)
		return err
	}))
	if got, want := sub(strings.ReplaceAll(at.looks(), "/n/d", "/d")), sub(was); !slices.Equal(got, want) || done.Checkpoint == "" {
		t.Errorf("%q, and it was %q", got, want)
	}
	if len(ask.asked) != 1 {
		t.Errorf("asked %d times", len(ask.asked))
	}
	if i, err := os.Stat(shm + "/n/d/a"); err != nil || !i.ModTime().Equal(old) {
		t.Errorf("its time is lost: %v %v", i, err)
	}
	if _, err := os.Lstat(x.ws + "/d"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it is still there: %v", err)
	}
	must(t, through(e, func(ctx context.Context, c *engine.Call) error {
		return errOf(c.Undo(ctx, engine.RestoreOptions{}))
	}))
	if entries, err := os.ReadDir(shm); x.looks() != was || len(entries) > 0 || err != nil {
		t.Errorf("undone:\n%s\nwas\n%s", x.looks(), was)
	}
}

// A policy that lets a file be changed and not be removed is heard before anybody is asked.
func TestMoveIsRemoval(t *testing.T) {
	t.Parallel()
	x := grow(t, nil)
	x.layMove()
	e, err := engine.OpenOver(engine.Options{Config: x.cfg, Judge: keeps{}, DataDir: t.TempDir()})
	must(t, err)
	defer e.Close()
	for _, from := range []string{"/f", "/d"} {
		a := engine.MoveArgs{From: x.ws + from, To: x.ws + "/new", DryRun: true}
		if _, err := e.Begin(x.call("s")).Move(ctx, a); code(err) != engine.CodePathDenied {
			t.Errorf("%s: %v", from, err)
		}
	}
}

// keeps lets nothing be removed.
type keeps struct{ anything }

func (keeps) Judge(o guardfs.Object, a guardfs.Access) error {
	if a == guardfs.Remove {
		return &policy.Denied{Path: o.Spelled, Rule: "deny_paths"}
	}
	return nil
}

// Others swap the source of a move, or its target, at the last moment: theirs is where they put it, and
// all else where it was.
func TestMoveOfWhatIsSwapped(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		a    engine.MoveArgs
		swap func(ws string) error
	}{
		"a file": {engine.MoveArgs{From: "/f", To: "/g"}, func(ws string) error { return os.Rename(ws+"/theirs", ws+"/f") }},
		"a file, in place": {engine.MoveArgs{From: "/f", To: "/g"},
			func(ws string) error { return os.WriteFile(ws+"/f", []byte("theirs\n"), 0o640) }},
		"a tree": {engine.MoveArgs{From: "/d", To: "/g"},
			func(ws string) error { return errors.Join(os.Rename(ws+"/d", ws+"/d2"), os.Rename(ws+"/e", ws+"/d")) }},
		"what is there": {engine.MoveArgs{From: "/f", To: "/there", Overwrite: true},
			func(ws string) error { return os.Rename(ws+"/theirs", ws+"/there") }},
		"what was not there": {engine.MoveArgs{From: "/f", To: "/g", Overwrite: true},
			func(ws string) error { return os.Rename(ws+"/theirs", ws+"/g") }},
	} {
		x := grow(t, nil)
		x.layMove()
		x.write("theirs", "theirs\n")
		system := callsOf(x)
		was := ""
		hook := onceBefore("rename", func() {
			must(t, c.swap(x.ws))
			was = own(x.objects())
		})
		system.hook.Store(&hook)
		c.a.From, c.a.To = x.ws+c.a.From, x.ws+c.a.To
		_, err := x.call("s").Move(ctx, c.a)
		system.hook.Store(nil)
		if now := own(x.objects()); code(err) != engine.CodeConflict || now != was {
			t.Errorf("%s: %v\n%s\nwas\n%s", what, err, now, was)
		}
		if x.halfWay() != nil {
			t.Errorf("%s: it is half-way", what)
		}
	}
}

// A turn in which a file was written, moved and edited goes back as a whole, and so does a tree.
func TestRewindOverMoves(t *testing.T) {
	t.Parallel()
	x := grow(t, nil)
	x.layMove()
	was := x.looks()
	c := x.turn("s", "t")
	move := func(from, to string, over bool) {
		t.Helper()
		must(t, errOf(c.Move(ctx, engine.MoveArgs{From: x.ws + "/" + from, To: x.ws + "/" + to, Overwrite: over})))
	}
	x.puts("t", "f", "1\n")
	move("f", "g", false)
	x.puts("t", "g", "2\n")
	move("g", "there", true)
	x.puts("t", "d/a", "3\n")
	move("d", "d2", false)
	x.puts("t", "d2/a", "4\n")
	x.puts("t", "d2/new", "5\n")
	move("d2/sub", "d3", false)
	if _, err := c.Restore(ctx, rewindTo("t"), engine.RestoreOptions{}); err != nil || x.looks() != was {
		t.Errorf("%v\n%s\nwas\n%s", err, x.looks(), was)
	}
}

// A move stores nothing, so that of no size and no exclusion it is refused; what is moved over is in the trash as it was.
func TestMoveOfWhatIsNotStored(t *testing.T) {
	t.Parallel()
	x := grow(t, func(cfg *config.FS) {
		cfg.Checkpoint.MaxFileBytes, cfg.Checkpoint.MaxBytes, cfg.Checkpoint.Exclude = 100, 1<<20, []string{"**/*.log"}
	})
	x.layMove()
	for _, name := range []string{"big", "tree/big", "a.log", "tree/a.log"} {
		x.write(name, strings.Repeat("b", 101))
	}
	must(t, errors.Join(os.Truncate(x.ws+"/big", 1<<40), syscall.Mkfifo(x.ws+"/tree/fifo", 0o600)))
	was := x.objects()
	moves := [][2]string{{"big", "there"}, {"f", "there"}, {"a.log", "b.log"}, {"tree", "n"}, {"n", "m"}, {"m/fifo", "p"}}
	for _, m := range moves {
		done, err := x.call("s").Move(ctx, engine.MoveArgs{From: x.ws + "/" + m[0], To: x.ws + "/" + m[1], Overwrite: true})
		if err != nil || done.Skipped != "" {
			t.Fatalf("%v: %+v %v", m, done, err)
		}
	}
	page, err := x.call("s").Checkpoints(ctx, checkpoint.Filter{Path: x.ws + "/n/big"})
	if err != nil || len(page.Checkpoints) != 2 {
		t.Errorf("of a path in it: %+v %v", page, err)
	}
	moved := x.objects()
	for range 2 {
		for range moves {
			must(t, x.does(undoes))
		}
		if now := x.objects(); now != was {
			t.Fatalf("undone:\n%s\nwas\n%s", now, was)
		}
		for range moves {
			must(t, x.does(redoes))
		}
		if now := x.objects(); now != moved {
			t.Fatalf("redone:\n%s\nwas\n%s", now, moved)
		}
	}
}

// An undo of a tree's move brings along whatever others did in it. Another thing at the new name, or one at the old name, stands against
// it; by force what is at the new name goes back, and what is at the old one goes to the trash.
func TestMoveUndoneMeetsOthers(t *testing.T) {
	t.Parallel()
	for _, from := range []string{"d", "f"} {
		for how, others := range map[string]func(x *tree){
			"in it":      func(x *tree) { must(t, os.Chtimes(x.ws+"/g", time.Unix(1e9, 0), time.Unix(1e9, 0))) },
			"in place":   func(x *tree) { must(t, errors.Join(os.Rename(x.ws+"/g", x.ws+"/h"), os.Rename(x.ws+"/e", x.ws+"/g"))) },
			"gone":       func(x *tree) { must(t, os.Rename(x.ws+"/g", x.ws+"/h")) },
			"in the way": func(x *tree) { x.write(from, "theirs\n") },
			"a directory in the way": func(x *tree) {
				must(t, os.Mkdir(x.ws+"/"+from, 0o755))
				x.write(from+"/in it", "theirs\n")
			},
		} {
			x := grow(t, nil)
			x.layMove()
			_, err := x.call("s").Move(ctx, engine.MoveArgs{From: x.ws + "/" + from, To: x.ws + "/g"})
			must(t, err)
			others(x)
			was, object := x.objects(), inode(t, x.ws+"/g")
			want := engine.CodeConflict
			if how == "in it" {
				want = ""
			}
			if _, err := x.call("s").Undo(ctx, engine.RestoreOptions{}); code(err) != want || want != "" && x.objects() != was {
				t.Errorf("%s, %s: %v\n%s", from, how, err, x.looks())
			}
			if how == "in it" || how == "gone" {
				if how == "in it" && inode(t, x.ws+"/"+from) != object {
					t.Errorf("%s: it is another one", from)
				}
				continue
			}
			done, err := x.call("s").Undo(ctx, engine.RestoreOptions{OnConflict: engine.OnConflictForce})
			if err != nil || inode(t, x.ws+"/"+from) != object || strings.HasSuffix(how, "in the way") != (len(done.Trashed) == 1) {
				t.Errorf("%s, %s, by force: %+v %v\n%s", from, how, done, err, x.looks())
			}
			if err := x.does(redoes); err != nil || inode(t, x.ws+"/g") != object {
				t.Errorf("%s, %s, again: %v\n%s", from, how, err, x.looks())
			}
		}
	}
}

// The undo of a move meets a file of others in the place of the directory that the moved one was in: that is a conflict, which skip passes by.
func TestMoveUndoneWhereItsDirectoryIsAFile(t *testing.T) {
	t.Parallel()
	x := grow(t, nil)
	x.layMove()
	must(t, errOf(x.call("s").Move(ctx, engine.MoveArgs{From: x.ws + "/f", To: x.ws + "/d/g"})))
	must(t, os.Rename(x.ws+"/d", x.ws+"/away"))
	x.write("d", "theirs\n")
	was := x.objects()
	if _, err := x.call("s").Undo(ctx, engine.RestoreOptions{}); code(err) != engine.CodeConflict || x.objects() != was {
		t.Errorf("%v\n%s", err, x.looks())
	}
	done, err := x.call("s").Undo(ctx, engine.RestoreOptions{OnConflict: engine.OnConflictSkip})
	if err != nil || len(done.Skipped) != 1 || done.Skipped[0].Why != engine.ChangedOutside || x.objects() != was {
		t.Errorf("%+v %v\n%s", done, err, x.looks())
	}
}

// inode is which object is at a path; 0 where there is none.
func inode(t testing.TB, path string) uint64 {
	t.Helper()
	var st syscall.Stat_t
	if err := syscall.Lstat(path, &st); err != nil {
		return 0
	}
	return uint64(st.Ino)
}

// A file that was moved, edited, and taken back to what it was before the edit, goes back to its old name: it is another object by then.
func TestMoveUndoneAfterAnEdit(t *testing.T) {
	t.Parallel()
	x := grow(t, nil)
	x.layMove()
	was := x.looks()
	for _, name := range []string{"f", "d/a"} {
		x.puts("s", name, "1\n")
		must(t, errOf(x.call("s").Move(ctx, engine.MoveArgs{From: x.ws + "/" + name, To: x.ws + "/there", Overwrite: true})))
		x.puts("s", "there", "2\n")
		moved := x.looks()
		for range 3 {
			must(t, x.does(undoes))
		}
		if now := x.looks(); now != was {
			t.Fatalf("%s: it is\n%s\nand was\n%s", name, now, was)
		}
		for range 3 {
			must(t, x.does(redoes))
		}
		if now := x.looks(); now != moved {
			t.Fatalf("%s: it is\n%s\nand was\n%s", name, now, moved)
		}
		for range 3 {
			must(t, x.does(undoes))
		}
	}
}

// A file that was moved over is in the trash. If it is there no more, an undo says so, and by force goes without it.
func TestMoveOverWhatIsInTheTrashNoMore(t *testing.T) {
	t.Parallel()
	x := grow(t, nil)
	x.layMove()
	done, err := x.call("s").Move(ctx, engine.MoveArgs{From: x.ws + "/f", To: x.ws + "/there", Overwrite: true})
	must(t, err)
	if len(done.Trashed) != 1 || done.Trashed[0].Path != x.ws+"/there" {
		t.Fatalf("in the trash: %+v", done.Trashed)
	}
	db, err := checkpoint.Open(x.data+"/checkpoints", checkpoint.Options{})
	must(t, err)
	must(t, errors.Join(engine.EmptyTrash(ctx, engine.Location{}, db, done.Trashed), db.Close()))
	was := x.looks()
	if _, err := x.call("s").Undo(ctx, engine.RestoreOptions{}); code(err) != engine.CodeUnsupported || x.looks() != was {
		t.Errorf("%v\n%s", err, x.looks())
	}
	undone, err := x.call("s").Undo(ctx, engine.RestoreOptions{OnConflict: engine.OnConflictForce})
	if err != nil || len(undone.Skipped) != 1 || undone.Skipped[0].Path != x.ws+"/there" {
		t.Errorf("%+v %v", undone, err)
	}
	x.has("f", "f\n")
	if inode(t, x.ws+"/there") != 0 {
		t.Error("it is still there")
	}
}

// The question names both names, and what was approved is what is moved.
func TestMoveIsApproved(t *testing.T) {
	t.Parallel()
	x, a := asking(t)
	x.layMove()
	c := x.call("s")
	c.Approver = a
	args := engine.MoveArgs{From: x.ws + "/d", To: x.ws + "/n/g", Rules: engine.Rules{Parents: true}}
	must(t, errOf(c.Move(ctx, args)))
	q := a.asked[0]
	paths, summary, digest := a.last(x)
	if want := "move d to n/g; creates directory n"; summary != want || !slices.Equal(paths, []string{"d", "n", "n/g"}) {
		t.Errorf("asked %q about %q", summary, paths)
	}
	if len(q.Warnings) != 1 || !strings.Contains(q.Warnings[0], "4 files") {
		t.Errorf("warned %q", q.Warnings)
	}
	for _, p := range []string{"d", "n/g"} {
		if !slices.Contains(c.Trace.Paths, x.ws+"/"+p) {
			t.Errorf("the record does not name %s: %q", p, c.Trace.Paths)
		}
	}
	must(t, errOf(c.Undo(ctx, engine.RestoreOptions{})))
	a.asked = nil
	args.To = x.ws + "/n/h"
	must(t, errOf(c.Move(ctx, args)))
	if _, _, other := a.last(x); other == digest {
		t.Error("another name has the same digest")
	}
	must(t, errOf(c.Undo(ctx, engine.RestoreOptions{})))
	was := ""
	for what, others := range map[string]struct {
		while func()
		a     engine.MoveArgs
		want  engine.Code
	}{
		"the file changed": {func() { x.write("f", "theirs\n") }, engine.MoveArgs{From: "/f", To: "/g"}, engine.CodeApprovalStale},
		"the file was replaced": {func() { x.write("new", "f\n"); must(t, os.Rename(x.ws+"/new", x.ws+"/f")) },
			engine.MoveArgs{From: "/f", To: "/g"}, engine.CodeConflict},
		"the file is gone":      {func() { must(t, os.Remove(x.ws+"/f")) }, engine.MoveArgs{From: "/f", To: "/g"}, engine.CodeConflict},
		"something is there":    {func() { x.write("g", "theirs\n") }, engine.MoveArgs{From: "/f", To: "/g"}, engine.CodeConflict},
		"a directory is there":  {func() { x.write("g/theirs", "theirs\n") }, engine.MoveArgs{From: "/d", To: "/g"}, engine.CodeConflict},
		"what is there changed": {func() { x.write("there", "theirs\n") }, engine.MoveArgs{From: "/f", To: "/there", Overwrite: true}, engine.CodeApprovalStale},
		"another tree": {func() { must(t, errors.Join(os.Rename(x.ws+"/d", x.ws+"/d2"), os.Rename(x.ws+"/e", x.ws+"/d"))) },
			engine.MoveArgs{From: "/d", To: "/g"}, engine.CodeConflict},
	} {
		must(t, errors.Join(os.RemoveAll(x.ws), os.Mkdir(x.ws, 0o700)))
		x.layMove()
		a.while = func() { others.while(); was = x.looks() }
		others.a.From, others.a.To = x.ws+others.a.From, x.ws+others.a.To
		if _, err := c.Move(ctx, others.a); code(err) != others.want || x.looks() != was {
			t.Errorf("%s: %v\n%s\nwas\n%s", what, err, x.looks(), was)
		}
	}
}

// The names in a tree are part of the question about it: if others, or another call, put something into it,
// or take something out of it while somebody thinks, nothing is moved.
func TestTreeIsApprovedWithAllInIt(t *testing.T) {
	t.Parallel()
	asked := map[string]act{"move": moves("d", "n/g"), "move of an empty one": moves("d/hollow", "n"), "delete": deletes("d"), "restore": untrashes}
	parked := ""
	others := map[string]func(x *tree){
		"a file":      func(x *tree) { x.write("d/hollow/late", "late\n") },
		"a directory": func(x *tree) { must(t, os.Mkdir(x.ws+"/d/hollow/late", 0o700)) },
		"a link":      func(x *tree) { must(t, os.Symlink("x", x.ws+"/d/hollow/late")) },
		"a call": func(x *tree) {
			other, err := engine.OpenOver(engine.Options{Config: config.Default().Tools.FS, Judge: inside(x.ws, ""), DataDir: x.data})
			must(t, err)
			defer other.Close()
			c := x.call("other")
			c.Approver = &asker{}
			must(t, errOf(other.Begin(c).Create(ctx, x.ws+"/d/hollow/late/f", []byte("late\n"), engine.Rules{Parents: true})))
		},
		"gone":                 func(x *tree) { must(t, os.Remove(x.ws+"/d/sub/deep/c")) },
		"a file is a link now": func(x *tree) { must(t, errors.Join(os.Remove(x.ws+"/d/a"), os.Symlink("x", x.ws+"/d/a"))) },
	}
	for what, run := range asked {
		for how, change := range others {
			inHollow := strings.HasPrefix(how, "a ") && !strings.Contains(how, "now")
			if what == "move of an empty one" && !inHollow || what == "restore" && how == "a call" {
				continue // no call comes to what is in the trash
			}
			x := grow(t, func(fs *config.FS) { fs.RequireApproval = true })
			x.layMove()
			a, was := &asker{}, ""
			c := x.call("s")
			c.Approver = a
			if what == "restore" {
				must(t, deletes("d")(ctx, c, x.ws))
				files, _ := x.trashed()
				parked = files[0]
			}
			a.asked, a.while = nil, func() {
				if what == "restore" { // as if it had its name
					must(t, os.Rename(parked, x.ws+"/d"))
					defer func() { must(t, os.Rename(x.ws+"/d", parked)); was = x.looks() }()
				}
				change(x)
				was = x.looks()
			}
			if err := run(ctx, c, x.ws); code(err) != engine.CodeApprovalStale || x.looks() != was || len(a.asked) != 1 {
				t.Errorf("%s, %s: %v\n%s\nwas\n%s", what, how, err, x.looks(), was)
			}
			a.while = nil
			if err := run(ctx, c, x.ws); err != nil || strings.Contains(x.looks(), "/.moltis-") {
				t.Errorf("%s, %s, asked again: %v\n%s", what, how, err, x.looks())
			}
		}
	}
}

// A file that others put into a tree, or take out of it, between the last look at it and its rename does not
// go along: the tree is looked into where it has a name of ours, and stays where it was.
func TestTreeIsLookedIntoUnderANameOfOurs(t *testing.T) {
	t.Parallel()
	parked := func(x *tree) (at string) { // and the directory that it was in is gone
		must(t, errors.Join(x.does(deletes("p/d")), os.Remove(x.ws+"/p")))
		files, _ := x.trashed()
		return files[0]
	}
	there := func(x *tree) string { return x.ws + "/p/d" }
	for what, way := range map[string]struct {
		op  string // before which something happens
		lay func(x *tree) (at string)
		run act
	}{
		"move":    {"rename", there, moves("p/d", "e/g")},
		"delete":  {"rename", there, deletes("p/d")},
		"restore": {"mkdir", parked, untrashes},
		"undo":    {"mkdir", parked, undoes},
	} {
		for how, change := range map[string]func(at string) error{
			"a file":      func(at string) error { return os.WriteFile(at+"/late", nil, 0o600) },
			"below":       func(at string) error { return os.WriteFile(at+"/sub/deep/late", nil, 0o600) },
			"a directory": func(at string) error { return os.Mkdir(at+"/hollow/late", 0o700) },
			"a link":      func(at string) error { return os.Symlink("x", at+"/hollow/late") },
			"gone":        func(at string) error { return os.Remove(at + "/sub/deep/c") },
			"other kind":  func(at string) error { return errors.Join(os.Remove(at+"/a"), os.Mkdir(at+"/a", 0o700)) },
		} {
			x := grow(t, nil)
			x.layMove()
			must(t, errors.Join(os.Mkdir(x.ws+"/p", 0o700), os.Rename(x.ws+"/d", x.ws+"/p/d")))
			at := way.lay(x)
			names := func() string {
				out := x.looks()
				must(t, filepath.WalkDir(at, func(p string, _ fs.DirEntry, err error) error { out += p + "\n"; return err }))
				return out
			}
			was := ""
			hook := onceBefore(way.op, func() {
				must(t, change(at))
				was = names()
			})
			system := callsOf(x)
			err := system.meet(hook, func() error { return x.does(way.run) })
			if code(err) != engine.CodeConflict || x.halfWay() != nil || names() != was {
				t.Errorf("%s, %s: %v\n%s\nwas\n%s", what, how, err, names(), was)
			}
			if err := x.does(way.run); err != nil { // now it is known
				t.Errorf("%s, %s, again: %v", what, how, err)
			}
		}
	}
}

// An engine that does not look into a tree while it has a name of ours moves what others put into it.
func TestMoveWithoutHoldFalls(t *testing.T) {
	for _, bad := range []bool{false, true} {
		x := grow(t, nil)
		x.layMove()
		if bad {
			defer engine.WithoutHold()()
		}
		hook := onceBefore("rename", func() { x.write("d/late", "late\n") })
		system := callsOf(x)
		err := system.meet(hook, func() error { return errOf(x.call("s").Move(ctx, engine.MoveArgs{From: x.ws + "/d", To: x.ws + "/g"})) })
		if moved := strings.Contains(x.looks(), "/g/late"); moved != bad || (err == nil) != bad {
			t.Errorf("bad %v: moved %v, %v", bad, moved, err)
		}
	}
}

type anything struct{}

func (anything) Judge(guardfs.Object, guardfs.Access) error { return nil }

func (anything) Dir(string, ...string) guardfs.DirVerdict { return guardfs.DirVerdict{All: true} }

// A move of a tree waits for whoever changes a file in it, or makes one there, and takes along what that left.
func TestMoveWaitsForAnEdit(t *testing.T) { // alone, so that nobody else waits for a lock
	for _, name := range []string{"a", "new", "hollow/new", "sub/deep/c", "sub/n/m/new"} {
		x := grow(t, nil)
		x.layMove()
		swaps, goOn := make(chan bool), make(chan bool)
		var once sync.Once
		other, err := engine.OpenOver(engine.Options{Config: x.cfg, Judge: inside(x.ws, x.deny), DataDir: x.data,
			Fault: func(op string) *guardfs.Fault {
				if op == "rename" || op == "link" {
					once.Do(func() { swaps <- true; <-goOn })
				}
				return nil
			}})
		must(t, err)
		edited, moved := make(chan error), make(chan error, 1)
		go func() {
			_, _, err := other.Begin(x.call("s")).Write(ctx, engine.WriteArgs{Path: x.ws + "/d/" + name, Text: "new\n", Rules: engine.Rules{Parents: true}})
			edited <- err
		}()
		<-swaps
		go func() {
			_, err := x.call("s").Move(ctx, engine.MoveArgs{From: x.ws + "/d", To: x.ws + "/g"})
			moved <- err
		}()
		testdir.Running(t, "lockFor")
		close(goOn)
		must(t, errors.Join(<-edited, <-moved, other.Close()))
		x.has("g/"+name, "new\n")
	}
}

func TestCopyLarge(t *testing.T) {
	t.Parallel()
	x := grow(t, tight)
	content := strings.Repeat("0123456789abcde\n", 200_000) // several pieces
	from := x.write("large", content)
	x.write("tree/a", "a\n")
	x.write("tree/large", content)
	was := x.looks()
	for _, a := range []engine.CopyArgs{
		{From: from, To: x.ws + "/new"},
		{From: from, To: x.ws + "/tree/a", Overwrite: true},
		{From: x.ws + "/tree", To: x.ws + "/d/tree", Recursive: true, Rules: engine.Rules{Parents: true}},
	} {
		c := x.call("s")
		done, err := c.Copy(ctx, a)
		if err != nil || done.Skipped != engine.SkippedNewTooLarge {
			t.Fatalf("%+v: %+v %v", a, done, err)
		}
		name := strings.TrimPrefix(a.To, x.ws+"/")
		if a.Recursive {
			name += "/large"
			x.has("d/tree/a", "a\n")
		}
		x.has(name, content)
		op, err := x.call("s").Checkpoint(ctx, checkpoint.ID(done.Checkpoint))
		must(t, err)
		for _, ch := range op.Changes {
			if ch.Path == x.ws+"/"+name && (ch.After.Hash != engine.HashOf([]byte(content)) || ch.After.Size != int64(len(content)) || ch.AfterStored) {
				t.Errorf("on record: %+v", ch)
			}
		}
		if c.Trace.After != engine.HashOf([]byte(content)) && !a.Recursive {
			t.Errorf("%s: the audit log has %q", name, c.Trace.After)
		}
		if !a.Overwrite {
			x.backAndForth(name, was)
		} else { // what cannot be brought back is not overwritten
			if _, err := x.call("s").Undo(ctx, engine.RestoreOptions{}); !engine.WouldLose.In(err) {
				t.Errorf("%v", err)
			}
			x.has(name, content)
			must(t, errors.Join(os.Remove(x.ws+"/tree/a"), os.WriteFile(x.ws+"/tree/a", []byte("a\n"), 0o640)))
		}
	}
	if done, err := x.call("s").Copy(ctx, engine.CopyArgs{From: from, To: from, Overwrite: true}); err != nil || !done.Idle {
		t.Errorf("onto itself: %+v %v", done, err)
	}
}

// A person is told how much is copied, and that it is not shown.
func TestCopyLargeIsAsked(t *testing.T) {
	t.Parallel()
	x, a := asking(t)
	x.cfg.Checkpoint.MaxFileBytes = int64(len(large)) - 1
	x.reopen()
	from := x.write("large", large)
	c := x.call("s")
	c.Approver = a
	a.while = func() { x.write("large", large+"more\n") }
	if _, err := c.Copy(ctx, engine.CopyArgs{From: from, To: x.ws + "/new"}); code(err) != engine.CodeConflict {
		t.Errorf("another content than was asked about: %v", err)
	}
	x.has("new", "-")
	a.while = nil
	must(t, errOf(c.Copy(ctx, engine.CopyArgs{From: from, To: x.ws + "/new"})))
	q := a.asked[len(a.asked)-1]
	if all := strings.Join(q.Warnings, "\n"); !strings.Contains(all, fmt.Sprint(len(large)+5, " bytes")) || !strings.Contains(all, "not shown") {
		t.Errorf("%+v", q)
	}
}

// Others write into the source, or put another file or a link in its place, while it is copied: what
// was there is copied, or it is a conflict. No mixture gets a name, and nothing from outside.
func TestCopyLargeBesideOthers(t *testing.T) {
	t.Parallel()
	content, theirs := bytes.Repeat([]byte("a"), 3<<20), bytes.Repeat([]byte("b"), 3<<20)
	for name, change := range map[string]func(x *tree) error{
		"written": func(x *tree) error { return os.WriteFile(x.ws+"/large", theirs, 0o600) },
		"grown":   func(x *tree) error { x.appendFile("large", "more"); return nil },
		"cut":     func(x *tree) error { return os.Truncate(x.ws+"/large", 5) },
		"another": func(x *tree) error { return os.Rename(x.ws+"/theirs", x.ws+"/large") },
		"a link": func(x *tree) error {
			return errors.Join(os.Remove(x.ws+"/large"), os.Symlink(x.data+"/secret", x.ws+"/large"))
		},
	} {
		x := grow(t, tight)
		must(t, os.WriteFile(x.data+"/secret", theirs, 0o600))
		system := callsOf(x)
		conflicts := 0
		stride := cmp.Or(*every, 9)
		for n := first(t, stride); ; n += stride {
			must(t, errors.Join(os.RemoveAll(x.ws+"/large"), os.RemoveAll(x.ws+"/d"),
				os.WriteFile(x.ws+"/large", content, 0o600), os.WriteFile(x.ws+"/theirs", theirs, 0o600)))
			met, err := system.beside(n, func() { must(t, change(x)) }, func() error { return x.does(copies("large", "d/new")) })
			if !met {
				break
			}
			got, rerr := os.ReadFile(x.ws + "/d/new")
			switch {
			case err != nil && rerr != nil:
				conflicts++
			case err == nil && (bytes.Equal(got, content) || name != "a link" && bytes.Equal(got, theirs)):
			case err == nil && (name == "grown" && len(got) == len(content)+4 || name == "cut" && len(got) == 5):
			default:
				t.Fatalf("%s, call %d: %v, %d bytes", name, n, err, len(got))
			}
		}
		if conflicts == 0 {
			t.Errorf("%s: it was never met", name)
		}
	}
}

// A disk that is full, and a caller who gives up in the middle: nothing is left behind.
func TestCopyLargeEndsEarly(t *testing.T) {
	t.Parallel()
	x := grow(t, tight)
	x.write("large", strings.Repeat("a", 5<<20))
	was, system := x.looks(), callsOf(x)
	for name, want := range map[string]engine.Cause{"write": engine.DiskFull, "fallocate": engine.DiskFull, "cancel": engine.Cancelled} {
		ctx, cancel := context.WithCancel(ctx)
		writes := 0
		hook := func(op string) *guardfs.Fault {
			if op == "write" {
				writes++
			}
			switch {
			case op == "write" && name == "cancel" && writes == 2:
				cancel()
			case op == name && (name != "write" || writes == 3):
				return &guardfs.Fault{Err: syscall.ENOSPC}
			}
			return nil
		}
		err := system.meet(hook, func() error { return copies("large", "d/new")(ctx, x.call("s"), x.ws) })
		cancel()
		if err == nil || engine.Reason(err).Cause != want || writes > 3 || x.looks() != was {
			t.Errorf("%s: %v, after %d writes", name, err, writes)
		}
	}
}

// A fault at the N-th system call of a move, or of making a directory: all is as it was, or all is as it should become, and the answer says which;
// then an undo brings back what was there.
func TestFaultAtEveryCallOfAMove(t *testing.T) {
	t.Parallel()
	f := faults{kinds: badCalls(), stride: 17, inOne: true,
		grow: func(t *testing.T) *tree { return grow(t, nil) },
		lay: func(x *tree) {
			must(x.t, errors.Join(os.RemoveAll(x.ws), os.Mkdir(x.ws, 0o700)))
			x.layMove()
		},
		looks: func(x *tree) string {
			made := strings.Contains(x.looks(), "/n/m/d ")
			return filtered(x.looks(), func(name, _ string) bool {
				return !strings.Contains(name, "/.moltis-") && (made || name != "/n" && name != "/n/m") // one stays where its removal failed
			})
		},
		also: func(x *tree, f fault) {
			if f.made {
				if err := x.does(undoes); err != nil || x.looks() != f.before {
					x.t.Fatalf("%s, undone: %v\n%s", f.what, err, x.looks())
				}
			}
		}}
	f.kinds["EXDEV"] = badCall{guardfs.Fault{Err: syscall.EXDEV}, false}
	for _, f.run = range []act{moves("d", "n/m/d"), moves("f", "there"), mkdirs("n/m/d")} {
		f.play(t)
		f.stride = 6 // these have fewer calls
	}
}

// A fault at the N-th system call of a copy: it is there as a whole, or not at all, and the answer says which.
func TestFaultAtEveryCallOfALargeCopy(t *testing.T) {
	t.Parallel()
	f := faults{kinds: withFull(false), stride: 5, inOne: true, run: copies("large", "d/new"),
		grow:  func(t *testing.T) *tree { return grow(t, tight) },
		looks: func(x *tree) string { return bare(x.looks()) },
		lay: func(x *tree) {
			must(x.t, os.RemoveAll(x.ws+"/d"))
			x.write("large", large)
		}}
	f.play(t)
}
