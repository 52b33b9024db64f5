// Package catalog has the tables of a checkpoint store, what makes those of an older format new,
// and what saves the rows that can still be read of a damaged database.
//
//   - object: a content that was ever seen, by hash. Its bytes, if they are stored, are the row of the same id in data.
//   - data.base is the object that a delta applies to; depth counts the deltas below. A base is never deleted before its
//     children are re-encoded, in the same transaction.
//   - op.seq is never used twice: gc keeps the newest row, and after a repair meta.after says where to go on. The same
//     holds for trash.id.
//   - open_op has a row for each operation that was saved with a tag: it goes when the outcome is
//     written.
//   - change has what was before in columns with b, and what comes after in those with a: NULL there is "as before".
//   - session.gone and path.gone are the newest checkpoint that retention took of them, session.gone_ts the newest time
//     of one: of a session only what changed something for it, so that a rewind knows whether it would be whole; of a
//     path only where it was newer than all that stay.
//   - turn has a row for each beginning: of a name there may be several, of which the one with the greatest id is the
//     last.
//   - op.run is what the changes of one script have in common; below 0 once retention took one of
//     them. An undo of them has it too: it takes back those with numbers from restore_of to undo_of.
//   - unpurged has the hashes of what was purged that others are still to forget.
//   - limits: see Limits. used is when they were last saved under.
package catalog

import (
	"context"
	"database/sql"
	"fmt"
)

// Format is the user_version of the database.
const Format = 7

// Upgrade makes a database of an older format one of ours; an empty one has the format 0. It runs
// in a transaction of the caller.
func Upgrade(ctx context.Context, conn *sql.Conn, from int) error {
	if from == 0 {
		return create(ctx, conn)
	}
	for ; from < Format; from++ {
		err := exec(ctx, conn, migrations[from]+fmt.Sprintf("PRAGMA user_version=%d", from+1))
		if err != nil {
			return err
		}
	}
	return nil
}

type execer interface {
	ExecContext(ctx context.Context, q string, args ...any) (sql.Result, error)
}

func create(ctx context.Context, db execer) error {
	return exec(ctx, db, schema+fmt.Sprintf("PRAGMA user_version=%d", Format))
}

func exec(ctx context.Context, db execer, q string, args ...any) error {
	_, err := db.ExecContext(ctx, q, args...)
	return err
}

const schema = `
CREATE TABLE meta(k TEXT PRIMARY KEY, v) WITHOUT ROWID;
CREATE TABLE session(id INTEGER PRIMARY KEY, principal TEXT NOT NULL, name TEXT NOT NULL,
	gone INTEGER, gone_ts INTEGER, UNIQUE(principal, name));
CREATE TABLE turn` + turnTable + `
CREATE TABLE path(id INTEGER PRIMARY KEY, path BLOB NOT NULL UNIQUE, gone INTEGER);
CREATE TABLE object(id INTEGER PRIMARY KEY, hash BLOB NOT NULL UNIQUE, size INTEGER NOT NULL);
CREATE TABLE data(id INTEGER PRIMARY KEY, codec INTEGER NOT NULL, base INTEGER, depth INTEGER NOT NULL,
	key INTEGER, bytes INTEGER NOT NULL, z BLOB NOT NULL);
CREATE INDEX data_base ON data(base) WHERE base IS NOT NULL;
CREATE INDEX data_ext ON data(bytes) WHERE codec & 4;
` + opTables + `
CREATE TABLE seal(id INTEGER PRIMARY KEY, wrapped BLOB NOT NULL);
CREATE TABLE trash(id INTEGER PRIMARY KEY, ts INTEGER NOT NULL, expires INTEGER NOT NULL, principal TEXT NOT NULL,
	session TEXT NOT NULL, path BLOB NOT NULL, parked BLOB, op INTEGER, phase INTEGER NOT NULL, kind TEXT NOT NULL,
	size INTEGER NOT NULL, files INTEGER NOT NULL, ident TEXT NOT NULL);
CREATE INDEX trash_expires ON trash(expires);
CREATE INDEX trash_op ON trash(op) WHERE op IS NOT NULL;
` + openTable + unpurgedTable + turnIndexes + runColumn

const openTable = `
CREATE TABLE open_op(op INTEGER PRIMARY KEY, tag TEXT NOT NULL, steps BLOB NOT NULL, made INTEGER NOT NULL DEFAULT 0);
`

const unpurgedTable = "CREATE TABLE unpurged(hash BLOB PRIMARY KEY) WITHOUT ROWID;\n"

// runColumn is a column for operations of any format: those before this one have none.
const runColumn = `
ALTER TABLE op ADD COLUMN run INTEGER;
CREATE INDEX op_run ON op(run) WHERE run IS NOT NULL;
`

const turnTable = `(id INTEGER PRIMARY KEY, session INTEGER NOT NULL, name TEXT NOT NULL, after INTEGER NOT NULL, ts INTEGER NOT NULL);`

