package engine

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"moltisfs/checkpoint"
	"moltisfs/config"
	"moltisfs/internal/guardfs"
)

// halves is an engine, over a directory of its own, that sees what other processes leave half-way.
type halves struct {
	*Engine
	t    *testing.T
	dir  string
	data string
	db   *checkpoint.DB
}

func newHalves(t *testing.T) *halves {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	h := &halves{t: t, dir: filepath.ToSlash(dir), data: t.TempDir()}
	h.open()
	t.Cleanup(func() { h.Close() })
	return h
}

func (h *halves) open() {
	h.t.Helper()
	cfg := config.Default().Tools.FS
	cfg.RequireApproval, cfg.CheckpointBeforeMutation = false, true
	cfg.Durability, cfg.Checkpoint.Durability = "none", "relaxed"
	var err error
	if h.Engine, err = OpenOver(Options{Config: cfg, Judge: anything{}, DataDir: h.data}); err == nil {
		h.db, err = h.points.open()
	}
	if err != nil {
		h.t.Fatal(err)
	}
}

// lay makes files with that content; "-" removes them.
func (h *halves) lay(content string, names ...string) {
	h.t.Helper()
	for _, name := range names {
		path := filepath.Join(h.dir, name)
		err := os.Remove(path)
		if content != "-" {
			err = os.WriteFile(path, []byte(content), 0o644)
		}
		if err != nil {
			h.t.Fatal(err)
		}
	}
}

func (h *halves) has(content string, names ...string) {
	h.t.Helper()
	for _, name := range names {
		b, err := os.ReadFile(filepath.Join(h.dir, name))
		if errors.Is(err, fs.ErrNotExist) {
			b, err = []byte("-"), nil
		}
		if err != nil || string(b) != content {
			h.t.Errorf("%s holds %q, should %q: %v", name, b, content, err)
		}
	}
}

func fileState(content string) checkpoint.State {
	if content == "-" {
		return checkpoint.State{Kind: checkpoint.Absent}
	}
	return checkpoint.State{Kind: checkpoint.File, Mode: 0o644, UID: uint32(max(os.Getuid(), 0)), GID: uint32(max(os.Getgid(), 0)), Size: int64(len(content)), Hash: HashOf([]byte(content))}
}

// saves puts a change on record.
func (h *halves) saves(kind, before, after string, names ...string) checkpoint.ID {
	h.t.Helper()
	op := checkpoint.Op{Tool: "test", Kind: kind, Principal: "p", Session: "s", Turn: "other"}
	for _, name := range names {
		if dir := filepath.Dir(name); dir != "." {
			op.Changes = append(op.Changes, checkpoint.Change{Path: h.dir + "/" + dir, Role: checkpoint.RoleParent, After: checkpoint.State{Kind: checkpoint.Dir, Mode: 0o755}})
		}
		c := checkpoint.Change{Path: h.dir + "/" + name, Role: "target", Before: fileState(before), After: fileState(after), AfterContent: []byte(after)}
		if before != "-" {
			c.Content = []byte(before)
		}
		op.Changes = append(op.Changes, c)
	}
	saved, err := h.db.Save(context.Background(), op)
	if err != nil {
		h.t.Fatal(err)
	}
	return saved.ID
}

// dies leaves the mark of a change, as the process does that dies half-way through it.
func (h *halves) dies(id checkpoint.ID) {
	h.t.Helper()
	in, err := h.db.Intend(id)
	if err == nil {
		err = in.Leave()
	}
	if err != nil {
		h.t.Fatal(err)
	}
}

func (h *halves) puts(turn, content string, names ...string) error {
	var paths []string
	for _, name := range names {
		paths = append(paths, h.dir+"/"+name)
	}
	_, err := h.ChangeFiles(context.Background(), h.call(turn), Files{Paths: paths, Parents: true, Next: func(ts []*Target) error {
		for _, t := range ts {
			t.After = After{Kind: guardfs.KindFile, Content: []byte(content)}
		}
		return nil
	}})
	return err
}

func (h *halves) call(turn string) *Call {
	return &Call{ID: "c", Principal: "p", Session: "s", Turn: turn, Tool: "test"}
}

func (h *halves) outcome(id checkpoint.ID) checkpoint.Outcome {
	h.t.Helper()
	op, err := h.db.Get(context.Background(), id, checkpoint.Scope{AllSessions: true})
	if err != nil {
		h.t.Fatal(err)
	}
	return op.Outcome
}

