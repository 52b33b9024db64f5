//go:build linux && !rooted

package engine_test

import (
	"errors"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"moltisfs/checkpoint"
	"moltisfs/internal/engine"
	"moltisfs/internal/guardfs"
)

// A directory that a change made and that can't go with it is told, with the reason: in a dry run too, as far as that can tell.
func TestDirectoriesThatStayAreTold(t *testing.T) {
	for name, c := range map[string]struct {
		op     string // the call that goes wrong, on whichever directory it comes to first
		err    error
		inside bool
		why    engine.Why
		dry    bool // a dry run knows it
	}{
		"something is in it":    {inside: true, why: engine.InUse, dry: true},
		"it may not be listed":  {op: "getdents", err: syscall.EACCES, why: engine.Unlisted, dry: true},
		"it can't be listed":    {op: "getdents", err: syscall.EIO, why: engine.NotListed.Of(syscall.EIO), dry: true},
		"it can't be removed":   {op: "rmdir", err: syscall.EBUSY, why: engine.NotRemoved.Of(syscall.EBUSY)},
		"it may not be removed": {op: "rmdir", err: syscall.EPERM, why: engine.NotRemoved.Of(syscall.EPERM)},
	} {
		t.Run(name, func(t *testing.T) {
			x := grow(t, nil)
			system := callsOf(x)
			id := x.put("s", "d/f", "f\n")
			if c.inside {
				x.write("d/theirs", "t\n")
			}
			hook := func(op string) *guardfs.Fault {
				if c.op != "" && op == c.op {
					return &guardfs.Fault{Err: c.err}
				}
				return nil
			}
			for _, dry := range []bool{true, false} {
				system.hook.Store(&hook)
				done, err := x.Restore(ctx, x.call("s"), checkpoint.Restore{ID: id}, engine.RestoreOptions{DryRun: dry})
				system.hook.Store(nil)
				must(t, err)
				told := len(done.Kept) == 1 && done.Kept[0].Path == x.ws+"/d" && done.Kept[0].Why == c.why
				if want := !dry || c.dry; told != want || !want && done.Kept != nil {
					t.Errorf("dry run %v: %+v", dry, done.Kept)
				}
			}
			x.has("d/f", "-")
			if _, err := os.Stat(x.ws + "/d"); err != nil {
				t.Error(err)
			}
		})
	}
	// A directory that itself was to be deleted is an error then, and the answer is not that something is in it.
	x := grow(t, nil)
	system := callsOf(x)
	x.write("d/f", "f\n")
	hook := func(op string) *guardfs.Fault {
		if op == "rmdir" {
			return &guardfs.Fault{Err: syscall.EBUSY}
		}
		return nil
	}
	system.hook.Store(&hook)
	if _, err := x.Delete(ctx, x.call("s"), x.ws+"/d", engine.DeleteOptions{Recursive: true}); !errors.Is(err, syscall.EBUSY) {
		t.Errorf("%v", err)
	}
}

// A new file below directories that are to be made goes by no link, and no other way than the one that was looked at.
func TestMadeDirectoriesAreWhereTheyWereLookedAt(t *testing.T) {
	dir := ""
	at := func(when string, do func()) func(*tree) {
		return func(x *tree) {
			seen := false
			hook := func(op string) *guardfs.Fault {
				if op == when && !seen {
					seen = true
					do()
				}
				return nil
			}
			callsOf(x).hook.Store(&hook)
		}
	}
	for name, c := range map[string]struct {
		arm func(*tree)
		ok  bool
	}{
		"nobody interferes": {func(*tree) {}, true},
		"somebody makes it": {at("mkdir", func() { _ = os.MkdirAll(dir+"/a/b", 0o755) }), false},
		"a link appears":    {at("mkdir", func() { _ = os.Symlink("other", dir+"/a") }), false},
		"a file appears":    {at("mkdir", func() { _ = os.WriteFile(dir+"/a", nil, 0o644) }), false},
	} {
		t.Run(name, func(t *testing.T) {
			x := grow(t, nil)
			dir = x.ws
			must(t, os.Mkdir(x.ws+"/other", 0o755))
			c.arm(x)
			_, err := x.ChangeFiles(ctx, x.call("s"), engine.Files{Paths: []string{x.ws + "/a/b/f"}, Parents: true, Next: func(ts []*engine.Target) error {
				ts[0].After = engine.After{Kind: guardfs.KindFile, Content: []byte("f")}
				return nil
			}})
			if (err == nil) != c.ok {
				t.Errorf("%v", err)
			}
			names := strings.Fields(x.looks())
			if slices.Contains(names, "/a/b/f") != c.ok || slices.ContainsFunc(names, func(n string) bool { return strings.HasPrefix(n, "/other/") }) {
				t.Errorf("%v\n%s", err, x.looks())
			}
			if left := x.halfWay(); left != nil {
				t.Errorf("marks are left: %v", left)
			}
		})
	}
}
