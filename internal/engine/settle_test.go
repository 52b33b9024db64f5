package engine

import (
	"context"
	"slices"
	"testing"

	"moltisfs/checkpoint"
	"moltisfs/config"
)

// A change of several paths that was taken back, or could not all be, and of which the store can't be told so, stays marked for the
// next start: the store would take it for made. One that was made needs no such word.
func TestMarkStaysWhenSettlingFails(t *testing.T) {
	ctx := context.Background()
	for _, c := range []struct {
		outcome checkpoint.Outcome
		closed  bool // the store can't be told any more
		stays   bool
	}{
		{checkpoint.Committed, false, false}, {checkpoint.Aborted, false, false}, {checkpoint.Foreign, false, true},
		{checkpoint.Committed, true, false}, {checkpoint.Aborted, true, true}, {checkpoint.Foreign, true, true},
	} {
		cfg := config.Default().Tools.FS
		cfg.Checkpoint.Durability = "relaxed"
		e, err := Open(Options{Config: cfg, Judge: anything{}, DataDir: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		db, err := e.points.open()
		if err != nil {
			t.Fatal(err)
		}
		edit := func(path string) checkpoint.Change {
			return checkpoint.Change{Path: path, Role: "target", After: checkpoint.State{Kind: checkpoint.File, Size: 1}, AfterContent: []byte("1")}
		}
		saved, err := db.Save(ctx, checkpoint.Op{Tool: "Edit", Kind: checkpoint.KindEdit, Principal: "p", Session: "s", Changes: []checkpoint.Change{edit("/w/a"), edit("/w/b")}})
		if err != nil {
			t.Fatal(err)
		}
		p := &point{e: e, db: db, id: saved.ID}
		if p.intent, err = db.Intend(saved.ID); err != nil {
			t.Fatal(err)
		}
		if c.closed {
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
		}
		p.settle(ctx, c.outcome)
		ids, err := checkpoint.Unfinished(e.points.dir)
		if err != nil || slices.Contains(ids, saved.ID) != c.stays {
			t.Errorf("%+v: unfinished are %v, %v", c, ids, err)
		}
	}
}
