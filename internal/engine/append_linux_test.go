//go:build linux && !rooted

package engine_test

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"moltisfs/checkpoint"
	"moltisfs/config"
	"moltisfs/internal/engine"
	"moltisfs/internal/guardfs"
)

// eachStore runs a test with a store that holds no more than the tail of large, and with one that holds all of it.
func eachStore(t *testing.T, run func(t *testing.T, store func(*config.FS))) {
	for name, store := range map[string]func(*config.FS){"tail": tight, "whole": nil} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run(t, store)
		})
	}
}

// A program that has a file open writes into it before and after an append: all its lines are there. As long as it has the file open, the
// append is not taken back unless that is forced.
func TestAppendUnderAWriter(t *testing.T) {
	t.Parallel()
	eachStore(t, func(t *testing.T, store func(*config.FS)) {
		for _, flag := range []int{0, os.O_APPEND} {
			x := grow(t, store)
			path := x.write("large", large)
			daemon, err := os.OpenFile(path, os.O_WRONLY|flag, 0)
			must(t, err)
			if flag == 0 {
				must(t, errOf(daemon.Seek(0, io.SeekEnd)))
			}
			say := func(line string) {
				must(t, errOf(daemon.WriteString(line)))
			}
			say("daemon 1\n")
			must(t, x.append("agent\n"))
			x.has("large", large+"daemon 1\nagent\n")
			if _, err = x.call("s").Undo(ctx, engine.RestoreOptions{}); !slices.Equal(blockedBy(err), []engine.Why{engine.HeldOpen}) {
				t.Errorf("undone under a writer: %v", err)
			}
			x.has("large", large+"daemon 1\nagent\n")
			if flag != 0 {
				say("daemon 2\n")
				x.has("large", large+"daemon 1\nagent\ndaemon 2\n")
				must(t, os.Truncate(path, int64(len(large+"daemon 1\nagent\n"))))
			}
			must(t, daemon.Close())
			must(t, x.does(undoes))
			x.has("large", large+"daemon 1\n")
		}
	})
}

// Somebody opens the file while its append is taken back, before any of the calls, and writes at once, or when it is over: the line is there,
// whatever the answer, and the file is either what it was or without the tail.
func TestCutUnderAWriter(t *testing.T) {
	t.Parallel()
	eachStore(t, func(t *testing.T, store func(*config.FS)) {
		x := grow(t, store)
		path := x.write("large", large)
		system := callsOf(x)
		undone, refused := 0, 0
		for n := int64(2); ; n++ {
			must(t, os.RemoveAll(path))
			x.write("large", large)
			must(t, x.append(mine))
			var daemon *os.File
			met, err := system.beside(n/2, func() {
				if daemon, _ = os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0); daemon != nil && n%2 == 0 {
					_, err := daemon.WriteString("theirs\n")
					must(t, errors.Join(err, daemon.Close()))
				}
			}, func() error { return x.does(undoes) })
			if !met {
				must(t, err)
				break
			}
			if daemon == nil { // nothing was there at that moment
				continue
			}
			if n%2 != 0 {
				_, werr := daemon.WriteString("theirs\n")
				must(t, errors.Join(werr, daemon.Close()))
			}
			b, rerr := os.ReadFile(path)
			must(t, rerr)
			switch now := string(b); {
			case err == nil && now == large+"theirs\n":
				undone++
			case err != nil && now == large+mine+"theirs\n" && x.halfWay() == nil:
				refused++
			default:
				t.Fatalf("call %d: %v, %d bytes\n%.300s", n, err, len(now), x.looks())
			}
		}
		if undone == 0 || refused == 0 {
			t.Errorf("%d undone, %d refused: the test tests less than it should", undone, refused)
		}
	})
}

