package fleet

import (
	"bytes"
	"cmp"
	"context"
	"database/sql"
	"errors"
	"io"
	"io/fs"
	"slices"
	"strconv"
	"sync"
	"time"

	"moltisfs/internal/state"
)

// files are state.Files in the table file. A file is one row or more, its pieces, in the order of part. Parts are given out under a lock of the
// file, so that a piece that others see later has a higher number.
type files struct {
	g   *Gateway
	dir string
	q   querier // g.db, or the transaction of an Update
}

type querier interface {
	ExecContext(context.Context, string, ...any) (sql.Result, error)
	QueryContext(context.Context, string, ...any) (*sql.Rows, error)
	QueryRowContext(context.Context, string, ...any) *sql.Row
}

// Files gives the files of one directory, which all gateways share. A file is held as long as its gateway has the lease under which it was
// made. An Update is one transaction: after an error nothing has changed, unless the connection broke at its very end. Where the database
// can't be reached each call fails with an *UnreachableError.
func (g *Gateway) Files(dir string) state.Files { return files{g, dir, g.db} }

// asked bounds the wait for one answer. While heartbeats fail it is short: a call may need several, and it is to be refused soon.
func (g *Gateway) asked() (context.Context, context.CancelFunc) {
	wait := patience
	if g.Health().Err != nil {
		wait = time.Second
	}
	return context.WithTimeout(context.Background(), wait)
}

// missing is the error of a file that is not there.
func (f files) missing(name string) error {
	return &fs.PathError{Op: "open", Path: f.dir + "/" + name, Err: fs.ErrNotExist}
}

// Open fetches the first piece, and the others together once they are asked for.
func (f files) Open(name string) (io.ReadCloser, error) {
	ctx, cancel := f.g.asked()
	defer cancel()
	var body []byte
	var first, last int64
	err := f.q.QueryRowContext(ctx, `SELECT part, body, (SELECT max(part) FROM file WHERE dir = $1 AND name = $2)
		FROM file WHERE dir = $1 AND name = $2 ORDER BY part LIMIT 1`, f.dir, name).Scan(&first, &body, &last)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil, f.missing(name)
	case err != nil:
		return nil, &UnreachableError{err}
	}
	return &pieces{f, name, first, last, bytes.NewReader(body)}, nil
}

// pieces reads a file that has been opened.
type pieces struct {
	files
	name        string
	first, last int64 // what is to be fetched is behind first, up to last
	now         *bytes.Reader
}

func (p *pieces) Close() error { return nil }

func (p *pieces) Read(b []byte) (int, error) {
	if p.now.Len() == 0 && p.first < p.last {
		ctx, cancel := p.g.asked()
		defer cancel()
		rows, err := p.q.QueryContext(ctx, "SELECT part, body FROM file WHERE dir = $1 AND name = $2 AND part > $3 AND part <= $4 ORDER BY part",
			p.dir, p.name, p.first, p.last)
		all, _, last, err := collect(rows, err, 0)
		switch {
		case err != nil:
			return 0, err
		case last != p.last:
			return 0, p.missing(p.name)
		}
		p.first, p.now = last, bytes.NewReader(all)
	}
	return p.now.Read(b)
}

// collect puts the bodies of rows together that are behind the part after, and gives the first and the last part of all rows.
func collect(rows *sql.Rows, err error, after int64) (all []byte, first, last int64, _ error) {
	if err != nil {
		return nil, 0, 0, &UnreachableError{err}
	}
	defer rows.Close() //nolint:errcheck // rows.Err has it
	for rows.Next() {
		var body sql.RawBytes
		if err := rows.Scan(&last, &body); err != nil {
			return nil, 0, 0, &UnreachableError{err}
		}
		if first == 0 {
			first = last
		}
		if last > after {
			all = append(all, body...)
		}
	}
	if err := rows.Err(); err != nil {
		return nil, 0, 0, &UnreachableError{err}
	}
	return all, first, last, nil
}

// span is what a Mark holds: the first part of the file, which says which file it is, and the last one that was read.
type span struct{ first, last int64 }

func (f files) Since(name string, m *state.Mark) (tail []byte, anew bool, err error) {
	ctx, cancel := f.g.asked()
	defer cancel()
	was, _ := m.Of.(span)
	rows, err := f.q.QueryContext(ctx, `SELECT part, CASE WHEN part > $4 THEN body END FROM file
		WHERE dir = $1 AND name = $2 AND (part = $3 OR part > $4) ORDER BY part`, f.dir, name, was.first, was.last)
	tail, first, last, err := collect(rows, err, was.last)
	switch {
	case err != nil:
		return nil, false, err
	case first == 0:
		*m = state.Mark{}
		return nil, was.first > 0, nil
	case first != was.first: // its first part is gone, so all that is there came later
		*m = state.Mark{}
	}
	*m = state.Mark{Bytes: m.Bytes + int64(len(tail)), Of: span{first, max(last, was.last)}}
	return tail, first != was.first, nil
}

