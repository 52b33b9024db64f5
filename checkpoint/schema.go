package checkpoint

import (
	"context"
	"fmt"
	"strconv"
)

// format is the version of the catalog.
//
//   - content: a content that was ever seen, by hash. codec is NULL if its bytes are not stored; else
//     they are z, or lie in the blob store as name. base is the content that a delta applies to; depth
//     counts the deltas below. A base is never deleted before what stands on it.
//   - op.seq is never used twice: gc keeps the newest row. op.id is the id that people and models see.
//   - open_op has a row for each operation that was saved with a tag: it goes when the outcome is
//     written.
//   - change has what was before in columns with b, and what comes after in those with a: NULL there
//     is "as before". Of what got another name, moved_to is in the row of the old one and moved_from in
//     that of the new one; ident is which object it is.
//   - session.gone and path.gone are the newest checkpoint that retention took of them, session.gone_ts
//     the newest time of one: of a session only what changed something for it, so that a rewind knows
//     whether it would be whole; of a path only where it was newer than all that stay.
//   - turn has a row for each beginning: of a name there may be several, of which the one with the
//     greatest id is the last.
//   - known: the paths that a session has recorded anything of.
//   - op.run is a number that the changes of one script have in common; below 0 once retention took one of
//     them. An undo of them has it too: it takes back those with numbers from restore_of to undo_of.
//   - op.undone_by is the newest undo that holds of what the operation did: see tx.undo.
//   - unsent has the operations that the store which this one is shipped to does not have, or not as they are: see Ship. fresh is 1 until
//     it has an operation at all; draw is another number after each change, drawn at random.
//   - unpurged has the hashes of what was purged that others are still to forget.
const format = 11

const schema = `
CREATE TABLE meta(k TEXT PRIMARY KEY, v INTEGER NOT NULL);
CREATE TABLE session(id INTEGER PRIMARY KEY, principal TEXT NOT NULL, name TEXT NOT NULL,
	gone INTEGER, gone_ts INTEGER, UNIQUE(principal, name));
CREATE TABLE turn(id INTEGER PRIMARY KEY, session INTEGER NOT NULL, name TEXT NOT NULL,
	after INTEGER NOT NULL, ts INTEGER NOT NULL);
CREATE INDEX turn_session ON turn(session);
CREATE TABLE path(id INTEGER PRIMARY KEY, path BLOB NOT NULL UNIQUE, gone INTEGER);
CREATE TABLE op(seq INTEGER PRIMARY KEY, ts INTEGER NOT NULL, session INTEGER NOT NULL, turn INTEGER,
	tool TEXT NOT NULL, kind TEXT NOT NULL, outcome INTEGER NOT NULL DEFAULT 0,
	pin INTEGER NOT NULL DEFAULT 0, label TEXT, undo_of INTEGER, restore_of INTEGER, run INTEGER,
	id TEXT NOT NULL, undone_by INTEGER);
CREATE INDEX op_session ON op(session);
CREATE INDEX op_label ON op(label) WHERE label IS NOT NULL;
CREATE INDEX op_run ON op(run) WHERE run IS NOT NULL;
CREATE TABLE change(op INTEGER NOT NULL, n INTEGER NOT NULL, path INTEGER NOT NULL,
	role TEXT NOT NULL, skipped TEXT, askipped TEXT,
	bkind INTEGER NOT NULL, bmode INTEGER, buid INTEGER, bgid INTEGER, bmtime INTEGER,
	bobj INTEGER, bsize INTEGER, btarget BLOB, bxattrs BLOB,
	akind INTEGER NOT NULL, amode INTEGER, auid INTEGER, agid INTEGER, amtime INTEGER,
	aobj INTEGER, asize INTEGER, atarget BLOB, axattrs BLOB,
	moved_to BLOB, moved_from BLOB, ident TEXT,
	PRIMARY KEY(op, n)) WITHOUT ROWID;
CREATE INDEX change_path ON change(path, op);
CREATE TABLE seal(id INTEGER PRIMARY KEY, wrapped BLOB NOT NULL);
CREATE TABLE trash(id INTEGER PRIMARY KEY, ts INTEGER NOT NULL, expires INTEGER NOT NULL,
	principal TEXT NOT NULL, session TEXT NOT NULL, path BLOB NOT NULL, parked BLOB, op INTEGER,
	phase INTEGER NOT NULL, kind TEXT NOT NULL, size INTEGER NOT NULL, files INTEGER NOT NULL,
	ident TEXT NOT NULL, name TEXT NOT NULL);
CREATE INDEX trash_expires ON trash(expires);
CREATE INDEX trash_op ON trash(op) WHERE op IS NOT NULL;
CREATE TABLE open_op(op INTEGER PRIMARY KEY, tag TEXT NOT NULL, steps BLOB NOT NULL,
	made INTEGER NOT NULL DEFAULT 0);
CREATE TABLE unpurged(hash BLOB PRIMARY KEY) WITHOUT ROWID;
` + schema8 + schema10 + schema11

