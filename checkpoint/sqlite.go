package checkpoint

// All that is of SQLite and not of SQL: how it is opened, its errors, its pages and its log. The
// tables are in schema.go.

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"modernc.org/sqlite" // registers itself with database/sql under "sqlite"
)

const (
	setFormat   = "PRAGMA user_version=%d"
	busyTimeout = "20000" // ms that a connection waits for others
	logMost     = 8 << 20 // bytes of the log that stay when it begins anew
)

// openCatalog opens the catalog of the store in dir with its two pools: one connection that writes,
// some that read.
func (d *DB) openCatalog(fresh bool) (err error) {
	w, err := sql.Open("sqlite", d.dsn(true, fresh))
	if err != nil {
		return err
	}
	d.w = newPool(w, 1)
	r, err := sql.Open("sqlite", d.dsn(false, false))
	if err != nil {
		return err
	}
	d.r = newPool(r, 8)
	return nil
}

// formatOf is the format of a catalog, 0 of an empty one.
func formatOf(ctx context.Context, q querier) (v int, err error) {
	var tables int // asked for in one statement: another process may be making them
	err = q.QueryRowContext(ctx, "SELECT user_version, (SELECT count(*) FROM sqlite_schema) FROM pragma_user_version").
		Scan(&v, &tables)
	if err == nil && v == 0 && tables > 0 {
		err = fmt.Errorf("%w: it says that it is empty, and has tables", ErrDamaged)
	}
	return v, err
}

func (d *DB) dsn(write, fresh bool) string {
	q := []string{"_pragma=busy_timeout(" + busyTimeout + ")"}
	switch {
	case d.frozen:
		q = append(q, "mode=ro", "_pragma=query_only(1)")
		if n, err := d.logBytes(); err != nil || n == 0 {
			// SQLite can't make the log's index there; without a log it needs none.
			q = append(q, "immutable=1")
		}
	case write:
		if fresh { // else it takes the lock for writing, and opening waits for whoever holds that
			q = append(q, "_pragma=auto_vacuum(INCREMENTAL)")
		}
		q = append(q, "mode=rw", "_pragma=journal_mode(WAL)",
			"_pragma=synchronous(FULL)", "_pragma=secure_delete(FAST)",
			"_pragma=journal_size_limit("+strconv.Itoa(logMost)+")",
			"_pragma=wal_autocheckpoint("+strconv.Itoa(logMost/pageSize)+")")
	default:
		q = append(q, "mode=rw", "_pragma=query_only(1)")
	}
	return uriOf(filepath.Join(d.dir, fileName), q...)
}

// uriOf names a file for SQLite, with the options of the connection.
func uriOf(file string, query ...string) string {
	p := filepath.ToSlash(file)
	if !strings.HasPrefix(p, "/") {
		p = "/" + p
	}
	return (&url.URL{Scheme: "file", Path: p, RawQuery: strings.Join(query, "&")}).String()
}

// logBytes is the length of the log, in use or not; 0 when there is none.
func (d *DB) logBytes() (int64, error) {
	fi, err := os.Lstat(filepath.Join(d.dir, fileName+"-wal"))
	if err == nil {
		return fi.Size(), nil
	}
	if errors.Is(err, os.ErrNotExist) {
		err = nil
	}
	return 0, err
}

const pageSize = 4096 // of a catalog

// measure notes how many bytes of MaxBytes the store takes: the pages of the catalog that are in use, and the large
// contents.
func (d *DB) measure(ctx context.Context, q querier) error {
	pages, err1 := one[int64](ctx, q, "PRAGMA page_count") // as a table it is compiled each time
	free, err2 := one[int64](ctx, q, "PRAGMA freelist_count")
	files, err3 := one[int64](ctx, q, "SELECT coalesce(sum(bytes), 0) FROM content WHERE name IS NOT NULL")
	err := errors.Join(err1, err2, err3)
	if err == nil {
		d.used.Store((pages-free)*pageSize + files)
	}
	return err
}

// fits is a *FullError if the store takes more than MaxBytes.
func (d *DB) fits(ctx context.Context, tx *tx) error {
	err := d.measure(ctx, tx)
	if used := d.used.Load(); err == nil && used > d.o.MaxBytes {
		err = &FullError{used, d.o.MaxBytes}
	}
	return err
}

// shrink gives some free pages back to the file system. more says that there are many left.
func (tx *tx) shrink(ctx context.Context) (more bool, err error) {
	// A little is left for the next saves.
	more, err = one[bool](ctx, tx, `SELECT freelist_count > page_count/20 + 16
		FROM pragma_page_count, pragma_freelist_count`)
	if err != nil || !more {
		return false, err
	}
	return true, tx.exec(ctx, "PRAGMA incremental_vacuum(1024)")
}

