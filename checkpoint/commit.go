package checkpoint

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"sync"

	"modernc.org/sqlite"
)

// committer turns concurrent saves into few transactions. Whoever gets the turn commits for all who
// wait, so that one fsync serves them all. If one of their jobs fails, the transaction is rolled
// back and each runs in one of its own. Other jobs never share a transaction: only saves can be run
// again.
type committer struct {
	db *DB
	*statements

	turn  chan struct{} // holds one: who has put it in may use conn
	mu    sync.Mutex
	queue []*job // who waits, in the order of their coming

	// Below: only the one whose turn it is.
	doubt   error   // why the last commit failed, if that was the disk's doing
	reached numbers // what the file of the numbers covers
	version uint32  // of the database, after the last commit from here
	current bool    // version is known
	held    held    // measured in a transaction, and counted on with each commit from here
	// rows are of names and hashes, while only saves from here have written; nil: not kept.
	rows map[string]row

	settled settled
}

type job struct {
	kind jobKind
	run  func(ctx context.Context, c *committer) error
	grow growth        // the most that it adds
	done chan struct{} // closed when err is known
	err  error
}

type jobKind int

const (
	shared jobKind = iota // may share a transaction, and be run again
	single                // a transaction of its own
	bare                  // outside of transactions: VACUUM and its like
)

const (
	maxBatch = 128
	maxRows  = 20_000
)

var errStale = errors.New("the store was cleaned meanwhile")

func newCommitter(ctx context.Context, d *DB) (*committer, error) {
	conn, err := d.w.Conn(ctx)
	if err != nil {
		return nil, err
	}
	return &committer{db: d, statements: newStatements(conn), turn: make(chan struct{}, 1),
		settled: settled{of: map[int64]Outcome{}}}, nil
}

func (c *committer) close() error {
	c.finalize()
	return c.conn.Close()
}

// do runs fn inside a transaction that is durable when do returns nil. It never runs when ctx ended
// before its turn came. Once it has run, the true result is waited for.
func (c *committer) do(ctx context.Context, fn func(context.Context, *committer) error) error {
	return c.submit(ctx, &job{kind: single, run: fn, grow: small})
}

// alone runs fn on the writing connection while no transaction is open.
func (c *committer) alone(ctx context.Context, fn func(context.Context, *committer) error) error {
	return c.submit(ctx, &job{kind: bare, run: fn})
}

func (c *committer) submit(ctx context.Context, j *job) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if c.db.frozen {
		return ErrReadOnly
	}
	j.done = make(chan struct{})
	c.mu.Lock()
	c.queue = append(c.queue, j)
	c.mu.Unlock()
	select {
	case c.turn <- struct{}{}:
	default:
		select {
		case c.turn <- struct{}{}:
		case <-j.done:
			return j.err
		case <-ctx.Done():
			if c.withdraw(j) {
				return ctx.Err()
			}
			<-j.done
			return j.err
		}
	}
	c.commitUntil(j)
	<-c.turn
	return j.err
}

// withdraw takes j out of the queue; false when somebody runs it already.
func (c *committer) withdraw(j *job) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.Index(c.queue, j)
	if i >= 0 {
		c.queue = slices.Delete(c.queue, i, i+1)
	}
	return i >= 0
}

// commitUntil runs what waits, batch by batch, until own is done. Often somebody else has done it
// already.
func (c *committer) commitUntil(own *job) {
	for {
		select {
		case <-own.done:
			return
		default:
		}
		c.mu.Lock()
		n, room := 1, c.db.keep.limits.Load().logMost()/2-c.queue[0].grow.log
		for n < len(c.queue) && n < maxBatch &&
			c.queue[0].kind == shared && c.queue[n].kind == shared {
			if room -= c.queue[n].grow.log; room < 0 {
				break
			}
			n++
		}
		batch := slices.Clone(c.queue[:n])
		c.queue = slices.Delete(c.queue, 0, n)
		c.mu.Unlock()
		c.runBatch(batch, own)
		for _, j := range batch {
			close(j.done)
		}
	}
}

