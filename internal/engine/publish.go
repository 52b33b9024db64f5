package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"runtime"
	"slices"
	"sync"
	"syscall"

	"moltisfs/checkpoint"
	"moltisfs/internal/guardfs"
)

// publish stores the pre-state and writes the temp files side by side, then
// exchanges them in. If any path fails, the ones before it are put back. Where
// directories have to be made, what goes into them waits for the checkpoint.
func (e *Engine) publish(ctx context.Context, c *Call, ts targets, m *Mutation, made []NewDir) (*Done, error) {
	done := &Done{Targets: ts}
	dirs, err := e.missing(ts, m, made)
	if err != nil {
		return nil, err
	}
	defer dirs.close()
	if err := e.readySlots(m); err != nil {
		return nil, err
	}
	if err := expectNew(ts, m.park); err != nil {
		return nil, err
	}
	many := len(ts.changing()) > 1
	swaps, err := e.swapsOf(ts, m)
	if err != nil {
		return nil, err
	}
	staged := make([]*guardfs.Staged, len(ts))
	point := &point{e: e, c: c, dirs: dirs, swaps: swaps, staged: staged}
	stage := func() error {
		err := e.stage(ctx, ts, staged, many, m.park)
		for _, t := range ts {
			if t.made != nil {
				close(t.made) // of what was not staged there is nothing to tell
			}
		}
		return err
	}
	save := func() error { return point.save(ctx, ts, m, done) }
	var stageErr, saveErr error
	switch {
	case m.park: // parked files have names: only with the mark of a change under way will the next start look for what a kill leaves
		if saveErr = save(); saveErr == nil {
			point.label(ts)
			stageErr = stage()
		}
	case ts.bytes() < saveFirst:
		saveErr, stageErr = beside(save, stage)
	default:
		stageErr, saveErr = beside(stage, save)
	}
	defer point.discard() //nolint:errcheck // where something depends on it, abort has seen to it
	point.label(ts)
	err = errors.Join(stageErr, saveErr)
	if err == nil && swaps != nil {
		if err = e.clear(ctx, swaps); err != nil {
			return nil, e.putBack(ctx, point, nil, m, err)
		}
	}
	if err == nil && len(dirs.todo) > 0 { // what goes into them had to wait
		if err = e.makeDirs(point, ts, m); err == nil {
			err = e.stage(ctx, ts, staged, many, m.park)
		}
	}
	if err != nil && swaps != nil && swaps.removed+swaps.emptied > 0 {
		return nil, e.putBack(ctx, point, nil, m, err)
	}
	if err != nil {
		return nil, e.abort(ctx, point, m, err)
	}

	if err := e.carryMoves(ctx, point, m, false); err != nil {
		return nil, e.putBack(ctx, point, nil, m, err)
	}
	for i, t := range ts {
		if t.Unchanged() || swaps.has(t) {
			continue
		}
		if err := e.commit(ctx, t, staged[i], e.sync() && !many); err != nil {
			return nil, e.putBack(ctx, point, ts[:i+1], m, err)
		}
		if many && e.progress != nil {
			e.progress("changing files", i+1, len(ts))
		}
	}
	if err := e.carryMoves(ctx, point, m, true); err != nil {
		return nil, e.putBack(ctx, point, ts, m, err)
	}
	if many {
		e.syncNames(ts, swaps)
	}
	done.Made, done.Kept = dirs.paths(), e.drop(swaps.kept(m.Drop))
	done.Dropped = slices.DeleteFunc(slices.Clone(m.Drop), func(d string) bool {
		return slices.ContainsFunc(done.Kept, func(k Blocked) bool { return k.Path == d })
	})
	for _, mv := range m.Moves {
		done.Moved = append(done.Moved, *mv)
	}
	if err := e.settleMoves(ctx, point.db, m); err != nil { // the mark stays: the next start looks where everything is
		e.logger.Error("what became of a tree could not be written to the catalog", "id", point.id, "err", err)
		point.leaveMade(ctx)
		return done, nil
	}
	point.settle(ctx, checkpoint.Committed)
	return done, nil
}

// expectNew sees to it that it is known what new files get from the system: it is told when they are written, or with park, before that.
func expectNew(ts targets, park bool) (err error) {
	fresh := map[string]guardfs.Metadata{}
	for _, t := range ts {
		if !t.isNew() || t.place == nil {
			continue
		}
		if !park {
			t.made = make(chan guardfs.Metadata, 1)
			continue
		}
		dir := t.place.ParentTrue()
		if _, known := fresh[dir]; !known {
			if fresh[dir], err = t.place.Fresh(0o666, false); err != nil {
				return err
			}
		}
		t.fresh = fresh[dir]
	}
	return nil
}

