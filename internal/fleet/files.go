package fleet

import (
	"bytes"
	"cmp"
	"context"
	"database/sql"
	"io"
	"io/fs"
	"strconv"
	"sync"
	"time"

	"moltisfs/internal/outage"
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
	QueryContext(context.Context, string, ...any) (*sql.Rows, error)
}

// Files gives the files of one directory, which all gateways share. A file is held as long as its gateway has the lease under which it was
// made. An Update is one transaction: after an error nothing has changed, unless the connection broke at its very end. Where the database
// can't be reached each call fails with an *outage.Error.
func (g *Gateway) Files(dir string) state.Files { return files{g, dir, g.db} }

// query gives what scan takes from each row of the answer to a statement.
func query[T any](ctx context.Context, q querier, scan func(*sql.Rows, *T) error, text string, args ...any) (all []T, err error) {
	rows, err := q.QueryContext(ctx, text, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close() //nolint:errcheck // rows.Err has it
	for rows.Next() {
		var one T
		if err := scan(rows, &one); err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, rows.Err()
}

// ask is query with a bound for the answer. While heartbeats fail it is short: a call may need several, and it is to be refused soon.
func ask[T any](f files, scan func(*sql.Rows, *T) error, text string, args ...any) ([]T, error) {
	wait := patience
	if f.g.Health().Err != nil {
		wait = time.Second
	}
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	all, err := query(ctx, f.q, scan, text, args...)
	return all, outage.OfDatabase(err)
}

// column scans an answer of one column.
func column[T any](rows *sql.Rows, v *T) error { return rows.Scan(v) }

func (f files) exec(text string, args ...any) error {
	_, err := ask(f, column[any], text, args...)
	return err
}

// missing is the error of a file that is not there.
func (f files) missing(name string) error {
	return &fs.PathError{Op: "open", Path: f.dir + "/" + name, Err: fs.ErrNotExist}
}

// A span is some pieces of a file, one after another: the numbers of the first and the last one, and what is in them.
type span struct {
	first, last int64
	body        []byte
}

// span asks for one; the zero span where the answer has none.
func (f files) span(text string, args ...any) (s span, err error) {
	all, err := ask(f, func(r *sql.Rows, s *span) error { return r.Scan(&s.first, &s.last, &s.body) }, text, args...)
	if len(all) > 0 {
		s = all[0]
	}
	return s, err
}

// Open fetches the first piece, and the others together once they are asked for.
func (f files) Open(name string) (io.ReadCloser, error) {
	s, err := f.span(`SELECT part, (SELECT max(part) FROM file WHERE dir = $1 AND name = $2), body
		FROM file WHERE dir = $1 AND name = $2 ORDER BY part LIMIT 1`, f.dir, name)
	switch {
	case err != nil:
		return nil, err
	case s.first == 0:
		return nil, f.missing(name)
	}
	return &pieces{f, name, s.first, s.last, bytes.NewReader(s.body)}, nil
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
		rest, err := p.span(`SELECT min(part), max(part), string_agg(body, '' ORDER BY part) FROM file
			WHERE dir = $1 AND name = $2 AND part > $3 AND part <= $4 HAVING count(*) > 0`, p.dir, p.name, p.first, p.last)
		switch {
		case err != nil:
			return 0, err
		case rest.last != p.last:
			return 0, p.missing(p.name)
		}
		p.first, p.now = rest.last, bytes.NewReader(rest.body)
	}
	return p.now.Read(b)
}

// Since has in a Mark the first part of the file, which says which file it is, and the last one that was read.
func (f files) Since(name string, m *state.Mark) (tail []byte, anew bool, err error) {
	was, _ := m.Of.(span)
	s, err := f.span(`SELECT min(part), max(part), string_agg(body, '' ORDER BY part) FILTER (WHERE part > $4) FROM file
		WHERE dir = $1 AND name = $2 AND (part = $3 OR part > $4) HAVING count(*) > 0`, f.dir, name, was.first, was.last)
	switch {
	case err != nil:
		return nil, false, err
	case s.first == 0:
		*m = state.Mark{}
		return nil, was.first > 0, nil
	case s.first != was.first: // its first part is gone, so all that is there came later
		*m = state.Mark{}
	}
	*m = state.Mark{Bytes: m.Bytes + int64(len(s.body)), Of: span{first: s.first, last: max(s.last, was.last)}}
	return s.body, s.first != was.first, nil
}

func (f files) List() ([]string, error) {
	return ask(f, column[string], "SELECT DISTINCT name FROM file WHERE dir = $1", f.dir)
}

func (f files) Look(names ...string) ([]state.Info, error) {
	if len(names) == 0 {
		return nil, nil
	}
	return ask(f, func(r *sql.Rows, is *state.Info) error {
		var at sql.NullTime
		err := r.Scan(&is.Size, &at)
		is.At = at.Time
		return err
	}, `SELECT coalesce(sum(octet_length(f.body)), 0), max(f.at) FROM unnest($2::text[]) WITH ORDINALITY n(name, i)
		LEFT JOIN file f ON f.dir = $1 AND f.name = n.name GROUP BY n.i ORDER BY n.i`, f.dir, names)
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
	return f.exec(`WITH turn AS MATERIALIZED (SELECT file_turn($1, $2), `+f.soon()+`)
		INSERT INTO file (dir, name, body) SELECT $1, $2, $3 FROM turn`, f.dir, name, append([]byte{}, piece...))
}

func (f files) Replace(name string, content []byte) error {
	return f.exec("SELECT file_replace($1, $2, $3)", f.dir, name, append([]byte{}, content...))
}

func (f files) Touch(name string) error {
	return f.exec(`WITH there AS (UPDATE file SET at = clock_timestamp() WHERE dir = $1 AND name = $2 RETURNING 1)
		INSERT INTO file (dir, name, body) SELECT $1, $2, '' FROM (SELECT `+f.soon()+`) soon WHERE NOT EXISTS (SELECT FROM there)`, f.dir, name)
}

func (f files) Remove(name string) error {
	gone, err := ask(f, column[int], "DELETE FROM file WHERE dir = $1 AND name = $2 AND (SELECT "+f.soon()+") IS NOT NULL RETURNING 1", f.dir, name)
	if err == nil && len(gone) == 0 {
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
				for f.g.Health().ID == id && alone.release(name, id) != nil {
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
	not, err := ask(f, column[string], "SELECT file_hold($1, $2, $3, $4)", f.dir, name, all, id)
	switch {
	case err != nil:
		release() // it may be there
		return nil, err
	case not[0] == "fenced":
		f.g.drop(id)
		return nil, ErrFenced
	case not[0] != "":
		return nil, &fs.PathError{Op: "hold", Path: f.dir + "/" + name, Err: fs.ErrExist}
	}
	return release, nil
}

func (f files) release(name, id string) error {
	return f.exec(`WITH free AS (UPDATE file SET gateway = NULL WHERE dir = $1 AND name = $2 AND gateway = $3
			AND (SELECT `+f.soon()+`) IS NOT NULL RETURNING 1)
		SELECT pg_notify('`+channel+`', $1 || '/' || $2) WHERE EXISTS (SELECT FROM free)`, f.dir, name, id)
}

func (f files) Held(names ...string) ([]bool, error) {
	if len(names) == 0 {
		return nil, nil
	}
	return ask(f, column[bool], `SELECT EXISTS (SELECT FROM file f JOIN gateway g ON g.id = f.gateway
			WHERE f.dir = $1 AND f.name = n.name AND g.lease > clock_timestamp())
		FROM unnest($2::text[]) WITH ORDINALITY n(name, i) ORDER BY n.i`, f.dir, names)
}

// Update is one transaction. If the gateway falls silent in the middle the server ends it, so that it does not keep others waiting.
func (f files) Update(outer context.Context, lock string, do func(state.Files) error) error {
	ctx, cancel := context.WithTimeout(outer, f.g.lease+patience) // a network may swallow what is sent
	defer cancel()
	failed := func(err error) error { return cmp.Or(outer.Err(), outage.OfDatabase(err)) }
	select {
	case f.g.turn <- struct{}{}:
		defer func() { <-f.g.turn }()
	case <-ctx.Done():
		return failed(ctx.Err())
	}
	tx, err := f.g.db.BeginTx(ctx, nil)
	if err != nil {
		return failed(err)
	}
	defer tx.Rollback() //nolint:errcheck // it is committed, or nothing is to be kept
	if _, err := tx.ExecContext(ctx, "SELECT set_config('idle_in_transaction_session_timeout', $3, true), file_turn($1, $2)", f.dir, lock,
		strconv.FormatInt(f.g.lease.Milliseconds(), 10)); err != nil {
		return failed(err)
	}
	if err := do(files{f.g, f.dir, tx}); err != nil {
		return err
	}
	if err := tx.Commit(); err != nil {
		return failed(err)
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
