package engine_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"moltisfs/config"
	"moltisfs/grep"
	"moltisfs/grep/match"
	"moltisfs/internal/engine"
	"moltisfs/internal/guardfs"
)

// under opens an engine with the rules of an operator.
func under(t *testing.T, change func(*config.FS)) *engine.Engine {
	t.Helper()
	cfg := config.Default()
	cfg.Tools.FS.RequireApproval = false
	change(&cfg.Tools.FS)
	e, err := engine.Open(cfg, engine.Host{DataDir: t.TempDir() + "/data"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return e
}

// through runs op as a dialect does.
func through(e *engine.Engine, op func(context.Context, *engine.Call) error) (err error) {
	c := &engine.Call{Tool: "Probe"}
	herr := e.Do(ctx, c, engine.Operation{
		Run:    func(ctx context.Context) error { err = op(ctx, c); return err },
		Refuse: func(_ context.Context, err error) string { return string(engine.Reason(err).Code) },
	})
	return errors.Join(err, herr)
}

// code is the kind of a refusal, "" for none.
func code(err error) engine.Code {
	if err == nil {
		return ""
	}
	if r := engine.Reason(err); r != nil {
		return r.Code
	}
	return "host"
}

func TestStat(t *testing.T) {
	x := grow(t, nil)
	was := time.Now().Add(-time.Minute)
	file := x.write("d/f", "four")
	for _, err := range []error{
		os.Chmod(file, 0o440), os.Chtimes(file, was, was), os.Symlink("d/f", x.ws+"/l"), os.Symlink("none", x.ws+"/dangling"),
		os.Symlink("d", x.ws+"/dl"), os.Symlink("loop", x.ws+"/loop"), os.Symlink(x.ws+"/../data", x.ws+"/out"),
		os.WriteFile(x.ws+"/.env", nil, 0o600), os.Symlink(".env", x.ws+"/env"),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	e := under(t, func(fs *config.FS) { fs.AllowPaths, fs.DenyPaths = []string{x.ws + "/**"}, []string{"**/.env"} })
	for _, c := range []struct {
		path   string
		follow bool
		kind   guardfs.Kind
		want   engine.Code
		to     string // where it is
	}{
		{"d/f", true, guardfs.KindFile, "", "d/f"},
		{"d/f", false, guardfs.KindFile, "", "d/f"},
		{"d", false, guardfs.KindDir, "", "d"},
		{"", false, guardfs.KindDir, "", ""},
		{"d/", false, guardfs.KindDir, "", "d"},
		{"d/..", false, guardfs.KindDir, "", ""},
		{"dl/f", false, guardfs.KindFile, "", "d/f"},
		{"dl/", false, guardfs.KindDir, "", "d"},
		{"dl", false, guardfs.KindSymlink, "", "dl"},
		{"l", false, guardfs.KindSymlink, "", "l"},
		{"l", true, guardfs.KindFile, "", "d/f"},
		{"dangling", false, guardfs.KindSymlink, "", "dangling"},
		{"dangling", true, 0, engine.CodeNotFound, ""},
		{"loop", false, guardfs.KindSymlink, "", "loop"},
		{"loop", true, 0, engine.CodeNotFound, ""},
		{"out", false, guardfs.KindSymlink, "", "out"},
		{"out", true, 0, engine.CodePathDenied, ""},
		{"env", false, guardfs.KindSymlink, "", "env"},
		{"env", true, 0, engine.CodePathDenied, ""},
		{".env", false, 0, engine.CodePathDenied, ""},
		{"none/.env", false, 0, engine.CodePathDenied, ""},
		{"none", false, 0, engine.CodeNotFound, ""},
		{"none/none", false, 0, engine.CodeNotFound, ""},
		{"d/f/g", false, 0, engine.CodeNotFound, ""},
		{"../data", false, 0, engine.CodePathDenied, ""},
		{"../none", false, 0, engine.CodePathDenied, ""},
		{"nul\x00", false, 0, engine.CodeBadRequest, ""},
		{strings.Repeat("n", 300), false, 0, engine.CodeBadRequest, ""},
	} {
		t.Run(fmt.Sprintf("%.20q %v", c.path, c.follow), func(t *testing.T) {
			path := x.ws
			if c.path != "" {
				path += "/" + c.path
			}
			var i engine.Entry
			err := through(e, func(ctx context.Context, call *engine.Call) (err error) {
				i, err = e.Stat(ctx, call, path, c.follow)
				return err
			})
			if code(err) != c.want || i.Kind != c.kind {
				t.Fatalf("%v %s: %v", i, code(err), err)
			}
			if err == nil && i.Path != strings.TrimSuffix(x.ws+"/"+c.to, "/") {
				t.Errorf("%s", i.Path)
			}
			if c.kind == guardfs.KindFile && (i.Size != 4 || i.Mode != 0o440 || !i.ModTime.Equal(was)) {
				t.Errorf("%+v", i)
			}
			if text, _ := os.Readlink(path); c.kind == guardfs.KindSymlink && (i.Target != text || text == "") {
				t.Errorf("%q, and it is %q", i.Target, text)
			}
		})
	}
	if i, err := x.Stat(ctx, x.call("s"), file, true); err != nil || x.Containment() != "best_effort" && !i.AccessTime.Equal(was) {
		t.Errorf("%v %v", i.AccessTime, err)
	}
	if _, err := x.Stat(ctx, x.call("s"), "relative", true); code(err) != engine.CodeBadRequest {
		t.Error(err)
	}
}

func TestList(t *testing.T) {
	x := grow(t, nil)
	for _, name := range []string{"b", ".hidden", "d/f", ".env", "way/allowed/f", "way/shut/f", "shut/f"} {
		x.write(name, name)
	}
	if err := errors.Join(os.Symlink("d", x.ws+"/link"), os.Symlink("none", x.ws+"/dangling"), os.Mkdir(x.ws+"/empty", 0o700)); err != nil {
		t.Fatal(err)
	}
	open := under(t, func(fs *config.FS) {
		fs.AllowPaths, fs.DenyPaths = []string{x.ws + "/**"}, []string{"**/.env", x.ws + "/shut"}
	})
	narrow := under(t, func(fs *config.FS) { fs.AllowPaths = []string{x.ws + "/b", x.ws + "/way/al*/**"} })
	for _, c := range []struct {
		e      *engine.Engine
		path   string
		want   string
		denied int
		code   engine.Code
	}{
		{open, "", ".hidden b d dangling empty link way", 2, ""},
		{open, "/d", "f", 0, ""},
		{open, "/link", "f", 0, ""},
		{open, "/empty", "", 0, ""},
		{open, "/b", "", 0, engine.CodeNotFound},
		{open, "/none", "", 0, engine.CodeNotFound},
		{open, "/shut", "", 0, engine.CodePathDenied},
		{open, "/..", "ws", 1, ""}, // leads to it, and shows no more
		{narrow, "", "b way", 7, ""},
		{narrow, "/way", "allowed", 1, ""},
		{narrow, "/d", "", 0, engine.CodePathDenied},
	} {
		var l *engine.Listing
		err := through(c.e, func(ctx context.Context, call *engine.Call) (err error) {
			l, err = c.e.List(ctx, call, x.ws+c.path)
			return err
		})
		if code(err) != c.code {
			t.Errorf("%q: %v", c.path, err)
		}
		if err != nil {
			continue
		}
		var names []string
		for _, i := range l.Entries {
			names = append(names, strings.TrimPrefix(i.Path, l.Path+"/"))
			if is, err := os.Lstat(i.Path); err != nil || is.Mode().Perm() != i.Mode.Perm() || is.Mode().IsRegular() && is.Size() != i.Size {
				t.Errorf("%+v, and it is %v %v", i, is, err)
			}
		}
		if got := strings.Join(names, " "); got != c.want || l.Denied != c.denied {
			t.Errorf("%q: %q and %d denied; want %q and %d", c.path, got, l.Denied, c.want, c.denied)
		}
	}
	done, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := x.List(done, x.call("s"), x.ws); code(err) != engine.CodeDeadline {
		t.Error(err)
	}
}

func TestSearchIsOneCall(t *testing.T) {
	x := grow(t, nil)
	x.write("a.go", "needle\n")
	x.write("d/b.txt", "hay\nneedle\n")
	m, err := match.Compile("needle", match.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r, err := x.Search(ctx, x.call("s"), x.ws, grep.Query{Matcher: m, Mode: grep.Content})
	if err != nil || len(r.Rows) != 2 {
		t.Errorf("%+v %v", r, err)
	}
	f, err := x.Files(ctx, x.call("s"), x.ws, grep.GlobQuery{Pattern: "*.txt"})
	if err != nil || len(f.Files) != 1 {
		t.Errorf("%+v %v", f, err)
	}
	_, bad := x.Search(ctx, x.call("s"), x.ws, grep.Query{Matcher: m, Glob: []string{"[b-a"}})
	_, kind := x.Search(ctx, x.call("s"), x.ws, grep.Query{Matcher: m, Type: []string{"none"}})
	_, file := x.Files(ctx, x.call("s"), x.ws+"/a.go", grep.GlobQuery{})
	_, none := x.Search(ctx, x.call("s"), x.ws+"/none", grep.Query{Matcher: m})
	for what, err := range map[engine.Cause]error{engine.BadGlob: bad, engine.NoFileType: kind, engine.NotADirectory: file, engine.Absent: none} {
		if !what.In(err) {
			t.Errorf("%s: %v", what.Name, err)
		}
	}
}
