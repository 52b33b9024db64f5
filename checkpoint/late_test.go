package checkpoint

import (
	"context"
	"testing"
	"time"
)

// Late is what is older than one that was saved before it, and nothing else: every late one makes lists by time slower.
func TestLateIsTheException(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var dbs [2]*DB
	for i := range dbs {
		d, err := Open(dir, Options{Durability: Relaxed})
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		dbs[i] = d
	}
	want := 0
	for i, c := range []struct {
		db, minute int
		late       bool
	}{{0, 0, false}, {0, 1, false}, {0, 1, false}, {1, 5, false}, {0, 4, true}, {0, 5, false}, {1, 3, true}, {1, 6, false}, {0, 7, false}} {
		_, err := dbs[c.db].Save(ctx, Op{Tool: "Edit", Kind: KindManual, Principal: "p", Session: "s", Time: start.Add(time.Duration(c.minute) * time.Minute)})
		if err != nil {
			t.Fatal(err)
		}
		if c.late {
			want++
		}
		var late int
		if err := dbs[0].r.QueryRow("SELECT count(*) FROM op WHERE late IS NOT NULL").Scan(&late); err != nil || late != want {
			t.Fatalf("save %d: %d are late, should %d (%v)", i, late, want, err)
		}
	}
}
