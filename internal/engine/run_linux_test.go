package engine_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"moltisfs/config"
	"moltisfs/internal/engine"
	"moltisfs/internal/run"
	"moltisfs/internal/testdir"
)

// A ranIn is a workspace with a data directory, and the engine over it.
type ranIn struct {
	ws, data string
	e        *engine.Engine
	runs     int
}

func newRan(t testing.TB, change func(*config.FS)) *ranIn {
	t.Helper()
	dir, err := filepath.EvalSymlinks(testdir.Disk(t))
	must(t, err)
	r := &ranIn{ws: dir + "/ws", data: dir + "/data"}
	must(t, os.Mkdir(r.ws, 0o755))
	must(t, os.Mkdir(r.data, 0o700))
	cfg := config.Default().Tools.FS
	cfg.RequireApproval = false
	if change != nil {
		change(&cfg)
	}
	r.e, err = engine.OpenOver(engine.Options{Config: cfg, Judge: inside(r.ws, "**/denied"), DataDir: r.data})
	must(t, err)
	t.Cleanup(func() { r.e.Close() })
	return r
}

// layer has program change an overlay over the workspace, and gives the upper layer.
func (r *ranIn) layer(t testing.TB, options string, program func(dir string)) run.Upper {
	t.Helper()
	r.runs++
	at := filepath.Join(r.data, "run"+string(rune('0'+r.runs)))
	u := run.Upper{Root: r.ws, Dir: at + "/" + run.UpperName, Work: at + "/work",
		User: strings.Contains(options, "userxattr"), Redirect: strings.Contains(options, "redirect_dir=on"), Index: strings.Contains(options, "index=on")}
	for _, d := range []string{at, u.Dir, u.Work, at + "/merged"} {
		must(t, os.Mkdir(d, 0o755))
	}
	var st unix.Stat_t
	must(t, unix.Stat(r.ws, &st))
	must(t, os.Chmod(u.Dir, os.FileMode(st.Mode&0o777)))
	for first := (time.Time{}); !u.Stamp.After(first); { // until the clock of the file system has moved on
		must(t, os.WriteFile(at+"/stamp", nil, 0o600))
		must(t, unix.Stat(at+"/stamp", &st))
		if u.Stamp = time.Unix(st.Ctim.Unix()); first.IsZero() {
			first = u.Stamp
		}
	}
	err := unix.Mount("overlay", at+"/merged", "overlay", 0, "lowerdir="+u.Root+",upperdir="+u.Dir+",workdir="+u.Work+options)
	if err != nil {
		t.Skip("SKIPPED: no overlay file system can be mounted here: ", err)
	}
	defer func() { must(t, unix.Unmount(at+"/merged", 0)) }()
	program(at + "/merged")
	return u
}

func (r *ranIn) call() *engine.Call {
	return r.e.Begin(&engine.Call{Tool: "Bash", Principal: "p", Session: "s"})
}

func TestRunApplies(t *testing.T) {
	if !testdir.OwnMounts(t) {
		return
	}
	r := newRan(t, nil)
	must(t, os.WriteFile(r.ws+"/a", []byte("one\n"), 0o644))
	must(t, os.MkdirAll(r.ws+"/d/e", 0o755))
	must(t, os.WriteFile(r.ws+"/d/e/f", []byte("f\n"), 0o600))
	must(t, os.WriteFile(r.ws+"/gone", []byte("gone\n"), 0o600))
	must(t, os.Mkdir(r.ws+"/m", 0o755))
	must(t, os.WriteFile(r.ws+"/l1", []byte("linked\n"), 0o644))
	must(t, os.Link(r.ws+"/l1", r.ws+"/l2"))
	before := pictured(t, r.ws)
	program := func(dir string) {
		must(t, os.WriteFile(dir+"/a", []byte("two\n"), 0o644))
		must(t, os.WriteFile(dir+"/new", []byte("new\n"), 0o755))
		must(t, os.Remove(dir+"/gone"))
		must(t, os.RemoveAll(dir+"/d"))
		must(t, os.WriteFile(dir+"/d", []byte("a file now\n"), 0o644))
		must(t, os.Chmod(dir+"/m", 0o700))
		must(t, os.Link(dir+"/new", dir+"/m/again"))
		must(t, os.MkdirAll(dir+"/n/o", 0o750))
		must(t, os.WriteFile(dir+"/n/o/p", []byte("p\n"), 0o644))
		must(t, os.Symlink("nowhere", dir+"/n/l"))
		must(t, os.WriteFile(dir+"/l1.new", []byte("changed\n"), 0o644))
		must(t, os.Rename(dir+"/l1.new", dir+"/l1"))
	}
	want := r.without(t, program)
	u := r.layer(t, "", program)
	done, err := r.call().ApplyRun(ctx, engine.RunArgs{Upper: u, Command: "make all", Output: engine.HashOf(nil)})
	must(t, err)
	t.Logf("%+v", done.Changes)
	same(t, "after", pictured(t, r.ws), want)
	c := r.call()
	_, err = c.Undo(ctx, engine.RestoreOptions{})
	must(t, err)
	same(t, "undone", pictured(t, r.ws), before)
	_, err = r.call().Redo(ctx, engine.RestoreOptions{})
	must(t, err)
	same(t, "redone", pictured(t, r.ws), want)
}
