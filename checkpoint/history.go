package checkpoint

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/hex"
	"fmt"
	"io/fs"
	"slices"
	"time"
)

// history answers lists and the planner from one snapshot of the catalog.
type history struct {
	q querier
	// Of planning only: operations that may be half made, and by directory the moves of the trees that it is in.
	open  map[int64]bool
	trees map[string][]treeMove
}

const (
	opQuery = `SELECT op.seq, op.id, op.ts, s.principal, s.name, coalesce(t.name, ''), op.tool, op.kind,
		op.outcome, op.pin, coalesce(op.label, ''), coalesce(op.undo_of, 0), coalesce(op.restore_of, 0),
		coalesce(op.run, 0), op.undone_by IS NOT NULL, coalesce(u.id, ''), coalesce(r.id, ''), coalesce(n.id, '') FROM `
	opJoins = ` JOIN session s ON s.id=op.session LEFT JOIN turn t ON t.id=op.turn
		LEFT JOIN op u ON u.seq=op.undo_of LEFT JOIN op r ON r.seq=op.restore_of LEFT JOIN op n ON n.seq=op.undone_by`
)

// entries reads operations without their changes; from is the query behind FROM.
func (h *history) entries(ctx context.Context, from string, args ...any) (out []entry, err error) {
	err = each(ctx, h.q, opQuery+from, args, func(row scanner) error {
		var e entry
		var ts, outcome int64
		c := &Checkpoint{}
		err := row.Scan(&e.seq, &c.ID, &ts, &c.Principal, &c.Session, &c.Turn, &c.Tool, &c.Kind, &outcome, &c.Pinned,
			&c.Label, &e.undoOf, &e.restoreOf, &e.run, &e.undone, &c.UndoOf, &c.RestoreOf, &c.UndoneBy)
		c.Time, c.Outcome, e.c = time.Unix(0, ts), byCode(outcomes, outcome), c
		out = append(out, e)
		return err
	})
	return out, err
}

// sessions are the rows of table session that s sees.
func (s Scope) sessions() (w where) {
	w.when(!s.AllSessions || s.Principal != "", "principal=?", s.Principal)
	w.when(!s.AllSessions || s.Session != "", "name=?", s.Session)
	return w
}

// scope is the condition that only the checkpoints of who are wanted; column has the session. "op.session" goes through all
// of a session. "+op.session" leaves the choice of the index to the other terms, which hold for few.
func (h *history) scope(ctx context.Context, who Scope, column string) (w where, err error) {
	ses := who.sessions()
	switch {
	case !who.AllSessions: // by its number, which is quicker; 0 is nobody's
		var id int64
		id, err = one[int64](ctx, h.q, "SELECT id FROM session"+ses.sql(), ses.args...)
		w.and(column+" = ?", id)
	case len(ses.terms) > 0:
		w.and(column+" IN (SELECT id FROM session"+ses.sql()+")", ses.args...)
	}
	return w, err
}

// entry is the one where column, seq or id, is key.
func (h *history) entry(ctx context.Context, column string, key any) (entry, error) {
	es, err := h.entries(ctx, "op"+opJoins+" WHERE op."+column+"=?", key)
	switch {
	case err != nil:
		return entry{}, fmt.Errorf("reading checkpoint: %w", err)
	case len(es) == 0:
		return entry{}, ErrNotFound
	}
	return es[0], h.fillChanges(ctx, es)
}

// those lists the checkpoints of who for which term holds, oldest first.
func (h *history) those(ctx context.Context, who Scope, term string, args ...any) ([]entry, error) {
	w, err := h.scope(ctx, who, "op.session")
	if err != nil {
		return nil, err
	}
	w.and(term, args...)
	es, err := h.entries(ctx, "op"+opJoins+w.sql()+" ORDER BY op.seq", w.args...)
	if err != nil {
		return nil, err
	}
	return es, h.fillChanges(ctx, es)
}

// newest lists the n newest checkpoints of who for which term holds, the newest first.
func (h *history) newest(ctx context.Context, who Scope, n int, term string, args ...any) ([]entry, error) {
	w, err := h.scope(ctx, who, "op.session")
	if err != nil {
		return nil, err
	}
	w.and(term, args...)
	es, err := h.entries(ctx, "op"+opJoins+w.sql()+" ORDER BY op.seq DESC LIMIT ?", append(w.args, n)...)
	if err != nil {
		return nil, err
	}
	return es, h.fillChanges(ctx, es)
}

