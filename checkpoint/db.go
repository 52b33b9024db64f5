package checkpoint

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"modernc.org/sqlite" // the engine; registers itself with database/sql under "sqlite"

	"moltisfs/checkpoint/blob"
	"moltisfs/checkpoint/catalog"
	"moltisfs/checkpoint/localdir"
	"moltisfs/internal/guardfs/flock"
)

// Options of Open. The zero value is the documented default.
type Options struct {
	// Where several processes save to one store under different limits, the widest hold: see
	// Limits.
	// Of the whole store; 1 GiB when 0. Contents above 256 KB that several save at the same moment
	// may pass it until all are saved.
	MaxBytes     int64
	MaxFileBytes int64         // content above is skipped; 64 MiB when 0, at most 1 GiB
	KeepWithin   time.Duration // GC keeps what is younger; 7 days when 0, see KeepNone
	KeepLast     int           // GC keeps that many of each path; 20 when 0, see KeepNone
	// Exclude says which paths' content must not be stored; their states still are. nil: none. It
	// must be fast and safe for concurrent use.
	Exclude func(path string) bool
	// EncryptTo is an age recipient ("age1…"); content is then encrypted. This DB can read back
	// what it saved itself; what an earlier one had sealed already, only as long as 64 MiB of
	// memory hold it. Content of earlier ones needs Identities.
	EncryptTo  string
	Identities []string // age identities ("AGE-SECRET-KEY-1…")
	Logger     *slog.Logger
	Now        func() time.Time // time.Now when nil
	// Progress hears how far long work is: what is being done, how much of it, and of how much in
	// all, 0 when nobody knows. It must be fast and safe for concurrent use. nil: nobody wants to
	// know.
	Progress func(what string, done, total int)
	// Alive says whether whoever opened the operation with that tag is alive: Check and Purge ask
	// it about those that nobody has settled. nil: all are taken for alive.
	Alive func(tag string) bool

	repairing bool // by Repair, which has the store to itself
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

// VersionError: the store's format is one that must not be used.
type VersionError struct{ What, Have, Need string }

func (e *VersionError) Error() string {
	return fmt.Sprintf("%s is %s, but %s is needed", e.What, e.Have, e.Need)
}

// NetworkError: the directory is on a file system that cannot keep the store's promises.
type NetworkError struct{ Dir, Type string }

func (e *NetworkError) Error() string {
	return fmt.Sprintf(
		"checkpoint store %s is on a network file system (%s); use a local directory",
		e.Dir, e.Type)
}

const (
	fileName   = "checkpoints.db"
	blobsName  = "blobs"
	defaultMax = 1 << 30
)

// DB is the store on disk: one SQLite file for catalog and small content, and a directory for large
// content.
type DB struct {
	onDisk
	calls
	o       Options
	w       *sql.DB // one connection, for the committer
	r       *sql.DB
	readers *readers
	pack    *blob.Packer
	com     *committer
	mem     blob.Versions // the last contents, to hash less and as bases of deltas
	keep    *keeper
}

// onDisk is where the store lies, and what is held open there.
type onDisk struct {
	dir    string
	frozen bool        // on a read-only file system
	inUse  *os.File    // nil in Repair, which holds the lock itself
	file   fs.FileInfo // of the catalog that is open
}

// calls counts the calls under way, so that Close can wait for them.
type calls struct {
	mu     sync.Mutex
	closed bool
	active sync.WaitGroup
}

// enter counts a call in. Whoever entered says active.Done at the end.
func (c *calls) enter() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return ErrClosed
	}
	c.active.Add(1)
	return nil
}

// shut lets nobody in any more; false when that was so already.
func (c *calls) shut() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	was := c.closed
	c.closed = true
	return !was
}

// Exists says that a store was made in dir, or that nobody can tell.
func Exists(dir string) bool {
	_, err := os.Lstat(filepath.Join(dir, fileName))
	return !errors.Is(err, fs.ErrNotExist)
}

