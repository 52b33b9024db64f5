package engine

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"syscall"

	"moltisfs/checkpoint"
	"moltisfs/internal/guardfs"
)

// A change of several steps is taken back by going through them backwards, each by the rename that
// it was: after a failure, and after the process died. Which were made is told by which object has
// which name, and by nothing else, so that it can be begun again at any time.

// A stepRecord is what it takes to take back a step: its two names, and which object is at the path
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

// number is that of the i-th hold. A change of one step, which may have no row, has number 0.
func (p *rollback) number(i int) int {
	if len(p.steps) == 1 {
		return 0
	}
	return i + 1
}

// encode is what the row of the operation says of the steps.
func (p *rollback) encode() []byte {
	var b []byte
	add := func(fields ...string) {
		for _, f := range fields {
			b = append(binary.AppendUvarint(b, uint64(len(f))), f...)
		}
	}
	add(p.process)
	for i := range p.steps {
		s := &p.steps[i]
		dir := s.dir
		if dir == path.Dir(s.path) {
			dir = "."
		}
		add(string(s.action), s.path, dir, s.before, s.after)
	}
	return b
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

// name is that of the step in the agent's tree.
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

// renames are the steps that have a rename.
func (p *rollback) renames() (out []*stepRecord) {
	for i := range p.steps {
		if s := &p.steps[i]; s.dir != "" {
			out = append(out, s)
		}
	}
	return out
}

// lastCommits says that the last rename is the commit: all others make directories for it. Others
// may have put something into what it moved. After a kill they find it there, and not in the trash.
func (p *rollback) lastCommits() bool {
	all := p.renames()
	return len(all) <= 1 || !slices.ContainsFunc(all[:len(all)-1],
		func(s *stepRecord) bool { return s.action != Mkdir }) && all[len(all)-1].action != Mkdir
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
	if !p.e.sync() {
		return nil
	}
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