// head finds the newest checkpoint of who below until, not aborted, that has path; nil when there is none.
func (h *history) head(ctx context.Context, who Scope, path string, until int64) (*entry, error) {
	// A read says what somebody saw, not what became of the path. It counts where there is nothing
	// else.
	for _, reads := range []string{"<>", "="} {
		w, err := h.scope(ctx, who, "+op.session")
		if err != nil {
			return nil, err
		}
		w.and(thisPath, []byte(path))
		w.and("cp.op<? AND op.outcome<>? AND op.kind"+reads+"?", until, outcomeCode(Aborted), KindRead)
		es, err := h.entries(ctx, opsOfPath+opJoins+w.sql()+" ORDER BY cp.op DESC LIMIT 1", w.args...)
		if err != nil {
			return nil, err
		}
		if len(es) > 0 {
			return &es[0], h.fillChange(ctx, es[0], path)
		}
	}
	return nil, nil
}

// lineage lists what was done to path from seq on, oldest first. Aborted operations and
// reads are left out. Changes of each entry has this path only.
func (h *history) lineage(ctx context.Context, path string, seq int64) ([]entry, error) {
	const ops = opsOfPath + opJoins + " WHERE " + thisPath +
		" AND cp.op>=? AND op.outcome<>? AND op.kind<>? ORDER BY cp.op"
	es, err := h.entries(ctx, ops, []byte(path), seq, outcomeCode(Aborted), KindRead)
	if err != nil || len(es) == 0 {
		return nil, err
	}
	by := make(map[int64]*Checkpoint, len(es))
	for _, e := range es {
		by[e.seq] = e.c
	}
	return es, h.eachChange(ctx, changesOfPath+" AND c.op>=?", into(by), []byte(path), seq)
}

// A treeMove is an operation that moved a tree: it went, or came back.
type treeMove struct {
	seq  int64
	went bool
	of   int64 // of one that came back: the operation that took it away, as far as it is known
}

// moves lists the moves of the trees that path is in, the oldest first.
func (h *history) moves(ctx context.Context, path string) ([]treeMove, error) {
	dir := above(path)
	if out, ok := h.trees[dir]; ok || dir == "" {
		return out, nil
	}
	higher, err := h.moves(ctx, dir)
	if err != nil {
		return nil, err
	}
	out := slices.Clone(higher)
	const q = `SELECT c.op, c.akind=?, coalesce(c.ident, '') FROM change c JOIN op ON op.seq=c.op
		WHERE c.path=(SELECT id FROM path WHERE path=?) AND c.role=? AND op.outcome<>? ORDER BY c.op`
	args := []any{kindCode(Absent), []byte(dir), RoleTree, outcomeCode(Aborted)}
	away := map[string]int64{} // by the object: the operation that took it away
	err = each(ctx, h.q, q, args, func(row scanner) error {
		var t treeMove
		var object string
		if err := row.Scan(&t.seq, &t.went, &object); err != nil {
			return err
		}
		if t.went {
			away[object] = t.seq
		} else {
			t.of = away[object]
		}
		out = append(out, t)
		return nil
	})
	slices.SortFunc(out, func(a, b treeMove) int { return cmp.Compare(a.seq, b.seq) })
	h.trees[dir] = out
	return out, err
}

// headAt finds the newest checkpoint that is about the object at path, given the newest ones of the path, the oldest
// first, and the moves of the trees that it is in: a tree that came back brought what was there when it went. gone says
// that a tree took the object away since.
//
// For example /d/f is edited, /d is deleted, another /d/f is made, and both deletions are undone: the head of /d/f is
// the edit.
func (h *history) headAt(ctx context.Context, path string, line []entry, moves []treeMove) (hd *entry, gone bool, err error) {
	if len(line) > 0 {
		hd = &line[len(line)-1]
	} else if hd, err = h.head(ctx, anybody, path, afterAll); err != nil {
		return nil, false, err
	}
	for n := len(moves); n > 0 && (hd == nil || hd.seq < moves[n-1].seq); {
		move := moves[n-1]
		if move.went {
			return hd, true, nil
		}
		until := cmp.Or(move.of, move.seq)
		if hd, err = h.head(ctx, anybody, path, until); err != nil {
			return nil, false, err
		}
		n, _ = slices.BinarySearchFunc(moves, until, func(m treeMove, seq int64) int { return cmp.Compare(m.seq, seq) })
	}
	return hd, false, nil
}

// The operations of one path.
const (
	joinOp    = " JOIN op ON op.seq=cp.op"
	opsOfPath = "change cp" + joinOp
	thisPath  = "cp.path=(SELECT id FROM path WHERE path=?)"
)

const (
	changeQuery   = changeColumns + " FROM change c" + changeJoins
	changesOfPath = changeColumns + " FROM change c" + changeJoins +
		" WHERE c.path=(SELECT id FROM path WHERE path=?)"
)

