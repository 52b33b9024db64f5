package checkpoint_test

import (
	"fmt"
	"math/rand"
	"testing"
	"time"

	"moltisfs/checkpoint"
)

func BenchmarkZZ(b *testing.B) {
	now := &clock{time.Now()}
	d, err := checkpoint.Open(b.TempDir(), checkpoint.Options{Now: now.now, KeepLast: 4, KeepWithin: time.Hour})
	must(b, err)
	defer d.Close()
	fill(b, d, 2000)
	b.Run("path", func(b *testing.B) {
		for i := range b.N {
			d.List(ctx, checkpoint.Filter{AllSessions: true, Path: fmt.Sprintf("/w/dir/file%d.go", i%250)})
		}
	})
	b.Run("all", func(b *testing.B) {
		for range b.N {
			d.List(ctx, checkpoint.Filter{AllSessions: true})
		}
	})
	b.Run("undo", func(b *testing.B) {
		for range b.N {
			d.Undo(ctx, ann)
		}
	})
	b.Run("save", func(b *testing.B) {
		rng, v := rand.New(rand.NewSource(77)), source(9<<10, 77)
		for range b.N {
			next := nextVersion(rng, v)
			save(b, d, op(edit("/w/saved.go", v, next)))
			v = next
		}
	})
}
