package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"syscall"
	"time"

	"moltisfs/checkpoint"
	"moltisfs/internal/guardfs"
	"moltisfs/internal/policy"
)

// recover ends what dead processes have left half-way, the newest first. An operation that was made
// as a whole is finished. Any other is taken back. Then the temporary names go. It runs before the
// first call, before a restore, and where a change meets an interrupted one.
//
// An operation is left as it is where today's policy denies one of its paths. Whoever may reach
// them all decides, such as the next call with another root. recover waits for locks until then, in
// total. What is still locked is for later.
func (e *Engine) recover(ctx context.Context, until time.Time) error {
	if !e.temps.AnyDead() {
		return nil
	}
	e = e.whole // what others left is taken back whatever this call may touch
	open, err := e.openOps(ctx)
	if err != nil {
		return err
	}
	for _, o := range open {
		if !e.dead(ctx, o.row.Tag) { // it is being carried out, or taken back
			continue
		}
		// Another start tries again; calls on other paths need not wait for that.
		err := e.recoverOp(ctx, o, until)
		if e.place.Calls != nil && (errors.Is(err, guardfs.ErrUnavailable) || errors.Is(err, errLater)) {
			e.temps.Stays() // the worker has died again: the next call has another one
		} else if err != nil {
			e.unrecovered.log(e.logger, o.row.ID, err)
		}
	}
	e.sweepDead(ctx)
	return nil
}

// An openOp is an operation whose row says no outcome.
type openOp struct {
	row   checkpoint.OpenOp
	steps *rollback // without what is known of contents; nil where they can't be read
	db    *checkpoint.DB
}

// openOps lists those of processes that are no more, the newest first.
func (e *Engine) openOps(ctx context.Context) ([]openOp, error) {
	open, err := e.allOpen(ctx)
	return slices.DeleteFunc(open, func(o openOp) bool {
		return o.steps == nil || e.temps.Alive(o.steps.process)
	}), err
}

func (e *Engine) allOpen(ctx context.Context) (open []openOp, err error) {
	db, err := e.checkpoints.existing()
	if db == nil || err != nil {
		return nil, err
	}
	rows, err := db.Open(ctx)
	if err != nil {
		return nil, err
	}
	for _, row := range rows {
		p := &rollback{e: e, tag: row.Tag}
		if err := p.decode(row.Steps, &checkpoint.Checkpoint{}); err != nil {
			e.unrecovered.log(e.logger, row.ID, err)
			p = nil
		}
		open = append(open, openOp{row, p, db})
	}
	return open, nil
}

// opKey is the lock of an operation: who holds it is alive.
func opKey(tag string) string { return "op:" + tag }

// dead says that nobody carries out the operation of that tag.
func (e *Engine) dead(ctx context.Context, tag string) bool {
	unlock, err := e.lockFor(ctx, "recovery", []string{opKey(tag)}, lockTry)
	if err == nil {
		unlock()
	}
	return err == nil
}

// recoverOp brings one operation to its end.
func (e *Engine) recoverOp(ctx context.Context, o openOp, until time.Time) error {
	db, row := o.db, o.row
	op, err := db.Get(ctx, row.ID, checkpoint.Scope{AllSessions: true})
	if err != nil {
		return err
	}
	if err := e.reaches(op); err != nil {
		return err
	}
	unlock, err := e.lockAll(ctx, op, until, opKey(row.Tag))
	if err != nil {
		return err
	}
	defer unlock()
	rows, err := db.Open(ctx) // it may have waited
	if err != nil {
		return err
	}
	at := slices.IndexFunc(rows, func(r checkpoint.OpenOp) bool { return r.ID == row.ID })
	if at < 0 {
		return nil
	}
	p := &rollback{e: e, tag: row.Tag}
	if err := p.decode(row.Steps, op); err != nil {
		return err
	}
	if len(p.steps) == 1 && p.steps[0].action == Append && len(op.Changes) == 1 {
		return e.recoverAppend(ctx, db, op, &p.steps[0])
	}
	if rows[at].Made || p.lastCommits() {
		whole, err := p.complete()
		if err == nil && whole && !rows[at].Made { // nobody may have come to sync what it renamed
			err = p.syncNames()
		}
		if err != nil {
			return err
		}
		if whole {
			return p.finish(ctx, db, row.ID)
		}
	}
	stuck, again := p.rollBack(ctx)
	if again {
		return fmt.Errorf("%w: %s", errLater, strings.Join(stuck, ", "))
	}
	if err := errors.Join(p.settleTrash(ctx, db), p.clearHolds(false)); err != nil {
		return err
	}
	if stuck != nil {
		e.logger.Warn("of an interrupted change not everything could be taken back; "+
			"its checkpoint holds what was there", "id", row.ID, "paths", stuck)
		return db.Settle(ctx, row.ID, checkpoint.Foreign)
	}
	e.logger.Info("an interrupted change was taken back", "id", row.ID,
		"paths", len(op.Changes))
	return db.Settle(ctx, row.ID, checkpoint.Aborted)
}

