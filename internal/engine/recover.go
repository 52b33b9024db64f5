package engine

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
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

// eachName hands over the canonical path, then those of the missing directories above it, until add
// returns false.
func (e *Engine) eachName(p string, add func(name string) (more bool)) {
	place, err := e.fs.PlaceLink(p)
	if err == nil {
		defer place.Close()
		add(place.Object().True)
	}
	if gone, ok := errors.AsType[*guardfs.MissingParentError](err); ok {
		more := func(name string) bool { return name != gone.Missing && len(name) > len(gone.Missing) }
		for name := gone.True; add(name) && more(name); name = path.Dir(name) {
		}
	} // any other error is met again, and said, by whoever is to make it
}

func subset(a, b map[string]bool) bool {
	for k := range a {
		if !b[k] {
			return false
		}
	}
	return true
}

// complete says that all steps were made. Where the last rename is the commit, what was to come may
// never have got its name: then nothing is at its path, and the answer is no.
func (p *rollback) complete() (bool, error) {
	for i := range p.steps {
		s := &p.steps[i]
		if s.dir == "" {
			continue
		}
		at, err := p.look(i)
		if err != nil {
			return false, err
		}
		at.close()
		if s.after != "" && at.held == s.after ||
			s.before != "" && (at.is == s.before || at.between == s.before) ||
			s.before == "" && at.is == "" && p.lastCommits() ||
			s.action == Rename && s.was == "" && at.place == nil && at.held != s.before {
			return false, nil
		}
	}
	return true, nil
}

// An openOp is an operation whose row says no outcome.
type openOp struct {
	row   checkpoint.OpenOp
	steps *rollback // without what is known of contents; nil where they can't be read
	db    *checkpoint.DB
}

// openOps lists the open operations of processes that are no more, the newest first.
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

// existing is the store, or nil where none was ever made.
func (s *checkpointStore) existing() (*checkpoint.DB, error) {
	if !checkpoint.Exists(s.dir) {
		return nil, nil
	}
	return s.open()
}

// opKey is the lock of an operation: who holds it is alive.
func opKey(tag string) string { return "op:" + tag }

// interrupted finds another operation on the paths of a plan, or on what it looked at, whose
// outcome is unknown. We hold the locks of these paths, so mostly its process is dead. Else
// somebody is taking it back and waits for us, or it was made and is about to say so.
func (e *Engine) interrupted(ctx context.Context, p *Plan, looked []string) error {
	if !e.temps.AnyDead() {
		return nil
	}
	open, err := e.openOps(ctx)
	if err != nil {
		return notSaved(err)
	}
	ours := map[string]bool{}
	for _, p := range append(p.Paths(), looked...) {
		ours[p] = true
	}
	touches := func(op *checkpoint.Checkpoint, c *checkpoint.Recorded) bool {
		moves := c.Role == checkpoint.RoleParent && op.Kind == checkpoint.KindMove
		if c.Role == checkpoint.RoleParent && !moves {
			return false
		}
		if ours[c.Path] {
			return true
		}
		for i := range p.Steps {
			if s := &p.Steps[i]; s.Action == Rename &&
				(below(c.Path, s.Path) || s.To != "" && below(c.Path, s.To)) {
				return true
			}
		}
		// Anything new in such a directory keeps it from being taken back.
		if c.Role == roleTree || becameDir(c) || gaveWay(c) || moves {
			for p := range ours {
				if below(p, c.Path) {
					return true
				}
			}
		}
		return false
	}
	for _, o := range open {
		// One that was made has left no more than temporary names.
		if o.row.Made || e.unrecovered.has(o.row.ID) {
			continue
		}
		op, err := o.db.Get(ctx, o.row.ID, checkpoint.Scope{AllSessions: true})
		if errors.Is(err, checkpoint.ErrNotFound) {
			continue
		}
		if err != nil {
			return notSaved(err)
		}
		for i := range op.Changes {
			if touches(op, &op.Changes[i]) {
				return &interruptedError{&guardfs.ConflictError{Path: p.first(), Why: guardfs.BeingTakenBack}}
			}
		}
	}
	return nil
}

