package checkpoint

// All that is of SQLite and not of SQL: how it is opened, its errors, its pages and its log. The
// tables are in schema.go.

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"modernc.org/sqlite" // registers itself with database/sql under "sqlite"

	"moltisfs/checkpoint/localdir"
	"moltisfs/internal/guardfs/flock"
)

const (
	setFormat   = "PRAGMA user_version=%d"
	busyTimeout = "20000" // ms that a connection waits for others
	logMost     = 8 << 20 // bytes of the log that stay when it begins anew
)

// sqliteCatalog is the catalog of one machine, in a file of the directory dir.
type sqliteCatalog struct {
	dir    string
	logger *slog.Logger
	frozen bool        // on a read-only file system
	inUse  *os.File    // see holdOpen
	file   fs.FileInfo // of the catalog that is open
	doubt  error       // why the last commit failed, if that was the disk's doing; of who has the connection that writes
}

func (s *sqliteCatalog) connect() (write, read *pool, err error) {
	fresh, err := prepareDir(s.dir)
	if err != nil {
		return nil, nil, err
	}
	if s.inUse, err = holdOpen(s.dir, false); err != nil && !noRoom(err) {
		return nil, nil, err
	}
	s.frozen = errors.Is(err, syscall.EROFS) || isAside(s.dir)
	if s.file, err = os.Stat(filepath.Join(s.dir, fileName)); err != nil {
		return nil, nil, err
	}
	w, err1 := sql.Open("sqlite", s.dsn(true, fresh))
	r, err2 := sql.Open("sqlite", s.dsn(false, false))
	if err := errors.Join(err1, err2); err != nil {
		return nil, nil, err
	}
	return newPool(w, 1), newPool(r, 8), nil
}

func (s *sqliteCatalog) close() error {
	if s.inUse == nil {
		return nil
	}
	return flock.Close(s.inUse)
}

// again: SQLite does not wait for the lock by which a new file gets its log: of several processes that
// make a store at once, some are told at once that it is busy. Nor does whoever finds a damaged
// one that another process moves aside.
func (s *sqliteCatalog) again(err error, since time.Duration) (bool, error) {
	if (damaged(err) || errors.Is(err, ErrDamaged)) && !isAside(s.dir) {
		if err = s.moveAside(err); err == nil {
			return true, nil
		}
	}
	wait := time.Duration(-1)
	switch err := named(err); {
	case errors.Is(err, ErrBusy):
		wait = 10 * time.Second
	case errors.Is(err, ErrInUse):
		wait = time.Second
	}
	return since <= wait, err
}

func (s *sqliteCatalog) steps() map[int]string {
	set := fmt.Sprintf(setFormat, format)
	return map[int]string{0: schema + set, 7: from7 + from8 + set, 8: from8 + set, 9: from9 + from8 + set, 10: schema11 + set}
}

func (s *sqliteCatalog) opened(ctx context.Context, q querier) error {
	if s.frozen {
		return nil
	}
	// The log exists now, and SQLite's rollback file is gone. SQLite has the directory synced, too,
	// but takes no notice when that fails. Then a power cut would take the log with all that is in
	// it, or bring the rollback file back, which undoes the database.
	if err := localdir.Sync(s.dir); err != nil {
		return err
	}
	suspect := filepath.Join(s.dir, suspectFile)
	if _, err := os.Lstat(suspect); err != nil {
		return nil //nolint:nilerr // nobody suspects anything
	}
	if found, err := s.check(ctx, q); err != nil || len(found) > 0 {
		return fmt.Errorf("%w: %w", ErrDamaged, errors.Join(err, errors.New(strings.Join(found, "; "))))
	}
	os.Remove(suspect)
	return nil
}

func (s *sqliteCatalog) format(ctx context.Context, q querier) (v int, err error) {
	var tables int // asked for in one statement: another process may be making them
	err = q.QueryRowContext(ctx, "SELECT user_version, (SELECT count(*) FROM sqlite_schema) FROM pragma_user_version").
		Scan(&v, &tables)
	if err == nil && v == 0 && tables > 0 {
		err = fmt.Errorf("%w: it says that it is empty, and has tables", ErrDamaged)
	}
	if err == nil && s.frozen && v != format {
		err = &VersionError{"the format of a store that can't be written", strconv.Itoa(v), strconv.Itoa(format)}
	}
	return v, s.unreadable(err)
}

