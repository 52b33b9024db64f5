package checkpoint

import (
	"context"
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"
)

// Another process may clean the store while nothing refers to the parts yet: they are stored anew, and none is missing in the end.
func TestPartsSurviveTheGCOfOthers(t *testing.T) {
	ctx := context.Background()
	for _, always := range []bool{false, true} {
		dir := t.TempDir()
		var stores [2]*DB
		for i := range stores {
			d, err := Open(dir, Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer d.Close() //nolint:errcheck // looked at by Check
			stores[i] = d
		}
		op := Op{Tool: "Edit", Kind: KindImport}
		var contents [][]byte
		for i := range 2 {
			b := []byte(fmt.Sprint(i, strings.Repeat(" text", inPart/8)))
			contents = append(contents, b)
			op.Changes = append(op.Changes, Change{Path: fmt.Sprint("/w/", i), Role: "target", Before: State{Kind: File, Hash: hash(sha256.Sum256(b)).String(), Size: int64(len(b))}})
		}
		last := len(contents) - 1
		cleaned := false
		err := stores[0].saveInParts(ctx, op, func(i int) ([]byte, error) {
			if always || i == last && !cleaned {
				cleaned = cleaned || i == last
				if r, err := stores[1].GC(ctx, GCOptions{}); err != nil || i == last && r.Contents == 0 {
					t.Errorf("the gc took no part: %+v %v", r, err)
				}
			}
			return contents[i], nil
		})
		p, lerr := stores[0].List(ctx, Filter{AllSessions: true})
		if lerr != nil {
			t.Fatal(lerr)
		}
		if always {
			if err == nil || len(p.Checkpoints) > 0 {
				t.Errorf("parts that never stay are no checkpoint: %v %+v", err, p)
			}
			continue
		}
		if err != nil || len(p.Checkpoints) != 1 {
			t.Fatalf("%v %+v", err, p)
		}
		for _, c := range p.Checkpoints[0].Changes {
			if !c.Stored {
				t.Errorf("%s is not stored: %s", c.Path, c.Skipped)
			}
		}
		if r, err := stores[0].Check(ctx, true); err != nil || len(r.Problems) > 0 {
			t.Errorf("%+v %v", r, err)
		}
	}
}
