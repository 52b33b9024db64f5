package engine

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io/fs"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"moltisfs/checkpoint"
	"moltisfs/internal/guardfs"
)

// apply is a plan on its way: stage all, save, sync, swap each, sync the directories, commit. Until
// then everything that was there is in its hold, and comes back if anything fails; after it the
// holds go.
type apply struct {
	rollback
	c     *Call
	p     *Plan
	done  *Done
	moves []movement
	gone  map[string]bool // what goes, and what is in it with it
	db    *checkpoint.DB
	id    checkpoint.ID // "" until it is saved

	staged bool
}

// A movement is a step with its two names open.
type movement struct {
	place, hold *guardfs.Place
	own         bool // place is not that of the target
	made        *guardfs.Made
	was         guardfs.Expect
	before      checkpoint.State // of a directory that goes
	pub         *guardfs.Published
	mode        fs.FileMode // of a file that is closed until it is in its directory
}

// single says that a plan puts one file where its directory is there. Its checkpoint follows the
// configuration; that of every other plan is taken in any case, since undoing it after a kill needs
// the row.
func (p *Plan) single() bool {
	return len(p.Steps) == 1 && p.Steps[0].Action == Put && p.Steps[0].file.place != nil &&
		p.Steps[0].Before.Kind != checkpoint.Symlink
}

// apply carries out a plan: stage, save, sync, swap, commit. Nothing is to be seen of it before the
// first swap.
func (e *Engine) apply(ctx context.Context, c *Call, ts targets, p *Plan) (*Done, error) {
	s := &apply{c: c, p: p, done: &Done{Targets: ts}, gone: map[string]bool{}}
	s.e, s.tag, s.steps, s.moves = e, p.Op.Tag, make([]stepRecord, len(p.Steps)), make([]movement,
		len(p.Steps))
	s.stored = func(string) bool { return false }
	defer s.close()
	for i := range p.Steps {
		if st := &p.Steps[i]; st.Action == Remove || st.Action == Rmdir && !st.Optional {
			s.gone[st.Path] = true
		}
	}
	tell := c.expects(len(s.moves))
	var staged atomic.Int64
	err := each(len(s.moves), func(i int) error {
		tell()
		defer func() { e.told("preparing files", int(staged.Add(1)), len(s.moves)) }()
		return s.stage(ctx, i)
	})
	switch {
	case err != nil:
	case p.single(): // both wait for one disk, and mostly for one commit of its journal
		saveErr, syncErr := inParallel(func() error { return s.save(ctx) }, s.syncHolds)
		err = errors.Join(saveErr, syncErr)
	default:
		if err = s.save(ctx); err == nil {
			err = s.syncHolds()
		}
	}
	if err == nil && e.sync() && !p.single() { // what is half made must be found after a power cut
		err = e.temps.Sync()
	}
	for i := 0; err == nil && i < len(s.moves); i++ {
		tell()
		err = s.swap(ctx, i)
		e.told("changing files", i+1, len(s.moves))
	}
	if err == nil && e.sync() {
		err = s.syncNames()
	}
	if err == nil {
		err = s.commit(context.WithoutCancel(ctx))
	}
	if err != nil {
		return nil, s.abort(context.WithoutCancel(ctx), err)
	}
	return s.done, s.end(context.WithoutCancel(ctx))
}

// expects says of how many files a change is. What it gives tells that one of them was staged, or
// put where it belongs: each is half of a file's way.
func (c *Call) expects(files int) (tell func()) {
	if c.Progress == nil {
		return func() {}
	}
	c.Progress.Total.Store(int64(files))
	var halves atomic.Int64
	return func() { c.Progress.Files.Store(halves.Add(1) / 2) }
}

// told says how far long work is.
func (e *Engine) told(what string, done, total int) {
	if e.progress != nil {
		e.progress(what, done, total)
	}
}

// syncHolds puts what is staged on stable storage.
func (s *apply) syncHolds() error {
	if !s.e.sync() {
		return nil
	}
	return each(len(s.moves), func(i int) error {
		if s.moves[i].hold == nil || s.steps[i].action == Rename {
			return nil
		}
		return s.moves[i].hold.Sync()
	})
}

