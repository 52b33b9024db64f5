package checkpoint

import (
	"context"
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
//
// An undo is an operation with UndoOf; a redo is the undo of an undo. An operation is cancelled
// when an operation undoes it that is not cancelled itself. The walk goes from the newest down:
// an operation that could cancel another has been seen before that one comes up.
func (d *DB) undo(ctx context.Context, who Scope, redo bool) (p *Plan, err error) {
	if who.AllSessions {
		return nil, &BadOpError{"", "undo and redo belong to one session"}
	}
	err = d.planning(ctx, func(h *history) error {
		seen := &undone{cancelled: map[int64]bool{}}
		var found *entry // the newest ordinary change that is not cancelled
		for below := int64(afterAll); below > 0; {
			from := below
			below = 0
			err := h.newest(ctx, who, from, func(e entry) bool {
				switch {
				case e.c.Outcome == Aborted, seen.has(e):
				case !redo && seen.mayPass(e): // a redo is to see all undos
					below = e.top + 1
				case !e.changes():
				case e.undoOf != 0:
					seen.note(e)
				default:
					found = &e
				}
				return found == nil && below == 0
			})
			if err != nil {
				return err
			}
		}
		var ops []entry
		var lost *Lost
		p = &Plan{Mode: ModeState}
		if redo {
			ops, p.More, err = h.newestUndo(ctx, seen.undos)
		} else if lost, err = h.lost(ctx, who); err == nil && found != nil {
			ops, err = h.together(ctx, who, found, seen)
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

// undone has the undos and redos that a walk from the newest down has seen so far.
type undone struct {
	cancelled map[int64]bool
	undos     []entry // that are not cancelled themselves, newest first
}

func (u *undone) has(e entry) bool {
	return u.cancelled[e.seq] || e.run != 0 && e.undoOf == 0 && slices.ContainsFunc(u.undos, e.inRunOf)
}

// inRunOf says that the undo o took back the part of a run that e is in.
func (e entry) inRunOf(o entry) bool {
	return o.sameRun(e) && o.restoreOf <= e.seq && e.seq <= o.undoOf
}

// mayPass says that nothing between e and e.top matters: e.top is known, and no undo since e took one in between back.
func (u *undone) mayPass(e entry) bool {
	return e.top != unknownTop && !slices.ContainsFunc(u.undos, func(o entry) bool { return e.top < o.undoOf && o.undoOf < e.seq })
}

func (u *undone) note(e entry) {
	u.cancelled[e.undoOf] = true
	u.undos = append(u.undos, e)
}

// by is the undo of e that holds, "" where none does.
func (u *undone) by(e entry) ID {
	for _, o := range u.undos {
		if o.undoOf == e.seq || e.run != 0 && e.undoOf == 0 && e.inRunOf(o) {
			return o.c.ID
		}
	}
	return ""
}

// undone has the undos of es, and of the runs that these are in, with what undid those in turn.
func (h *history) undone(ctx context.Context, es []entry) (*undone, error) {
	var of, runs, all []int64
	for _, e := range es {
		if of = append(of, e.seq); e.run != 0 {
			runs = append(runs, e.run, -e.run)
		}
	}
	for found := true; found; {
		terms := "op.undo_of" + in(of)
		if runs != nil {
			terms += " OR op.run" + in(distinct(runs))
		}
		seqs, err := column[int64](ctx, h.q, "SELECT op.seq FROM op WHERE ("+terms+") AND op.undo_of IS NOT NULL AND op.outcome <> ?", outcomeCode(Aborted))
		if err != nil {
			return nil, err
		}
		found, of, runs, all = len(seqs) > 0, seqs, nil, append(all, seqs...)
	}
	u := &undone{cancelled: map[int64]bool{}}
	if len(all) == 0 {
		return u, nil
	}
	undos, err := h.entries(ctx, "op"+opJoins+" WHERE op.seq"+in(all)+" ORDER BY op.seq DESC")
	for _, e := range undos {
		if !u.has(e) {
			u.note(e)
		}
	}
	return u, err
}

// sameRun says that e and o have a run in common, whatever retention took of it.
func (e entry) sameRun(o entry) bool { return e.run != 0 && (e.run == o.run || e.run == -o.run) }

// together is found with the other changes of its run, oldest first. If the session did something else in between
// at, above or below a path of the run, it ends there: later undos take the rest back.
func (h *history) together(ctx context.Context, who Scope, found *entry, seen *undone) ([]entry, error) {
	if found.run == 0 {
		return []entry{*found}, h.fillChanges(ctx, []entry{*found})
	}
	const since = "op.seq >= (SELECT min(seq) FROM op WHERE run IN (?,?) AND undo_of IS NULL) AND op.seq <= ?"
	es, err := h.those(ctx, who, since, found.run, -found.run, found.seq)
	if err != nil {
		return nil, err
	}
	var run []entry
	others := footprint{}
	for _, e := range slices.Backward(es) {
		switch {
		case !e.changes():
			continue
		case e.undoOf == 0 && e.sameRun(*found) && !seen.has(e):
			if slices.ContainsFunc(e.c.Changes, func(c Recorded) bool { return others.touches(c.Path) }) {
				slices.Reverse(run)
				return run, nil
			}
			run = append(run, e)
			continue
		case e.undoOf != 0 && !seen.has(e):
			seen.note(e)
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

// newestUndo is the newest of undos that is no redo: it undoes no undo. It is nil where there
// is none, and where retention took what would tell. more is the one before it if that undid the same run right
// before: the run was taken back piece by piece.
func (h *history) newestUndo(ctx context.Context, undos []entry) (newest []entry, more ID, err error) {
	var run int64
	for _, e := range undos {
		of, err := h.entry(ctx, "seq", e.undoOf)
		switch {
		case err == ErrNotFound:
			return newest, "", nil
		case err != nil:
			return nil, "", err
		case of.undoOf != 0:
			continue
		case newest != nil && run != 0 && of.run == run:
			return newest, e.c.ID, nil
		case newest != nil:
			return newest, "", nil
		}
		newest, run = []entry{e}, of.run
		if err := h.fillChanges(ctx, newest); err != nil {
			return nil, "", err
		}
	}
	return newest, "", nil
}
