package engine_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"moltisfs/checkpoint"
	"moltisfs/config"
	"moltisfs/internal/approval"
	"moltisfs/internal/engine"
	"moltisfs/internal/guardfs"
	"moltisfs/internal/run"
	"moltisfs/internal/testdir"
)

// A ranIn is a workspace with a data directory, and the engine over it.
type ranIn struct {
	ws, data string
	e        *engine.Engine
	runs     int
	saw      map[string]string // the workspace as the last program saw it at its end
}

func newRan(t testing.TB, change func(*config.FS)) *ranIn {
	t.Helper()
	return newRanWith(t, change, nil)
}

func newRanWith(t testing.TB, change func(*config.FS), fault func(op string) *guardfs.Fault) *ranIn {
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
	r.e, err = engine.OpenOver(engine.Options{Config: cfg, Judge: inside(r.ws, "**/denied"), DataDir: r.data, Fault: fault})
	must(t, err)
	t.Cleanup(func() { r.e.Close() })
	return r
}

// layer has program change an overlay over the workspace, and gives the upper layer.
func (r *ranIn) layer(t testing.TB, options string, program func(dir string)) run.Upper {
	t.Helper()
	r.runs++
	at := filepath.Join(r.data, "run"+string(rune('0'+r.runs)))
	u := run.Upper{Root: r.ws, Dir: at + "/" + run.UpperName,
		User: strings.Contains(options, "userxattr")}
	for _, d := range []string{at, u.Dir, at + "/work", at + "/merged"} {
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
	err := unix.Mount("overlay", at+"/merged", "overlay", 0, "lowerdir="+u.Root+",upperdir="+u.Dir+",workdir="+at+"/work"+options)
	if err != nil {
		t.Skip("SKIPPED: no overlay file system can be mounted here: ", err)
	}
	defer func() { must(t, unix.Unmount(at+"/merged", 0)) }()
	program(at + "/merged")
	r.saw = pictured(t, at+"/merged")
	return u
}

func (r *ranIn) call() *engine.Call {
	return r.e.Begin(&engine.Call{Tool: "Bash", Principal: "p", Session: "s"})
}

// put writes a file and the directories above it, and link gives it another name.
func put(t testing.TB, name, content string, mode os.FileMode) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(name), 0o755))
	must(t, os.WriteFile(name, []byte(content), 0o600))
	must(t, os.Chmod(name, mode))
}

