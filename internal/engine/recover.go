package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"moltisfs/checkpoint"
	"moltisfs/internal/guardfs"
	"moltisfs/internal/policy"
)

// recover takes back the changes of several paths that processes which are no more left half-way: all paths or none holds across
// a crash too. It runs before the first call, before a restore, and
// where a change has waited for one that died. A path that is neither what the change made nor what it found is somebody
// else's and stays; that is logged, and the checkpoint keeps what it was. Where today's policy denies one of the paths, nothing is decided: the mark
// is left for whoever may reach them all, such as the next call with another root.
// For the locks of others it waits until then, in total; what is still locked is left for later.
func (e *Engine) recover(ctx context.Context, until time.Time) error {
	e = e.whole // what others left is taken back whatever this call may touch
	if err := e.recoverOpen(ctx, until); err != nil {
		return err
	}
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
		outcome, err := e.takeBack(ctx, db, intent, until)
		if err == nil && outcome != checkpoint.Presumed {
			err = db.Settle(ctx, id, outcome)
		}
		if err != nil { // the next start tries again; calls on other paths need not wait for that
			e.left.log(e.logger, id, err)
			intent.Leave()
			continue
		}
		e.unmark(db, intent, outcome)
	}
	if cut {
		if err := e.settleCut(ctx, db, until); err != nil { // the next start, or the next restore, tries again
			e.logger.Error(untold, "err", err)
		}
	}
	return nil
}

// unmark takes the mark of an operation away that is settled. One that does not go, or may come back after a power cut, must not have it taken back, whatever its
// paths look like by then: so the outcome is on record before anybody else can find it.
func (e *Engine) unmark(db *checkpoint.DB, intent *checkpoint.Intent, o checkpoint.Outcome) {
	err := intent.Done()
	if err == nil {
		return
	}
	ferr := db.Flush()
	if ferr != nil && o == checkpoint.Committed { // the mark itself can say it
		ferr = errors.Join(ferr, intent.Note(noteOutcome, noteMade))
	}
	e.logger.Error("the mark of a finished change could not be removed; the next start looks after it", "id", intent.ID(), "err", errors.Join(err, ferr))
	intent.Leave()
}

// takeBack looks at each path of the operation that is marked: what is as the operation left it becomes what it was. Presumed: what became of it was settled before.
func (e *Engine) takeBack(ctx context.Context, db *checkpoint.DB, intent *checkpoint.Intent, until time.Time) (checkpoint.Outcome, error) {
	id := intent.ID()
	op, err := db.Get(ctx, id, checkpoint.Scope{AllSessions: true})
	if errors.Is(err, checkpoint.ErrNotFound) {
		return checkpoint.Aborted, errors.New("its checkpoint is gone")
	}
	if err != nil {
		return "", err
	}
	if err := e.reaches(op); err != nil {
		return "", err
	}
	unlock, err := e.lockAll(ctx, op, until)
	if err != nil {
		return "", err
	}
	defer unlock()
	if op, err = db.Get(ctx, id, checkpoint.Scope{AllSessions: true}); err != nil { // it may have waited
		return "", err
	}
	notes, last, err := intent.Notes()
	if err != nil {
		return "", err
	}
	if op.Outcome == checkpoint.Presumed && notes[noteOutcome] == noteMade {
		op.Outcome = checkpoint.Committed
	}
	if op.Outcome != checkpoint.Presumed { // only its mark was left, or to tell where the trees are that it moved
		if op.Outcome == checkpoint.Committed {
			err = errors.Join(e.recoverMoves(ctx, db, op, true)...)
		}
		return checkpoint.Presumed, err
	}
	half := notes[noteOutcome] == noteHalf
	made := false
	if !half {
		made, err = e.allMade(op)
		made = made && err == nil
	}
	stuck := e.recoverMoves(ctx, db, op, made)
	if made && len(stuck) > 0 { // the catalog does not know it yet
		return "", errors.Join(stuck...)
	}
	if made {
		e.sweepOf(op)
		for _, c := range op.Changes {
			if goes(&c) {
				e.drop([]string{c.Path})
			}
		}
		// It may look so because others have made the rest since: then it was never made as a whole, and what they made is theirs.
		if wentOn, err := e.wentOn(ctx, db, op); err != nil || wentOn {
			return checkpoint.Foreign, err
		}
		return checkpoint.Committed, nil
	}
	own := e.ownDirs(op, notes, last) // before their times move
	// asItWas says that the change was not made of a path, or was put back: what is there by now is others'.
	asItWas := func(c *checkpoint.Recorded, orBelow bool) bool {
		if _, stuck := notes[noteStuck+c.Path]; !half || stuck {
			return false
		}
		if orBelow {
			for thing := range notes {
				if p, ok := strings.CutPrefix(thing, noteStuck); ok && below(p, c.Path) {
					return false
				}
			}
		}
		return true
	}
	one := func(c *checkpoint.Recorded) {
		if asItWas(c, false) || e.linkStays(op, c) {
			return
		}
		if err := e.takeBackOne(ctx, db, op, c); err != nil {
			stuck = append(stuck, fmt.Errorf("%s: %w", c.Path, err))
		}
	}
	for i := range op.Changes { // directories that gave way
		if c := &op.Changes[i]; gaveWay(c) && !asItWas(c, true) {
			one(c)
			stuck = append(stuck, e.remake(c))
		}
	}
	for i := len(op.Changes) - 1; i >= 0; i-- { // directories that were to go, from the top down
		if c := &op.Changes[i]; goes(c) && !asItWas(c, true) {
			stuck = append(stuck, e.remake(c))
		}
	}
	for i := len(op.Changes) - 1; i >= 0; i-- {
		c := &op.Changes[i]
		if c.Role == roleTree || c.Before.Kind == checkpoint.Dir || c.After.Kind == checkpoint.Dir {
			continue
		}
		one(c)
	}
	e.sweepOf(op)
	stuck = append(stuck, e.removeOwn(own))
	for i := range op.Changes { // files whose place a directory took
		if c := &op.Changes[i]; becameDir(c) {
			one(c)
		}
	}
	if err := errors.Join(stuck...); err != nil {
		if noRoom(err) { // what could not be done now may be done another time
			return "", err
		}
		e.logger.Warn("of a change that was cut off half-way, not everything could be taken back; its checkpoint holds what was there", "id", id, "err", err)
		return checkpoint.Foreign, nil
	}
	e.logger.Info("a change that was cut off half-way was taken back", "id", id, "paths", len(op.Changes))
	return checkpoint.Aborted, nil
}

