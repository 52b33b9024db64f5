package engine

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"runtime"
	"slices"
	"sync"

	"moltisfs/checkpoint"
	"moltisfs/internal/guardfs"
)

// apply is a plan on its way: stage all, save, sync, swap each, sync the directories, commit. Until
// then everything that was there is in its hold, and comes back if anything fails; after it the
// holds go.
type apply struct {
	passage
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
	s.e, s.tag, s.steps, s.moves = e, p.Op.Tag, make([]trace, len(p.Steps)), make([]movement,
		len(p.Steps))
	s.stored = func(string) bool { return false }
	defer s.close()
	for i := range p.Steps {
		if st := &p.Steps[i]; st.Action == Remove || st.Action == Rmdir && !st.Optional {
			s.gone[st.Path] = true
		}
	}
	err := each(len(s.moves), func(i int) error { return s.stage(ctx, i) })
	switch {
	case err != nil:
	case p.single(): // both wait for one disk, and mostly for one commit of its journal
		saveErr, syncErr := beside(func() error { return s.save(ctx) }, s.syncHolds)
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
		if err = s.swap(ctx, i); err == nil && e.progress != nil {
			e.progress("changing files", i+1, len(s.moves))
		}
	}
	if err == nil && e.sync() {
		err = s.syncNames()
	}
	if err == nil {
		err = s.commit(context.WithoutCancel(ctx))
	}
	if err != nil {
		return nil, s.undo(context.WithoutCancel(ctx), err)
	}
	s.end(context.WithoutCancel(ctx))
	return s.done, nil
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

// each runs one for every number below n, several at a time: the syncs of many files then share the
// work of the file system's journal. After a failure no more are begun.
func each(n int, one func(i int) error) error {
	if n <= 4*fewFiles {
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

// object is what a step makes.
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
			return guardfs.NewObject{Kind: guardfs.KindDir, Meta: dirMetadata(s.After.State)}
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
// its path that is there and stays.
func (s *apply) stage(ctx context.Context, i int) error {
	st, m, tr := &s.p.Steps[i], &s.moves[i], &s.steps[i]
	tr.action, tr.path = st.Action, st.Path
	if st.Action == Rename {
		return s.parting(i)
	}
	if st.Action == Rmdir {
		if goes, err := s.leaving(i); err != nil || !goes {
			return err
		}
	}
	var at *guardfs.Place
	if t := st.file; t != nil {
		tr.hash = t.After.Hash
		if at = t.place; t.place != nil && kind(st.Before) != checkpoint.Absent {
			info, err := t.place.CopyUp()
			if err != nil {
				return err
			}
			t.Before.Info.ID = info.ID
			m.was, tr.before = guardfs.Found(t.Before), info.ID.Lasting()
		}
	}
	anchor := st.Path // in the directory that stays
	for dir := path.Dir(st.Path); len(dir) > 1; dir = path.Dir(dir) {
		if s.gone[dir] {
			anchor = dir
		}
	}
	if at == nil || anchor != st.Path {
		foreseen, _, name, err := s.e.fs.Foresee(anchor, nil)
		if err != nil {
			return err
		}
		defer foreseen.Close() //nolint:errcheck // nothing was written through it
		if name != anchor {
			return &guardfs.ConflictError{Path: st.Path,
				Why: guardfs.LinkInTheWay, Fact: name}
		}
		at = foreseen
	}
	what := st.object()
	what.Private = st.Action == Put && s.closed(path.Dir(st.Path))
	what.Open = s.p.single()
	var err error
	if m.hold, m.made, err = at.Hold(ctx, s.tag, s.number(i), what); err != nil {
		return fmt.Errorf("writing beside %s: %w", st.Path, err)
	}
	tr.dir, tr.after = at.ParentTrue(), lasting(m.made.Info)
	if t := st.file; t != nil {
		if t.fresh = m.made.Meta; t.place == nil {
			t.above = m.hold
		}
	}
	if what.Private {
		m.mode = st.file.metaAfter().Mode
	}
	if what.Kind == guardfs.KindDir && m.made.Dropped != nil {
		s.e.logger.Warn("a directory that came back did not get all that it had", "path", st.Path,
			"lost", m.made.Dropped)
	}
	return nil
}

// closed says that the plan makes the directory name and that not everybody may go there.
func (s *apply) closed(name string) bool {
	for i := range s.p.Steps {
		if st := &s.p.Steps[i]; st.Action == Mkdir && (st.Path == name || below(name, st.Path)) &&
			st.After.Mode&0o005 != 0o005 {
			return true
		}
	}
	return false
}

// leaving looks at a directory that goes. goes says that it makes room for something else; of the
// others nothing is to be done before the end.
func (s *apply) leaving(i int) (goes bool, err error) {
	st, m, tr := &s.p.Steps[i], &s.moves[i], &s.steps[i]
	if m.before, err = s.e.dirState(st.Path); err != nil {
		return false, err
	}
	if m.place, err = s.e.placeOf(st.Path); err != nil {
		return false, err
	}
	m.own = true
	switch there := m.place != nil && m.place.Object().Info.Kind == guardfs.KindDir; {
	case !there && st.Optional: // it is gone, or another thing by now
		return false, nil
	case !there:
		return false, &guardfs.ConflictError{Path: st.Path, Why: guardfs.Replaced}
	case st.Optional:
		tr.before = lasting(m.place.Object().Info)
		return false, nil
	}
	info, err := m.place.CopyUp()
	m.was, tr.before = guardfs.Expect{ID: info.ID}, info.ID.Lasting()
	return true, err
}

// parting readies a step that moves something: to the trash, back from there, or to another name.
func (s *apply) parting(i int) error {
	mv, m, tr := s.p.Steps[i].move, &s.moves[i], &s.steps[i]
	m.made = &guardfs.Made{}
	if mv.To != "" {
		info, err := mv.place.CopyUp()
		mv.info, m.place, m.hold = info, mv.place, mv.slot // which may have to be made
		tr.dir, tr.before = mv.To, info.ID.Lasting()
		m.was = guardfs.Expect{ID: info.ID}
		for _, from := range mv.pairs {
			if from.True == mv.Path {
				from.Before.Info.ID = info.ID
				m.was = guardfs.Found(from.Before)
			}
		}
		return err
	}
	if mv.Back {
		m.place, m.hold = mv.slot, mv.place // which may have to be made
		tr.path, tr.dir, tr.before = mv.Entry.Parked, mv.Path, mv.Entry.Identity
	} else {
		if err := s.e.readySlot(mv); err != nil {
			return err
		}
		m.place, m.hold = mv.place, mv.slot
		tr.path, tr.dir, tr.before = mv.Path, mv.Entry.Parked, mv.Entry.Identity
	}
	m.was = guardfs.Expect{ID: mv.info.ID}
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
		if err := s.e.putOwn(sidecarOf(mv.Entry.Parked), mv.Entry.Sidecar()); err != nil {
			return &Refusal{NoTrash.Code, NoTrash, mv.Path, err, err}
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

// dirAfter is what a directory that the step makes will be.
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

// changes is what the checkpoint says of the steps: of each path what was there before all of them,
// and what is after.
func (s *apply) changes() (out []checkpoint.Change) {
	traded := map[string]*Target{}
	for i := range s.p.Steps {
		if t := s.p.Steps[i].file; t != nil && (t.givesWay() || t.becomesDir()) {
			traded[t.True] = t
		}
	}
	var made, gone []checkpoint.Change
	for i := range s.p.Steps {
		st, m := &s.p.Steps[i], &s.moves[i]
		t := traded[st.Path]
		switch {
		case st.Action == Mkdir && t != nil:
			t.After.Meta = dirMetadata(m.dirAfter(st))
		case st.Action == Mkdir:
			made = append(made, checkpoint.Change{Path: st.Path, Role: checkpoint.RoleParent,
				After: m.dirAfter(st)})
		case st.Action == Rmdir && t == nil && m.before.Kind == checkpoint.Dir:
			gone = append(gone, checkpoint.Change{Path: st.Path, Role: checkpoint.RoleParent,
				Before: m.before, Trash: s.p.trash[st.Path]})
		}
	}
	for _, t := range targets(s.done.Targets).changing() {
		ch := change(t)
		if t.After.Kind == guardfs.KindAbsent || t.becomesDir() {
			ch.Trash = s.p.trash[t.True]
		}
		out = append(out, ch)
	}
	for i := range s.p.Steps {
		switch mv := s.p.Steps[i].move; {
		case mv != nil && mv.To != "":
			made = append(made, mv.dirs...)
		case mv != nil:
			out = append(out, moveChange(mv))
		}
	}
	return append(append(out, made...), gone...)
}

// save puts the states before and after on record, with the steps: what is found half-way from here
// on can be taken back.
func (s *apply) save(ctx context.Context) error {
	e, c := s.e, s.c
	s.staged = true
	for i := range s.moves {
		if h := s.moves[i].hold; h != nil && s.steps[i].action != Rename {
			_, s.process, _ = guardfs.ParseHold(h.Base())
		}
	}
	if s.p.single() && !s.p.Checkpoint && !e.cfg.CheckpointBeforeMutation {
		return nil
	}
	if s.process == "" { // it has no holds
		var err error
		if s.process, err = e.temps.Tag(); err != nil {
			return err
		}
	}
	op := s.p.Op
	op.Tool, op.Principal, op.Session, op.Turn, op.Time = c.Tool, c.Principal, c.Session, c.Turn,
		e.now()
	op.Changes, op.Steps = s.changes(), s.encode()
	db, err := e.points.open()
	var saved checkpoint.Saved
	if err == nil {
		saved, err = db.Save(ctx, op)
	}
	if err != nil && s.p.single() && !s.p.Checkpoint && e.cfg.Checkpoint.OnError == "allow" {
		s.done.Skipped = err.Error()
		e.logger.Warn("a change went ahead without its checkpoint, as on_error allows", "err", err)
		return nil
	}
	if err != nil {
		return notSaved(err)
	}
	s.db, s.id = db, saved.ID
	missing := map[string]bool{}
	for _, skip := range saved.Skipped {
		missing[skip.Path] = true
		if skip.Why != checkpoint.SkipParked {
			s.done.Skipped = skip.Why
		}
	}
	for i := range s.p.Steps {
		for _, t := range saved.Trashed {
			if mv := s.p.Steps[i].move; mv != nil && mv.Path == t.Path {
				mv.Entry = t
			}
		}
	}
	s.stored = func(path string) bool { return !missing[path] }
	if s.p.Whole {
		if lost := unsaved(op.Changes, saved.Skipped); lost != nil {
			return Refuse(NotStored, lost.Path, Unstored.Of(lost.Why))
		}
	} else if s.done.Skipped == "" {
		s.done.Skipped = e.newUnheld(s.done.Targets)
	}
	s.done.Checkpoint, c.Trace.Checkpoint = string(s.id), string(s.id)
	s.done.Trashed = saved.Trashed
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
	m.pub, err = m.place.Swap(ctx, m.hold, m.was, m.made.Expect())
	if mv := st.move; mv != nil {
		if mv.moved = err == nil; !mv.Back && mv.To == "" && err != nil {
			err = &Refusal{NoTrash.Code, NoTrash, mv.Path, err, err}
		}
	}
	if err == nil && m.mode != 0 {
		err = m.place.Reveal(m.made.Expect(), m.mode)
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

// undo ends a change that failed with cause: what was made of it is taken back.
func (s *apply) undo(ctx context.Context, cause error) error {
	if !s.staged { // nothing was made; of some not even the hold
		for i := range s.moves {
			if m := &s.moves[i]; m.hold != nil && s.steps[i].action != Rename {
				m.hold.Drop(m.made.Expect()) //nolint:errcheck // it is on record
			}
		}
		return cause
	}
	outcome := checkpoint.Aborted
	stuck, again := s.back(ctx)
	if s.id != "" && !again {
		s.settleTrash(ctx, s.db)
	}
	if stuck != nil {
		outcome = checkpoint.Foreign
	}
	if err := s.clear(false); !again && err != nil && stuck != nil {
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

// end brings a change to its end that was made.
func (s *apply) end(ctx context.Context) {
	var errs []error
	for i := range s.moves {
		m := &s.moves[i]
		if mv := s.p.Steps[i].move; mv != nil {
			s.done.Moved = append(s.done.Moved, *mv)
			for to, from := range mv.pairs {
				to.Published = &guardfs.Published{Info: from.Before.Info, CAS: m.pub.CAS, True: to.True}
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
	s.done.Kept = s.e.drop(optional)
	s.done.Dropped = slices.DeleteFunc(s.p.dropped(), func(d string) bool {
		return slices.ContainsFunc(s.done.Kept, func(k Blocked) bool { return k.Path == d })
	})
	errs = append(errs, s.settleTrash(ctx, s.db))
	if err := errors.Join(errs...); err != nil { // another start removes what is left, as the row says
		s.e.temps.Abandon()
		s.e.logger.Warn("temporary names of a change are left", "id", s.id, "err", err)
		return
	}
	s.settle(ctx, checkpoint.Committed)
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
