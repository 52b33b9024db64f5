package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"moltisfs/internal/testdir"
)

// Of saves that wait together and share a transaction one may fail: the others are saved all the
// same, and exactly they are open.
func TestOneOfABatchFails(t *testing.T) {
	ctx := context.Background()
	d, err := Open(t.TempDir(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	const n, bad = 6, 3
	d.com.turn <- struct{}{} // all have to wait
	var all sync.WaitGroup
	var ids [n]ID
	var errs [n]error
	for i := range n {
		c := Change{Path: fmt.Sprint("/w/", i), Content: []byte("same"), Before: State{Kind: File}}
		if i == bad {
			c.Trash = &Trashed{Expires: time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)}
		}
		all.Go(func() {
			var s Saved
			s, errs[i] = d.Save(ctx, Op{Tool: "Delete", Kind: KindDelete, Opening: Opening{Tag: "t"}, Changes: []Change{c}})
			ids[i] = s.ID
		})
		testdir.Until(t, "its place in the queue", func() bool { // in this order
			d.com.mu.Lock()
			defer d.com.mu.Unlock()
			return len(d.com.queue) > i
		})
	}
	<-d.com.turn
	all.Wait()
	var saved []ID
	for i := range n {
		if i == bad {
			if e := (*BadOpError)(nil); !errors.As(errs[i], &e) {
				t.Errorf("the bad one: %v", errs[i])
			}
			continue
		}
		c, err := d.Get(ctx, ids[i], Scope{})
		if err != nil || errs[i] != nil || c.Changes[0].Path != fmt.Sprint("/w/", i) || !c.Changes[0].Stored {
			t.Fatalf("%s: %+v %v %v", ids[i], c, errs[i], err)
		}
		saved = append(saved, ids[i])
	}
	ops, err := d.Open(ctx)
	isSaved := func(o OpenOp) bool { return slices.Contains(saved, o.ID) }
	if err != nil || len(ops) != n-1 || len(saved) != n-1 || slices.ContainsFunc(ops, func(o OpenOp) bool { return !isSaved(o) }) {
		t.Errorf("open are %+v, saved %v: %v", ops, saved, err)
	}
	if r, err := d.Check(ctx, true); err != nil || len(r.Problems) > 0 {
		t.Errorf("%+v %v", r, err)
	}
}
