package checkpoint

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"time"
)

// List returns checkpoints in the order in which they were saved, the newest first. Their times may
// say otherwise: a clock may be set back, and what is imported is old.
func (d *DB) List(ctx context.Context, f Filter) (page Page, err error) {
	err = d.view(ctx, func(h *history) error {
		page, err = h.list(ctx, f)
		return err
	})
	return page, err
}

func (h *history) list(ctx context.Context, f Filter) (Page, error) {
	below := int64(1<<63 - 1)
	if f.Cursor != "" {
		var err error
		if below, err = parseID(checkpointPrefix, f.Cursor); err != nil {
			return Page{}, &BadOpError{"", "the cursor is none that a list gave out"}
		}
	}
	w, err := h.scope(ctx, f.scope())
	if err != nil {
		return Page{}, err
	}
	w.when(f.Turn != "", "op.turn IN (SELECT id FROM turn WHERE name=?)", f.Turn)
	w.when(f.Tool != "", "(op.tool=? OR op.kind=?)", f.Tool, f.Tool)
	w.when(f.Kind != "", "op.kind = ?", f.Kind)
	w.when(f.NoReads, "op.kind <> ?", KindRead)
	w.when(f.Label != "", "op.label = ?", f.Label)
	w.when(!f.Since.IsZero(), "op.ts >= ?", clampNs(f.Since))
	w.when(!f.Until.IsZero(), "op.ts < ?", clampNs(f.Until))
	if f.PathContains != "" {
		ids, err := h.pathsContaining(ctx, f.PathContains)
		if err != nil {
			return Page{}, err
		}
		w.and("EXISTS (SELECT 1 FROM change x WHERE x.op=op.seq AND x.path IN "+ofList+")", ids)
	}
	limit := f.limit()
	es, err := h.below(ctx, &f, w, below, limit+1)
	if err != nil {
		return Page{}, fmt.Errorf("listing checkpoints: %w", err)
	}
	var p Page
	if len(es) > limit {
		es = es[:limit]
		p.Next = string(idOf(es[limit-1].seq)) // it stays true when that is removed, or more is added
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

// below returns the n next checkpoints below seq, of whichever of its names where a path is asked
// for.
func (h *history) below(ctx context.Context, f *Filter, w where, seq int64,
	n int) ([]entry, error) {
	if f.Path == "" {
		return h.belowOf(ctx, "op", "op.seq", w, seq, n)
	}
	var es []entry
	for _, path := range append([]string{f.Path}, f.Also...) {
		more, err := h.belowOf(ctx, opsOfPath, "cp.op", w.with(thisPath, []byte(path)), seq, n)
		if err != nil {
			return nil, err
		}
		es = append(es, more...)
	}
	if len(f.Also) == 0 {
		return es, nil
	}
	slices.SortFunc(es, func(a, b entry) int { return cmp.Compare(b.seq, a.seq) })
	// One checkpoint may be of two of the names.
	es = slices.CompactFunc(es, func(a, b entry) bool { return a.seq == b.seq })
	return es[:min(len(es), n)], nil
}

func (h *history) belowOf(ctx context.Context, from, column string, w where, seq int64,
	n int) ([]entry, error) {
	w = w.with(column+" < ?", seq)
	order := " ORDER BY " + column + " DESC LIMIT ?"
	return h.entries(ctx, from+opJoins+w.sql()+order, append(w.args, n)...)
}

// pathsContaining returns the ids of matching paths as a JSON array. SQLite folds letters of ASCII
// only, so that the comparing is done here.
func (h *history) pathsContaining(ctx context.Context, part string) (string, error) {
	part = strings.ToLower(part)
	var ids []int64
	err := each(ctx, h.q, "SELECT id, path FROM path", nil, func(row scanner) error {
		var id int64
		var p sql.RawBytes
		err := row.Scan(&id, &p)
		if strings.Contains(strings.ToLower(string(p)), part) {
			ids = append(ids, id)
		}
		return err
	})
	return listOf(ids), err
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

// where gathers the terms of a condition. All of them have to hold.
type where struct {
	terms []string
	args  []any
}

// with is w and one more term; w stays as it is.
func (w where) with(term string, args ...any) where {
	return where{append(slices.Clip(w.terms), term), append(slices.Clip(w.args), args...)}
}

// when adds the term if yes.
func (w *where) when(yes bool, term string, args ...any) {
	if yes {
		w.and(term, args...)
	}
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
