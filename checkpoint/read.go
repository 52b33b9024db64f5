package checkpoint

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"

	"moltisfs/checkpoint/blob"
)

// querier is a connection pool or a transaction.
type querier interface {
	QueryContext(ctx context.Context, q string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, q string, args ...any) *sql.Row
}

// each calls fn with each row of the answer, until fn returns an error. fs.SkipAll ends it without
// one.
func each(ctx context.Context, q querier, query string, args []any,
	fn func(row scanner) error) error {
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

// ofList are the ids of an argument made by listOf.
const ofList = "(SELECT value FROM json_each(?))"

func listOf(ids []int64) string {
	b, _ := json.Marshal(append([]int64{}, ids...)) //nolint:errcheck // numbers can be written
	return string(b)
}

// readRows reads all rows of an answer; to says where the columns of one go.
func readRows[T any](ctx context.Context, q querier, query string, args []any,
	to func(*T) []any) (out []T, err error) {
	err = each(ctx, q, query, args, func(row scanner) error {
		var v T
		err := row.Scan(to(&v)...)
		out = append(out, v)
		return err
	})
	return out, err
}

// column reads an answer of one column.
func column[T any](ctx context.Context, q querier, query string, args ...any) ([]T, error) {
	return readRows(ctx, q, query, args, func(v *T) []any { return []any{v} })
}

func queryPairs(ctx context.Context, q querier, query string, args ...any) ([][2]int64, error) {
	return readRows(ctx, q, query, args, func(p *[2]int64) []any { return []any{&p[0], &p[1]} })
}

// Get returns the checkpoint id if who may see it.
func (d *DB) Get(ctx context.Context, id ID, who Scope) (*Checkpoint, error) {
	var e entry
	err := d.view(ctx, func(h *history) (err error) {
		e, err = visible(ctx, h, who, id)
		return err
	})
	return e.c, err
}

// view runs fn over one snapshot of the catalog.
func (d *DB) view(ctx context.Context, fn func(*history) error) error {
	if err := d.enter(); err != nil {
		return err
	}
	defer d.active.Done()
	if err := d.inPlace(); err != nil { // another connection may open what is in its place now
		return err
	}
	h := &history{}
	// Before the snapshot: that begins with the first query, and what is not pending any more is in
	// it.
	h.pending = d.com.settled.pending()
	return d.readers.snapshot(ctx, func(q querier) error {
		h.q = q
		return fn(h)
	})
}

// planning is view for those who have to know which operations may be half made.
func (d *DB) planning(ctx context.Context, fn func(*history) error) error {
	return d.view(ctx, func(h *history) error {
		open, err := column[int64](ctx, h.q, "SELECT op FROM open_op WHERE NOT made")
		if err != nil {
			return fmt.Errorf("looking what is open: %w", named(err))
		}
		h.open = map[int64]bool{}
		for _, seq := range open {
			h.open[seq] = true
		}
		return fn(h)
	})
}

// Plan answers what a Restore has to do. Nothing is changed.
func (d *DB) Plan(ctx context.Context, r Restore) (p *Plan, err error) {
	err = d.planning(ctx, func(h *history) error {
		p, err = makePlan(ctx, h, r)
		return err
	})
	return p, err
}

// Undo plans to take back the newest change of the session that is not undone, with all that its
// run did (Op.Run) and that is not undone. The Op that carries the plan out must have UndoOf and
// RestoreOf set to those of the Plan. Plan.Lost says that retention took some of the run, or what is
// newer: what is left would not restore what was there before it. Where there is nothing, the error
// is a *NothingError.
func (d *DB) Undo(ctx context.Context, who Scope) (*Plan, error) {
	return d.undo(ctx, walk{who: who})
}

// Redo plans to take back the newest undo, if nothing was changed after it.
func (d *DB) Redo(ctx context.Context, who Scope) (*Plan, error) {
	return d.undo(ctx, walk{who: who, redo: true})
}

func (d *DB) undo(ctx context.Context, w walk) (p *Plan, err error) {
	err = d.planning(ctx, func(h *history) error {
		p, err = w.plan(ctx, h)
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
	h, err := blob.ParseHash(hx)
	if err != nil {
		return nil, &BadOpError{"", err.Error()}
	}
	b, err := d.content(ctx, h)
	if errors.Is(err, ErrSealed) {
		if held := d.pack.Held(h); held != nil {
			return held, nil
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
