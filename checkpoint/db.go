package checkpoint

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"moltisfs/checkpoint/blob"
	"moltisfs/checkpoint/localdir"
	"moltisfs/internal/guardfs/flock"
)

// Options of Open. The zero value is the documented default.
type Options struct {
	MaxBytes     int64         // of the whole store beside its log, which takes some megabytes; 1 GiB when 0
	MaxFileBytes int64         // content above is skipped; 64 MiB when 0, at most 1 GiB
	KeepWithin   time.Duration // GC keeps what is younger; 7 days when 0, see KeepNone
	KeepLast     int           // GC keeps that many of each path; 20 when 0, see KeepNone
	// Exclude says which paths' content must not be stored; their states still are. nil: none. It
	// must be fast and safe for concurrent use.
	Exclude func(path string) bool
	// EncryptTo is an age recipient ("age1…"); content is then encrypted. This DB can read back
	// contents that it saved itself; those that an earlier one had sealed already, only as long as 64 MiB of
	// memory hold them. Content of earlier ones needs Identities.
	EncryptTo  string
	Identities []string // age identities ("AGE-SECRET-KEY-1…")
	// Blobs keeps large contents. nil: files in the directory of the store.
	Blobs  blob.Store
	Logger *slog.Logger
	Now    func() time.Time // time.Now when nil
	// Alive says whether whoever opened the operation with that tag is alive: Check and Purge ask
	// it about those that nobody has settled. nil: all are taken for alive.
	Alive func(tag string) bool
}

// KeepNone is a true zero: in Options.KeepWithin nothing is kept for its age, in Options.KeepLast
// none for their number. One of the two has to keep something.
const KeepNone = -1

func (o Options) withDefaults() (Options, error) {
	if o.MaxBytes < 0 || o.MaxFileBytes < 0 || o.KeepLast < KeepNone || o.KeepWithin < KeepNone {
		return o, &BadOpError{"", "limits must not be negative"}
	}
	o.MaxBytes = cmp.Or(o.MaxBytes, defaultMax)
	o.MaxFileBytes = min(cmp.Or(o.MaxFileBytes, 64<<20), 1<<30)
	if o.KeepWithin == KeepNone && o.KeepLast == KeepNone {
		return o, &BadOpError{"", "nothing would be kept"}
	}
	o.KeepWithin = max(cmp.Or(o.KeepWithin, 7*24*time.Hour), 0) // KeepNone is below zero
	o.KeepLast = max(cmp.Or(o.KeepLast, 20), 0)
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	if o.Now == nil {
		o.Now = time.Now
	}
	return o, nil
}

const (
	fileName   = "checkpoints.db"
	blobsName  = "blobs"
	asidePart  = "damaged-" // a directory with what was there before, as
	asideName  = "checkpoints"
	defaultMax = 1 << 30
)

// DB is an open store: a catalog of rows, and large contents beside it.
type DB struct {
	o      Options
	dir    string
	frozen bool        // on a read-only file system
	inUse  *os.File    // see holdOpen
	file   fs.FileInfo // of the catalog that is open
	w, r   *pool       // w has one connection: who has it may write
	doubt  error       // why the last commit failed, if that was the disk's doing; of who has w
	blobs  blob.Store
	pack   *blob.Packer

	used atomic.Int64 // bytes of MaxBytes, as they were measured last

	cleaning sync.Mutex // one GC or Purge of this process at a time
	wrote    atomic.Bool
	looked   atomic.Int64 // when it was looked last whether retention is due
	live     context.Context
	die      context.CancelFunc

	mu     sync.Mutex
	closed bool
	active sync.WaitGroup // calls under way
}

// enter counts a call in, so that Close can wait for it. The call says active.Done at its end.
func (d *DB) enter() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return ErrClosed
	}
	d.active.Add(1)
	return nil
}

// Exists says that a store was made in dir, or that nobody can tell.
func Exists(dir string) bool {
	_, err := os.Lstat(filepath.Join(dir, fileName))
	return !errors.Is(err, fs.ErrNotExist)
}

