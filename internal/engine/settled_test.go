package engine

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"moltisfs/checkpoint"
)

// jam makes it impossible to remove the mark of an operation. free makes it possible again.
func (h *halves) jam(id checkpoint.ID) (free func()) {
	h.t.Helper()
	mark := filepath.Join(h.data, "checkpoints", "journal", string(id))
	try := func(err error) {
		h.t.Helper()
		if err != nil {
			h.t.Fatal(err)
		}
	}
	try(os.Rename(mark, mark+"-aside"))
	try(os.MkdirAll(filepath.Join(mark, "full"), 0o700))
	return func() {
		try(os.RemoveAll(mark))
		try(os.Rename(mark+"-aside", mark))
	}
}

func (h *halves) marked(id checkpoint.ID) bool {
	_, err := os.Lstat(filepath.Join(h.data, "checkpoints", "journal", string(id)))
	return err == nil
}

// A change that was taken back, and whose mark is found once more, is not looked at again: its mark goes, and that is all.
func TestTakenBackStaysTakenBack(t *testing.T) {
	ctx := context.Background()
	h := newHalves(t)
	h.lay("new", "a")
	h.lay("old", "b")
	id := h.saves(checkpoint.KindEdit, "old", "new", "a", "b")
	h.dies(id)
	if err := h.recover(ctx, time.Now()); err != nil {
		t.Fatal(err)
	}
	h.has("old", "a", "b")
	for _, name := range []string{"a", "b"} { // as one that was taken back, and whose mark came back
		h.saves(checkpoint.KindEdit, "old", "newest", name)
		h.lay("newest", name)
	}
	h.dies(id)
	if err := h.recover(ctx, time.Now()); err != nil {
		t.Fatal(err)
	}
	h.has("newest", "a", "b")
	if o := h.outcome(id); o != checkpoint.Aborted || h.marked(id) {
		t.Errorf("it is %q, marked: %v", o, h.marked(id))
	}
}

// A mark that can't be removed holds up nobody who changes the same paths.
func TestSettledMarkHoldsUpNobody(t *testing.T) {
	h := newHalves(t)
	h.lay("old", "a", "b")
	id := h.saves(checkpoint.KindEdit, "old", "new", "a", "b")
	h.dies(id)
	if err := h.db.Settle(context.Background(), id, checkpoint.Aborted); err != nil {
		t.Fatal(err)
	}
	free := h.jam(id)
	defer free()
	if err := h.puts("t", "newest", "a", "b"); err != nil {
		t.Error(err)
	}
	h.has("newest", "a", "b")
}

// A content that goes from the store between the plan of a restore and its reading is missing, as one that never was there, and no fault of the host.
func TestContentGoesAfterThePlan(t *testing.T) {
	ctx := context.Background()
	for _, how := range []string{OnConflictRefuse, OnConflictSkip} {
		h := newHalves(t)
		h.lay("new", "a")
		id := h.saves(checkpoint.KindEdit, "old", "new", "a")
		if err := h.db.Settle(ctx, id, checkpoint.Committed); err != nil {
			t.Fatal(err)
		}
		done, err := h.carryOut(ctx, h.call("t"), RestoreOptions{OnConflict: how}, func(db *checkpoint.DB) (*checkpoint.Plan, error) {
			plan, err := db.Plan(ctx, checkpoint.Restore{ID: id, AllSessions: true})
			if err == nil {
				_, err = db.Purge(ctx, checkpoint.Purge{Hash: HashOf([]byte("old"))})
			}
			return plan, err
		})
		h.has("new", "a")
		if how == OnConflictSkip && (err != nil || len(done.Skipped) != 1) {
			t.Errorf("skipped: %+v, %v", done, err)
		}
		if how == OnConflictRefuse && !errors.Is(err, NotStored) {
			t.Errorf("refused: %v", err)
		}
	}
}
