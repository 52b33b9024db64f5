//go:build !rooted

package sandbox

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"moltisfs/checkpoint"
	"moltisfs/config"
	"moltisfs/internal/dialect"
	"moltisfs/internal/edit"
	"moltisfs/internal/engine"
	"moltisfs/internal/guardfs"
)

var frameStride = flag.Int("frames", 0, "a kill at, or a fault in, each so manieth frame; 0: a few of each operation")

var always = context.Background()

// boxed is an engine whose calls are made by a worker of this program.
type boxed struct {
	*engine.Engine
	t             *testing.T
	dir, ws, data string
	cfg           config.FS
	s             *Session
	alone         bool // no call comes after a kill
}

func box(t *testing.T) *boxed {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	b := &boxed{t: t, dir: dir, ws: dir + "/ws", data: dir + "/data", cfg: config.Default().Tools.FS}
	err = errors.Join(err, os.Mkdir(b.ws, 0o700), os.Mkdir(b.data, 0o700))
	b.cfg.RequireApproval, b.cfg.CheckpointBeforeMutation, b.cfg.TrackReads = false, true, false
	b.cfg.Checkpoint.MaxFileBytes = 1000
	must(t, err)
	b.s = armable(t, dir, b.ws, 20*time.Second, 1<<30)
	b.open()
	t.Cleanup(func() { b.Close() })
	return b
}

func (b *boxed) open() {
	b.t.Helper()
	o := engine.Options{Config: b.cfg, Judge: anything{}, DataDir: b.data, Calls: b.s.Calls()}
	var err error
	if b.Engine, err = engine.OpenOver(o); err != nil {
		b.t.Fatal(err)
	}
}

// do has run work with a call of the engine; a refusal is an error.
func (b *boxed) do(run func(c *engine.Call) error) (err error) {
	var refused *engine.Refusal
	c := &engine.Call{Principal: "p", Session: "s", Tool: "test"}
	_, err = engine.Do(always, b.Engine, c, engine.Operation[any, *dialect.Object]{
		Changes: true,
		Run:     func(context.Context, any) (*dialect.Object, error) { return &dialect.Object{}, run(c) },
		Refuse: func(_ context.Context, _ *engine.Call, _ any, no *engine.Refusal) (*dialect.Object, string) {
			refused = no
			return &dialect.Object{}, string(no.Code)
		}})
	if refused != nil {
		err = refused
	}
	return err
}

// looks is the tree as text, without the trash, and what of ours is left in it.
func (b *boxed) looks() (text string, litter []string) {
	b.t.Helper()
	err := filepath.WalkDir(b.ws, func(p string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		switch name := e.Name(); {
		case strings.HasPrefix(name, guardfs.TrashPrefix):
			return fs.SkipDir
		case strings.HasPrefix(name, ".moltis-"):
			litter = append(litter, p)
			return nil
		}
		info, err := e.Info()
		var content []byte
		switch {
		case err != nil:
		case info.Mode().IsRegular():
			content, err = os.ReadFile(p)
		case info.Mode()&fs.ModeSymlink != 0:
			var to string
			to, err = os.Readlink(p)
			content = []byte(to)
		}
		text += fmt.Sprintf("%s %v %.60q %d\n", p[len(b.ws):], info.Mode(), content, len(content))
		return err
	})
	must(b.t, err)
	return text, litter
}

// frame is an operation, with the tree before it, and the call that takes it back.
type frame struct {
	lay  func(b *boxed) error
	run  func(b *boxed) error
	back func(b *boxed) error // nil: undo
}

func undo(b *boxed) error {
	return b.do(func(c *engine.Call) error {
		_, err := c.Undo(always, engine.RestoreOptions{})
		return err
	})
}

func redo(b *boxed) error {
	return b.do(func(c *engine.Call) error {
		_, err := c.Redo(always, engine.RestoreOptions{})
		return err
	})
}

func files(pairs ...string) func(*boxed) error {
	return func(b *boxed) error {
		var errs []error
		for i := 0; i < len(pairs); i += 2 {
			name := b.ws + "/" + pairs[i]
			errs = append(errs, os.MkdirAll(filepath.Dir(name), 0o750), os.WriteFile(name, []byte(pairs[i+1]), 0o640))
		}
		return errors.Join(append(errs, os.Symlink("d/a", b.ws+"/link"))...)
	}
}