// Few columns, because each costs more than what it holds: the kinds and what is stored are bits of
// one.
const changeColumns = `SELECT c.op, p.path, c.role, coalesce(c.skipped, ''), coalesce(c.askipped, ''),
	c.bkind + 256*c.akind + CASE WHEN b.codec IS NULL THEN 0 ELSE 65536 END
		+ CASE WHEN a.codec IS NULL THEN 0 ELSE 131072 END,
	coalesce(c.bmode, 0), coalesce(c.buid, 0), coalesce(c.bgid, 0), c.bmtime, b.hash,
	coalesce(c.bsize, b.size, 0), coalesce(c.btarget, ''), c.bxattrs,
	coalesce(c.amode, c.bmode, 0), coalesce(c.auid, c.buid, 0), coalesce(c.agid, c.bgid, 0), c.amtime, a.hash,
	coalesce(c.asize, a.size, 0), coalesce(c.atarget, ''), coalesce(c.axattrs, c.bxattrs),
	coalesce(c.moved_to, ''), coalesce(c.moved_from, ''), coalesce(c.ident, '')`

const changeJoins = `
	JOIN path p ON p.id=c.path
	LEFT JOIN content b ON b.id=c.bobj LEFT JOIN content a ON a.id=c.aobj`

// fillChanges reads the changes of the entries es.
func (h *history) fillChanges(ctx context.Context, es []entry) error {
	const most = 32
	const q = changeQuery + " WHERE c.op IN(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?) ORDER BY c.op, c.n"
	for some := range slices.Chunk(es, most) {
		by := make(map[int64]*Checkpoint, most)
		seqs := make([]any, most)
		for i := range seqs { // one statement for any number of entries, which is compiled once
			e := some[min(i, len(some)-1)]
			by[e.seq], seqs[i] = e.c, e.seq
		}
		if err := h.eachChange(ctx, q, into(by), seqs...); err != nil {
			return err
		}
	}
	return nil
}

// fillChange reads only the change of one path.
func (h *history) fillChange(ctx context.Context, e entry, path string) error {
	// As a range, so that it goes by the path: an operation may have as many changes as a tree has files.
	return h.eachChange(ctx, changesOfPath+" AND c.op>=? AND c.op<=?",
		into(map[int64]*Checkpoint{e.seq: e.c}), []byte(path), e.seq, e.seq)
}

// into adds changes to the checkpoints of their numbers.
func into(by map[int64]*Checkpoint) func(seq int64, c Recorded) {
	return func(seq int64, c Recorded) {
		if to := by[seq]; to != nil {
			to.Changes = append(to.Changes, c)
		}
	}
}

// eachChange calls fn with the changes that q finds, a query of changeColumns, and the numbers of their checkpoints.
func (h *history) eachChange(ctx context.Context, q string, fn func(seq int64, c Recorded), args ...any) error {
	var r struct { // one for all rows
		op, bits int64
		Recorded
		b, a side
	}
	c, b, a := &r.Recorded, &r.b, &r.a
	columns := []any{&r.op, &c.Path, &c.Role, &c.Skipped, &c.AfterSkipped, &r.bits,
		&b.mode, &b.UID, &b.GID, &b.mtime, &b.hash, &b.Size, &b.Target, &b.xattrs,
		&a.mode, &a.UID, &a.GID, &a.mtime, &a.hash, &a.Size, &a.Target, &a.xattrs, &c.To, &c.From, &c.Identity}
	err := each(ctx, h.q, q, args, func(row scanner) (err error) {
		if err = row.Scan(columns...); err == nil {
			c.Before, err = b.state(byCode(kinds, r.bits&0xff))
		}
		if err == nil {
			c.After, err = a.state(byCode(kinds, r.bits>>8&0xff))
		}
		c.Stored, c.AfterStored = r.bits>>16&1 != 0, r.bits>>17&1 != 0
		if c.Role == RoleAppended { // the tail is stored, no content of the file
			c.Stored, c.AfterStored = false, false
			for _, s := range []*State{&c.Before, &c.After} {
				s.Tail, s.Hash = s.Hash, ""
			}
		}
		if err == nil {
			fn(r.op, *c)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("reading checkpoint: %w", err)
	}
	return nil
}

// side is one of the two states of a change, as columns have it.
type side struct {
	State
	mode         int64
	mtime        sql.NullInt64
	hash, xattrs sql.RawBytes // until the next row
}

func (r *side) state(kind Kind) (s State, err error) {
	if kind == Absent {
		return State{Kind: Absent}, nil
	}
	s = r.State
	s.Kind, s.Mode, s.Hash = kind, fs.FileMode(r.mode), hex.EncodeToString(r.hash)
	if r.mtime.Valid {
		s.ModTime = time.Unix(0, r.mtime.Int64)
	}
	s.Xattrs, err = decodeXattrs(r.xattrs)
	return s, err
}

// planning is view for those who have to know which operations may be half made.
func (d *DB) planning(ctx context.Context, fn func(*history) error) error {
	return d.view(ctx, func(h *history) error {
		open, err := column[int64](ctx, h.q, "SELECT op FROM open_op WHERE made=0")
		if err != nil {
			return fmt.Errorf("looking what is open: %w", err)
		}
		h.open, h.trees = map[int64]bool{}, map[string][]treeMove{}
		for _, seq := range open {
			h.open[seq] = true
		}
		return fn(h)
	})
}