func (s *sqliteCatalog) dsn(write, fresh bool) string {
	q := []string{"_pragma=busy_timeout(" + busyTimeout + ")"}
	switch {
	case s.frozen:
		q = append(q, "mode=ro", "_pragma=query_only(1)")
		if n, err := s.logBytes(); err != nil || n == 0 {
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
	return uriOf(filepath.Join(s.dir, fileName), q...)
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
func (s *sqliteCatalog) logBytes() (int64, error) {
	fi, err := os.Lstat(filepath.Join(s.dir, fileName+"-wal"))
	if err == nil {
		return fi.Size(), nil
	}
	if errors.Is(err, os.ErrNotExist) {
		err = nil
	}
	return 0, err
}

const pageSize = 4096 // of a catalog

// size: used are the pages of the catalog that are in use, and the large contents.
func (s *sqliteCatalog) size(ctx context.Context, q querier) (used, log int64, err error) {
	pages, err1 := one[int64](ctx, q, "PRAGMA page_count") // as a table it is compiled each time
	free, err2 := one[int64](ctx, q, "PRAGMA freelist_count")
	files, err3 := one[int64](ctx, q, "SELECT coalesce(sum(bytes), 0) FROM content WHERE name IS NOT NULL")
	log, err4 := s.logBytes()
	return (pages-free)*pageSize + files, log, errors.Join(err1, err2, err3, err4)
}

func (s *sqliteCatalog) grown(ctx context.Context, tx *tx, _ int64) (used int64, err error) {
	used, _, err = s.size(ctx, tx)
	return used, err
}

// shrink gives some free pages back to the file system.
func (s *sqliteCatalog) shrink(ctx context.Context, tx *tx) (more bool, err error) {
	// A little is left for the next saves.
	more, err = one[bool](ctx, tx, `SELECT freelist_count > page_count/20 + 16
		FROM pragma_page_count, pragma_freelist_count`)
	if err != nil || !more {
		return false, err
	}
	return true, tx.exec(ctx, "PRAGMA incremental_vacuum(1024)")
}

// check lets SQLite check the file. Faults are noted for the next Open.
func (s *sqliteCatalog) check(ctx context.Context, q querier) (faults []string, err error) {
	faults, err = column[string](ctx, q, "PRAGMA integrity_check(20)")
	if err != nil || slices.Equal(faults, []string{"ok"}) {
		return nil, err
	}
	return faults, s.suspect("checked")
}

// dump: others may write meanwhile.
func (s *sqliteCatalog) dump(ctx context.Context, file string) error {
	db, err := sql.Open("sqlite", uriOf(filepath.Join(s.dir, fileName), "_pragma=busy_timeout("+busyTimeout+")"))
	if err != nil {
		return err
	}
	_, err = db.ExecContext(ctx, "VACUUM INTO ?", file)
	return errors.Join(err, db.Close())
}

// clean: of a store of one machine there is no gateway but this one.
func (s *sqliteCatalog) clean(context.Context) (func(), error) { return func() {}, nil }

// openCopy opens what dump wrote. Nobody else has it open.
func openCopy(file string) (*sql.DB, error) {
	return sql.Open("sqlite", uriOf(file, "_pragma=journal_mode(DELETE)"))
}

// scour writes the catalog anew without its free pages, and empties the log.
func (s *sqliteCatalog) scour(ctx context.Context, c *conn) error {
	if _, err := c.ExecContext(ctx, "VACUUM"); err != nil {
		return err
	}
	all, err := moveLog(ctx, c, "TRUNCATE")
	if err == nil && !all {
		err = errors.New("somebody is reading the store; run the purge again")
	}
	return err
}

func (s *sqliteCatalog) begin(ctx context.Context, c *conn, synced bool) (end func(commit bool) error, err error) {
	if !synced {
		if err := setSync(ctx, c, false); err != nil {
			return nil, err
		}
	}
	resync := func(err error) error {
		if !synced && setSync(ctx, c, true) != nil {
			return driver.ErrBadConn // it is not used again
		}
		return err
	}
	if _, err := c.ExecContext(ctx, "BEGIN IMMEDIATE"); err != nil {
		return nil, resync(err)
	}
	return func(commit bool) (err error) {
		if commit {
			if _, err = c.ExecContext(ctx, "COMMIT"); err == nil {
				return resync(nil)
			}
			if diskFailed(err) {
				s.doubt = err
				err = &SyncError{err}
			}
		}
		c.ExecContext(ctx, "ROLLBACK") //nolint:errcheck // a commit that failed may have done it
		return resync(err)
	}, nil
}

func (s *sqliteCatalog) look(ctx context.Context, c *conn) error {
	_, err := c.ExecContext(ctx, "BEGIN")
	return err
}

// moveLog moves the log to the database, in one of SQLite's modes; all says that nothing is left.
func moveLog(ctx context.Context, q querier, mode string) (all bool, err error) {
	var busy, log, moved int
	err = q.QueryRowContext(ctx, "PRAGMA wal_checkpoint("+mode+")").Scan(&busy, &log, &moved)
	return busy == 0 && log == moved, err
}

// ready does nothing as a rule. It is for the time after a commit that the disk did not confirm.
// Another sync of the same file proves nothing then: the system may have forgotten what it could
// not write. So the whole log is written once more, to the database, and has to be confirmed there
// before anything else is accepted.
func (s *sqliteCatalog) ready(ctx context.Context, c *conn) error {
	if s.frozen {
		return ErrReadOnly
	}
	if s.doubt == nil {
		return nil
	}
	all, err := moveLog(ctx, c, "PASSIVE")
	if err != nil {
		return &SyncError{err}
	}
	if !all {
		return &SyncError{s.doubt} // somebody reads an older state; the next save tries again
	}
	s.doubt = nil
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

// failed notes for the next Open that the catalog is damaged.
func (s *sqliteCatalog) failed(err error) error {
	if damaged(err) {
		s.suspect(err.Error()) //nolint:errcheck // the next one notes it
	}
	return named(err)
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
func (s *sqliteCatalog) unreadable(err error) error {
	if s.frozen && code(err)&0xff == 14 { // SQLITE_CANTOPEN
		return fmt.Errorf("%w, and its log can't be read there; open it once where it can be written: %w",
			ErrReadOnly, err)
	}
	return err
}
