package checkpoint_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"math/rand"
	"os"
	"path/filepath"
	"testing"

	"moltisfs/checkpoint"
	"moltisfs/internal/testdir"
)

// A save relies on nothing that another process has taken out of the store since.
func TestSavedAgainAfterAnotherCleaned(t *testing.T) {
	dir := t.TempDir()
	d, other := open(t, dir, checkpoint.Options{}), open(t, dir, checkpoint.Options{})
	body, next := source(9000, 1), source(9000, 2)
	save(t, d, op(edit("/w/a", body, next)))
	for _, b := range [][]byte{body, next} {
		if _, err := other.Purge(ctx, checkpoint.Purge{Hash: sum(b)}); err != nil {
			t.Fatal(err)
		}
		if _, err := d.Content(ctx, sum(b)); !errors.Is(err, checkpoint.ErrNoContent) {
			t.Fatalf("purged: %v", err)
		}
	}
	save(t, d, op(edit("/w/a", next, body)))
	for _, b := range [][]byte{body, next} {
		if got, err := d.Content(ctx, sum(b)); err != nil || !bytes.Equal(got, b) {
			t.Errorf("saved again, and not there: %v", err)
		}
	}
	sound(t, d)
}

// When what could go is gone and there is still too little room, a save is refused: the limit holds.
func TestRoomIsNotExceeded(t *testing.T) {
	const limit = 4 << 20
	d := open(t, t.TempDir(), checkpoint.Options{MaxBytes: limit})
	id := save(t, d, op(edit("/w/pinned", randomText(5<<19, 1), nil)))
	if err := d.Pin(ctx, id, ann); err != nil {
		t.Fatal(err)
	}
	var full *checkpoint.FullError
	if _, err := d.Save(ctx, op(edit("/w/large", randomText(5<<19, 2), nil))); !errors.As(err, &full) {
		t.Errorf("beside what is pinned there is no room: %v", err)
	}
	if s := stats(t, d); s.UsedBytes > limit {
		t.Errorf("the store holds %d bytes of %d", s.UsedBytes, limit)
	}
	save(t, d, op(edit("/w/small", randomText(1<<19, 3), nil)))
	sound(t, d)
}

// observed is what a path turned out to be when somebody looked.
type observed struct {
	Path    string
	State   checkpoint.State
	Content []byte
}

// seenOutside records what changed behind the tools, as a host does at the beginning of a turn.
func seenOutside(ctx context.Context, d store, who checkpoint.Scope, turn string, seen []observed) (checkpoint.Saved, error) {
	known, err := d.Known(ctx, who)
	op := checkpoint.Op{Kind: checkpoint.KindExternal, Principal: who.Principal, Session: who.Session, Turn: turn}
	for _, k := range known {
		for _, o := range seen {
			if o.Path == k.Path && !k.Expects(o.State) {
				op.Changes = append(op.Changes, checkpoint.Change{Path: k.Path, Role: "target", Before: k.Own, After: o.State, AfterContent: o.Content})
			}
		}
	}
	if err != nil || len(op.Changes) == 0 {
		return checkpoint.Saved{}, err
	}
	return d.Save(ctx, op)
}

// A process that is stopped for long between the file of a large content and its row finds the file
// gone: gc takes what no row names for rubbish after an hour. What is saved is there all the same.
func TestFileGoneBeforeItsRow(t *testing.T) {
	dir := t.TempDir()
	d := open(t, dir, checkpoint.Options{})
	save(t, d, op(edit("/w/other", nil, []byte("1"))))
	db, err := sql.Open("sqlite", filepath.Join(dir, "checkpoints.db")+"?_pragma=busy_timeout(20000)")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	conn, err := db.Conn(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.ExecContext(ctx, "BEGIN IMMEDIATE"); err != nil { // the save waits here
		t.Fatal(err)
	}
	large := make([]byte, 600_000)
	rand.New(rand.NewSource(1)).Read(large)
	saved := make(chan error, 1)
	go func() {
		_, err := d.Save(ctx, op(edit("/w/large", large, nil)))
		saved <- err
	}()
	testdir.Until(t, "the file", func() (removed bool) {
		files, err := filepath.Glob(filepath.Join(dir, "blobs", "*", "*"))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			if fi, err := os.Stat(f); err == nil && fi.Size() >= int64(len(large)) {
				removed = os.Remove(f) == nil
			}
		}
		return removed
	})
	if _, err := conn.ExecContext(ctx, "ROLLBACK"); err != nil {
		t.Fatal(err)
	}
	if err := <-saved; err != nil {
		t.Fatal(err)
	}
	if got, err := d.Content(ctx, sum(large)); err != nil || !bytes.Equal(got, large) {
		t.Error("a save that succeeded has no content:", err)
	}
	sound(t, d)
}