// noRoom says that the disk does not take anything at this time.
func noRoom(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EROFS)
}

// errWentOn: a later change stands on this one.
var errWentOn = errors.New("it was changed again since")

// gaveWay says that a file or link was to take the place of a directory; becameDir, that a directory was to take that of a file or link.
func gaveWay(c *checkpoint.Recorded) bool {
	return c.Role != roleTree && c.Before.Kind == checkpoint.Dir && (c.After.Kind == checkpoint.File || c.After.Kind == checkpoint.Symlink)
}

func becameDir(c *checkpoint.Recorded) bool {
	return c.Role != roleTree && c.After.Kind == checkpoint.Dir && (c.Before.Kind == checkpoint.File || c.Before.Kind == checkpoint.Symlink)
}

// linkStays says that nothing was made of a path yet, because the link whose place its directory was to take is there as it was.
func (e *Engine) linkStays(op *checkpoint.Checkpoint, c *checkpoint.Recorded) bool {
	return slices.ContainsFunc(op.Changes, func(l checkpoint.Recorded) bool {
		if !becameDir(&l) || l.Before.Kind != checkpoint.Symlink || !below(c.Path, l.Path) {
			return false
		}
		now, err := e.stateOf(l.Path)
		return err == nil && now.Same(l.Before)
	})
}