func (f files) List() (names []string, err error) {
	ctx, cancel := f.g.asked()
	defer cancel()
	rows, err := f.q.QueryContext(ctx, "SELECT DISTINCT name FROM file WHERE dir = $1", f.dir)
	if err != nil {
		return nil, &UnreachableError{err}
	}
	return scanned(rows)
}

func (f files) Look(names ...string) ([]state.Info, error) {
	ctx, cancel := f.g.asked()
	defer cancel()
	out := make([]state.Info, len(names))
	if len(names) == 0 {
		return out, nil
	}
	rows, err := f.q.QueryContext(ctx, `SELECT name, sum(octet_length(body)), max(at) FROM file WHERE dir = $1 AND name = ANY ($2) GROUP BY name`,
		f.dir, names)
	if err != nil {
		return nil, &UnreachableError{err}
	}
	defer rows.Close() //nolint:errcheck // rows.Err has it
	for rows.Next() {
		var name string
		var is state.Info
		if err := rows.Scan(&name, &is.Size, &is.At); err != nil {
			return nil, &UnreachableError{err}
		}
		for i := range names {
			if names[i] == name {
				out[i] = is
			}
		}
	}
	if err := rows.Err(); err != nil {
		return nil, &UnreachableError{err}
	}
	return out, nil
}

// scanned gives the names in rows, which have one column.
func scanned(rows *sql.Rows) (out []string, err error) {
	defer rows.Close() //nolint:errcheck // rows.Err has it
	for rows.Next() {
		var one string
		if err := rows.Scan(&one); err != nil {
			return nil, &UnreachableError{err}
		}
		out = append(out, one)
	}
	if err := rows.Err(); err != nil {
		return nil, &UnreachableError{err}
	}
	return out, nil
}

func (f files) exec(query string, args ...any) (int64, error) {
	ctx, cancel := f.g.asked()
	defer cancel()
	r, err := f.q.ExecContext(ctx, query, args...)
	if err != nil {
		return 0, &UnreachableError{err}
	}
	n, err := r.RowsAffected()
	return n, err
}

// soon is a part of a statement that lets it commit without a wait for stable storage, as a Dir does: Append, Touch and Remove may be lost in a
// crash of the database. Replace and Hold wait. An Update waits at its end, whatever it has in it.
func (f files) soon() string {
	if f.q != querier(f.g.db) {
		return "''"
	}
	return "set_config('synchronous_commit', 'off', true)"
}

func (f files) Append(name string, piece []byte) error {
	_, err := f.exec(`WITH turn AS MATERIALIZED (SELECT file_turn($1, $2), `+f.soon()+`)
		INSERT INTO file (dir, name, body) SELECT $1, $2, $3 FROM turn`, f.dir, name, append([]byte{}, piece...))
	return err
}

func (f files) Replace(name string, content []byte) error {
	_, err := f.exec("SELECT file_replace($1, $2, $3)", f.dir, name, append([]byte{}, content...))
	return err
}

func (f files) Touch(name string) error {
	_, err := f.exec(`WITH there AS (UPDATE file SET at = clock_timestamp() WHERE dir = $1 AND name = $2 RETURNING 1)
		INSERT INTO file (dir, name, body) SELECT $1, $2, '' FROM (SELECT `+f.soon()+`) soon WHERE NOT EXISTS (SELECT FROM there)`, f.dir, name)
	return err
}

func (f files) Remove(name string) error {
	n, err := f.exec("DELETE FROM file WHERE dir = $1 AND name = $2 AND (SELECT "+f.soon()+") IS NOT NULL", f.dir, name)
	if err == nil && n == 0 {
		err = f.missing(name)
	}
	return err
}

func (f files) Hold(name string, bodies ...[]byte) (release func(), err error) {
	id, err := f.g.current(context.Background())
	if err != nil {
		return nil, err
	}
	// Not by the transaction of an Update, which is over then. Where the database can't be reached, the file is released when it can be, or
	// with the lease.
	release = sync.OnceFunc(func() {
		alone := files{f.g, f.dir, f.g.db}
		if alone.release(name, id) != nil {
			f.g.done.Go(func() {
				for f.g.has(id) && alone.release(name, id) != nil {
					select {
					case <-f.g.open.Done():
						return
					case <-time.After(f.g.lease / 3):
					}
				}
			})
		}
	})
	var all [][]byte // there is no piece that is NULL, and no file without a piece
	for _, b := range bodies {
		all = append(all, append([]byte{}, b...))
	}
	if len(all) == 0 {
		all = [][]byte{{}}
	}
	ctx, cancel := f.g.asked()
	defer cancel()
	var not string
	err = f.q.QueryRowContext(ctx, "SELECT file_hold($1, $2, $3, $4)", f.dir, name, all, id).Scan(&not)
	switch {
	case err != nil:
		release() // it may be there
		return nil, &UnreachableError{err}
	case not == "fenced":
		f.g.drop(id)
		return nil, &FencedError{Name: f.g.name}
	case not != "":
		return nil, &fs.PathError{Op: "hold", Path: f.dir + "/" + name, Err: fs.ErrExist}
	}
	return release, nil
}