// Open opens the store in dir, making both if they are not there. The directory becomes 0700 and
// its files are 0600 whatever the umask says.
//
// A catalog that can't be read is moved to damaged-…/checkpoints in dir, with the large contents, and a
// new store is begun: the logger is told, and Check names the directory. There it can be opened and
// looked at, as a store on a read-only file system, as far as it can be read.
func Open(dir string, o Options) (*DB, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return nil, fmt.Errorf("opening checkpoint store: %w", err)
	}
	// SQLite does not wait for the lock by which a new file gets its log: of several processes that
	// make a store at once, some are told at once that it is busy. Nor does whoever finds a damaged
	// one that another process moves aside.
	var d *DB
	for start := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		d, err = opened(dir, o)
		if err == nil {
			return d, nil
		}
		if (damaged(err) || errors.Is(err, ErrDamaged)) && !isAside(dir) {
			if err = o.moveAside(dir, err); err == nil {
				continue
			}
		}
		wait := time.Duration(0)
		switch err := named(err); {
		case errors.Is(err, ErrBusy):
			wait = 10 * time.Second
		case errors.Is(err, ErrInUse):
			wait = time.Second
		}
		if time.Since(start) > wait {
			return nil, fmt.Errorf("opening checkpoint store %s: %w", dir, named(err))
		}
	}
}

func opened(dir string, o Options) (*DB, error) {
	d := &DB{dir: dir, o: o}
	d.live, d.die = context.WithCancel(context.Background())
	d.looked.Store(time.Now().UnixNano())
	err := d.open()
	if err != nil {
		d.release()
	}
	return d, err
}

func (d *DB) open() (err error) {
	fresh, err := prepareDir(d.dir)
	if err != nil {
		return err
	}
	if d.inUse, err = holdOpen(d.dir, false); err != nil && !noRoom(err) {
		return err
	}
	d.frozen = errors.Is(err, syscall.EROFS) || isAside(d.dir)
	if d.file, err = os.Stat(filepath.Join(d.dir, fileName)); err != nil {
		return err
	}
	if err := d.openCatalog(fresh); err != nil {
		return err
	}
	ctx := context.Background()
	if err := d.migrate(ctx); err != nil {
		return d.unreadable(err)
	}
	// The log exists now, and SQLite's rollback file is gone. SQLite has the directory synced, too,
	// but takes no notice when that fails. Then a power cut would take the log with all that is in
	// it, or bring the rollback file back, which undoes the database.
	if !d.frozen {
		if err := localdir.Sync(d.dir); err != nil {
			return err
		}
	}
	if d.blobs = d.o.Blobs; d.blobs == nil {
		d.blobs = filesOf(d.dir)
	}
	d.pack, err = blob.New(blob.Options{Store: d.blobs, EncryptTo: d.o.EncryptTo,
		Identities: d.o.Identities, Keys: sealRows{d}})
	if err != nil {
		return err
	}
	if _, err := os.Lstat(filepath.Join(d.dir, suspectFile)); err == nil && !d.frozen {
		if found, err := pages(ctx, d.r); err != nil || !slices.Equal(found, []string{"ok"}) {
			return fmt.Errorf("%w: %w", ErrDamaged, errors.Join(err, errors.New(strings.Join(found, "; "))))
		}
		os.Remove(filepath.Join(d.dir, suspectFile))
	}
	return d.measure(ctx, d.r)
}

// suspectFile is made when something of the catalog could not be read. The next Open looks at all of
// it then.
const suspectFile = "suspect"

// suspect is err, and if that says that the catalog is damaged it is noted for the next Open.
func (d *DB) suspect(err error) error {
	if damaged(err) && !d.frozen {
		os.WriteFile(filepath.Join(d.dir, suspectFile), []byte(err.Error()+"\n"), 0o600) //nolint:errcheck // the next one notes it
	}
	return named(err)
}

// filesOf are the large contents of the store in dir.
func filesOf(dir string) *blob.Files { return &blob.Files{Dir: filepath.Join(dir, blobsName)} }