// takeBackOne makes a path what it was. Of one where a directory was, it only takes away what came in its place.
func (e *Engine) takeBackOne(ctx context.Context, db *checkpoint.DB, op *checkpoint.Checkpoint, c *checkpoint.Recorded) error {
	if gaveWay(c) {
		if now, err := e.stateOf(c.Path); err != nil || now.Kind == checkpoint.Dir {
			return err
		}
	}
	plan, err := db.Plan(ctx, checkpoint.Restore{ID: op.ID, Paths: []string{c.Path}, AllSessions: true})
	if err != nil {
		return err
	}
	if slices.ContainsFunc(plan.Items, func(it checkpoint.Item) bool { return it.Path == c.Path && it.HeadID != op.ID }) {
		return errWentOn
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
			return errors.Join(err, Refuse(NotStored, c.Path, Unstored.Of(c.Skipped)))
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
	return e.become(ctx, c.Path, tagOf(op.ID, op.Time), ours, was)
}

// wentOn says whether a later change stands on any file of the operation.
func (e *Engine) wentOn(ctx context.Context, db *checkpoint.DB, op *checkpoint.Checkpoint) (bool, error) {
	plan, err := db.Plan(ctx, checkpoint.Restore{ID: op.ID, AllSessions: true})
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(plan.Items, func(it checkpoint.Item) bool {
		return it.Role != checkpoint.RoleParent && it.HeadID != op.ID
	}), nil
}

// sweepOf removes what a kill left of the files of an operation under temporary names, and nothing that another has in the same directories.
func (e *Engine) sweepOf(op *checkpoint.Checkpoint) {
	tag, swept := tagOf(op.ID, op.Time), map[string]bool{}
	for _, c := range op.Changes {
		dir := path.Dir(filepath.ToSlash(c.Path))
		if swept[dir] || c.Role == roleTree || !leaf(c.Before.Kind) && !leaf(c.After.Kind) {
			continue
		}
		swept[dir] = true
		place, err := e.fs.PlaceLink(c.Path)
		if err != nil {
			continue // there is no directory to sweep, or none of ours
		}
		if err := place.SweepOf(tag); err != nil {
			e.logger.Warn("what a killed process left could not be removed", "dir", place.ParentTrue(), "err", err)
		}
		place.Close()
	}
}

// goes says that a change removes a directory of its own accord, not as a part of a tree.
func goes(c *checkpoint.Recorded) bool {
	return c.Role != roleTree && c.Before.Kind == checkpoint.Dir && c.After.Kind == checkpoint.Absent
}

// remake makes a directory anew that a change may have removed.
func (e *Engine) remake(c *checkpoint.Recorded) error {
	place, err := e.fs.PlaceLink(c.Path)
	if err != nil {
		return err
	}
	defer place.Close()
	if o := place.Object(); o.True != c.Path {
		return &guardfs.SymlinkError{Path: c.Path, Target: o.True}
	} else if o.Info.Kind == guardfs.KindDir {
		return nil
	}
	if err = place.Mkdir(unopened); err != nil {
		return err
	}
	dropped, err := place.SetDir(*dirMetadata(c.Before))
	if err == nil && e.sync() {
		err = place.SyncNames()
	}
	if dropped != nil {
		e.logger.Warn("a directory that was made again did not get back all that it had", "path", c.Path, "lost", dropped)
	}
	return err
}

// allMade says whether every path is what the operation announced. What comes after the directories proves them, so that they have a say only where nothing does: files that
// become directories come before them. Those that are to go, last of all, have one only where there is nothing else.
func (e *Engine) allMade(op *checkpoint.Checkpoint) (bool, error) {
	only, unproven := true, true
	for _, c := range op.Changes {
		only = only && c.Role == checkpoint.RoleParent
		unproven = unproven && (c.Role == checkpoint.RoleParent || becameDir(&c))
	}
	going, gone := 0, 0
	for _, c := range op.Changes {
		if c.Role == checkpoint.RoleParent && !only && (!unproven || goes(&c)) {
			continue
		}
		now, err := e.stateOf(c.Path)
		if err != nil {
			return false, err
		}
		if only && goes(&c) { // one after the other, last of all: one that is gone is the proof, and one that stays may be in use
			if going++; now.Same(c.After) {
				gone++
			}
		} else if !now.Same(c.After) {
			return false, nil
		} else if c.Role == checkpoint.RoleParent && now.Kind == checkpoint.Dir {
			if made, err := e.dirState(c.Path); err != nil || justMade(made.Mode, c.After.Mode) {
				return false, err
			}
		}
	}
	return going == 0 || gone > 0, nil
}

// justMade says that a directory has still the mode that makeDir gives it first, and was to have another.
func justMade(now, after fs.FileMode) bool {
	return now.Perm() == unopened && after.Perm() != 0 && after.Perm() != unopened
}

// stateOf looks at a path as a mutation would. A missing directory on the way, or a file in the place of one, is a missing path.
func (e *Engine) stateOf(path string) (checkpoint.State, error) {
	place, err := e.fs.PlaceLink(path)
	if _, ok := errors.AsType[*guardfs.MissingParentError](err); ok || errors.Is(err, syscall.ENOTDIR) {
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

// errOutOfReach: policy lets another process, or a later one, reach what was cut off, not this one.
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

// lockAll takes the locks of all paths of an operation that can be reached: those that a change of them would take, whatever is there by then. It
// waits until then for others, but always a moment. Also are more keys to lock with them.
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

// recoveryKeys are the lock keys of the paths of an operation: of each place, and of each name where nothing may be, as those of a plan are.
func (e *Engine) recoveryKeys(op *checkpoint.Checkpoint) map[string]bool {
	keys := map[string]bool{}
	for _, c := range op.Changes {
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
