package checkpoint

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"moltisfs/checkpoint/blob"
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
	// Database is the address of a PostgreSQL database that has the catalog instead of the directory, "postgres://…", without a password. All
	// that have it open share one store, so that Blobs must be a store that they share too.
	Database string
	// Guard is called in each transaction that writes to such a store, before it is committed. An error of it takes the transaction back. row
	// asks in the transaction. May be nil.
	Guard func(ctx context.Context, row func(query string, args ...any) *sql.Row) error
	// Alive says whether whoever opened the operation with that tag is alive: Check and Purge ask
	// it about those that nobody has settled. nil: all are taken for alive.
	Alive func(tag string) bool
	// Ships is set where the store is shipped to another one: it notes what that one does not have yet, and retention leaves it. All
	// processes that use the store have to set it.
	Ships bool
}

// KeepNone is a true zero: in Options.KeepWithin nothing is kept for its age, in Options.KeepLast
// none for their number. One of the two has to keep something.
const KeepNone = -1

func (o Options) withDefaults() (Options, error) {
	if o.MaxBytes < 0 || o.MaxFileBytes < 0 || o.KeepLast < KeepNone || o.KeepWithin < KeepNone {
		return o, &BadOpError{"", "limits must not be negative"}
	}
	if o.Ships && o.Database != "" {
		return o, &BadOpError{"", "a store in a database is the one that others are sent to"}
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

const defaultMax = 1 << 30

// DB is an open store: a catalog of rows, and large contents beside it.
type DB struct {
	o     Options
	c     catalog
	w, r  *pool // w has one connection: who has it may write
	blobs blob.Store
	pack  *blob.Packer

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
	if o.Database != "" {
		c, err := newPostgres(o)
		if err != nil {
			return nil, err
		}
		d, err := opened(c, nil, o)
		if err != nil {
			return nil, fmt.Errorf("opening the checkpoint store %s: %w", c, err)
		}
		return d, nil
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return nil, fmt.Errorf("opening checkpoint store: %w", err)
	}
	for start := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		c := &sqliteCatalog{dir: dir, logger: o.Logger}
		d, err := opened(c, filesOf(dir), o)
		if err == nil {
			return d, nil
		}
		again, err := c.again(err, time.Since(start))
		if !again {
			return nil, fmt.Errorf("opening checkpoint store %s: %w", dir, named(err))
		}
	}
}

func opened(c catalog, blobs blob.Store, o Options) (*DB, error) {
	d := &DB{c: c, o: o, blobs: blobs}
	if o.Blobs != nil {
		d.blobs = o.Blobs
	}
	d.live, d.die = context.WithCancel(context.Background())
	d.looked.Store(time.Now().UnixNano())
	err := d.open()
	if err != nil {
		d.release()
	}
	return d, err
}

func (d *DB) open() (err error) {
	if d.w, d.r, err = d.c.connect(); err != nil {
		return err
	}
	ctx := context.Background()
	if err := d.migrate(ctx); err != nil {
		return err
	}
	d.pack, err = blob.New(blob.Options{Store: d.blobs, EncryptTo: d.o.EncryptTo,
		Identities: d.o.Identities, Keys: sealRows{d}})
	if err == nil {
		err = d.c.opened(ctx, d.r)
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
	errs = append(errs, d.c.close())
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
	return d.w.use(ctx, func(c *conn) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		ctx := context.WithoutCancel(ctx)
		if err := d.c.ready(ctx, c); err != nil {
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
	return d.c.failed(d.alone(ctx, func(ctx context.Context, c *conn) error {
		end, err := d.c.begin(ctx, c, synced)
		if err != nil {
			return err
		}
		over := false
		defer func() {
			if !over {
				end(false) //nolint:errcheck // the error of fn says what happened
			}
		}()
		if err := d.c.inPlace(); err != nil { // looked at here, because the lock may have been waited for
			return err
		}
		if err := fn(ctx, &tx{c}); err != nil {
			return err
		}
		over = true
		if err := end(true); err != nil {
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

// view runs fn over one snapshot of the catalog. It ends with ctx: in SQLite after the statement that has begun, or its next row.
func (d *DB) view(ctx context.Context, fn func(*history) error) error {
	if err := d.enter(); err != nil {
		return err
	}
	defer d.active.Done()
	return d.snapshot(ctx, func(_ context.Context, q querier) error { return fn(&history{q: q}) })
}

// snapshot is view for a call that has entered.
func (d *DB) snapshot(ctx context.Context, fn func(context.Context, querier) error) error {
	if err := d.c.inPlace(); err != nil { // another connection may open what is in its place now
		return err
	}
	return d.c.failed(d.r.use(ctx, func(c *conn) error {
		if err := d.c.look(ctx, c); err != nil {
			return err
		}
		defer c.ExecContext(context.WithoutCancel(ctx), "COMMIT") //nolint:errcheck // it has changed nothing
		return fn(ctx, c)
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
		err := ctx.Err() // the statement may go on: see conn.context
		if err == nil {
			err = fn(rows)
		}
		if err != nil {
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