const turnIndexes = `
CREATE INDEX turn_session ON turn(session);
CREATE INDEX turn_name ON turn(session, name);
`

const opTables = `
CREATE TABLE op(seq INTEGER PRIMARY KEY, ts INTEGER NOT NULL, session INTEGER NOT NULL, turn INTEGER, tool TEXT NOT NULL,
	kind TEXT NOT NULL, outcome INTEGER NOT NULL DEFAULT 0, pin INTEGER NOT NULL DEFAULT 0, label TEXT,
	undo_of INTEGER, restore_of INTEGER);
CREATE INDEX op_session ON op(session);
CREATE INDEX op_label ON op(label) WHERE label IS NOT NULL;
CREATE TABLE change(op INTEGER NOT NULL, n INTEGER NOT NULL, path INTEGER NOT NULL, role TEXT NOT NULL, skipped TEXT, askipped TEXT,
	bkind INTEGER NOT NULL, bmode INTEGER, buid INTEGER, bgid INTEGER, bmtime INTEGER, bobj INTEGER, bsize INTEGER, btarget BLOB, bxattrs BLOB,
	akind INTEGER NOT NULL, amode INTEGER, auid INTEGER, agid INTEGER, amtime INTEGER, aobj INTEGER, asize INTEGER, atarget BLOB, axattrs BLOB,
	PRIMARY KEY(op, n)) WITHOUT ROWID;
CREATE INDEX change_path ON change(path, op);
CREATE TABLE limits(keep_within INTEGER, keep_last INTEGER, max_bytes INTEGER, used INTEGER NOT NULL,
	PRIMARY KEY(keep_within, keep_last, max_bytes)) WITHOUT ROWID;
`

// migrations[v] makes a store of format v one of v+1.
var migrations = map[int]string{
	1: `
ALTER TABLE change ADD COLUMN askipped TEXT;
`,
	2: `
ALTER TABLE session ADD COLUMN gone INTEGER;
ALTER TABLE session ADD COLUMN gone_ts INTEGER;
ALTER TABLE path ADD COLUMN gone INTEGER;
ALTER TABLE turn RENAME TO oldturn;
CREATE TABLE turn` + turnTable + `
INSERT INTO turn(id, session, name, after, ts) SELECT id, session, name, after, ts FROM oldturn;
DROP TABLE oldturn;
` + turnIndexes + markMissing,
	3: openTable,
	4: `
DROP INDEX op_session;
DROP INDEX op_label;
DROP INDEX change_path;
ALTER TABLE op RENAME TO oldop;
ALTER TABLE change RENAME TO oldchange;
` + opTables + `
INSERT INTO op SELECT seq, ts, session, turn, ifnull((SELECT s FROM word WHERE id=tool), ''), ifnull((SELECT s FROM word WHERE id=kind), ''),
	outcome, pin, label, undo_of, restore_of FROM oldop;
INSERT INTO change SELECT op, n, path, ifnull((SELECT s FROM word WHERE id=role), ''), skipped, askipped,
	bkind, b.mode, b.uid, b.gid, bmtime, bobj, bsize, btarget, nullif(b.xattrs, x''),
	akind, a.mode, a.uid, a.gid, amtime, aobj, asize, atarget, a.xattrs
	FROM oldchange LEFT JOIN attr b ON b.id=battr LEFT JOIN attr a ON a.id=aattr;
DROP TABLE oldop;
DROP TABLE oldchange;
DROP TABLE word;
DROP TABLE attr;
DELETE FROM meta WHERE k='gen' OR k LIKE 'limits %';
`,
	5: unpurgedTable,
	6: runColumn,
}

// markMissing says of every session that was there before the newest number that is missing that it
// may have lost that one: nobody noted whose it was.
const markMissing = `
INSERT INTO meta(k, v) SELECT 'missing', max(seq)-1 FROM op WHERE seq > 1 AND seq-1 NOT IN (SELECT seq FROM op);
INSERT INTO meta(k, v) SELECT 'missing_ts', ts-1 FROM op WHERE seq > (SELECT v FROM meta WHERE k='missing') ORDER BY seq LIMIT 1;
UPDATE session SET gone=(SELECT v FROM meta WHERE k='missing'), gone_ts=max(ifnull(gone_ts, -1<<63), (SELECT v FROM meta WHERE k='missing_ts'))
	WHERE ifnull(gone, 0) < (SELECT v FROM meta WHERE k='missing')
	AND (EXISTS (SELECT 1 FROM op WHERE op.session=session.id AND op.seq < (SELECT v FROM meta WHERE k='missing'))
		OR EXISTS (SELECT 1 FROM turn WHERE turn.session=session.id AND turn.after < (SELECT v FROM meta WHERE k='missing')));
DELETE FROM meta WHERE k IN ('missing', 'missing_ts');
`
