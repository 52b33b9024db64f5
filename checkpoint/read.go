package checkpoint

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"
)

// querier is a connection pool or a transaction.
type querier interface {
	QueryContext(ctx context.Context, q string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, q string, args ...any) *sql.Row
}

// Get returns the checkpoint id if who may see it.
func (d *DB) Get(ctx context.Context, id ID, who Scope) (*Checkpoint, error) {
	var c *Checkpoint
	err := d.view(ctx, func(h *dbHistory) error {
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
func (d *DB) view(ctx context.Context, fn func(*dbHistory) error) error {
	if err := d.enter(); err != nil {
		return err
	}
	defer d.active.Done()
	tx, err := d.r.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return fmt.Errorf("reading the checkpoint catalog: %w", err)
	}
	defer tx.Rollback()
	q := &prepared{tx: tx, st: map[string]*sql.Stmt{}}
	defer q.close()
	return fn(&dbHistory{q, d.com.pendingOutcomes()})
}

// prepared keeps the statements of one transaction: a plan asks the same of every path, and to parse is dearer than to answer.
type prepared struct {
	tx *sql.Tx
	st map[string]*sql.Stmt
}

func (p *prepared) stmt(ctx context.Context, q string) (*sql.Stmt, error) {
	if s := p.st[q]; s != nil {
		return s, nil
	}
	s, err := p.tx.PrepareContext(ctx, q)
	if err == nil {
		p.st[q] = s
	}
	return s, err
}

func (p *prepared) close() {
	for _, s := range p.st {
		s.Close()
	}
}

func (p *prepared) QueryContext(ctx context.Context, q string, args ...any) (*sql.Rows, error) {
	s, err := p.stmt(ctx, q)
	if err != nil {
		return nil, err
	}
	return s.QueryContext(ctx, args...)
}

func (p *prepared) QueryRowContext(ctx context.Context, q string, args ...any) *sql.Row {
	s, err := p.stmt(ctx, q)
	if err != nil {
		return p.tx.QueryRowContext(ctx, q, args...) // which says the same
	}
	return s.QueryRowContext(ctx, args...)
}

// pendingOutcomes returns outcomes that are settled but not written yet.
func (c *committer) pendingOutcomes() map[int64]Outcome {
	c.omu.Lock()
	defer c.omu.Unlock()
	if len(c.outcomes) == 0 {
		return nil
	}
	m := make(map[int64]Outcome, len(c.outcomes))
	for k, v := range c.outcomes {
		m[k] = v
	}
	return m
}

// Plan answers what a Restore has to do. Nothing is changed.
func (d *DB) Plan(ctx context.Context, r Restore) (p *Plan, err error) {
	err = d.view(ctx, func(h *dbHistory) error {
		p, err = makePlan(ctx, h, r)
		return err
	})
	return p, err
}

// Undo plans to take back the newest change of the session that is not undone. The Op that carries the plan out must
// have UndoOf set to Plan.UndoOf.
func (d *DB) Undo(ctx context.Context, who Scope) (p *Plan, err error) {
	err = d.view(ctx, func(h *dbHistory) error {
		p, err = makeUndo(ctx, h, who, false)
		return err
	})
	return p, err
}

// Redo plans to take back the newest undo, if nothing was changed after it.
func (d *DB) Redo(ctx context.Context, who Scope) (p *Plan, err error) {
	err = d.view(ctx, func(h *dbHistory) error {
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
	rows, err := d.r.QueryContext(ctx, chainQuery, h[:])
	if err != nil {
		return nil, fmt.Errorf("reading content: %w", err)
	}
	defer rows.Close()
	var chain []link
	for rows.Next() {
		var l link
		if err := rows.Scan(&l.codec, &l.base, &l.key, &l.bytes, &l.z, &l.size, &l.h); err != nil {
			return nil, fmt.Errorf("reading content: %w", err)
		}
		chain = append(chain, l)
	}
	if err := rows.Err(); err != nil {
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

// List returns checkpoints, newest first.
func (d *DB) List(ctx context.Context, f Filter) (page Page, err error) {
	err = d.view(ctx, func(h *dbHistory) error {
		page, err = h.list(ctx, f)
		return err
	})
	return page, err
}

func (h *dbHistory) list(ctx context.Context, f Filter) (Page, error) {
	var w where
	if f.Cursor != "" {
		seq, err := parseID(checkpointPrefix, f.Cursor)
		if err != nil {
			return Page{}, &BadOpError{"", "the cursor is none that a list gave out"}
		}
		w.and("op.seq < ?", seq)
	}
	if err := h.scope(ctx, &w, f.scope()); err != nil {
		return Page{}, err
	}
	if f.Turn != "" {
		w.and("op.turn IN (SELECT id FROM turn WHERE name=?)", f.Turn)
	}
	if f.Tool != "" {
		w.and("op.tool = (SELECT id FROM word WHERE s=?)", f.Tool)
	}
	if f.Kind != "" {
		w.and("op.kind = (SELECT id FROM word WHERE s=?)", f.Kind)
	}
	if f.NoReads {
		w.and("op.kind IS NOT (SELECT id FROM word WHERE s=?)", KindRead)
	}
	if f.Label != "" {
		w.and("op.label = ?", f.Label)
	}
	if !f.Since.IsZero() {
		w.and("op.ts >= ?", clampNs(f.Since))
	}
	if !f.Until.IsZero() {
		w.and("op.ts < ?", clampNs(f.Until))
	}
	from, order := "op", "op.seq"
	if f.Path != "" {
		from, order = opsOfPath, "cp.op"
		w.and(thisPath, []byte(f.Path))
	}
	if f.PathContains != "" {
		ids, err := h.pathsContaining(ctx, f.PathContains)
		if err != nil {
			return Page{}, err
		}
		w.and("EXISTS (SELECT 1 FROM change x WHERE x.op=op.seq AND x.path IN (SELECT value FROM json_each(?)))", ids)
	}
	limit := f.limit()
	q := "SELECT " + opColumns + " FROM " + from + opJoins + w.sql() + " ORDER BY " + order + " DESC LIMIT ?"
	rows, err := h.q.QueryContext(ctx, q, append(w.args, limit+1)...)
	if err != nil {
		return Page{}, fmt.Errorf("listing checkpoints: %w", err)
	}
	es, err := h.scan(rows)
	if err != nil {
		return Page{}, fmt.Errorf("listing checkpoints: %w", err)
	}
	var p Page
	if len(es) > limit {
		es = es[:limit]
		p.Next = string(idOf(es[limit-1].seq))
	}
	if err := h.fillChanges(ctx, es); err != nil {
		return Page{}, err
	}
	p.Checkpoints = make([]Checkpoint, len(es))
	for i, e := range es {
		p.Checkpoints[i] = *e.c
	}
	return p, nil
}

// pathsContaining returns the ids of matching paths as a JSON array. Folding letters is done here, because SQLite only
// knows those of ASCII.
func (h *dbHistory) pathsContaining(ctx context.Context, part string) (string, error) {
	rows, err := h.q.QueryContext(ctx, "SELECT id, path FROM path")
	if err != nil {
		return "", err
	}
	defer rows.Close()
	part = strings.ToLower(part)
	ids := []int64{}
	for rows.Next() {
		var id int64
		var p sql.RawBytes
		if err := rows.Scan(&id, &p); err != nil {
			return "", err
		}
		if strings.Contains(strings.ToLower(string(p)), part) {
			ids = append(ids, id)
		}
	}
	b, err := json.Marshal(ids)
	return string(b), errors.Join(err, rows.Err())
}

func clampNs(t time.Time) int64 {
	switch y := t.Year(); {
	case y <= oldestYear:
		return -1 << 63
	case y >= youngestYear:
		return 1<<63 - 1
	}
	return t.UnixNano()
}

type where struct {
	terms []string
	args  []any
}

func (w *where) and(term string, args ...any) {
	w.terms = append(w.terms, term)
	w.args = append(w.args, args...)
}

func (w *where) sql() string {
	if len(w.terms) == 0 {
		return ""
	}
	return " WHERE " + strings.Join(w.terms, " AND ")
}
