package engine

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"

	"moltisfs/checkpoint"
	"moltisfs/internal/guardfs"
)

// An object that is too large for the store, or must not be stored, goes to the trash as a whole. One rename
// moves it into a directory of our own on its own volume, and one rename brings it back.
//
// That directory is <data directory>/.moltis-trash-UID where that is on the volume. Else it has the
// same name in the topmost directory on the way to the path in which we may make one. In it lie
// files/NAME and info/NAME.trashinfo, as freedesktop.org has it. NAME is random. Policy refuses
// every path with such a directory in it.
//
// The order makes sure that a crash loses nothing. First the checkpoint is durable, with the entry
// of the trash (phase parking) and the steps. Then comes the sidecar, then the rename and the sync
// of both directories, then the phase parked. The way back is: returning, rename, gone. Whoever
// finds the row of a dead process looks where the object is.

const roleTree = checkpoint.RoleTree

// A Move is one path of a mutation that goes as a whole: into the trash, back from it, or to
// another name.
type Move struct {
	Path string
	To   string // its other name in the tree; "" of one to or from the trash
	Back bool
	// Entry is, with Back, the one that comes back. Else it has Size, Files and Agent, and after the
	// change it is the entry that was made.
	Entry checkpoint.Trashed

	// place is that of Path, slot the one in the trash or of To. That of a name that something comes
	// to is nil while the parent is still to be made.
	place, slot *guardfs.Place
	info        guardfs.Info // of what is moved

	in    contents            // of what is moved
	mid   *guardfs.Place      // of a directory with To: our own name that it has in between
	pairs map[*Target]*Target // with To: what comes there, and what it was
	dirs  []checkpoint.Change // with To: directories, under both names
}

var errNoPlace = errors.New("there is no directory on its volume that a trash can be made in")

// ownTrash lets our own looks into what has a name of ours, as the trash directories, and nowhere
// else.
type ownTrash struct{}

func (ownTrash) Judge(o guardfs.Object, _ guardfs.Access) error {
	if guardfs.ReservedPath(o.True) {
		return nil
	}
	return fs.ErrPermission
}

func (ownTrash) Dir(name string, _ ...string) guardfs.DirVerdict {
	return guardfs.DirVerdict{All: guardfs.ReservedPath(name)}
}

// loadMove looks at what is to be moved, by handle; policy first. back: it has come back already.
func (e *Engine) loadMove(ctx context.Context, mv *Move) (back bool, err error) {
	place, err := e.fs.PlaceLink(mv.Path)
	if _, missing := errors.AsType[*guardfs.MissingParentError](err); missing && mv.Back {
		return false, e.openSlot(ctx, mv)
	}
	if err != nil {
		return false, err
	}
	mv.place = place
	o := place.Object()
	mv.info = o.Info
	switch absent := o.Info.Kind == guardfs.KindAbsent; {
	case o.True != mv.Path:
		return false, &guardfs.SymlinkError{Path: mv.Path, Target: o.True}
	case absent && !mv.Back:
		return false, &guardfs.PathError{Op: "delete", Path: mv.Path, Err: fs.ErrNotExist}
	case !mv.Back:
		return false, nil
	case absent:
		return false, e.openSlot(ctx, mv)
	case o.Info.ID.Lasting() == mv.Entry.Identity:
		return true, nil
	}
	return false, Refuse(Conflicts, "", []Blocked{{Path: mv.Path, Why: Occupied}})
}

// openSlot finds what comes back in the trash, and makes sure that it is what went there.
func (e *Engine) openSlot(ctx context.Context, mv *Move) error {
	slot, err := e.trash.PlaceLink(mv.Entry.Parked)
	if errors.Is(err, guardfs.ErrUnavailable) {
		return err
	}
	if err != nil {
		return Refuse(NotStored, mv.Path, TrashUnopened.Of(err))
	}
	mv.slot, mv.info = slot, slot.Object().Info
	if mv.info.Kind == guardfs.KindAbsent || mv.info.ID.Lasting() != mv.Entry.Identity {
		return Refuse(NotStored, mv.Path, NotInTrash)
	}
	if mv.info.Kind != guardfs.KindDir {
		return nil
	}
	var denied error // what is in it is judged as it will be called
	mv.in.names, err = e.lookInto(ctx, mv, mv.Entry.Parked, func(name string, k guardfs.Kind) {
		if k == guardfs.KindDir && denied == nil {
			denied = e.mayMake(name)
		} else if denied == nil {
			denied = e.judge.Judge(guardfs.Object{Spelled: name, True: name}, guardfs.Create)
		}
	})
	return cmp.Or(denied, err)
}

