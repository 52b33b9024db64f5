//go:build linux && !rooted

package engine_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
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
		return x.Move
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
		return x.Move(ctx, c, a)
	}
}

// sight is the tree by the identity of each object.
func (x *tree) sight() string {
	x.t.Helper()
	var out strings.Builder
	must(x.t, filepath.WalkDir(x.ws, func(p string, d fs.DirEntry, err error) error {
		var st syscall.Stat_t
		if err == nil {
			err = syscall.Lstat(p, &st)
		}
		fmt.Fprintf(&out, "%s %d %o %d %d\n", p[len(x.ws):], st.Ino, st.Mode, st.Size, st.Mtim.Nano())
		return err
	}))
	return out.String()
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
		done, err = e.Move(ctx, c, args)
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
		_, err := e.Undo(ctx, c, engine.RestoreOptions{})
		return err
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
		if _, err := e.Move(ctx, x.call("s"), a); code(err) != engine.CodePathDenied {
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

// Whoever swaps what is moved, or what it moves over, at the last moment, finds it where they put it, and
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
		var once atomic.Bool
		was := ""
		hook := func(op string) *guardfs.Fault {
			if op == "rename" && once.CompareAndSwap(false, true) {
				must(t, c.swap(x.ws))
				was = x.sight()
			}
			return nil
		}
		system.hook.Store(&hook)
		c.a.From, c.a.To = x.ws+c.a.From, x.ws+c.a.To
		_, err := x.Move(ctx, x.call("s"), c.a)
		system.hook.Store(nil)
		if now := x.sight(); code(err) != engine.CodeConflict || unhurried(now) != unhurried(was) {
			t.Errorf("%s: %v\n%s\nwas\n%s", what, err, now, was)
		}
		if x.halfWay() != nil {
			t.Errorf("%s: it is half-way", what)
		}
	}
}

// unhurried leaves the times of directories out, which a rename there and back changes, and names of ours.
func unhurried(sight string) string {
	var out []string
	for line := range strings.Lines(sight) {
		f := strings.Fields(line)
		if !strings.Contains(line, "/.moltis-") {
			out = append(out, strings.Join(f[:len(f)-1], " "))
		}
	}
	return strings.Join(out, "\n")
}

// A turn in which a file was written, moved and edited goes back as a whole, and so does a tree.
func TestRewindOverMoves(t *testing.T) {
	t.Parallel()
	x := grow(t, nil)
	x.layMove()
	was := x.looks()
	c := x.call("s")
	c.Turn = "t"
	x.BeginTurn(ctx, c)
	move := func(from, to string, over bool) {
		t.Helper()
		_, err := x.Move(ctx, c, engine.MoveArgs{From: x.ws + "/" + from, To: x.ws + "/" + to, Overwrite: over})
		must(t, err)
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
	if _, err := x.Restore(ctx, c, rewindTo("t"), engine.RestoreOptions{}); err != nil || x.looks() != was {
		t.Errorf("%v\n%s\nwas\n%s", err, x.looks(), was)
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
	_, err := x.Move(ctx, c, args)
	must(t, err)
	q := a.asked[0]
	paths, summary, digest := a.last(x)
	if want := "move d to n/g; creates directory n"; summary != want || !slices.Equal(paths, []string{"d", "n", "n/g"}) {
		t.Errorf("asked %q about %q", summary, paths)
	}
	if len(q.Warnings) != 1 || !strings.Contains(q.Warnings[0], "4 files") {
		t.Errorf("warned %q", q.Warnings)
	}
	for _, p := range []string{"d", "n/g", "n/g/sub/b"} {
		if !slices.Contains(c.Trace.Paths, x.ws+"/"+p) {
			t.Errorf("the record does not name %s: %q", p, c.Trace.Paths)
		}
	}
	_, err = x.Undo(ctx, c, engine.RestoreOptions{})
	must(t, err)
	a.asked = nil
	args.To = x.ws + "/n/h"
	_, err = x.Move(ctx, c, args)
	must(t, err)
	if _, _, other := a.last(x); other == digest {
		t.Error("another name has the same digest")
	}
	_, err = x.Undo(ctx, c, engine.RestoreOptions{})
	must(t, err)
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
		if _, err := x.Move(ctx, c, others.a); code(err) != others.want || x.looks() != was {
			t.Errorf("%s: %v\n%s\nwas\n%s", what, err, x.looks(), was)
		}
	}
}

// What is in a tree is part of the question about it: if others, or another call, put something into it,
// take something out of it or change a file in it while somebody thinks, nothing is moved.
func TestTreeIsApprovedWithAllInIt(t *testing.T) {
	t.Parallel()
	big := strings.Repeat("b", 101)
	asked := map[string]func(x *tree, c *engine.Call) error{
		"move": func(x *tree, c *engine.Call) error {
			_, err := x.Move(ctx, c, engine.MoveArgs{From: x.ws + "/d", To: x.ws + "/n/g", Rules: engine.Rules{Parents: true}})
			return err
		},
		"move of an empty one": func(x *tree, c *engine.Call) error {
			_, err := x.Move(ctx, c, engine.MoveArgs{From: x.ws + "/d/hollow", To: x.ws + "/n"})
			return err
		},
		"delete as a whole": func(x *tree, c *engine.Call) error {
			x.write("d/sub/big", big)
			_, err := x.Delete(ctx, c, x.ws+"/d", engine.DeleteOptions{Recursive: true})
			return err
		},
	}
	parked := ""
	asked["restore"] = func(x *tree, c *engine.Call) error {
		page, err := x.Trash(ctx, x.call("s"), checkpoint.TrashFilter{})
		must(t, err)
		_, err = x.Untrash(ctx, c, page.Entries[0].ID, false)
		return err
	}
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
			_, err = other.Create(ctx, c, x.ws+"/d/hollow/late/f", []byte("late\n"), engine.Rules{Parents: true})
			must(t, err)
		},
		"gone":                 func(x *tree) { must(t, os.Remove(x.ws+"/d/sub/deep/c")) },
		"a file is a link now": func(x *tree) { must(t, errors.Join(os.Remove(x.ws+"/d/a"), os.Symlink("x", x.ws+"/d/a"))) },
		"another content":      func(x *tree) { x.write("d/a", "other\n") },
	}
	for what, run := range asked {
		for how, change := range others {
			inHollow := strings.HasPrefix(how, "a ") && !strings.Contains(how, "now")
			if what == "move of an empty one" && !inHollow || (what == "delete as a whole" || what == "restore") && how == "another content" || what == "restore" && how == "a call" {
				continue // it is as it is in the trash, and no call comes there
			}
			x := grow(t, func(fs *config.FS) { fs.RequireApproval, fs.Checkpoint.MaxFileBytes = true, 100 })
			x.layMove()
			a, was := &asker{}, ""
			c := x.call("s")
			c.Approver = a
			if what == "restore" {
				x.write("d/sub/big", big)
				_, err := x.Delete(ctx, c, x.ws+"/d", engine.DeleteOptions{Recursive: true})
				must(t, err)
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
			if err := run(x, c); code(err) != engine.CodeApprovalStale || x.looks() != was || len(a.asked) != 1 {
				t.Errorf("%s, %s: %v\n%s\nwas\n%s", what, how, err, x.looks(), was)
			}
			a.while = nil
			if err := run(x, c); err != nil || strings.Contains(x.looks(), "/.moltis-") {
				t.Errorf("%s, %s, asked again: %v\n%s", what, how, err, x.looks())
			}
		}
	}
}