// Open opens the store in dir, making both if they are not there. The directory becomes 0700 and
// its files are 0600 whatever the umask says.
func Open(dir string, o Options) (*DB, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return nil, fmt.Errorf("opening checkpoint store: %w", err)
	}
	d, err := opened(dir, o)
	for start := time.Now(); errors.Is(named(err), ErrBusy) && time.Since(start) < openWait; {
		time.Sleep(openPause)
		d, err = opened(dir, o)
	}
	if err != nil {
		e, ok := errors.AsType[*sqlite.Error](err)
		if ok && (e.Code()&0xff == 11 || e.Code()&0xff == 26) { // SQLITE_CORRUPT, SQLITE_NOTADB
			err = fmt.Errorf("%w: %w", ErrDamaged, err)
		}
		return nil, fmt.Errorf("opening checkpoint store %s: %w", dir, named(err))
	}
	return d, nil
}

// SQLite does not wait for the lock by which a new file gets its log: of several processes that
// make a store at once, some are told at once that it is busy.
const (
	openWait  = 10 * time.Second
	openPause = 20 * time.Millisecond
)

func opened(dir string, o Options) (*DB, error) {
	d := &DB{onDisk: onDisk{dir: dir}, o: o}
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
	if !d.o.repairing {
		if d.inUse, err = holdOpen(d.dir, false); err != nil && !noRoom(err) {
			return err
		}
		d.frozen = errors.Is(err, syscall.EROFS)
	}
	os.Remove(filepath.Join(d.dir, "reserve")) // what earlier versions kept for a full disk
	if d.w, err = sql.Open("sqlite", d.dsn(true, fresh)); err != nil {
		return err
	}
	d.w.SetMaxOpenConns(1)
	ctx := context.Background()
	if err := d.migrate(ctx); err != nil {
		return d.unreadable(err)
	}
	if d.r, err = sql.Open("sqlite", d.dsn(false, false)); err != nil {
		return err
	}
	if d.file, err = os.Stat(filepath.Join(d.dir, fileName)); err != nil {
		return err
	}
	d.r.SetMaxOpenConns(4 + maxReaders)
	d.r.SetMaxIdleConns(4)
	d.readers = newReaders(d.r)
	d.pack, err = blob.New(blob.Options{Dir: blobsOf(d.dir).Dir, EncryptTo: d.o.EncryptTo,
		Identities: d.o.Identities, Keys: sealRows{d}})
	if err != nil {
		return err
	}
	if d.com, err = newCommitter(ctx, d); err != nil {
		return err
	}
	d.mem.Max = 32 << 20
	d.keep, err = startKeeper(ctx, d)
	return err
}

// unreadable says why the log of a store on a read-only file system stops us: SQLite can't make
// what it reads it by.
func (d *DB) unreadable(err error) error {
	e, ok := errors.AsType[*sqlite.Error](err)
	if ok && d.frozen && e.Code()&0xff == 14 { // SQLITE_CANTOPEN
		return fmt.Errorf(
			"%w, and its log can't be read there; open it once where it can be written: %w",
			ErrReadOnly, err)
	}
	return err
}

const busyTimeout = "20000" // ms that a connection waits for others

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
		// The keeper moves the log into the file. A commit does it only when the keeper has fallen
		// far behind.
		q = append(q, "mode=rw", "_pragma=journal_mode(WAL)", "_pragma=synchronous(FULL)",
			"_pragma=wal_autocheckpoint(16000)", "_pragma=secure_delete(FAST)",
			"_pragma=journal_size_limit("+strconv.Itoa(logMost)+")",
			"_pragma=cache_size(-8000)")
	default:
		q = append(q, "mode=rw", "_pragma=query_only(1)", "_pragma=cache_size(-4000)")
	}
	return uriOf(filepath.Join(d.dir, fileName), q...)
}

// uriOf is how SQLite wants a file to be named, with what is to hold for the connection.
func uriOf(file string, query ...string) string {
	p := filepath.ToSlash(file)
	if !strings.HasPrefix(p, "/") {
		p = "/" + p
	}
	return (&url.URL{Scheme: "file", Path: p, RawQuery: strings.Join(query, "&")}).String()
}

