//go:build unix

package engine_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"testing"

	"moltisfs/config"
	"moltisfs/grep"
	"moltisfs/internal/engine"
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
			skipped, err = c.e.ListTree(ctx, call, c.a, func(i engine.Entry) error {
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

// Who has enough ends it, and a tree that is deeper than descriptors go is cut and told.
func TestListTreeEnds(t *testing.T) {
	t.Parallel()
	x := grow(t, nil)
	x.write("a/b/c", "")
	n := 0
	for _, end := range []error{fs.SkipAll, errors.New("enough")} {
		n = 0
		_, err := x.ListTree(ctx, x.call("s"), engine.TreeArgs{Path: x.ws}, func(engine.Entry) error { n++; return end })
		if n != 1 || end == fs.SkipAll && err != nil || end != fs.SkipAll && !errors.Is(err, end) {
			t.Errorf("%d, %v", n, err)
		}
	}
	done, cancel := context.WithCancel(ctx)
	defer cancel()
	if _, err := x.ListTree(done, x.call("s"), engine.TreeArgs{Path: x.ws}, func(engine.Entry) error { cancel(); return nil }); code(err) != engine.CodeDeadline {
		t.Errorf("cancelled: %v", err)
	}
	must(t, os.MkdirAll(x.ws+"/a/b/"+strings.Repeat("n/", 300), 0o700))
	n = 0
	skipped, err := x.ListTree(ctx, x.call("s"), engine.TreeArgs{Path: x.ws}, func(engine.Entry) error { n++; return nil })
	if err != nil || n != 201 || skipped.Deep != 1 {
		t.Errorf("%d entries, %+v, %v", n, skipped, err)
	}
}
