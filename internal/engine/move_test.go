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
	"moltisfs/internal/engine"
	"moltisfs/internal/guardfs"
)

// layMove is a tree to move things in.
func (x *tree) layMove() {
	x.t.Helper()
	for _, name := range []string{"f", "there", "d/a", "d/sub/b", "d/sub/deep/c", "e/x"} {
		x.write(name, name+"\n")
	}
	must(x.t, errors.Join(os.Chmod(x.ws+"/d/a", 0o750), os.Chmod(x.ws+"/d/sub", 0o711), os.Mkdir(x.ws+"/d/hollow", 0o700),
		os.Symlink("sub/b", x.ws+"/d/link"), os.Symlink("d", x.ws+"/way"), os.Symlink("none", x.ws+"/dangling"),
		os.Mkdir(x.ws+"/empty", 0o750)))
}

// moveApart is Move where no rename leads from one name to another.
func (x *tree) moveApart() func(context.Context, *engine.Call, engine.MoveArgs) (*engine.Done, error) {
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

// sight is what is at a name and below, by the identity of each object.
func (x *tree) sight(name string) string {
	x.t.Helper()
	var out strings.Builder
	top := filepath.Clean(x.ws + "/" + name)
	if real, err := filepath.EvalSymlinks(filepath.Dir(top)); err == nil {
		top = real + "/" + filepath.Base(top)
	}
	must(x.t, filepath.WalkDir(top, func(p string, d fs.DirEntry, err error) error {
		var st syscall.Stat_t
		if err == nil {
			err = syscall.Lstat(p, &st)
		}
		fmt.Fprintf(&out, "%s %d %o %d %d\n", p[len(top):], st.Ino, st.Mode, st.Size, st.Mtim.Nano())
		return err
	}))
	return out.String()
}

// sees has the session read a file, or a part of it.
func (x *tree) sees(name string, whole bool) {
	x.t.Helper()
	b, err := os.ReadFile(x.ws + "/" + name)
	must(x.t, err)
	must(x.t, x.View(ctx, x.call("s"), engine.View{Path: x.ws + "/" + name, Access: guardfs.Read,
		Look: func(context.Context, *guardfs.Handle) (*engine.Sight, error) {
			return &engine.Sight{Hash: engine.HashOf(b), Unit: "line", Lines: 2, Whole: whole}, nil
		}}))
}

// What is moved is as it was, under its new name, and comes back: by undo, redo and undo.
func TestMove(t *testing.T) {
	t.Parallel()
	parents := engine.Rules{Parents: true}
	for _, c := range []struct {
		from, to string
		a        engine.MoveArgs
		at       string // where it is then; "" is to
	}{
		{from: "f", to: "g"},
		{from: "f", to: "e/f"},
		{from: "f", to: "n/m/f", a: engine.MoveArgs{Rules: parents}},
		{from: "f", to: "there", a: engine.MoveArgs{Overwrite: true}},
		{from: "f", to: "dangling", a: engine.MoveArgs{Overwrite: true}},
		{from: "f", to: "new", a: engine.MoveArgs{Overwrite: true}},
		{from: "dangling", to: "l"},
		{from: "way", to: "l"},
		{from: "way", to: "there", a: engine.MoveArgs{Overwrite: true}},
		{from: "way/a", to: "way/../g", at: "g"},
		{from: "d", to: "g"},
		{from: "d", to: "e/g"},
		{from: "d", to: "n/m/g", a: engine.MoveArgs{Rules: parents}},
		{from: "d/sub", to: "sub"},
		{from: "e", to: "d/sub/deep/e"},
		{from: "empty", to: "n/empty", a: engine.MoveArgs{Rules: parents}},
	} {
		for _, again := range []string{"", "copied"} {
			name := fmt.Sprint(c.from, " to ", c.to, " ", again)
			x := grow(t, func(cfg *config.FS) { cfg.CheckpointBeforeMutation = false })
			x.layMove()
			move := x.Move
			if again != "" {
				move = x.moveApart()
			}
			was, objects := x.looks(), x.sight(c.from)
			c.a.From, c.a.To = x.ws+"/"+c.from, x.ws+"/"+c.to
			dry := c.a
			dry.DryRun = true
			if _, err := x.Move(ctx, x.call("s"), dry); err != nil || x.looks() != was {
				t.Fatalf("%s, dry: %v\n%s", name, err, x.looks())
			}
			done, err := move(ctx, x.call("s"), c.a)
			if err != nil || done.Checkpoint == "" {
				t.Fatalf("%s: %+v %v", name, done, err)
			}
			at := c.to
			if c.at != "" {
				at = c.at
			}
			if now := x.sight(at); now != objects && again == "" {
				t.Errorf("%s: it is\n%s\nand was\n%s", name, now, objects)
			}
			if _, err := os.Lstat(x.ws + "/" + c.from); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("%s: it is at both names: %v", name, err)
			}
			moved := x.looks()
			if strings.Contains(moved, "/.moltis-") {
				t.Errorf("%s: something is left:\n%s", name, moved)
			}
			for _, step := range []struct {
				run  func(*engine.Engine, context.Context, *engine.Call, engine.RestoreOptions) (*engine.Restored, error)
				want string
			}{{(*engine.Engine).Undo, was}, {(*engine.Engine).Redo, moved}, {(*engine.Engine).Undo, was}} {
				if _, err := step.run(x.Engine, ctx, x.call("s"), engine.RestoreOptions{}); err != nil || x.looks() != step.want {
					t.Fatalf("%s: %v\n%s\nshould be\n%s", name, err, x.looks(), step.want)
				}
			}
		}
	}
}