// saveFirst is the size of the new contents from which writing them takes longer than saving the old ones.
const saveFirst = 64 << 10

// beside runs both at once. The first is the longer one: the second may have to wait until a thread wakes up, or the first one
// sleeps, because on a virtual machine the kernel often puts both on one processor.
func beside(first, second func() error) (error, error) {
	done := make(chan error, 1)
	go func() { done <- second() }()
	err := first()
	return err, <-done
}

// abort ends a change that was not made, or was taken back, because of cause.
func (e *Engine) abort(ctx context.Context, p *point, m *Mutation, cause error) error {
	o := checkpoint.Aborted
	litter := p.discard() // or directories would seem to be in use
	err := e.unmake(p.dirs)
	if err == nil && litter != nil && len(e.stillThere(p.dirs)) > 0 {
		err = litter
	}
	if err != nil {
		e.logger.Error("directories of a change that failed could not be removed", "id", p.id, "err", err)
		o = checkpoint.Foreign // leaves the mark
		cause = p.halfMade(cause, e.stillThere(p.dirs))
	}
	return e.end(ctx, p, m, o, cause)
}

// end says in the catalog what became of a change that failed with cause.
func (e *Engine) end(ctx context.Context, p *point, m *Mutation, o checkpoint.Outcome, cause error) error {
	// With the mark left, whoever takes the change back has to find that the trees are on their way: what lies in the trash as settled is not moved back, and
	// is forgotten there with a change that was taken back.
	leaves := o == checkpoint.Foreign && p.intent != nil
	if p.db != nil && len(m.Moves) > 0 && !leaves {
		if err := e.settleMoves(ctx, p.db, m); err != nil {
			e.logger.Error("what became of a tree could not be written to the catalog", "id", p.id, "err", err)
			o = checkpoint.Foreign // leaves the mark
		}
	}
	p.settle(ctx, o)
	return cause
}

func (e *Engine) sync() bool { return e.cfg.Durability != "none" }

// stage writes the temp files of those whose directory is there and that have none yet. Of many, several at a time: their syncs then share the work
// of the file system's journal. With park they are closed until they are published.
func (e *Engine) stage(ctx context.Context, ts targets, staged []*guardfs.Staged, many, park bool) error {
	one := func(i int) error {
		t := ts[i]
		o := guardfs.StageOptions{Sync: e.sync(), NameLater: many, Meta: t.After.Meta}
		if t.Before.Exists && t.After.Meta == nil {
			o.Like = t.Before
		}
		if park {
			o.Park = t.parkedBy()
		}
		if t.made != nil {
			o.Made = func(m guardfs.Metadata) { t.made <- m }
		}
		var err error
		if staged[i], err = t.place.Stage(ctx, t.After.Content, o); err != nil {
			return fmt.Errorf("writing beside %s: %w", t.True, err)
		}
		return nil
	}
	todo := ts.toStage(staged)
	if len(todo) == 1 {
		return one(todo[0])
	}
	next := make(chan int)
	stop := make(chan struct{})
	var once sync.Once
	var failed error
	var wg sync.WaitGroup
	writers := max(16, 4*runtime.GOMAXPROCS(0))
	if park {
		writers = parkers
	}
	for range min(len(todo), writers) {
		wg.Go(func() {
			for i := range next {
				if err := one(i); err != nil {
					once.Do(func() {
						failed = err
						close(stop)
					})
				}
			}
		})
	}
feed:
	for _, i := range todo {
		select {
		case next <- i:
		case <-stop:
			break feed
		}
	}
	close(next)
	wg.Wait()
	return failed
}

// toStage are those that can have a temp file now and have none yet.
func (ts targets) toStage(staged []*guardfs.Staged) (todo []int) {
	for i, t := range ts {
		// What takes the place of a link or directory waits until that is gone.
		if t.place != nil && staged[i] == nil && t.After.Kind == guardfs.KindFile && !t.Unchanged() && t.Before.Info.Kind != guardfs.KindSymlink && !t.givesWay() {
			todo = append(todo, i)
		}
	}
	return todo
}