// dead says that nobody carries out the operation of that tag.
func (e *Engine) dead(ctx context.Context, tag string) bool {
	unlock, err := e.lockFor(ctx, "recovery", []string{opKey(tag)}, lockTry)
	if err == nil {
		unlock()
	}
	return err == nil
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

// A change of several steps is taken back by going through them backwards, each by the rename that
// it was: after a failure, and after the process died. Which were made is told by which object has
// which name, and by nothing else, so that it can be begun again at any time.

// A stepRecord holds the data to take back a step: its two names, and which object is at the path
// before it and after. The zero object is nothing.
type stepRecord struct {
	action        Action
	path          string
	dir           string               // of the hold; of a rename its other name; "" where there is none
	before, after string               // guardfs.Identity.Lasting
	hash          string               // of the file that is put
	was           string               // the hash of the file that was there; "" where nobody knows it
	tail          *checkpoint.Recorded // of a file that is cut: its sizes, where nobody knows a hash
}

// A rollback is the steps of one operation, as its row has them. Whoever makes them, takes them
// back or finishes them has one.
type rollback struct {
	e       *Engine
	tag     string // of the operation
	process string // that gave the holds their names
	steps   []stepRecord
	stored  func(path string) bool // the checkpoint holds what was there
}

// number gives the number of the i-th hold. A change of one step, which may have no row, has number 0.
func (p *rollback) number(i int) int {
	if len(p.steps) == 1 {
		return 0
	}
	return i + 1
}

// decode reads what the row of an operation says, and of each file what it was to become.
func (p *rollback) decode(b []byte, op *checkpoint.Checkpoint) error {
	hashes, stored, was := map[string]string{}, map[string]bool{}, map[string]string{}
	for i := range op.Changes {
		c := &op.Changes[i]
		hashes[c.Path], stored[c.Path], was[c.Path] = c.After.Hash, c.Stored, c.Before.Hash
	}
	p.stored = func(path string) bool { return stored[path] }
	tails := map[string]*checkpoint.Recorded{}
	for i := range op.Changes {
		if c := &op.Changes[i]; c.Role == checkpoint.RoleAppended {
			tails[c.Path] = c
			stored[c.Path] = true // what goes of it is
		}
	}
	bad := false
	next := func() string {
		n, size := binary.Uvarint(b)
		if size <= 0 || n > uint64(len(b)-size) {
			bad, b = true, nil
			return ""
		}
		f := string(b[size : size+int(n)])
		b = b[size+int(n):]
		return f
	}
	for p.process = next(); len(b) > 0; {
		s := stepRecord{action: Action(next()), path: next(), dir: next(), before: next(), after: next()}
		if s.dir == "." {
			s.dir = path.Dir(s.path)
		}
		if s.was = was[s.path]; s.action == Put {
			s.hash, s.tail = hashes[s.path], tails[s.path]
		}
		bad = bad || s.action != Rename && !strings.HasPrefix(s.path, s.dir)
		p.steps = append(p.steps, s)
	}
	if bad {
		return errors.New("what its row says of its steps can't be read")
	}
	return nil
}

// A pair is the two names of a step, and which objects have them by now.
type pair struct {
	place, hold *guardfs.Place // nil where there is no such directory
	is, held    string
	mid         *guardfs.Place // of a rename in the tree: the name that a directory has in between
	between     string
}

func (p *pair) close() {
	for _, place := range []*guardfs.Place{p.place, p.hold, p.mid} {
		if place != nil {
			place.Close() //nolint:errcheck // nothing was written through it
		}
	}
}

// placeOf opens the place of a canonical path. It is nil where its directory is not there, or where
// the way to it leads elsewhere by now.
func (e *Engine) placeOf(name string) (*guardfs.Place, error) {
	tree := e.fs
	if inTrash(name) {
		tree = e.trash
	}
	place, err := tree.PlaceLink(name)
	if _, gone := errors.AsType[*guardfs.MissingParentError](err); gone || errors.Is(err,
		syscall.ENOTDIR) {
		return nil, nil
	}
	if err == nil && place.Object().True != name {
		place.Close() //nolint:errcheck // nothing was written through it
		return nil, nil
	}
	return place, err
}

func lasting(i guardfs.Info) string {
	if i.Kind == guardfs.KindAbsent {
		return ""
	}
	return i.ID.Lasting()
}

// look opens both names of the i-th step. Where the very file has both, a process died within a
// rename that is a link and a removal: the step was not made, and the second name goes.
func (p *rollback) look(i int) (*pair, error) {
	at, err := p.open(i)
	if err == nil && at.is != "" && at.is == at.held {
		if err = at.place.DropLink(at.hold); err != nil {
			at.close()
			return nil, err
		}
		at.held = ""
	}
	return at, err
}

func (p *rollback) open(i int) (_ *pair, err error) {
	s, out := &p.steps[i], &pair{}
	defer func() {
		if err != nil {
			out.close()
		}
	}()
	if out.place, err = p.e.placeOf(s.path); err != nil {
		return nil, err
	}
	if out.place != nil {
		out.is = lasting(out.place.Object().Info)
	}
	if s.action == Rename {
		if out.hold, err = p.e.placeOf(s.dir); out.hold != nil {
			out.held = lasting(out.hold.Object().Info)
		}
		if err != nil || out.place == nil || inTrash(s.path) || inTrash(s.dir) {
			return out, err
		}
		out.mid, err = out.place.Held(guardfs.HoldName(p.tag, p.number(i), p.process))
		if err == nil {
			out.between = lasting(out.mid.Object().Info)
		}
		return out, err
	}
	// What policy said of is what the plan makes or changes in that directory.
	below, _, _ := strings.Cut(strings.TrimPrefix(s.path[len(s.dir):], "/"), "/")
	at, err := p.e.placeOf(path.Join(s.dir, below))
	if err != nil || at == nil {
		return out, err
	}
	defer at.Close() //nolint:errcheck // nothing was written through it
	if out.hold, err = at.Held(guardfs.HoldName(p.tag, p.number(i), p.process)); err != nil {
		return nil, err
	}
	out.held = lasting(out.hold.Object().Info)
	return out, nil
}

// errOthers: others have put another thing there since, which stays.
var errOthers = errors.New("others have changed it since")

// rollBack takes back every step that was made, the last one first. stuck are the paths where it
// could not. again says that it may work later.
func (p *rollback) rollBack(ctx context.Context) (stuck []string, again bool) {
	for i := range p.steps {
		p.restoreDirName(ctx, i)
	}
	for i := range slices.Backward(p.steps) {
		err := p.rollBackStep(ctx, i)
		if err == nil {
			continue
		}
		stuck = append(stuck, p.steps[i].name())
		if _, moved := errors.AsType[*guardfs.ConflictError](err); !moved && !errors.Is(err, errOthers) {
			again = true
		}
		p.e.logger.Error("a step of a change that failed could not be taken back", "path",
			p.steps[i].path, "err", err)
	}
	return stuck, again
}

// restoreDirName gives a directory its name again if something is in it. After a power cut the disk
// may have what was renamed into it, and not its own rename.
func (p *rollback) restoreDirName(ctx context.Context, i int) {
	s := &p.steps[i]
	if s.action != Mkdir {
		return
	}
	at, err := p.look(i)
	if err != nil {
		return
	}
	defer at.close()
	if at.place == nil || at.is != "" || at.held != s.after || at.hold == nil {
		return
	}
	if empty, err := at.hold.Empty(); err == nil && !empty {
		// Then what is in it is kept.
		at.place.Swap(ctx, at.hold, guardfs.Expect{},
			guardfs.Expect{ID: at.hold.Object().Info.ID}) //nolint:errcheck
	}
}

// rollBackStep takes back one step, if it was made.
func (p *rollback) rollBackStep(ctx context.Context, i int) error {
	s := &p.steps[i]
	if s.dir == "" {
		return nil // it comes after all others, and has no way back
	}
	at, err := p.look(i)
	if err != nil {
		return err
	}
	defer at.close()
	switch {
	case at.between != "" && at.between == s.before:
		if at.is != "" {
			_, err := at.mid.Keep()
			return errors.Join(errOthers, err)
		}
		_, err := at.place.Swap(ctx, at.mid, guardfs.Expect{},
			guardfs.Expect{ID: at.mid.Object().Info.ID})
		return err
	case s.after != "" && at.held == s.after: // it was not made, or is back
		return nil
	case s.before == "" && at.is != s.after: // nothing of ours is there
		return nil
	case s.action == Mkdir: // one that others use by now stays
		if err := p.e.removeEmpty(s.path, s.after); err != nil && !errors.Is(err, errNotOurs) &&
			!inUse(err) {
			return err
		}
		return nil
	case at.held != s.before && at.is == s.after && s.after != "":
		return fmt.Errorf("what was there is gone from its temporary name: %w", errOthers)
	case at.held != s.before && at.is == "" && at.place == nil:
		return errors.New("its directory is gone")
	case at.held != s.before: // it was not made
		return nil
	case at.place == nil:
		return errors.New("its directory is gone")
	case at.is != "" && at.is != s.after:
		return errOthers
	}
	out, in := guardfs.Expect{}, guardfs.Expect{}
	if at.is != "" {
		out.ID = at.place.Object().Info.ID
	}
	if at.held != "" {
		in.ID = at.hold.Object().Info.ID
	}
	if at.is != "" && s.action == Put {
		now, err := at.place.Sum()
		if err != nil {
			return err
		}
		if s.tail != nil && now.Info.Size != s.tail.After.Size || s.tail == nil && now.Hash != s.hash {
			return errOthers
		}
		out = guardfs.Found(now)
	}
	_, err = at.place.Swap(ctx, at.hold, out, in)
	return err
}

// name gives the name of the step in the agent's tree.
func (t *stepRecord) name() string {
	if inTrash(t.path) {
		return t.dir
	}
	return t.path
}

// settleTrash has the catalog say of each thing that was moved to the trash, or back, where it is.
func (p *rollback) settleTrash(ctx context.Context, db *checkpoint.DB) error {
	var errs []error
	for i := range p.steps {
		s := &p.steps[i]
		if s.action != Rename || !inTrash(s.path) && !inTrash(s.dir) {
			continue
		}
		at, err := p.look(i)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		slot, there := s.dir, at.held == s.before
		if inTrash(s.path) {
			slot, there = s.path, at.is == s.before
		}
		at.close()
		for _, unsettled := range []bool{true, false} {
			entries, err := p.e.entriesAt(ctx, db, s.name(), unsettled)
			errs = append(errs, err)
			for j := range entries {
				if t := &entries[j]; t.Parked == slot && (unsettled || !there) {
					errs = append(errs, p.e.settleEntry(ctx, db, t, there))
				}
			}
		}
	}
	return errors.Join(errs...)
}

// lastCommits says that the last rename is the commit: all others make directories for it. Others
// may have put something into what it moved. After a kill they find it there, and not in the trash.
func (p *rollback) lastCommits() bool {
	all := p.renames()
	return len(all) <= 1 || !slices.ContainsFunc(all[:len(all)-1],
		func(s *stepRecord) bool { return s.action != Mkdir }) && all[len(all)-1].action != Mkdir
}

// renames are the steps that have a rename.
func (p *rollback) renames() (out []*stepRecord) {
	for i := range p.steps {
		if s := &p.steps[i]; s.dir != "" {
			out = append(out, s)
		}
	}
	return out
}

// clearHolds removes what is in the holds. What was there before the change goes for good if the
// change was made, else only where the checkpoint has it. What the row does not know is kept.
func (p *rollback) clearHolds(made bool) error {
	var errs []error
	for i := range slices.Backward(p.steps) {
		s := &p.steps[i]
		if s.dir == "" || s.action == Rename {
			continue
		}
		at, err := p.look(i)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if at.held != "" {
			known := at.held == s.after || at.held == s.before && s.unchanged(at.hold) &&
				(made || p.stored(s.path) || at.hold.Object().Info.Kind != guardfs.KindFile)
			errs = append(errs, p.e.clearHold(at.hold, s.path, known))
		}
		at.close()
	}
	return errors.Join(errs...)
}

// unchanged says that what was taken out is what was looked at. Somebody may have written into the
// file right before, and only the process that died could have put it back.
func (t *stepRecord) unchanged(hold *guardfs.Place) bool {
	if i := hold.Object().Info; t.tail != nil {
		return i.Size == t.tail.Before.Size && i.ModTime.Equal(t.tail.Before.ModTime)
	}
	if t.was == "" || hold.Object().Info.Kind != guardfs.KindFile {
		return true
	}
	now, err := hold.Sum()
	return err == nil && now.Hash == t.was
}

// clearHold removes what is at a hold if it is known, and else keeps it under another name. A
// directory goes only if it is empty.
func (e *Engine) clearHold(hold *guardfs.Place, of string, known bool) error {
	if known {
		err := hold.Drop(guardfs.Expect{ID: hold.Object().Info.ID})
		if !inUse(err) {
			return err
		}
	}
	left, err := hold.Keep()
	e.logger.Warn("what was found under a temporary name is kept", "of", of, "as", left, "err", err)
	return err
}

// syncNames puts the names of all steps on stable storage.
func (p *rollback) syncNames() error {
	for i := range p.steps {
		if p.steps[i].dir == "" {
			continue
		}
		at, err := p.look(i)
		if err != nil {
			return err
		}
		for _, place := range []*guardfs.Place{at.place, at.hold} {
			if place != nil && err == nil {
				err = place.SyncNames()
			}
		}
		at.close()
		if err != nil {
			return err
		}
	}
	return nil
}

// finish brings a change to its end that was made: what was there before goes, and directories that
// were to go if they are empty.
func (p *rollback) finish(ctx context.Context, db *checkpoint.DB, id checkpoint.ID) error {
	if err := errors.Join(p.settleTrash(ctx, db), p.clearHolds(true)); err != nil {
		return err
	}
	for i := range p.steps {
		if s := &p.steps[i]; s.dir == "" && s.before != "" {
			if err := p.e.removeEmpty(s.path, s.before); err != nil && !errors.Is(err, errNotOurs) &&
				!inUse(err) {
				p.e.logger.Warn("a directory could not be removed", "path", s.path, "err", err)
			}
		}
	}
	return db.Settle(ctx, id, checkpoint.Committed)
}

// unrecovered are the interrupted operations that this process could not take back. Another process
// may. No call waits for them here.
type unrecovered struct {
	mu     sync.Mutex
	ids    map[checkpoint.ID]bool
	locked map[checkpoint.ID]bool // it was told that their paths are locked
}

// log warns of an operation, once. One whose paths are only locked does not count as unrecovered: a
// call on those paths waits, or is refused.
func (l *unrecovered) log(logger *slog.Logger, id checkpoint.ID, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, locked := errors.AsType[*guardfs.LockedError](err); locked {
		if l.locked == nil {
			l.locked = map[checkpoint.ID]bool{}
		}
		if !l.locked[id] {
			logger.Warn("an interrupted change has to wait: its paths are locked", "id", id, "err", err)
		}
		l.locked[id] = true
		return
	}
	if l.ids[id] {
		return
	}
	if l.ids == nil {
		l.ids = map[checkpoint.ID]bool{}
	}
	l.ids[id] = true
	if errors.Is(err, errOutOfReach) {
		logger.Warn("an interrupted change is left to a start that may reach all its paths",
			"id", id, "err", err)
		return
	}
	logger.Error("an interrupted change could not be taken back", "id", id, "err", err)
}

func (l *unrecovered) has(id checkpoint.ID) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ids[id]
}

