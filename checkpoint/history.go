package checkpoint

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"time"
)

// dbHistory answers the planner from one snapshot of the catalog.
type dbHistory struct {
	q       querier
	pending map[int64]Outcome // settled, not yet written
}

var _ history = (*dbHistory)(nil)

const (
	opColumns = `op.seq, op.ts, s.principal, s.name, t.name, wt.s, wk.s, op.outcome, op.pin, op.label, op.undo_of, op.restore_of`
	opJoins   = ` JOIN session s ON s.id=op.session JOIN word wt ON wt.id=op.tool JOIN word wk ON wk.id=op.kind
		LEFT JOIN turn t ON t.id=op.turn`
)

func (h *dbHistory) scan(rows *sql.Rows) ([]entry, error) {
	defer rows.Close()
	var out []entry
	for rows.Next() {
		e, err := h.scanOne(rows)
		if err != nil {
			return nil, err
		}
		out = append(out, e)
	}
	return out, rows.Err()
}

func (h *dbHistory) scanOne(row scanner) (entry, error) {
	c := &Checkpoint{}
	e := entry{c: c}
	var ts, outcome int64
	var turn, label sql.NullString
	var undo, restore sql.NullInt64
	err := row.Scan(&e.seq, &ts, &c.Principal, &c.Session, &turn, &c.Tool, &c.Kind, &outcome, &c.Pinned, &label, &undo, &restore)
	if err != nil {
		return e, err
	}
	c.ID, c.Time, c.Outcome = idOf(e.seq), time.Unix(0, ts), codeOutcome(outcome)
	c.Turn, c.Label = turn.String, label.String
	e.undoOf = undo.Int64
	c.UndoOf, c.RestoreOf = idOf(undo.Int64), idOf(restore.Int64)
	if o, ok := h.pending[e.seq]; ok {
		c.Outcome = o
	}
	return e, nil
}

// scope adds to w that only the checkpoints of who are wanted.
func (h *dbHistory) scope(ctx context.Context, w *where, who Scope) error {
	switch {
	case !who.AllSessions:
		var id int64
		err := h.q.QueryRowContext(ctx, "SELECT id FROM session WHERE principal=? AND name=?", who.Principal, who.Session).Scan(&id)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		w.and("op.session = ?", id) // 0 is nobody's
	case who.Principal != "" && who.Session != "":
		w.and("op.session IN (SELECT id FROM session WHERE principal=? AND name=?)", who.Principal, who.Session)
	case who.Principal != "":
		w.and("op.session IN (SELECT id FROM session WHERE principal=?)", who.Principal)
	case who.Session != "":
		w.and("op.session IN (SELECT id FROM session WHERE name=?)", who.Session)
	}
	return nil
}

func (h *dbHistory) entry(ctx context.Context, seq int64) (entry, error) {
	e, err := h.scanOne(h.q.QueryRowContext(ctx, "SELECT "+opColumns+" FROM op"+opJoins+" WHERE op.seq=?", seq))
	if errors.Is(err, sql.ErrNoRows) {
		return e, ErrNotFound
	}
	if err != nil {
		return e, fmt.Errorf("reading checkpoint: %w", err)
	}
	return e, h.fillChanges(ctx, []entry{e})
}

func (h *dbHistory) after(ctx context.Context, who Scope, seq int64) ([]entry, error) {
	var w where
	if err := h.scope(ctx, &w, who); err != nil {
		return nil, err
	}
	w.and("op.seq > ?", seq)
	rows, err := h.q.QueryContext(ctx, "SELECT "+opColumns+" FROM op"+opJoins+w.sql()+" ORDER BY op.seq", w.args...)
	if err != nil {
		return nil, err
	}
	es, err := h.scan(rows)
	if err != nil {
		return nil, err
	}
	return es, h.fillChanges(ctx, es)
}

func (h *dbHistory) newest(ctx context.Context, who Scope, fn func(entry) bool) error {
	var w where
	if err := h.scope(ctx, &w, who); err != nil {
		return err
	}
	rows, err := h.q.QueryContext(ctx, "SELECT "+opColumns+" FROM op"+opJoins+w.sql()+" ORDER BY op.seq DESC", w.args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		e, err := h.scanOne(rows)
		if err != nil {
			return err
		}
		if !fn(e) {
			return nil
		}
	}
	return rows.Err()
}

func (h *dbHistory) turnStart(ctx context.Context, who Scope, turn string) (int64, error) {
	var seq int64
	err := h.q.QueryRowContext(ctx, `SELECT after FROM turn WHERE name=? AND session=(SELECT id FROM session WHERE principal=? AND name=?)`,
		turn, who.Principal, who.Session).Scan(&seq)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, ErrNotFound
	}
	return seq, err
}

func (h *dbHistory) sinceStart(ctx context.Context, who Scope, t time.Time) (int64, error) {
	var w where
	if err := h.scope(ctx, &w, who); err != nil {
		return 0, err
	}
	w.and("op.ts >= ?", clampNs(t))
	var seq int64
	err := h.q.QueryRowContext(ctx, "SELECT ifnull(min(op.seq)-1, 1<<62) FROM op"+w.sql(), w.args...).Scan(&seq)
	return seq, err
}