// runBatch runs jobs of one transaction. own is the job of whoever has the turn.
func (c *committer) runBatch(batch []*job, own *job) {
	// The batch belongs to several callers; none of their contexts may interrupt it.
	ctx := context.Background()
	if batch[0].kind == bare {
		c.current = false
		batch[0].err = batch[0].run(ctx, c)
		return
	}
	if failed := c.transact(ctx, batch, own); failed && len(batch) > 1 {
		for _, j := range batch {
			c.transact(ctx, []*job{j}, own)
		}
	}
}

// transact runs all jobs of batch in one transaction, or none; then each has an error. failed says
// that it was a job that failed, not the transaction, or that there is no room for all of them
// together.
func (c *committer) transact(ctx context.Context, batch []*job, own *job) (failed bool) {
	var g growth
	for _, j := range batch {
		g.log, g.db, g.files = g.log+j.grow.log, g.db+j.grow.db, g.files+j.grow.files
	}
	saves := batch[0].kind == shared
	if !saves { // what it removes may be known by name
		c.rows = nil
	}
	err := c.begin(ctx, g, saves)
	failed = len(batch) > 1 && errors.As(err, new(*FullError))
	for i := 0; i < len(batch) && err == nil; i++ {
		err = batch[i].run(ctx, c)
		failed = err != nil
	}
	if err == nil {
		if err = c.exec(ctx, "COMMIT"); err == nil {
			c.held.free, c.held.files = c.held.free-g.db, c.held.files+g.files // at the most
			c.db.keep.used.Add(g.db + g.files)
			var verr error
			c.version, verr = c.dataVersion()
			c.current = verr == nil
			c.settled.forget()
			for _, j := range batch {
				j.err = nil
			}
			return false
		}
		if diskFailed(err) {
			c.doubt = err
			err = &SyncError{err}
		}
	}
	c.current = false
	c.exec(ctx, "ROLLBACK") // there may be no transaction any more; either way none is left
	if !failed {
		err = fmt.Errorf("writing the checkpoint catalog: %w", err)
	}
	for _, j := range batch {
		j.err = err
	}
	return failed
}

// assure does nothing as a rule. It is for the time after a commit that the disk did not confirm.
// Another sync of the same file proves nothing then: the system may have forgotten what it could
// not write. So the whole log is written once more, to the database, and has to be confirmed there
// before anything else is accepted.
func (c *committer) assure(ctx context.Context) error {
	if c.doubt == nil {
		return nil
	}
	all, err := c.moveLog(ctx, "PASSIVE")
	if err != nil {
		return &SyncError{err}
	}
	if !all {
		return &SyncError{c.doubt} // somebody reads an older state; the next save tries again
	}
	c.doubt = nil
	return nil
}

// moveLog moves the log to the database, in one of SQLite's modes; all says that nothing is left.
func (c *committer) moveLog(ctx context.Context, mode string) (all bool, err error) {
	var busy, log, moved int
	const move = "PRAGMA wal_checkpoint"
	err = c.conn.QueryRowContext(ctx, move+"("+mode+")").Scan(&busy, &log, &moved)
	return busy == 0 && log == moved, err
}

func diskFailed(err error) bool {
	var e *sqlite.Error
	return errors.As(err, &e) && e.Code()&0xff == 10 // SQLITE_IOERR and its extensions
}

// begin begins a transaction that has room for g, and writes the outcomes that have gathered.
func (c *committer) begin(ctx context.Context, g growth, saves bool) error {
	if err := c.assure(ctx); err != nil {
		return err
	}
	if err := c.within(ctx, g); err != nil {
		return err
	}
	version, err := c.dataVersion()
	if err != nil {
		return err
	}
	if !c.current || version != c.version || len(c.rows) > maxRows {
		c.rows = nil
	}
	if saves && c.rows == nil {
		c.rows = map[string]row{}
	}
	c.settled.written = c.settled.pending()
	for seq, o := range c.settled.written {
		if err := c.settle(ctx, seq, o); err != nil {
			return err
		}
	}
	return nil
}

