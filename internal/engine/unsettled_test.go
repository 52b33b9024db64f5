//go:build linux && !rooted

package engine

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"moltisfs/checkpoint"
	"moltisfs/internal/guardfs"
)

// cuts saves changes of these files that were never made, as a process does that is killed before them.
func (h *halves) cuts(names ...string) (ids []checkpoint.ID) {
	h.t.Helper()
	dir := filepath.Join(h.data, "checkpoints")
	before, _ := filepath.Glob(dir + "/writers/*")
	had := map[string]bool{}
	for _, name := range before {
		had[name] = true
	}
	db, err := checkpoint.Open(dir, checkpoint.Options{Durability: checkpoint.Relaxed, Settles: true})
	if err != nil {
		h.t.Fatal(err)
	}
	mine := h.db
	h.db = db
	for _, name := range names {
		ids = append(ids, h.saves(checkpoint.KindEdit, "old", "new", name))
	}
	h.db = mine
	left := map[string][]byte{}
	now, _ := filepath.Glob(dir + "/writers/*")
	for _, name := range now {
		if !had[name] {
			if left[name], err = os.ReadFile(name); err != nil {
				h.t.Fatal(err)
			}
		}
	}
	if err := db.Close(); err != nil || len(left) == 0 {
		h.t.Fatal(len(left), err)
	}
	for name, b := range left {
		if err := os.WriteFile(name, b, 0o600); err != nil {
			h.t.Fatal(err)
		}
	}
	return ids
}

// A restore does not plan with a change of which it is not known whether it was made, because a process that stands still holds the locks of its paths, or another one
// waits for them to find out: it is refused. One that is not about that change does not wait for it.
func TestRestoreOfWhatIsNotSettled(t *testing.T) {
	ctx := context.Background()
	h := newHalves(t)
	second := &halves{t: t, dir: h.dir, data: h.data}
	second.open()
	defer second.Close()
	h.lay("old", "a", "b", "c")
	other := h.call("t")
	other.Session = "other"
	edit := func(c *Call, name string) {
		t.Helper()
		if _, err := h.ChangeFiles(ctx, c, Files{Paths: []string{h.dir + "/" + name}, Next: func(ts []*Target) error {
			ts[0].After = After{Kind: guardfs.KindFile, Content: []byte("edited")}
			return nil
		}}); err != nil {
			t.Fatal(err)
		}
	}
	edit(other, "c")
	edit(h.call("t"), "b")
	cut := h.cuts("a", "a", "a")
	stopped, err := guardfs.OpenLocks(filepath.Join(h.data, "locks"))
	if err != nil {
		t.Fatal(err)
	}
	place, err := h.fs.Place(h.dir + "/a")
	if err != nil {
		t.Fatal(err)
	}
	defer place.Close()
	letGo, err := stopped.Lock(ctx, place.LockKey())
	if err != nil {
		t.Fatal(err)
	}
	refused := func(when string) {
		t.Helper()
		done, err := h.Undo(ctx, h.call("t"), RestoreOptions{})
		if e, ok := errors.AsType[*Refusal](err); !ok || e.Cause != Unsettled || e.Facts != cut[len(cut)-1] {
			t.Fatalf("%s: %+v, %v", when, done, err)
		}
		h.has("edited", "b")
	}
	h.lockWait = 50 * time.Millisecond
	refused("its path is locked")

	h.lockWait = time.Hour
	if _, err := h.Undo(ctx, other, RestoreOptions{}); err != nil {
		t.Fatal(err)
	}
	h.has("old", "c")

	// Another process finds out, and waits for the lock.
	found := make(chan error, 1)
	go func() {
		var err error
		for err == nil && checkpoint.AnyCutOff(second.points.dir) { // the look below may come between
			err = second.recover(ctx, time.Now().Add(time.Hour))
		}
		found <- err
	}()
	for free := true; free; time.Sleep(time.Millisecond) { // until it has the file alone
		free = false
		if err := h.db.CutOff(func(checkpoint.ID) bool { free = true; return false }); err != nil {
			t.Fatal(err)
		}
	}
	h.lockWait = 50 * time.Millisecond
	refused("another looks")
	letGo()
	if err := <-found; err != nil {
		t.Fatal(err)
	}
	for _, id := range cut {
		if o := h.outcome(id); o != checkpoint.Aborted {
			t.Errorf("%s is %q", id, o)
		}
	}
	if _, err := h.Undo(ctx, h.call("t"), RestoreOptions{}); err != nil {
		t.Fatal(err)
	}
	h.has("old", "b")
}
