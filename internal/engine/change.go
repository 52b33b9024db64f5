package engine

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"moltisfs/checkpoint"
	"moltisfs/internal/engine/rewind"
	"moltisfs/internal/guardfs"
)

// Change is how everything in the agent's tree changes. Read it downward. Any line may refuse, and
// then everything is as it was.
func (c *Call) Change(ctx context.Context, make PlanFunc) (done *Done, err error) {
	d := &Planner{c: c, ctx: ctx, disk: !takes(c.Overlay), held: func(path string) ([]byte, bool, error) { return c.held(ctx, path) }}
	defer func() { d.close() }()
	// Policy judges every look. A file is refused here if it was not read, or has changed since.
	p, err := d.makePlan(ctx, make)
	if err != nil {
		return nil, err
	}
	if p.DryRun || len(p.Steps) == 0 {
		return c.wouldBe(d.files, p), nil
	}
	if err := c.fenced(ctx); err != nil {
		return nil, err
	}
	grant, over, err := c.ask(ctx, p) // a person may take minutes
	if err != nil {
		return nil, err
	}
	defer func() { over(done != nil) }()
	c.endLate(0)
	if ctx, err = c.leased(ctx); err != nil {
		return nil, err
	}
	p, unlock, err := d.lockAndRevalidate(ctx, p, make, grant != "") // look again, now alone
	if err != nil {
		return nil, err
	}
	defer unlock()
	if len(p.Steps) == 0 { // somebody else has done it meanwhile
		return &Done{Targets: d.files, Idle: true}, nil
	}
	if p.sure != nil {
		p.sure()
	}
	if err := c.logIntent(); err != nil { // no change without a record of it
		return nil, err
	}
	settled := c.pausePolicy()
	done, err = c.execute(ctx, d.files, p)
	settled()
	if err != nil {
		unlock()
		c.endLate(5 * time.Second) // a gateway that stood still has another lease in a second
		return nil, err
	}
	if o := c.editor(); o != nil && !p.unsaved() {
		for _, path := range p.Paths() {
			o.seen.Changed(path)
		}
	}
	done.Approval = grant
	c.rememberChange(d.files, d.moves)
	c.recordClosedDirs(ctx, d.files.paths()...)
	if done.Checkpoint != "" {
		c.expire(ctx)
	}
	return done, nil
}

// pausePolicy keeps the chain from being asked until done: all that a plan looks at was judged under its
// locks, and to take a change back must not depend on what a policy says of that, or on its server.
func (c *Call) pausePolicy() (done func()) {
	j, ok := c.judge.(policyJudge)
	if !ok {
		return func() {}
	}
	j.settled.Store(true)
	return func() { j.settled.Store(false) }
}

// wouldBe gives the result of a plan that is not carried out: a dry run, or one without steps.
func (e *Engine) wouldBe(ts targets, p *Plan) *Done {
	done := &Done{Targets: ts, DryRun: p.DryRun, Idle: len(p.Steps) == 0}
	for _, mv := range p.moving() {
		done.Moved = append(done.Moved, *mv)
	}
	if p.DryRun {
		done.Made, done.Dropped = p.of(Mkdir), p.of(Rmdir)
	}
	if !p.Whole && (p.Checkpoint || e.cfg.CheckpointBeforeMutation) {
		done.Skipped = e.newNotBackedUp(ts)
	}
	return done
}

// lockAndRevalidate takes the locks of a plan, and makes it anew if something moved meanwhile. approved is one
// that may only do less by then.
func (d *Planner) lockAndRevalidate(ctx context.Context, p *Plan, make PlanFunc,
	approved bool) (_ *Plan, unlock func(), err error) {
	const rounds = 16 // as often as directories may come and go under us
	asked, tag := p, guardfs.NewTag()
	p.Op.Tag = tag
	d.c.live.Store(tag, true)
	held := func(unlock func()) func() {
		return func() {
			d.c.live.Delete(tag) // first, so that what is left open is seen
			unlock()
		}
	}
	defer func() {
		if err != nil {
			d.c.live.Delete(tag)
		}
	}()
	for range rounds {
		keys := p.keys()
		unlock, err := d.c.lockSteps(ctx, p, d.files.paths())
		if err != nil {
			return nil, nil, err
		}
		moved, err := d.changedSincePlan(ctx)
		if err == nil && !moved {
			if err = d.checkOverlay(ctx, p); err == nil {
				return p, held(unlock), nil
			}
		}
		if err == nil {
			p, err = d.makePlan(ctx, make)
		}
		if err == nil {
			p.Op.Tag = tag
		}
		if err == nil && p.exceeds(asked) {
			err = d.c.checkGrant(ctx, approved, p)
		}
		if err == nil && approved && p.exceeds(asked) {
			err = Refuse(ApprovalStale, p.first(), p.diff())
		}
		if err == nil && subset(p.keys(), keys) {
			return p, held(unlock), nil
		}
		unlock()
		if err != nil {
			return nil, nil, err
		}
	}
	return nil, nil, &guardfs.ConflictError{Path: p.first(), Why: guardfs.DirInTurns}
}

// subset says that all of keys are held.
func subset(keys, held []string) bool {
	is := map[string]bool{}
	for _, key := range held {
		is[key] = true
	}
	return !slices.ContainsFunc(keys, func(key string) bool { return !is[key] })
}

// lockSteps takes the locks of a plan. If a process died half-way through another change of these
// paths, that change is ended first. Where it was taken back a restore gets an *interruptedError, since
// its plan came from the store before that.
func (c *Call) lockSteps(ctx context.Context, p *Plan,
	looked []string) (unlock func(), err error) {
	// Another process may be taking it back, or about to finish.
	for start := time.Now(); ; time.Sleep(time.Millisecond) {
		if unlock, err = c.lockFor(ctx, c.Tool, p.keys(), c.lockWait); err != nil {
			return nil, err
		}
		if err = c.interrupted(ctx, p, looked); err == nil {
			return unlock, nil
		}
		unlock()
		open, cut := errors.AsType[*interruptedError](err)
		if !cut {
			return nil, err
		}
		if err := c.ownFor().recover(ctx, start.Add(c.lockWait)); err != nil {
			return nil, err
		}
		if p.Op.Kind == checkpoint.KindRestore && !open.stands(ctx) && open.of.id != c.givesUp || time.Since(start) > c.lockWait || ctx.Err() != nil {
			return nil, err
		}
	}
}

// exceeds says that p does something that approved does not.
func (p *Plan) exceeds(approved *Plan) bool {
	known := map[string]bool{}
	for i := range approved.Steps {
		known[string(approved.Steps[i].sum())] = true
	}
	return slices.ContainsFunc(p.Steps, func(s Step) bool { return !known[string(s.sum())] })
}

// lockFor takes the locks of keys for one change, or for recovery. A caller that waits longer than wait is told
// the holder, and changes nothing. holder is our name for others: the tool, never a session.
func (e *Engine) lockFor(ctx context.Context, holder string, keys []string,
	wait time.Duration) (unlock func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	unlock, err = e.locks.For(holder).Lock(ctx, keys...)
	// Not the agent's fault: the words of this error would read as an answer about its files.
	if _, locked := errors.AsType[*guardfs.LockedError](err); err != nil && !locked && !CutOff(err) {
		err = &hostError{"locking what the call changes, in the data directory", err}
	}
	return unlock, err
}

