package checkpoint

import (
	"context"
	"database/sql"
	"database/sql/driver"
)

const (
	maxReaders = 4  // snapshots at a time; further ones wait
	maxStmts   = 64 // of a reader: what filters ask for differs
)

// readers hands out connections whose statements stay prepared: to parse what a list asks is dearer than to answer it.
type readers struct {
	db   *sql.DB
	free chan *reader // nil: one that is to be opened
}

// reader is used by one snapshot at a time.
type reader struct {
	conn *sql.Conn
	st   map[string]*sql.Stmt
}

func newReaders(db *sql.DB) *readers {
	rs := &readers{db, make(chan *reader, maxReaders)}
	for range maxReaders {
		rs.free <- nil
	}
	return rs
}

// close closes the readers; nobody may be using one.
func (rs *readers) close() {
	for range maxReaders {
		if r := <-rs.free; r != nil {
			r.close()
		}
	}
}

// snapshot runs fn over one state of the catalog.
func (rs *readers) snapshot(ctx context.Context, fn func(querier) error) (err error) {
	if err := ctx.Err(); err != nil {
		return err
	}
	var r *reader
	select {
	case r = <-rs.free:
	case <-ctx.Done():
		return ctx.Err()
	}
	sound := false
	defer func() {
		if !sound && r != nil {
			r.close()
			r = nil
		}
		rs.free <- r
	}()
	if r == nil {
		conn, err := rs.db.Conn(ctx)
		if err != nil {
			return err
		}
		r = &reader{conn, map[string]*sql.Stmt{}}
	}
	if len(r.st) > maxStmts {
		for q, s := range r.st {
			s.Close()
			delete(r.st, q)
		}
	}
	// Not in the caller's context: a BEGIN may take effect and be told as cancelled, and a transaction that stays open holds the log for ever.
	// Neither waits for anybody.
	if err := r.exec(context.WithoutCancel(ctx), "BEGIN"); err != nil {
		return named(err)
	}
	err = named(fn(r))
	sound = r.exec(context.WithoutCancel(ctx), "ROLLBACK") == nil
	return err
}

func (r *reader) stmt(ctx context.Context, q string) (*sql.Stmt, error) {
	if s := r.st[q]; s != nil {
		return s, nil
	}
	s, err := r.conn.PrepareContext(ctx, q)
	if err == nil {
		r.st[q] = s
	}
	return s, err
}

func (r *reader) exec(ctx context.Context, q string) error {
	s, err := r.stmt(ctx, q)
	if err == nil {
		_, err = s.ExecContext(ctx)
	}
	return err
}

func (r *reader) QueryContext(ctx context.Context, q string, args ...any) (*sql.Rows, error) {
	s, err := r.stmt(ctx, q)
	if err != nil {
		return nil, err
	}
	return s.QueryContext(ctx, args...)
}

func (r *reader) QueryRowContext(ctx context.Context, q string, args ...any) *sql.Row {
	s, err := r.stmt(ctx, q)
	if err != nil {
		return r.conn.QueryRowContext(ctx, q, args...) // which says the same
	}
	return s.QueryRowContext(ctx, args...)
}

// close ends the connection itself: given back to the pool it would go on with whatever transaction it is in.
func (r *reader) close() {
	for _, s := range r.st {
		s.Close()
	}
	r.conn.Raw(func(any) error { return driver.ErrBadConn }) // which the pool takes for a reason to drop it
	r.conn.Close()
}