// prepareDir makes the directory, 0700, and the database file with the mode that SQLite then copies
// to its side files. A directory that is there stays as it is. fresh: nothing is in it yet.
func prepareDir(dir string) (fresh bool, err error) {
	unfit := func(path, why string) (bool, error) {
		return false, &fs.PathError{Op: "open", Path: path, Err: errors.New(why)}
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return false, err
	}
	fi, err := os.Lstat(dir)
	if err != nil {
		return false, err
	}
	if !fi.IsDir() {
		return unfit(dir, "not a directory of its own (a symbolic link?)")
	}
	if err := localdir.Own(fi); err != nil {
		return false, &fs.PathError{Op: "open", Path: dir, Err: err}
	}
	if kind, err := localdir.Network(dir); err != nil {
		return false, err
	} else if kind != "" {
		return false, &NetworkError{dir, kind}
	}
	// Its mode is its owner's business, as long as it holds others off.
	if fi.Mode().Perm()&0o002 != 0 && runtime.GOOS != "windows" {
		return unfit(dir, "anybody may write in it ("+fi.Mode().String()+")")
	}
	if err := os.MkdirAll(filepath.Join(dir, blobsName), 0o700); err != nil {
		return false, err
	}
	name := filepath.Join(dir, fileName)
	if fi, err = os.Lstat(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	if err != nil || fi.Size() == 0 {
		// Either nobody has come to use the store, or its catalog is lost: then there are contents.
		lost := false
		err := filesOf(dir).List(context.Background(), func(string, int64) error {
			lost = true
			return fs.SkipAll
		})
		if err != nil {
			return false, err
		}
		// Looked at again: another process may have made it meanwhile.
		if fi, err = os.Lstat(name); lost && (err != nil || fi.Size() == 0) {
			return false, fmt.Errorf("%w: it is empty, but there are contents of one", ErrDamaged)
		}
	}
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	switch {
	case err == nil:
		err := errors.Join(f.Sync(), f.Close(), localdir.Sync(dir), localdir.Sync(filepath.Dir(dir)))
		if err != nil {
			return false, err
		}
	case !errors.Is(err, fs.ErrExist):
		return false, err
	}
	if fi, err = os.Lstat(name); err != nil {
		return false, err
	}
	if !fi.Mode().IsRegular() {
		return unfit(name, "not a regular file")
	}
	if fi.Mode().Perm() != 0o600 {
		// On a read-only file system nobody can change it, and reading it makes nothing worse.
		if err := os.Chmod(name, 0o600); err != nil && !errors.Is(err, syscall.EROFS) {
			return false, err
		}
	}
	return fi.Size() == 0, nil
}

// inUseFile is locked, shared, by whoever has the store open, and exclusively by who moves a damaged
// one aside.
const inUseFile = "in-use"

// holdOpen takes the lock; flock.Close gives it back. ErrInUse says that somebody else holds
// it in a way that excludes us.
func holdOpen(dir string, alone bool) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, inUseFile), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	lock := flock.TryLockShared
	if alone {
		lock = flock.TryLock
	}
	held, err := lock(f)
	if err == nil && !held {
		err = ErrInUse
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// noRoom reports whether a file could not be made because there is no room for it, or nothing may
// be written there. Such a store can still be read, and nobody can move it aside meanwhile either.
func noRoom(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EROFS) ||
		errors.Is(err, syscall.EDQUOT)
}

