package checkpoint

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
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
	to, err := sql.Open("sqlite", (&url.URL{Scheme: "file", Path: filepath.ToSlash(fresh), RawQuery: "_pragma=auto_vacuum(INCREMENTAL)&_pragma=journal_mode(MEMORY)&_pragma=synchronous(OFF)"}).String())
	if err != nil {
		return err
	}
	defer to.Close()
	to.SetMaxOpenConns(1)
	if _, err := to.ExecContext(ctx, schema+fmt.Sprintf("PRAGMA user_version=%d", schemaVersion)); err != nil {
		return err
	}
	attached := true
	if _, err := to.ExecContext(ctx, "ATTACH ? AS old", old); err != nil {
		attached = false
		r.lose(Problem{What: "catalog", Why: "nothing of it can be read: " + err.Error()})
	}
	var v int
	if attached {
		if err := to.QueryRowContext(ctx, "PRAGMA old.user_version").Scan(&v); err != nil {
			return err
		}
		if v > 0 && v < schemaVersion {
			return &VersionError{"the format of the damaged store", strconv.Itoa(v), strconv.Itoa(schemaVersion)}
		}
	}
	for _, t := range []struct{ name, key string }{{"session", "id"}, {"turn", "id"}, {"path", "id"}, {"object", "id"},
		{"data", "id"}, {"op", "seq"}, {"change", "op"}, {"seal", "id"}, {"trash", "id"}, {"open_op", "op"}} {
		if !attached {
			break
		}
		if err := errors.Join(r.salvageTable(ctx, to, t.name, t.key), ctx.Err()); err != nil {
			return err
		}
	}
	if attached {
		for _, t := range []string{"limits", "unpurged"} { // what can't be read of these, nobody noted
			to.ExecContext(ctx, "INSERT OR IGNORE INTO main."+t+" SELECT * FROM old."+t) //nolint:errcheck // as said
		}
		if _, err := to.ExecContext(ctx, "DETACH old"); err != nil {
			return err
		}
	}
	// What hangs in the air gets something to stand on. A name that is lost is called so; an owner-only mode hurts nobody.
	_, err = to.ExecContext(ctx, `
DELETE FROM open_op WHERE op NOT IN (SELECT seq FROM op);
DELETE FROM change WHERE NOT EXISTS (SELECT 1 FROM op WHERE seq=change.op) OR NOT EXISTS (SELECT 1 FROM path WHERE id=change.path);
INSERT OR IGNORE INTO session(id, principal, name) SELECT DISTINCT session, '', 'lost-'||session FROM op WHERE session NOT IN (SELECT id FROM session);
UPDATE change SET bobj=NULL, skipped=ifnull(skipped, 'damaged') WHERE bobj IS NOT NULL AND bobj NOT IN (SELECT id FROM object);
UPDATE change SET aobj=NULL, askipped='damaged' WHERE aobj IS NOT NULL AND aobj NOT IN (SELECT id FROM object);
DELETE FROM data WHERE id NOT IN (SELECT id FROM object) OR codec & 8 AND key NOT IN (SELECT id FROM seal);`+markMissing)
	if err != nil {
		return err
	}
	dir := filepath.Dir(r.Kept)
	return errors.Join(r.goOn(ctx, to, dir), r.keepLoose(ctx, to, dir))
}

// salvageTable copies the rows of a table of the attached old database: by their keys, read forwards until one cannot be
// read, and then from the other end. What lies between two damaged places is lost to the new store; it stays in what is
// kept beside. The rows never leave SQLite, so that they stay what they are: an empty blob is none to Go.
func (r *Repaired) salvageTable(ctx context.Context, to *sql.DB, table, key string) error {
	keys := map[int64]bool{}
	for _, order := range []string{"", " DESC"} {
		some, err := queryIDs(ctx, to, "SELECT DISTINCT "+key+" FROM old."+table+" NOT INDEXED ORDER BY "+key+order)
		for _, k := range some {
			keys[k] = true
		}
		if err == nil {
			break
		}
		if order == "" { // once is enough
			r.lose(Problem{What: "catalog", Why: fmt.Sprintf("rows of table %s cannot be read: %v", table, err)})
		}
	}
	var cols string // that both know
	err := to.QueryRowContext(ctx, "SELECT ifnull(group_concat(name), '') FROM pragma_table_info(?1, 'main') JOIN pragma_table_info(?1, 'old') USING(name)", table).Scan(&cols)
	if err != nil || cols == "" {
		return err
	}
	copyRows := func(keys []int64) error {
		list, err := json.Marshal(keys)
		if err == nil {
			_, err = to.ExecContext(ctx, "INSERT OR IGNORE INTO main."+table+"("+cols+") SELECT "+cols+" FROM old."+table+
				" NOT INDEXED WHERE "+key+" IN (SELECT value FROM json_each(?))", string(list))
		}
		return err
	}
	for some := range slices.Chunk(slices.Collect(maps.Keys(keys)), 1000) {
		if copyRows(some) == nil {
			continue
		}
		for i, k := range some {
			if err := copyRows(some[i : i+1]); err != nil {
				r.lose(Problem{What: "catalog", Why: fmt.Sprintf("row %d of table %s cannot be read: %v", k, table, err)})
			}
		}
	}
	return nil
}
