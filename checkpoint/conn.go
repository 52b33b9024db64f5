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
	compiled map[string]*sql.Stmt
}

// maxCompiled bounds the statements that a conn keeps.
const maxCompiled = 128

// statement gives q compiled, or nil where q is not kept: one with a list of numbers hardly comes
// twice, and several in one string are no statement.
func (c *conn) statement(ctx context.Context, q string) (*sql.Stmt, error) {
	st := c.compiled[q]
	if st != nil || len(c.compiled) >= maxCompiled || strings.Contains(q, inNumbers) || strings.Contains(q, ";") {
		return st, nil
	}
	st, err := c.PrepareContext(ctx, q)
	if err == nil {
		c.compiled[q] = st
	}
	return st, err
}

func (c *conn) ExecContext(ctx context.Context, q string, args ...any) (sql.Result, error) {
	st, err := c.statement(ctx, q)
	if err != nil || st == nil {
		return c.Conn.ExecContext(ctx, q, args...)
	}
	return st.ExecContext(ctx, args...)
}

func (c *conn) QueryContext(ctx context.Context, q string, args ...any) (*sql.Rows, error) {
	st, err := c.statement(ctx, q)
	if err != nil || st == nil {
		return c.Conn.QueryContext(ctx, q, args...)
	}
	return st.QueryContext(ctx, args...)
}

func (c *conn) QueryRowContext(ctx context.Context, q string, args ...any) *sql.Row {
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
	slots chan struct{} // one for each connection in use
	mu    sync.Mutex
	idle  []*conn
}

func newPool(db *sql.DB, size int) *pool { return &pool{DB: db, slots: make(chan struct{}, size)} }

// use waits for a connection, at most as long as ctx lasts, and runs fn with it. fn gets a context that does not end, so that
// its work comes to its end.
func (p *pool) use(ctx context.Context, fn func(context.Context, *conn) error) (err error) {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case p.slots <- struct{}{}:
		defer func() { <-p.slots }()
	case <-ctx.Done():
		return ctx.Err()
	}
	var c *conn
	p.mu.Lock()
	if n := len(p.idle); n > 0 {
		c, p.idle = p.idle[n-1], p.idle[:n-1]
	}
	p.mu.Unlock()
	if c == nil {
		opened, err := p.Conn(ctx)
		if err != nil {
			return err
		}
		c = &conn{opened, map[string]*sql.Stmt{}}
	}
	defer func() {
		if errors.Is(err, driver.ErrBadConn) || errors.Is(err, sql.ErrConnDone) {
			c.Close() //nolint:errcheck // it is lost already
			return
		}
		p.mu.Lock()
		p.idle = append(p.idle, c)
		p.mu.Unlock()
	}()
	return fn(context.WithoutCancel(ctx), c)
}

// Close closes all connections, once nobody uses them any more.
func (p *pool) Close() error {
	for range cap(p.slots) {
		p.slots <- struct{}{}
	}
	for _, c := range p.idle {
		for _, st := range c.compiled {
			st.Close() //nolint:errcheck // it goes with its connection
		}
		c.Conn.Close() //nolint:errcheck // the pool tells
	}
	return p.DB.Close()
}