func (f files) release(name, id string) error {
	_, err := f.exec(`WITH free AS (UPDATE file SET gateway = NULL WHERE dir = $1 AND name = $2 AND gateway = $3
			AND (SELECT `+f.soon()+`) IS NOT NULL RETURNING 1)
		SELECT pg_notify('`+channel+`', $1 || '/' || $2) WHERE EXISTS (SELECT FROM free)`, f.dir, name, id)
	return err
}

func (f files) Held(names ...string) ([]bool, error) {
	ctx, cancel := f.g.asked()
	defer cancel()
	out := make([]bool, len(names))
	if len(names) == 0 {
		return out, nil
	}
	rows, err := f.q.QueryContext(ctx, `SELECT DISTINCT f.name FROM file f JOIN gateway g ON g.id = f.gateway
		WHERE f.dir = $1 AND f.name = ANY ($2) AND g.lease > clock_timestamp()`, f.dir, names)
	if err != nil {
		return nil, &UnreachableError{err}
	}
	held, err := scanned(rows)
	for i, name := range names {
		out[i] = slices.Contains(held, name)
	}
	return out, err
}

// Update is one transaction. If the gateway falls silent in the middle the server ends it, so that it does not keep others waiting.
func (f files) Update(outer context.Context, lock string, do func(state.Files) error) error {
	ctx, cancel := context.WithTimeout(outer, f.g.lease+patience) // a network may swallow what is sent
	defer cancel()
	select {
	case f.g.turn <- struct{}{}:
		defer func() { <-f.g.turn }()
	case <-ctx.Done():
		return cmp.Or(outer.Err(), error(&UnreachableError{ctx.Err()}))
	}
	tx, err := f.g.db.BeginTx(ctx, nil)
	if err != nil {
		return cmp.Or(outer.Err(), error(&UnreachableError{err}))
	}
	defer tx.Rollback() //nolint:errcheck // it is committed, or nothing is to be kept
	if _, err := tx.ExecContext(ctx, "SELECT set_config('idle_in_transaction_session_timeout', $3, true), file_turn($1, $2)", f.dir, lock,
		strconv.FormatInt(f.g.lease.Milliseconds(), 10)); err != nil {
		return cmp.Or(outer.Err(), error(&UnreachableError{err}))
	}
	if err := do(files{f.g, f.dir, tx}); err != nil {
		return err
	}
	if err := tx.Commit(); err != nil {
		return cmp.Or(outer.Err(), error(&UnreachableError{err}))
	}
	return nil
}

func (f files) Changes(prefix string) (changed <-chan struct{}, stop func()) {
	return f.g.Listen(f.dir + "/" + prefix)
}

// fileSchema makes what files needs. file_turn keeps other writers of a file away until the end of the transaction.
const fileSchema = `
CREATE TABLE IF NOT EXISTS file (
	dir     text NOT NULL,
	name    text NOT NULL,
	part    bigint GENERATED ALWAYS AS IDENTITY,
	body    bytea NOT NULL,
	at      timestamptz NOT NULL DEFAULT clock_timestamp(),
	gateway text, -- that holds it
	PRIMARY KEY (dir, name, part)
);

CREATE OR REPLACE FUNCTION file_turn(d text, n text) RETURNS void LANGUAGE sql AS $$
	SELECT pg_advisory_xact_lock(hashtextextended(current_schema || '/' || d || '/' || n, 0));
$$;

CREATE OR REPLACE FUNCTION file_replace(d text, n text, b bytea) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	PERFORM file_turn(d, n);
	DELETE FROM file WHERE dir = d AND name = n;
	INSERT INTO file (dir, name, body) VALUES (d, n, b);
	PERFORM pg_notify('` + channel + `', d || '/' || n);
END $$;

-- file_hold makes a file of these pieces that the gateway me holds. It answers '' for made, 'fenced' or 'exists'.
CREATE OR REPLACE FUNCTION file_hold(d text, n text, pieces bytea[], me text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	b bytea;
BEGIN
	PERFORM file_turn(d, n);
	IF NOT EXISTS (SELECT FROM gateway WHERE id = me AND lease > clock_timestamp()) THEN
		RETURN 'fenced';
	END IF;
	IF EXISTS (SELECT FROM file WHERE dir = d AND name = n) THEN
		RETURN 'exists';
	END IF;
	FOREACH b IN ARRAY pieces LOOP
		INSERT INTO file (dir, name, body, gateway) VALUES (d, n, b, me);
	END LOOP;
	PERFORM pg_notify('` + channel + `', d || '/' || n);
	RETURN '';
END $$;
`
