//go:build linux && !rooted

package engine_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"moltisfs/checkpoint"
	"moltisfs/internal/engine"
	"moltisfs/internal/guardfs"
)

func TestCopyLarge(t *testing.T) {
	t.Parallel()
	x := grow(t, tight)
	content := strings.Repeat("0123456789abcde\n", 200_000) // several pieces
	from := x.write("large", content)
	x.write("tree/a", "a\n")
	x.write("tree/large", content)
	was := x.looks()
	for _, a := range []engine.CopyArgs{
		{From: from, To: x.ws + "/new"},
		{From: from, To: x.ws + "/tree/a", Overwrite: true},
		{From: x.ws + "/tree", To: x.ws + "/d/tree", Recursive: true, Rules: engine.Rules{Parents: true}},
	} {
		c := x.call("s")
		done, err := x.Copy(ctx, c, a)
		if err != nil || done.Skipped != engine.SkippedNewTooLarge {
			t.Fatalf("%+v: %+v %v", a, done, err)
		}
		name := strings.TrimPrefix(a.To, x.ws+"/")
		if a.Recursive {
			name += "/large"
			x.reads("d/tree/a", "a\n")
		}
		x.reads(name, content)
		op, err := x.Checkpoint(ctx, x.call("s"), checkpoint.ID(done.Checkpoint))
		must(t, err)
		for _, ch := range op.Changes {
			if ch.Path == x.ws+"/"+name && (ch.After.Hash != engine.HashOf([]byte(content)) || ch.After.Size != int64(len(content)) || ch.AfterStored) {
				t.Errorf("on record: %+v", ch)
			}
		}
		if c.Trace.After != engine.HashOf([]byte(content)) && !a.Recursive {
			t.Errorf("%s: the audit log has %q", name, c.Trace.After)
		}
		copied := x.looks()
		for _, step := range []struct {
			run  func(context.Context, *engine.Call, engine.RestoreOptions) (*engine.Restored, error)
			want string
		}{{x.Undo, was}, {x.Redo, copied}, {x.Undo, was}} {
			if a.Overwrite { // what cannot be brought back is not overwritten
				break
			}
			if _, err := step.run(ctx, x.call("s"), engine.RestoreOptions{}); err != nil || x.looks() != step.want {
				t.Fatalf("%s: %v\n%.2000s", name, err, x.looks())
			}
		}
		if a.Overwrite {
			if _, err := x.Undo(ctx, x.call("s"), engine.RestoreOptions{}); !engine.WouldLose.In(err) {
				t.Errorf("%v", err)
			}
			x.reads(name, content)
			must(t, errors.Join(os.Remove(x.ws+"/tree/a"), os.WriteFile(x.ws+"/tree/a", []byte("a\n"), 0o640)))
		}
	}
	if done, err := x.Copy(ctx, x.call("s"), engine.CopyArgs{From: from, To: from, Overwrite: true}); err != nil || !done.Idle {
		t.Errorf("onto itself: %+v %v", done, err)
	}
}

// A person is told how much is copied, and that it is not shown.
func TestCopyLargeIsAsked(t *testing.T) {
	t.Parallel()
	x, a := asking(t)
	x.cfg.Checkpoint.MaxFileBytes = int64(len(large)) - 1
	x.Close()
	x.open()
	from := x.write("large", large)
	c := x.call("s")
	c.Approver = a
	a.while = func() { x.write("large", large+"more\n") }
	if _, err := x.Copy(ctx, c, engine.CopyArgs{From: from, To: x.ws + "/new"}); code(err) != engine.CodeConflict {
		t.Errorf("another content than was asked about: %v", err)
	}
	x.has("new", "-")
	a.while = nil
	if _, err := x.Copy(ctx, c, engine.CopyArgs{From: from, To: x.ws + "/new"}); err != nil {
		t.Error(err)
	}
	q := a.asked[len(a.asked)-1]
	if all := strings.Join(q.Warnings, "\n"); !strings.Contains(all, fmt.Sprint(len(large)+5, " bytes")) || !strings.Contains(all, "not shown") {
		t.Errorf("%+v", q)
	}
}

