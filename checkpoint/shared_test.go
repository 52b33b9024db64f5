package checkpoint_test

import (
	"bytes"
	"errors"
	"testing"

	"moltisfs/checkpoint"
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
