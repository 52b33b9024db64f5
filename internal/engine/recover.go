package engine

import (
	"context"
	"errors"
	"fmt"

	"moltisfs/checkpoint"
	"moltisfs/internal/guardfs"
)

// recover takes back the changes of several paths that processes which are no more left half-way: all paths or none holds across
// a crash too. It runs before the first call, and before a restore. A path that is neither what the change made nor what it found is somebody
// else's and stays; so does one that today's policy denies. Both are logged, and the checkpoint keeps what they were.
func (e *Engine) recover(ctx context.Context) error {
	ids, err := checkpoint.Unfinished(e.points.dir)
	if err != nil {
		return err
	}
	cut := checkpoint.AnyCutOff(e.points.dir)
	if len(ids) == 0 && !cut {
		return nil
	}
	db, err := e.points.open()
	if err != nil {
		return err
	}
	for _, id := range ids {
		intent, err := db.TakeOver(id)
		if err != nil {
			return err
		}
		if intent == nil {
			continue
		}
		outcome, err := e.takeBack(ctx, db, id)
		if err == nil {
			err = db.Settle(ctx, id, outcome)
		}
		if err != nil { // the next start tries again; calls on other paths need not wait for that
			e.logger.Error("a change that was cut off half-way could not be taken back", "id", id, "err", err)
			intent.Leave()
			continue
		}
		if err := intent.Done(); err != nil {
			return err
		}
	}
	if cut {
		if err := e.settleCut(ctx, db); err != nil { // the next start, or the next restore, tries again
			e.logger.Error("of a change that was cut off it could not be told whether it was made", "err", err)
		}
	}
	return nil
}

// takeBack looks at each path of the operation id: what is as the operation left it becomes what it was.
func (e *Engine) takeBack(ctx context.Context, db *checkpoint.DB, id checkpoint.ID) (checkpoint.Outcome, error) {
	op, err := db.Get(ctx, id, checkpoint.Scope{AllSessions: true})
	if errors.Is(err, checkpoint.ErrNotFound) {
		return checkpoint.Aborted, errors.New("its checkpoint is gone")
	}
	if err != nil {
		return "", err
	}
	unlock, err := e.lockAll(ctx, op)
	if err != nil {
		return "", err
	}
	defer unlock()
	made, err := e.allMade(op)
	made = made && err == nil
	stuck := e.recoverMoves(ctx, db, op, made)
	if made && len(stuck) > 0 { // the catalog does not know it yet
		return "", errors.Join(stuck...)
	}
	if made {
		for _, c := range op.Changes {
			if c.Role != roleTree && c.Before.Kind == checkpoint.Dir && c.After.Kind == checkpoint.Absent {
				e.removeEmpty(c.Path)
			}
		}
		return checkpoint.Committed, nil
	}
	for _, c := range op.Changes { // directories that were to go, from the top down
		if c.Role != roleTree && c.Before.Kind == checkpoint.Dir && c.After.Kind == checkpoint.Absent {
			stuck = append(stuck, e.makeDirs([]NewDir{{c.Path, c.Before.Mode}}, &Done{}))
		}
	}
	for i := len(op.Changes) - 1; i >= 0; i-- {
		c := &op.Changes[i]
		if c.Role == roleTree || c.Before.Kind == checkpoint.Dir || c.After.Kind == checkpoint.Dir {
			continue
		}
		if err := e.takeBackOne(ctx, db, id, c); err != nil {
			stuck = append(stuck, fmt.Errorf("%s: %w", c.Path, err))
		}
	}
	for i := len(op.Changes) - 1; i >= 0; i-- {
		if c := &op.Changes[i]; c.Role != roleTree && c.Before.Kind == checkpoint.Absent && c.After.Kind == checkpoint.Dir {
			e.removeEmpty(c.Path)
		}
	}
	if err := errors.Join(stuck...); err != nil {
		e.logger.Warn("of a change that was cut off half-way, not everything could be taken back; its checkpoint holds what was there", "id", id, "err", err)
		return checkpoint.Foreign, nil
	}
	e.logger.Info("a change that was cut off half-way was taken back", "id", id, "paths", len(op.Changes))
	return checkpoint.Aborted, nil
}

// errWentOn: a later change stands on this one.
var errWentOn = errors.New("it was changed again since")

func (e *Engine) takeBackOne(ctx context.Context, db *checkpoint.DB, id checkpoint.ID, c *checkpoint.Recorded) error {
	plan, err := db.Plan(ctx, checkpoint.Restore{ID: id, Paths: []string{c.Path}, AllSessions: true})
	if err != nil {
		return err
	}
	for i := range plan.Items {
		if it := &plan.Items[i]; it.Path == c.Path && it.HeadID != id {
			return errWentOn
		}
	}
	was := &guardfs.Before{}
	switch c.Before.Kind {
	case checkpoint.File:
		if !c.Stored {
			// It is only missed where the path was changed already.
			now, err := e.stateOf(c.Path)
			if err == nil && now.Same(c.Before) {
				return nil
			}
			return errors.Join(err, &MissingContentError{c.Path, c.Skipped})
		}
		content, err := db.Content(ctx, c.Before.Hash)
		if err != nil {
			return err
		}
		was = &guardfs.Before{Exists: true, Content: content, Hash: c.Before.Hash, Info: guardfs.Info{Kind: guardfs.KindFile, Size: c.Before.Size}, Meta: *metadata(c.Before)}
		was.Meta.ModTime = c.Before.ModTime // here nothing is to have happened
	case checkpoint.Symlink:
		was = &guardfs.Before{Exists: true, Content: []byte(c.Before.Target), Info: guardfs.Info{Kind: guardfs.KindSymlink}}
	}
	ours := func(now *guardfs.Before) bool { return state(now).Same(c.After) }
	return e.become(ctx, c.Path, ours, was)
}

// allMade says whether every path is what the operation announced.
func (e *Engine) allMade(op *checkpoint.Checkpoint) (bool, error) {
	for _, c := range op.Changes {
		if c.Role == checkpoint.RoleParent {
			continue
		}
		now, err := e.stateOf(c.Path)
		if err != nil {
			return false, err
		}
		if !now.Same(c.After) {
			return false, nil
		}
	}
	return true, nil
}

// stateOf looks at a path as a mutation would. A missing directory on the way is a missing path.
func (e *Engine) stateOf(path string) (checkpoint.State, error) {
	place, err := e.fs.PlaceLink(path)
	if _, ok := errors.AsType[*guardfs.MissingParentError](err); ok {
		return checkpoint.State{Kind: checkpoint.Absent}, nil
	}
	if err != nil {
		return checkpoint.State{}, err
	}
	defer place.Close()
	if place.Object().True != path || place.Object().Info.Kind == guardfs.KindDir {
		return checkpoint.State{Kind: checkpoint.Dir}, nil // not what any file was
	}
	if i := place.Object().Info; i.Kind == guardfs.KindFile && i.Size > maxLoad || i.Kind == guardfs.KindOther {
		return moveState(i), nil
	}
	b, err := place.Load(maxLoad)
	if err != nil {
		return checkpoint.State{}, err
	}
	return state(b), nil
}

// lockAll takes the locks of all paths of an operation that can be reached.
func (e *Engine) lockAll(ctx context.Context, op *checkpoint.Checkpoint) (func(), error) {
	var keys []string
	for _, c := range op.Changes {
		if place, err := e.fs.PlaceLink(c.Path); err == nil {
			keys = append(keys, place.LockKey())
			place.Close()
		}
	}
	return e.lock(ctx, "recovery", keys)
}