// What others put into a tree, or take out of it, between the last look at it and its rename does not
// go along: the tree is looked into where it has a name of ours, and stays where it was.
func TestTreeIsLookedIntoUnderANameOfOurs(t *testing.T) {
	t.Parallel()
	remove := func(x *tree) error {
		_, err := x.Delete(ctx, x.call("s"), x.ws+"/p/d", engine.DeleteOptions{Recursive: true})
		return err
	}
	parked := func(x *tree) (at string) { // and the directory that it was in is gone
		x.write("p/d/sub/big", strings.Repeat("b", 101))
		must(t, errors.Join(remove(x), os.Remove(x.ws+"/p")))
		files, _ := x.trashed()
		return files[0]
	}
	for what, way := range map[string]struct {
		op  string // before which something happens
		lay func(x *tree) (at string)
		run func(x *tree) error
	}{
		"move": {"rename", func(x *tree) string { return x.ws + "/p/d" }, func(x *tree) error {
			_, err := x.Move(ctx, x.call("s"), engine.MoveArgs{From: x.ws + "/p/d", To: x.ws + "/e/g"})
			return err
		}},
		"delete": {"rename", func(x *tree) string {
			x.write("p/d/sub/big", strings.Repeat("b", 101))
			return x.ws + "/p/d"
		}, remove},
		"restore": {"mkdir", parked, func(x *tree) error {
			page, err := x.Trash(ctx, x.call("s"), checkpoint.TrashFilter{})
			must(x.t, err)
			_, err = x.Untrash(ctx, x.call("s"), page.Entries[0].ID, false)
			return err
		}},
		"undo": {"mkdir", parked, func(x *tree) error {
			_, err := x.Undo(ctx, x.call("s"), engine.RestoreOptions{})
			return err
		}},
	} {
		for how, change := range map[string]func(at string) error{
			"a file":      func(at string) error { return os.WriteFile(at+"/late", nil, 0o600) },
			"below":       func(at string) error { return os.WriteFile(at+"/sub/deep/late", nil, 0o600) },
			"a directory": func(at string) error { return os.Mkdir(at+"/hollow/late", 0o700) },
			"a link":      func(at string) error { return os.Symlink("x", at+"/hollow/late") },
			"gone":        func(at string) error { return os.Remove(at + "/sub/deep/c") },
			"other kind":  func(at string) error { return errors.Join(os.Remove(at+"/a"), os.Mkdir(at+"/a", 0o700)) },
		} {
			x := grow(t, small)
			x.layMove()
			must(t, errors.Join(os.Mkdir(x.ws+"/p", 0o700), os.Rename(x.ws+"/d", x.ws+"/p/d")))
			at := way.lay(x)
			names := func() string {
				out := x.looks()
				must(t, filepath.WalkDir(at, func(p string, _ fs.DirEntry, err error) error { out += p + "\n"; return err }))
				return out
			}
			var once atomic.Bool
			was := ""
			hook := func(op string) *guardfs.Fault {
				if op == way.op && once.CompareAndSwap(false, true) {
					must(t, change(at))
					was = names()
				}
				return nil
			}
			system := callsOf(x)
			system.hook.Store(&hook)
			err := way.run(x)
			system.hook.Store(nil)
			if code(err) != engine.CodeConflict || x.halfWay() != nil || names() != was {
				t.Errorf("%s, %s: %v\n%s\nwas\n%s", what, how, err, names(), was)
			}
			if err := way.run(x); err != nil { // now it is known
				t.Errorf("%s, %s, again: %v", what, how, err)
			}
		}
	}
}

type anything struct{}

func (anything) Judge(guardfs.Object, guardfs.Access) error { return nil }
func (anything) Dir(string, ...string) guardfs.DirVerdict   { return guardfs.DirVerdict{All: true} }