func (b *boxed) put(name, text string) error {
	return b.do(func(c *engine.Call) error {
		_, _, err := c.Write(always, engine.WriteArgs{Path: b.ws + "/" + name, Raw: []byte(text),
			Rules: engine.Rules{Parents: true, Meant: true}})
		return err
	})
}

func (b *boxed) remove(name string) error {
	return b.do(func(c *engine.Call) error {
		_, err := c.Delete(always, b.ws+"/"+name, engine.DeleteOptions{Recursive: true})
		return err
	})
}

func then(all ...func(*boxed) error) func(*boxed) error {
	return func(b *boxed) error {
		for _, do := range all {
			if err := do(b); err != nil {
				return err
			}
		}
		return nil
	}
}

var large = strings.Repeat("large\n", 60_000) // more than one frame, and than the store holds

var someFiles = files("f", "old\n", "d/a", "a\n", "d/b/c", "c\n", "big", large)

// changes are all the kinds of changes that the engine makes.
var changes = map[string]frame{
	"write new": {someFiles, func(b *boxed) error { return b.put("x/y/new", "new\n") }, nil},
	"replace":   {someFiles, func(b *boxed) error { return b.put("f", strings.Repeat("new\n", 200)) }, nil},
	"append": {someFiles, func(b *boxed) error {
		return b.do(func(c *engine.Call) error {
			_, err := c.Append(always, b.ws+"/f", []byte("more\n"), engine.Rules{})
			return err
		})
	}, nil},
	"append in place": {someFiles, func(b *boxed) error {
		return b.do(func(c *engine.Call) error {
			_, err := c.Append(always, b.ws+"/big", []byte("more\n"), engine.Rules{})
			return err
		})
	}, nil},
	"edit": {someFiles, func(b *boxed) error {
		return b.do(func(c *engine.Call) error {
			_, _, err := c.Edit(always, engine.EditArgs{Path: b.ws + "/f", Edits: []edit.Edit{{Old: "old", New: "new"}}})
			return err
		})
	}, nil},
	"mkdir": {someFiles, func(b *boxed) error {
		return b.do(func(c *engine.Call) error {
			_, err := c.Mkdir(always, engine.MkdirArgs{Path: b.ws + "/x/y/z", Rules: engine.Rules{Parents: true}})
			return err
		})
	}, nil},
	"move a file over another": {someFiles, func(b *boxed) error {
		return b.do(func(c *engine.Call) error {
			_, err := c.Move(always, engine.MoveArgs{From: b.ws + "/f", To: b.ws + "/d/a", Overwrite: true})
			return err
		})
	}, nil},
	"move a tree": {someFiles, func(b *boxed) error {
		return b.do(func(c *engine.Call) error {
			_, err := c.Move(always, engine.MoveArgs{From: b.ws + "/d", To: b.ws + "/x/d", Rules: engine.Rules{Parents: true}})
			return err
		})
	}, nil},
	"copy a large file": {someFiles, func(b *boxed) error {
		return b.do(func(c *engine.Call) error {
			_, err := c.Copy(always, engine.CopyArgs{From: b.ws + "/big", To: b.ws + "/copy"})
			return err
		})
	}, nil},
	"copy a tree": {someFiles, func(b *boxed) error {
		return b.do(func(c *engine.Call) error {
			_, err := c.Copy(always, engine.CopyArgs{From: b.ws + "/d", To: b.ws + "/e", Recursive: true})
			return err
		})
	}, nil},
	"delete a file":       {someFiles, func(b *boxed) error { return b.remove("f") }, nil},
	"delete a link":       {someFiles, func(b *boxed) error { return b.remove("link") }, nil},
	"delete a tree":       {someFiles, func(b *boxed) error { return b.remove("d") }, nil},
	"delete a large file": {someFiles, func(b *boxed) error { return b.remove("big") }, nil},
	"undo of an edit": {then(someFiles, func(b *boxed) error { return b.put("f", "new\n") }),
		undo, redo},
	"undo of a deleted tree": {then(someFiles, func(b *boxed) error { return b.remove("d") }), undo, redo},
	"undo of a deleted link": {then(someFiles, func(b *boxed) error { return b.remove("link") }), undo, redo},
	"undo of what is in the trash": {then(someFiles, func(b *boxed) error { return b.remove("big") }),
		undo, redo},
	"redo": {then(someFiles, func(b *boxed) error { return b.put("x/new", "new\n") }, undo), redo, undo},
	"out of the trash": {then(someFiles, func(b *boxed) error { return b.remove("d") }), func(b *boxed) error {
		return b.do(func(c *engine.Call) error {
			page, err := c.Trash(always, checkpoint.TrashFilter{})
			if err != nil || len(page.Entries) == 0 {
				return fmt.Errorf("no entry: %w", err)
			}
			_, err = c.Untrash(always, page.Entries[0].ID, false)
			return err
		})
	}, undo},
}