// dataVersion is SQLite's own count of the commits that it has seen. Inside a transaction it
// includes those of others.
func (c *committer) dataVersion() (version uint32, err error) {
	err = c.conn.Raw(func(conn any) error {
		version, err = conn.(sqlite.FileControl).FileControlDataVersion("main")
		return err
	})
	return version, err
}

// flush writes outcomes that no later save took along.
func (c *committer) flush() error {
	if len(c.settled.pending()) == 0 {
		return nil
	}
	return c.do(context.Background(), func(context.Context, *committer) error { return nil })
}

// write runs fn in a transaction, which is durable when write returns nil.
func (d *DB) write(ctx context.Context, doing string,
	fn func(context.Context, *committer) error) error {
	if err := d.enter(); err != nil {
		return err
	}
	defer d.active.Done()
	if err := d.com.do(ctx, fn); err != nil {
		return fmt.Errorf("%s: %w", doing, named(err))
	}
	return nil
}

// update runs one statement that must change a row.
func (d *DB) update(ctx context.Context, doing, q string, args ...any) error {
	return d.write(ctx, doing, func(ctx context.Context, c *committer) error {
		return c.must(ctx, q, args...)
	})
}

// must is exec for what has to change a row; ErrNotFound when there is none.
func (c *committer) must(ctx context.Context, q string, args ...any) error {
	r, err := c.change(ctx, q, args...)
	if err != nil {
		return err
	}
	if n, err := r.RowsAffected(); err != nil || n == 0 {
		return errors.Join(err, ErrNotFound)
	}
	return nil
}

// insert returns the row id.
func (c *committer) insert(ctx context.Context, q string, args ...any) (int64, error) {
	r, err := c.change(ctx, q, args...)
	if err != nil {
		return 0, err
	}
	return r.LastInsertId()
}

type scanner interface{ Scan(...any) error }

// know remembers the row of a name or a hash.
func (c *committer) know(name string, r row) {
	if name != "" && c.rows != nil {
		c.rows[name] = r
	}
}

// intern finds or makes a row by its unique columns. name is what it is known by.
func (c *committer) intern(ctx context.Context, name, find, make string,
	args ...any) (int64, error) {
	if r, ok := c.rows[name]; ok {
		return r.id, nil
	}
	var id int64
	err := c.QueryRowContext(ctx, find, args...).Scan(&id)
	if errors.Is(err, sql.ErrNoRows) {
		id, err = c.insert(ctx, make, args...)
	}
	if err == nil {
		c.know(name, row{id: id})
	}
	return id, err
}

func (c *committer) session(ctx context.Context, principal, name string) (int64, error) {
	return c.intern(ctx, "session "+principal+"\x00"+name,
		"SELECT id FROM session WHERE principal=? AND name=?",
		"INSERT INTO session(principal, name) VALUES(?,?)", principal, name)
}

func (c *committer) path(ctx context.Context, path string) (int64, error) {
	return c.intern(ctx, "path "+path, "SELECT id FROM path WHERE path=?",
		"INSERT INTO path(path) VALUES(?)", []byte(path))
}

// turnID finds the last turn of that name, or begins one.
func (c *committer) turnID(ctx context.Context, session int64, name string) (int64, error) {
	var id int64
	const find = "SELECT id FROM turn WHERE session=? AND name=? ORDER BY id DESC LIMIT 1"
	err := c.QueryRowContext(ctx, find, session, name).Scan(&id)
	if errors.Is(err, sql.ErrNoRows) {
		return c.newTurn(ctx, session, name)
	}
	return id, err
}

// newTurn begins a turn after the newest checkpoint there is.
func (c *committer) newTurn(ctx context.Context, session int64, name string) (int64, error) {
	return c.insert(ctx, `INSERT INTO turn(session, name, after, ts)
		VALUES(?,?,(SELECT ifnull(max(seq),0) FROM op),?)`, session, name, c.db.o.Now().UnixNano())
}
