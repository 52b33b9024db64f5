//go:build unix

package engine_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
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
	op, err := x.call("s").Checkpoint(ctx, checkpoint.ID(done.Checkpoint))
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
	must(x.t, x.call("s").View(ctx, engine.View{Path: x.ws + "/" + name, Access: guardfs.Read,
		Look: func(context.Context, *guardfs.Handle) (*engine.ReadRecord, error) {
			return &engine.ReadRecord{Hash: engine.HashOf(b), Unit: "line", Lines: 2, Whole: whole}, nil
		}}))
}

// A moved object is as it was, under its new name, and comes back: by undo, redo and undo.
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
			if _, err := x.call("s").Move(ctx, dry); err != nil || x.looks() != was {
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
			if err != nil || x.Containment() != "best_effort" && os.SameFile(is, object) == apart {
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
			x.backAndForth(name, was)
		}
	}
}

func TestMoveRefuses(t *testing.T) {
	t.Parallel()
	x := grow(t, nil)
	x.layMove()
	x.write("ro", "read-only\n")
	x.write("hides/sub/secret", "s\n")
	must(t, errors.Join(os.Chmod(x.ws+"/ro", 0o440), syscall.Mkfifo(x.ws+"/fifo", 0o600)))
	x.deny = x.ws + "/hides/sub/secret"
	x.reopen()
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
		{"f", "ro", over, engine.CodePermissionDenied},
		{"f", "there/f", engine.MoveArgs{Rules: engine.Rules{Parents: true}}, engine.CodeNotFound},
		{"f", "dangling/f", engine.MoveArgs{Rules: engine.Rules{Parents: true}}, engine.CodeSymlinkRefused},
		{"f", "f", over, engine.CodeBadRequest},
		{"d", "d", over, engine.CodeBadRequest},
		{"d", "d/sub/new", engine.MoveArgs{}, engine.CodeBadRequest},
		{"d", "way/new", engine.MoveArgs{}, engine.CodeBadRequest},
		{"d", "d/n/m", engine.MoveArgs{Rules: engine.Rules{Parents: true}}, engine.CodeBadRequest},
		{"ro", "new", engine.MoveArgs{}, engine.CodePermissionDenied},
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
			_, err := x.call("s").Move(ctx, c.a)
			if code(err) != c.want {
				t.Errorf("%+v: %v", c, err)
			}
			if now := x.looks(); now != was {
				t.Fatalf("%+v changed it:\n%s", c, now)
			}
		}
	}
	if _, err := x.call("s").Undo(ctx, engine.RestoreOptions{}); code(err) != engine.CodeNotFound {
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
	x.reopen()
	was := x.looks()
	if _, err := x.call("s").Move(ctx, engine.MoveArgs{From: x.ws + "/d", To: x.ws + "/g"}); code(err) != engine.CodePathDenied {
		t.Errorf("onto a denied name: %v", err)
	}
	for _, in := range []engine.Scope{
		{Readable: []string{x.ws + "/d"}, Writable: []string{x.ws + "/d"}},
		{Readable: []string{x.ws}, Writable: []string{x.ws + "/e"}},
		{Readable: []string{x.ws}, Writable: []string{x.ws + "/d/sub", x.ws + "/e"}},
	} {
		c := x.call("s")
		c.Scope = &in
		if _, err := x.Begin(c).Move(ctx, engine.MoveArgs{From: x.ws + "/d", To: x.ws + "/e/d"}); code(err) != engine.CodePathDenied {
			t.Errorf("%+v: %v", in, err)
		}
	}
	if x.looks() != was {
		t.Errorf("it is\n%s", x.looks())
	}
}