// A write stores a part, and the process dies: the next start appends the rest, unless others have
// changed the file meanwhile. Nothing of theirs goes.
func TestTornAppend(t *testing.T) {
	t.Parallel()
	eachStore(t, func(t *testing.T, store func(*config.FS)) {
		part := mine[:(len(mine)+1)/2]
		for _, c := range []struct {
			name, others, want string // what is there after the start
			first              func(x *tree)
			exclude            bool
			outcome            checkpoint.Outcome
		}{
			{name: "ended", want: large + mine, outcome: checkpoint.Committed},
			{name: "others appended", others: "theirs\n", want: large + part + "theirs\n", outcome: checkpoint.Foreign},
			{name: "the store must not hold it", exclude: true, want: large + part, outcome: checkpoint.Foreign},
			{name: "cut off by others", first: func(x *tree) { must(x.t, os.Truncate(x.ws+"/large", 5)) }, want: large[:5], outcome: checkpoint.Foreign},
			{name: "taken back by others", first: func(x *tree) { must(x.t, os.Truncate(x.ws+"/large", int64(len(large)))) },
				want: large, outcome: checkpoint.Aborted},
			{name: "another file", first: func(x *tree) {
				must(x.t, os.Rename(x.ws+"/large", x.ws+"/old"))
				x.write("large", large+part)
			}, want: large + part, outcome: checkpoint.Foreign},
		} {
			t.Run(c.name, func(t *testing.T) {
				x := grow(t, func(fs *config.FS) {
					if store != nil {
						store(fs)
					}
					if c.exclude {
						fs.Checkpoint.Exclude = []string{"large"}
					}
				})
				x.write("large", large)
				x.tear(part)
				x.has("large", large+part)
				id := x.halfWay()[0]
				if c.first != nil {
					c.first(x)
				}
				x.appendFile("large", c.others)
				x.reopen()
				x.has("large", c.want)
				op, err := x.call("s").Checkpoint(ctx, id)
				must(t, err)
				if op.Outcome != c.outcome {
					t.Errorf("outcome %q, want %q", op.Outcome, c.outcome)
				}
			})
		}
	})
}

// tear appends mine, of which only a part is stored before nothing works any more.
func (x *tree) tear(part string) {
	x.t.Helper()
	system := callsOf(x)
	torn := false
	hook := func(op string) *guardfs.Fault {
		switch {
		case torn:
			return &guardfs.Fault{Err: syscall.EIO}
		case op == "write":
			torn = true
			return &guardfs.Fault{Short: true}
		}
		return nil
	}
	system.hook.Store(&hook)
	if err := x.append(mine); !engine.HalfMade.In(err) {
		x.t.Fatalf("%v", err)
	}
	system.hook.Store(nil)
}

func (x *tree) appendFile(name, text string) {
	x.t.Helper()
	f, err := os.OpenFile(x.ws+"/"+name, os.O_WRONLY|os.O_APPEND, 0)
	must(x.t, err)
	_, err = f.WriteString(text)
	must(x.t, errors.Join(err, f.Close()))
}

// Another process appends all the time: nothing of theirs is lost or torn, and all of ours is there
// once.
func TestAppendBesideOthers(t *testing.T) {
	t.Parallel()
	eachStore(t, func(t *testing.T, store func(*config.FS)) {
		x := grow(t, store)
		path := x.write("large", large)
		others := exec.Command("sh", "-c", `n=0; while [ -e "$1.go" ] && [ $n -lt 20000 ]; do n=$((n+1)); echo "theirs $n" >>"$1"; done; echo $n`, "-", path)
		x.write("large.go", "")
		var said bytes.Buffer
		others.Stdout = &said
		must(t, others.Start())
		rounds := 0
		for end := time.Now().Add(300 * time.Millisecond); time.Now().Before(end) || rounds < 20; rounds++ {
			if err := x.append(fmt.Sprintf("mine %d\n%s", rounds, mine)); err != nil {
				t.Error(err)
				break
			}
		}
		must(t, os.Remove(path+".go"))
		must(t, others.Wait())
		b, err := os.ReadFile(path)
		must(t, err)
		rest, ours, theirs := strings.TrimPrefix(string(b), large), 0, 0
		for len(rest) > 0 {
			if now, ok := strings.CutPrefix(rest, fmt.Sprintf("mine %d\n%s", ours, mine)); ok {
				rest, ours = now, ours+1
				continue
			}
			now, ok := strings.CutPrefix(rest, fmt.Sprintf("theirs %d\n", theirs+1))
			if !ok {
				t.Fatalf("torn after %d of ours and %d of theirs: %.60q", ours, theirs, rest)
			}
			rest, theirs = now, theirs+1
		}
		if ours != rounds || fmt.Sprint(theirs) != strings.TrimSpace(said.String()) || theirs == 0 {
			t.Errorf("%d of %d rounds are there, and %d lines of theirs, of %s", ours, rounds, theirs, said.String())
		}
	})
}

