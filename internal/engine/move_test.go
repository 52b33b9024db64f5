//go:build unix

package engine_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

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

// sameOnRecord fails unless the checkpoint says of each file that it has the mode which it has.
func (x *tree) sameOnRecord(done *engine.Done) {
	x.t.Helper()
	op, err := x.Checkpoint(ctx, x.call("s"), checkpoint.ID(done.Checkpoint))
	must(x.t, err)
	for _, c := range op.Changes {
		if is, err := os.Lstat(c.Path); c.After.Kind == checkpoint.File && (err != nil || is.Mode().Perm() != c.After.Mode.Perm()) {
			x.t.Errorf("%s is on record with %v: %v %v", c.Path, c.After.Mode, is, err)
		}
	}
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
		for _, apart := range []bool{false, true} {
			name := fmt.Sprint(c.from, " to ", c.to, " ", apart)
			x := grow(t, func(cfg *config.FS) { cfg.CheckpointBeforeMutation = false })
			x.layMove()
			move := x.mover(apart)
			was := x.looks()
			object, err := os.Lstat(x.ws + "/" + c.from)
			must(t, err)
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
			is, err := os.Lstat(x.ws + "/" + at)
			if err != nil || os.SameFile(is, object) == (apart || x.Containment() == "best_effort") {
				t.Errorf("%s: it is %v, and was %v: %v", name, is, object, err)
			}
			x.sameOnRecord(done)
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
		{"f", "d", over, engine.CodeNotRegularFile},
		{"f", "empty", over, engine.CodeNotRegularFile},
		{"dangling", "d", over, engine.CodeNotRegularFile},
		{"f", "d", engine.MoveArgs{}, engine.CodeConflict},
		{"d", "there", engine.MoveArgs{Overwrite: true, NoDirs: true}, engine.CodeNotRegularFile},
		{"d", "new", engine.MoveArgs{NoDirs: true}, engine.CodeNotRegularFile},
		{"d", "there", over, engine.CodeConflict},
		{"d", "empty", over, engine.CodeConflict},
		{"d/sub", "d", over, engine.CodeConflict},
		{"f", "fifo", over, engine.CodeNotRegularFile},
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
		moves := x.mover(apart)
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
