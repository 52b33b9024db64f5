package checkpoint

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"strings"
)

// Undo plans to take back the newest change of the session that is not undone, with all that its
// run did (Op.Run) and that is not undone. The Op that carries the plan out must have UndoOf and
// RestoreOf set to those of the Plan. Plan.Lost says that retention took some of the run, or what is
// newer: the rest would not restore the state before it. Where there is nothing, the error
// is a *NothingError.
func (d *DB) Undo(ctx context.Context, who Scope) (*Plan, error) { return d.undo(ctx, who, false) }

// Redo plans to take back the newest undo, if nothing was changed after it.
func (d *DB) Redo(ctx context.Context, who Scope) (*Plan, error) { return d.undo(ctx, who, true) }

// undo plans an undo or redo of who. It never passes by an operation for another that is older.
func (d *DB) undo(ctx context.Context, who Scope, redo bool) (p *Plan, err error) {
	if who.AllSessions {
		return nil, &BadOpError{"", "undo and redo belong to one session"}
	}
	err = d.planning(ctx, func(h *history) error {
		const live = "op.undo_of IS NULL AND op.undone_by IS NULL AND op.outcome <> ? AND op.kind NOT IN (?,?,?)"
		ops, err := h.newest(ctx, who, 1, live, outcomeCode(Aborted), KindExternal, KindRead, KindManual)
		if err != nil {
			return err
		}
		var lost *Lost
		p = &Plan{Mode: ModeState}
		if redo {
			ops, p.More, err = h.newestUndo(ctx, who, ops)
		} else if lost, err = h.lost(ctx, who); err == nil && len(ops) > 0 && ops[0].run != 0 {
			ops, err = h.together(ctx, who, &ops[0])
		}
		if err != nil {
			return err
		}
		if len(ops) == 0 {
			return &NothingError{lost}
		}
		newest := ops[len(ops)-1]
		if lost != nil && (lost.seq > newest.seq || slices.ContainsFunc(ops, func(e entry) bool { return e.run < 0 })) {
			p.Lost = lost
		}
		p.UndoOf = newest.c.ID
		if ops = p.cut(ops, nil, false); len(ops) > 1 {
			p.RestoreOf = ops[0].c.ID
		}
		return p.fill(ctx, h, who, ops, nil)
	})
	if err != nil {
		return nil, err
	}
	return p, nil
}

// undo notes what the operation seq, if it is an undo, takes back, or does not any more: in undone_by of each operation is the
// newest undo of it that holds. One holds unless it was aborted or is undone itself. So a redo is the undo of an undo, and
// what that took back is done again.
func (tx *tx) undo(ctx context.Context, seq int64) error {
	var of, from, run, session int64
	err := tx.QueryRowContext(ctx, `SELECT undo_of, coalesce(restore_of, undo_of), coalesce(run, 0), session FROM op
		WHERE seq=? AND undo_of IS NOT NULL`, seq).Scan(&of, &from, &run, &session)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	if err == nil {
		err = tx.exec(ctx, `UPDATE op SET undone_by=(SELECT max(u.seq) FROM op u
				WHERE u.undo_of IS NOT NULL AND u.undone_by IS NULL AND u.outcome <> ? AND (u.undo_of=op.seq
					OR u.seq IN (SELECT seq FROM op r WHERE r.run IN (?,?) AND r.restore_of IS NOT NULL AND r.undo_of IS NOT NULL
						AND +r.undone_by IS NULL AND +r.session=?)
						AND op.undo_of IS NULL AND u.restore_of <= op.seq AND op.seq <= u.undo_of))
			WHERE seq=? OR seq >= ? AND seq <= ? AND run IN (?,?) AND undo_of IS NULL AND session=?`,
			outcomeCode(Aborted), run, -run, session, of, from, of, run, -run, session)
	}
	if err != nil {
		return err
	}
	return tx.undo(ctx, of)
}

// undone sets undone_by of every operation, where it is NULL in all. It goes from the newest undo down: what could take back an
// undo has been there before that comes, and the first that takes an operation back is the newest.
func (tx *tx) undone(ctx context.Context) error {
	undos, err := column[int64](ctx, tx, "SELECT seq FROM op WHERE undo_of IS NOT NULL ORDER BY seq DESC")
	for _, seq := range undos {
		if err == nil {
			err = tx.exec(ctx, `UPDATE op SET undone_by=u.seq FROM (SELECT seq, undo_of, coalesce(restore_of, undo_of) AS first, coalesce(run, 0) AS run, session
					FROM op WHERE seq=? AND undone_by IS NULL AND outcome <> ?) u
				WHERE op.undone_by IS NULL AND (op.seq=u.undo_of OR op.seq BETWEEN u.first AND u.undo_of
					AND op.undo_of IS NULL AND op.run IN (u.run,-u.run) AND op.session=u.session)`, seq, outcomeCode(Aborted))
		}
	}
	return err
}

// sameRun says that e and o have a run in common, whatever retention took of it.
func (e entry) sameRun(o entry) bool { return e.run != 0 && (e.run == o.run || e.run == -o.run) }

// together is found with the other changes of its run, oldest first. If the session did something else in between
// at, above or below a path of the run, it ends there: later undos take the rest back.
func (h *history) together(ctx context.Context, who Scope, found *entry) ([]entry, error) {
	const since = "op.seq >= (SELECT min(seq) FROM op WHERE run IN (?,?) AND undo_of IS NULL) AND op.seq <= ?"
	es, err := h.those(ctx, who, since, found.run, -found.run, found.seq)
	if err != nil {
		return nil, err
	}
	var run []entry
	others := footprint{}
	for _, e := range slices.Backward(es) {
		if !e.changes() {
			continue
		}
		if e.undoOf == 0 && e.sameRun(*found) && !e.undone {
			if slices.ContainsFunc(e.c.Changes, func(c Recorded) bool { return others.touches(c.Path) }) {
				break
			}
			run = append(run, e)
			continue
		}
		for _, c := range e.c.Changes {
			others.add(c.Path)
		}
	}
	slices.Reverse(run)
	return run, nil
}

// above is the directory of a path, "" of the last one.
func above(path string) string { return path[:max(strings.LastIndexAny(path, `/\`), 0)] }

// newestUndo is the newest undo of who that holds and is no redo, since live, the newest change that is not undone. It is nil
// where there is none, and where retention took what it undid, which would tell. more is the one before it if that undid the
// same run right before: the run was taken back piece by piece.
func (h *history) newestUndo(ctx context.Context, who Scope, live []entry) (newest []entry, more ID, err error) {
	var since int64
	if len(live) > 0 {
		since = live[0].seq
	}
	const undos = "op.undo_of IS NOT NULL AND op.undone_by IS NULL AND op.outcome <> ? AND op.seq > ? AND u.undo_of IS NULL"
	es, err := h.newest(ctx, who, 2, undos, outcomeCode(Aborted), since)
	if err != nil || len(es) == 0 || es[0].c.UndoOf == "" {
		return nil, "", err
	}
	if len(es) > 1 && es[0].sameRun(es[1]) {
		more = es[1].c.ID
	}
	return es[:1], more, nil
}