func (mv *Move) close() {
	for _, p := range []*guardfs.Place{mv.place, mv.slot, mv.mid} {
		if p != nil {
			p.Close()
		}
	}
}

// openTo opens the place of the name that something moves to, once its directory is there.
func (e *Engine) openTo(mv *Move) error {
	place, err := e.fs.PlaceLink(mv.To)
	if err != nil {
		return err
	}
	if o := place.Object(); o.True != mv.To {
		place.Close() //nolint:errcheck // nothing was written through it
		return &guardfs.SymlinkError{Path: mv.To, Target: o.True}
	}
	mv.slot = place
	return nil
}

// openBack opens the place of what comes back, once its directory is there. Until then the error is
// a *guardfs.MissingParentError.
func (e *Engine) openBack(mv *Move) error {
	place, err := e.fs.PlaceLink(mv.Path)
	if err != nil {
		return err
	}
	if o := place.Object(); o.True != mv.Path {
		place.Close()
		return &guardfs.SymlinkError{Path: mv.Path, Target: o.True}
	}
	mv.place = place
	return nil
}

// staysPut makes sure that what is to go is still what was looked at.
func (e *Engine) staysPut(mv *Move) error {
	place, err := e.fs.PlaceLink(mv.Path)
	if err != nil {
		return err
	}
	now := place.Object().Info
	place.Close()
	if now.ID != mv.info.ID || now.Kind != mv.info.Kind {
		return &guardfs.ConflictError{Path: mv.Path, Why: guardfs.Replaced}
	}
	return nil
}

// isBack says that somebody else has brought it back already. If not, it must still be in the
// trash, and nothing in its place.
func (e *Engine) isBack(ctx context.Context, mv *Move) (bool, error) {
	var now guardfs.Info
	place, err := e.fs.PlaceLink(mv.Path)
	if _, missing := errors.AsType[*guardfs.MissingParentError](err); err != nil && !missing {
		return false, err
	}
	if err == nil {
		now = place.Object().Info
		place.Close()
	}
	there := err == nil && now.Kind != guardfs.KindAbsent
	db, err := e.checkpoints.open()
	if err != nil {
		return false, notSaved(err)
	}
	entry, err := db.TrashGet(ctx, mv.Entry.ID, "", true) // whose it is was asked when it was found
	gone := errors.Is(err, checkpoint.ErrNotFound)
	switch {
	case gone && there && now.ID.Lasting() == mv.Entry.Identity:
		return true, nil
	case err != nil && !gone:
		return false, notSaved(err)
	case gone || entry.Parked != mv.Entry.Parked: // it has expired, or is about to
		return false, Refuse(NotStored, mv.Path, NotInTrash)
	case there:
		return false, Refuse(Conflicts, "", []Blocked{{Path: mv.Path, Why: Occupied}})
	}
	return false, nil
}

// readySlot makes a place in the trash for what goes. The directories that it makes are our own,
// and stay.
func (e *Engine) readySlot(mv *Move) error {
	slot, err := e.newSlot(mv.place)
	if err != nil {
		return noTrash(mv.Path, err)
	}
	info, err := mv.place.CopyUp()
	if err != nil {
		slot.Close() //nolint:errcheck // nothing was written through it
		return err
	}
	mv.info, mv.slot = info, slot
	mv.Entry.Parked, mv.Entry.Identity = slot.Object().True, info.ID.Lasting()
	return nil
}

// noTrash is the refusal of what can't go to the trash, unless nobody is there to take it.
func noTrash(path string, err error) error {
	if errors.Is(err, guardfs.ErrUnavailable) {
		return err
	}
	return &Refusal{NoTrash.Code, NoTrash, path, err, err}
}

// newSlot finds or makes a place in the trash on the volume of p.
func (e *Engine) newSlot(p *guardfs.Place) (*guardfs.Place, error) {
	name := e.trash.TrashName()
	dirs := []string{e.dataDir}
	if e.place.Calls != nil { // which is not there
		dirs = nil
	}
	first := len(dirs)
	for dir := p.ParentTrue(); ; dir = path.Dir(dir) {
		dirs = append(dirs, dir)
		if path.Dir(dir) == dir {
			break
		}
	}
	for i, j := first, len(dirs)-1; i < j; i, j = i+1, j-1 { // the volume's top first
		dirs[i], dirs[j] = dirs[j], dirs[i]
	}
	for _, dir := range dirs {
		root := path.Join(filepath.ToSlash(dir), name)
		same, err := e.ownDir(root, p)
		if err != nil && (dir == e.dataDir || errors.Is(err, guardfs.ErrUnavailable)) {
			return nil, err
		}
		if err != nil || !same { // of the others, one that can't be used is passed over
			continue
		}
		for _, sub := range []string{"files", "info"} {
			if _, err := e.ownDir(root+"/"+sub, nil); err != nil {
				return nil, err
			}
		}
		return e.trash.PlaceLink(root + "/files/" + rand.Text())
	}
	return nil, errNoPlace
}