// The session knows a file under the new name as well as under the old one; what others changed
// since, or what it never read, it does not move.
func TestMoveOfWhatWasRead(t *testing.T) {
	t.Parallel()
	for _, apart := range []bool{false, true} {
		x := grow(t, func(cfg *config.FS) { cfg.TrackReads, cfg.MustReadBeforeWrite = true, true })
		x.layMove()
		moves := x.mover(apart)
		move := func(from, to string) error {
			return errOf(moves(ctx, x.call("s"), engine.MoveArgs{From: x.ws + "/" + from, To: x.ws + "/" + to, Overwrite: true}))
		}
		write := func(name string) error {
			return lastOf(x.call("s").Write(ctx, engine.WriteArgs{Path: x.ws + "/" + name, Text: "mine\n"}))
		}
		if err := move("f", "g"); code(err) != engine.CodeMustRead {
			t.Errorf("never read: %v", err)
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
		x.has("h", "theirs\n")
		must(t, os.WriteFile(x.ws+"/f", []byte("another\n"), 0o600))
		if err := write("f"); code(err) != engine.CodeMustRead {
			t.Errorf("another file under the old name: %v", err)
		}
	}
}

// A tree gets a name while a file is written into it: what policy closes under the new name, or what runs
// code, does not come there without a question, whoever is first. A look and then a rename, as the control
// does it, lets it in.
func TestTreeGetsANameWhileItIsWrittenInto(t *testing.T) {
	t.Parallel()
	const rounds = 40
	closed := func(*config.FS) {}
	for name, c := range map[string]struct {
		set      func(*config.FS)
		to, leaf string
	}{
		"code, asked":      {closed, ".vscode", "tasks.json"},
		"code, refused":    {func(fs *config.FS) { fs.ProtectExec = "refuse" }, ".vscode", "tasks.json"},
		"code, below":      {closed, "n", ".cargo/config.toml"},
		"an instruction":   {closed, "n", "sub/AGENTS.md"},
		"CI":               {closed, ".github/workflows", "ci.yml"},
		"a secret":         {closed, ".aws", "credentials"},
		"a denied pattern": {func(fs *config.FS) { fs.DenyPaths = []string{"**/locked/*.conf"} }, "locked", "a.conf"},
	} {
		who := &asked{}
		e, root := guarded(t, who, c.set)
		done := 0
		for range rounds {
			dir, err := os.MkdirTemp(root, "r")
			must(t, err)
			must(t, errors.Join(os.MkdirAll(dir+"/w/"+filepath.Dir(c.leaf), 0o700), os.MkdirAll(filepath.Dir(dir+"/"+c.to), 0o700)))
			var moved, written error
			var wg sync.WaitGroup
			wg.Go(func() {
				moved = through(e, func(ctx context.Context, call *engine.Call) error { return moves("w", c.to)(ctx, call, dir) })
			})
			wg.Go(func() {
				written = through(e, func(ctx context.Context, call *engine.Call) error {
					return errOf(call.Create(ctx, dir+"/w/"+c.leaf, []byte("x"), engine.Rules{}))
				})
			})
			wg.Wait()
			if _, err := os.Lstat(dir + "/" + c.to + "/" + c.leaf); err == nil {
				t.Fatalf("%s: it came there: %v %v", name, moved, written)
			}
			if moved == nil || written == nil {
				done++
			}
		}
		if left, _ := filepath.Glob(root + "/r*/.moltis-*"); left != nil || done == 0 {
			t.Errorf("%s: done %d, left %v", name, done, left)
		}
	}
	in, top := 0, t.TempDir()
	for end := 1000 * rounds; in < 3 && end > 0; end-- {
		dir, err := os.MkdirTemp(top, "r")
		must(t, errors.Join(err, os.Mkdir(dir+"/w", 0o700)))
		var looked atomic.Bool
		var wg sync.WaitGroup
		wg.Go(func() {
			for !looked.Load() {
				runtime.Gosched()
			}
			os.WriteFile(dir+"/w/tasks.json", nil, 0o600) //nolint:errcheck // it may be late
		})
		there, err := os.ReadDir(dir + "/w")
		looked.Store(true)
		must(t, errors.Join(err, os.Rename(dir+"/w", dir+"/.vscode")))
		wg.Wait()
		if _, err := os.Lstat(dir + "/.vscode/tasks.json"); err == nil && len(there) == 0 {
			in++
		}
	}
	if in == 0 {
		t.Error("a look and then a rename lets nothing in: the race is none")
	}
}

func TestCopy(t *testing.T) {
	x := grow(t, func(fs *config.FS) { fs.TrackReads, fs.MustReadBeforeWrite = true, true })
	src := x.write("d/f", "one\n")
	x.write("there", "old\n")
	for _, err := range []error{os.Chmod(src, 0o510), os.Symlink("d/f", x.ws+"/link"), os.Symlink("gone", x.ws+"/dangling")} {
		must(t, err)
	}
	at := func(name string) string { return x.ws + "/" + name }
	was := x.looks()
	for _, c := range []struct {
		from, to string
		a        engine.CopyArgs
		want     engine.Code
	}{
		{"none", "new", engine.CopyArgs{}, engine.CodeNotFound},
		{"d", "new", engine.CopyArgs{}, engine.CodeNotRegularFile},
		{"d/f", "there", engine.CopyArgs{}, engine.CodeConflict},
		{"d/f", "there", engine.CopyArgs{Overwrite: true}, engine.CodeMustRead},
		{"d/f", "d", engine.CopyArgs{Overwrite: true}, engine.CodeNotRegularFile},
		{"d/f", "link", engine.CopyArgs{Overwrite: true}, engine.CodeSymlinkRefused},
		{"d/f", "dangling", engine.CopyArgs{}, engine.CodeSymlinkRefused},
		{"d/f", "a/b/new", engine.CopyArgs{}, engine.CodeNotFound},
		{"d/f", "../data/new", engine.CopyArgs{}, engine.CodePathDenied},
		{"../data/new", "new", engine.CopyArgs{}, engine.CodePathDenied},
		{"d/f", "new", engine.CopyArgs{Rules: engine.Rules{Hash: "of nothing"}}, engine.CodeModified},
		{"d/f", "new", engine.CopyArgs{DryRun: true}, ""},
		{"d", "d/e", engine.CopyArgs{Recursive: true}, engine.CodeBadRequest},
		{"d", "d", engine.CopyArgs{Recursive: true}, engine.CodeConflict},
		{"d", "there", engine.CopyArgs{Recursive: true, Overwrite: true}, engine.CodeConflict},
		{"d", "a/b/new", engine.CopyArgs{Recursive: true}, engine.CodeNotFound},
		{"d", "new", engine.CopyArgs{Recursive: true, DryRun: true}, ""},
		{"link", "../outside", engine.CopyArgs{Recursive: true}, engine.CodePathDenied},
	} {
		c.a.From, c.a.To = at(c.from), at(c.to)
		if _, err := x.call("s").Copy(ctx, c.a); code(err) != c.want {
			t.Errorf("%+v: %v", c, err)
		}
		if now := x.looks(); now != was {
			t.Fatalf("%+v changed it:\n%s", c, now)
		}
	}
	// The source was never read, and is read-only.
	done, err := x.call("s").Copy(ctx, engine.CopyArgs{From: at("link"), To: at("a/new"), Rules: engine.Rules{Parents: true}})
	if err != nil || done.Checkpoint == "" || len(done.Targets) != 1 || done.Targets[0].After.Hash != engine.HashOf([]byte("one\n")) {
		t.Fatalf("%+v %v", done, err)
	}
	x.has("a/new", "one\n")
	if i, err := os.Stat(at("a/new")); err != nil || i.Mode().Perm() != 0o510 {
		t.Errorf("%v %v", i.Mode(), err)
	}
	// The session knows the files that it has made.
	if _, err := x.call("s").Copy(ctx, engine.CopyArgs{From: at("there"), To: at("a/new"), Overwrite: true}); code(err) != engine.CodePermissionDenied {
		t.Errorf("over a read-only file: %v", err)
	}
	must(t, os.Chmod(at("a/new"), 0o640))
	must(t, errOf(x.call("s").Copy(ctx, engine.CopyArgs{From: at("there"), To: at("a/new"), Overwrite: true})))
	x.has("a/new", "old\n")
	if i, err := os.Stat(at("a/new")); err != nil || i.Mode().Perm() != 0o640 {
		t.Errorf("the mode of what was there is lost: %v %v", i.Mode(), err)
	}
	for range 2 {
		must(t, x.does(undoes))
	}
	x.same("undone", was)
}

func TestCopyTree(t *testing.T) {
	x := grow(t, nil)
	x.write("d/f", "one\n")
	x.write("d/sub/exec", "two\n")
	x.write("d/sub/deep/empty", "")
	x.write("d/private/key", "three\n")
	for _, err := range []error{
		os.Chmod(x.ws+"/d/sub/exec", 0o755), os.Chmod(x.ws+"/d/f", 0o600), os.Chmod(x.ws+"/d/private", 0o700), os.Mkdir(x.ws+"/d/hollow", 0o755),
		os.Symlink("sub/exec", x.ws+"/d/link"), os.Symlink("none", x.ws+"/d/dangling"), os.Symlink(x.data, x.ws+"/d/out"),
		os.Symlink("d", x.ws+"/way"),
	} {
		must(t, err)
	}
	was := x.looks()
	sub := func(looks, dir string) string { // how a directory looks, by names below it
		var out []string
		for line := range strings.SplitSeq(looks, "\n") {
			if rest, ok := strings.CutPrefix(line, dir+"/"); ok {
				out = append(out, rest)
			}
		}
		return strings.Join(out, "\n")
	}
	for _, to := range []string{"copy", "a/b/copy", "way/../copy"} {
		a := engine.CopyArgs{From: x.ws + "/way", To: x.ws + "/" + to, Recursive: true, Rules: engine.Rules{Parents: true}}
		if _, err := x.call("s").Copy(ctx, a); err != nil {
			t.Fatalf("%s: %v", to, err)
		}
		now := x.looks()
		if got, want := sub(now, strings.TrimPrefix(filepath.Clean("/"+to), "")), sub(was, "/d"); got != want {
			t.Errorf("%s:\n%s\nwant\n%s", to, got, want)
		}
		if err := x.does(undoes); err != nil || x.looks() != was {
			t.Fatalf("%s undone: %v\n%s", to, err, x.looks())
		}
	}
}

// A tree that can't be copied whole is not copied at all.
func TestCopyTreeRefuses(t *testing.T) {
	x := grow(t, nil)
	for i := range 10_001 {
		x.write(fmt.Sprintf("many/%d/f", i%100)+fmt.Sprint(i), "")
	}
	x.write("hides/a", "a")
	x.write("hides/secret", "s")
	x.write("special/f", "")
	must(t, syscall.Mkfifo(x.ws+"/special/fifo", 0o600))
	e := under(t, func(fs *config.FS) { fs.AllowPaths, fs.DenyPaths = []string{x.ws + "/**"}, []string{"**/secret"} })
	for name, want := range map[string]engine.Code{
		"many": engine.CodeLimit, "hides": engine.CodePathDenied, "special": engine.CodeNotRegularFile,
	} {
		err := through(e, func(ctx context.Context, c *engine.Call) error { return copies(name, "new")(ctx, c, x.ws) })
		if code(err) != want {
			t.Errorf("%s: %v", name, err)
		}
		x.has("new", "-")
	}
}

// A copy is made as it was approved, whatever the source is by then, and the source is on record.
func TestCopyIsApproved(t *testing.T) {
	x, a := asking(t)
	src := x.write("f", "one\n")
	c := x.call("s")
	c.Approver = a
	a.while = func() { x.write("f", "two\n") }
	must(t, errOf(c.Copy(ctx, engine.CopyArgs{From: src, To: x.ws + "/new"})))
	x.has("new", "one\n")
	a.while = func() { x.write("late", "theirs\n") }
	if _, err := c.Copy(ctx, engine.CopyArgs{From: src, To: x.ws + "/late"}); code(err) != engine.CodeConflict {
		t.Errorf("over what appeared: %v", err)
	}
	x.has("late", "theirs\n")
	found := false
	for _, r := range recorded(t, x) {
		found = found || r.Phase == "intent" && strings.Join(r.Paths, " ") == x.ws+"/new "+src
	}
	if !found {
		t.Errorf("on record: %+v", recorded(t, x))
	}
}
