package engine

import (
	"context"
	"errors"
	"log/slog"
	"sync"

	"moltisfs/checkpoint"
	"moltisfs/internal/guardfs"
)

// unrecovered are the interrupted operations that this process could not take back. Another process
// may. No call waits for them here.
type unrecovered struct {
	mu     sync.Mutex
	ids    map[checkpoint.ID]bool
	locked map[checkpoint.ID]bool // it was told that their paths are locked
}

// log warns of an operation, once. One whose paths are only locked does not count as unrecovered: a
// call on those paths waits, or is refused.
func (l *unrecovered) log(logger *slog.Logger, id checkpoint.ID, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, locked := errors.AsType[*guardfs.LockedError](err); locked {
		if l.locked == nil {
			l.locked = map[checkpoint.ID]bool{}
		}
		if !l.locked[id] {
			logger.Warn("an interrupted change has to wait: its paths are locked", "id", id, "err", err)
		}
		l.locked[id] = true
		return
	}
	if l.ids[id] {
		return
	}
	if l.ids == nil {
		l.ids = map[checkpoint.ID]bool{}
	}
	l.ids[id] = true
	if errors.Is(err, errOutOfReach) {
		logger.Warn("an interrupted change is left to a start that may reach all its paths",
			"id", id, "err", err)
		return
	}
	logger.Error("an interrupted change could not be taken back", "id", id, "err", err)
}

func (l *unrecovered) has(id checkpoint.ID) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ids[id]
}

// interruptedError: another change of these paths died half-way. It has been taken back, or is
// being.
type interruptedError struct{ err error }

func (e *interruptedError) Error() string { return e.err.Error() }
func (e *interruptedError) Unwrap() error { return e.err }

// interrupted finds another operation on the paths of a plan, or on what it looked at, whose
// outcome is unknown. We hold the locks of these paths, so mostly its process is dead. Else
// somebody is taking it back and waits for us, or it was made and is about to say so.
func (e *Engine) interrupted(ctx context.Context, p *Plan, looked []string) error {
	if !e.temps.AnyDead() {
		return nil
	}
	open, err := e.openOps(ctx)
	if err != nil {
		return notSaved(err)
	}
	ours := map[string]bool{}
	for _, p := range append(p.Paths(), looked...) {
		ours[p] = true
	}
	touches := func(op *checkpoint.Checkpoint, c *checkpoint.Recorded) bool {
		moves := c.Role == checkpoint.RoleParent && op.Kind == checkpoint.KindMove
		if c.Role == checkpoint.RoleParent && !moves {
			return false
		}
		if ours[c.Path] {
			return true
		}
		for i := range p.Steps {
			if s := &p.Steps[i]; s.Action == Rename &&
				(below(c.Path, s.Path) || s.To != "" && below(c.Path, s.To)) {
				return true
			}
		}
		// Anything new in such a directory keeps it from being taken back.
		if c.Role == roleTree || becameDir(c) || gaveWay(c) || moves {
			for p := range ours {
				if below(p, c.Path) {
					return true
				}
			}
		}
		return false
	}
	for _, o := range open {
		// One that was made has left no more than temporary names.
		if o.row.Made || e.unrecovered.has(o.row.ID) {
			continue
		}
		op, err := o.db.Get(ctx, o.row.ID, checkpoint.Scope{AllSessions: true})
		if errors.Is(err, checkpoint.ErrNotFound) {
			continue
		}
		if err != nil {
			return notSaved(err)
		}
		for i := range op.Changes {
			if touches(op, &op.Changes[i]) {
				return &interruptedError{&guardfs.ConflictError{Path: p.first(), Why: guardfs.BeingTakenBack}}
			}
		}
	}
	return nil
}