// Each row is a rule: the workspace becomes what it would be without us, an undo brings back what was there and a redo what came, with modes,
// attributes and names of one file. What is left as it is, is named with its reason, and then nothing else is done unless Partial is set.
func TestRunRules(t *testing.T) {
	if !testdir.OwnMounts(t) {
		return
	}
	layShut := func(t *testing.T, dir string) { put(t, dir+"/was/f", "f\n", 0o600) }
	shut := func(t *testing.T, dir string) {
		put(t, dir+"/n000/f", "f\n", 0)
		put(t, dir+"/n/n100/f", "f\n", 0o600)
		put(t, dir+"/fine", "fine\n", 0o600)
		must(t, os.Chmod(dir+"/n000", 0o100))
		must(t, os.Chmod(dir+"/n/n100", 0o100))
		must(t, os.Chmod(dir+"/was", 0))
	}
	for name, row := range map[string]struct {
		lay, program func(t *testing.T, dir string)
		left         map[string]string // path: reason
		steps        int               // of changes in the answer; 0: any
		only         string            // the mount that it is about; "": all
	}{
		"nothing": {program: func(t *testing.T, dir string) {
			f, err := os.OpenFile(dir+"/a", os.O_RDWR, 0)
			must(t, err)
			must(t, f.Close())
			must(t, os.Chmod(dir+"/a", 0o600))
			must(t, os.Chmod(dir+"/a", 0o644))
			must(t, os.Rename(dir+"/a", dir+"/x"))
			must(t, os.Rename(dir+"/x", dir+"/a"))
			must(t, os.Mkdir(dir+"/x", 0o755))
			must(t, os.Remove(dir+"/x"))
			must(t, os.RemoveAll(dir+"/d/e"))
			must(t, os.Mkdir(dir+"/d/e", 0o755))
			put(t, dir+"/d/e/f", "f\n", 0o600)
		}},
		"a time alone": {program: func(t *testing.T, dir string) { must(t, os.Chtimes(dir+"/a", time.Unix(1e9, 0), time.Unix(1e9, 0))) }, steps: 1},
		"content with its old time": {program: func(t *testing.T, dir string) {
			i, err := os.Stat(dir + "/a")
			must(t, err)
			must(t, os.WriteFile(dir+"/a", []byte("ONE\n"), 0))
			must(t, os.Chtimes(dir+"/a", i.ModTime(), i.ModTime()))
		}, steps: 1},
		"made anew": {program: func(t *testing.T, dir string) { // an opaque directory
			must(t, os.RemoveAll(dir+"/d"))
			put(t, dir+"/d/e/f", "another\n", 0o640)
			put(t, dir+"/d/g", "g\n", 0o755)
		}},
		"made anew, and an old name in it": {program: func(t *testing.T, dir string) { // nothing shows through below an opaque directory
			must(t, os.RemoveAll(dir+"/d"))
			put(t, dir+"/d/e/g", "g\n", 0o640)
		}},
		"kinds turn": {
			lay: func(t *testing.T, dir string) {
				must(t, os.Symlink("a", dir+"/l"))
				must(t, os.Symlink("d", dir+"/l2"))
			},
			program: func(t *testing.T, dir string) {
				must(t, os.RemoveAll(dir+"/d"))
				must(t, os.Symlink("a", dir+"/d"))
				must(t, os.Remove(dir+"/a"))
				put(t, dir+"/a/b/c", "in it\n", 0o600)
				must(t, os.Remove(dir+"/l"))
				put(t, dir+"/l", "a file\n", 0o644)
				must(t, os.Remove(dir+"/l2"))
				put(t, dir+"/l2/x", "x\n", 0o644)
			}},
		"names of one file": {
			lay: func(t *testing.T, dir string) {
				put(t, dir+"/h1", "one\n", 0o640)
				must(t, os.Link(dir+"/h1", dir+"/h2"))
				must(t, os.Link(dir+"/h1", dir+"/d/h3"))
				must(t, os.Symlink("a", dir+"/s"))
			},
			program: func(t *testing.T, dir string) {
				must(t, os.Remove(dir+"/h2"))
				put(t, dir+"/new", "new\n", 0o700)
				must(t, os.Link(dir+"/new", dir+"/d/new"))
				must(t, os.Link(dir+"/new", dir+"/h2"))
				put(t, dir+"/h1.tmp", "saved\n", 0o644)
				must(t, os.Rename(dir+"/h1.tmp", dir+"/h1"))
				put(t, dir+"/in/x", "x\n", 0o644)
				must(t, os.Link(dir+"/in/x", dir+"/in/y"))
				must(t, os.Link(dir+"/a", dir+"/a2"))
				must(t, os.Link(dir+"/s", dir+"/s2"))
			}},
		"attributes": {program: func(t *testing.T, dir string) {
			must(t, unix.Setxattr(dir+"/a", "user.empty", nil, 0))
			must(t, unix.Setxattr(dir+"/d/e", "user.k", []byte("v"), 0))
			must(t, os.Chown(dir+"/d/e", 12, 34))
			must(t, os.Chmod(dir+"/d", 0o700|os.ModeSetgid))
			must(t, os.Chmod(dir+"/a", 0o400))
			must(t, os.Chown(dir+"/d/e/f", 56, 78))
		}},
		"closed directories": {
			lay: func(t *testing.T, dir string) {
				put(t, dir+"/was/f", "f\n", 0o600)
				must(t, os.Chmod(dir+"/was", 0o500))
			},
			program: func(t *testing.T, dir string) {
				put(t, dir+"/n500/in/f", "f\n", 0o400)
				must(t, os.Chmod(dir+"/n500/in", 0o500))
				must(t, os.Chmod(dir+"/n500", 0o500))
				put(t, dir+"/was/g", "g\n", 0o600)
			}},
		"shut directories": {lay: layShut, program: shut, only: "root"},
		"shut directories of a user": {lay: layShut, program: shut, only: "user",
			left: map[string]string{"/n000": "shut_directory", "/n/n100": "shut_directory", "/was": "shut_directory"}},
		"a tree goes": {
			lay: func(t *testing.T, dir string) {
				put(t, dir+"/t/f", "f\n", 0o600)
				must(t, os.Link(dir+"/t/f", dir+"/t/g"))
				must(t, unix.Mkfifo(dir+"/t/fifo", 0o600))
				must(t, os.Chmod(dir+"/t", 0o500))
			},
			program: func(t *testing.T, dir string) { must(t, os.RemoveAll(dir+"/t")) }, steps: 1},
		"large": {
			lay:     func(t *testing.T, dir string) { put(t, dir+"/large", strings.Repeat("l", 300), 0o600) },
			program: func(t *testing.T, dir string) { put(t, dir+"/large", strings.Repeat("L", 400), 0o600) }},
		"a new large one": {program: func(t *testing.T, dir string) { put(t, dir+"/large", strings.Repeat("L", 400), 0o600) }},
		"refused by kind": {program: func(t *testing.T, dir string) {
			put(t, dir+"/fine", "fine\n", 0o600)
			put(t, dir+"/setid", "s\n", 0o755|os.ModeSetuid)
			must(t, os.RemoveAll(dir+"/d"))
			must(t, unix.Mkfifo(dir+"/d", 0o600))
			put(t, dir+"/n/f", "f\n", 0o600)
			must(t, unix.Mkfifo(dir+"/n/fifo", 0o600))
			fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
			must(t, err)
			defer unix.Close(fd)
			here, err := os.Open(dir)
			must(t, err)
			defer here.Close()
			must(t, unix.Bind(fd, &unix.SockaddrUnix{Name: "/proc/self/fd/" + strconv.Itoa(int(here.Fd())) + "/sock"}))
		}, left: map[string]string{"/setid": "set_id", "/d": "special_file", "/n/fifo": "special_file", "/sock": "special_file"}},
		"refused by name": {program: func(t *testing.T, dir string) {
			put(t, dir+"/fine", "fine\n", 0o600)
			put(t, dir+"/n\xff", "n\n", 0o600)
			put(t, dir+"/d\xff/in", "n\n", 0o600)
			put(t, dir+"/.moltis-trash-0/files/x", "x\n", 0o600)
			must(t, os.Mkdir(dir+"/"+strings.Repeat("l", 250), 0o755))
			at, err := os.Open(dir)
			must(t, err)
			for i := range 20 { // no path leads there
				next := strings.Repeat("l", 250)
				if err := unix.Mkdirat(int(at.Fd()), next, 0o755); err != nil && i > 0 {
					t.Fatal(err)
				}
				fd, err := unix.Openat(int(at.Fd()), next, unix.O_RDONLY|unix.O_DIRECTORY, 0)
				must(t, err)
				at.Close()
				at = os.NewFile(uintptr(fd), next)
			}
			at.Close()
		}, left: map[string]string{"/n\xff": "no_such_name", "/d\xff": "no_such_name", "/.moltis-trash-0": "out_of_reach", "long": "no_such_name"}},
		"refused by policy": {
			lay: func(t *testing.T, dir string) {
				put(t, dir+"/denied", "d\n", 0o600)
				put(t, dir+"/t/denied", "d\n", 0o600)
				put(t, dir+"/t/f", "f\n", 0o600)
			},
			program: func(t *testing.T, dir string) {
				put(t, dir+"/fine", "fine\n", 0o600)
				put(t, dir+"/denied", "changed\n", 0o600)
				must(t, os.RemoveAll(dir+"/t"))
				put(t, dir+"/n/denied", "n\n", 0o600)
				put(t, dir+"/n/m", "m\n", 0o600)
				must(t, os.Link(dir+"/n/m", dir+"/n/o"))
			}, left: map[string]string{"/denied": "out_of_reach", "/t": "not_done", "/n/denied": "out_of_reach"}},
	} {
		for who, mount := range map[string]string{"root": "", "user": ",userxattr"} {
			if row.only != "" && who != row.only {
				continue
			}
			t.Run(name+", "+who, func(t *testing.T) {
				r := newRan(t, func(cfg *config.FS) { cfg.Checkpoint.MaxFileBytes = 200 })
				put(t, r.ws+"/a", "one\n", 0o644)
				put(t, r.ws+"/d/e/f", "f\n", 0o600)
				if row.lay != nil {
					row.lay(t, r.ws)
				}
				before := pictured(t, r.ws)
				program := func(dir string) { row.program(t, dir) }
				var want map[string]string
				if row.left == nil {
					want = r.without(t, program)
				}
				u := r.layer(t, mount, program)
				args := engine.RunArgs{Upper: u, Command: name}
				done, err := r.call().ApplyRun(ctx, args)
				if row.left != nil {
					if !engine.RunLeaves.In(err) {
						t.Fatal("not refused: ", err)
					}
					same(t, "refused", pictured(t, r.ws), before)
					args.Partial = true
					done, err = r.call().ApplyRun(ctx, args)
				}
				if err != nil {
					t.Fatalf("%v: %+v", err, engine.Reason(err).Facts)
				}
				left := map[string]string{}
				for _, b := range done.Left {
					path := strings.TrimPrefix(b.Path, r.ws)
					if len(path) > 3000 {
						path = "long"
					}
					left[path] = b.Why.Name
				}
				for path, why := range row.left {
					if left[path] != why {
						t.Errorf("%s is left for %q, and not for %q", path, left[path], why)
					}
				}
				if n := len(row.left); n > 0 && len(left) != n {
					t.Errorf("left: %v", left)
				}
				if row.steps > 0 && len(done.Changes) != row.steps {
					t.Errorf("%d changes: %+v", len(done.Changes), done.Changes)
				}
				after := pictured(t, r.ws)
				if row.left == nil {
					same(t, "after", after, want)
				} else if i, err := os.Stat(r.ws + "/fine"); err != nil || i.Size() == 0 {
					t.Error("the rest was not applied: ", err)
				}
				if done.Checkpoint == "" && len(done.Changes) == 0 {
					return
				}
				if _, err := r.call().Undo(ctx, engine.RestoreOptions{}); err != nil {
					t.Fatalf("undo: %v: %+v", err, engine.Reason(err).Facts)
				}
				same(t, "undone", timeless(pictured(t, r.ws)), timeless(before))
				if _, err := r.call().Redo(ctx, engine.RestoreOptions{}); err != nil {
					t.Fatalf("redo: %v: %+v", err, engine.Reason(err).Facts)
				}
				same(t, "redone", timeless(pictured(t, r.ws)), timeless(after))
			})
		}
	}
}