// relay makes the tree what it was at first.
func (b *boxed) relay(f *frame) error {
	entries, err := os.ReadDir(b.ws)
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), guardfs.TrashPrefix) {
			err = errors.Join(err, os.RemoveAll(b.ws+"/"+e.Name()))
		}
	}
	return errors.Join(err, f.lay(b))
}

// arm has the worker die at a request, or answer it with an errno, after it was made or before.
func (b *boxed) arm(how string, n int, errno unix.Errno, after bool) error {
	return os.WriteFile(b.dir+"/armed", fmt.Appendln(nil, how, n, int(errno), after), 0o600)
}

// counted is how many requests an operation takes, and what it makes of the tree.
func (b *boxed) counted(f *frame) (n int, old, done string) {
	b.t.Helper()
	err := b.relay(f)
	old, _ = b.looks()
	if err = errors.Join(err, b.arm("count", 0, 0, false)); err == nil {
		if err = f.run(b); err == nil {
			_, err = b.s.now.ask(&request{op: opPing, a: 1}, nil, nil)
		}
	}
	text, rerr := os.ReadFile(b.dir + "/armed.n")
	if err = errors.Join(err, rerr); err != nil {
		b.t.Fatal(err)
	}
	n, _ = strconv.Atoi(string(text))
	done, _ = b.looks()
	if n < 5 || old == done {
		b.t.Fatalf("it makes %d requests, and the tree is then\n%s", n, done)
	}
	return n, old, done
}

// killed kills the worker at the n-th request of a change, and says what is wrong then.
func (b *boxed) killed(f *frame, n int, after bool, old, done string) (cut bool, err error) {
	if err := errors.Join(b.relay(f), b.arm("die", n, 0, after)); err != nil {
		return false, fmt.Errorf("laying it: %w", err)
	}
	p := b.s.now
	cause := f.run(b)
	if !p.isDead() { // how many descriptors have been closed by now depends on the moment
		p.ask(&request{op: opPing, a: 1}, nil, nil) //nolint:errcheck // it may die of that
	}
	now, litter := b.looks()
	switch {
	case cause == nil && now != done:
		return false, fmt.Errorf("said to be done, and the tree is\n%s", now)
	case cause != nil && !unreached(cause):
		return false, fmt.Errorf("the error is %w", cause)
	}
	cut = now != old && now != done || litter != nil
	if !b.alone {
		err := b.do(func(c *engine.Call) error { // whatever call is the next one
			_, err := c.List(always, b.ws)
			return err
		})
		if err != nil {
			return cut, fmt.Errorf("the next call: %w", err)
		}
	}
	now, litter = b.looks()
	switch {
	case litter != nil:
		return cut, fmt.Errorf("(%v) left: %v", cause, litter)
	case now == old && cause != nil:
		if err := f.run(b); err != nil {
			return cut, fmt.Errorf("once more: %w", err)
		}
		if again, _ := b.looks(); again != done {
			return cut, fmt.Errorf("once more, and the tree is\n%s", again)
		}
	case now != done:
		return cut, fmt.Errorf("(%v) the tree is\n%s\nit was\n%s\nand should have become\n%s", cause, now, old, done)
	}
	back := f.back
	if back == nil {
		back = undo
	}
	if err := back(b); err != nil {
		return cut, fmt.Errorf("(%v) taking it back: %w", cause, err)
	}
	if now, _ := b.looks(); now != old {
		return cut, fmt.Errorf("(%v) taken back, and the tree is\n%s\nit was\n%s", cause, now, old)
	}
	return cut, nil
}

