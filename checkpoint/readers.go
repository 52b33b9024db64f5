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

// statements is a connection whose statements stay prepared: to parse what a list asks is dearer
// than to answer it.
type statements struct {
	conn *sql.Conn
	st   map[string]*sql.Stmt
}

func newStatements(conn *sql.Conn) *statements { return &statements{conn, map[string]*sql.Stmt{}} }

func (s *statements) stmt(ctx context.Context, q string) (*sql.Stmt, error) {
	if st := s.st[q]; st != nil {
		return st, nil
	}
	st, err := s.conn.PrepareContext(ctx, q)
	if err == nil {
		s.st[q] = st
	}
	return st, err
}

func (s *statements) exec(ctx context.Context, q string, args ...any) error {
	_, err := s.change(ctx, q, args...)
	return err
}

// change is exec for who wants to know what it did.
func (s *statements) change(ctx context.Context, q string, args ...any) (sql.Result, error) {
	st, err := s.stmt(ctx, q)
	if err != nil {
		return nil, err
	}
	return st.ExecContext(ctx, args...)
}

func (s *statements) QueryContext(ctx context.Context, q string, args ...any) (*sql.Rows, error) {
	st, err := s.stmt(ctx, q)
	if err != nil {
		return nil, err
	}
	return st.QueryContext(ctx, args...)
}

func (s *statements) QueryRowContext(ctx context.Context, q string, args ...any) *sql.Row {
	st, err := s.stmt(ctx, q)
	if err != nil {
		return s.conn.QueryRowContext(ctx, q, args...) // which says the same
	}
	return st.QueryRowContext(ctx, args...)
}

// finalize forgets the statements.
func (s *statements) finalize() {
	for q, st := range s.st {
		st.Close()
		delete(s.st, q)
	}
}

// readers hands out connections for snapshots.
type readers struct {
	db   *sql.DB
	free chan *statements // for one snapshot at a time; nil: one that is to be opened
}

func newReaders(db *sql.DB) *readers {
	rs := &readers{db, make(chan *statements, maxReaders)}
	for range maxReaders {
		rs.free <- nil
	}
	return rs
}

// close closes the readers; nobody may be using one.
func (rs *readers) close() {
	for range maxReaders {
		if r := <-rs.free; r != nil {
			r.drop()
		}
	}
}

// snapshot runs fn over one state of the catalog.
func (rs *readers) snapshot(ctx context.Context, fn func(querier) error) (err error) {
	if err := ctx.Err(); err != nil {
		return err
	}
	var r *statements
	select {
	case r = <-rs.free:
	case <-ctx.Done():
		return ctx.Err()
	}
	sound := false
	defer func() {
		if !sound && r != nil {
			r.drop()
			r = nil
		}
		rs.free <- r
	}()
	if r == nil {
		conn, err := rs.db.Conn(ctx)
		if err != nil {
			return err
		}
		r = newStatements(conn)
	}
	if len(r.st) > maxStmts {
		r.finalize()
	}
	// Not in the caller's context. A BEGIN may take effect and be told as cancelled, and a transaction
	// that stays open holds the log for ever. Neither statement waits for anybody.
	if err := r.exec(context.WithoutCancel(ctx), "BEGIN"); err != nil {
		return named(err)
	}
	err = named(fn(r))
	sound = r.exec(context.WithoutCancel(ctx), "ROLLBACK") == nil
	return err
}

// drop ends the connection itself. Given back to the pool it would go on with whatever transaction
// it is in.
func (s *statements) drop() {
	s.finalize()
	// For this error the pool drops the connection.
	s.conn.Raw(func(any) error { return driver.ErrBadConn })
	s.conn.Close()
}