// pages lets SQLite check the file. ok is its only answer if nothing is wrong.
func pages(ctx context.Context, q querier) ([]string, error) {
	return column[string](ctx, q, "PRAGMA integrity_check(20)")
}

// vacuumInto writes a snapshot of the catalog into an empty file. Others may write meanwhile.
func (d *DB) vacuumInto(ctx context.Context, to string) error {
	db, err := sql.Open("sqlite", uriOf(filepath.Join(d.dir, fileName), "_pragma=busy_timeout("+busyTimeout+")"))
	if err != nil {
		return err
	}
	_, err = db.ExecContext(ctx, "VACUUM INTO ?", to)
	return errors.Join(err, db.Close())
}

// openCopy opens what vacuumInto wrote. Nobody else has it open.
func openCopy(file string) (*sql.DB, error) {
	return sql.Open("sqlite", uriOf(file, "_pragma=journal_mode(DELETE)"))
}

// scour writes the catalog anew without its free pages, and empties the log: no byte stays of what
// was deleted.
func (d *DB) scour(ctx context.Context) error {
	return d.alone(ctx, func(ctx context.Context, conn *conn) error {
		if _, err := conn.ExecContext(ctx, "VACUUM"); err != nil {
			return err
		}
		all, err := moveLog(ctx, conn, "TRUNCATE")
		if err == nil && !all {
			err = errors.New("somebody is reading the store; run the purge again")
		}
		return err
	})
}

// moveLog moves the log to the database, in one of SQLite's modes; all says that nothing is left.
func moveLog(ctx context.Context, q querier, mode string) (all bool, err error) {
	var busy, log, moved int
	err = q.QueryRowContext(ctx, "PRAGMA wal_checkpoint("+mode+")").Scan(&busy, &log, &moved)
	return busy == 0 && log == moved, err
}

// assure does nothing as a rule. It is for the time after a commit that the disk did not confirm.
// Another sync of the same file proves nothing then: the system may have forgotten what it could
// not write. So the whole log is written once more, to the database, and has to be confirmed there
// before anything else is accepted.
func (d *DB) assure(ctx context.Context, conn *conn) error {
	if d.doubt == nil {
		return nil
	}
	all, err := moveLog(ctx, conn, "PASSIVE")
	if err != nil {
		return &SyncError{err}
	}
	if !all {
		return &SyncError{d.doubt} // somebody reads an older state; the next save tries again
	}
	d.doubt = nil
	return nil
}

// setSync says whether the commits of a connection wait for the disk. It goes round the compiled statements:
// this one takes effect when it is compiled.
func setSync(ctx context.Context, c *conn, on bool) error {
	mode := "NORMAL"
	if on {
		mode = "FULL"
	}
	_, err := c.Conn.ExecContext(ctx, "PRAGMA synchronous="+mode)
	return err
}

// code is SQLite's own number of an error, with its extension; 0 if it has none.
func code(err error) int {
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		return e.Code()
	}
	return 0
}

func diskFailed(err error) bool { return code(err)&0xff == 10 } // SQLITE_IOERR and its extensions

func damaged(err error) bool {
	c := code(err) & 0xff
	return c == 11 || c == 26 // SQLITE_CORRUPT, SQLITE_NOTADB
}

// named makes a full disk, a lock that lasts and a damaged catalog recognisable to those who know nothing of SQLite.
func named(err error) error {
	// SQLITE_BUSY; SQLITE_PROTOCOL: the lock that only guards the log's index.
	if c := code(err) & 0xff; (c == 5 || c == 15) && !errors.Is(err, ErrBusy) {
		return fmt.Errorf("%w: %w", ErrBusy, err)
	}
	if damaged(err) && !errors.Is(err, ErrDamaged) {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	if err == nil || errors.As(err, new(*DiskFullError)) || !diskFull(err) {
		return err
	}
	return &DiskFullError{err}
}

func diskFull(err error) bool {
	// SQLITE_FULL. The others are what becomes of the log's index: SQLITE_IOERR_SHMOPEN, _SHMSIZE and
	// _SHMMAP.
	switch c := code(err); c {
	case 10 | 18<<8, 10 | 19<<8, 10 | 21<<8:
		return true
	default:
		return c&0xff == 13 || errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
	}
}

// unreadable says why the log of a store on a read-only file system stops us: SQLite can't make
// the index that it reads it by.
func (d *DB) unreadable(err error) error {
	if d.frozen && code(err)&0xff == 14 { // SQLITE_CANTOPEN
		return fmt.Errorf("%w, and its log can't be read there; open it once where it can be written: %w",
			ErrReadOnly, err)
	}
	return err
}