// unreached says that an answer is that the sandbox is not there, or that something is half made because of that.
func unreached(err error) bool {
	r, half := errors.AsType[*engine.Refusal](err)
	return errors.Is(err, guardfs.ErrUnavailable) || half && r.Code == engine.CodeUnavailable
}

// settled says that nothing is half-way, and that no process stays that nobody waited for.
func (b *boxed) settled() {
	b.t.Helper()
	must(b.t, b.Close())
	db, err := checkpoint.Open(b.data+"/checkpoints", checkpoint.Options{})
	must(b.t, err)
	open, err := db.Open(always)
	if err = errors.Join(err, db.Close()); err != nil || len(open) > 0 {
		b.t.Errorf("%d changes are half-way: %v", len(open), err)
	}
	b.open()
	if _, litter := b.looks(); litter != nil {
		b.t.Errorf("left: %v", litter)
	}
}

// A worker is killed at every request of every change, before it makes the call and before it answers: the change is made
// or was not, the call says no more than is so, the next one finds the tree whole by another worker, and the change can be
// made again and taken back.
func TestWorkerKilledInEveryChange(t *testing.T) {
	kills, cuts := 0, 0
	for i, name := range slices.Sorted(maps.Keys(changes)) {
		t.Run(name, func(t *testing.T) {
			f, b := changes[name], box(t)
			total, old, done := b.counted(&f)
			for _, after := range []bool{false, true} {
				n, stride := 1, *frameStride
				if stride == 0 && name != "replace" { // one, each time at another place of another change
					n, stride = total*(1+(i+len(t.Name()))%5)/6, total
				}
				for ; n <= total; n += max(stride, 1) {
					cut, err := b.killed(&f, n, after, old, done)
					if err != nil {
						t.Fatalf("killed at %d of %d, after it was made %v: %v", n, total, after, err)
					}
					if kills++; cut {
						cuts++
					}
				}
			}
			b.settled()
			t.Logf("%d requests", total)
		})
	}
	t.Logf("%d kills, %d left the tree half changed", kills, cuts)
}

// An engine that leaves a change half made does not pass: here no call comes after the kill, so that nothing recovers. Which request
// leaves something depends on the moment: on a busy machine all are tried a few times.
func TestWorkerKilledWithoutRecovery(t *testing.T) {
	f, b := changes["replace"], box(t)
	b.alone = true
	total, old, done := b.counted(&f)
	for range 10 {
		for n := total; n > 0; n-- {
			if _, err := b.killed(&f, n, false, old, done); err != nil {
				return
			}
		}
	}
	t.Error("it passed")
}

// A file that the store can't hold lies in a trash inside of the root, for its owner alone, until it is taken back.
func TestTrashLiesInside(t *testing.T) {
	t.Parallel()
	b := box(t)
	must(t, errors.Join(someFiles(b), b.remove("big")))
	var held []string
	err := filepath.WalkDir(b.dir, func(p string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			if content, _ := os.ReadFile(p); string(content) == large {
				held = append(held, p)
			}
		}
		return err
	})
	trash := b.ws + "/" + guardfs.TrashPrefix + "-" + strconv.Itoa(os.Getuid())
	if err != nil || len(held) != 1 || !strings.HasPrefix(held[0], trash+"/") {
		t.Fatalf("it lies in %q, want it in %s: %v", held, trash, err)
	}
	if info, err := os.Stat(trash); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v: %v", info.Mode(), err)
	}
	must(t, undo(b))
	content, err := os.ReadFile(b.ws + "/big")
	if _, gone := os.Lstat(held[0]); string(content) != large || gone == nil {
		t.Errorf("%d bytes came back (%v), and in the trash: %v", len(content), err, gone)
	}
}
