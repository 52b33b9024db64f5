package checkpoint

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// Contents 1 to 6, of which 1 to 4 are a chain 1 ← 2 ← 3 ← 4, 5 stands alone, and of 6 only the hash is known.
func TestMarks(t *testing.T) {
	for _, c := range []struct {
		wanted, dead, bases []int64 // bases of the one candidate, the top of the chain
	}{
		{nil, []int64{4, 3, 2, 1, 5, 6}, nil},
		{[]int64{4}, []int64{5, 6}, []int64{3, 2, 1}},
		{[]int64{2, 5}, []int64{4, 3, 6}, []int64{1}},
		{[]int64{4, 2, 6}, []int64{5}, []int64{1}}, // of 4 a base is wanted
		{[]int64{1, 99, -1}, []int64{4, 3, 2, 5, 6}, nil},
	} {
		m := &marks{flags: make([]byte, 7), data: []datum{{4, 3, 1}, {3, 2, 10}, {2, 1, 100}, {1, 0, 1000}, {5, 0, 1}}}
		for id := range int64(7) {
			m.set(id, isObject)
		}
		for _, id := range c.wanted {
			m.set(id, isWanted)
		}
		m.need()
		var bases []int64
		for _, k := range m.candidates() {
			bases = append(bases, k.bases...)
		}
		if dead := m.dead(); !slices.Equal(dead, c.dead) || !slices.Equal(bases, c.bases) {
			t.Errorf("wanted are %v: dead %v, want %v; bases %v, want %v", c.wanted, dead, c.dead, bases, c.bases)
		}
	}
}

// What the sweep drops is given up by the mark; what became of it since is seen only inside the transaction. In a chain of deltas 1 ← 2 ← 3
// nothing may go that something stays on.
func TestDropSparesWhatIsStoodOn(t *testing.T) {
	ctx := context.Background()
	for _, c := range []struct {
		name   string
		drop   []int // counted along the chain
		wanted int
		stay   []int
	}{
		{"all of the chain", []int{3, 2, 1}, 0, nil},
		{"a new delta, unknown to the mark, stands on it", []int{2, 1}, 0, []int{1, 2, 3}},
		{"wanted again at the top", []int{3, 2, 1}, 3, []int{1, 2, 3}},
		{"wanted again in the middle", []int{3, 2, 1}, 2, []int{1, 2}},
		{"in the order of ids", []int{1, 2, 3}, 2, []int{1, 2}},
	} {
		t.Run(c.name, func(t *testing.T) {
			d, err := Open(t.TempDir(), Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer d.Close()
			body := []byte(strings.Repeat("some line of a file\n", 200))
			for i := range 3 {
				next := append(body[:len(body):len(body)], fmt.Sprintf("line %d\n", i)...)
				ch := Change{Path: "/w/a", Role: "target", After: State{Kind: File, Size: int64(len(next))}, AfterContent: next}
				if i > 0 {
					ch.Before, ch.Content = State{Kind: File, Size: int64(len(body))}, body
				}
				if _, err := d.Save(ctx, Op{Tool: "Edit", Kind: KindEdit, Principal: "p", Session: "s", Changes: []Change{ch}}); err != nil {
					t.Fatal(err)
				}
				body = next
			}
			chain, err := column[int64](ctx, d.r, "SELECT id FROM data ORDER BY depth")
			if err != nil || len(chain) != 3 {
				t.Fatalf("a chain of three is needed: %v %v", chain, err)
			}
			g := &collector{d: d}
			var ids []int64
			for _, n := range c.drop {
				ids = append(ids, chain[n-1])
			}
			wanted := map[int64]bool{}
			if c.wanted > 0 {
				wanted[chain[c.wanted-1]] = true
			}
			err = d.com.do(ctx, func(ctx context.Context, c *committer) error {
				_, err := g.drop(ctx, c, ids, wanted)
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			want := map[int64]bool{}
			for _, n := range c.stay {
				want[chain[n-1]] = true
			}
			got, err := column[int64](ctx, d.r, "SELECT id FROM data ORDER BY id")
			if err != nil || !slices.Equal(got, slices.Sorted(maps.Keys(want))) {
				t.Errorf("%v stay, should %v (%v)", got, slices.Sorted(maps.Keys(want)), err)
			}
			if g.r.Contents != 3-len(c.stay) {
				t.Errorf("%d counted, %d went", g.r.Contents, 3-len(c.stay))
			}
		})
	}
}
