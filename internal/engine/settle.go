package engine

import (
	"context"
	"errors"
	"slices"
	"time"

	"moltisfs/checkpoint"
	"moltisfs/internal/guardfs"
)

// untold is logged where it can't be looked at all.
const untold = "of a change that was cut off it could not be told whether it was made"

// settleCut looks whether the changes took place at all that processes had under way when they were killed: between the checkpoint and the change, or after it. One
// that did not must not be planned with. All other changes were made, or it is on record that they were not, whatever is at their paths by now.
func (e *Engine) settleCut(ctx context.Context, db *checkpoint.DB, until time.Time) error {
	rows, err := db.Open(ctx)
	if err != nil {
		return err
	}
	return db.CutOff(func(id checkpoint.ID) (over bool) {
		if slices.ContainsFunc(rows, func(r checkpoint.OpenOp) bool { return r.ID == id }) {
			return false // it has its own way
		}
		err := e.settleIfNever(ctx, db, id, until)
		denied := errors.Is(err, errOutOfReach)
		e.left.reach(id, denied)
		if err == nil || errors.Is(err, checkpoint.ErrNotFound) {
			return true
		}
		if _, locked := errors.AsType[*guardfs.LockedError](err); locked {
			e.left.log(e.logger, id, err)
		} else if !denied {
			e.logger.Error(untold, "id", id, "err", err)
		}
		return false
	})
}

// unsettled is a *cutOffError when the plan takes back a change of which nobody could tell yet whether it was
// made, because others hold the locks of its paths, or are just looking.
func (e *Engine) unsettled(plan *checkpoint.Plan) error {
	for _, id := range checkpoint.CutOffIDs(e.points.dir) {
		if slices.Contains(plan.Undoes, id) && !e.left.outOfReach(id) {
			return &cutOffError{Refuse(Unsettled, "", id)}
		}
	}
	return nil
}

// settleIfNever settles an operation of which nothing can be seen as aborted. Where a later change stands on it, what is there says nothing: it may have put back what
// the operation changed. To presume such a one made does no harm.
func (e *Engine) settleIfNever(ctx context.Context, db *checkpoint.DB, id checkpoint.ID, until time.Time) error {
	op, err := db.Get(ctx, id, checkpoint.Scope{AllSessions: true})
	if err != nil {
		return err
	}
	if err := e.reaches(op); err != nil {
		return err
	}
	unlock, err := e.lockAll(ctx, op, until)
	if err != nil {
		return err
	}
	defer unlock()
	if op, err = db.Get(ctx, id, checkpoint.Scope{AllSessions: true}); err != nil || op.Outcome != checkpoint.Presumed {
		return err
	}
	if wentOn, err := e.wentOn(ctx, db, op); err != nil || wentOn {
		return err
	}
	seen := false
	for _, c := range op.Changes {
		if c.Role == checkpoint.RoleParent {
			continue
		}
		if c.Role == roleBuffer { // what is on the disk tells nothing
			return nil
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
