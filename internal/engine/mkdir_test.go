//go:build unix

package engine_test

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"moltisfs/config"
	"moltisfs/internal/engine"
	"moltisfs/internal/testdir"
)

func TestMkdir(t *testing.T) {
	t.Parallel()
	x := grow(t, func(fs *config.FS) { fs.CheckpointBeforeMutation = false })
	x.write("f", "one\n")
	x.write("d/f", "two\n")
	x.deny = x.ws + "/secret"
	must(t, errors.Join(x.Close(), os.Symlink("d", x.ws+"/link"), os.Symlink("none", x.ws+"/dangling")))
	x.open()
	was := x.looks()
	parents := engine.Rules{Parents: true}
	for _, c := range []struct {
		path string
		a    engine.MkdirArgs
		want engine.Code
		made []string
	}{
		{"new", engine.MkdirArgs{}, "", []string{"new"}},
		{"new/", engine.MkdirArgs{}, engine.CodeBadRequest, nil},
		{"link/new", engine.MkdirArgs{}, "", []string{"d/new"}},
		{"a/b/c", engine.MkdirArgs{Rules: parents}, "", []string{"a", "a/b", "a/b/c"}},
		{"new", engine.MkdirArgs{Exists: true, Rules: parents}, "", []string{"new"}},
		{"d", engine.MkdirArgs{Exists: true}, "", nil},
		{"d", engine.MkdirArgs{}, engine.CodeConflict, nil},
		{"f", engine.MkdirArgs{Exists: true}, engine.CodeConflict, nil},
		{"f/new", engine.MkdirArgs{Rules: parents}, engine.CodeNotFound, nil},
		{"link", engine.MkdirArgs{Exists: true}, engine.CodeSymlinkRefused, nil},
		{"dangling", engine.MkdirArgs{}, engine.CodeSymlinkRefused, nil},
		{"dangling/new", engine.MkdirArgs{Rules: parents}, engine.CodeSymlinkRefused, nil},
		{"a/b", engine.MkdirArgs{}, engine.CodeNotFound, nil},
		{"secret", engine.MkdirArgs{Rules: parents}, engine.CodePathDenied, nil},
		{"secret/new", engine.MkdirArgs{Rules: parents}, engine.CodePathDenied, nil},
		{"../new", engine.MkdirArgs{}, engine.CodePathDenied, nil},
		{"..", engine.MkdirArgs{}, engine.CodeBadRequest, nil},
		{"a\x00b", engine.MkdirArgs{}, engine.CodeBadRequest, nil},
		{strings.Repeat("n", 300), engine.MkdirArgs{}, engine.CodeBadRequest, nil},
	} {
		c.a.Path = x.ws + "/" + c.path
		dry := c.a
		dry.DryRun = true
		for _, a := range []engine.MkdirArgs{dry, c.a} {
			done, err := x.Mkdir(ctx, x.call("s"), a)
			if a.DryRun && len(c.path) > 255 {
				continue // only the system knows
			}
			if code(err) != c.want {
				t.Errorf("%+v: %v", a, err)
			}
			var made []string
			for i := 0; err == nil && i < len(done.Made); i++ {
				made = append(made, strings.TrimPrefix(done.Made[i], x.ws+"/"))
			}
			if !slices.Equal(made, c.made) {
				t.Errorf("%+v made %q", a, made)
			}
			if a.DryRun || err != nil || c.made == nil {
				if now := x.looks(); now != was {
					t.Fatalf("%+v changed it:\n%s", a, now)
				}
				continue
			}
			if now := x.looks(); !strings.Contains(now, "/"+c.made[len(c.made)-1]+" drwx") || done.Checkpoint == "" {
				t.Errorf("%+v:\n%s", a, now)
			}
			made1 := x.looks()
			for _, step := range []struct {
				run  func(*engine.Engine, context.Context, *engine.Call, engine.RestoreOptions) (*engine.Restored, error)
				want string
			}{{(*engine.Engine).Undo, was}, {(*engine.Engine).Redo, made1}, {(*engine.Engine).Undo, was}} {
				if _, err := step.run(x.Engine, ctx, x.call("s"), engine.RestoreOptions{}); err != nil || x.looks() != step.want {
					t.Fatalf("%+v: %v\n%s\nshould be\n%s", a, err, x.looks(), step.want)
				}
			}
		}
	}
}

