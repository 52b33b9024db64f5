//go:build linux

package engine_test

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"moltisfs/internal/engine"
	"moltisfs/internal/guardfs"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
)

// faults has each call of a change fail once.
type faults struct {
	kinds  map[string]badCall // of faults; nil: badCalls
	stride int64              // each so manieth call; see every
	grow   func(t *testing.T) *tree
	lay    func(x *tree)        // makes what is there before the change
	run    act                  // the change
	back   act                  // takes it back, and is as faulty; nil: lay makes the tree anew before each fault
	looks  func(x *tree) string // what must be as before or as it should become
	inOne  bool                 // an answer that is an error says that nothing is made; else something after it may have gone wrong
	open   bool                 // a fault may leave the change open to the next start, though later calls work
	late   bool                 // a change that is open still may have been said to be made
	also   func(x *tree, f fault)

	cells, none, all, again int // faults; nothing was made, all was; the next start had to mend it
}

// A fault is one that the change met.
type fault struct {
	what   string // for messages
	bad    badCall
	err    error  // the answer
	before string // the tree before it, as tree.looks has it
	made   bool
	left   bool // it was half-way, and the next start mended it
}

// play has every kind of fault at each call: after it, or after the next start where that has something to mend, all is as before or as it should
// become, and the answer says which.
func (f *faults) play(t *testing.T) {
	kinds := f.kinds
	if kinds == nil {
		kinds = badCalls()
	}
	for name, bad := range kinds {
		t.Run(name, func(t *testing.T) { f.playOne(t, bad) })
	}
	t.Logf("%d faults: %d times nothing, %d times all; the next start had to mend %d", f.cells, f.none, f.all, f.again)
	if f.cells < 10*len(kinds) || f.none == 0 || f.all == 0 || f.again == 0 {
		t.Error("no fault did what this is about")
	}
}

func (f *faults) playOne(t *testing.T, bad badCall) {
	x := f.grow(t)
	system := callsOf(x)
	f.lay(x)
	from := f.looks(x)
	must(t, x.does(f.run))
	to, steps := f.looks(x), []act{f.run, f.back}
	swap := func() { from, to, steps[0], steps[1] = to, from, steps[1], steps[0] }
	var history *snapshot
	if f.back != nil {
		if must(t, x.does(f.back)); f.looks(x) != from {
			t.Fatalf("without a fault it is taken back to\n%s\nit was\n%s", f.looks(x), from)
		}
		history = x.keep()
	}
	stride := cmp.Or(*every, f.stride)
	for n, over := first(t, stride), 0; ; n += stride {
		if f.back == nil {
			f.lay(x)
		} else {
			history.fault()
		}
		before := x.looks()
		call, err := system.fail(n, bad, func() error { return x.does(steps[0]) })
		if call == "" {
			must(t, err)
			if swap(); f.back == nil || over > 0 {
				return
			}
			over++ // the way back may have more calls
			continue
		}
		if bad.Short && call != "write" { // it is no error of any other call
			if f.back != nil {
				swap()
			}
			continue
		}
		f.cells++
		what, left := fmt.Sprintf("call %d (%s): %v", n, call, err), x.halfWay() != nil
		switch {
		case left && (err == nil && !f.late || !bad.lasting && !f.open):
			t.Fatalf("%s: it is half-way", what)
		case left:
			f.again++
			x.reopen()
		case bad.lasting:
			x.reopen()
		}
		now := f.looks(x)
		made := now == to && !(now == from && err != nil)
		switch {
		case x.halfWay() != nil:
			t.Fatalf("%s: it is half-way still", what)
		case made && (err == nil || left || bad.lasting || !f.inOne):
			f.all++
		case now == from && err != nil:
			f.none++
		default:
			t.Fatalf("%s, and the tree is\n%.2000s\nit was\n%.2000s\nand should have become\n%.2000s", what, now, from, to)
		}
		if f.also != nil {
			f.also(x, fault{what, bad, err, before, made, left})
		}
		if made && f.back != nil {
			swap()
		}
	}
}

// withFull are faults with those of a full disk, and of a short write where so it is said.
func withFull(short bool) map[string]badCall {
	kinds := badCalls()
	kinds["ENOSPC"] = badCall{guardfs.Fault{Err: syscall.ENOSPC}, false}
	if short {
		kinds["short"] = badCall{guardfs.Fault{Short: true}, false}
	}
	return kinds
}

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

// A badCall makes a system call fail, or that call and every later one.
type badCall struct {
	guardfs.Fault
	lasting bool
}

func badCalls() map[string]badCall {
	return map[string]badCall{
		"EIO":            {guardfs.Fault{Err: syscall.EIO}, false},
		"EIO, but did":   {guardfs.Fault{Err: syscall.EIO, After: true}, false},
		"EIO ever after": {guardfs.Fault{Err: syscall.EIO}, true},
	}
}

// calls are the system calls of a tree.
type calls struct {
	hook atomic.Pointer[func(op string) *guardfs.Fault]
	look func() // before each call that ends counts; nil
}

// callsOf opens the tree anew, under a hand that can make its calls fail.
func callsOf(x *tree) *calls {
	c := &calls{}
	x.fault = func(op string) *guardfs.Fault {
		if h := c.hook.Load(); h != nil {
			return (*h)(op)
		}
		return nil
	}
	x.reopen()
	return c
}

