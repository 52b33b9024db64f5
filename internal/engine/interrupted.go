package engine

import (
	"context"
	"errors"
	"log/slog"
	"sync"

	"moltisfs/checkpoint"
	"moltisfs/internal/guardfs"
)

// unrecovered are the operations that were cut off and that this process could not take back: another may, and until then no call waits for it.
type unrecovered struct {
	mu     sync.Mutex
	ids    map[checkpoint.ID]bool
	locked map[checkpoint.ID]bool // it was told that their paths are locked
}

// log tells of one, once. What is only locked is not left: whoever wants those paths waits, or is refused.
func (l *unrecovered) log(logger *slog.Logger, id checkpoint.ID, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, locked := errors.AsType[*guardfs.LockedError](err); locked {
		if l.locked == nil {
			l.locked = map[checkpoint.ID]bool{}
		}
		if !l.locked[id] {
			logger.Warn("what became of a change that was cut off can't be settled as long as its paths are locked", "id", id, "err", err)
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
		logger.Warn("a change that was cut off half-way is left, with its checkpoint, to a start whose rules let it reach all its paths", "id", id, "err", err)
		return
	}
	logger.Error("a change that was cut off half-way could not be taken back", "id", id, "err", err)
}

func (l *unrecovered) has(id checkpoint.ID) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ids[id]
}

// interruptedError: paths of a change were left half-way by another one. It has been taken back, or is being.
type interruptedError struct{ err error }

func (e *interruptedError) Error() string { return e.err.Error() }
func (e *interruptedError) Unwrap() error { return e.err }

// interrupted finds, under the locks of a change, another one of the paths that it changes or has looked
// at, that is not over. Mostly that is nobody's any more: one that lives has its locks. Else it is
// being taken back, by somebody who waits for us, or made and about to be told.
func (e *Engine) interrupted(ctx context.Context, p *Plan, looked []string) error {
	failed := func(err error) error {
		if e.cfg.Checkpoint.OnError == "allow" { // what needs its checkpoint all the same is refused when that is saved
			e.logger.Warn("it could not be looked for changes that were cut off", "err", err)
			return nil
		}
		return notSaved(err)
	}
	if !e.temps.AnyDead() {
		return nil
	}
	open, err := e.openOps(ctx)
	if err != nil {
		return failed(err)
	}
	ours := map[string]bool{}
	for _, p := range append(p.Paths(), looked...) {
		ours[p] = true
	}
	touches := func(c *checkpoint.Recorded) bool {
		if c.Role == checkpoint.RoleParent {
			return false
		}
		if ours[c.Path] {
			return true
		}
		for i := range p.Steps {
			if s := &p.Steps[i]; s.Action == Rename && (below(c.Path, s.Path) || s.To != "" && below(c.Path, s.To)) {
				return true
			}
		}
		if c.Role == roleTree || becameDir(c) || gaveWay(c) { // what comes into its directory stands in the way of taking it back
			for p := range ours {
				if below(p, c.Path) {
					return true
				}
			}
		}
		return false
	}
	for _, o := range open {
		if o.row.Made || e.unrecovered.has(o.row.ID) { // of one that was made only temporary names are left
			continue
		}
		op, err := o.db.Get(ctx, o.row.ID, checkpoint.Scope{AllSessions: true})
		if errors.Is(err, checkpoint.ErrNotFound) {
			continue
		}
		if err != nil {
			return failed(err)
		}
		for i := range op.Changes {
			if touches(&op.Changes[i]) {
				return &interruptedError{&guardfs.ConflictError{Path: p.first(), Why: guardfs.BeingTakenBack}}
			}
		}
	}
	return nil
}