// interruptedError: another change of these paths died half-way. It has been taken back, or is
// being.
type interruptedError struct{ err error }

func (e *interruptedError) Error() string { return e.err.Error() }

func (e *interruptedError) Unwrap() error { return e.err }

func becameDir(c *checkpoint.Recorded) bool {
	return c.Role != roleTree && c.After.Kind == checkpoint.Dir &&
		(c.Before.Kind == checkpoint.File || c.Before.Kind == checkpoint.Symlink)
}

// gaveWay says that a file or link was to take the place of a directory; becameDir, the reverse.
func gaveWay(c *checkpoint.Recorded) bool {
	return c.Role != roleTree && c.Before.Kind == checkpoint.Dir &&
		(c.After.Kind == checkpoint.File || c.After.Kind == checkpoint.Symlink)
}

// temporariesName is where in the data directory the record is of names that are given beside the
// agent's files for a moment.
const temporariesName = "temporaries"

// sweepDead removes what killed processes have left beside files, as their records say. Where
// policy does not let us look, or something goes wrong, the record stays for another start.
func (e *Engine) sweepDead(ctx context.Context) {
	err := e.temps.Dead(func(tag string, paths []string) (done bool) {
		// Now that it is known to be dead all that it saved is there. What is open, or can't be read,
		// keeps its holds and its record.
		open, err := e.allOpen(ctx)
		if err != nil {
			e.logger.Warn("interrupted changes could not be looked for", "err", err)
			return false
		}
		over := func(operation string) bool {
			return !slices.ContainsFunc(open, func(o openOp) bool { return o.row.Tag == operation }) &&
				e.dead(ctx, operation)
		}
		done = !slices.ContainsFunc(open, func(o openOp) bool {
			return o.steps == nil || o.steps.process == tag
		})
		for _, name := range paths {
			tree := e.fs
			if inTrash(name) {
				tree = e.trash
			}
			place, err := tree.PlaceLink(name)
			if _, gone := errors.AsType[*guardfs.MissingParentError](err); gone ||
				errors.Is(err, syscall.ENOTDIR) {
				continue
			}
			if err == nil {
				var left bool
				left, err = place.Sweep(tag, over)
				done = done && !left
				place.Close() //nolint:errcheck // nothing was written through it
			}
			if err != nil {
				if done = false; errors.Is(err, guardfs.ErrUnavailable) {
					e.temps.Stays()
				}
				e.logger.Info("what a killed process left is left to another start", "beside", name, "err", err)
			}
		}
		return done
	})
	if err != nil {
		e.logger.Warn("what killed processes have left could not be looked for", "err", err)
	}
}