// A change by others while a program runs is a conflict if the program changed that path too, and a question where nobody can tell.
func TestRunMeetsOthers(t *testing.T) {
	if !testdir.OwnMounts(t) {
		return
	}
	for name, row := range map[string]struct {
		program, others func(t *testing.T, dir string)
		conflict        string // the path
		asked           bool
	}{
		"other files": {others: func(t *testing.T, dir string) {
			put(t, dir+"/b", "theirs\n", 0o644)
			put(t, dir+"/d/theirs", "theirs\n", 0o644)
		}},
		"the same file": {others: func(t *testing.T, dir string) { put(t, dir+"/a", "theirs\n", 0o644) }, conflict: "/a"},
		"the same file, by rename": {others: func(t *testing.T, dir string) {
			must(t, os.Rename(dir+"/b", dir+"/a"))
		}, conflict: "/a"},
		"its mode":                {others: func(t *testing.T, dir string) { must(t, os.Chmod(dir+"/a", 0o600)) }, conflict: "/a"},
		"the same new name":       {others: func(t *testing.T, dir string) { put(t, dir+"/new", "theirs\n", 0o644) }, conflict: "/new"},
		"in a tree that goes":     {others: func(t *testing.T, dir string) { put(t, dir+"/t/u/f", "theirs\n", 0o644) }, conflict: "/t"},
		"new in a tree that goes": {others: func(t *testing.T, dir string) { put(t, dir+"/t/u/new", "theirs\n", 0o644) }, conflict: "/t"},
		"gone as well":            {others: func(t *testing.T, dir string) { must(t, os.Remove(dir+"/gone")) }},
		"removed, but changed":    {others: func(t *testing.T, dir string) { must(t, os.Remove(dir+"/a")) }, asked: true},
		"another directory": {others: func(t *testing.T, dir string) {
			put(t, dir+"/other/e", "theirs, and older\n", 0o644)
			must(t, os.Rename(dir+"/d", dir+"/old"))
			must(t, os.Rename(dir+"/other", dir+"/d"))
		}, conflict: "/d/e"},
		"another directory, with what is older": {others: func(t *testing.T, dir string) {
			must(t, os.Rename(dir+"/d", dir+"/old"))
			must(t, os.Rename(dir+"/e", dir+"/d"))
		}, asked: true},
	} {
		t.Run(name, func(t *testing.T) {
			approver := &told{}
			r := newRan(t, nil)
			for _, f := range []string{"a", "b", "gone", "t/u/f", "d/e", "e/e"} {
				put(t, r.ws+"/"+f, f+"\n", 0o644)
			}
			u := r.layer(t, "", func(dir string) {
				put(t, dir+"/a", "changed\n", 0o644)
				put(t, dir+"/new", "new\n", 0o644)
				put(t, dir+"/d/e", "changed\n", 0o644)
				must(t, os.Remove(dir+"/gone"))
				must(t, os.RemoveAll(dir+"/t"))
			})
			row.others(t, r.ws)
			before := pictured(t, r.ws)
			c := r.call()
			c.Approver = approver
			_, err := c.ApplyRun(ctx, engine.RunArgs{Upper: u, Command: "make"})
			if row.conflict != "" {
				if !engine.RunStale.In(err) || engine.Reason(err).Path != r.ws+row.conflict || approver.asked != nil {
					t.Fatalf("%v, asked %v", err, approver.asked)
				}
				same(t, "after", pictured(t, r.ws), before)
				return
			}
			if (approver.asked != nil) != row.asked {
				t.Errorf("asked: %+v", approver.asked)
			}
			if row.asked { // the answer is no
				same(t, "after", pictured(t, r.ws), before)
				approver.yes = true
				c = r.call()
				c.Approver = approver
				_, err = c.ApplyRun(ctx, engine.RunArgs{Upper: u, Command: "make"})
			}
			must(t, err)
			if got, _ := os.ReadFile(r.ws + "/a"); string(got) != "changed\n" {
				t.Errorf("a is %q", got)
			}
		})
	}
}