// unsettled is an *interruptedError when the plan undoes a change whose outcome is unknown, because
// its paths are locked or somebody is just looking.
func (e *Engine) unsettled(ctx context.Context, plan *checkpoint.Plan) error {
	if !e.temps.AnyDead() {
		return nil
	}
	open, err := e.openOps(ctx)
	for _, o := range open {
		if slices.Contains(plan.Undoes, o.row.ID) && !e.unrecovered.has(o.row.ID) {
			return &interruptedError{Refuse(Unsettled, "", o.row.ID)}
		}
	}
	return err
}

// gaveWay says that a file or link was to take the place of a directory; becameDir, the reverse.
func gaveWay(c *checkpoint.Recorded) bool {
	return c.Role != roleTree && c.Before.Kind == checkpoint.Dir &&
		(c.After.Kind == checkpoint.File || c.After.Kind == checkpoint.Symlink)
}

func becameDir(c *checkpoint.Recorded) bool {
	return c.Role != roleTree && c.After.Kind == checkpoint.Dir &&
		(c.Before.Kind == checkpoint.File || c.Before.Kind == checkpoint.Symlink)
}

// stateOf looks at a path as a change would. A missing directory on the way is a missing path, and
// so is a file in its place.
func (e *Engine) stateOf(path string) (checkpoint.State, error) {
	place, err := e.fs.PlaceLink(path)
	if _, ok := errors.AsType[*guardfs.MissingParentError](err); ok ||
		errors.Is(err, syscall.ENOTDIR) {
		return checkpoint.State{Kind: checkpoint.Absent}, nil
	}
	if err != nil {
		return checkpoint.State{}, err
	}
	defer place.Close()
	if place.Object().True != path || place.Object().Info.Kind == guardfs.KindDir {
		return checkpoint.State{Kind: checkpoint.Dir}, nil // not what any file was
	}
	if i := place.Object().Info; i.Kind == guardfs.KindFile && i.Size > maxLoad ||
		i.Kind == guardfs.KindOther {
		return moveState(i), nil
	}
	b, err := place.Load(maxLoad)
	if err != nil {
		return checkpoint.State{}, err
	}
	return state(b), nil
}

var errLater = errors.New("not everything can be taken back at this time")

// errOutOfReach: policy denies this process a path of an interrupted operation. Another process may
// reach it.
var errOutOfReach = errors.New("some of its paths are out of reach")

// reaches refuses where policy denies any path of the operation.
func (e *Engine) reaches(op *checkpoint.Checkpoint) error {
	for _, c := range op.Changes {
		place, err := e.fs.PlaceLink(c.Path)
		if err == nil {
			place.Close()
		}
		if _, no := errors.AsType[*policy.Denied](err); no {
			return fmt.Errorf("%w: %w", errOutOfReach, err)
		}
	}
	return nil
}

// lockAll locks all paths of an operation that can be reached, whatever is there by now, with the
// keys that a change of them would take. also are more keys. It waits for others until then, but
// always a moment.
func (e *Engine) lockAll(ctx context.Context, op *checkpoint.Checkpoint, until time.Time,
	also ...string) (func(), error) {
	const rounds = 16 // as often as directories may come and go under us
	keys := e.recoveryKeys(op)
	for range rounds {
		unlock, err := e.lockFor(ctx, "recovery", append(slices.Collect(maps.Keys(keys)), also...),
			max(time.Until(until), lockTry))
		if err != nil {
			return nil, err
		}
		held := keys
		if keys = e.recoveryKeys(op); subset(keys, held) {
			return unlock, nil
		}
		unlock()
	}
	return nil, &guardfs.ConflictError{Path: op.Changes[0].Path, Why: guardfs.DirInTurns}
}

// recoveryKeys are the lock keys of an operation's paths, as those of a plan are: of each place,
// and of each name where nothing may be.
func (e *Engine) recoveryKeys(op *checkpoint.Checkpoint) map[string]bool {
	keys, dirs := map[string]bool{}, map[string]bool{}
	for _, c := range op.Changes {
		above(c.Path, dirs)
		if c.Role == roleTree || c.Role == checkpoint.RoleParent && op.Kind == checkpoint.KindMove {
			keys[guardfs.TreeKey(c.Path)] = true
		}
		if place, err := e.fs.PlaceLink(c.Path); err == nil {
			keys[place.LockKey()] = true
			place.Close()
		}
		e.eachName(c.Path, func(name string) bool {
			key := guardfs.NameKey(name)
			more := !keys[key]
			keys[key] = true
			return more
		})
	}
	for dir := range dirs {
		keys[guardfs.Shared(guardfs.TreeKey(dir))] = true
	}
	return keys
}

func subset(a, b map[string]bool) bool {
	for k := range a {
		if !b[k] {
			return false
		}
	}
	return true
}