func TestMoveRefuses(t *testing.T) {
	t.Parallel()
	x := grow(t, func(cfg *config.FS) { cfg.Checkpoint.MaxFileBytes = 100 })
	x.layMove()
	x.write("big", strings.Repeat("b", 101))
	x.write("large/big", strings.Repeat("b", 101))
	x.write("ro", "read-only\n")
	x.write("holds/special/f", "")
	x.write("hides/sub/secret", "s\n")
	must(t, errors.Join(os.Chmod(x.ws+"/ro", 0o440), syscall.Mkfifo(x.ws+"/fifo", 0o600), syscall.Mkfifo(x.ws+"/holds/special/fifo", 0o600)))
	x.deny = x.ws + "/hides/sub/secret"
	must(t, x.Close())
	x.open()
	was := x.looks()
	over := engine.MoveArgs{Overwrite: true}
	for _, c := range []struct {
		from, to string
		a        engine.MoveArgs
		want     engine.Code
	}{
		{"none", "new", engine.MoveArgs{}, engine.CodeNotFound},
		{"none/f", "new", engine.MoveArgs{}, engine.CodeNotFound},
		{"f", "n/m/f", engine.MoveArgs{}, engine.CodeNotFound},
		{"f", "there", engine.MoveArgs{}, engine.CodeConflict},
		{"f", "d", over, engine.CodeConflict},
		{"d", "there", over, engine.CodeConflict},
		{"d", "empty", over, engine.CodeConflict},
		{"d/sub", "d", over, engine.CodeConflict},
		{"f", "fifo", over, engine.CodeConflict},
		{"f", "big", over, engine.CodeUnsupported},
		{"f", "ro", over, engine.CodePermissionDenied},
		{"f", "there/f", engine.MoveArgs{Rules: engine.Rules{Parents: true}}, engine.CodeNotFound},
		{"f", "dangling/f", engine.MoveArgs{Rules: engine.Rules{Parents: true}}, engine.CodeSymlinkRefused},
		{"f", "f", over, engine.CodeBadRequest},
		{"d", "d", over, engine.CodeBadRequest},
		{"d", "d/sub/new", engine.MoveArgs{}, engine.CodeBadRequest},
		{"d", "way/new", engine.MoveArgs{}, engine.CodeBadRequest},
		{"d", "d/n/m", engine.MoveArgs{Rules: engine.Rules{Parents: true}}, engine.CodeBadRequest},
		{"ro", "new", engine.MoveArgs{}, engine.CodePermissionDenied},
		{"big", "new", engine.MoveArgs{}, engine.CodeUnsupported},
		{"large", "new", engine.MoveArgs{}, engine.CodeUnsupported},
		{"fifo", "new", engine.MoveArgs{}, engine.CodeNotRegularFile},
		{"holds", "new", engine.MoveArgs{}, engine.CodeNotRegularFile},
		{"hides", "new", engine.MoveArgs{}, engine.CodePathDenied},
		{"hides/sub/secret", "new", engine.MoveArgs{}, engine.CodePathDenied},
		{"f", "hides/sub/secret", over, engine.CodePathDenied},
		{"f", "../f", engine.MoveArgs{}, engine.CodePathDenied},
		{"../data", "new", engine.MoveArgs{}, engine.CodePathDenied},
		{".", "new", engine.MoveArgs{}, engine.CodeBadRequest},
		{"f", "new/", engine.MoveArgs{}, engine.CodeBadRequest},
		{"f", "a\x00b", engine.MoveArgs{}, engine.CodeBadRequest},
		{"f", "new", engine.MoveArgs{Rules: engine.Rules{Hash: "of nothing"}}, engine.CodeModified},
	} {
		for _, dry := range []bool{true, false} {
			c.a.From, c.a.To, c.a.DryRun = x.ws+"/"+c.from, x.ws+"/"+c.to, dry
			_, err := x.Move(ctx, x.call("s"), c.a)
			if dry && c.to == "big" {
				continue // the store says so
			}
			if code(err) != c.want {
				t.Errorf("%+v: %v", c, err)
			}
			if now := x.looks(); now != was {
				t.Fatalf("%+v changed it:\n%s", c, now)
			}
		}
	}
	if _, err := x.Undo(ctx, x.call("s"), engine.RestoreOptions{}); code(err) != engine.CodeNotFound {
		t.Errorf("there is something to undo: %v", err)
	}
}