// schema8 adds to format 7 what format 8 has more.
const schema8 = `
CREATE TABLE content(id INTEGER PRIMARY KEY, hash BLOB NOT NULL UNIQUE, size INTEGER NOT NULL,
	codec INTEGER, base INTEGER, depth INTEGER, key INTEGER, bytes INTEGER, name TEXT, z BLOB);
CREATE INDEX content_base ON content(base) WHERE base IS NOT NULL;
CREATE INDEX content_name ON content(bytes) WHERE name IS NOT NULL;
CREATE TABLE known(session INTEGER NOT NULL, path INTEGER NOT NULL, PRIMARY KEY(session, path)) WITHOUT ROWID;
CREATE INDEX known_path ON known(path);
CREATE UNIQUE INDEX op_id ON op(id);
CREATE INDEX change_bobj ON change(bobj) WHERE bobj IS NOT NULL;
CREATE INDEX change_aobj ON change(aobj) WHERE aobj IS NOT NULL;
CREATE UNIQUE INDEX trash_name ON trash(name);
`

// schema10 adds to format 8 what format 10 has more. Those of one session are found by the number that each index ends in,
// the newest first: op_live has the changes that are not undone, op_undo_live the undos.
const schema10 = `
CREATE INDEX op_tool ON op(tool, session);
CREATE INDEX op_kind ON op(kind, session);
CREATE INDEX op_ts ON op(ts);
CREATE INDEX op_undo ON op(undo_of) WHERE undo_of IS NOT NULL;
CREATE INDEX op_live ON op(session) WHERE undo_of IS NULL AND undone_by IS NULL;
CREATE INDEX op_undo_live ON op(session) WHERE undo_of IS NOT NULL AND undone_by IS NULL;
CREATE INDEX op_turn ON op(turn) WHERE turn IS NOT NULL;
CREATE INDEX session_name ON session(name);
CREATE INDEX turn_name ON turn(name, session);
`

// schema11 adds to format 10 what format 11 has more.
const schema11 = `
CREATE TABLE unsent(op INTEGER PRIMARY KEY, draw INTEGER NOT NULL, fresh INTEGER NOT NULL);
CREATE INDEX path_gone ON path(gone) WHERE gone IS NOT NULL;
CREATE INDEX session_gone ON session(gone) WHERE gone IS NOT NULL;
`

// from7 makes a catalog of format 7 one of format 8. Its checkpoints and entries of the trash get new ids. Entries
// of the trash that have no place there go: their content is in the checkpoint of the deletion.
const from7 = `
ALTER TABLE op ADD COLUMN id TEXT NOT NULL DEFAULT '';
ALTER TABLE trash ADD COLUMN name TEXT NOT NULL DEFAULT '';
ALTER TABLE change ADD COLUMN moved_to BLOB;
ALTER TABLE change ADD COLUMN moved_from BLOB;
ALTER TABLE change ADD COLUMN ident TEXT;
UPDATE op SET id='ck-' || hex(randomblob(5));
DELETE FROM trash WHERE phase=3 OR length(parked)=0 OR parked IS NULL;
UPDATE trash SET name='tr-' || hex(randomblob(5));
` + schema8 + `
INSERT INTO content SELECT o.id, o.hash, o.size, d.codec, d.base, d.depth, d.key, d.bytes,
	CASE WHEN d.codec & 4 THEN CAST(d.z AS TEXT) END, CASE WHEN d.codec & 4 = 0 THEN d.z END
	FROM object o LEFT JOIN data d ON d.id=o.id;
INSERT INTO known SELECT DISTINCT op.session, change.path FROM change JOIN op ON op.seq=change.op;
DROP TABLE object;
DROP TABLE data;
DROP TABLE limits;
DELETE FROM meta WHERE k<>'gc_at';
`

// from8 makes a catalog of format 8 or 9 one of format 11, but for op.undone_by.
const from8 = `
ALTER TABLE op ADD COLUMN undone_by INTEGER;
DROP INDEX IF EXISTS op_turn;
DROP INDEX IF EXISTS turn_name;
DROP INDEX IF EXISTS op_act;
DROP INDEX IF EXISTS op_ts;
DROP INDEX IF EXISTS op_undo;
DROP INDEX IF EXISTS session_name;
DROP TABLE IF EXISTS act;
UPDATE op SET run=(SELECT run FROM op u WHERE u.seq=op.undo_of) WHERE undo_of IS NOT NULL AND run IS NULL;
` + schema10 + schema11

// from9 takes out of a catalog what only format 9 had.
const from9 = `
DROP INDEX op_act;
ALTER TABLE op DROP COLUMN act;
ALTER TABLE op DROP COLUMN top;
`

// migrate makes an empty catalog, or one of an earlier format, one of ours.
func (d *DB) migrate(ctx context.Context) error {
	v, err := d.c.format(ctx, d.w)
	if err != nil || v == format {
		return err
	}
	if _, ok := d.c.steps()[v]; !ok {
		need := "the program that wrote it, or one of format 7"
		if v > format {
			need = "a newer program"
		}
		return &VersionError{"the store's format", strconv.Itoa(v), need}
	}
	err = d.transact(ctx, func(ctx context.Context, tx *tx) error {
		// Looked at again: several processes may open a new store at once.
		v, err := d.c.format(ctx, tx)
		if err != nil || v == format {
			return err
		}
		if err := tx.exec(ctx, d.c.steps()[v]); err != nil {
			return err
		}
		return tx.undone(ctx)
	})
	if err != nil {
		return fmt.Errorf("creating the catalog: %w", err)
	}
	return nil
}
