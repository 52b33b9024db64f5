//go:build unix

package engine_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"moltisfs/config"
	"moltisfs/grep"
	"moltisfs/internal/engine"
	"moltisfs/internal/testdir"
)

func TestListTree(t *testing.T) {
	t.Parallel()
	x := grow(t, nil)
	for _, name := range []string{
		"b", "a/c", "a.go", "a/d/e/f", "z/.hidden/f", ".env", "shut/f", "way/allowed/f", "way/shut/f", "gen/x.o", "gen/keep", "out/f",
	} {
		x.write(name, name)
	}
	x.write(".gitignore", "*.o\n/out\n")
	x.write("a/.ignore", "d\n")
	x.write(".git/HEAD", "ref: refs/heads/main\n")
	must(t, os.MkdirAll(x.ws+"/.git/objects", 0o700))
	must(t, errors.Join(os.Symlink("a", x.ws+"/link"), os.Symlink("..", x.ws+"/a/up"), os.Symlink("none", x.ws+"/dangling"),
		syscall.Mkfifo(x.ws+"/fifo", 0o600), os.Mkdir(x.ws+"/empty", 0o700)))
	open := under(t, func(fs *config.FS) {
		fs.AllowPaths, fs.DenyPaths = []string{x.ws + "/**"}, []string{"**/.env", x.ws + "/shut", "**/way/shut"}
	})
	obeys := under(t, func(fs *config.FS) { fs.AllowPaths, fs.RespectGitignore = []string{x.ws + "/**"}, true })
	careless := under(t, func(fs *config.FS) { fs.AllowPaths, fs.RespectGitignore = []string{x.ws + "/**"}, false })
	narrow := under(t, func(fs *config.FS) { fs.AllowPaths = []string{x.ws + "/b", x.ws + "/way/al*/**"} })
	all := engine.TreeArgs{All: true}
	for _, c := range []struct {
		e       *engine.Engine
		path    string
		a       engine.TreeArgs
		want    string
		skipped grep.Skipped
		code    engine.Code
	}{
		{open, "", all, "a a/c a/d a/d/e a/d/e/f a/up a.go b dangling empty fifo gen gen/keep gen/x.o link out out/f way way/allowed way/allowed/f z",
			grep.Skipped{Denied: 3}, ""},
		{open, "", engine.TreeArgs{All: true, Hidden: true, Depth: 1}, ".git .gitignore a a.go b dangling empty fifo gen link out way z", grep.Skipped{Denied: 2, Deep: 7}, ""},
		{open, "/a", engine.TreeArgs{All: true, Hidden: true, Depth: 2}, ".ignore c d d/e up", grep.Skipped{Deep: 1}, ""},
		{open, "/z", engine.TreeArgs{All: true, Hidden: true}, ".hidden .hidden/f", grep.Skipped{}, ""},
		{open, "/link", engine.TreeArgs{All: true, Depth: 1}, "c d up", grep.Skipped{Deep: 1}, ""},
		{obeys, "", engine.TreeArgs{}, "a a/c a/up a.go b dangling empty fifo gen gen/keep link shut shut/f way way/allowed way/allowed/f way/shut way/shut/f z",
			grep.Skipped{Ignored: 3, Denied: 1}, ""},
		{obeys, "/gen", engine.TreeArgs{}, "keep", grep.Skipped{Ignored: 1}, ""},
		{obeys, "", engine.TreeArgs{Depth: 1, Hidden: true}, ".gitignore a a.go b dangling empty fifo gen link shut way z",
			grep.Skipped{Ignored: 1, VCS: 1, Deep: 6, Denied: 1}, ""},
		{careless, "/gen", engine.TreeArgs{}, "keep x.o", grep.Skipped{}, ""},
		{narrow, "", all, "b way way/allowed way/allowed/f", grep.Skipped{Denied: 14}, ""},
		{narrow, "/gen", all, "", grep.Skipped{}, engine.CodePathDenied},
		{open, "/shut", all, "", grep.Skipped{}, engine.CodePathDenied},
		{open, "/b", all, "", grep.Skipped{}, engine.CodeNotFound},
		{open, "/none", all, "", grep.Skipped{}, engine.CodeNotFound},
		{open, "/empty", all, "", grep.Skipped{}, ""},
	} {
		var names []string
		root := ""
		c.a.Path = x.ws + c.path
		var skipped grep.Skipped
		err := through(c.e, func(ctx context.Context, call *engine.Call) (err error) {
			skipped, err = call.ListTree(ctx, c.a, func(i engine.Entry) error {
				if root = x.ws + c.path; c.path == "/link" {
					root = x.ws + "/a"
				}
				names = append(names, strings.TrimPrefix(i.Path, root+"/"))
				if is, err := os.Lstat(i.Path); err != nil || is.Mode().Perm() != i.Mode.Perm() {
					t.Errorf("%+v, and it is %v %v", i, is, err)
				}
				return nil
			})
			return err
		})
		if got := strings.Join(names, " "); code(err) != c.code || got != c.want || skipped != c.skipped {
			t.Errorf("%s %+v: %v\n%s\n%s\n%+v, should be %+v", c.path, c.a, err, got, c.want, skipped, c.skipped)
		}
	}
}