// A new name that policy denies in the tree that is moved, a name that is denied there, and one outside of
// a call's scope.
func TestMoveIsJudged(t *testing.T) {
	t.Parallel()
	x := grow(t, nil)
	x.layMove()
	x.deny = x.ws + "/g/sub/deep"
	must(t, x.Close())
	x.open()
	was := x.looks()
	if _, err := x.Move(ctx, x.call("s"), engine.MoveArgs{From: x.ws + "/d", To: x.ws + "/g"}); code(err) != engine.CodePathDenied {
		t.Errorf("onto a denied name: %v", err)
	}
	for _, in := range []engine.Scope{
		{Readable: []string{x.ws + "/d"}, Writable: []string{x.ws + "/d"}},
		{Readable: []string{x.ws}, Writable: []string{x.ws + "/e"}},
		{Readable: []string{x.ws}, Writable: []string{x.ws + "/d/sub", x.ws + "/e"}},
	} {
		c := x.call("s")
		c.Scope = &in
		if _, err := x.Move(ctx, c, engine.MoveArgs{From: x.ws + "/d", To: x.ws + "/e/d"}); code(err) != engine.CodePathDenied {
			t.Errorf("%+v: %v", in, err)
		}
	}
	if x.looks() != was {
		t.Errorf("it is\n%s", x.looks())
	}
}

