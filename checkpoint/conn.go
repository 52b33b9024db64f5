package checkpoint

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"strings"
	"sync"
)

// A conn is a connection to the catalog. It keeps each statement that it has compiled, since compiling costs as much as running one. It
// is for one caller at a time.
type conn struct {
	*sql.Conn
	compiled map[string]*sql.Stmt // nil: the driver keeps them
}

// maxCompiled bounds the statements that a conn keeps.
const maxCompiled = 128

// statement gives q compiled, or nil where q is not kept: one with a list of numbers hardly comes
// twice, and several in one string are no statement.
func (c *conn) statement(ctx context.Context, q string) (*sql.Stmt, error) {
	st := c.compiled[q]
	if st != nil || c.compiled == nil || len(c.compiled) >= maxCompiled || strings.Contains(q, inNumbers) || strings.Contains(q, ";") {
		return st, nil
	}
	st, err := c.PrepareContext(ctx, q)
	if err == nil {
		c.compiled[q] = st
	}
	return st, err
}

// context gives the context of a statement. In SQLite one that has begun comes to its end: the driver would start a goroutine for each that can be
// cut off, which makes short reads dearer by a third (BenchmarkHistory), and what was cut off may have begun a transaction.
func (c *conn) context(ctx context.Context) context.Context {
	if c.compiled == nil || ctx.Err() != nil {
		return ctx
	}
	return context.WithoutCancel(ctx)
}

func (c *conn) ExecContext(ctx context.Context, q string, args ...any) (sql.Result, error) {
	ctx = c.context(ctx)
	st, err := c.statement(ctx, q)
	if err != nil || st == nil {
		return c.Conn.ExecContext(ctx, q, args...)
	}
	return st.ExecContext(ctx, args...)
}

func (c *conn) QueryContext(ctx context.Context, q string, args ...any) (*sql.Rows, error) {
	ctx = c.context(ctx)
	st, err := c.statement(ctx, q)
	if err != nil || st == nil {
		return c.Conn.QueryContext(ctx, q, args...)
	}
	return st.QueryContext(ctx, args...)
}

func (c *conn) QueryRowContext(ctx context.Context, q string, args ...any) *sql.Row {
	ctx = c.context(ctx)
	st, err := c.statement(ctx, q)
	if err != nil || st == nil {
		return c.Conn.QueryRowContext(ctx, q, args...)
	}
	return st.QueryRowContext(ctx, args...)
}

// A pool hands out connections, each to one caller at a time, the one used last first: its pages and statements are
// at hand. Safe for concurrent use.
type pool struct {
	*sql.DB
	compiles bool          // the driver keeps compiled statements itself
	slots    chan struct{} // one for each connection in use
	mu       sync.Mutex
	idle     []*conn
}

func newPool(db *sql.DB, size int) *pool { return &pool{DB: db, slots: make(chan struct{}, size)} }

// staleError: a connection was no good, and nothing was done on it. As a rule the server was started anew since it was used last.
type staleError struct{ error }

func (e *staleError) Unwrap() error { return e.error }

// use waits for a connection, at most as long as ctx lasts, and runs fn with it. After a staleError of a connection that was used before,
// fn runs with another one.
func (p *pool) use(ctx context.Context, fn func(*conn) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case p.slots <- struct{}{}:
		defer func() { <-p.slots }()
	case <-ctx.Done():
		return ctx.Err()
	}
	for {
		var c *conn
		p.mu.Lock()
		if n := len(p.idle); n > 0 {
			c, p.idle = p.idle[n-1], p.idle[:n-1]
		}
		p.mu.Unlock()
		used := c != nil
		if !used {
			opened, err := p.Conn(ctx)
			if err != nil {
				return err
			}
			c = &conn{Conn: opened}
			if !p.compiles {
				c.compiled = map[string]*sql.Stmt{}
			}
		}
		err := p.run(c, fn)
		if !used || !errors.As(err, new(*staleError)) {
			return err
		}
	}
}

// run runs fn, and puts the connection back unless it is no good any more.
func (p *pool) run(c *conn, fn func(*conn) error) (err error) {
	defer func() {
		if err != nil && !c.valid(err) {
			c.forget()                                          // SQLite keeps a connection, and its locks, as long as there are any
			c.Raw(func(any) error { return driver.ErrBadConn }) //nolint:errcheck // this closes it
			return
		}
		p.mu.Lock()
		p.idle = append(p.idle, c)
		p.mu.Unlock()
	}()
	return fn(c)
}

// forget closes the compiled statements.
func (c *conn) forget() {
	for _, st := range c.compiled {
		st.Close() //nolint:errcheck // it goes with its connection
	}
}

// valid says whether the connection can be used again after err.
func (c *conn) valid(err error) bool {
	ok := !errors.Is(err, driver.ErrBadConn) && !errors.Is(err, sql.ErrConnDone) && !errors.As(err, new(*staleError))
	return ok && c.Raw(func(dc any) error {
		if v, is := dc.(driver.Validator); is && !v.IsValid() {
			return errors.New("it is not valid")
		}
		return nil
	}) == nil
}

// Close closes all connections, once nobody uses them any more.
func (p *pool) Close() error {
	for range cap(p.slots) {
		p.slots <- struct{}{}
	}
	for _, c := range p.idle {
		c.forget()
		c.Conn.Close() //nolint:errcheck // the pool tells
	}
	return p.DB.Close()
}