// A caller who has enough ends a listing, and a tree that is deeper than descriptors go is cut and told.
func TestListTreeEnds(t *testing.T) {
	t.Parallel()
	x := grow(t, nil)
	x.write("a/b/c", "")
	n := 0
	for _, end := range []error{fs.SkipAll, errors.New("enough")} {
		n = 0
		_, err := x.call("s").ListTree(ctx, engine.TreeArgs{Path: x.ws}, func(engine.Entry) error { n++; return end })
		if n != 1 || end == fs.SkipAll && err != nil || end != fs.SkipAll && !errors.Is(err, end) {
			t.Errorf("%d, %v", n, err)
		}
	}
	done, cancel := context.WithCancel(ctx)
	defer cancel()
	if _, err := x.call("s").ListTree(done, engine.TreeArgs{Path: x.ws}, func(engine.Entry) error { cancel(); return nil }); code(err) != engine.CodeDeadline {
		t.Errorf("cancelled: %v", err)
	}
	must(t, os.MkdirAll(x.ws+"/a/b/"+strings.Repeat("n/", 300), 0o700))
	n = 0
	skipped, err := x.call("s").ListTree(ctx, engine.TreeArgs{Path: x.ws}, func(engine.Entry) error { n++; return nil })
	if err != nil || n != 201 || skipped.Deep != 1 {
		t.Errorf("%d entries, %+v, %v", n, skipped, err)
	}
}

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
			done, err := x.call("s").Mkdir(ctx, a)
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
			x.backAndForth(c.path, was)
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
		_, err := x.call("s").Mkdir(ctx, engine.MkdirArgs{Path: x.ws + "/a/b", Rules: engine.Rules{Parents: true}})
		must(t, err)
		if what == "replaced" && x.Containment() == "best_effort" {
			continue // nothing tells when a directory was made
		}
		others(x.ws + "/a/b")
		was := x.looks()
		done, err := x.call("s").Undo(ctx, engine.RestoreOptions{})
		if err != nil || len(done.Kept) != 2 || x.looks() != was {
			t.Errorf("%s: %v, kept %+v\n%s", what, err, done.Kept, x.looks())
		}
	}
}

// A directory is made as a person was asked about it, and somebody else who makes it meanwhile is met.
func TestMkdirIsApproved(t *testing.T) {
	t.Parallel()
	x, a := asking(t)
	c := x.call("s")
	c.Approver = a
	args := engine.MkdirArgs{Path: x.ws + "/a/b", Rules: engine.Rules{Parents: true}}
	must(t, errOf(c.Mkdir(ctx, args)))
	paths, summary, _ := a.last(x)
	if want := "make directory a/b; creates 2 directories: a, a/b"; summary != want || !slices.Equal(paths, []string{"a", "a/b"}) {
		t.Errorf("asked %q about %q", summary, paths)
	}
	args.Path = x.ws + "/n"
	a.while = func() { must(t, os.Mkdir(args.Path, 0o700)) }
	if _, err := c.Mkdir(ctx, args); code(err) != engine.CodeConflict {
		t.Errorf("over what appeared: %v", err)
	}
	must(t, os.Remove(args.Path))
	args.Exists = true
	if done, err := c.Mkdir(ctx, args); err != nil || !done.Idle {
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
	x.Begin(c)
	if _, err := c.Mkdir(ctx, engine.MkdirArgs{Path: x.ws + "/theirs/new"}); code(err) != engine.CodePathDenied {
		t.Errorf("Mkdir: %v", err)
	}
	for _, from := range []string{"/theirs/f", "/theirs"} {
		a := engine.CopyArgs{From: x.ws + from, To: x.ws + "/mine/new", Recursive: true}
		if _, err := c.Copy(ctx, a); code(err) != engine.CodePathDenied {
			t.Errorf("Copy of %s: %v", from, err)
		}
	}
	if x.looks() != was {
		t.Errorf("it is\n%s", x.looks())
	}
}