// told is an approver that notes what it is asked.
type told struct {
	yes   bool
	asked *approval.Question
}

func (a *told) Ask(_ context.Context, q approval.Question) (approval.Answer, error) {
	a.asked = &q
	if a.yes {
		return approval.Answer{Decision: approval.Approved}, nil
	}
	return approval.Answer{Decision: approval.Denied}, nil
}

// A file that git ignores is applied and counted, and not stored: an undo takes back the rest. A directory that is new and ignored comes by one rename, and
// an undo takes it away. The rules are those before the run: a program does not rule what is kept.
func TestRunIgnores(t *testing.T) {
	if !testdir.OwnMounts(t) {
		return
	}
	for _, keep := range []bool{false, true} {
		t.Run(fmt.Sprint(keep), func(t *testing.T) {
			r := newRan(t, nil)
			put(t, r.ws+"/.git/HEAD", "ref: refs/heads/main\n", 0o644)
			put(t, r.ws+"/old.log", "old\n", 0o644)
			put(t, r.ws+"/target/a.o", "old\n", 0o644)
			put(t, r.ws+"/main.c", "main\n", 0o644)
			put(t, r.ws+"/.gitignore", "*.log\ntarget/\n/node_modules\n!kept.log\n", 0o644)
			put(t, r.ws+"/sub/.gitignore", "!*.log\n", 0o644)
			before := pictured(t, r.ws)
			program := func(dir string) {
				put(t, dir+"/.gitignore", "*\n", 0o644)
				put(t, dir+"/old.log", "longer\n", 0o644)
				put(t, dir+"/kept.log", "kept\n", 0o644)
				put(t, dir+"/target/a.o", "new\n", 0o644)
				put(t, dir+"/main.c", "changed\n", 0o644)
				put(t, dir+"/sub/x.log", "x\n", 0o644)
				put(t, dir+"/.git/x.log", "git's own\n", 0o644)
				for i := range 100 {
					put(t, fmt.Sprintf("%s/node_modules/m%d/index.js", dir, i), "module\n", 0o644)
				}
			}
			want := r.without(t, program)
			u := r.layer(t, "", program)
			done, err := r.call().ApplyRun(ctx, engine.RunArgs{Upper: u, Command: "npm install", KeepIgnored: keep})
			must(t, err)
			after := pictured(t, r.ws)
			same(t, "after", after, want)
			ignored := map[string]bool{}
			for _, ch := range done.Changes {
				if ch.Ignored {
					ignored[strings.TrimPrefix(ch.Path, r.ws)] = true
				}
			}
			wants := map[string]bool{"/old.log": true, "/target/a.o": true, "/node_modules": true}
			if keep {
				wants = map[string]bool{}
			}
			if !maps.Equal(ignored, wants) || !keep && done.Ignored.Files != 102 {
				t.Errorf("ignored: %v, %+v", ignored, done.Ignored)
			}
			if _, left := os.Stat(u.Dir + "/node_modules"); keep != (left == nil) {
				t.Error("node_modules did not come by one rename: ", left)
			}
			_, err = r.call().Undo(ctx, engine.RestoreOptions{})
			must(t, err)
			if !keep {
				for _, name := range []string{"/old.log", "/target/a.o"} {
					before[name] = after[name]
				}
			}
			same(t, "undone", pictured(t, r.ws), before)
		})
	}
}

