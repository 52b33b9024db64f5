package engine

import (
	"context"
	"errors"

	"moltisfs/checkpoint"
)

// settleCut looks whether the changes took place at all that processes had under way when they were killed: between the checkpoint and the change, or after it. One
// that did not must not be planned with. All other changes were made, or it is on record that they were not, whatever is at their paths by now.
func (e *Engine) settleCut(ctx context.Context, db *checkpoint.DB) error {
	return db.CutOff(func(id checkpoint.ID) error {
		err := e.settleIfNever(ctx, db, id)
		if errors.Is(err, checkpoint.ErrNotFound) {
			return nil
		}
		return err
	})
}

// settleIfNever settles an operation of which nothing can be seen as aborted.
func (e *Engine) settleIfNever(ctx context.Context, db *checkpoint.DB, id checkpoint.ID) error {
	op, err := db.Get(ctx, id, checkpoint.Scope{AllSessions: true})
	if err != nil {
		return err
	}
	if err := e.reaches(op); err != nil {
		return err
	}
	unlock, err := e.lockAll(ctx, op)
	if err != nil {
		return err
	}
	defer unlock()
	if op, err = db.Get(ctx, id, checkpoint.Scope{AllSessions: true}); err != nil || op.Outcome != checkpoint.Presumed {
		return err
	}
	seen := false
	for _, c := range op.Changes {
		if c.Role == checkpoint.RoleParent {
			continue
		}
		seen = true
		now, err := e.stateOf(c.Path)
		if err != nil || !now.Same(c.Before) || now.Same(c.After) {
			return nil // it took place, or it can't be told: presumed
		}
	}
	if !seen {
		return nil // directories alone tell nothing
	}
	return db.Settle(ctx, id, checkpoint.Aborted)
}
