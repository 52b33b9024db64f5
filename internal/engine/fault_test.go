//go:build linux

package engine_test

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"moltisfs/internal/engine"
	"moltisfs/internal/guardfs"
)

var history = flag.Int("history", 20, "the faults of a test that meet the same store, before it begins anew")

// snapshot is a data directory as it was while the tree looked like that.
type snapshot struct {
	x          *tree
	dir, tree  string
	left, back int // faults until it is put back; how often it was
}

// keep copies the data directory. A restore costs more the longer the history of its paths is, so
// a test of thousands of restores goes back to a short one from time to time.
func (x *tree) keep() *snapshot {
	x.t.Helper()
	s := &snapshot{x: x, dir: x.t.TempDir() + "/data", tree: x.looks(), left: *history}
	must(x.t, x.Close())
	copyAll(x.t, x.data, s.dir)
	x.open()
	return s
}

// fault counts one. After the last it puts the data directory back as soon as the tree looks as it did.
func (s *snapshot) fault() {
	s.x.t.Helper()
	if s.left--; s.left > 0 || s.x.looks() != s.tree {
		return
	}
	s.left, s.back = *history, s.back+1
	must(s.x.t, errors.Join(s.x.Close(), os.RemoveAll(s.x.data)))
	copyAll(s.x.t, s.dir, s.x.data)
	s.x.open()
}

// Whatever goes wrong with the N-th system call of the undo of a script's run over several files, or of its redo, for every N: all of them are as they were, or all are
// restored, and the answer says which. Where everything goes wrong from the N-th call on, that holds after the next start.
func TestFaultAtEveryCallOfARewind(t *testing.T) {
	t.Parallel()
	faults := badCalls()
	faults["ENOSPC"] = badCall{guardfs.Fault{Err: syscall.ENOSPC}, false}
	cells, again, toldOf, anew, firm := 0, 0, 0, 0, false
	for name, bad := range faults {
		t.Run(name, func(t *testing.T) {
			stride := cmp.Or(*every, 15)
			if name == "EIO" { // few calls are those that leave a directory, and one kind has to meet them
				stride = 1
			}
			x := grow(t, nil)
			firm = !x.bestEffort()
			system := callsOf(x)
			x.write("edited.txt", "old\n")
			x.write("gone/deep.txt", "old\n")
			if err := os.Symlink("edited.txt", x.ws+"/link"); err != nil {
				t.Fatal(err)
			}
			old := x.looks()
			c := x.call("s")
			c.Run = 7
			change := func(path, content string) {
				_, err := x.ChangeFiles(ctx, c, engine.Files{Paths: []string{x.ws + path}, Parents: true, Next: func(ts []*engine.Target) error {
					ts[0].After = engine.After{Kind: guardfs.KindFile, Content: []byte(content)}
					return nil
				}})
				if err != nil {
					t.Fatal(err)
				}
			}
			change("/edited.txt", "first\n")
			change("/edited.txt", "new\n")
			change("/made/new.txt", "new\n")
			for _, p := range []string{"/gone", "/link"} {
				if _, err := x.Delete(ctx, c, x.ws+p, engine.DeleteOptions{Recursive: true}); err != nil {
					t.Fatal(err)
				}
			}
			changed := x.looks()
			steps := []func(*engine.Engine, context.Context, *engine.Call, engine.RestoreOptions) (*engine.Restored, error){
				(*engine.Engine).Undo, (*engine.Engine).Redo,
			}
			from, to := changed, old
			history := x.keep()
			for n := first(stride); ; n += stride {
				history.fault()
				var kept []engine.Blocked
				call, err := system.fail(n, bad, func() error {
					done, err := steps[0](x.Engine, ctx, x.call("s"), engine.RestoreOptions{})
					if err == nil {
						kept = done.Kept
					}
					return err
				})
				if call == "" {
					if err != nil {
						t.Fatal(err)
					}
					break
				}
				cells++
				now := bare(x.looks())
				left := x.halfWay()
				if bad.lasting && left != nil {
					if err == nil {
						t.Fatalf("call %d (%s): said to be done:\n%s", n, call, now)
					}
					again++
					x.Close()
					x.open()
					now = bare(x.looks())
				}
				switch {
				case err != nil && now == bare(from):
				case now == bare(to): // done, though something after it went wrong
					steps[0], steps[1] = steps[1], steps[0]
					from, to = to, from
				default:
					t.Fatalf("call %d (%s): %v, and the tree is\n%s\nit was\n%s\nand should have become\n%s", n, call, err, now, from, to)
				}
				for _, d := range []string{"/made", "/gone"} {
					if bad.lasting && strings.Contains(x.looks(), d+"/.moltis-") { // see bare; it is not empty then
						must(t, os.RemoveAll(x.ws+d))
						if strings.Contains(from, d+" d") {
							must(t, os.Mkdir(x.ws+d, 0o750))
						}
					}
					told := slices.ContainsFunc(kept, func(k engine.Blocked) bool { return k.Path == x.ws+d && k.Why.Name != "" })
					there, should := strings.Contains(x.looks(), d+" d"), strings.Contains(from, d+" d")
					if there != should && !told {
						t.Fatalf("call %d (%s): %v, and %s is there: %v", n, call, err, d, there)
					}
					if there != should {
						toldOf++
						must(t, os.Remove(x.ws+d)) // else it spares the next round the calls that make it
					}
				}
				if left := x.halfWay(); left != nil && !bad.lasting {
					t.Fatalf("call %d (%s): marks are left: %v", n, call, left)
				}
			}
			anew += history.back
		})
	}
	t.Logf("%d faults; the next start had to mend %d; %d times with the first store", cells, again, anew)
	if anew == 0 && *history < cells/len(faults) {
		t.Error("the history was never short again")
	}
	if cells < 40*len(faults) {
		t.Errorf("only %d faults", cells)
	}
	if toldOf == 0 && firm { // elsewhere what fails once is done again
		t.Error("no directory ever stayed: that this is told is not tested")
	}
	if again == 0 {
		t.Error("no fault left anything to the next start: the test tests less than it should")
	}
}