// execute carries a plan out.
func (c *Call) execute(ctx context.Context, ts targets, p *Plan) (done *Done, err error) {
	switch {
	case p.unsaved():
		done, err = c.store(ctx, ts, p)
	case len(p.Steps) == 1 && p.Steps[0].Action == Append:
		done, err = c.extend(ctx, ts, p)
	default:
		done, err = c.apply(ctx, ts, p)
	}
	if e, ok := errors.AsType[*guardfs.RecordError](err); ok {
		return nil, &hostError{"writing to the data directory", e}
	}
	return done, err
}

// logIntent writes the intent to the audit log before anything changes. Without that record there is
// no change.
func (c *Call) logIntent() error {
	if !c.begin() {
		return context.DeadlineExceeded // nobody waits for it any more
	}
	r := c.Engine.record(c, "intent")
	if err := c.log.AppendChange(r); err != nil {
		return &hostError{"writing the audit record", err}
	}
	return nil
}

// apply is a plan on its way: stage all, save, sync, swap each, sync the directories, commit. Until
// then everything that was there is in its hold, and comes back if anything fails; after it the
// holds go.
type apply struct {
	rollback
	p     *Plan
	done  *Done
	moves []movement
	id    checkpoint.ID // "" until it is saved

	saved bool // it is on record, and may be published
}

// A movement is a step with its two names open.
type movement struct {
	place, hold *guardfs.Entry
	own         bool // place is not that of the target
	made        *guardfs.Staged
	was         guardfs.Precondition
	before      checkpoint.State // of a directory that goes
	pub         *guardfs.Published
	top         int // the step that makes the directory in which it is staged; -1: it has a temporary name of its own
	closed      bool
}

// single says that a plan puts one file where its directory is there. Its checkpoint follows the
// configuration; that of every other plan is taken in any case, since undoing it after a kill needs
// the row.
func (p *Plan) single() bool {
	return len(p.Steps) == 1 && p.Steps[0].Action == Put && p.Steps[0].file.place != nil &&
		p.Steps[0].Before.Kind != checkpoint.Symlink
}

// apply carries out a plan: stage, save, publish, settle. Nothing is to be seen of it before the first step is published.
func (c *Call) apply(ctx context.Context, ts targets, p *Plan) (*Done, error) {
	s := &apply{p: p, done: &Done{Targets: ts}}
	s.c, s.tag, s.live, s.hidden, s.steps, s.moves = c, p.Op.Tag, true, true, make([]record, len(p.Steps)), make([]movement, len(p.Steps))
	defer s.close()
	tell := c.expects(len(s.moves))
	err := s.stageAll(ctx, tell)
	switch {
	case err != nil:
	case p.single(): // both wait for one disk, and mostly for one commit of its journal
		saveErr, syncErr := inParallel(func() error { return s.save(ctx) }, s.sync)
		err = errors.Join(saveErr, syncErr)
	default:
		if err = s.sync(); err == nil {
			err = s.save(ctx)
		}
	}
	for i := 0; err == nil && i < len(s.moves); i++ {
		tell()
		if err = c.fenced(ctx); err == nil { // as late as can be
			s.hidden = s.hidden && s.steps[i].Dir == ""
			s.failed, err = i, s.swap(ctx, i)
		}
	}
	if err == nil {
		err = c.fenced(ctx) // what was published before that is made
	}
	ctx = context.WithoutCancel(ctx)
	if err != nil {
		return nil, s.abort(ctx, err)
	}
	if s.rollback.single() {
		return s.done, s.endSingle(ctx)
	}
	s.failed = len(s.steps)
	if err = s.syncNames(); err == nil {
		if err = s.db.Made(ctx, s.id); err != nil {
			err = notSaved(err)
		}
	}
	if err != nil {
		return nil, s.abort(ctx, err)
	}
	err = s.tidyAll()
	if err == nil {
		err = s.syncNames()
	}
	return s.done, s.end(ctx, err)
}

// endSingle ends a change that one rename has made. From that rename on it is made; where the disk does not confirm that, the next start
// decides.
func (s *apply) endSingle(ctx context.Context) error {
	err := s.tidyAll()
	serr := s.syncNames() // that of the temporary name too
	if serr != nil {
		serr = s.syncNames()
	}
	if serr != nil {
		s.c.left.Store(true)
		return halfMade(serr, s.rollback.paths(), s.id, true)
	}
	return s.end(ctx, err)
}

// stageAll makes the new objects of all steps, complete. An object in a directory that the plan makes is staged in that directory.
func (s *apply) stageAll(ctx context.Context, tell func()) error {
	tops := map[string]int{}
	for i := range s.p.Steps {
		st, m := &s.p.Steps[i], &s.moves[i]
		m.top = -1
		if st.Action == Mkdir || st.Action == Put || st.Action == Link {
			for dir := path.Dir(st.Path); len(dir) > 1 && m.top < 0; dir = path.Dir(dir) {
				if top, ok := tops[dir]; ok {
					m.top = top
				}
			}
			if st.Action == Mkdir && m.top < 0 {
				tops[st.Path] = i
			}
		}
	}
	one := func(i int) error {
		tell()
		return s.stage(ctx, i)
	}
	var rest, dirs []int
	for i := range s.p.Steps {
		if s.p.Steps[i].Action != Mkdir {
			rest = append(rest, i)
		} else if err := one(i); err != nil {
			return err
		} else {
			dirs = append(dirs, i)
		}
	}
	err := each(len(rest), func(k int) error { return one(rest[k]) })
	for _, i := range slices.Backward(dirs) {
		if err == nil {
			err = s.filled(i)
		}
	}
	for i := range s.moves {
		if m := &s.moves[i]; m.top >= 0 && err == nil {
			st, top := &s.p.Steps[i], &s.steps[m.top]
			top.Tree = append(top.Tree, entry{st.Path[len(top.Path)+1:], objectOf(m.made.Info, st.hash())})
		}
	}
	return err
}

// filled gives a staged directory, in which everything is now, the mode that it is to have.
func (s *apply) filled(i int) error {
	st, m := &s.p.Steps[i], &s.moves[i]
	mode := m.made.Info.Mode
	if st.Exact {
		mode = mode&^0o700 | st.After.Mode&0o700
	}
	if err := m.hold.FinishDir(m.made, mode); err != nil {
		return err
	}
	if m.top < 0 {
		s.steps[i].After = objectOf(m.made.Info, "")
	}
	return nil
}

// hash gives the hash of the content that the step brings.
func (s *Step) hash() string {
	switch s.Action {
	case Put, Overwrite:
		return s.file.After.Hash
	case Link:
		return HashOf([]byte(s.After.Target))
	}
	return ""
}

// expects says of how many files a change is. tell counts one of them that was staged, or
// put where it belongs: each is half of a file's way.
func (c *Call) expects(files int) (tell func()) {
	if c.Progress == nil {
		return func() {}
	}
	c.Progress.Total.Store(int64(files))
	var halves atomic.Int64
	return func() { c.Progress.Files.Store(halves.Add(1) / 2) }
}