// A session has not seen what a program made of a file that it has read.
func TestRunMakesStale(t *testing.T) {
	if !testdir.OwnMounts(t) {
		return
	}
	r := newRan(t, func(cfg *config.FS) { cfg.TrackReads, cfg.MustReadBeforeWrite = true, true })
	put(t, r.ws+"/a", "one\n", 0o644)
	put(t, r.ws+"/b", "one\n", 0o644)
	for _, name := range []string{"/a", "/b"} {
		must(t, r.call().Read(ctx, r.ws+name, func(ctx context.Context, s *engine.Source) (*engine.ReadRecord, error) {
			_, seen, err := s.Lines(ctx, 1, 100, 1<<20)
			return seen, err
		}))
	}
	u := r.layer(t, "", func(dir string) { put(t, dir+"/a", "two\n", 0o644) })
	_, err := r.call().ApplyRun(ctx, engine.RunArgs{Upper: u, Command: "sed"})
	must(t, err)
	for name, stale := range map[string]bool{"/a": true, "/b": false} {
		_, _, err := r.call().Write(ctx, engine.WriteArgs{Path: r.ws + name, Text: "three\n"})
		if engine.Modified.In(err) != stale || err != nil && !stale {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The question has all diffs, and a no leaves both the workspace and the upper layer as they were, so that it can be asked again.
func TestRunAsks(t *testing.T) {
	if !testdir.OwnMounts(t) {
		return
	}
	r := newRan(t, func(cfg *config.FS) { cfg.RequireApproval = true })
	put(t, r.ws+"/a", "one\n", 0o644)
	put(t, r.ws+"/.gitignore", "out\n", 0o644)
	put(t, r.ws+"/t/f", "f\n", 0o644)
	program := func(dir string) {
		put(t, dir+"/a", "two\n", 0o644)
		put(t, dir+"/n/b", "new\n", 0o755)
		put(t, dir+"/out/x", "x\n", 0o644)
		put(t, dir+"/l", "one of two\n", 0o644)
		must(t, os.Link(dir+"/l", dir+"/l2"))
		must(t, os.RemoveAll(dir+"/t"))
		must(t, os.Chmod(dir, 0o700))
	}
	before, want := pictured(t, r.ws), r.without(t, program)
	u := r.layer(t, "", program)
	layer := pictured(t, u.Dir)
	approver := &told{}
	const command = "make all\n&& ls"
	apply := func(a engine.RunArgs) error {
		c := r.call()
		c.Approver = approver
		a.Upper, a.Command, a.Exit, a.Output = u, command, 2, engine.HashOf(nil)
		_, err := c.ApplyRun(ctx, a)
		if c.Trace.Asked.Pattern != command || !strings.HasPrefix(c.Trace.Asked.Window, "exit 2, output sha256 e3b0c442") {
			t.Errorf("the audit log has %+v", c.Trace.Asked)
		}
		return err
	}
	must(t, apply(engine.RunArgs{DryRun: true}))
	if approver.asked != nil {
		t.Error("asked about a look")
	}
	if err := apply(engine.RunArgs{}); !engine.NotApproved.In(err) {
		t.Fatal(err)
	}
	q := approver.asked
	for _, part := range []string{"-one\n+two\n", "+new\n", "+one of two\n"} {
		if !strings.Contains(q.Diff, part) {
			t.Errorf("the question lacks %q:\n%s", part, q.Diff)
		}
	}
	for _, part := range []string{"n/b will be executable", "out comes as a whole: 1 files", "t goes to the trash as a whole: 1 files", "gets the mode"} {
		if !strings.Contains(strings.Join(q.Warnings, "\n"), part) {
			t.Errorf("no warning has %q: %q", part, q.Warnings)
		}
	}
	same(t, "not approved", pictured(t, r.ws), before)
	same(t, "the upper layer", pictured(t, u.Dir), layer)
	digest := q.Digest
	approver.yes = true
	must(t, apply(engine.RunArgs{}))
	if approver.asked.Digest != digest {
		t.Error("the same plan has another digest")
	}
	same(t, "approved", pictured(t, r.ws), want)
	page, err := r.call().Checkpoints(ctx, checkpoint.Filter{})
	must(t, err)
	ops := slices.DeleteFunc(page.Checkpoints, func(c checkpoint.Checkpoint) bool { return c.Kind == checkpoint.KindRead })
	if len(ops) != 1 || ops[0].Kind != checkpoint.KindRun || ops[0].Label != "make all && ls (exit 2, output e3b0c44298fc, 1 ignored files not stored)" {
		t.Errorf("the log has %+v", ops)
	}
}

// From a data directory on another mount nothing can be renamed into the workspace. Then names of one file become files of their own;
// all else is the same.
func TestRunFromElsewhere(t *testing.T) {
	if !testdir.OwnMounts(t) {
		return
	}
	r := newRan(t, nil)
	must(t, unix.Mount("none", r.ws, "tmpfs", 0, "mode=755"))
	t.Cleanup(func() { unix.Unmount(r.ws, unix.MNT_DETACH) }) //nolint:errcheck // the namespace goes
	put(t, r.ws+"/.gitignore", "out\n", 0o644)
	put(t, r.ws+"/a", "one\n", 0o644)
	put(t, r.ws+"/d/e/f", "f\n", 0o644)
	put(t, r.ws+"/h", "two names\n", 0o644)
	must(t, os.Link(r.ws+"/h", r.ws+"/h2"))
	before := pictured(t, r.ws)
	program := func(dir string) {
		put(t, dir+"/out/x/y", "ignored\n", 0o640)
		must(t, os.RemoveAll(dir+"/d"))
		must(t, os.Symlink("a", dir+"/d"))
		must(t, os.Remove(dir+"/a"))
		put(t, dir+"/a/b/c", "c\n", 0o600)
		must(t, os.Remove(dir+"/h"))
		put(t, dir+"/h", "one name\n", 0o644)
		put(t, dir+"/l", "one of two\n", 0o644)
		must(t, os.Link(dir+"/l", dir+"/l2"))
	}
	want := r.without(t, program)
	u := r.layer(t, "", program)
	_, err := r.call().ApplyRun(ctx, engine.RunArgs{Upper: u, Command: "make"})
	must(t, err)
	for _, name := range []string{"/l", "/l2"} {
		want[name], _, _ = strings.Cut(want[name], " = ")
	}
	same(t, "after", pictured(t, r.ws), want)
	_, err = r.call().Undo(ctx, engine.RestoreOptions{})
	must(t, err)
	got := pictured(t, r.ws)
	for name := range got {
		if strings.HasPrefix(name, "/out") { // ignored, and so not stored
			delete(got, name)
		}
	}
	same(t, "undone", got, before)
}

// A call that fails leaves the workspace and the upper layer as they were. Where nothing had been renamed yet the run can be applied once the disk is
// well again.
func TestRunFails(t *testing.T) {
	if !testdir.OwnMounts(t) {
		return
	}
	var calls, failAt atomic.Int64
	fault := func(string) *guardfs.Fault {
		if n, at := calls.Add(1), failAt.Load(); at > 0 && n >= at && n < at+3 { // longer than a call is tried again
			return &guardfs.Fault{Err: unix.EIO}
		}
		return nil
	}
	lay := func() (*ranIn, run.Upper) {
		r := newRanWith(t, nil, fault)
		put(t, r.ws+"/.gitignore", "out\n", 0o644)
		for _, f := range []string{"a", "gone", "t/f", "d/e/f"} {
			put(t, r.ws+"/"+f, f+"\n", 0o644)
		}
		return r, r.layer(t, "", func(dir string) {
			put(t, dir+"/a", "changed\n", 0o644)
			must(t, os.Remove(dir+"/gone"))
			must(t, os.RemoveAll(dir+"/t"))
			put(t, dir+"/t", "a file\n", 0o644)
			put(t, dir+"/out/x/y", "ignored\n", 0o644)
			put(t, dir+"/n/x", "new\n", 0o644)
			put(t, dir+"/l", "one of two\n", 0o644)
			must(t, os.Link(dir+"/l", dir+"/n/l"))
			must(t, os.Chmod(dir+"/d", 0o700))
		})
	}
	apply := func(r *ranIn, u run.Upper) error {
		_, err := r.call().ApplyRun(ctx, engine.RunArgs{Upper: u, Command: "make"})
		return err
	}
	r, u := lay()
	want := r.saw
	calls.Store(0)
	must(t, apply(r, u))
	total, failed := calls.Load(), 0
	for at := first(t, max(1, total/20)); at < total; at += max(1, total/20) {
		r, u := lay()
		before, layer := pictured(t, r.ws), pictured(t, u.Dir)
		calls.Store(0)
		failAt.Store(at)
		err := apply(r, u)
		failAt.Store(0)
		if after := pictured(t, r.ws); err != nil && !maps.Equal(after, want) { // its very end may fail when all is made
			failed++
			must(t, r.e.Recover(ctx))
			same(t, fmt.Sprint("failed at ", at), pictured(t, r.ws), before)
			same(t, fmt.Sprint("the upper layer at ", at), pictured(t, u.Dir), layer)
			if again := apply(r, u); engine.RunStale.In(again) || engine.NobodyToAsk.In(again) { // names that were ours for a moment may have been changed by others
				continue
			} else if again != nil {
				t.Errorf("failed at %d: %v; and then: %v", at, err, again)
			}
		}
		same(t, fmt.Sprint("after ", at), pictured(t, r.ws), want)
	}
	if failed == 0 {
		t.Error("nothing ever failed")
	}
}

// The workspace may be an overlay itself, as in a container: a directory of its lower layer can't be renamed, and goes name by name.
func TestRunOverLayers(t *testing.T) {
	if !testdir.OwnMounts(t) {
		return
	}
	r := newRan(t, nil)
	image := t.TempDir()
	for _, name := range []string{"a", "t/u/f", "t/g", "was/f", "h", "gone"} {
		put(t, image+"/lower/"+name, name+"\n", 0o644)
	}
	must(t, os.Mkdir(image+"/upper", 0o755))
	must(t, os.Mkdir(image+"/work", 0o755))
	if err := unix.Mount("overlay", r.ws, "overlay", 0, "lowerdir="+image+"/lower,upperdir="+image+"/upper,workdir="+image+"/work"); err != nil {
		t.Skip("SKIPPED: no overlay file system can be mounted here: ", err)
	}
	t.Cleanup(func() { unix.Unmount(r.ws, unix.MNT_DETACH) }) //nolint:errcheck // the namespace goes
	before := pictured(t, r.ws)
	program := func(dir string) {
		put(t, dir+"/a", "changed\n", 0o600)
		must(t, os.RemoveAll(dir+"/t"))
		put(t, dir+"/n/x", "new\n", 0o644)
		must(t, os.Remove(dir+"/gone"))
		must(t, os.Chmod(dir, 0o700))
	}
	u := r.layer(t, "", program)
	_, err := r.call().ApplyRun(ctx, engine.RunArgs{Upper: u, Command: "make"})
	if err != nil {
		t.Fatalf("%v: %+v", err, engine.Reason(err).Facts)
	}
	same(t, "after", pictured(t, r.ws), r.saw)
	u = r.layer(t, "", func(dir string) {
		must(t, os.RemoveAll(dir+"/was"))
		put(t, dir+"/was", "a file now\n", 0o644)
	})
	if _, err := r.call().ApplyRun(ctx, engine.RunArgs{Upper: u, Command: "turn"}); !engine.RunLeaves.In(err) {
		t.Error("a directory of a lower layer gave way to a file: ", err)
	}
	_, err = r.call().Undo(ctx, engine.RestoreOptions{})
	must(t, err)
	same(t, "undone", pictured(t, r.ws), before)
}