// ownDir makes a directory that only we can read, if there is none and it is on the mount of near.
// If others can use it, that is an error.
func (e *Engine) ownDir(name string, near *guardfs.Place) (same bool, err error) {
	p, err := e.trash.PlaceLink(name)
	if err != nil {
		return false, err
	}
	defer func() { p.Close() }()
	if near != nil {
		if same, err = p.SameMount(near); err != nil || !same {
			return false, err
		}
	}
	if p.Object().Info.Kind == guardfs.KindAbsent {
		if err := p.Mkdir(0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return false, err
		}
		if err := p.SyncNames(); err != nil {
			return false, err
		}
		fresh, err := e.trash.PlaceLink(name)
		if err != nil {
			return false, err
		}
		p.Close()
		p = fresh
		if near != nil { // it may lie in a work tree
			if err := e.setOwn(name+"/.gitignore", []byte("*\n")); err != nil {
				return false, err
			}
		}
	}
	if !p.Private() {
		return false, fmt.Errorf("%s: %w", name, fs.ErrPermission)
	}
	return true, nil
}

// setOwn writes a small file of ours in the trash; with content nil it removes it.
func (e *Engine) setOwn(name string, content []byte) error {
	p, err := e.trash.PlaceLink(name)
	if err != nil {
		return err
	}
	defer p.Close() //nolint:errcheck // nothing was written through it
	before, err := p.Load(1 << 20)
	if err != nil || content == nil && !before.Exists {
		return err
	}
	what := guardfs.NewObject{}
	if content != nil {
		what = guardfs.NewObject{Kind: guardfs.KindFile, Content: content, Sync: true}
	}
	// A number above 0 is swept whatever it has: all of it is ours.
	hold, made, err := p.Hold(context.Background(), newTag(), 1, what)
	if err != nil {
		return err
	}
	defer hold.Close() //nolint:errcheck // nothing was written through it
	if what.Sync {
		err = hold.Sync()
	}
	var pub *guardfs.Published
	if err == nil {
		pub, err = p.Swap(context.Background(), hold, guardfs.Found(before), made.Expect())
	}
	if err != nil {
		return errors.Join(err, hold.Drop(made.Expect()))
	}
	if err = hold.Drop(pub.Displaced); what.Sync {
		err = errors.Join(err, p.SyncNames())
	}
	return err
}

// sidecarOf is where the sidecar of a payload lies.
func sidecarOf(payload string) string {
	return path.Dir(path.Dir(payload)) + "/info/" + path.Base(payload) + ".trashinfo"
}

// settleEntry brings one entry up to date: what it is of lies in the trash, or does not any more.
func (e *Engine) settleEntry(ctx context.Context, db *checkpoint.DB, t *checkpoint.Trashed,
	there bool) error {
	if there {
		return db.TrashSettle(ctx, t.ID, checkpoint.Parked)
	}
	err := errors.Join(db.TrashSettle(ctx, t.ID, checkpoint.Gone), db.TrashDrop(ctx, t.ID))
	if err == nil {
		if err := e.setOwn(sidecarOf(t.Parked), nil); err != nil {
			e.logger.Warn("a sidecar could not be removed from the trash", "id", t.ID, "err", err)
		}
	}
	return err
}

// moveState is a thing that is moved, as the store keeps it.
func moveState(i guardfs.Info) checkpoint.State {
	s := checkpoint.State{Kind: checkpoint.File, Mode: i.Mode, UID: i.UID, GID: i.GID,
		ModTime: i.ModTime, Size: i.Size}
	switch i.Kind {
	case guardfs.KindDir:
		s.Kind, s.Size = checkpoint.Dir, 0
	case guardfs.KindSymlink:
		s.Kind, s.Size = checkpoint.Symlink, 0
	}
	return s
}

// moveChange gives the change of a move, for the checkpoint.
func moveChange(mv *Move) checkpoint.Change {
	ch := checkpoint.Change{Path: mv.Path, Role: roleTree, Before: moveState(mv.info),
		After: checkpoint.State{Kind: checkpoint.Absent}}
	if mv.Back {
		ch.Before, ch.After = ch.After, ch.Before
		return ch
	}
	if ch.Before.Kind == checkpoint.File {
		ch.Skipped = checkpoint.SkipParked
	}
	t := mv.Entry
	ch.Trash = &checkpoint.Trashed{Agent: t.Agent, Parked: t.Parked, Size: t.Size, Files: t.Files,
		Identity: t.Identity}
	return ch
}
