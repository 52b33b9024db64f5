package checkpoint

// The catalog. Everything that repeats (paths, sessions, tools, owners and modes, hashes) is interned, because a row
// that is written at every edit should cost what the edit costs.
//
//   - object: a content that was ever seen, by hash. Its bytes, if they are stored, are the row of the same id in data.
//   - data.base is the object that a delta applies to; depth counts the deltas below. A base is never deleted before its
//     children are re-encoded, in the same transaction.
//   - op.seq is never used twice: gc keeps the newest row, and after a repair meta.after says where to go on. The same holds for trash.id.
//   - open_op has a row for each operation that is not settled: it goes when the outcome is written.
//   - late, of op and change, is not used any more.
//   - session.gone and path.gone are the newest checkpoint that retention took of them, session.gone_ts the newest time of one: of a session only what
//     changed something for it, so that a rewind knows whether it would be whole; of a path only where it was newer than all that stay.
//   - turn has a row for each beginning: of a name there may be several, of which the one with the greatest id is the last.
//   - meta.gen goes up whenever rows that other processes may have cached (paths, objects, data) are deleted or changed.
const schemaVersion = 4

const schema = `
CREATE TABLE meta(k TEXT PRIMARY KEY, v) WITHOUT ROWID;
CREATE TABLE word(id INTEGER PRIMARY KEY, s TEXT NOT NULL UNIQUE);
CREATE TABLE session(id INTEGER PRIMARY KEY, principal TEXT NOT NULL, name TEXT NOT NULL,
	gone INTEGER, gone_ts INTEGER, UNIQUE(principal, name));
CREATE TABLE turn` + turnTable + `
CREATE TABLE path(id INTEGER PRIMARY KEY, path BLOB NOT NULL UNIQUE, gone INTEGER);
CREATE TABLE attr(id INTEGER PRIMARY KEY, mode INTEGER NOT NULL, uid INTEGER NOT NULL, gid INTEGER NOT NULL,
	xattrs BLOB NOT NULL, UNIQUE(mode, uid, gid, xattrs));
CREATE TABLE object(id INTEGER PRIMARY KEY, hash BLOB NOT NULL UNIQUE, size INTEGER NOT NULL);
CREATE TABLE data(id INTEGER PRIMARY KEY, codec INTEGER NOT NULL, base INTEGER, depth INTEGER NOT NULL,
	key INTEGER, bytes INTEGER NOT NULL, z BLOB NOT NULL);
CREATE INDEX data_base ON data(base) WHERE base IS NOT NULL;
CREATE INDEX data_ext ON data(bytes) WHERE codec & 4;
CREATE TABLE op(seq INTEGER PRIMARY KEY, ts INTEGER NOT NULL, session INTEGER NOT NULL, turn INTEGER, tool INTEGER NOT NULL,
	kind INTEGER NOT NULL, outcome INTEGER NOT NULL DEFAULT 0, pin INTEGER NOT NULL DEFAULT 0, label TEXT,
	undo_of INTEGER, restore_of INTEGER, late INTEGER);
CREATE INDEX op_session ON op(session);
CREATE INDEX op_label ON op(label) WHERE label IS NOT NULL;
CREATE TABLE change(op INTEGER NOT NULL, n INTEGER NOT NULL, path INTEGER NOT NULL, role INTEGER NOT NULL, skipped TEXT,
	bkind INTEGER NOT NULL, battr INTEGER, bmtime INTEGER, bobj INTEGER, bsize INTEGER, btarget BLOB,
	akind INTEGER NOT NULL, aattr INTEGER, amtime INTEGER, aobj INTEGER, asize INTEGER, atarget BLOB, late INTEGER, askipped TEXT,
	PRIMARY KEY(op, n)) WITHOUT ROWID;
CREATE INDEX change_path ON change(path, op);
CREATE TABLE seal(id INTEGER PRIMARY KEY, wrapped BLOB NOT NULL);
CREATE TABLE trash(id INTEGER PRIMARY KEY, ts INTEGER NOT NULL, expires INTEGER NOT NULL, principal TEXT NOT NULL,
	session TEXT NOT NULL, path BLOB NOT NULL, parked BLOB, op INTEGER, phase INTEGER NOT NULL, kind TEXT NOT NULL,
	size INTEGER NOT NULL, files INTEGER NOT NULL, ident TEXT NOT NULL);
CREATE INDEX trash_expires ON trash(expires);
CREATE INDEX trash_op ON trash(op) WHERE op IS NOT NULL;
` + openTable + turnIndexes + lateIndexes

const openTable = `
CREATE TABLE open_op(op INTEGER PRIMARY KEY, tag TEXT NOT NULL, steps BLOB NOT NULL, made INTEGER NOT NULL DEFAULT 0);
`

const turnTable = `(id INTEGER PRIMARY KEY, session INTEGER NOT NULL, name TEXT NOT NULL, after INTEGER NOT NULL, ts INTEGER NOT NULL);`

const turnIndexes = `
CREATE INDEX turn_session ON turn(session);
CREATE INDEX turn_name ON turn(session, name);
`

const lateIndexes = `
CREATE INDEX op_late ON op(late) WHERE late IS NOT NULL;
CREATE INDEX change_late ON change(path, late) WHERE late IS NOT NULL;
`

// migrations[v] makes a store of format v one of v+1.
var migrations = map[int]string{
	1: `
ALTER TABLE op ADD COLUMN late INTEGER;
ALTER TABLE change ADD COLUMN late INTEGER;
ALTER TABLE change ADD COLUMN askipped TEXT;
UPDATE op SET late=ts FROM (SELECT seq AS s, max(ts) OVER (ORDER BY seq) AS top FROM op) WHERE seq=s AND ts < top;
UPDATE change SET late=(SELECT late FROM op WHERE seq=change.op) WHERE op IN (SELECT seq FROM op WHERE late IS NOT NULL);
` + lateIndexes,
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
}

// markMissing says of every session that was there before the newest number that is missing that it may have lost that one: nobody noted whose it was.
const markMissing = `
INSERT INTO meta(k, v) SELECT 'missing', max(seq)-1 FROM op WHERE seq > 1 AND seq-1 NOT IN (SELECT seq FROM op);
INSERT INTO meta(k, v) SELECT 'missing_ts', ts-1 FROM op WHERE seq > (SELECT v FROM meta WHERE k='missing') ORDER BY seq LIMIT 1;
UPDATE session SET gone=(SELECT v FROM meta WHERE k='missing'), gone_ts=max(ifnull(gone_ts, -1<<63), (SELECT v FROM meta WHERE k='missing_ts'))
	WHERE ifnull(gone, 0) < (SELECT v FROM meta WHERE k='missing')
	AND (EXISTS (SELECT 1 FROM op WHERE op.session=session.id AND op.seq < (SELECT v FROM meta WHERE k='missing'))
		OR EXISTS (SELECT 1 FROM turn WHERE turn.session=session.id AND turn.after < (SELECT v FROM meta WHERE k='missing')));
DELETE FROM meta WHERE k IN ('missing', 'missing_ts');
`