// inParallel runs both at once. The longer one goes first. On a virtual machine the kernel often
// puts both on one processor, and the second then waits until the first sleeps.
func inParallel(first, second func() error) (error, error) {
	done := make(chan error, 1)
	go func() { done <- second() }()
	err := first()
	return err, <-done
}

// sync puts what is staged on stable storage: files, then the directories that they are in.
func (s *apply) sync() error {
	err := each(len(s.moves), func(i int) error {
		if s.moves[i].hold == nil || s.p.Steps[i].Action == Rename {
			return nil
		}
		return s.moves[i].hold.Sync()
	})
	synced := map[string]bool{}
	for i := range slices.Backward(s.moves) {
		if m := &s.moves[i]; m.top >= 0 && err == nil && !synced[m.hold.ParentTrue()] {
			synced[m.hold.ParentTrue()] = true
			err = m.hold.SyncNames()
		}
	}
	return err
}

// abort ends a change that failed with cause. It takes back the steps that were made.
func (s *apply) abort(ctx context.Context, cause error) error {
	if !s.saved { // nothing was made; of some not even the temporary name
		var left error
		for i := range s.moves {
			if m := &s.moves[i]; m.hold != nil && m.top < 0 && s.p.Steps[i].Action != Rename {
				left = errors.Join(left, s.c.discard(ctx, m.hold, m.made.Info))
			}
		}
		names, _, err := s.c.journal.Names(s.tag) // what could not be staged may have left one too
		if left = errors.Join(left, err); left == nil && s.c.discardAll(ctx, names) == nil {
			s.c.journal.Forget(s.tag)
		}
		return cause
	}
	s.drop()
	switch fenced := s.c.fenced(ctx) != nil; { // others may be taking it back
	case fenced && s.hidden:
		return cause
	case fenced, CutOff(cause) && s.failed == len(s.steps): // or it may be on record as made
		return s.leaveLate(cause)
	}
	outcome := checkpoint.Aborted
	stuck, again := s.rollBack(ctx)
	if stuck != nil {
		outcome = checkpoint.Foreign
	}
	if again != nil {
		s.c.left.Store(true)
	} else {
		s.setOutcome(ctx, outcome)
	}
	if conflict, ok := errors.AsType[*guardfs.ConflictError](cause); ok && conflict.Left == "" {
		conflict.Left = s.left
	}
	if stuck == nil && again == nil {
		return cause
	}
	return halfMade(cause, stuck, s.id, again != nil)
}

// leaveLate leaves to endLate a change of which only the store can tell whether it was made: its lease was over when it was published, or
// the database did not answer whether that is on record.
func (s *apply) leaveLate(cause error) error {
	s.c.late.Store(s.tag, openOp{tag: s.tag, id: s.id, steps: s.steps, db: s.db, late: true})
	return halfMade(cause, s.rollback.paths(), s.id, true)
}

