//go:build linux && !rooted

package engine_test

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"moltisfs/checkpoint"
	"moltisfs/config"
	"moltisfs/internal/engine"
	"moltisfs/internal/guardfs"
)

// What somebody else makes is his, also if it is, byte for byte, what a call is about to make: whichever system call of ours he is there before, what he made
// stays where our call failed.
func TestTheSameMadeByOthers(t *testing.T) {
	t.Parallel()
	made := func(x *tree, name, content string) os.FileInfo { // in one step, and never in the place of something else
		path := x.ws + "/" + name
		temp := x.data + "/others"
		_ = os.MkdirAll(filepath.Dir(path), 0o755)
		if os.WriteFile(temp, []byte(content), 0o644) != nil || os.Link(temp, path) != nil {
			return nil
		}
		_ = os.Remove(temp)
		fi, _ := os.Lstat(path)
		return fi
	}
	replaced := func(x *tree, name, content string) os.FileInfo {
		temp := x.data + "/others"
		if os.WriteFile(temp, []byte(content), 0o644) != nil || os.Rename(temp, x.ws+"/"+name) != nil {
			return nil
		}
		fi, _ := os.Lstat(x.ws + "/" + name)
		return fi
	}
	change := func(x *tree, to string, names ...string) error {
		m := engine.Files{Parents: true, Next: func(ts []*engine.Target) error {
			for _, t := range ts {
				t.After = engine.After{Kind: guardfs.KindFile, Content: []byte(to)}
			}
			return nil
		}}
		for _, n := range names {
			m.Paths = append(m.Paths, x.ws+"/"+n)
		}
		_, err := x.ChangeFiles(ctx, x.call("s"), m)
		return err
	}
	link := func(x *tree, name string) os.FileInfo {
		if os.Symlink("away", x.ws+"/"+name) != nil {
			return nil
		}
		fi, _ := os.Lstat(x.ws + "/" + name)
		return fi
	}
	for _, c := range []struct {
		name, path string
		before     func(x *tree, d string)
		step       func(x *tree, d string) error
		other      func(x *tree, d string) os.FileInfo
	}{
		{"a new file", "f", nil,
			func(x *tree, d string) error { return change(x, "same", d+"f") },
			func(x *tree, d string) os.FileInfo { return made(x, d+"f", "same") }},
		{"a new file in new directories", "d/e/f", nil,
			func(x *tree, d string) error { return change(x, "same", d+"d/e/f") },
			func(x *tree, d string) os.FileInfo { return made(x, d+"d/e/f", "same") }},
		{"an edit", "f", func(x *tree, d string) { x.put("s", d+"f", "old") },
			func(x *tree, d string) error { return change(x, "same", d+"f") },
			func(x *tree, d string) os.FileInfo { return replaced(x, d+"f", "same") }},
		{"the first of two, when the second fails", "f", func(x *tree, d string) { x.put("s", d+"f", "old") },
			func(x *tree, d string) error { return change(x, "same", d+"f", d+"g") },
			func(x *tree, d string) os.FileInfo {
				made(x, d+"g", "another")
				return replaced(x, d+"f", "same")
			}},
		{"a link that comes back", "l", func(x *tree, d string) {
			if link(x, d+"l") == nil {
				x.t.Fatal("no link")
			}
			if _, err := x.Delete(ctx, x.call("s"), x.ws+"/"+d+"l", engine.DeleteOptions{}); err != nil {
				x.t.Fatal(err)
			}
		},
			func(x *tree, d string) error {
				_, err := x.Undo(ctx, x.call("s"), engine.RestoreOptions{})
				return err
			},
			func(x *tree, d string) os.FileInfo { return link(x, d+"l") }},
		{"a file that goes", "f", func(x *tree, d string) { x.put("s", d+"f", "old") },
			func(x *tree, d string) error {
				_, err := x.Delete(ctx, x.call("s"), x.ws+"/"+d+"f", engine.DeleteOptions{})
				return err
			},
			func(x *tree, d string) os.FileInfo { _ = os.Remove(x.ws + "/" + d + "f"); return nil }},
	} {
		for _, checkpoints := range []bool{true, false} {
			if c.before != nil && !checkpoints {
				continue
			}
			t.Run(fmt.Sprintf("%s, checkpoints %v", c.name, checkpoints), func(t *testing.T) {
				x := grow(t, func(fs *config.FS) { fs.CheckpointBeforeMutation = checkpoints })
				system := callsOf(x)
				failures := 0
				for n := int64(1); ; n++ {
					d := fmt.Sprintf("%d/", n)
					if err := os.Mkdir(x.ws+"/"+d, 0o755); err != nil {
						t.Fatal(err)
					}
					if c.before != nil {
						c.before(x, d)
					}
					var calls atomic.Int64
					var theirs os.FileInfo
					hook := func(string) *guardfs.Fault {
						if calls.Add(1) == n {
							theirs = c.other(x, d)
						}
						return nil
					}
					system.hook.Store(&hook)
					err := c.step(x, d)
					system.hook.Store(nil)
					if calls.Load() < n {
						break
					}
					if err == nil {
						continue
					}
					failures++
					now, lerr := os.Lstat(x.ws + "/" + d + c.path)
					switch {
					case c.name == "a file that goes" && lerr == nil:
						t.Errorf("before call %d somebody removed it, the answer was %v, and it is back", n, err)
					case theirs != nil && (lerr != nil || !os.SameFile(now, theirs)):
						t.Errorf("before call %d somebody made it, the answer was %v, and now it is gone: %v", n, err, lerr)
					}
				}
				if failures == 0 {
					t.Error("nobody was in the way of anybody: nothing was tested")
				}
			})
		}
	}
}

