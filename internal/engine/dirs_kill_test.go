//go:build linux && !rooted

package engine_test

import (
	"cmp"
	"errors"
	"flag"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"moltisfs/checkpoint"
	"moltisfs/config"
	"moltisfs/internal/engine"
	"moltisfs/internal/guardfs"
)

var killEvery = flag.Int("every", 0, "TestKilledMaking kills before each so manieth call; 0: before those that a change's stride says")

// makings are changes that make directories, or take them away, and what is there before them.
var makings = map[string]struct {
	stride int // every so manieth call
	lay    func(x *tree)
	run    func(e *engine.Engine, ws string) error
}{
	"write": {1, func(x *tree) { x.write("f", "f\n") }, func(e *engine.Engine, ws string) error {
		_, err := e.Mutate(ctx, maker(), engine.Mutation{Paths: []string{ws + "/x/y/z/f"}, CreateParents: true, Blind: true, Next: func(ts []*engine.Target) error {
			ts[0].After = engine.After{Kind: guardfs.KindFile, Content: []byte("new\n")}
			return nil
		}})
		return err
	}},
	"take back": {1, func(x *tree) {
		x.put("s", "x/y/z/f", "new\n")
	}, func(e *engine.Engine, _ string) error {
		_, err := e.Undo(ctx, maker(), engine.RestoreOptions{})
		return err
	}},
	"bring back a tree": {7, func(x *tree) {
		for _, f := range []string{"t/a/1", "t/b/c/2", "kept"} {
			x.write(f, f+"\n")
		}
		must(x.t, os.Mkdir(x.ws+"/t/hollow", 0o711))
		x.remove("t")
	}, func(e *engine.Engine, _ string) error {
		_, err := e.Undo(ctx, maker(), engine.RestoreOptions{})
		return err
	}},
	"bring back what is parked": {4, func(x *tree) {
		x.write("u/v/t/big.bin", strings.Repeat("b", 101))
		x.remove("u/v/t")
		must(x.t, os.RemoveAll(x.ws+"/u"))
	}, func(e *engine.Engine, _ string) error {
		_, err := e.Undo(ctx, maker(), engine.RestoreOptions{})
		return err
	}},
	"bring back directories alone": {5, func(x *tree) {
		must(x.t, os.MkdirAll(x.ws+"/t/a/b", 0o750))
		x.remove("t")
	}, func(e *engine.Engine, _ string) error {
		_, err := e.Undo(ctx, maker(), engine.RestoreOptions{})
		return err
	}},
	"trade places": {7, func(x *tree) { x.trade() }, rewind},
	"trade places back": {8, func(x *tree) {
		x.trade()
		must(x.t, rewind(x.Engine, x.ws))
	}, func(e *engine.Engine, _ string) error {
		_, err := e.Undo(ctx, maker(), engine.RestoreOptions{})
		return err
	}},
	"a file becomes directories alone": {5, func(x *tree) {
		must(x.t, os.MkdirAll(x.ws+"/t/a/b", 0o750))
		c := x.call("s")
		c.Turn = "t"
		x.BeginTurn(ctx, c)
		_, err := x.Delete(ctx, c, x.ws+"/t", engine.DeleteOptions{Recursive: true})
		must(x.t, err)
		x.puts("t", "t", "file\n")
	}, rewind},
	"delete a tree": {1, func(x *tree) {
		x.write("t/a/1", "1\n")
		must(x.t, os.Symlink("nowhere", x.ws+"/t/a/link"))
	}, func(e *engine.Engine, ws string) error {
		_, err := e.Delete(ctx, maker(), ws+"/t", engine.DeleteOptions{Recursive: true})
		return err
	}},
	"delete directories alone": {2, func(x *tree) {
		must(x.t, os.MkdirAll(x.ws+"/t/a/b", 0o750))
	}, func(e *engine.Engine, ws string) error {
		_, err := e.Delete(ctx, maker(), ws+"/t", engine.DeleteOptions{Recursive: true})
		return err
	}},
}

func rewind(e *engine.Engine, _ string) error {
	_, err := e.Restore(ctx, maker(), rewindTo("t"), engine.RestoreOptions{})
	return err
}

func maker() *engine.Call {
	return &engine.Call{ID: "c", Principal: "p", Session: "s", Tool: "test"}
}

// remove deletes a tree by way of the engine.
func (x *tree) remove(name string) {
	x.t.Helper()
	_, err := x.Delete(ctx, x.call("s"), x.ws+"/"+name, engine.DeleteOptions{Recursive: true})
	must(x.t, err)
}

