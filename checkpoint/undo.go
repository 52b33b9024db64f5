package checkpoint

import "context"

// A walk finds what an undo is to take back: the newest operation of a session that is not undone
// and within reach. With redo it finds the newest undo that no later change has cut off.
//
// An undo is an operation with UndoOf; a redo is the undo of an undo. An operation is cancelled
// when an operation undoes it that is not cancelled itself. The walk goes from the newest down:
// what could cancel an operation has been seen before the operation comes up.
type walk struct {
	who   Scope
	reach func(path string) bool // nil: everything
	redo  bool
}

func (w walk) plan(ctx context.Context, h *history) (*Plan, error) {
	if w.who.AllSessions {
		return nil, &BadOpError{"", "undo and redo belong to one session"}
	}
	passed := map[int64]bool{} // operations out of reach
	for {
		undos, found, err := w.down(ctx, h, passed)
		if err != nil {
			return nil, err
		}
		if found != 0 { // for redo: what cuts off the undos before it
			within, err := w.reaches(ctx, h, found)
			if err != nil {
				return nil, err
			}
			if !within {
				passed[found] = true
				continue
			}
		}
		if w.redo {
			if found, err = w.newestUndo(ctx, h, undos); err != nil {
				return nil, err
			}
		}
		if found == 0 {
			return nil, ErrNothing
		}
		e, err := h.entry(ctx, found)
		if err != nil {
			return nil, err
		}
		p := &Plan{Mode: ModeState, UndoOf: idOf(found)}
		return p, p.fill(ctx, h, w.who, []entry{e}, nil)
	}
}

// down goes to the newest ordinary change that is not cancelled, 0 where there is none. undos are
// the operations above it that undo another and are not cancelled themselves, newest first.
func (w walk) down(ctx context.Context, h *history, passed map[int64]bool) (undos []entry,
	found int64, err error) {
	cancelled := map[int64]bool{}
	err = h.newest(ctx, w.who, func(e entry) bool {
		switch {
		case !e.changes(), cancelled[e.seq], passed[e.seq]:
		case e.undoOf != 0:
			cancelled[e.undoOf] = true
			undos = append(undos, e)
		default:
			found = e.seq
		}
		return found == 0
	})
	return undos, found, err
}

// newestUndo is the newest of those operations that is within reach and no redo: what it undoes is
// no undo itself.
func (w walk) newestUndo(ctx context.Context, h *history, undos []entry) (int64, error) {
	for _, e := range undos {
		of, err := h.entry(ctx, e.undoOf)
		if err == ErrNotFound {
			continue
		}
		if err != nil {
			return 0, err
		}
		within := false
		if of.undoOf == 0 {
			if within, err = w.reaches(ctx, h, e.seq); err != nil {
				return 0, err
			}
		}
		if within {
			return e.seq, nil
		}
	}
	return 0, nil
}

// reaches says whether some path of an operation is within reach. What changed nothing is.
func (w walk) reaches(ctx context.Context, h *history, seq int64) (bool, error) {
	if w.reach == nil {
		return true, nil
	}
	e, err := h.entry(ctx, seq)
	if err != nil {
		return false, err
	}
	none := true
	for _, c := range e.c.Changes {
		if c.Role == RoleParent {
			continue
		}
		if w.reach(c.Path) {
			return true, nil
		}
		none = false
	}
	return none, nil
}
