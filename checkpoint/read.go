package checkpoint

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"maps"
)

// querier is a connection pool or a transaction.
type querier interface {
	QueryContext(ctx context.Context, q string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, q string, args ...any) *sql.Row
}

// each calls fn with each row of the answer, until fn returns an error; fs.SkipAll ends it without one.
func each(ctx context.Context, q querier, query string, args []any, fn func(row scanner) error) error {
	rows, err := q.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := fn(rows); err != nil {
			if errors.Is(err, fs.SkipAll) {
				return nil
			}
			return err
		}
	}
	return rows.Err()
}

// Get returns the checkpoint id if who may see it.
func (d *DB) Get(ctx context.Context, id ID, who Scope) (*Checkpoint, error) {
	var c *Checkpoint
	err := d.view(ctx, func(h *history) error {
		e, err := visible(ctx, h, who, id)
		c = e.c
		return err
	})
	if err != nil {
		return nil, err
	}
	return c, nil
}

// view runs fn over one snapshot of the catalog.
func (d *DB) view(ctx context.Context, fn func(*history) error) error { return d.look(ctx, false, fn) }

// planning is view for those who have to know what is under way.
func (d *DB) planning(ctx context.Context, fn func(*history) error) error {
	return d.look(ctx, true, fn)
}

func (d *DB) look(ctx context.Context, plans bool, fn func(*history) error) error {
	if err := d.enter(); err != nil {
		return err
	}
	defer d.active.Done()
	if err := d.inPlace(); err != nil { // another connection may open what is in its place now
		return err
	}
	h := &history{}
	if plans { // before the snapshot: what is in no doubt by then is over, and its outcome in the snapshot
		var err error
		if h.doubt, err = d.inDoubt(ctx); err != nil {
			return fmt.Errorf("looking what is under way: %w", named(err))
		}
	}
	// The outcomes too: the snapshot begins with the first query, and what is not pending any more is in it.
	h.pending = d.com.pendingOutcomes()
	return d.readers.snapshot(ctx, func(q querier) error {
		h.q = q
		return fn(h)
	})
}

// pendingOutcomes returns outcomes that are settled but not written yet.
func (c *committer) pendingOutcomes() map[int64]Outcome {
	c.omu.Lock()
	defer c.omu.Unlock()
	return maps.Clone(c.outcomes)
}

// Plan answers what a Restore has to do. Nothing is changed.
func (d *DB) Plan(ctx context.Context, r Restore) (p *Plan, err error) {
	err = d.planning(ctx, func(h *history) error {
		p, err = makePlan(ctx, h, r)
		return err
	})
	return p, err
}

// Undo plans to take back the newest change of the session that is not undone. The Op that carries the plan out must
// have UndoOf set to Plan.UndoOf.
func (d *DB) Undo(ctx context.Context, who Scope) (p *Plan, err error) {
	err = d.planning(ctx, func(h *history) error {
		p, err = makeUndo(ctx, h, who, false)
		return err
	})
	return p, err
}

// Redo plans to take back the newest undo, if nothing was changed after it.
func (d *DB) Redo(ctx context.Context, who Scope) (p *Plan, err error) {
	err = d.planning(ctx, func(h *history) error {
		p, err = makeUndo(ctx, h, who, true)
		return err
	})
	return p, err
}

// Content returns the bytes whose SHA-256 is hash, compared with it.
func (d *DB) Content(ctx context.Context, hx string) ([]byte, error) {
	if err := d.enter(); err != nil {
		return nil, err
	}
	defer d.active.Done()
	h, err := parseHash(hx)
	if err != nil {
		return nil, &BadOpError{"", err.Error()}
	}
	b, err := d.content(ctx, h)
	if errors.Is(err, ErrSealed) {
		if v := d.seal.held.find(string(h[:])); v != nil {
			return v.content, nil
		}
	}
	if errors.Is(err, fs.ErrNotExist) { // gc may have moved it between the row and the file
		b, err = d.content(ctx, h)
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = &CorruptError{hx, "its file is gone"}
	}
	return b, err
}

// chainQuery reads a content and what it is a delta against in one statement, hence from one snapshot.
const chainQuery = `WITH RECURSIVE c(id, codec, base, key, bytes, z, size, hash, n) AS (
	SELECT d.id, d.codec, d.base, d.key, d.bytes, d.z, o.size, o.hash, 0 FROM object o JOIN data d ON d.id=o.id WHERE o.hash=?
	UNION ALL
	SELECT d.id, d.codec, d.base, d.key, d.bytes, d.z, o.size, o.hash, n+1 FROM c JOIN data d ON d.id=c.base JOIN object o ON o.id=d.id
	WHERE n < 64)
	SELECT codec, base, key, bytes, z, size, hash FROM c ORDER BY n`

// link is one row of a chain.
type link struct {
	codec codec
	base  sql.NullInt64
	key   sql.NullInt64
	bytes int64
	z     []byte
	size  int64
	h     []byte
}

func (d *DB) content(ctx context.Context, h hash) ([]byte, error) {
	var chain []link
	err := each(ctx, d.r, chainQuery, []any{h[:]}, func(row scanner) error {
		var l link
		err := row.Scan(&l.codec, &l.base, &l.key, &l.bytes, &l.z, &l.size, &l.h)
		chain = append(chain, l)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("reading content: %w", err)
	}
	if len(chain) == 0 {
		return nil, ErrNoContent
	}
	if chain[len(chain)-1].base.Valid {
		return nil, &CorruptError{h.String(), "the base of its delta is missing"}
	}
	var out []byte
	for i := len(chain) - 1; i >= 0; i-- {
		l := &chain[i]
		out, err = d.decode(ctx, l, out)
		if errors.Is(err, ErrSealed) || errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		if err != nil {
			return nil, &CorruptError{h.String(), err.Error()}
		}
	}
	if sha256.Sum256(out) != h {
		return nil, &CorruptError{h.String(), "the hash is another one"}
	}
	return out, nil
}

// decode turns one row into its content.
func (d *DB) decode(ctx context.Context, l *link, base []byte) ([]byte, error) {
	z := l.z
	if l.codec&codecExt != 0 {
		var err error
		if z, err = d.readExt(string(l.z), l.bytes); err != nil {
			return nil, err
		}
	}
	if l.codec&codecSealed != 0 {
		var h hash
		copy(h[:], l.h)
		var err error
		if z, err = d.seal.open(ctx, d, l.key.Int64, h, l.codec&^(codecExt|codecSealed), z); err != nil {
			return nil, err
		}
	}
	return d.pack.unpack(l.codec, z, base, l.size)
}