func (h *dbHistory) labelled(ctx context.Context, who Scope, label string) ([]Labelled, error) {
	var w where
	if err := h.scope(ctx, &w, who); err != nil {
		return nil, err
	}
	w.and("op.label = ?", label)
	rows, err := h.q.QueryContext(ctx, "SELECT "+opColumns+" FROM op"+opJoins+w.sql()+" ORDER BY op.seq", w.args...)
	if err != nil {
		return nil, err
	}
	es, err := h.scan(rows)
	var out []Labelled
	for _, e := range es {
		out = append(out, Labelled{e.c.ID, e.c.Time, e.c.Session})
	}
	return out, err
}

func (h *dbHistory) head(ctx context.Context, who Scope, path string) (*entry, error) {
	// A read says what somebody saw, not what became of the path: it only counts where there is nothing else.
	for _, reads := range []string{"IS NOT", "IS"} {
		var w where
		w.and(thisPath, []byte(path))
		w.and("op.outcome<>?", outcomeCode(Aborted))
		w.and("op.kind "+reads+" (SELECT id FROM word WHERE s=?)", KindRead)
		if err := h.scope(ctx, &w, who); err != nil {
			return nil, err
		}
		e, err := h.scanOne(h.q.QueryRowContext(ctx, "SELECT "+opColumns+" FROM "+opsOfPath+opJoins+w.sql()+" ORDER BY cp.op DESC LIMIT 1", w.args...))
		if errors.Is(err, sql.ErrNoRows) {
			continue
		}
		if err != nil {
			return nil, err
		}
		return &e, h.fillChange(ctx, e, path)
	}
	return nil, nil
}

func (h *dbHistory) lineage(ctx context.Context, path string, seq int64) ([]entry, error) {
	rows, err := h.q.QueryContext(ctx, "SELECT "+opColumns+" FROM "+opsOfPath+opJoins+" WHERE "+thisPath+
		" AND cp.op>=? AND op.outcome<>? AND op.kind IS NOT (SELECT id FROM word WHERE s=?) ORDER BY cp.op", []byte(path), seq, outcomeCode(Aborted), KindRead)
	if err != nil {
		return nil, err
	}
	es, err := h.scan(rows)
	if err != nil || len(es) == 0 {
		return nil, err
	}
	by := make(map[int64]*Checkpoint, len(es))
	for _, e := range es {
		by[e.seq] = e.c
	}
	err = h.eachChange(ctx, changeColumns+" FROM change c INDEXED BY change_path"+changeJoins+
		" WHERE c.path=(SELECT id FROM path WHERE path=?) AND c.op>=?", func(seq int64) *Checkpoint { return by[seq] }, []byte(path), seq)
	return es, err
}

func (h *dbHistory) whole(ctx context.Context, after, before int64) (bool, error) {
	var n int64
	err := h.q.QueryRowContext(ctx, "SELECT count(*) FROM op WHERE seq>? AND seq<?", after, before).Scan(&n)
	return n == before-after-1, err // numbers are given out without gaps
}

func (h *dbHistory) movedAway(ctx context.Context, name string, after, before int64) (bool, error) {
	for dir := path.Dir(name); len(dir) > 1; dir = path.Dir(dir) {
		var n int
		err := h.q.QueryRowContext(ctx, `SELECT count(*) FROM change c JOIN word w ON w.id=c.role JOIN op ON op.seq=c.op
			WHERE c.path=(SELECT id FROM path WHERE path=?) AND c.op>? AND c.op<? AND w.s=? AND op.outcome<>?`,
			[]byte(dir), after, before, RoleTree, outcomeCode(Aborted)).Scan(&n)
		if err != nil || n > 0 {
			return n > 0, err
		}
	}
	return false, nil
}

// The operations of one path. CROSS JOIN and the order by cp.op make SQLite go down the index and stop at the limit.
const (
	opsOfPath = "change cp CROSS JOIN op ON op.seq=cp.op"
	thisPath  = "cp.path=(SELECT id FROM path WHERE path=?)"
)

const changeQuery = changeColumns + " FROM change c" + changeJoins

const changeColumns = `SELECT c.op, p.path, w.s, c.skipped,
	c.bkind, ba.mode, ba.uid, ba.gid, ba.xattrs, c.bmtime, bo.hash, bo.size, c.bsize, c.btarget, bd.id IS NOT NULL,
	c.akind, aa.mode, aa.uid, aa.gid, aa.xattrs, c.amtime, ao.hash, ao.size, c.asize, c.atarget, ad.id IS NOT NULL, c.askipped`

const changeJoins = `
	JOIN path p ON p.id=c.path JOIN word w ON w.id=c.role
	LEFT JOIN attr ba ON ba.id=c.battr LEFT JOIN object bo ON bo.id=c.bobj LEFT JOIN data bd ON bd.id=c.bobj
	LEFT JOIN attr aa ON aa.id=c.aattr LEFT JOIN object ao ON ao.id=c.aobj LEFT JOIN data ad ON ad.id=c.aobj`

