package checkpoint_test

import (
	"database/sql"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"moltisfs/checkpoint"
)

// A store of format 1 knows no late checkpoints; opened, it lists by time like a new one.
func TestMigration(t *testing.T) {
	dir := t.TempDir()
	d := open(t, dir, checkpoint.Options{})
	start := time.Now().Add(-time.Hour).Truncate(time.Second)
	var want []checkpoint.ID
	for _, minute := range []int{0, 1, 2, 9, 8, 7, 10} {
		o := op(edit("/w/a", []byte{byte(minute)}, []byte{byte(minute + 1)}))
		o.Time = start.Add(time.Duration(minute) * time.Minute)
		want = append(want, save(t, d, o))
	}
	want = []checkpoint.ID{want[6], want[3], want[4], want[5], want[2], want[1], want[0]}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", filepath.Join(dir, "checkpoints.db"))
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range []string{"DROP INDEX op_late", "DROP INDEX change_late", "ALTER TABLE op DROP COLUMN late", "ALTER TABLE change DROP COLUMN late", "ALTER TABLE change DROP COLUMN askipped",
		"PRAGMA user_version=1"} {
		if _, err := db.Exec(q); err != nil {
			t.Fatal(q, err)
		}
	}
	db.Close()
	d = open(t, dir, checkpoint.Options{})
	for _, path := range []string{"", "/w/a"} {
		p, err := d.List(ctx, checkpoint.Filter{AllSessions: true, Path: path})
		if err != nil || len(p.Checkpoints) != len(want) {
			t.Fatalf("%d of %d: %v", len(p.Checkpoints), len(want), err)
		}
		for i, c := range p.Checkpoints {
			if c.ID != want[i] {
				t.Errorf("path %q, place %d: %s, not %s", path, i, c.ID, want[i])
			}
		}
	}
	save(t, d, op(edit("/w/a", []byte("1"), []byte("2"))))
	sound(t, d)
}

// Two processes, of which one has the later clock: what the other saves meanwhile is late.
func TestLateAmongProcesses(t *testing.T) {
	dir := t.TempDir()
	a, b := open(t, dir, checkpoint.Options{}), open(t, dir, checkpoint.Options{})
	start := time.Now().Truncate(time.Second)
	var want []checkpoint.ID
	at := map[checkpoint.ID]time.Time{}
	for i := range 20 {
		d, o := a, op(edit("/w/a", []byte{byte(i)}, []byte{byte(i + 1)}))
		o.Time = start.Add(time.Duration(i) * time.Second)
		if i%3 == 1 {
			d, o.Time = b, o.Time.Add(5*time.Second)
		}
		id := save(t, d, o)
		at[id] = o.Time
		want = append([]checkpoint.ID{id}, want...)
	}
	slices.SortStableFunc(want, func(x, y checkpoint.ID) int { return at[y].Compare(at[x]) })
	for _, d := range []*checkpoint.DB{a, b} {
		p, err := d.List(ctx, checkpoint.Filter{AllSessions: true, Path: "/w/a", Limit: 100})
		if err != nil || len(p.Checkpoints) != len(want) {
			t.Fatal(len(p.Checkpoints), err)
		}
		for i, c := range p.Checkpoints {
			if c.ID != want[i] {
				t.Errorf("place %d: %s of %v, not %s", i, c.ID, c.Time, want[i])
			}
		}
	}
}
