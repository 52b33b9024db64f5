package checkpoint_test

import (
	"database/sql"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
	"time"

	"moltisfs/checkpoint"
)

// A store of format 1, opened, lists as a new one: in the order of saving, whatever the times say.
func TestMigration(t *testing.T) {
	dir := t.TempDir()
	d := open(t, dir, checkpoint.Options{})
	changed := edit("/w/a", []byte("x"), []byte("y"))
	changed.Before.Xattrs, changed.After.Mode = map[string][]byte{"user.a": []byte("1\x002")}, 0o751
	first := save(t, d, op(changed, edit("/w/b", nil, []byte("1"))))
	was, err := d.Get(ctx, first, ann)
	if err != nil || was.Changes[0].After.Mode != 0o751 || was.Changes[0].After.Xattrs != nil {
		t.Fatal(was, err)
	}
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
	for _, q := range append(slices.Clone(toFormat2), "ALTER TABLE change DROP COLUMN askipped", "PRAGMA user_version=1") {
		if _, err := db.Exec(q); err != nil {
			t.Fatal(q, err)
		}
	}
	db.Close()
	d = open(t, dir, checkpoint.Options{})
	if got, err := d.Get(ctx, first, ann); err != nil || !reflect.DeepEqual(got, was) {
		t.Errorf("%+v, was %+v: %v", got, was, err)
	}
	want = append(want, first)
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

// toFormat2 makes a store one of format 2.
var toFormat2 = []string{
	"CREATE TABLE word(id INTEGER PRIMARY KEY, s TEXT NOT NULL UNIQUE)",
	"INSERT INTO word(s) SELECT tool FROM op UNION SELECT kind FROM op UNION SELECT role FROM change",
	`CREATE TABLE attr(id INTEGER PRIMARY KEY, mode INTEGER NOT NULL, uid INTEGER NOT NULL, gid INTEGER NOT NULL,
		xattrs BLOB NOT NULL, UNIQUE(mode, uid, gid, xattrs))`,
	"INSERT OR IGNORE INTO attr(mode, uid, gid, xattrs) SELECT bmode, buid, bgid, ifnull(bxattrs, x'') FROM change WHERE bkind>0",
	`INSERT OR IGNORE INTO attr(mode, uid, gid, xattrs) SELECT ifnull(amode, bmode), ifnull(auid, buid), ifnull(agid, bgid),
		coalesce(axattrs, bxattrs, x'') FROM change WHERE akind>0`,
	"DROP INDEX op_session", "DROP INDEX op_label", "DROP INDEX change_path", "ALTER TABLE op RENAME TO o", "ALTER TABLE change RENAME TO c",
	`CREATE TABLE op(seq INTEGER PRIMARY KEY, ts INTEGER NOT NULL, session INTEGER NOT NULL, turn INTEGER, tool INTEGER NOT NULL,
		kind INTEGER NOT NULL, outcome INTEGER NOT NULL DEFAULT 0, pin INTEGER NOT NULL DEFAULT 0, label TEXT,
		undo_of INTEGER, restore_of INTEGER)`,
	"CREATE INDEX op_session ON op(session)", "CREATE INDEX op_label ON op(label) WHERE label IS NOT NULL",
	`CREATE TABLE change(op INTEGER NOT NULL, n INTEGER NOT NULL, path INTEGER NOT NULL, role INTEGER NOT NULL, skipped TEXT,
		bkind INTEGER NOT NULL, battr INTEGER, bmtime INTEGER, bobj INTEGER, bsize INTEGER, btarget BLOB,
		akind INTEGER NOT NULL, aattr INTEGER, amtime INTEGER, aobj INTEGER, asize INTEGER, atarget BLOB, askipped TEXT,
		PRIMARY KEY(op, n)) WITHOUT ROWID`,
	"CREATE INDEX change_path ON change(path, op)",
	`INSERT INTO op SELECT seq, ts, session, turn, (SELECT id FROM word WHERE s=tool), (SELECT id FROM word WHERE s=kind),
		outcome, pin, label, undo_of, restore_of FROM o`,
	`INSERT INTO change SELECT op, n, path, (SELECT id FROM word WHERE s=role), skipped,
		bkind, (SELECT id FROM attr WHERE mode=bmode AND uid=buid AND gid=bgid AND xattrs=ifnull(bxattrs, x'')), bmtime, bobj, bsize, btarget,
		akind, CASE WHEN akind>0 THEN (SELECT id FROM attr WHERE mode=ifnull(amode, bmode) AND uid=ifnull(auid, buid) AND gid=ifnull(agid, bgid)
			AND xattrs=coalesce(axattrs, bxattrs, x'')) END, amtime, aobj, asize, atarget, askipped FROM c`,
	"DROP TABLE o", "DROP TABLE c", "DROP TABLE limits", "INSERT INTO meta VALUES('gen', 1)",
	"DROP TABLE open_op", "DROP TABLE unpurged",
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