// fillChanges reads the changes of all entries in one go.
func (h *dbHistory) fillChanges(ctx context.Context, es []entry) error {
	if len(es) == 1 {
		return h.eachChange(ctx, changeQuery+" WHERE c.op=? ORDER BY c.n", func(int64) *Checkpoint { return es[0].c }, es[0].seq)
	}
	by := make(map[int64]*Checkpoint, len(es))
	seqs := make([]byte, 0, 8*len(es))
	for _, e := range es {
		by[e.seq] = e.c
		seqs = strconv.AppendInt(append(seqs, ','), e.seq, 10)
	}
	if len(es) == 0 {
		return nil
	}
	seqs[0] = '['
	return h.eachChange(ctx, changeColumns+" FROM json_each(?) j CROSS JOIN change c ON c.op=j.value"+changeJoins+" ORDER BY j.key, c.n",
		func(seq int64) *Checkpoint { return by[seq] }, string(append(seqs, ']')))
}

// fillChange reads only the change of one path.
func (h *dbHistory) fillChange(ctx context.Context, e entry, path string) error {
	// Through the index of paths: an operation may have as many changes as a tree has files.
	return h.eachChange(ctx, changeColumns+" FROM change c INDEXED BY change_path"+changeJoins+
		" WHERE c.op=? AND c.path=(SELECT id FROM path WHERE path=?)", func(int64) *Checkpoint { return e.c }, e.seq, []byte(path))
}

func (h *dbHistory) eachChange(ctx context.Context, q string, of func(seq int64) *Checkpoint, args ...any) error {
	rows, err := h.q.QueryContext(ctx, q, args...)
	if err != nil {
		return fmt.Errorf("reading checkpoint: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		seq, r, err := scanChange(rows)
		if err != nil {
			return fmt.Errorf("reading checkpoint: %w", err)
		}
		if c := of(seq); c != nil {
			c.Changes = append(c.Changes, r)
		}
	}
	return rows.Err()
}

func scanChange(rows *sql.Rows) (op int64, r Recorded, err error) {
	var path []byte
	var skipped, askipped sql.NullString
	type side struct {
		kind                            int64
		mode, uid, gid, mtime, osize, n sql.NullInt64
		xattrs, hash, target            []byte
		stored                          bool
	}
	var b, a side
	cols := []any{&op, &path, &r.Role, &skipped}
	for _, s := range []*side{&b, &a} {
		cols = append(cols, &s.kind, &s.mode, &s.uid, &s.gid, &s.xattrs, &s.mtime, &s.hash, &s.osize, &s.n, &s.target, &s.stored)
	}
	cols = append(cols, &askipped)
	if err := rows.Scan(cols...); err != nil {
		return op, r, err
	}
	r.Path, r.Skipped, r.AfterSkipped, r.Stored, r.AfterStored = string(path), skipped.String, askipped.String, b.stored, a.stored
	for _, p := range []struct {
		s  *side
		to *State
	}{{&b, &r.Before}, {&a, &r.After}} {
		x, err := decodeXattrs(p.s.xattrs)
		if err != nil {
			return op, r, err
		}
		*p.to = State{Kind: codeKind(p.s.kind), Mode: fs.FileMode(p.s.mode.Int64), UID: uint32(p.s.uid.Int64), GID: uint32(p.s.gid.Int64),
			Xattrs: x, Target: string(p.s.target), Size: p.s.n.Int64}
		if p.s.mtime.Valid {
			p.to.ModTime = time.Unix(0, p.s.mtime.Int64)
		}
		if len(p.s.hash) > 0 {
			p.to.Hash, p.to.Size = fmt.Sprintf("%x", p.s.hash), p.s.osize.Int64
		}
	}
	return op, r, nil
}

// Known lists the paths that this session has read or changed, by path, with their last recorded state.
func (d *DB) Known(ctx context.Context, who Scope) ([]Known, error) {
	var out []Known
	err := d.view(ctx, func(h *dbHistory) error {
		var w where
		if err := h.scope(ctx, &w, who); err != nil {
			return err
		}
		rows, err := h.q.QueryContext(ctx, `SELECT path FROM path WHERE id IN
			(SELECT c.path FROM op JOIN change c ON c.op=op.seq`+w.sql()+`) ORDER BY path`, w.args...)
		if err != nil {
			return err
		}
		var paths []string
		for rows.Next() {
			var p []byte
			if err := rows.Scan(&p); err != nil {
				rows.Close()
				return err
			}
			paths = append(paths, string(p))
		}
		if err := errors.Join(rows.Err(), rows.Close()); err != nil {
			return err
		}
		for _, p := range paths {
			k, err := knownOf(ctx, h, who, p)
			if err != nil {
				return err
			}
			if k != nil {
				out = append(out, *k)
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("listing known paths: %w", err)
	}
	return out, nil
}