// moveAside moves the store in dir, which can't be read because of why, to damaged-…/checkpoints in it.
// Nobody may have it open. A failure leaves what was not moved for the next try: the catalog goes
// first, and contents without a catalog are moved again.
func (o *Options) moveAside(dir string, why error) error {
	said := func(err error) error { return errors.Join(fmt.Errorf("%w: %w", ErrDamaged, why), err) }
	lock, err := holdOpen(dir, true)
	if err != nil {
		return said(err)
	}
	defer flock.Close(lock)
	beside, err := os.MkdirTemp(dir, asidePart)
	to := filepath.Join(beside, asideName)
	if err == nil {
		err = os.Mkdir(to, 0o700)
	}
	if err != nil {
		return said(err)
	}
	for _, name := range []string{fileName, fileName + "-wal", fileName + "-shm", blobsName, suspectFile} {
		err := os.Rename(filepath.Join(dir, name), filepath.Join(to, name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return said(err)
		}
	}
	if err := errors.Join(localdir.Sync(to), localdir.Sync(beside), localdir.Sync(dir)); err != nil {
		return said(err)
	}
	o.Logger.Error("the catalog of the checkpoints is damaged; it was moved aside and a new one is begun",
		"error", why, "moved_to", beside)
	return nil
}

// isAside reports whether moveAside has moved the store in dir there: it can be looked at, as far as it
// can be read, and stays as it is.
func isAside(dir string) bool {
	return filepath.Base(dir) == asideName && strings.HasPrefix(filepath.Base(filepath.Dir(dir)), asidePart)
}

// aside are the directories with what moveAside has moved, and a repair of an earlier version.
func aside(dir string) (out []string, err error) {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if e.IsDir() && (strings.HasPrefix(e.Name(), asidePart) || strings.HasPrefix(e.Name(), "repair-")) {
			out = append(out, filepath.Join(dir, e.Name()))
		}
	}
	return out, err
}

// inPlace is a *GoneError unless the open catalog is still the one that others find. It costs one
// stat.
func (d *DB) inPlace() error {
	fi, err := os.Stat(filepath.Join(d.dir, fileName))
	if err == nil && os.SameFile(fi, d.file) {
		return nil
	}
	if err == nil || errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return &GoneError{d.dir}
	}
	return err
}

// closeBudget bounds the time that Close spends on retention.
const closeBudget = 250 * time.Millisecond

// Close waits for calls under way and closes the store.
func (d *DB) Close() error {
	d.mu.Lock()
	was := d.closed
	d.closed = true
	d.mu.Unlock()
	if was {
		return nil
	}
	d.die()
	d.active.Wait()
	// A process that lives for one call gives retention its share too. Every slice commits for itself,
	// so that the budget may end it anywhere.
	ctx, cancel := context.WithTimeout(context.Background(), closeBudget)
	defer cancel()
	d.retain(ctx)
	return d.release()
}

func (d *DB) release() error {
	var errs []error
	for _, pool := range []*pool{d.r, d.w} { // the last one to go moves the log
		if pool != nil {
			errs = append(errs, pool.Close())
		}
	}
	if d.inUse != nil {
		errs = append(errs, flock.Close(d.inUse))
	}
	if d.pack != nil {
		d.pack.Close()
	}
	return errors.Join(errs...)
}

// tx is a writing transaction.
type tx struct{ *conn }

func (tx *tx) exec(ctx context.Context, q string, args ...any) error {
	_, err := tx.ExecContext(ctx, q, args...)
	return err
}

// must is exec for what has to change a row; ErrNotFound when there is none.
func (tx *tx) must(ctx context.Context, q string, args ...any) error {
	r, err := tx.ExecContext(ctx, q, args...)
	if err != nil {
		return err
	}
	if n, err := r.RowsAffected(); err != nil || n == 0 {
		return errors.Join(err, ErrNotFound)
	}
	return nil
}

// alone runs fn on the writing connection while no transaction of this process is open. It never
// runs when ctx ended before its turn came. Once it has begun, the true result is waited for.
func (d *DB) alone(ctx context.Context, fn func(context.Context, *conn) error) error {
	if d.frozen {
		return ErrReadOnly
	}
	return d.w.use(ctx, func(ctx context.Context, c *conn) error {
		if err := d.assure(ctx, c); err != nil {
			return err
		}
		return fn(ctx, c)
	})
}

// transact runs fn in a transaction, which is durable when transact returns nil.
func (d *DB) transact(ctx context.Context, fn func(context.Context, *tx) error) error {
	return d.transaction(ctx, true, fn)
}