// each runs one for every number below n, several at a time: the syncs of many files then share the
// work of the file system's journal. After a failure no more are begun.
func each(n int, one func(i int) error) error {
	if n <= 4*fewDescriptors {
		for i := range n {
			if err := one(i); err != nil {
				return err
			}
		}
		return nil
	}
	var mu sync.Mutex
	var failed error
	next := 0
	take := func() (i int, ok bool) {
		mu.Lock()
		defer mu.Unlock()
		next++
		return next - 1, failed == nil && next <= n
	}
	var wg sync.WaitGroup
	for range min(n, max(16, 4*runtime.GOMAXPROCS(0))) {
		wg.Go(func() {
			for i, ok := take(); ok; i, ok = take() {
				if err := one(i); err != nil {
					mu.Lock()
					failed = errors.Join(failed, err)
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	return failed
}

// swap makes one step.
func (s *apply) swap(ctx context.Context, i int) (err error) {
	st, m := &s.p.Steps[i], &s.moves[i]
	switch t := st.file; {
	case s.steps[i].Dir == "":
		return nil // it is in a directory that is staged, or is one that goes in the end
	case st.Action == Rename:
		if err := s.recordTrash(ctx, i); err != nil {
			return err
		}
	case m.place != nil:
	case t != nil && t.place != nil:
		m.place = t.place
	default:
		if m.place, err = s.c.placeOf(st.Path); err != nil {
			return err
		}
		if m.own = true; m.place == nil {
			return &guardfs.ConflictError{Path: st.Path,
				Why: guardfs.DirRemoved}
		}
	}
	if st.Action == SetDir {
		now, err := m.place.DirMetadata()
		if err == nil && !rewind.SameMetadata(metaState(now), st.Before.State) {
			err = &guardfs.ConflictError{Path: st.Path, Why: guardfs.ModeChanged}
		}
		if err != nil {
			return err
		}
		s.steps[i].begun = true
		_, err = m.place.SetAttributes(st.Before.ID, *dirMetadata(st.After.State))
		return err
	}
	if t := st.file; st.Action == Overwrite {
		was, werr := t.content()
		is, err := t.After.content()
		if err = cmp.Or(werr, err); err != nil {
			return err
		}
		tr := &s.steps[i]
		tr.was, tr.is = nonNil(was), nonNil(is)
		m.pub, tr.begun, err = m.place.Overwrite(m.was, tr.is)
		return err
	}
	if st.move != nil {
		return s.rename(ctx, st.move, m)
	}
	m.pub, err = m.place.Publish(ctx, m.hold, m.was, m.made.Precondition())
	if t := st.file; err == nil && t != nil && t.unheld { // nobody comes to it by its name any more
		if open, _ := m.hold.Writers(); open {
			return Refuse(Conflicts, "", []Blocked{{Path: t.True, Why: HeldOpen}})
		}
	}
	return err
}

// recordTrash says, right before something goes to the trash or comes back, what that is and where it
// goes.
func (s *apply) recordTrash(ctx context.Context, i int) (err error) {
	mv, m := s.p.Steps[i].move, &s.moves[i]
	if name := mv.comesTo(); mv.to == nil {
		if mv.to, err = s.c.openAt(name); err != nil {
			return err
		}
		m.hold = mv.to
	}
	switch {
	case mv.To != "" || mv.fresh != nil:
		return nil
	case !mv.Back:
		if err := s.c.setOwn(sidecarOf(mv.Entry.Parked), mv.Entry.Sidecar()); err != nil {
			return noTrash(mv.Path, err)
		}
		return nil
	}
	err = s.db.TrashSettle(ctx, mv.Entry.ID, false)
	if errors.Is(err, checkpoint.ErrNotFound) { // it has expired just now
		return Refuse(NotStored, mv.Path, NotInTrash)
	}
	if err != nil {
		return notSaved(err)
	}
	return nil
}

// rename makes the step that moves mv. The content of a directory is compared with the plan while it has a
// name of ours, to which no call comes: in the trash, or between its two names in the tree.
func (s *apply) rename(ctx context.Context, mv *Move, m *movement) (err error) {
	look := func(at *guardfs.Entry) {
		if err == nil {
			err = lookIntoHeld(s.c.Engine, ctx, mv, at.Object().True)
		}
	}
	switch {
	case mv.Back:
		if look(m.place); err == nil {
			m.pub, err = m.place.Publish(ctx, m.hold, m.was, guardfs.Precondition{})
		}
	case mv.To == "":
		if m.pub, err = m.place.Publish(ctx, m.hold, m.was, guardfs.Precondition{}); err != nil {
			err = noTrash(mv.Path, err)
		}
		look(m.hold)
	default: // over our own name: what leaves a user's name is looked at there
		_, err = m.place.Publish(ctx, mv.mid, m.was, guardfs.Precondition{})
		if look(mv.mid); err == nil {
			m.pub, err = m.hold.Publish(ctx, mv.mid, guardfs.Precondition{}, m.was)
		}
	}
	return err
}

// syncNames puts the names on stable storage, one directory after the other.
func (s *apply) syncNames() error {
	synced := map[string]bool{}
	for i := range s.moves {
		m := &s.moves[i]
		if m.hold == nil || m.top >= 0 {
			continue
		}
		for _, place := range []*guardfs.Entry{m.place, m.hold} {
			if dir := place.ParentTrue(); !synced[dir] {
				if err := place.SyncNames(); err != nil {
					return err
				}
				synced[dir] = true
			}
		}
	}
	return nil
}

// tidyAll removes what the change has displaced.
func (s *apply) tidyAll() error {
	var errs []error
	for i := range slices.Backward(s.moves) {
		m := &s.moves[i]
		if s.steps[i].Dir == "" || m.hold == nil || s.p.Steps[i].Action == Rename {
			continue
		}
		err := m.hold.Drop(m.pub.Displaced)
		if inUse(err) { // somebody put something into the directory as it went
			_, err = m.hold.Preserve()
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// end brings a change to its end that was made. left is why temporary names are still there. The error is that directories are left of it
// because nobody is there to remove them. The next recovery does.
func (s *apply) end(ctx context.Context, left error) error {
	for i := range s.moves {
		m := &s.moves[i]
		if mv := s.p.Steps[i].move; mv != nil {
			s.done.Moved = append(s.done.Moved, *mv)
			continue
		}
		t := s.p.Steps[i].file
		if t == nil || m.hold == nil && m.pub == nil {
			continue
		}
		if t.Published = m.pub; m.hold == nil {
			continue
		}
		if m.top >= 0 {
			m.pub = &guardfs.Published{True: t.True, Info: m.made.Info}
		}
		if m.pub.Dropped = m.made.Dropped; s.p.Steps[i].Action == Remove {
			m.pub.LinksBroken = 0 // the other names are as they were
		}
		t.Published = m.pub
	}
	s.done.Made = s.p.of(Mkdir)
	var optional []string
	for i := range s.steps {
		if tr := &s.steps[i]; tr.Dir == "" && tr.Before.ID != "" {
			optional = append(optional, tr.Path)
		}
	}
	if errors.Is(left, guardfs.ErrUnavailable) && optional != nil {
		s.c.left.Store(true)
		return left
	}
	s.done.Kept = s.c.drop(optional)
	s.done.Dropped = slices.DeleteFunc(s.p.of(Rmdir), func(d string) bool {
		return slices.ContainsFunc(s.done.Kept, func(k Blocked) bool { return k.Path == d })
	})
	if left = errors.Join(left, s.settleTrash(ctx)); left == nil {
		s.setOutcome(ctx, checkpoint.Committed)
	}
	if err := s.c.fenced(ctx); err != nil { // the database may have said so just now: others have taken it for one that was not made
		return s.leaveLate(err)
	}
	if left != nil { // another start removes what is left, as the row says
		s.c.left.Store(true)
		s.c.logger.Warn("temporary names of a change are left", "id", s.id, "err", left)
	}
	return nil
}

// setOutcome writes outcome o to the checkpoint of the change, if it has one. Committed costs nothing.
func (s *apply) setOutcome(ctx context.Context, o checkpoint.Outcome) {
	if s.id == "" {
		s.c.journal.Forget(s.tag)
		return
	}
	if err := s.db.Settle(ctx, s.id, o); err != nil {
		s.c.logger.Error("what became of a change could not be written to its checkpoint", "id", s.id,
			"outcome", o, "err", err)
	}
}

func (s *apply) close() {
	s.drop()
	for i := range s.moves {
		if m := &s.moves[i]; m.own && m.place != nil {
			m.place.Close() //nolint:errcheck // nothing was written through it
		}
	}
}

// drop closes what is staged.
func (s *apply) drop() {
	for i := range s.moves {
		if m := &s.moves[i]; m.hold != nil && s.p.Steps[i].Action != Rename && !m.closed {
			m.hold.Close() //nolint:errcheck // what it holds is synced, or is not wanted
			m.closed = true
		}
	}
}

// object gives the object that a step makes.
func (s *Step) object() guardfs.NewObject {
	switch s.Action {
	case Put:
		t := s.file
		o := guardfs.NewObject{Kind: guardfs.KindFile, Content: t.After.Content, Meta: t.After.Meta}
		if o.Sync = true; kind(s.Before) == checkpoint.File && t.After.Meta == nil {
			o.Like = t.Before
		}
		return o
	case Link:
		return guardfs.NewObject{Kind: guardfs.KindSymlink, Content: []byte(s.After.Target)}
	case Mkdir:
		if s.Exact {
			meta := dirMetadata(s.After.State)
			meta.Mode |= 0o700 // until everything is in it
			return guardfs.NewObject{Kind: guardfs.KindDir, Meta: meta}
		}
		mode := s.After.Mode
		if mode.Perm() == 0 { // nobody knows it
			mode = unopened
		}
		return guardfs.NewObject{Kind: guardfs.KindDir, Mode: mode}
	}
	return guardfs.NewObject{}
}

// stage makes what a step brings, complete, under a temporary name in the nearest directory above
// its path that is there.
func (s *apply) stage(ctx context.Context, i int) error {
	st, m, tr := &s.p.Steps[i], &s.moves[i], &s.steps[i]
	if m.top >= 0 {
		return s.stageBelow(ctx, i)
	}
	tr.N, tr.Do, tr.Path = i, st.Action, st.Path
	if st.Action == Rename {
		return s.stageRename(i)
	}
	if st.Action == Rmdir {
		return s.stageRmdir(i)
	}
	if st.Action == SetDir {
		tr.Dir, tr.Before = path.Dir(st.Path), object{ID: st.Before.ID.Lasting(), Kind: guardfs.KindDir}
		tr.Was, tr.Is = dirMetadata(st.Before.State), dirMetadata(st.After.State)
		return nil
	}
	var at *guardfs.Entry
	if t := st.file; t != nil {
		if at = t.place; t.place != nil && kind(st.Before) != checkpoint.Absent {
			info, err := t.place.CopyUp()
			if err != nil {
				return err
			}
			t.Before.Info.ID = info.ID
			m.was, tr.Before = guardfs.Found(t.Before), objectOf(t.Before.Info, t.Before.Hash)
		}
	}
	if st.Action == Overwrite {
		tr.Dir, tr.After = at.ParentTrue(), object{Kind: guardfs.KindFile, Hash: st.hash()}
		return nil
	}
	if at == nil {
		foreseen, name, err := s.c.fs.NearestEntry(st.Path)
		if err != nil {
			return err
		}
		defer foreseen.Close() //nolint:errcheck // nothing was written through it
		if name != st.Path {
			return &guardfs.ConflictError{Path: st.Path,
				Why: guardfs.LinkInTheWay, Fact: name}
		}
		at = foreseen
	}
	if err := s.stageObject(ctx, i, at, guardfs.TempName(s.tag, i)); err != nil {
		return err
	}
	tr.Dir, tr.After = at.ParentTrue(), objectOf(m.made.Info, st.hash())
	return nil
}

// stageBelow makes what a step brings in a directory that is staged.
func (s *apply) stageBelow(ctx context.Context, i int) error {
	m := &s.moves[i]
	top := s.moves[m.top].hold
	at, err := s.c.trash.EntryLink(path.Join(top.ParentTrue(), top.Base()) + s.p.Steps[i].Path[len(s.p.Steps[m.top].Path):])
	if err != nil {
		return err
	}
	defer at.Close() //nolint:errcheck // nothing was written through it
	return s.stageObject(ctx, i, at, at.Base())
}

// stageObject makes what the i-th step brings, under the name base in the directory of at.
func (s *apply) stageObject(ctx context.Context, i int, at *guardfs.Entry, base string) (err error) {
	st, m := &s.p.Steps[i], &s.moves[i]
	what := st.object()
	what.Open = s.p.single()
	if st.file != nil && st.file.After.stored != nil {
		if what.Content, err = st.file.After.content(); err != nil {
			return err
		}
	}
	if st.file != nil && st.file.After.From != nil {
		if what.Source, err = s.c.source(st.file.After.From); err != nil {
			return err
		}
		defer what.Source.Close() //nolint:errcheck // nothing was written through it
		what.Size = st.file.After.From.size
	}
	if m.hold, m.made, err = at.Stage(ctx, base, what); err != nil {
		return fmt.Errorf("writing beside %s: %w", st.Path, err)
	}
	if t := st.file; t != nil {
		if what.Source != nil {
			t.After.Hash = m.made.Hash
		}
		if t.fresh = m.made.Meta; t.place == nil {
			t.above = m.hold
		}
	}
	if what.Kind == guardfs.KindDir && m.made.Dropped != nil {
		s.c.logger.Warn("a directory that came back did not get all that it had", "path", st.Path,
			"lost", m.made.Dropped)
	}
	return nil
}

// stageRename readies a step that moves something: to the trash, back from there, or to another name.
func (s *apply) stageRename(i int) (err error) {
	mv, m, tr := s.p.Steps[i].move, &s.moves[i], &s.steps[i]
	switch {
	case mv.To != "":
		if mv.info, err = mv.from.CopyUp(); err == nil {
			mv.mid, _, err = mv.from.Stage(context.Background(), guardfs.TempName(s.tag, i), guardfs.NewObject{})
		}
		tr.Path, tr.To = mv.Path, mv.To
	case mv.Back:
		if mv.fresh != nil {
			err = mv.fresh()
		}
		if mv.info.Kind == guardfs.KindDir {
			tr.Names = HashOf([]byte(mv.in.names))
		}
		tr.Path, tr.To = mv.Entry.Parked, mv.Path
	default:
		err = s.c.readySlot(mv)
		tr.Path, tr.To = mv.Path, mv.Entry.Parked
	}
	tr.Dir, tr.Before = path.Dir(tr.Path), objectOf(mv.info, "")
	m.place, m.hold = mv.from, mv.to // which may have to be made
	m.made, m.was = &guardfs.Staged{}, guardfs.Precondition{ID: mv.info.ID}
	return err
}

// stageRmdir looks at a directory that goes in the end. One that is gone by now is passed over.
func (s *apply) stageRmdir(i int) (err error) {
	st, m := &s.p.Steps[i], &s.moves[i]
	if m.before, err = s.c.dirState(st.Path); err != nil {
		return err
	}
	place, err := s.c.placeOf(st.Path)
	if place == nil || err != nil {
		return err
	}
	defer place.Close() //nolint:errcheck // nothing was written through it
	if place.Object().Info.Kind == guardfs.KindDir {
		s.steps[i].Before = objectOf(place.Object().Info, "")
	}
	return nil
}

// source opens what a content comes from. It is no other file by now, nor changed.
func (c *Call) source(f *From) (*guardfs.File, error) {
	file, err := c.openSame(f.path, f.info.ID)
	if err != nil {
		return nil, err
	}
	now := file.Info()
	if now.Size != f.info.Size || !now.ModTime.Equal(f.info.ModTime) ||
		!now.ChangeTime.Equal(f.info.ChangeTime) {
		file.Close() //nolint:errcheck // nothing was written through it
		return nil, &guardfs.ConflictError{Path: f.path, Why: guardfs.ContentChanged}
	}
	return file, nil
}

// all gives the changes for the checkpoint: of each path the state before all steps,
// and what is after.
func (s *apply) all() []checkpoint.Change {
	var made, gone []checkpoint.Change
	out := make([]checkpoint.Change, 0, len(s.p.Steps))
	for i := range s.p.Steps {
		st, m := &s.p.Steps[i], &s.moves[i]
		switch {
		case st.Action == Mkdir:
			made = append(made, checkpoint.Change{Path: st.Path, Role: checkpoint.RoleParent,
				After: m.dirAfter(st)})
		case st.Action == SetDir:
			gone = append(gone, checkpoint.Change{Path: st.Path, Role: "target", Before: st.Before.State, After: st.After.State})
		case st.Action == Rmdir && m.before.Kind == checkpoint.Dir:
			gone = append(gone, checkpoint.Change{Path: st.Path, Role: checkpoint.RoleParent,
				Before: m.before})
		}
	}
	for _, t := range targets(s.done.Targets).changing() {
		if !t.unrecorded {
			out = append(out, change(t))
		}
	}
	for i := range s.p.Steps {
		if mv := s.p.Steps[i].move; mv != nil {
			for _, ch := range moveChanges(mv) {
				out = follow(out, ch)
			}
		}
	}
	// A list names what moved, not what it was moved over.
	slices.SortStableFunc(out, func(a, b checkpoint.Change) int { return min(len(b.To), 1) - min(len(a.To), 1) })
	for _, ch := range made {
		if i := slices.IndexFunc(out, func(c checkpoint.Change) bool { return c.Path == ch.Path }); i >= 0 {
			out[i].After = ch.After // what was there has gone before
		} else {
			out = append(out, ch)
		}
	}
	return append(out, gone...)
}

// follow adds the change of a later step of the same plan. A path that one thing leaves and another comes to has one change.
func follow(out []checkpoint.Change, ch checkpoint.Change) []checkpoint.Change {
	i := slices.IndexFunc(out, func(c checkpoint.Change) bool { return c.Path == ch.Path })
	if i < 0 {
		return append(out, ch)
	}
	was := &out[i]
	if was.Role != roleTree { // a file that a program put where another thing has gone before
		ch.After, ch.AfterContent = was.After, was.AfterContent
		*was = ch
		return out
	}
	was.After = ch.After
	if ch.Trash != nil {
		was.Trash = ch.Trash
	}
	if ch.To != "" || ch.From != "" || was.Moved == (checkpoint.Moved{}) {
		was.Moved = ch.Moved
	}
	return out
}

// dirAfter gives the state of a directory that the step makes.
func (m *movement) dirAfter(st *Step) checkpoint.State {
	got := m.made.Meta
	if st.Exact {
		as := *dirMetadata(st.After.State)
		got = m.hold.Expected(as)
		got.Mode |= as.Mode & (fs.ModeSetuid | fs.ModeSetgid)
	}
	return checkpoint.State{Kind: checkpoint.Dir, Mode: got.Mode, UID: got.UID, GID: got.GID,
		Xattrs: got.Xattrs}
}

// save puts the states before and after on record, with the steps: what is found half-way from here
// on can be taken back.
func (s *apply) save(ctx context.Context) error {
	c := s.c
	if s.p.single() && !s.p.Checkpoint && !c.cfg.CheckpointBeforeMutation {
		var err error
		if len(s.steps) > 0 { // else the disk tells nothing
			line, merr := json.Marshal(&s.steps[0])
			if err = merr; err == nil {
				err = c.journal.Note(s.tag, string(line))
			}
		}
		s.saved = err == nil
		return err
	}
	if t := s.done.Targets; len(t) > 0 { // of what was not in memory it is known now
		c.Trace.After = t[0].After.Hash
	}
	op := s.p.Op
	op.Tool, op.Principal, op.Session, op.Turn, op.Time = c.Tool, c.Principal, c.Session, c.Turn,
		c.now()
	op.Run = c.Run
	s.noteView()
	op.Changes, op.Steps = s.all(), s.encode()
	db, err := c.checkpoints.open()
	var saved checkpoint.Saved
	if err == nil {
		saved, err = db.Save(ctx, op) // nobody holds op from here on: it takes as much memory again as the plan
	}
	if err != nil {
		return notSaved(err)
	}
	changes := s.all()
	s.db, s.id, s.saved = db, saved.ID, true
	c.journal.Forget(s.tag) // the row has its names
	missing, over := map[string]bool{}, s.p.of(Overwrite)
	for _, skip := range saved.Skipped {
		if missing[skip.Path] = true; slices.Contains(over, skip.Path) {
			return Refuse(NotStored, skip.Path, Unstored.Of(skip.Why))
		}
		if skip.Why != checkpoint.SkipParked {
			s.done.Skipped = skip.Why
		}
	}
	for i := range s.p.Steps {
		for _, t := range saved.Trashed {
			if mv := s.p.Steps[i].move; mv != nil && mv.To == "" && !mv.Back && mv.Path == t.Path {
				mv.Entry = t
			}
		}
	}
	s.before = make(map[string]before, len(changes))
	for i := range changes {
		ch := &changes[i]
		s.before[ch.Path] = before{ch.Before, !missing[ch.Path] || ch.Role == checkpoint.RoleAppended}
	}
	if s.p.Whole {
		if lost := unsaved(changes, saved.Skipped); lost != nil {
			return Refuse(NotStored, lost.Path, Unstored.Of(lost.Why))
		}
	} else if s.done.Skipped == "" {
		s.done.Skipped = c.newNotBackedUp(s.done.Targets)
	}
	s.done.Checkpoint, c.Trace.Checkpoint = string(s.id), string(s.id)
	s.done.Trashed = saved.Trashed
	return nil
}

// encode gives the steps for the row of the operation.
func (p *rollback) encode() []byte {
	out := append(make([]byte, 0, 300*len(p.steps)), '[') // mostly enough: to make room takes several times that
	for i := range p.steps {
		if p.steps[i].Do == "" {
			continue
		}
		row, err := json.Marshal(&p.steps[i])
		if err != nil {
			panic(err) // it is made of strings and numbers
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(out, row...)
	}
	return append(out, ']')
}

// recordClosedDirs records the closed directories above these paths, once a turn. It is for later,
// so an error is only logged.
func (c *Call) recordClosedDirs(ctx context.Context, paths ...string) {
	if !c.cfg.CheckpointBeforeMutation {
		return
	}
	if err := c.storeDirs(ctx, paths); err != nil {
		c.logger.Warn("the modes of directories could not be kept", "err", err)
	}
}

func (c *Call) storeDirs(ctx context.Context, paths []string) error {
	var closed []string
	o := &c.outside
	for _, p := range paths {
		for dir := path.Dir(p); len(dir) > 1; dir = path.Dir(dir) {
			if root := c.cfg.WorkspaceRoot; root != "" && !below(dir, root) ||
				root == "" && dir != path.Dir(p) {
				break // what holds all the work is not removed and brought back
			}
			o.mu.Lock()
			done := o.dirs[dir]
			if !done {
				if o.dirs == nil || len(o.dirs) > maxLooks {
					o.dirs = map[string]bool{}
				}
				o.dirs[dir] = true
			}
			o.mu.Unlock()
			if done { // and so are those above
				break
			}
			place, err := c.fs.Entry(dir)
			if err != nil {
				break // policy lets nobody make directories from here up
			}
			i := place.Object().Info
			place.Close()
			if i.Kind == guardfs.KindDir && i.Mode.Perm()&0o055 != 0o055 {
				closed = append(closed, dir)
			}
		}
	}
	if closed == nil {
		return nil
	}
	db, err := c.checkpoints.open()
	if err != nil {
		return err
	}
	op := checkpoint.Op{Kind: checkpoint.KindRead, Principal: c.Principal, Session: c.Session,
		Turn: c.Turn, Time: c.now()}
	for _, dir := range closed {
		now, err := c.dirState(dir)
		if err != nil {
			return err
		}
		if last, known, err := db.LastDir(ctx, dir); err != nil || known && last == now.Mode {
			if err != nil {
				return err
			}
			continue
		}
		op.Changes = append(op.Changes,
			checkpoint.Change{Path: dir, Role: checkpoint.RoleParent, Before: now, After: now})
	}
	if op.Changes != nil {
		_, err = db.Save(ctx, op)
	}
	return err
}

// extend carries out a plan that appends to a file in place: save, append, look. From the moment
// that a byte is there the change is only ever brought to its end.
func (c *Call) extend(ctx context.Context, ts targets, p *Plan) (*Done, error) {
	t := p.Steps[0].file
	info, err := t.place.CopyUp()
	if err != nil {
		return nil, err
	}
	s := &apply{rollback: rollback{c: c, tag: p.Op.Tag}, p: p, done: &Done{Targets: ts}, moves: make([]movement, 1)}
	s.steps = []record{{Do: Append, Path: t.True, Before: objectOf(info, "")}}
	lasting := context.WithoutCancel(ctx)
	if err = s.save(ctx); err == nil {
		err = c.fenced(ctx)
	}
	var made guardfs.Appended
	if err == nil {
		made, err = t.place.Append(info.ID, t.added())
	}
	if err == nil {
		err = c.fenced(ctx)
	}
	switch {
	case err != nil && made.Bytes == 0 && !errors.Is(err, guardfs.ErrUnavailable):
		s.setOutcome(lasting, checkpoint.Aborted)
		return nil, err
	case err != nil: // the next call looks, and appends the missing part
		c.left.Store(true)
		return nil, halfMade(err, []string{t.True}, s.id, true)
	}
	t.Published = &guardfs.Published{True: t.True, Info: made.Info}
	s.setOutcome(lasting, checkpoint.Committed)
	return s.done, nil
}

// added are the bytes that go to the end of the file.
func (t *Target) added() []byte {
	if t.After.Tail {
		return t.After.Content
	}
	return t.After.Content[len(t.After.Content)-t.After.add:]
}

// rememberTail counts what the session appended as seen. It is known by size and times from then
// on. Where others appended at the same time nothing is noted: then the file has changed.
func (c *Call) rememberTail(t *Target) error {
	if t.Published == nil ||
		t.Published.Info.Size != t.Before.Info.Size+int64(len(t.added())) {
		return nil
	}
	sight := &ReadRecord{Unit: "byte", Lines: -1}
	if seen := t.Known.Seen; seen != nil {
		sight.Unit, sight.Lines, sight.Ranges = seen.Unit, seen.Lines, seen.Ranges
		sight.Whole = seen.Whole && !t.Known.Stale
	}
	return c.remember(guardfs.Object{True: t.True, Info: t.Published.Info}, sight)
}

// store carries out a plan whose text goes to the client: save, look once more, hand over. A client
// may not be able to take it only over the text that it had, so the last look is right before.
func (c *Call) store(ctx context.Context, ts targets, p *Plan) (*Done, error) {
	t := p.Steps[0].file
	s := &apply{rollback: rollback{c: c, tag: p.Op.Tag}, p: p, done: &Done{Targets: ts}, moves: make([]movement, 1)}
	// There are no steps: the disk tells nothing, and recovery takes the change for made.
	lasting := context.WithoutCancel(ctx) // a call that was given up has an outcome too
	err := s.save(ctx)
	if err == nil {
		text, held, lerr := c.held(ctx, t.True)
		if err = lerr; err == nil && (!held || HashOf(text) != t.Before.Hash) {
			err = &guardfs.ConflictError{Path: t.True, Why: guardfs.ContentChanged}
		}
	}
	if err != nil {
		s.setOutcome(lasting, checkpoint.Aborted)
		return nil, err
	}
	old, text := string(t.Before.Content), string(t.After.Content)
	_, sure, err := asked(ctx, t.True, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, c.Overlay.Store(ctx, t.True, old, text)
	})
	if err != nil {
		text, held, lerr := c.held(lasting, t.True)
		switch is := HashOf(text); {
		case lerr == nil && held && is == t.After.Hash:
		case lerr == nil && held && is == t.Before.Hash && sure:
			s.setOutcome(lasting, checkpoint.Aborted)
			return nil, err
		default: // nobody can tell, or it may still come
			s.setOutcome(lasting, checkpoint.Foreign)
			return nil, halfMade(err, []string{t.True}, s.id, false)
		}
	}
	t.Published = &guardfs.Published{True: t.True}
	t.Published.Info = heldInfo(t.Before.Info, t.True, t.After.Content)
	s.setOutcome(lasting, checkpoint.Committed)
	return s.done, nil
}

// halfMade is the error of a change that failed with cause and of which these paths could not be
// taken back. again says that recovery tries again.
func halfMade(cause error, left []string, id checkpoint.ID, again bool) error {
	left = slices.Clone(left)
	slices.Sort(left)
	r := &Refusal{Code: HalfMade.Code, Cause: HalfMade, Facts: HalfFacts{cause, slices.Compact(left),
		string(id), again}}
	if of := Reason(cause); of != nil {
		r.Code = of.Code
	}
	return r // its cause is no Err of it: an answer of that alone says that nothing was changed
}

// Why a checkpoint lacks the new content of a change, though it has the old one. As long as that
// new content is in place no restore overwrites it, because it could not be brought back.
const (
	SkippedNewTooLarge = "new_content_too_large" // above max_file_bytes
	SkippedNewExcluded = "new_content_excluded"
)

// newNotBackedUp finds a new content that the store can't or must not hold; "" when there is none.
func (e *Engine) newNotBackedUp(ts targets) string {
	for _, t := range ts.changing() {
		switch {
		case t.After.Kind != guardfs.KindFile ||
			t.After.From == nil && e.storable(t.True, t.After.size()):
		case e.excluded(t.True):
			return SkippedNewExcluded
		default:
			return SkippedNewTooLarge
		}
	}
	return ""
}

// unsaved finds a content that the change destroys: it is neither in the checkpoint nor in the
// trash. nil when there is none.
func unsaved(changes []checkpoint.Change, skipped []checkpoint.Skip) *checkpoint.Skip {
	for i := range skipped {
		for _, c := range changes {
			if c.Path == skipped[i].Path && c.Skipped != checkpoint.SkipParked && !c.Before.Same(c.After) {
				return &skipped[i]
			}
		}
	}
	return nil
}

// dirState is the state of a directory, which is recorded because it may have to come back.
func (c *Call) dirState(dir string) (checkpoint.State, error) {
	place, err := c.placeOf(dir)
	if place == nil || err != nil {
		return checkpoint.State{Kind: checkpoint.Absent}, err
	}
	defer place.Close() //nolint:errcheck // nothing was written through it
	if place.Object().Info.Kind != guardfs.KindDir {
		return checkpoint.State{Kind: checkpoint.Absent}, nil
	}
	m, err := place.DirMetadata()
	return checkpoint.State{Kind: checkpoint.Dir, Mode: m.Mode, UID: m.UID, GID: m.GID, Xattrs: m.Xattrs}, err
}

// change is the change of a target, for the checkpoint.
func change(t *Target) checkpoint.Change {
	ch := checkpoint.Change{Path: t.True, Role: "target", Before: state(t.Before)}
	if t.After.Tail || t.After.cut != nil {
		ch.Before.Hash = "" // there is none of what it becomes
		ch.Role, ch.After, ch.Tail = checkpoint.RoleAppended, ch.Before, t.After.Content
		ch.After.ModTime, ch.After.Size = time.Time{}, ch.Before.Size+int64(len(ch.Tail))
		if t.After.cut != nil {
			ch.Tail, ch.After.Size = t.After.cut, t.After.From.size
		}
		return ch
	}
	if t.Before.Exists && t.Before.Info.Kind == guardfs.KindFile {
		ch.Content = t.Before.Content
		if ch.Content == nil && t.stored == nil {
			ch.Content = []byte{} // an empty file is a content
		}
		if t.Unsaved() {
			ch.Role, ch.Content = roleBuffer, append([]byte{}, t.raw(ch.Content)...)
			ch.Before.Hash, ch.Before.Size = HashOf(ch.Content), int64(len(ch.Content))
		}
	}
	switch t.After.Kind {
	case guardfs.KindFile:
		meta := t.metaAfter()
		ch.After = checkpoint.State{Kind: checkpoint.File, Mode: meta.Mode, UID: meta.UID, GID: meta.GID,
			Xattrs: meta.Xattrs, Size: t.After.size(), Hash: t.After.Hash}
		ch.AfterContent = t.After.Content
		if ch.AfterContent == nil && t.After.From == nil && t.After.stored == nil {
			ch.AfterContent = []byte{}
		}
		if t.Unsaved() {
			ch.AfterContent = t.raw(ch.AfterContent)
			ch.After.Hash, ch.After.Size = HashOf(ch.AfterContent), int64(len(ch.AfterContent))
		}
	case guardfs.KindSymlink:
		ch.After = checkpoint.State{Kind: checkpoint.Symlink, Target: t.After.Target}
	default:
		ch.After = checkpoint.State{Kind: checkpoint.Absent}
	}
	return ch
}

// metaAfter is the metadata that the file will have. It waits for the temporary file, not for its
// content.
func (t *Target) metaAfter() guardfs.Metadata {
	switch {
	case t.InPlace:
		return t.Before.Meta
	case t.After.Meta != nil && t.place == nil:
		return t.above.Expected(*t.After.Meta)
	case t.After.Meta != nil:
		return t.place.Expected(*t.After.Meta)
	case !t.Before.Exists: // the system, not we, chooses it
		return t.fresh
	}
	return t.place.Expected(*metadata(state(t.Before)))
}

// unopened is the mode of a directory of which nobody knows what it had.
const unopened = 0o700

// removeEmpty removes a directory if it is empty. Unless lasting is "", it must be that object. A
// directory that is gone is no error.
func (c *Call) removeEmpty(dir, lasting string) error {
	for try := 0; ; try++ {
		place, err := c.fs.EntryLink(dir)
		if _, ok := errors.AsType[*guardfs.MissingParentError](err); ok ||
			errors.Is(err, syscall.ENOTDIR) {
			return nil
		}
		if errors.Is(err, guardfs.ErrUnavailable) && try == 0 { // another worker may be there by now
			continue
		}
		if err != nil {
			return err
		}
		o := place.Object()
		switch {
		case o.True != dir:
			err = errNotOurs
		case o.Info.Kind == guardfs.KindAbsent:
			place.Close()
			return nil
		case o.Info.Kind != guardfs.KindDir || lasting != "" && o.Info.ID.Lasting() != lasting:
			err = errNotOurs
		default:
			if err = place.RemoveEmptyDir(); err == nil {
				if err := place.SyncNames(); err != nil {
					c.logger.Warn("the removal of a directory could not be synced", "path", dir, "err", err)
				}
			}
		}
		place.Close()
		if err == nil || errors.Is(err, errNotOurs) || inUse(err) || try > 0 {
			return err
		}
		// It may be gone all the same: some file systems report failures of calls that took effect.
	}
}

// drop removes directories that are empty, innermost first, and lists those that stay.
func (c *Call) drop(dirs []string) (kept []Blocked) {
	for _, d := range dirs {
		err := c.removeEmpty(d, "")
		switch {
		case err == nil:
		case inUse(err):
			kept = append(kept, Blocked{Path: d, Why: InUse, Err: err})
		default:
			c.logger.Warn("a directory could not be removed", "path", d, "err", err)
			kept = append(kept, Blocked{Path: d, Why: NotRemoved.Of(said(err)), Err: err})
		}
	}
	return kept
}

// said is the error of the system.
func said(err error) error {
	if pe, ok := errors.AsType[*guardfs.PathError](err); ok {
		return pe.Err
	}
	if fixed, ok := errors.AsType[*guardfs.FixedError](err); ok {
		return fixed.Err
	}
	return err
}

// rememberChange counts what the session wrote as seen. The change has
// happened: a ledger that can't be written costs a re-read, not the answer.
func (c *Call) rememberChange(ts targets, moves []*Move) {
	var errs []error
	for _, t := range ts {
		if t.Published == nil || t.After.Kind != guardfs.KindFile {
			continue
		}
		name, hash := t.After.encoding, t.After.Hash
		if name == "" {
			name, hash = t.Known.encoding, "" // as long as the content does not say otherwise
		}
		errs = append(errs, c.rememberEncoding(guardfs.Object{True: t.Published.True, Info: t.Published.Info}, hash, name))
	}
	if c.ledger == nil {
		ts, moves = nil, nil
	}
	came := func(t *Target) bool {
		return slices.ContainsFunc(moves, func(mv *Move) bool { return mv.To != "" && (t.True == mv.To || below(t.True, mv.To)) })
	}
	for _, mv := range moves {
		switch {
		case mv.To != "":
			errs = append(errs, c.ledger.Forget(c.key(), mv.To), c.rememberMoved(mv))
		case !mv.Back && mv.info.Kind != guardfs.KindDir:
			errs = append(errs, c.ledger.Forget(c.key(), mv.Path))
		}
	}
	for _, t := range ts {
		var err error
		switch {
		case came(t), t.run && t.After.Kind == guardfs.KindFile: // what was read of it is stale by now
		case t.After.Kind != guardfs.KindFile:
			err = c.ledger.Forget(c.key(), t.True)
		case t.After.Tail, t.After.add > 0 && t.Published != nil && t.Published.Info.Size != t.After.size():
			err = c.rememberTail(t)
		case t.Published != nil:
			o := guardfs.Object{True: t.Published.True, Info: t.Published.Info}
			// An edit of a file of which a part was seen does not show the rest.
			seen := t.Known.Seen
			whole := t.rules.Read == ReadWhole || !t.Before.Exists ||
				seen != nil && seen.Whole && !t.Known.Stale
			is, cerr := t.After.content()
			sight := &ReadRecord{Hash: t.After.Hash, Unit: "line", Lines: lines(is), Whole: whole}
			if t.After.From != nil || cerr != nil {
				sight.Unit, sight.Lines = "byte", -1
				err = c.remember(o, sight)
				break
			}
			// Cells and pages are not lines, and lines that moved may not be those that were seen.
			if !whole && t.After.Shown != nil {
				*sight = *t.After.Shown
				sight.Hash, sight.Whole = t.After.Hash, false
			} else if !whole && seen != nil && (seen.Unit == "line" || seen.Unit == "") &&
				sight.Lines == seen.Lines {
				sight.Ranges = seen.Ranges
			}
			if !c.cfg.CheckpointBeforeMutation { // else the store has it
				c.Keep(o.True, t.After.Hash, is)
			}
			err = c.remember(o, sight)
		}
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		c.logger.Warn("the read ledger could not be written; the file counts as unread", "err", err)
	}
}

// rememberMoved has the session know under the new names what it knew under the old ones.
func (c *Call) rememberMoved(mv *Move) error {
	all, err := c.ledger.Latest(c.key(), math.MaxInt)
	for _, s := range all {
		top := s.Path == mv.Path
		if !top && !below(s.Path, mv.Path) {
			continue
		}
		err = errors.Join(err, c.ledger.Forget(c.key(), s.Path))
		s.Path = mv.newName(s.Path)
		o, _, lerr := c.fs.Lstat(s.Path)
		if lerr != nil || s.Hash == "" && !top { // of what has no hash only the times tell, and nobody compared them
			continue
		}
		if s.ID = o.Info.ID.String(); s.Hash == "" {
			s.Stamp = stamp(o.Info, "")
		}
		err = errors.Join(err, c.ledger.Saw(c.key(), s))
	}
	return err
}

// lines counts as Read does: a final newline makes no extra line.
func lines(content []byte) int {
	n := bytes.Count(content, []byte("\n"))
	if len(content) > 0 && content[len(content)-1] != '\n' {
		n++
	}
	return n
}

// Rewrite changes one file, or makes it: next says by After what becomes of it. It must be pure.
func (c *Call) Rewrite(ctx context.Context, path string, r Rules, p Plan,
	next func(*Target) error) (*Done, error) {
	return c.Change(ctx, func(_ context.Context, d *Planner) (*Plan, error) {
		t, err := d.Load(path, r)
		if err == nil {
			err = next(t)
		}
		if err != nil {
			return nil, err
		}
		return d.plan(p)
	})
}
