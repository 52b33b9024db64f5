package checkpoint_test

import (
	"database/sql"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"moltisfs/checkpoint"
)

// A store of format 1, opened, lists as a new one: in the order of saving, whatever the times say.
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
	slices.Reverse(want)
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", filepath.Join(dir, "checkpoints.db"))
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range append(slices.Clone(toFormat2), "DROP INDEX op_late", "DROP INDEX change_late", "ALTER TABLE op DROP COLUMN late", "ALTER TABLE change DROP COLUMN late", "ALTER TABLE change DROP COLUMN askipped",
		"PRAGMA user_version=1") {
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

// toFormat2 makes a store of format 3 one of format 2.
var toFormat2 = []string{"DROP TABLE open_op",
	"ALTER TABLE session DROP COLUMN gone", "ALTER TABLE session DROP COLUMN gone_ts", "ALTER TABLE path DROP COLUMN gone",
	"DROP INDEX turn_session", "DROP INDEX turn_name", "ALTER TABLE turn RENAME TO t",
	"CREATE TABLE turn(id INTEGER PRIMARY KEY, session INTEGER NOT NULL, name TEXT NOT NULL, after INTEGER NOT NULL, ts INTEGER NOT NULL, UNIQUE(session, name))",
	"INSERT INTO turn SELECT * FROM t", "DROP TABLE t", "PRAGMA user_version=2",
}

// A store of format 2 did not note whose the checkpoints were that retention took: of those who were there before, they may be anybody's.
func TestMigrationOfWhatWasTaken(t *testing.T) {
	for _, taken := range []bool{false, true} {
		dir := t.TempDir()
		d := open(t, dir, checkpoint.Options{})
		var last checkpoint.ID
		for i := range 6 {
			o := op(edit("/w/a", []byte{byte(i)}, []byte{byte(i + 1)}))
			o.Session, o.Turn = []string{"s1", "s1", "s1", "s1", "s2", "s2"}[i], fmt.Sprint("t", i)
			last = save(t, d, o)
		}
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
		db, err := sql.Open("sqlite", filepath.Join(dir, "checkpoints.db"))
		if err != nil {
			t.Fatal(err)
		}
		qs := slices.Clone(toFormat2)
		if taken {
			qs = append(qs, "DELETE FROM change WHERE op IN (1, 2)", "DELETE FROM op WHERE seq IN (1, 2)")
		}
		for _, q := range qs {
			if _, err := db.Exec(q); err != nil {
				t.Fatal(q, err)
			}
		}
		db.Close()
		d = open(t, dir, checkpoint.Options{})
		for turn, isPartial := range map[string]bool{"t0": taken, "t1": taken, "t2": false, "t3": false} {
			r := checkpoint.Restore{Principal: "ann", Session: "s1", Turn: turn}
			if isPartial {
				partial(t, d, turn, r)
			} else {
				whole(t, d, turn, r)
			}
		}
		r := checkpoint.Restore{Principal: "ann", Session: "s2", Since: time.Now().Add(-time.Hour)}
		whole(t, d, "a session that was not there yet", r)
		r.Session = "s1"
		if taken {
			l := partial(t, d, "by time", r)
			r.Since = l.Since
		}
		whole(t, d, "by time", r)
		if o := op(edit("/w/a", []byte("1"), []byte("2"))); save(t, d, o) <= last {
			t.Error("numbers go on")
		}
		sound(t, d)
	}
}