// What the session knows of a file it knows under the new name, no more and no less; what others changed
// since, or what it never read, it does not move.
func TestMoveOfWhatWasRead(t *testing.T) {
	t.Parallel()
	for _, apart := range []bool{false, true} {
		x := grow(t, func(cfg *config.FS) { cfg.TrackReads, cfg.MustReadBeforeWrite = true, true })
		x.layMove()
		moves := x.Move
		if apart {
			moves = x.moveApart()
		}
		move := func(from, to string) error {
			_, err := moves(ctx, x.call("s"), engine.MoveArgs{From: x.ws + "/" + from, To: x.ws + "/" + to, Overwrite: true})
			return err
		}
		write := func(name string) error {
			_, _, err := x.Write(ctx, x.call("s"), engine.WriteArgs{Path: x.ws + "/" + name, Text: "mine\n"})
			return err
		}
		if err := move("f", "g"); code(err) != engine.CodeMustRead {
			t.Errorf("never read: %v", err)
		}
		if err := move("d", "g"); code(err) != engine.CodeMustRead {
			t.Errorf("a tree that was never read: %v", err)
		}
		x.sees("f", true)
		x.sees("e/x", false)
		if err := move("f", "there"); code(err) != engine.CodeMustRead {
			t.Errorf("over what was never read: %v", err)
		}
		must(t, move("f", "g"))
		must(t, move("g", "h"))
		must(t, write("h"))
		must(t, move("e", "e2"))
		if err := write("e2/x"); code(err) != engine.CodeMustRead {
			t.Errorf("of which a part was read: %v", err)
		}
		x.write("h", "theirs\n")
		if err := move("h", "k"); code(err) != engine.CodeModified {
			t.Errorf("changed since: %v", err)
		}
		x.reads("h", "theirs\n")
		must(t, os.WriteFile(x.ws+"/f", []byte("another\n"), 0o600))
		if err := write("f"); code(err) != engine.CodeMustRead {
			t.Errorf("another file under the old name: %v", err)
		}
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
	// A file that comes into the tree meanwhile goes with it, and comes back.
	must(t, errors.Join(os.RemoveAll(x.ws), os.Mkdir(x.ws, 0o700)))
	x.layMove()
	a.while = func() { x.write("d/late", "late\n"); was = x.looks() }
	_, err = x.Move(ctx, c, engine.MoveArgs{From: x.ws + "/d", To: x.ws + "/g"})
	must(t, err)
	x.reads("g/late", "late\n")
	a.while = nil
	if _, err := x.Undo(ctx, c, engine.RestoreOptions{}); err != nil || x.looks() != was {
		t.Errorf("undone: %v\n%s\nwas\n%s", err, x.looks(), was)
	}
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

// What others changed at the new name stands against an undo.
func TestMoveUndoneMeetsOthers(t *testing.T) {
	t.Parallel()
	x := grow(t, nil)
	x.layMove()
	_, err := x.Move(ctx, x.call("s"), engine.MoveArgs{From: x.ws + "/d", To: x.ws + "/g"})
	must(t, err)
	x.write("g/a", "theirs\n")
	x.write("g/theirs", "theirs\n")
	was := x.looks()
	if _, err := x.Undo(ctx, x.call("s"), engine.RestoreOptions{}); code(err) != engine.CodeConflict || x.looks() != was {
		t.Errorf("%v\n%s", err, x.looks())
	}
	done, err := x.Undo(ctx, x.call("s"), engine.RestoreOptions{OnConflict: engine.OnConflictSkip})
	if err != nil || len(done.Skipped) != 1 {
		t.Errorf("%+v %v", done, err)
	}
	x.reads("g/a", "theirs\n")
	x.reads("g/theirs", "theirs\n")
	x.reads("d/sub/b", "d/sub/b\n")
	op, err := x.Checkpoint(ctx, x.call("s"), checkpoint.ID(done.Checkpoint))
	if err != nil || op == nil {
		t.Errorf("%+v %v", op, err)
	}
}

// To another volume all is made anew, times and modes too, by one change with one
// undo.
func TestMoveToAnotherVolume(t *testing.T) {
	t.Parallel()
	shm, err := os.MkdirTemp("/dev/shm", "move")
	if err != nil {
		t.Skip(err)
	}
	defer os.RemoveAll(shm)
	x := grow(t, nil)
	x.layMove()
	var a, b syscall.Stat_t
	must(t, errors.Join(syscall.Stat(shm, &a), syscall.Stat(x.ws, &b), x.Close()))
	if a.Dev == b.Dev {
		t.Skip("it is the same")
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
	must(t, through(e, func(ctx context.Context, c *engine.Call) (err error) {
		args := engine.MoveArgs{From: x.ws + "/d", To: shm + "/n/d", Rules: engine.Rules{Parents: true}}
		done, err = e.Move(ctx, c, args)
		return err
	}))
	if got, want := sub(strings.ReplaceAll(at.looks(), "/n/d", "/d")), sub(was); !slices.Equal(got, want) || done.Checkpoint == "" {
		t.Errorf("%q, and it was %q", got, want)
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
				was = x.sight(".")
			}
			return nil
		}
		system.hook.Store(&hook)
		c.a.From, c.a.To = x.ws+c.a.From, x.ws+c.a.To
		_, err := x.Move(ctx, x.call("s"), c.a)
		system.hook.Store(nil)
		if now := x.sight("."); code(err) != engine.CodeConflict || unhurried(now) != unhurried(was) {
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