// What is taken back of a change that made a new file in a new directory waits for whoever makes the same, and leaves it to them.
func TestTakingBackWaitsForWhoMakesTheSame(t *testing.T) {
	h := newHalves(t)
	id := h.saves(checkpoint.KindEdit, "-", "same\n", "d/f")
	h.dies(id)
	others, err := guardfs.OpenLocks(filepath.Join(h.data, "locks"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"d", "d/f"} {
		unlock, err := others.Lock(context.Background(), guardfs.NameKey(h.dir+"/"+name))
		if err != nil {
			t.Fatal(err)
		}
		h.lockWait = 20 * time.Millisecond
		if err := h.recover(context.Background(), time.Now().Add(h.lockWait)); err != nil {
			t.Fatal(err)
		}
		unlock()
		if left, err := checkpoint.Marked(h.points.dir); err != nil || len(left) != 1 {
			t.Fatalf("while %s is locked: marked are %v, %v", name, left, err)
		}
	}
	// They make it while it is waited for them: their directory has a lock of its own, and their file is theirs.
	unlock, err := others.Lock(context.Background(), guardfs.NameKey(h.dir+"/d"))
	if err != nil {
		t.Fatal(err)
	}
	h.lockWait = time.Minute
	done := make(chan error)
	go func() { done <- h.recover(context.Background(), time.Now().Add(h.lockWait)) }()
	if err := os.Mkdir(h.dir+"/d", 0o755); err != nil {
		t.Fatal(err)
	}
	h.lay("same\n", "d/f")
	theirs := h.saves(checkpoint.KindEdit, "-", "same\n", "d/f")
	unlock()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	h.has("same\n", "d/f")
	if mine, its := h.outcome(id), h.outcome(theirs); mine != checkpoint.Foreign || its == checkpoint.Aborted {
		t.Errorf("the cut off one is %q, theirs %q", mine, its)
	}
}

// A change that looks made because others made the rest of it was not.
func TestHalfMadeByOthers(t *testing.T) {
	h := newHalves(t)
	h.lay("new", "a", "b")
	id := h.saves(checkpoint.KindEdit, "old", "new", "a", "b")
	h.dies(id)
	h.saves(checkpoint.KindEdit, "old", "new", "b")
	if err := h.recover(context.Background(), time.Now().Add(h.lockWait)); err != nil {
		t.Fatal(err)
	}
	h.has("new", "a", "b")
	if o := h.outcome(id); o != checkpoint.Foreign {
		t.Errorf("it is %q", o)
	}
}

// Whoever waited for the locks of a process that dies half-way takes that back first, and then makes all of its own change.
func TestWhoeverWaitedTakesBackFirst(t *testing.T) {
	ctx := context.Background()
	all := []string{"a", "b", "c"}
	t.Run("write", func(t *testing.T) {
		h := newHalves(t)
		h.lay("old", all...)
		h.dies(h.saves(checkpoint.KindEdit, "old", "new", all...))
		h.lay("new", "a")
		if err := h.puts("t", "mine", "c"); err != nil {
			t.Fatal(err)
		}
		h.has("old", "a", "b")
		h.has("mine", "c")
	})
	t.Run("rewind", func(t *testing.T) {
		h := newHalves(t)
		h.lay("old", all...)
		h.BeginTurn(ctx, h.call("t"))
		if err := h.puts("t", "new", all...); err != nil {
			t.Fatal(err)
		}
		plans := 0
		if _, err := h.carryOut(ctx, h.call("t2"), RestoreOptions{}, func(db *checkpoint.DB) (*checkpoint.Plan, error) {
			plan, err := db.Plan(ctx, checkpoint.Restore{Turn: "t", Principal: "p", Session: "s"})
			if plans++; plans == 1 { // the same rewind by another, who had the locks, and dies
				h.dies(h.saves(checkpoint.KindRestore, "new", "old", all...))
				h.lay("old", "a")
			}
			return plan, err
		}); err != nil {
			t.Fatal(err)
		}
		h.has("old", all...)
		if plans != 2 {
			t.Errorf("planned %d times", plans)
		}
		h.Close()
		h.open()
		if _, err := h.Undo(ctx, h.call("t3"), RestoreOptions{}); err != nil {
			t.Fatal(err)
		}
		h.has("new", all...)
	})
	t.Run("taken back by another", func(t *testing.T) {
		h := newHalves(t)
		h.lay("old", all...)
		id := h.saves(checkpoint.KindEdit, "old", "new", all...)
		h.dies(id)
		h.lay("new", "a")
		in, err := h.db.TakeOver(id) // and waits for the lock, which is not its turn yet
		if err != nil || in == nil {
			t.Fatal(in, err)
		}
		done := make(chan error, 1)
		go func() { done <- h.puts("t", "mine", "a") }()
		select {
		case err := <-done:
			t.Fatalf("it did not wait: %v", err)
		case <-time.After(50 * time.Millisecond):
		}
		h.has("new", "a")
		h.lay("old", "a")
		if err := errors.Join(h.db.Settle(ctx, id, checkpoint.Aborted), in.Done(), <-done); err != nil {
			t.Fatal(err)
		}
		h.has("mine", "a")
	})
}