// transaction is transact. One that is not synced is durable with the next that is, of
// whichever process: they are all in one log.
func (d *DB) transaction(ctx context.Context, synced bool, fn func(context.Context, *tx) error) error {
	return d.suspect(d.alone(ctx, func(ctx context.Context, c *conn) (err error) {
		if !synced {
			if err := setSync(ctx, c, false); err != nil {
				return err
			}
			defer func() {
				if setSync(ctx, c, true) != nil {
					err = driver.ErrBadConn // it is not used again
				}
			}()
		}
		if _, err := c.ExecContext(ctx, "BEGIN IMMEDIATE"); err != nil {
			return err
		}
		committed := false
		defer func() {
			if !committed {
				c.ExecContext(ctx, "ROLLBACK") //nolint:errcheck // a commit that failed may have done it
			}
		}()
		if err := d.inPlace(); err != nil { // looked at here, because the lock may have been waited for
			return err
		}
		if err := fn(ctx, &tx{c}); err != nil {
			return err
		}
		_, err = c.ExecContext(ctx, "COMMIT")
		if committed = err == nil; err != nil {
			if diskFailed(err) {
				d.doubt = err
				err = &SyncError{err}
			}
			return fmt.Errorf("writing the checkpoint catalog: %w", err)
		}
		return nil
	}))
}

// write is transaction for a method of DB, of which doing is said in an error.
func (d *DB) write(ctx context.Context, doing string, synced bool, fn func(context.Context, *tx) error) error {
	if err := d.enter(); err != nil {
		return err
	}
	defer d.active.Done()
	if err := d.transaction(ctx, synced, fn); err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	return nil
}

// update runs one statement that must change a row.
func (d *DB) update(ctx context.Context, doing, q string, args ...any) error {
	return d.write(ctx, doing, true, func(ctx context.Context, tx *tx) error { return tx.must(ctx, q, args...) })
}

// view runs fn over one snapshot of the catalog.
func (d *DB) view(ctx context.Context, fn func(*history) error) error {
	if err := d.enter(); err != nil {
		return err
	}
	defer d.active.Done()
	if err := d.inPlace(); err != nil { // another connection may open what is in its place now
		return err
	}
	return d.suspect(d.r.use(ctx, func(ctx context.Context, c *conn) error {
		if _, err := c.ExecContext(ctx, "BEGIN"); err != nil {
			return err
		}
		defer c.ExecContext(ctx, "COMMIT") //nolint:errcheck // it has changed nothing
		return fn(&history{q: c})
	}))
}

type scanner interface{ Scan(...any) error }

// querier is a connection pool, a connection or a transaction.
type querier interface {
	QueryContext(ctx context.Context, q string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, q string, args ...any) *sql.Row
}

// each calls fn with each row of the answer, until fn returns an error. fs.SkipAll ends it without
// one.
func each(ctx context.Context, q querier, query string, args []any, fn func(row scanner) error) error {
	rows, err := q.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := fn(rows); err != nil {
			if errors.Is(err, fs.SkipAll) {
				return nil
			}
			return err
		}
	}
	return rows.Err()
}

// column reads an answer of one column.
func column[T any](ctx context.Context, q querier, query string, args ...any) (out []T, err error) {
	err = each(ctx, q, query, args, func(row scanner) error {
		var v T
		err := row.Scan(&v)
		out = append(out, v)
		return err
	})
	return out, err
}

// one reads a single value; the zero value where there is no row.
func one[T any](ctx context.Context, q querier, query string, args ...any) (v T, err error) {
	err = q.QueryRowContext(ctx, query, args...).Scan(&v)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return v, err
}

// inNumbers is how in begins.
const inNumbers = " IN (0"

// in is the numbers of rows as " IN (0,1,2,…)", at most maxIn of them. No row has the number 0.
func in(numbers []int64) string {
	b := []byte(inNumbers)
	for _, n := range numbers {
		b = strconv.AppendInt(append(b, ','), n, 10)
	}
	return string(append(b, ')'))
}

const maxIn = 10_000

// count is 1 for yes.
func count(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

// nameOrNull is a path as a column; NULL for "".
func nameOrNull(path string) any {
	if path == "" {
		return nil
	}
	return []byte(path)
}

// orNull is v as a column: NULL for the zero value.
func orNull[T comparable](v T) any {
	if v == *new(T) {
		return nil
	}
	return v
}