// Others write into the source, or put another file or a link in its place, while it is copied: what
// was there is copied, or it is a conflict. No mixture gets a name, and nothing from outside.
func TestCopyLargeBesideOthers(t *testing.T) {
	t.Parallel()
	content, theirs := bytes.Repeat([]byte("a"), 3<<20), bytes.Repeat([]byte("b"), 3<<20)
	for name, change := range map[string]func(x *tree) error{
		"written": func(x *tree) error { return os.WriteFile(x.ws+"/large", theirs, 0o600) },
		"grown":   func(x *tree) error { x.appendFile("large", "more"); return nil },
		"cut":     func(x *tree) error { return os.Truncate(x.ws+"/large", 5) },
		"another": func(x *tree) error { return os.Rename(x.ws+"/theirs", x.ws+"/large") },
		"a link": func(x *tree) error {
			return errors.Join(os.Remove(x.ws+"/large"), os.Symlink(x.data+"/secret", x.ws+"/large"))
		},
	} {
		x := grow(t, tight)
		must(t, os.WriteFile(x.data+"/secret", theirs, 0o600))
		system := callsOf(x)
		conflicts := 0
		for n := first(3); ; n += 3 {
			must(t, errors.Join(os.RemoveAll(x.ws+"/large"), os.RemoveAll(x.ws+"/d"),
				os.WriteFile(x.ws+"/large", content, 0o600), os.WriteFile(x.ws+"/theirs", theirs, 0o600)))
			count := int64(0)
			hook := func(string) *guardfs.Fault {
				if count++; count == n {
					must(t, change(x))
				}
				return nil
			}
			system.hook.Store(&hook)
			err := copyLarge(ctx, x.Engine, x.call("s"), x.ws)
			system.hook.Store(nil)
			if count < n {
				break
			}
			got, rerr := os.ReadFile(x.ws + "/d/new")
			switch {
			case err != nil && rerr != nil:
				conflicts++
			case err == nil && (bytes.Equal(got, content) || name != "a link" && bytes.Equal(got, theirs)):
			case err == nil && (name == "grown" && len(got) == len(content)+4 || name == "cut" && len(got) == 5):
			default:
				t.Fatalf("%s, call %d: %v, %d bytes", name, n, err, len(got))
			}
		}
		if conflicts == 0 {
			t.Errorf("%s: it was never met", name)
		}
	}
}

// A disk that is full, and a caller who gives up in the middle: nothing is left behind.
func TestCopyLargeEndsEarly(t *testing.T) {
	t.Parallel()
	x := grow(t, tight)
	x.write("large", strings.Repeat("a", 5<<20))
	was, system := x.looks(), callsOf(x)
	for name, want := range map[string]engine.Cause{"write": engine.DiskFull, "fallocate": engine.DiskFull, "cancel": engine.Cancelled} {
		ctx, cancel := context.WithCancel(ctx)
		writes := 0
		hook := func(op string) *guardfs.Fault {
			if op == "write" {
				writes++
			}
			switch {
			case op == "write" && name == "cancel" && writes == 2:
				cancel()
			case op == name && (name != "write" || writes == 3):
				return &guardfs.Fault{Err: syscall.ENOSPC}
			}
			return nil
		}
		system.hook.Store(&hook)
		err := copyLarge(ctx, x.Engine, x.call("s"), x.ws)
		system.hook.Store(nil)
		cancel()
		if err == nil || engine.Reason(err).Cause != want || writes > 3 || x.looks() != was {
			t.Errorf("%s: %v, after %d writes", name, err, writes)
		}
	}
}

// Whatever goes wrong with the N-th system call of a copy: it is there as a whole, or not at all, and
// the answer says which.
func TestFaultAtEveryCallOfALargeCopy(t *testing.T) {
	t.Parallel()
	faults := badCalls()
	faults["ENOSPC"] = badCall{guardfs.Fault{Err: syscall.ENOSPC}, false}
	back, forth := 0, 0
	for name, bad := range faults {
		x := grow(t, tight)
		system := callsOf(x)
		x.write("large", large)
		was := x.looks()
		for n := first(1); ; n++ {
			must(t, os.RemoveAll(x.ws+"/d"))
			call, err := system.fail(n, bad, func() error { return copyLarge(ctx, x.Engine, x.call("s"), x.ws) })
			if call == "" {
				must(t, err)
				break
			}
			if bad.lasting {
				x.Close()
				x.open()
			}
			got, rerr := os.ReadFile(x.ws + "/d/new")
			switch {
			case x.halfWay() != nil:
				t.Fatalf("%s, call %d (%s): it is half-way: %v", name, n, call, err)
			case rerr != nil && err != nil && bare(x.looks()) == bare(was):
				back++
			case rerr == nil && string(got) == large && (err == nil || bad.lasting):
				forth++
			default:
				t.Fatalf("%s, call %d (%s): %v, %d bytes\n%.500s", name, n, call, err, len(got), x.looks())
			}
		}
	}
	t.Logf("%d times nothing, %d times all", back, forth)
	if back == 0 || forth == 0 {
		t.Error("no fault did what this is about")
	}
}