// meet runs step while hook sees each call.
func (c *calls) meet(hook func(op string) *guardfs.Fault, step func() error) error {
	c.hook.Store(&hook)
	defer c.hook.Store(nil)
	return step()
}

// onceBefore has do be done once, before the first call op.
func onceBefore(op string, do func()) func(string) *guardfs.Fault {
	var once atomic.Bool
	return func(called string) *guardfs.Fault {
		if called == op && once.CompareAndSwap(false, true) {
			do()
		}
		return nil
	}
}

// fail runs step while its n-th call goes wrong. hit is that call, "" when there are not so many.
func (c *calls) fail(n int64, bad badCall, step func() error) (hit string, err error) {
	return c.failFor(n, 1, bad, step)
}

// failFor is fail where so many calls go wrong.
func (c *calls) failFor(n, many int64, bad badCall, step func() error) (hit string, err error) {
	var count atomic.Int64
	var first atomic.Pointer[string]
	hook := func(op string) *guardfs.Fault {
		if k := count.Add(1); k >= n && (k < n+many || bad.lasting) {
			first.CompareAndSwap(nil, &op)
			return &bad.Fault
		}
		return nil
	}
	err = c.meet(hook, step)
	if op := first.Load(); op != nil {
		hit = *op
	}
	return hit, err
}

// beside runs step, and has do be done before its n-th call. met: there were so many.
func (c *calls) beside(n int64, do func(), step func() error) (met bool, err error) {
	err = c.meet(moment(n, func() { met = true; do() }), step)
	return met, err
}

// A fault at the N-th system call of the undo of a script's run over several files, or of its redo: all of them are as they were, or all are
// restored. A directory that stays is told.
func TestFaultAtEveryCallOfARewind(t *testing.T) {
	t.Parallel()
	told, firm := 0, false
	var kept []engine.Blocked
	restores := func(carry func(*engine.Call, context.Context, engine.RestoreOptions) (*engine.Restored, error)) act {
		return func(ctx context.Context, c *engine.Call, _ string) error {
			done, err := carry(c, ctx, engine.RestoreOptions{})
			if kept = nil; err == nil {
				kept = done.Kept
			}
			return err
		}
	}
	f := faults{kinds: withFull(false), stride: 6, run: restores((*engine.Call).Undo), back: restores((*engine.Call).Redo),
		grow:  func(t *testing.T) *tree { return grow(t, nil) },
		looks: func(x *tree) string { return bare(x.looks()) },
		lay: func(x *tree) {
			firm = !x.bestEffort()
			x.write("edited.txt", "old\n")
			x.write("gone/deep.txt", "old\n")
			must(x.t, os.Symlink("edited.txt", x.ws+"/link"))
			c := x.call("s")
			c.Run = 7
			for _, change := range [][2]string{{"edited.txt", "first\n"}, {"edited.txt", "new\n"}, {"made/new.txt", "new\n"}} {
				must(x.t, writes(change[1], change[0])(ctx, c, x.ws))
			}
			must(x.t, errOf(c.ChangeFiles(ctx, engine.Files{Paths: []string{x.ws + "/gone/deep.txt", x.ws + "/link"}, Drop: []string{x.ws + "/gone"},
				Links: map[string]bool{x.ws + "/link": true}, Next: gone})))
		},
		also: func(x *tree, f fault) {
			is := func(in, dir string) bool { return strings.Contains(in, dir+" d") }
			for _, d := range []string{"/made", "/gone"} {
				should := is(f.before, d) != f.made
				if f.bad.lasting && strings.Contains(x.looks(), d+"/.moltis-") { // see bare; it is not empty then
					must(x.t, os.RemoveAll(x.ws+d))
					if should {
						must(x.t, os.Mkdir(x.ws+d, 0o750))
					}
				}
				if is(x.looks(), d) == should {
					continue
				}
				if !slices.ContainsFunc(kept, func(k engine.Blocked) bool { return k.Path == x.ws+d && k.Why.Name != "" }) {
					x.t.Fatalf("%s: %s is there: %v", f.what, d, !should)
				}
				told++
				must(x.t, os.Remove(x.ws+d)) // else it spares the next round the calls that make it
			}
		}}
	f.play(t)
	if told == 0 && firm && *every == 1 { // few calls leave one; elsewhere what fails once is done again
		t.Error("no directory ever stayed: that this is told is not tested")
	}
}

// faultsOfARewind has each stride-th call fail of a rewind by which files, links and directories come and go: all are as they were, or all are
// restored. more lays what is there besides, in the turn t.
func faultsOfARewind(t *testing.T, stride int64, more func(x *tree)) {
	f := faults{stride: stride, run: rewinds, back: undoes,
		grow:  func(t *testing.T) *tree { return grow(t, nil) },
		looks: func(x *tree) string { return bare(x.looks()) },
		lay:   func(x *tree) { x.goesAndComes(); more(x) },
		also: func(x *tree, f fault) {
			if f.err != nil && !f.made && !f.bad.lasting && dirs(x.looks()) != dirs(f.before) {
				x.t.Fatalf("%s, and the directories are\n%s\nthey were\n%s", f.what, dirs(x.looks()), dirs(f.before))
			}
		}}
	f.play(t)
}
