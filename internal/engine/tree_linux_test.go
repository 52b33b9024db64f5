//go:build linux

package engine_test

import (
	"cmp"
	"errors"
	"io/fs"
	"moltisfs/checkpoint"
	"moltisfs/internal/engine"
	"moltisfs/internal/guardfs"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// cutting is an engine of its own over the tree, whose change run cuts off before its n-th call op, as a kill does: none of its
// calls comes about from there on, and its locks go. run returns the newest checkpoint then.
func (x *tree) cutting(op string, n int64) (run func(func(x *tree) error) checkpoint.ID) {
	x.t.Helper()
	var count atomic.Int64
	var on, over atomic.Bool
	y := *x
	y.cfg.RequireApproval = false
	y.fault = func(called string) *guardfs.Fault {
		if on.Load() && called == op && count.Add(1) == n {
			over.Store(true)
		}
		if over.Load() {
			return &guardfs.Fault{Err: syscall.EIO}
		}
		return nil
	}
	y.open()
	return func(do func(*tree) error) checkpoint.ID {
		x.t.Helper()
		defer y.Close()
		on.Store(true)
		do(&y) //nolint:errcheck // it is cut off
		if !over.Load() {
			x.t.Fatalf("%s: there is no %d. call", op, n)
		}
		page, err := y.Checkpoints(ctx, y.call("s"), checkpoint.Filter{AllSessions: true, Limit: 1})
		must(x.t, err)
		return page.Checkpoints[0].ID
	}
}

func (x *tree) cut(op string, n int64, do func(x *tree) error) checkpoint.ID {
	x.t.Helper()
	return x.cutting(op, n)(do)
}

// makes has the files of these names become content.
func makes(content string, names ...string) func(x *tree) error {
	return func(x *tree) error {
		f := x.becomes(content, names...)
		f.Parents = true
		_, err := x.ChangeFiles(ctx, x.call("s"), f)
		return err
	}
}

// halfWay lists what is marked as half-way.
func (x *tree) halfWay() []checkpoint.ID {
	x.t.Helper()
	ids, err := x.HalfWay(ctx)
	must(x.t, err)
	return ids
}

// has fails unless the file holds content; "-" is absence.
func (x *tree) has(name, content string) {
	x.t.Helper()
	b, err := os.ReadFile(x.ws + "/" + name)
	if err != nil && (content != "-" || !errors.Is(err, os.ErrNotExist)) || err == nil && string(b) != content {
		x.t.Fatalf("%s holds %.40q %v, want %.40q", name, b, err, content)
	}
}

// copyAll copies a directory with all that is in it, modes and times too. No process is started for
// it: one that has just been forked holds for a moment the locks of whoever runs beside it.
func copyAll(t testing.TB, from, to string) {
	t.Helper()
	times := map[string]time.Time{}
	must(t, filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		at := to + path[len(from):]
		switch {
		case d.IsDir():
			times[at] = info.ModTime()
			err = cmp.Or(os.MkdirAll(at, 0o700), os.Chmod(at, info.Mode()))
		case d.Type()&fs.ModeSymlink != 0:
			var target string
			if target, err = os.Readlink(path); err == nil {
				err = os.Symlink(target, at)
			}
		default:
			var b []byte
			if b, err = os.ReadFile(path); err == nil {
				err = cmp.Or(os.WriteFile(at, b, 0o600), os.Chmod(at, info.Mode()), os.Chtimes(at, time.Time{}, info.ModTime()))
			}
		}
		return err
	}))
	for at, when := range times {
		must(t, os.Chtimes(at, time.Time{}, when))
	}
}

// trade makes, in turn t, a directory of the file "file" and of the link "link", and files of the directories "dir" and "hollow". It returns the tree before and after.
func (x *tree) trade() (old, traded string) {
	x.t.Helper()
	for _, f := range []string{"file", "dir/a", "dir/sub/b", "same"} {
		x.write(f, f+"\n")
	}
	x.write("led/3", "theirs\n")
	must(x.t, errors.Join(os.Symlink("led", x.ws+"/dirlink"), os.Mkdir(x.ws+"/hollow", 0o750), os.Symlink("same", x.ws+"/link"), os.Symlink("a", x.ws+"/dir/l")))
	old = x.looks()
	c := x.call("s")
	c.Turn = "t"
	x.BeginTurn(ctx, c)
	for _, name := range []string{"file", "dir", "hollow", "link", "dirlink"} {
		_, err := x.Delete(ctx, c, x.ws+"/"+name, engine.DeleteOptions{Recursive: true})
		must(x.t, err)
	}
	for _, name := range []string{"file/1", "file/deep/2", "dir", "hollow", "link/3", "dirlink/3", "dirlink/deep/4"} {
		x.puts("t", name, "new "+name+"\n")
	}
	return old, x.looks()
}

// puts writes a file by way of the engine, in a turn.
func (x *tree) puts(turn, name, content string) {
	x.t.Helper()
	c := x.call("s")
	c.Turn = turn
	_, err := x.ChangeFiles(ctx, c, engine.Files{Paths: []string{x.ws + "/" + name}, Parents: true, Next: func(ts []*engine.Target) error {
		ts[0].After = engine.After{Kind: guardfs.KindFile, Content: []byte(content)}
		return nil
	}})
	must(x.t, err)
}

// writeAll is one change that gives all of these files the content.
func (x *tree) writeAll(c *engine.Call, names []string, content string) error {
	paths := make([]string, len(names))
	for i, name := range names {
		paths[i] = x.ws + "/" + name
	}
	_, err := x.ChangeFiles(ctx, c, engine.Files{Paths: paths, Parents: true, Next: func(ts []*engine.Target) error {
		for _, target := range ts {
			target.After = engine.After{Kind: guardfs.KindFile, Content: []byte(content)}
		}
		return nil
	}})
	return err
}

// trashed lists what lies in the trash of the data directory, payloads and sidecars.
func (x *tree) trashed() (files, info []string) {
	files, _ = filepath.Glob(x.data + "/.moltis-trash-*/files/*")
	info, _ = filepath.Glob(x.data + "/.moltis-trash-*/info/*")
	return files, info
}