// prepareDir makes the directory, 0700, and the database file with the mode that SQLite then copies
// to its side files. A directory that is there stays as it is. fresh: nothing is in it yet.
func prepareDir(dir string) (fresh bool, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return false, err
	}
	fi, err := os.Lstat(dir)
	if err != nil {
		return false, err
	}
	if !fi.IsDir() {
		return false, unfit(dir, "not a directory of its own (a symbolic link?)")
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
		return false, unfit(dir, "anybody may write in it ("+fi.Mode().String()+")")
	}
	if err := os.MkdirAll(filepath.Join(dir, blobsName), 0o700); err != nil {
		return false, err
	}
	name := filepath.Join(dir, fileName)
	if fi, err = os.Lstat(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	if err != nil || fi.Size() == 0 {
		// Either nobody has come to use the store, or its catalog is lost. SQLite would take the
		// one for the other, and remove the log too.
		was, err := wasStore(dir)
		if err != nil {
			return false, err
		}
		// Looked at again: another process may have made it meanwhile.
		if fi, err = os.Lstat(name); was && (err != nil || fi.Size() == 0) {
			return false, errEmptied
		}
	}
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	switch {
	case err == nil:
		err := errors.Join(f.Sync(), f.Close(), localdir.Sync(dir),
			localdir.Sync(filepath.Dir(dir)))
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
		return false, unfit(name, "not a regular file")
	}
	return fi.Size() == 0, chmod(name, fi, 0o600)
}

// unfit says why a directory or a file can't be the store.
func unfit(path, why string) error {
	return &fs.PathError{Op: "open", Path: path, Err: errors.New(why)}
}

// chmod gives what fi is of the mode, unless it has it or nobody can change it.
func chmod(name string, fi fs.FileInfo, mode fs.FileMode) error {
	if fi.Mode().Perm() == mode {
		return nil
	}
	if err := os.Chmod(name, mode); !errors.Is(err, syscall.EROFS) {
		return err
	}
	return nil // reading it makes nothing worse
}

func (d *DB) migrate(ctx context.Context) error {
	var v int
	if err := d.w.QueryRowContext(ctx, "PRAGMA user_version").Scan(&v); err != nil {
		return err
	}
	if d.frozen && v != catalog.Format {
		return &VersionError{"the format of a store that can't be written",
			strconv.Itoa(v), strconv.Itoa(catalog.Format)}
	} else if d.frozen {
		return nil
	}
	// The log exists now, and SQLite's rollback file is gone. SQLite has the directory synced, too,
	// but takes no notice when that fails. Then a power cut would take the log with all that is in
	// it, or bring the rollback file back, which undoes the database.
	if err := localdir.Sync(d.dir); err != nil {
		return err
	}
	if v == catalog.Format {
		return nil
	}
	if v > catalog.Format {
		return &VersionError{"the store's format", strconv.Itoa(v), "a newer program"}
	}
	conn, err := d.w.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	// IMMEDIATE, and look again inside: several processes may open a new store at once.
	if _, err := conn.ExecContext(ctx, "BEGIN IMMEDIATE"); err != nil {
		return err
	}
	err = conn.QueryRowContext(ctx, "PRAGMA user_version").Scan(&v)
	if err == nil && v == 0 {
		var was bool
		if was, err = wasStore(d.dir); was {
			err = errEmptied
		}
	}
	if err == nil {
		err = catalog.Upgrade(ctx, conn, v)
	}
	if err != nil {
		conn.ExecContext(ctx, "ROLLBACK")
		return fmt.Errorf("creating the catalog: %w", err)
	}
	_, err = conn.ExecContext(ctx, "COMMIT")
	return err
}

func (d *DB) progress(what string, done, total int) {
	if d.o.Progress != nil {
		d.o.Progress(what, done, total)
	}
}

// Close waits for calls under way, writes outstanding outcomes and closes the store.
func (d *DB) Close() error {
	if !d.shut() {
		return nil
	}
	d.active.Wait()
	d.com.settled.stop()
	d.keep.stop()
	return errors.Join(d.com.flush(), d.release())
}

func (d *DB) release() error {
	var errs []error
	if d.com != nil {
		errs = append(errs, d.com.close())
	}
	if d.readers != nil {
		d.readers.close()
	}
	if d.r != nil {
		errs = append(errs, d.r.Close())
	}
	if d.w != nil {
		errs = append(errs, d.w.Close())
	}
	if d.inUse != nil {
		errs = append(errs, flock.Close(d.inUse))
	}
	if d.pack != nil {
		d.pack.Close()
	}
	return errors.Join(errs...)
}