// inParallel runs both at once. The longer one goes first. On a virtual machine the kernel often
// puts both on one processor, and the second then waits until the first sleeps.
func inParallel(first, second func() error) (error, error) {
	done := make(chan error, 1)
	go func() { done <- second() }()
	err := first()
	return err, <-done
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

// commit says that all was made. Where the last swap is the commit nobody needs to say it.
func (s *apply) commit(ctx context.Context) error {
	if s.lastCommits() {
		return nil
	}
	if err := s.db.Made(ctx, s.id); err != nil {
		return notSaved(err)
	}
	return nil
}

// announce says, right before something goes to the trash or comes back, what that is and where it
// goes.
func (s *apply) announce(ctx context.Context, i int) error {
	mv, m := s.p.Steps[i].move, &s.moves[i]
	if mv.To != "" {
		if mv.slot == nil {
			if err := s.e.openTo(mv); err != nil {
				return err
			}
			m.hold = mv.slot
		}
		return nil
	}
	if !mv.Back {
		if err := s.e.setOwn(sidecarOf(mv.Entry.Parked), mv.Entry.Sidecar()); err != nil {
			return noTrash(mv.Path, err)
		}
		return nil
	}
	if mv.place == nil {
		if err := s.e.openBack(mv); err != nil {
			return err
		}
		m.hold = mv.place
	}
	err := s.db.TrashSettle(ctx, mv.Entry.ID, checkpoint.Returning)
	if errors.Is(err, checkpoint.ErrNotFound) { // it has expired just now
		return Refuse(NotStored, mv.Path, NotInTrash)
	}
	if err != nil {
		return notSaved(err)
	}
	return nil
}

// swap makes one step.
func (s *apply) swap(ctx context.Context, i int) (err error) {
	st, m := &s.p.Steps[i], &s.moves[i]
	switch t := st.file; {
	case s.steps[i].dir == "":
		return nil
	case st.Action == Rename:
		if err := s.announce(ctx, i); err != nil {
			return err
		}
	case m.place != nil:
	case t != nil && t.place != nil:
		m.place = t.place
	default:
		if m.place, err = s.e.placeOf(st.Path); err != nil {
			return err
		}
		if m.own = true; m.place == nil {
			return &guardfs.ConflictError{Path: st.Path,
				Why: guardfs.DirRemoved}
		}
	}
	if st.Action == Rmdir {
		empty, err := m.place.Empty()
		if err != nil {
			return err
		}
		if !empty {
			return &guardfs.ConflictError{Path: st.Path, Why: guardfs.Filled}
		}
	}
	if st.move != nil {
		return s.rename(ctx, st.move, m)
	}
	m.pub, err = m.place.Swap(ctx, m.hold, m.was, m.made.Expect())
	if err == nil && m.mode != 0 {
		err = m.place.Reveal(m.made.Expect(), m.mode)
	}
	return err
}

// rename makes the step that moves mv. What is in a directory is compared with the plan while it has a
// name of ours, to which no call comes: in the trash, or between its two names in the tree.
func (s *apply) rename(ctx context.Context, mv *Move, m *movement) (err error) {
	look := func(at *guardfs.Place) {
		if err == nil {
			err = s.e.asPlanned(ctx, mv, at.Object().True)
		}
	}
	switch {
	case mv.Back:
		if look(m.place); err == nil {
			m.pub, err = m.place.Swap(ctx, m.hold, m.was, guardfs.Expect{})
		}
	case mv.To == "":
		if m.pub, err = m.place.Swap(ctx, m.hold, m.was, guardfs.Expect{}); err != nil {
			err = noTrash(mv.Path, err)
		}
		look(m.hold)
	case mv.mid == nil:
		m.pub, err = m.place.Swap(ctx, m.hold, m.was, guardfs.Expect{})
	default:
		_, err = m.place.Swap(ctx, mv.mid, m.was, guardfs.Expect{})
		if look(mv.mid); err == nil {
			m.pub, err = m.hold.Swap(ctx, mv.mid, guardfs.Expect{}, m.was)
		}
	}
	return err
}

// syncNames puts the names on stable storage, one directory after the other.
func (s *apply) syncNames() error {
	synced := map[string]bool{}
	for i := range s.moves {
		m := &s.moves[i]
		if m.hold == nil {
			continue
		}
		for _, place := range []*guardfs.Place{m.place, m.hold} {
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

// abort ends a change that failed with cause. What was made of it is taken back.
func (s *apply) abort(ctx context.Context, cause error) error {
	if !s.staged { // nothing was made; of some not even the hold
		for i := range s.moves {
			if m := &s.moves[i]; m.hold != nil && s.steps[i].action != Rename {
				m.hold.Drop(m.made.Expect()) //nolint:errcheck // it is on record
			}
		}
		return cause
	}
	outcome := checkpoint.Aborted
	stuck, again := s.rollBack(ctx)
	if s.id != "" && !again {
		s.settleTrash(ctx, s.db)
	}
	if stuck != nil {
		outcome = checkpoint.Foreign
	}
	if err := s.clearHolds(false); !again && err != nil && stuck != nil {
		again = true
	} else if err != nil {
		s.e.logger.Warn("temporary names of a change that failed are left", "id", s.id, "err", err)
	}
	if again {
		s.e.temps.Abandon()
	} else {
		s.settle(ctx, outcome)
	}
	if stuck == nil {
		return cause
	}
	return halfMade(cause, stuck, s.id, again)
}

// end brings a change to its end that was made. The error is that directories are left of it because
// nobody is there to remove them, which whoever takes it up does.
func (s *apply) end(ctx context.Context) error {
	var errs []error
	for i := range s.moves {
		m := &s.moves[i]
		if mv := s.p.Steps[i].move; mv != nil {
			s.done.Moved = append(s.done.Moved, *mv)
			for to, from := range mv.pairs {
				to.Published = &guardfs.Published{Info: from.Before.Info, True: to.True}
			}
			continue
		}
		if m.hold == nil {
			continue
		}
		err := m.hold.Drop(m.pub.Displaced)
		if inUse(err) { // somebody put something into the directory as it went
			_, err = m.hold.Keep()
		}
		errs = append(errs, err)
		if t := s.p.Steps[i].file; t != nil {
			if m.pub.Dropped = m.made.Dropped; s.p.Steps[i].Action == Remove {
				m.pub.LinksBroken = 0 // the other names are as they were
			}
			t.Published = m.pub
		}
	}
	s.done.Made = s.p.of(Mkdir)
	var optional []string
	for i := range s.steps {
		if tr := &s.steps[i]; tr.dir == "" && tr.before != "" {
			optional = append(optional, tr.path)
		}
	}
	if err := errors.Join(errs...); errors.Is(err, guardfs.ErrUnavailable) && optional != nil {
		s.e.temps.Abandon()
		return err
	}
	s.done.Kept = s.e.drop(optional)
	s.done.Dropped = slices.DeleteFunc(s.p.dropped(), func(d string) bool {
		return slices.ContainsFunc(s.done.Kept, func(k Blocked) bool { return k.Path == d })
	})
	errs = append(errs, s.settleTrash(ctx, s.db))
	if err := errors.Join(errs...); err != nil { // another start removes what is left, as the row says
		s.e.temps.Abandon()
		s.e.logger.Warn("temporary names of a change are left", "id", s.id, "err", err)
		return nil
	}
	s.settle(ctx, checkpoint.Committed)
	return nil
}

// settle says what became of the change, if it has a checkpoint. That it was made costs nothing.
func (s *apply) settle(ctx context.Context, o checkpoint.Outcome) {
	if s.id == "" {
		return
	}
	if err := s.db.Settle(ctx, s.id, o); err != nil {
		s.e.logger.Error("what became of a change could not be written to its checkpoint", "id", s.id,
			"outcome", o, "err", err)
	}
}

func (s *apply) close() {
	for i := range s.moves {
		m := &s.moves[i]
		if m.own && m.place != nil {
			m.place.Close() //nolint:errcheck // nothing was written through it
		}
		if m.hold != nil && s.steps[i].action != Rename {
			m.hold.Close() //nolint:errcheck // nothing was written through it
		}
	}
}

// newTag is one that no other operation has.
func newTag() string {
	var b [guardfs.TagLen / 2]byte
	rand.Read(b[:]) //nolint:errcheck // never fails
	return hex.EncodeToString(b[:])
}