// A directory in which something is by then stays, and so does another one in its place.
func TestMkdirUndoneInUse(t *testing.T) {
	t.Parallel()
	for what, others := range map[string]func(dir string){
		"used": func(dir string) { must(t, os.WriteFile(dir+"/theirs", nil, 0o600)) },
		"replaced": func(dir string) {
			testdir.Tick(t)
			must(t, errors.Join(os.Remove(dir), os.Mkdir(dir, 0o700)))
		},
	} {
		x := growIn(t, testdir.Disk(t), nil) // where a new inode takes the number of one that went
		_, err := x.Mkdir(ctx, x.call("s"), engine.MkdirArgs{Path: x.ws + "/a/b", Rules: engine.Rules{Parents: true}})
		must(t, err)
		if what == "replaced" && x.Containment() == "best_effort" {
			continue // nothing tells when a directory was made
		}
		others(x.ws + "/a/b")
		was := x.looks()
		done, err := x.Undo(ctx, x.call("s"), engine.RestoreOptions{})
		if err != nil || len(done.Kept) != 2 || x.looks() != was {
			t.Errorf("%s: %v, kept %+v\n%s", what, err, done.Kept, x.looks())
		}
	}
}

// What a person is asked about is what is made, and somebody else who makes it meanwhile is met.
func TestMkdirIsApproved(t *testing.T) {
	t.Parallel()
	x, a := asking(t)
	c := x.call("s")
	c.Approver = a
	args := engine.MkdirArgs{Path: x.ws + "/a/b", Rules: engine.Rules{Parents: true}}
	_, err := x.Mkdir(ctx, c, args)
	must(t, err)
	paths, summary, _ := a.last(x)
	if want := "make directory a/b; creates 2 directories: a, a/b"; summary != want || !slices.Equal(paths, []string{"a", "a/b"}) {
		t.Errorf("asked %q about %q", summary, paths)
	}
	args.Path = x.ws + "/n"
	a.while = func() { must(t, os.Mkdir(args.Path, 0o700)) }
	if _, err := x.Mkdir(ctx, c, args); code(err) != engine.CodeConflict {
		t.Errorf("over what appeared: %v", err)
	}
	must(t, os.Remove(args.Path))
	args.Exists = true
	if done, err := x.Mkdir(ctx, c, args); err != nil || !done.Idle {
		t.Errorf("beside another who made it: %+v %v", done, err)
	}
}

// A call within a scope makes nothing, and copies nothing, from outside of it.
func TestMkdirAndCopyInAScope(t *testing.T) {
	t.Parallel()
	x := grow(t, nil)
	x.write("mine/f", "mine\n")
	x.write("theirs/f", "theirs\n")
	was := x.looks()
	c := x.call("s")
	c.Scope = &engine.Scope{Readable: []string{x.ws + "/mine"}, Writable: []string{x.ws + "/mine"}}
	if _, err := x.Mkdir(ctx, c, engine.MkdirArgs{Path: x.ws + "/theirs/new"}); code(err) != engine.CodePathDenied {
		t.Errorf("Mkdir: %v", err)
	}
	for _, from := range []string{"/theirs/f", "/theirs"} {
		a := engine.CopyArgs{From: x.ws + from, To: x.ws + "/mine/new", Recursive: true}
		if _, err := x.Copy(ctx, c, a); code(err) != engine.CodePathDenied {
			t.Errorf("Copy of %s: %v", from, err)
		}
	}
	if x.looks() != was {
		t.Errorf("it is\n%s", x.looks())
	}
}
