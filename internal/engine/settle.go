package engine

import (
	"context"

	"moltisfs/checkpoint"
)

// settleNewest looks whether the newest changes of the session took place at all, if nobody ever said so: their processes may have died
// between the checkpoint and the change. One that did not must not be planned with.
func (e *Engine) settleNewest(ctx context.Context, db *checkpoint.DB, c *Call) error {
	f := checkpoint.Filter{Principal: c.Principal, Session: c.Session, NoReads: true, AsSaved: true, Limit: 4}
	for {
		page, err := db.List(ctx, f)
		if err != nil {
			return err
		}
		for i := range page.Checkpoints {
			op := &page.Checkpoints[i]
			if op.Outcome == checkpoint.Aborted { // there may be several, one before the other
				continue
			}
			if op.Outcome != checkpoint.Presumed || op.Kind == checkpoint.KindExternal || op.Kind == checkpoint.KindManual || len(op.Changes) == 0 {
				return nil
			}
			never, err := e.never(ctx, db, op.ID)
			if err != nil || !never {
				return err
			}
		}
		if f.Cursor = page.Next; f.Cursor == "" {
			return nil
		}
	}
}

// never settles an operation of which nothing can be seen as aborted.
func (e *Engine) never(ctx context.Context, db *checkpoint.DB, id checkpoint.ID) (bool, error) {
	op, err := db.Get(ctx, id, checkpoint.Scope{AllSessions: true})
	if err != nil {
		return false, err
	}
	unlock, err := e.lockAll(ctx, op) // whoever carries it out holds these
	if err != nil {
		return false, err
	}
	defer unlock()
	if op, err = db.Get(ctx, id, checkpoint.Scope{AllSessions: true}); err != nil || op.Outcome != checkpoint.Presumed {
		return false, err
	}
	seen := false
	for _, c := range op.Changes {
		if c.Role == checkpoint.RoleParent {
			continue
		}
		seen = true
		now, err := e.stateOf(c.Path)
		if err != nil || !now.Same(c.Before) || now.Same(c.After) {
			return false, nil // it took place, or it can't be told: presumed
		}
	}
	if !seen {
		return false, nil // directories alone tell nothing
	}
	return true, db.Settle(ctx, id, checkpoint.Aborted)
}
