//go:build unix

package engine_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"moltisfs/config"
	"moltisfs/internal/engine"
)

func TestCopy(t *testing.T) {
	x := grow(t, func(fs *config.FS) { fs.TrackReads, fs.MustReadBeforeWrite = true, true })
	src := x.write("d/f", "one\n")
	x.write("there", "old\n")
	for _, err := range []error{os.Chmod(src, 0o510), os.Symlink("d/f", x.ws+"/link"), os.Symlink("gone", x.ws+"/dangling")} {
		if err != nil {
			t.Fatal(err)
		}
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
		if _, err := x.Copy(ctx, x.call("s"), c.a); code(err) != c.want {
			t.Errorf("%+v: %v", c, err)
		}
		if now := x.looks(); now != was {
			t.Fatalf("%+v changed it:\n%s", c, now)
		}
	}
	// The source was never read, and is read-only.
	done, err := x.Copy(ctx, x.call("s"), engine.CopyArgs{From: at("link"), To: at("a/new"), Rules: engine.Rules{Parents: true}})
	if err != nil || done.Checkpoint == "" || len(done.Targets) != 1 || done.Targets[0].After.Hash != engine.HashOf([]byte("one\n")) {
		t.Fatalf("%+v %v", done, err)
	}
	x.reads("a/new", "one\n")
	if i, err := os.Stat(at("a/new")); err != nil || i.Mode().Perm() != 0o510 {
		t.Errorf("%v %v", i.Mode(), err)
	}
	// What the session has made it knows.
	if _, err := x.Copy(ctx, x.call("s"), engine.CopyArgs{From: at("there"), To: at("a/new"), Overwrite: true}); code(err) != engine.CodePermissionDenied {
		t.Errorf("over a read-only file: %v", err)
	}
	if err := os.Chmod(at("a/new"), 0o640); err != nil {
		t.Fatal(err)
	}
	if _, err := x.Copy(ctx, x.call("s"), engine.CopyArgs{From: at("there"), To: at("a/new"), Overwrite: true}); err != nil {
		t.Error(err)
	}
	x.reads("a/new", "old\n")
	if i, err := os.Stat(at("a/new")); err != nil || i.Mode().Perm() != 0o640 {
		t.Errorf("the mode of what was there is lost: %v %v", i.Mode(), err)
	}
	for range 2 {
		if _, err := x.Undo(ctx, x.call("s"), engine.RestoreOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if now := x.looks(); now != was {
		t.Errorf("undone:\n%s\nwas\n%s", now, was)
	}
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
		if err != nil {
			t.Fatal(err)
		}
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
		if _, err := x.Copy(ctx, x.call("s"), a); err != nil {
			t.Fatalf("%s: %v", to, err)
		}
		now := x.looks()
		if got, want := sub(now, strings.TrimPrefix(filepath.Clean("/"+to), "")), sub(was, "/d"); got != want {
			t.Errorf("%s:\n%s\nwant\n%s", to, got, want)
		}
		if _, err := x.Undo(ctx, x.call("s"), engine.RestoreOptions{}); err != nil || x.looks() != was {
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
	if err := syscall.Mkfifo(x.ws+"/special/fifo", 0o600); err != nil {
		t.Fatal(err)
	}
	e := under(t, func(fs *config.FS) { fs.AllowPaths, fs.DenyPaths = []string{x.ws + "/**"}, []string{"**/secret"} })
	for name, want := range map[string]engine.Code{
		"many": engine.CodeLimit, "hides": engine.CodePathDenied, "special": engine.CodeNotRegularFile,
	} {
		err := through(e, func(ctx context.Context, c *engine.Call) error {
			_, err := e.Copy(ctx, c, engine.CopyArgs{From: x.ws + "/" + name, To: x.ws + "/new", Recursive: true})
			return err
		})
		if code(err) != want {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := os.Lstat(x.ws + "/new"); err == nil {
			t.Fatalf("%s: a part was copied", name)
		}
	}
}

// What was approved is what is made, whatever the source is by then, and the source is on record.
func TestCopyIsApproved(t *testing.T) {
	x, a := asking(t)
	src := x.write("f", "one\n")
	c := x.call("s")
	c.Approver = a
	a.while = func() { x.write("f", "two\n") }
	if _, err := x.Copy(ctx, c, engine.CopyArgs{From: src, To: x.ws + "/new"}); err != nil {
		t.Fatal(err)
	}
	x.reads("new", "one\n")
	a.while = func() { x.write("late", "theirs\n") }
	if _, err := x.Copy(ctx, c, engine.CopyArgs{From: src, To: x.ws + "/late"}); code(err) != engine.CodeConflict {
		t.Errorf("over what appeared: %v", err)
	}
	x.reads("late", "theirs\n")
	found := false
	for _, r := range recorded(t, x) {
		found = found || r.Phase == "intent" && strings.Join(r.Paths, " ") == x.ws+"/new "+src
	}
	if !found {
		t.Errorf("on record: %+v", recorded(t, x))
	}
}
