//go:build linux && !rooted

package engine_test

import (
	"cmp"
	"errors"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"moltisfs/internal/engine"
	"moltisfs/internal/guardfs"
)

// Whatever goes wrong with the N-th system call of a move, or of making a directory: all is as it was,
// or all is as it should become, and the answer says which; then an undo brings back what was there.
func TestFaultAtEveryCallOfAMove(t *testing.T) {
	t.Parallel()
	faults := badCalls()
	faults["EXDEV"] = badCall{guardfs.Fault{Err: syscall.EXDEV}, false}
	deeds := map[string]func(x *tree) error{
		"tree": func(x *tree) error {
			_, err := x.Move(ctx, x.call("s"), engine.MoveArgs{From: x.ws + "/d", To: x.ws + "/n/m/d", Rules: engine.Rules{Parents: true}})
			return err
		},
		"over": func(x *tree) error {
			_, err := x.Move(ctx, x.call("s"), engine.MoveArgs{From: x.ws + "/f", To: x.ws + "/there", Overwrite: true})
			return err
		},
		"mkdir": func(x *tree) error {
			_, err := x.Mkdir(ctx, x.call("s"), engine.MkdirArgs{Path: x.ws + "/n/m/d", Rules: engine.Rules{Parents: true}})
			return err
		},
	}
	cells, back, forth, again := 0, 0, 0, 0
	for name, bad := range faults {
		for what, run := range deeds {
			t.Run(name+" "+what, func(t *testing.T) {
				x := grow(t, nil)
				system := callsOf(x)
				lay := func() {
					must(t, errors.Join(os.RemoveAll(x.ws), os.Mkdir(x.ws, 0o700)))
					x.layMove()
				}
				lay()
				old := x.looks()
				must(t, run(x))
				moved := x.looks()
				stride := cmp.Or(*every, 17)
				for n := first(stride); ; n += stride {
					lay()
					call, err := system.fail(n, bad, func() error { return run(x) })
					if call == "" {
						must(t, err)
						break
					}
					cells++
					if bad.lasting {
						if x.halfWay() != nil {
							again++
						}
						x.Close()
						x.open()
					}
					switch now := x.looks(); {
					case x.halfWay() != nil:
						t.Fatalf("call %d (%s): it is half-way: %v", n, call, err)
					case now == old && err != nil:
						back++
						continue
					case bare(now) == bare(old) && err != nil && strings.Count(now, "\n") <= strings.Count(old, "\n")+2:
						back++ // a directory, or a name on record, stays where its removal failed
						continue
					case now != moved:
						t.Fatalf("call %d (%s): %v, and the tree is\n%s\nit was\n%s\nand should have become\n%s", n, call, err, now, old, moved)
					}
					if forth++; err != nil && !bad.lasting {
						t.Fatalf("call %d (%s): it was made, and the answer is %v", n, call, err)
					}
					if _, err := x.Undo(ctx, x.call("s"), engine.RestoreOptions{}); err != nil || x.looks() != old {
						t.Fatalf("call %d (%s), undone: %v\n%s", n, call, err, x.looks())
					}
				}
			})
		}
	}
	t.Logf("%d faults; %d put back, %d made; the next start had to mend %d", cells, back, forth, again)
	if back == 0 || forth == 0 || again == 0 {
		t.Error("no fault did what this is about")
	}
}

// A move of a tree waits for whoever changes a file in it, or makes one there, and takes along what that left.
func TestMoveWaitsForAnEdit(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"a", "new", "hollow/new", "sub/deep/c", "sub/n/m/new"} {
		x := grow(t, nil)
		x.layMove()
		swaps, goOn := make(chan bool), make(chan bool)
		var once sync.Once
		other, err := engine.OpenOver(engine.Options{Config: x.cfg, Judge: inside(x.ws, x.deny), DataDir: x.data,
			Fault: func(op string) *guardfs.Fault {
				if op == "rename" || op == "link" {
					once.Do(func() { swaps <- true; <-goOn })
				}
				return nil
			}})
		must(t, err)
		edited, moved := make(chan error), make(chan error, 1)
		go func() {
			_, _, err := other.Write(ctx, x.call("s"), engine.WriteArgs{Path: x.ws + "/d/" + name, Text: "new\n", Rules: engine.Rules{Parents: true}})
			edited <- err
		}()
		<-swaps
		go func() {
			_, err := x.Move(ctx, x.call("s"), engine.MoveArgs{From: x.ws + "/d", To: x.ws + "/g"})
			moved <- err
		}()
		select {
		case err := <-moved:
			close(goOn)
			t.Fatalf("%s: it did not wait: %v; the edit: %v", name, err, <-edited)
		case <-time.After(100 * time.Millisecond):
		}
		close(goOn)
		must(t, errors.Join(<-edited, <-moved, other.Close()))
		x.reads("g/"+name, "new\n")
	}
}
