package checkpoint

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"
	"time"
)

// Whatever ends a look at the catalog, the next ones find connections that are in no transaction.
func TestReadersSurvive(t *testing.T) {
	d, err := Open(t.TempDir(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	look := func(ctx context.Context) error {
		return d.view(ctx, func(h *history) error {
			rows, err := h.q.QueryContext(ctx, "SELECT v FROM meta")
			if err == nil {
				err = rows.Close()
			}
			return err
		})
	}
	all := func(after string) {
		t.Helper()
		// One within the other: each has a connection of its own.
		var nest func(n int) error
		nest = func(n int) error {
			if n == 0 {
				return nil
			}
			return d.view(t.Context(), func(*history) error { return nest(n - 1) })
		}
		if err := nest(maxReaders); err != nil {
			t.Fatalf("after %s: %v", after, err)
		}
	}
	for range 2 * maxReaders {
		func() {
			defer func() { recover() }()
			d.view(t.Context(), func(*history) error { panic("in the midst of it") })
		}()
	}
	all("a panic")
	for range 2000 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rand.Int64N(200_000)))
		if err := look(ctx); err != nil && !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a look that ran out of time: %v", err)
		}
		cancel()
	}
	all("looks that ran out of time")
}
