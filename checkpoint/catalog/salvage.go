package catalog

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"

	_ "modernc.org/sqlite" // registers itself as "sqlite"
)

// FormatError: the damaged database is of an earlier format, which nothing is saved of.
type FormatError struct{ Format int }

func (e *FormatError) Error() string {
	return fmt.Sprintf("the damaged database has format %d", e.Format)
}

// header is how the file of every store begins: what it is, pages of 4096 bytes, a write-ahead log,
// and three constants (https://www.sqlite.org/fileformat.html, 1.3).
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

// Salvage copies what can be read of the database old to a new one, which the caller has to close.
// lost hears what cannot be read. It writes to old, so that it has to be a copy.
func Salvage(ctx context.Context, old, fresh string, lost func(why string)) (*sql.DB, error) {
	if err := mendHeader(old); err != nil {
		return nil, err
	}
	const how = "_pragma=auto_vacuum(INCREMENTAL)&_pragma=journal_mode(MEMORY)&_pragma=synchronous(OFF)"
	to, err := sql.Open("sqlite", (&url.URL{Scheme: "file", Path: filepath.ToSlash(fresh), RawQuery: how}).String())
	if err != nil {
		return nil, err
	}
	to.SetMaxOpenConns(1) // what is attached is so for one connection
	if err = create(ctx, to); err == nil {
		err = (&salvage{to, lost}).all(ctx, old)
	}
	if err != nil {
		return nil, errors.Join(err, to.Close())
	}
	return to, nil
}

type salvage struct {
	to   *sql.DB
	lost func(why string)
}

func (s *salvage) all(ctx context.Context, old string) error {
	if err := exec(ctx, s.to, "ATTACH ? AS old", old); err != nil {
		s.lost("nothing of it can be read: " + err.Error())
		return ctx.Err()
	}
	var v int
	if err := s.to.QueryRowContext(ctx, "PRAGMA old.user_version").Scan(&v); err != nil {
		return err
	}
	if v > 0 && v < Format {
		return &FormatError{v}
	}
	for _, t := range []struct{ name, key string }{{"session", "id"}, {"turn", "id"}, {"path", "id"},
		{"object", "id"}, {"data", "id"}, {"op", "seq"}, {"change", "op"}, {"seal", "id"}, {"trash", "id"},
		{"open_op", "op"}} {
		if err := errors.Join(s.table(ctx, t.name, t.key), ctx.Err()); err != nil {
			return err
		}
	}
	for _, t := range []string{"limits", "unpurged"} { // what can't be read of these, nobody noted
		exec(ctx, s.to, "INSERT OR IGNORE INTO main."+t+" SELECT * FROM old."+t) //nolint:errcheck // as said
	}
	return exec(ctx, s.to, "DETACH old;"+standing+markMissing)
}

// standing gives something to stand on to what hangs in the air. A name that is lost is called so.
const standing = `
DELETE FROM open_op WHERE op NOT IN (SELECT seq FROM op);
DELETE FROM change WHERE NOT EXISTS (SELECT 1 FROM op WHERE seq=change.op)
	OR NOT EXISTS (SELECT 1 FROM path WHERE id=change.path);
INSERT OR IGNORE INTO session(id, principal, name)
	SELECT DISTINCT session, '', 'lost-'||session FROM op WHERE session NOT IN (SELECT id FROM session);
UPDATE change SET bobj=NULL, skipped=ifnull(skipped, 'damaged')
	WHERE bobj IS NOT NULL AND bobj NOT IN (SELECT id FROM object);
UPDATE change SET aobj=NULL, askipped='damaged' WHERE aobj IS NOT NULL AND aobj NOT IN (SELECT id FROM object);
DELETE FROM data WHERE id NOT IN (SELECT id FROM object) OR codec & 8 AND key NOT IN (SELECT id FROM seal);
UPDATE op SET run=-run WHERE run IN (SELECT run FROM
	(SELECT run, min(seq) AS a, max(seq) AS z FROM op WHERE run > 0 GROUP BY run)
	WHERE (SELECT count(*) FROM op o WHERE o.seq BETWEEN a AND z) < z-a+1);`

// table copies the rows of a table by their keys, read forwards until one cannot be read, and then
// from the other end. What lies between two damaged places is lost to the new store; it stays in
// what is kept beside. The rows never leave SQLite, so that they stay what they are: an empty blob
// is none to Go.
func (s *salvage) table(ctx context.Context, table, key string) error {
	keys := map[int64]bool{}
	for _, order := range []string{"", " DESC"} {
		err := s.keys(ctx, "SELECT DISTINCT "+key+" FROM old."+table+" NOT INDEXED ORDER BY "+key+order, keys)
		if err == nil {
			break
		}
		if order == "" { // once is enough
			s.lost(fmt.Sprintf("rows of table %s cannot be read: %v", table, err))
		}
	}
	var cols string // that both know
	const both = `SELECT ifnull(group_concat(name), '')
		FROM pragma_table_info(?1, 'main') JOIN pragma_table_info(?1, 'old') USING(name)`
	if err := s.to.QueryRowContext(ctx, both, table).Scan(&cols); err != nil || cols == "" {
		return err
	}
	copyRows := func(keys []int64) error {
		list, err := json.Marshal(keys)
		if err != nil {
			return err
		}
		return exec(ctx, s.to, "INSERT OR IGNORE INTO main."+table+"("+cols+") SELECT "+cols+" FROM old."+table+
			" NOT INDEXED WHERE "+key+" IN (SELECT value FROM json_each(?))", string(list))
	}
	for some := range slices.Chunk(slices.Collect(maps.Keys(keys)), 1000) {
		if copyRows(some) == nil {
			continue
		}
		for i, k := range some {
			if err := copyRows(some[i : i+1]); err != nil {
				s.lost(fmt.Sprintf("row %d of table %s cannot be read: %v", k, table, err))
			}
		}
	}
	return nil
}

// keys adds to keys what the query answers, up to where it breaks.
func (s *salvage) keys(ctx context.Context, q string, keys map[int64]bool) error {
	rows, err := s.to.QueryContext(ctx, q)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var k int64
		if err := rows.Scan(&k); err != nil {
			return err
		}
		keys[k] = true
	}
	return rows.Err()
}