// The child of TestKilledMaking: it kills itself before its N-th system call on the tree.
func TestKilledMakingChild(t *testing.T) {
	how := strings.Split(os.Getenv("MAKING_CHILD"), ":")
	if len(how) != 3 {
		t.Skip("only run by TestKilledMaking")
	}
	n, err := strconv.ParseInt(how[2], 10, 64)
	must(t, err)
	cfg := config.Default().Tools.FS
	cfg.RequireApproval, cfg.CheckpointBeforeMutation = false, true
	cfg.Durability, cfg.Checkpoint.Durability = "none", "relaxed"
	small(&cfg)
	var count atomic.Int64
	var on atomic.Bool
	e, err := engine.Open(engine.Options{Config: cfg, Judge: inside{how[1] + "/ws", ""}, DataDir: how[1] + "/data", Fault: func(string) *guardfs.Fault {
		if on.Load() && count.Add(1) == n {
			syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
		return nil
	}})
	must(t, err)
	on.Store(true)
	must(t, errors.Join(makings[how[0]].run(e, how[1]+"/ws"), e.Close()))
}

// dirs lists the directories of a tree.
func (x *tree) dirs() (out []string) {
	for line := range strings.Lines(x.looks()) {
		if name, mode, _ := strings.Cut(line, " "); strings.HasPrefix(mode, "d") {
			out = append(out, name)
		}
	}
	return out
}

// recorded lists the directories that the newest change in the store makes, and says whether it has a mark.
func (x *tree) recorded() (made []string, marked bool) {
	x.t.Helper()
	db, err := checkpoint.Open(x.data+"/checkpoints", checkpoint.Options{})
	must(x.t, err)
	defer db.Close()
	page, err := db.List(ctx, checkpoint.Filter{AllSessions: true, AsSaved: true, Limit: 1})
	must(x.t, err)
	if len(page.Checkpoints) == 0 {
		return nil, false
	}
	for _, c := range page.Checkpoints[0].Changes {
		if c.Before.Kind != checkpoint.Dir && c.After.Kind == checkpoint.Dir {
			made = append(made, strings.TrimPrefix(c.Path, x.ws))
		}
	}
	_, err = os.Stat(x.data + "/checkpoints/journal/" + string(page.Checkpoints[0].ID))
	return made, err == nil
}

// A process is killed before every system call of changes that make directories or take them away. Never is a directory there that its checkpoint,
// and while others are missing its mark, does not tell of; after the next start everything is as before or as it should become, directories
// included; but what others put into such a directory, or made in its place, stays.
func TestKilledMaking(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: starts hundreds of processes")
	}
	for step, making := range makings {
		t.Run(step, func(t *testing.T) {
			stride := cmp.Or(*killEvery, making.stride)
			cut, back := 0, 0 // with a directory of its own half-way; taken back
			for n := 1; ; n += stride {
				x := grow(t, small)
				making.lay(x)
				x.Close()
				old, had := x.looks(), x.dirs()
				child := exec.Command(os.Args[0], "-test.run=^TestKilledMakingChild$")
				child.Env = append(os.Environ(), "MAKING_CHILD="+step+":"+filepath.Dir(x.ws)+":"+strconv.Itoa(n))
				out, err := child.CombinedOutput()
				if err != nil && !strings.Contains(err.Error(), "killed") {
					t.Fatalf("%v\n%s", err, out)
				}
				var fresh []string
				for _, d := range x.dirs() {
					if !slices.Contains(had, d) {
						fresh = append(fresh, d)
					}
				}
				made, marked := x.recorded()
				for _, d := range fresh {
					if !slices.Contains(made, d) && step != "bring back what is parked" || err != nil && len(made) > 1 && !marked && len(fresh) < len(made) {
						t.Fatalf("killed before call %d: %s is there, the checkpoint tells of %v, marked: %v", n, d, made, marked)
					}
				}
				theirs, others := "", ""
				switch {
				case err == nil || len(fresh) == 0 || len(fresh) >= len(made) && !marked:
				case n%3 == 0: // somebody uses the innermost one
					theirs = fresh[len(fresh)-1] + "/theirs"
					must(t, os.WriteFile(x.ws+theirs, []byte("t"), 0o600))
				case n%3 == 1: // somebody makes it anew, later
					others = fresh[len(fresh)-1]
					marks, _ := filepath.Glob(x.data + "/checkpoints/journal/ck-*")
					for _, m := range marks {
						must(t, os.Chtimes(m, time.Time{}, time.Now().Add(-time.Minute)))
					}
					if os.Remove(x.ws+others) != nil { // it holds something already
						others = ""
					} else {
						time.Sleep(20 * time.Millisecond) // the number of the old one is taken again, so that only the time tells
						must(t, os.Mkdir(x.ws+others, 0o700))
					}
				}
				x.open()
				now := x.looks()
				gone := func(p string) bool {
					_, err := os.Stat(x.ws + p)
					return p != "" && errors.Is(err, fs.ErrNotExist)
				}
				switch {
				case gone(theirs) || gone(others):
					t.Fatalf("killed before call %d: what is somebody else's is gone\n%s", n, now)
				case theirs != "" || others != "":
					cut++
				case err == nil:
				case now == old:
					back++
				default:
					if len(fresh) > 0 {
						cut++
					}
				}
				if theirs == "" && others == "" && now != old && err != nil { // then all of it
					again := x.looks()
					x.Close()
					if done := x.whole(t, step); again != done {
						t.Fatalf("killed before call %d: after the next start\n%s\nit was\n%s\nand should have become\n%s", n, again, old, done)
					}
				} else {
					x.Close()
				}
				if left, _ := filepath.Glob(x.data + "/checkpoints/journal/ck-*"); left != nil {
					t.Fatalf("killed before call %d: marks are left: %v", n, left)
				}
				os.RemoveAll(filepath.Dir(x.ws))
				if err == nil {
					break
				}
			}
			t.Logf("%d cut with directories, %d taken back", cut, back)
			if back == 0 {
				t.Error("nothing was ever taken back: the test tests nothing")
			}
		})
	}
}

// whole is what the tree looks like when nobody is killed.
func (x *tree) whole(t *testing.T, step string) string {
	t.Helper()
	y := grow(t, small)
	makings[step].lay(y)
	must(t, makings[step].run(y.Engine, y.ws))
	return y.looks()
}