// Between the look and the write somebody puts another thing in the place of the file: a link that
// leads out, another file, another name of it. It is not written to.
func TestAppendToWhatWasSwapped(t *testing.T) {
	t.Parallel()
	eachStore(t, func(t *testing.T, store func(*config.FS)) {
		for name, swap := range map[string]func(x *tree, path string) error{
			"a link":   func(x *tree, path string) error { return cmp.Or(os.Remove(path), os.Symlink(x.data+"/victim", path)) },
			"a file":   func(x *tree, path string) error { return os.Rename(x.ws+"/victim", path) },
			"a name":   func(x *tree, path string) error { return os.Link(path, x.ws+"/name") },
			"a fifo":   func(_ *tree, path string) error { return cmp.Or(os.Remove(path), syscall.Mkfifo(path, 0o600)) },
			"nothing":  func(_ *tree, path string) error { return os.Remove(path) },
			"the tree": func(x *tree, path string) error { return os.Rename(x.ws+"/d", x.ws+"/e") },
		} {
			x := grow(t, store)
			path := x.write("d/large", large)
			x.write("victim", large)
			must(t, os.WriteFile(x.data+"/victim", []byte(large), 0o600))
			system := callsOf(x)
			for n := first(t, 1); ; n++ {
				must(t, errors.Join(os.RemoveAll(x.ws+"/d"), os.RemoveAll(x.ws+"/e"), os.RemoveAll(x.ws+"/name")))
				x.write("d/large", large)
				x.write("victim", large)
				met, err := system.beside(n, func() { must(t, swap(x, path)) }, func() error { return x.does(appends("d/large", "mine\n")) })
				if !met {
					break
				}
				for _, victim := range []string{x.data + "/victim", x.ws + "/victim"} {
					if b, rerr := os.ReadFile(victim); rerr == nil && string(b) != large {
						t.Fatalf("%s, call %d: %s was written to: %v", name, n, victim, err)
					}
				}
				if name != "a file" {
					continue
				}
				b, rerr := os.ReadFile(path)
				if rerr == nil && string(b) != large && err != nil {
					t.Fatalf("%s, call %d: written, and the answer is %v", name, n, err)
				}
			}
		}
	})
}

// A fault at the N-th system call of an append in place, or of its undo and redo: the tail is there, or not, and the answer says which; where it is
// there in part, the next start appends the rest.
func TestFaultAtEveryCallOfAnAppend(t *testing.T) {
	t.Parallel()
	eachStore(t, func(t *testing.T, store func(*config.FS)) {
		f := faults{kinds: withFull(true), stride: 1, inOne: true, open: true, run: appends("large", mine),
			grow: func(t *testing.T) *tree {
				x := grow(t, store)
				x.write("large", large)
				return x
			},
			lay:   func(x *tree) { must(x.t, os.Truncate(x.ws+"/large", int64(len(large)))) },
			looks: func(x *tree) string { return x.reading("large") }}
		f.play(t)
	})
}

func TestFaultAtEveryCallOfACut(t *testing.T) {
	t.Parallel()
	eachStore(t, func(t *testing.T, store func(*config.FS)) {
		f := faults{stride: 2, inOne: true, open: true, run: undoes, back: redoes,
			grow: func(t *testing.T) *tree { return grow(t, store) },
			lay: func(x *tree) {
				x.write("large", large)
				must(x.t, x.append(mine))
			},
			looks: func(x *tree) string { return x.reading("large") }}
		f.play(t)
	})
}