// parkedBy is the hash by which a temporary file of the target that a kill leaves is known to be one.
func (t *Target) parkedBy() string {
	if t.Before.Exists {
		return t.Before.Hash
	}
	return t.After.Hash
}

func (e *Engine) commit(ctx context.Context, t *Target, s *guardfs.Staged, sync bool) (err error) {
	switch {
	case t.After.Kind == guardfs.KindFile && s != nil:
		t.own = s.ID()
		t.Published, err = s.Commit(ctx, t.Before)
		return err
	case t.Before.Exists && !t.givesWay(): // a directory is gone by now
		if err = t.place.Remove(ctx, t.Before, sync); err != nil {
			return err
		}
		t.Published = &guardfs.Published{True: t.True} // from here on there is something to put back
	}
	switch t.After.Kind {
	case guardfs.KindFile:
		t.Published, err = e.replaceLink(ctx, t)
	case guardfs.KindSymlink:
		if err = t.place.Symlink(t.After.Target); !errors.Is(err, fs.ErrExist) {
			t.Published, t.linked = &guardfs.Published{True: t.True}, true // also after an error: it may have been made
		}
		if err == nil && sync {
			err = t.place.SyncNames()
		}
	}
	return err
}

// replaceLink makes a file where a link or directory was until just now.
func (e *Engine) replaceLink(ctx context.Context, t *Target) (*guardfs.Published, error) {
	if now, err := t.place.Load(maxLoad); err != nil || now.Exists {
		return t.Published, errors.Join(err, &guardfs.ConflictError{Path: t.True, Why: "something appeared there"})
	}
	s, err := t.place.Stage(ctx, t.After.Content, guardfs.StageOptions{Sync: e.sync(), Meta: t.After.Meta})
	if err != nil {
		return t.Published, err
	}
	defer s.Discard()
	t.own = s.ID()
	p, err := s.Commit(ctx, nil)
	if err != nil {
		return t.Published, err
	}
	return p, nil
}

// syncNames puts the names of many changes on stable storage, one directory after the other. They are made: what can't be
// synced is told with the target.
func (e *Engine) syncNames(ts targets, s *swaps) {
	if !e.sync() {
		return
	}
	done := map[string]error{}
	for _, t := range ts {
		if t.Published == nil || s.has(t) { // these were synced one by one: the directory may be gone
			continue
		}
		dir := t.place.ParentTrue()
		err, ok := done[dir]
		if !ok {
			err = t.place.SyncNames()
			done[dir] = err
		}
		if err != nil && t.Published.Unsynced == "" {
			t.Published.Unsynced = err.Error()
		}
	}
}

// putBack undoes what was already done, because something after it failed with cause. What can't be put back is named: the checkpoint holds
// it, or the trash.
func (e *Engine) putBack(ctx context.Context, p *point, ts targets, m *Mutation, cause error) error {
	ctx = context.WithoutCancel(ctx)
	p.discard() //nolint:errcheck // named ones keep directories from going, and all of them take room; abort tries again
	stuck := e.unmove(ctx, m)
	back := func(ts targets, not *swaps) {
		for i := len(ts) - 1; i >= 0; i-- {
			t := ts[i]
			if not.has(t) || t.Published == nil && (t.Unchanged() || !e.madeAllTheSame(t, cause)) {
				continue
			}
			if err := e.putBackOne(ctx, t, p.tag); err != nil {
				e.logger.Error("a change that failed half-way could not be put back", "path", t.True, "err", err)
				stuck = append(stuck, t.True)
			}
		}
	}
	back(ts, p.swaps)
	if s := p.swaps; s != nil { // its steps backwards
		if err := e.unmake(p.dirs); err != nil { // then what was there before can't come back either
			e.logger.Error("directories of a change that failed could not be removed", "id", p.id, "err", err)
		}
		stuck = append(stuck, e.remakeDirs(s)...)
		back(s.first[:s.removed], nil)
	}
	if stuck != nil {
		p.noteHalf(stuck)
		return e.end(ctx, p, m, checkpoint.Foreign, p.halfMade(cause, stuck))
	}
	return e.abort(ctx, p, m, cause)
}

// madeAllTheSame reports whether a target whose publication failed with cause is not certainly as others left it: where nothing can be looked
// at any more, the exchange may have been made and not have been undone.
func (e *Engine) madeAllTheSame(t *Target, cause error) bool {
	now, err := e.loadLink(t.True)
	if err != nil {
		return true
	}
	if state(now).Same(state(t.Before)) {
		return false
	}
	if !now.Exists { // removed, by us unless it is said that it was somebody else
		_, others := errors.AsType[*guardfs.ConflictError](cause)
		return !others && (t.After.Kind != guardfs.KindFile || t.Before.Info.Kind == guardfs.KindSymlink)
	}
	return t.isOurs(now)
}

