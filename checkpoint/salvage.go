package checkpoint

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
)

// rewrite replaces the database in dir by a new one that holds what could be read.
func (r *Repaired) rewrite(ctx context.Context, dir string) error {
	fresh, err := os.MkdirTemp(dir, "repair-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(fresh)
	// From a copy: SQLite writes to what it opens, and what is kept beside stays as it was.
	old := filepath.Join(fresh, "old")
	if err := os.Mkdir(old, 0o700); err != nil {
		return err
	}
	if err := copyDatabase(r.Kept, old); err != nil {
		return err
	}
	if err := mendHeader(filepath.Join(old, fileName)); err != nil {
		return err
	}
	if err := r.salvage(ctx, filepath.Join(old, fileName), filepath.Join(fresh, fileName)); err != nil {
		return err
	}
	f, err := os.OpenFile(filepath.Join(fresh, fileName), os.O_RDWR, 0)
	if err == nil {
		err = errors.Join(f.Chmod(0o600), f.Sync(), f.Close())
	}
	// The log belongs to the old database, and would be taken for the new one's.
	for _, side := range []string{"-wal", "-shm"} {
		if err2 := os.Remove(filepath.Join(dir, fileName+side)); err == nil && !errors.Is(err2, fs.ErrNotExist) {
			err = err2
		}
	}
	if err == nil {
		err = errors.Join(syncDir(dir), os.Rename(filepath.Join(fresh, fileName), filepath.Join(dir, fileName)), syncDir(dir))
	}
	return err
}

// header is how the file of every store begins: what it is, pages of 4096 bytes, a write-ahead log, and three constants
// (https://www.sqlite.org/fileformat.html, 1.3).
const header = "SQLite format 3\x00\x10\x00\x02\x02\x00\x40\x20\x20"

// mendHeader writes the header again. Without it SQLite takes the whole file for none of its own.
func mendHeader(file string) error {
	f, err := os.OpenFile(file, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteAt([]byte(header), 0)
	return errors.Join(err, f.Close())
}

// salvage copies what can be read of the database old to a new one.
func (r *Repaired) salvage(ctx context.Context, old, fresh string) error {
	open := func(path string) (*sql.DB, error) {
		db, err := sql.Open("sqlite", (&url.URL{Scheme: "file", Path: filepath.ToSlash(path), RawQuery: "_pragma=auto_vacuum(INCREMENTAL)"}).String())
		if err == nil {
			db.SetMaxOpenConns(1)
		}
		return db, err
	}
	to, err := open(fresh)
	if err != nil {
		return err
	}
	defer to.Close()
	if _, err := to.ExecContext(ctx, schema+fmt.Sprintf("PRAGMA user_version=%d", schemaVersion)); err != nil {
		return err
	}
	from, err := open(old)
	if err != nil {
		return err
	}
	defer from.Close()
	for _, t := range []struct{ name, key string }{{"word", "id"}, {"session", "id"}, {"turn", "id"}, {"path", "id"}, {"attr", "id"}, {"object", "id"},
		{"data", "id"}, {"op", "seq"}, {"change", "op"}, {"seal", "id"}, {"trash", "id"}} {
		tx, err := to.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		if err := r.salvageTable(ctx, from, tx, t.name, t.key); err != nil {
			tx.Rollback()
			return err
		}
		if err := tx.Commit(); err != nil {
			return err
		}
	}
	// What hangs in the air gets something to stand on. A name that is lost is called so; an owner-only mode hurts nobody.
	_, err = to.ExecContext(ctx, `
INSERT INTO meta VALUES('gen', abs(random()) / 2);
DELETE FROM change WHERE NOT EXISTS (SELECT 1 FROM op WHERE seq=change.op) OR NOT EXISTS (SELECT 1 FROM path WHERE id=change.path);
INSERT OR IGNORE INTO session(id, principal, name) SELECT DISTINCT session, '', 'lost-'||session FROM op WHERE session NOT IN (SELECT id FROM session);
INSERT OR IGNORE INTO word(id, s) SELECT w, 'lost-'||w FROM (SELECT tool AS w FROM op UNION SELECT kind FROM op UNION SELECT role FROM change)
	WHERE w NOT IN (SELECT id FROM word);
INSERT OR IGNORE INTO attr(mode, uid, gid, xattrs) VALUES(448, 0, 0, x'');
UPDATE change SET battr=(SELECT id FROM attr WHERE mode=448 AND uid=0 AND gid=0 AND xattrs=x'') WHERE battr IS NOT NULL AND battr NOT IN (SELECT id FROM attr);
UPDATE change SET aattr=(SELECT id FROM attr WHERE mode=448 AND uid=0 AND gid=0 AND xattrs=x'') WHERE aattr IS NOT NULL AND aattr NOT IN (SELECT id FROM attr);
UPDATE change SET bobj=NULL, skipped=ifnull(skipped, 'damaged') WHERE bobj IS NOT NULL AND bobj NOT IN (SELECT id FROM object);
UPDATE change SET aobj=NULL, askipped='damaged' WHERE aobj IS NOT NULL AND aobj NOT IN (SELECT id FROM object);
DELETE FROM data WHERE id NOT IN (SELECT id FROM object) OR codec & 8 AND key NOT IN (SELECT id FROM seal);`+markMissing)
	if err != nil {
		return err
	}
	if err := r.salvageLimits(ctx, from, to); err != nil {
		return err
	}
	dir := filepath.Dir(r.Kept)
	return errors.Join(r.goOn(ctx, to, dir), r.keepLoose(ctx, to, dir))
}

// salvageLimits copies what others noted to be kept, if it can be read.
func (r *Repaired) salvageLimits(ctx context.Context, from, to *sql.DB) error {
	rows, err := from.QueryContext(ctx, limitsNoted)
	if err != nil {
		return nil
	}
	defer rows.Close()
	for rows.Next() {
		var k string
		var at int64
		if rows.Scan(&k, &at) != nil {
			return nil
		}
		if _, err := to.ExecContext(ctx, noteLimits, k, at); err != nil {
			return err
		}
	}
	return nil
}

// salvageTable copies the rows of a table by its key, forwards until one cannot be read, and then from the other end.
// What lies between two damaged places is lost to the new store; it stays in what is kept beside.
func (r *Repaired) salvageTable(ctx context.Context, from *sql.DB, to *sql.Tx, table, key string) error {
	for _, order := range []string{"", " DESC"} {
		err := r.copyRows(ctx, from, to, table, " ORDER BY "+key+order)
		if err == nil || ctx.Err() != nil {
			return ctx.Err()
		}
		if order == "" { // once is enough
			r.lose(Problem{What: "catalog", Why: fmt.Sprintf("rows of table %s cannot be read: %v", table, err)})
		}
	}
	return nil
}

func (r *Repaired) copyRows(ctx context.Context, from *sql.DB, to *sql.Tx, table, order string) error {
	rows, err := from.QueryContext(ctx, "SELECT * FROM "+table+" NOT INDEXED"+order)
	if err != nil {
		return err
	}
	defer rows.Close()
	cols, err := rows.Columns()
	if err != nil {
		return err
	}
	insert := "INSERT OR IGNORE INTO " + table + "(" + strings.Join(cols, ", ") + ") VALUES(?" + strings.Repeat(",?", len(cols)-1) + ")"
	vals, at := make([]any, len(cols)), make([]any, len(cols))
	for i := range vals {
		at[i] = &vals[i]
	}
	for rows.Next() {
		if err := rows.Scan(at...); err != nil {
			return err
		}
		if _, err := to.ExecContext(ctx, insert, vals...); err != nil {
			r.lose(Problem{What: "catalog", Why: fmt.Sprintf("row %v of table %s makes no sense: %v", vals[0], table, err)})
		}
	}
	return rows.Err()
}
