package checkpoint_test

import (
	"fmt"
	"sync"
	"testing"

	"moltisfs/checkpoint"
)

// Who is told that a Save only waits hears it before the checkpoint is there for anybody, and not at all when nothing was saved.
func TestWaitingIsToldBeforeTheCommit(t *testing.T) {
	d := open(t, t.TempDir(), checkpoint.Options{})
	told := 0
	o := op(edit("/w/a", []byte("old"), []byte("new")))
	o.Waiting = func() {
		told++
		if p, err := d.List(ctx, checkpoint.Filter{Principal: ann.Principal, Session: ann.Session}); err != nil || len(p.Checkpoints) != 0 {
			t.Errorf("while the disk was still to be waited for the checkpoint was there: %v, %v", p.Checkpoints, err)
		}
	}
	save(t, d, o)
	if told != 1 {
		t.Errorf("told %d times", told)
	}
	o.UndoOf = "nonsense"
	if _, err := d.Save(ctx, o); err == nil || told != 1 {
		t.Errorf("a Save that was refused: %v, told %d times", err, told)
	}
}

// A Save that waits for those of others is told so too, and each on its own goroutine: the race detector would see another.
func TestWaitingForOthers(t *testing.T) {
	d := open(t, t.TempDir(), checkpoint.Options{})
	var all sync.WaitGroup
	for w := range 8 {
		all.Go(func() {
			for i := range 20 {
				told := 0
				o := op(edit(fmt.Sprint("/w/", w), []byte{byte(i)}, []byte{byte(i + 1)}))
				o.Waiting = func() { told++ }
				if _, err := d.Save(ctx, o); err != nil || told == 0 {
					t.Errorf("saved: %v, told %d times", err, told)
				}
			}
		})
	}
	all.Wait()
}
