package checkpoint

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// List returns checkpoints, newest first: by time, of one time those saved later first.
func (d *DB) List(ctx context.Context, f Filter) (page Page, err error) {
	err = d.view(ctx, func(h *history) error {
		page, err = h.list(ctx, f)
		return err
	})
	return page, err
}

func (h *history) list(ctx context.Context, f Filter) (Page, error) {
	at, err := parsePlace(f.Cursor)
	if err != nil {
		return Page{}, err
	}
	var w where
	if err := h.scope(ctx, &w, f.scope()); err != nil {
		return Page{}, err
	}
	if f.Turn != "" {
		w.and("op.turn IN (SELECT id FROM turn WHERE name=?)", f.Turn)
	}
	if f.Tool != "" {
		w.and("(op.tool = (SELECT id FROM word WHERE s=?) OR op.kind = (SELECT id FROM word WHERE s=?))", f.Tool, f.Tool)
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
	if f.PathContains != "" {
		ids, err := h.pathsContaining(ctx, f.PathContains)
		if err != nil {
			return Page{}, err
		}
		w.and("EXISTS (SELECT 1 FROM change x WHERE x.op=op.seq AND x.path IN (SELECT value FROM json_each(?)))", ids)
	}
	limit := f.limit()
	es, err := h.streams(ctx, &f, &w, at, limit+1)
	if err != nil {
		return Page{}, fmt.Errorf("listing checkpoints: %w", err)
	}
	var p Page
	if len(es) > limit {
		es = es[:limit]
		p.Next = at.after(es).String()
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

// streams returns the n next checkpoints after at, of whichever of its names where a path is asked for.
func (h *history) streams(ctx context.Context, f *Filter, w *where, at place, n int) ([]entry, error) {
	es, err := h.streamsOf(ctx, f, f.Path, w, at, n)
	if err != nil || f.Path == "" || len(f.Also) == 0 {
		return es, err
	}
	for _, path := range f.Also {
		more, err := h.streamsOf(ctx, f, path, w, at, n)
		if err != nil {
			return nil, err
		}
		for _, e := range more {
			if !slices.ContainsFunc(es, func(o entry) bool { return o.seq == e.seq }) { // one may be of two of the names
				es = append(es, e)
			}
		}
	}
	slices.SortFunc(es, func(a, b entry) int {
		if f.AsSaved {
			return cmp.Compare(b.seq, a.seq)
		}
		return newest(a, b)
	})
	return es[:min(len(es), n)], nil
}

// newest orders entries as lists have them.
func newest(a, b entry) int { return cmp.Or(b.c.Time.Compare(a.c.Time), cmp.Compare(b.seq, a.seq)) }

// streamsOf is streams for one path, or "" for all. Those that came in the order of time are in the order of seq; the late ones have
// an index of their own; both are asked for n and merged.
func (h *history) streamsOf(ctx context.Context, f *Filter, path string, w *where, at place, n int) ([]entry, error) {
	ask := func(more string, order string, args ...any) ([]entry, error) {
		v := where{slices.Clone(w.terms), slices.Clone(w.args)}
		v.and(more, args...)
		from := "op"
		if path != "" {
			from = opsOfPath
			v.and(thisPath, []byte(path))
		}
		rows, err := h.q.QueryContext(ctx, "SELECT "+opColumns+" FROM "+from+opJoins+v.sql()+" ORDER BY "+order+" LIMIT ?", append(v.args, n)...)
		if err != nil {
			return nil, err
		}
		return h.scan(ctx, rows)
	}
	seq, late := "op.seq", "op.late"
	if path != "" { // the columns of the indexes by path
		seq, late = "cp.op", "cp.late"
	}
	if f.AsSaved {
		return ask(seq+" < ?", seq+" DESC", at.seq)
	}
	es, err := ask("op.late IS NULL AND "+seq+" < ?", seq+" DESC", at.seq)
	if err != nil {
		return nil, err
	}
	others, err := ask(late+" IS NOT NULL AND "+late+" <= ? AND ("+late+" < ? OR "+seq+" < ?)", late+" DESC, "+seq+" DESC", at.late, at.late, at.lateSeq)
	if err != nil || len(others) == 0 {
		return es, err
	}
	for i := range others {
		others[i].late = true
	}
	es = append(es, others...)
	slices.SortFunc(es, newest)
	return es[:min(len(es), n)], nil
}

// place is where a list goes on: below seq among the checkpoints that came in the order of time, and below late and lateSeq among the
// others. It stays true when what it was taken from is removed, or more is added.
type place struct{ seq, late, lateSeq int64 }

var firstPlace = place{1<<63 - 1, 1<<63 - 1, 1<<63 - 1}

// after moves p behind es.
func (p place) after(es []entry) place {
	for _, e := range es {
		if e.late {
			p.late, p.lateSeq = e.c.Time.UnixNano(), e.seq
		} else {
			p.seq = e.seq
		}
	}
	return p
}

// String is short as long as nothing was late: the id of the last checkpoint. Models copy it.
func (p place) String() string {
	var s string
	if p.seq != firstPlace.seq {
		s = makeID(checkpointPrefix, p.seq)
	}
	if p.late != firstPlace.late {
		s += "." + strconv.FormatInt(p.late, 36) + "." + strconv.FormatInt(p.lateSeq, 36)
	}
	return s
}

func parsePlace(s string) (p place, err error) {
	p = firstPlace
	id, late, dotted := strings.Cut(s, ".")
	if id != "" {
		p.seq, err = parseID(checkpointPrefix, id)
	}
	if err == nil && dotted {
		ts, seq, _ := strings.Cut(late, ".")
		if p.late, err = strconv.ParseInt(ts, 36, 64); err == nil {
			p.lateSeq, err = strconv.ParseInt(seq, 36, 64)
		}
	}
	if err != nil {
		return place{}, &BadOpError{"", "the cursor is none that a list gave out"}
	}
	return p, nil
}

// pathsContaining returns the ids of matching paths as a JSON array. Folding letters is done here, because SQLite only
// knows those of ASCII.
func (h *history) pathsContaining(ctx context.Context, part string) (string, error) {
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