// Whatever goes wrong with the N-th system call of a rewind in which files and directories trade places, for every N: all are as they were, or all are restored; where
// everything goes wrong from there on, after the next start.
func TestFaultAtEveryCallOfATrade(t *testing.T) {
	t.Parallel()
	faultsOfATrade(t, cmp.Or(*every, 27), 0, nil)
}

// faultsOfATrade has a fault at each stride-th call. With parked, so many new files each in two directories, one in the place of a file, are closed until they are published: few sees to that.
func faultsOfATrade(t *testing.T, stride int64, parked int, few func(x *tree, system *calls)) {
	cells, again, back, anew := 0, 0, 0, 0
	for name, bad := range badCalls() {
		t.Run(name, func(t *testing.T) {
			x := grow(t, nil)
			system := callsOf(x)
			old, traded := x.trade()
			for i := range parked {
				x.puts("t", fmt.Sprintf("file/n%d", i), fmt.Sprintln("new", i))
				x.puts("t", fmt.Sprintf("wide/n%d", i), fmt.Sprintln("new", i))
				traded = x.looks()
			}
			if _, err := x.Restore(ctx, x.call("s"), rewindTo("t"), engine.RestoreOptions{}); err != nil || x.looks() != old {
				t.Fatalf("without a fault: %v\n%s\nwant\n%s", err, x.looks(), old)
			}
			steps := []func(*engine.Engine, context.Context, *engine.Call, engine.RestoreOptions) (*engine.Restored, error){
				(*engine.Engine).Undo, (*engine.Engine).Redo,
			}
			if parked > 0 {
				few(x, system)
			}
			from, to := old, traded
			history := x.keep()
			step := stride
			if bad.lasting && parked > 0 { // each has a new start
				step *= 3
			}
			for n := first(step); ; n += step {
				history.fault()
				were := dirs(x.looks()) // more than there should be, where a removal failed in the round before
				call, err := system.fail(n, bad, func() error {
					_, err := steps[0](x.Engine, ctx, x.call("s"), engine.RestoreOptions{})
					return err
				})
				if call == "" {
					must(t, err)
					break
				}
				cells++
				now := bare(x.looks())
				left := x.halfWay()
				if left != nil && !bad.lasting {
					t.Fatalf("call %d (%s): marks are left: %v, %v", n, call, left, err)
				}
				if err != nil && !bad.lasting && dirs(x.looks()) != were {
					t.Fatalf("call %d (%s): %v, and the directories are\n%s\nthey were\n%s", n, call, err, dirs(x.looks()), were)
				}
				if bad.lasting && left != nil {
					if err == nil {
						t.Fatalf("call %d (%s): said to be done:\n%s", n, call, now)
					}
					again++
					x.Close()
					x.open()
					now = bare(x.looks())
				}
				switch {
				case err != nil && now == bare(from):
					back++
				case now == bare(to): // done, though something after it went wrong
					steps[0], steps[1] = steps[1], steps[0]
					from, to = to, from
				default:
					t.Fatalf("call %d (%s): %v, and the tree is\n%s\nit was\n%s\nand should have become\n%s", n, call, err, now, from, to)
				}
			}
			anew += history.back
		})
	}
	t.Logf("%d faults; %d put back, the next start had to mend %d; %d times with the first store",
		cells, back, again, anew)
	if cells < 10*len(badCalls()) || again == 0 || back == 0 {
		t.Error("no fault did what this is about")
	}
}

// dirs leaves out all but directories.
func dirs(looks string) string {
	var out []string
	for line := range strings.Lines(looks) {
		if _, mode, _ := strings.Cut(line, " "); strings.HasPrefix(mode, "d") {
			out = append(out, line)
		}
	}
	return strings.Join(out, "")
}