// loadLink looks at a path as a mutation would, a link for itself. What is no file or link, or can't be reached by that name any more, comes without content.
func (e *Engine) loadLink(path string) (*guardfs.Before, error) {
	place, err := e.fs.PlaceLink(path)
	if _, ok := errors.AsType[*guardfs.MissingParentError](err); ok {
		return &guardfs.Before{}, nil
	}
	if err != nil {
		return nil, err
	}
	defer place.Close()
	o := place.Object()
	if k := o.Info.Kind; o.True != path || k == guardfs.KindDir || k == guardfs.KindOther || o.Info.Size > maxLoad {
		return &guardfs.Before{Exists: true, Info: o.Info}, nil
	}
	return place.Load(maxLoad)
}

// isOurs says that what is there is what we made of the target. The same content in another file is somebody else's.
func (t *Target) isOurs(now *guardfs.Before) bool {
	if !state(now).Same(t.announced()) {
		return false
	}
	switch t.After.Kind {
	case guardfs.KindFile:
		return t.own != guardfs.Identity{} && t.own == now.Info.ID
	case guardfs.KindSymlink:
		return t.linked
	}
	return true
}

// announced is what the target was to become.
func (t *Target) announced() checkpoint.State {
	switch t.After.Kind {
	case guardfs.KindFile:
		return checkpoint.State{Kind: checkpoint.File, Hash: t.After.Hash}
	case guardfs.KindSymlink:
		return checkpoint.State{Kind: checkpoint.Symlink, Target: t.After.Target}
	case guardfs.KindDir:
		return checkpoint.State{Kind: checkpoint.Dir}
	}
	return checkpoint.State{Kind: checkpoint.Absent}
}

func (e *Engine) putBackOne(ctx context.Context, t *Target, tag string) error {
	was := t.Before
	if t.givesWay() { // the directory itself is made anew after that
		was = &guardfs.Before{}
	}
	return e.become(ctx, t.True, tag, t.isOurs, was)
}

// become makes path what it was, if it still is what we made of it, which ours says. A link is taken for itself. tag is that of the operation.
func (e *Engine) become(ctx context.Context, path, tag string, ours func(*guardfs.Before) bool, was *guardfs.Before) error {
	place, err := e.fs.PlaceLink(path)
	if _, ok := errors.AsType[*guardfs.MissingParentError](err); (ok || errors.Is(err, syscall.ENOTDIR)) && !was.Exists {
		return nil
	}
	if err != nil {
		return err
	}
	defer place.Close()
	place.Label(tag)
	if place.Object().True != path {
		return &guardfs.SymlinkError{Path: path, Target: place.Object().True}
	}
	now, err := place.Load(maxLoad)
	if err != nil {
		return err
	}
	if state(now).Same(state(was)) {
		return nil
	}
	if now.Exists && !ours(now) {
		return &guardfs.ConflictError{Path: path, Why: "it was changed again at once"}
	}
	link := was.Exists && was.Info.Kind == guardfs.KindSymlink
	if now.Exists && (!was.Exists || link || now.Info.Kind == guardfs.KindSymlink) {
		if err := place.Remove(ctx, now, e.sync()); err != nil {
			return err
		}
		if now, err = place.Load(maxLoad); err != nil {
			return err
		}
	}
	switch {
	case !was.Exists:
		return nil
	case link:
		return place.Symlink(string(was.Content))
	}
	s, err := place.Stage(ctx, was.Content, guardfs.StageOptions{Meta: &was.Meta, Sync: e.sync()})
	if err != nil {
		return err
	}
	defer s.Discard()
	_, err = s.Commit(ctx, now)
	return err
}

// intend writes the intent before anything changes; a record that can't be
// written stops the change.
func (e *Engine) intend(c *Call) error {
	r := e.record(c, "intent")
	if err := e.log.Append(r); err != nil {
		return &hostError{"writing the audit record", err}
	}
	return nil
}

// lines counts as Read does: a final newline makes no extra line.
func lines(content []byte) int {
	n := bytes.Count(content, []byte("\n"))
	if len(content) > 0 && content[len(content)-1] != '\n' {
		n++
	}
	return n
}
