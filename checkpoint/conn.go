package checkpoint

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"strings"
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
	if st != nil || len(c.compiled) >= maxCompiled || strings.Contains(q, " IN (") || strings.Contains(q, ";") {
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

// A pool hands out connections, each to one caller at a time. Safe for concurrent use.
type pool struct {
	*sql.DB
	free chan *conn // nil is one that is still to be opened
}

func newPool(db *sql.DB, size int) *pool {
	p := &pool{db, make(chan *conn, size)}
	for range size {
		p.free <- nil
	}
	return p
}

// use waits for a connection, at most as long as ctx lasts, and runs fn with it. fn gets a context that does not end, so that what it has begun
// comes to its end.
func (p *pool) use(ctx context.Context, fn func(context.Context, *conn) error) (err error) {
	if err := ctx.Err(); err != nil {
		return err
	}
	var c *conn
	select {
	case c = <-p.free:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() {
		if c != nil && (errors.Is(err, driver.ErrBadConn) || errors.Is(err, sql.ErrConnDone)) {
			c.Close() //nolint:errcheck // it is lost already
			c = nil
		}
		p.free <- c
	}()
	if c == nil {
		opened, err := p.Conn(ctx)
		if err != nil {
			return err
		}
		c = &conn{opened, map[string]*sql.Stmt{}}
	}
	return fn(context.WithoutCancel(ctx), c)
}

// Close closes all connections, once nobody uses them any more.
func (p *pool) Close() error {
	for range cap(p.free) {
		if c := <-p.free; c != nil {
			for _, st := range c.compiled {
				st.Close() //nolint:errcheck // it goes with its connection
			}
			c.Conn.Close() //nolint:errcheck // the pool tells
		}
	}
	return p.DB.Close()
}
