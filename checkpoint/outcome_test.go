package checkpoint_test

import (
	"sync"
	"sync/atomic"
	"testing"

	"moltisfs/checkpoint"
)

// What was said to be committed is committed for every reader from then on, also while it is being written: a reader that took it for
// presumed would settle it otherwise.
func TestOutcomeIsNeverForgotten(t *testing.T) {
	d := open(t, t.TempDir(), checkpoint.Options{})
	var stop atomic.Bool
	var wg sync.WaitGroup
	wg.Add(1)
	go func() { // transactions of others, which take outcomes along
		defer wg.Done()
		for i := 0; !stop.Load(); i++ {
			save(t, d, op(edit("/w/other", []byte{byte(i)}, []byte{byte(i + 1)})))
		}
	}()
	rounds := 300
	if testing.Short() {
		rounds = 60
	}
	for i := range rounds {
		id := save(t, d, op(edit("/w/a", []byte{byte(i)}, []byte{byte(i + 1)})))
		if err := d.Settle(ctx, id, checkpoint.Committed); err != nil {
			t.Fatal(err)
		}
		for range 20 {
			c, err := d.Get(ctx, id, ann)
			if err != nil || c.Outcome != checkpoint.Committed {
				t.Fatalf("checkpoint %d is %q after it was settled: %v", i, c.Outcome, err)
			}
		}
	}
	stop.Store(true)
	wg.Wait()
}