// keptOnly lets us look at the names under which something is kept beside a file, and at nothing else.
type keptOnly struct{}

func (keptOnly) Judge(o guardfs.Object, _ guardfs.Access) error {
	if guardfs.IsKept(path.Base(o.True)) {
		return nil
	}
	return fs.ErrPermission
}

func (keptOnly) Dir(string, ...string) guardfs.DirVerdict { return guardfs.DirVerdict{} }

// KeptFile is a file that could not be put back at Of and is at Path.
type KeptFile = guardfs.KeptFile

// Kept lists the files that could not be put back in their places, are kept beside them, and still are there.
// With remove it is removed for good. For an operator: nobody is asked, and no policy. at is where it is kept.
func Kept(ctx context.Context, dataDir string, at Place, remove bool) ([]guardfs.KeptFile, error) {
	tree, err := guardfs.New(guardfs.Options{Judge: keptOnly{}, Calls: at.Calls})
	if err != nil {
		return nil, err
	}
	defer tree.Close() //nolint:errcheck // nothing was written through it
	var errs []error
	record := guardfs.OpenTemporaries(filepath.Join(dataDir, temporariesName))
	kept, err := record.Kept(func(k guardfs.KeptFile) bool {
		place, err := tree.PlaceLink(k.Path)
		if _, gone := errors.AsType[*guardfs.MissingParentError](err); gone {
			return false
		}
		if err != nil {
			return true // it can't be looked at: that is no reason to forget it
		}
		defer place.Close() //nolint:errcheck // nothing was written through it
		i := place.Object().Info
		if remove && i.Kind != guardfs.KindAbsent {
			errs = append(errs, place.RemoveTree(ctx, i.ID.Lasting()))
		}
		return i.Kind != guardfs.KindAbsent
	})
	return kept, errors.Join(append(errs, err)...)
}

// inTrash says that a path is in a trash directory.
func inTrash(name string) bool {
	for part := range strings.SplitSeq(name, "/") {
		if guardfs.IsTrash(part) {
			return true
		}
	}
	return false
}