// Two who make the same new file in the same new directories wait for each other: both have made it, and nothing goes.
func TestTwoMakeTheSame(t *testing.T) {
	t.Parallel()
	for _, same := range []bool{true, false} {
		x := grow(t, nil)
		other, err := engine.OpenOver(engine.Options{Config: x.cfg, Judge: inside(x.ws, x.deny), DataDir: x.data})
		if err != nil {
			t.Fatal(err)
		}
		defer other.Close()
		for i := range 40 {
			var wg sync.WaitGroup
			errs := make([]error, 4)
			for k := range errs {
				e, content := x.Engine, "same"
				if k%2 == 1 {
					e = other
				}
				if !same {
					content = fmt.Sprint("of ", k)
				}
				wg.Go(func() {
					_, errs[k] = e.ChangeFiles(ctx, x.call(fmt.Sprint("s", k)), engine.Files{Paths: []string{fmt.Sprintf("%s/d%d/e/f", x.ws, i)}, Parents: true,
						Next: func(ts []*engine.Target) error {
							ts[0].After = engine.After{Kind: guardfs.KindFile, Content: []byte(content)}
							return nil
						}})
				})
			}
			wg.Wait()
			for k, err := range errs {
				if err != nil {
					t.Errorf("round %d, same %v: %d: %v", i, same, k, err)
				}
			}
			if _, err := os.Stat(fmt.Sprintf("%s/d%d/e/f", x.ws, i)); err != nil {
				t.Fatalf("round %d: %v", i, err)
			}
		}
	}
}

// Whoever comes while a file is being made in a new directory finds it there, and waits all the same: it is not replaced under
// the hands of its maker.
func TestWhatIsBeingMadeIsWaitedFor(t *testing.T) {
	t.Parallel()
	var path string
	var second sync.Once
	var wg sync.WaitGroup
	var other *engine.Engine
	var err error
	put := func(e *engine.Engine, c *engine.Call, content string) error {
		_, err := e.ChangeFiles(ctx, c, engine.Files{Paths: []string{path}, Parents: true, Next: func(ts []*engine.Target) error {
			ts[0].After = engine.After{Kind: guardfs.KindFile, Content: []byte(content)}
			return nil
		}})
		return err
	}
	x := grow(t, nil)
	x.Close()
	x.fault = func(string) *guardfs.Fault {
		if _, gone := os.Lstat(path); gone != nil {
			return nil
		}
		second.Do(func() { // it was published just now
			done := make(chan struct{})
			wg.Go(func() { err = put(other, x.call("other"), "second"); close(done) })
			select {
			case <-done:
			case <-time.After(100 * time.Millisecond): // it waits
			}
		})
		return nil
	}
	path = x.ws + "/new/f"
	x.open()
	var oerr error
	other, oerr = engine.OpenOver(engine.Options{Config: x.cfg, Judge: inside(x.ws, x.deny), DataDir: x.data})
	if oerr != nil {
		t.Fatal(oerr)
	}
	defer other.Close()
	if err := put(x.Engine, x.call("s"), "first"); err != nil {
		t.Errorf("the first: %v", err)
	}
	if wg.Wait(); err != nil {
		t.Errorf("the second: %v", err)
	}
	if got, err := os.ReadFile(path); string(got) != "second" {
		t.Errorf("it holds %q, %v", got, err)
	}
}

// Two who take the same back at the same time wait for each other: everything is back, one of them has nothing left to do and says so, and what the other
// did is one step of the history.
func TestTwoRestoreTheSame(t *testing.T) {
	t.Parallel()
	const files = 8
	for round := range 6 {
		x := grow(t, nil)
		other, err := engine.OpenOver(engine.Options{Config: x.cfg, Judge: inside(x.ws, x.deny), DataDir: x.data})
		if err != nil {
			t.Fatal(err)
		}
		defer other.Close()
		c := x.call("s")
		c.Turn = "t"
		x.BeginTurn(ctx, c)
		for i := range files {
			x.put("s", fmt.Sprintf("n/%d/x", i), "new\n")
		}
		full := x.looks()
		both := func(r checkpoint.Restore) {
			t.Helper()
			var wg sync.WaitGroup
			var points [2]string
			for i, e := range []*engine.Engine{x.Engine, other} {
				wg.Go(func() {
					done, err := e.Restore(ctx, x.call("s"), r, engine.RestoreOptions{})
					if err != nil {
						t.Errorf("round %d: %v", round, err)
						return
					}
					points[i] = done.Checkpoint
					if len(done.Kept) > 0 || done.Idle != (done.Checkpoint == "") {
						t.Errorf("round %d: kept %v, idle %v, checkpoint %q", round, done.Kept, done.Idle, done.Checkpoint)
					}
				})
			}
			wg.Wait()
			if points[0] != "" && points[1] != "" {
				t.Errorf("round %d: both have changed something: %v", round, points)
			}
		}
		both(rewindTo("t"))
		x.has("n/0/x", "-")
		if _, err := x.Undo(ctx, c, engine.RestoreOptions{}); err != nil || x.looks() != full {
			t.Fatalf("round %d: %v\n%s\nwant\n%s", round, err, x.looks(), full)
		}
		done, err := x.Redo(ctx, c, engine.RestoreOptions{})
		if err != nil {
			t.Fatal(err)
		}
		both(checkpoint.Restore{ID: checkpoint.ID(done.Checkpoint)})
		if x.looks() != full {
			t.Errorf("round %d:\n%s\nwant\n%s", round, x.looks(), full)
		}
	}
}
