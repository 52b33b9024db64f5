package guardfs

import (
	"errors"
	"io/fs"
	"syscall"
)

// PlaceLink is Place for those who mean the link itself: to load, remove or restore it.
func (f *FS) PlaceLink(path string) (*Place, error) { return f.placeFor(path, Modify) }

// Object is the occupant as Place or the last Load saw it; its Info.Kind is KindAbsent when there was none.
func (p *Place) Object() Object { return p.object }

// ParentTrue is the directory's true name.
func (p *Place) ParentTrue() string { return p.dir.True }

// Base is the name in the directory.
func (p *Place) Base() string { return p.base }

// LockKey is the same for every process and every spelling that could mean this place; see Locks.
func (p *Place) LockKey() string {
	return p.dir.Info.ID.String() + "/" + foldBase(p.base)
}

// Load reads what stands there now, content and metadata, through one descriptor; the Judge is
// asked again if it is not what was last looked at. Nothing there is a Before with Exists false.
// More than max bytes is a *TooLargeError (max < 0: no limit), and what is neither file nor symlink
// a *NotRegularError. A symlink that came there after Place is a *SymlinkError; only PlaceLink
// means links.
func (p *Place) Load(max int64) (*Before, error) { return p.read(nil, max, refuseLarger) }

// Peek is Reload, but a file of more than most bytes is not read: its Before has neither Content nor
// Hash. before may be nil.
func (p *Place) Peek(before *Before, most int64) (*Before, error) {
	return p.read(before, most, peekLarger)
}

// Sum is Load of a file of any size, without Content: it is read only for its hash.
func (p *Place) Sum() (*Before, error) { return p.read(nil, -1, onlyHash) }

func (p *Place) conflict(why Meanwhile) error {
	return &ConflictError{Path: p.object.Spelled, Why: why}
}

// nameFailed is the failure of an operation on the name of p: a *FixedError where the name can't be changed, and mostly a *PathError else.
func (p *Place) nameFailed(op string, err error) error {
	err = p.failed(op, err)
	switch f := (&FixedError{Path: p.object.Spelled, Err: said(err)}); f.Err {
	case syscall.EBUSY:
		return f
	case syscall.EACCES, syscall.EPERM:
		f.Dir, f.Sticky = p.dir.True, f.Err == syscall.EPERM && p.dir.Info.Mode&fs.ModeSticky != 0
		return f
	}
	return err
}

// said is the word of the system in an error of Place.failed.
func said(err error) error {
	if pe, ok := errors.AsType[*PathError](err); ok {
		return pe.Err
	}
	return err
}

// True is the directory's true name when it was opened.
func (d *Dir) True() string { return d.name }

// List reads every entry that may be named and appends it to buf[:0]; denied is the number of the others. The order is
// the directory's own. What was read before an error comes with it.
func (d *Dir) List(buf []Entry) (entries []Entry, denied int, err error) { return d.list(buf, false) }

// ListWays is List with the directories among the others that only lead to something that may be seen: Entry.Way.
func (d *Dir) ListWays(buf []Entry) (entries []Entry, denied int, err error) {
	return d.list(buf, true)
}

// Object is what the handle holds, as it was when it was resolved.
func (h *Handle) Object() Object { return h.object }

// Info is what stat said when the file was opened.
func (f *File) Info() Info { return f.info }

// Foresee opens the place at the nearest directory above path that is there and stays, and lists
// what has to be made below it for path to be there: true names, topmost first. What gone answers
// true for counts as absent. name is the true name that path will have.
func (f *FS) Foresee(path string, gone func(name string) bool) (at *Place, missing []string, name string, err error) {
	at, err = f.PlaceLink(path)
	var noParent *MissingParentError
	switch {
	case err == nil:
		name = at.Object().True
	case errors.As(err, &noParent):
		if missing, name, err = f.Missing(path); err == nil && missing == nil {
			err = noParent // it has just been made
		}
		if err == nil {
			at, err = f.PlaceLink(missing[0])
		}
	case gone != nil && errors.Is(err, syscall.ENOTDIR):
		dir, base, serr := splitPlace(path)
		if serr != nil {
			return nil, nil, "", serr
		}
		above, between, parent, aerr := f.Foresee(dir, gone)
		switch {
		case aerr != nil:
			return nil, nil, "", aerr
		case !gone(parent):
			above.Close() //nolint:errcheck // nothing was written through it
			return nil, nil, "", err
		}
		return above, append(between, parent), join(parent, base), nil
	}
	for err == nil && gone != nil && gone(at.ParentTrue()) {
		dir := at.ParentTrue()
		at.Close() //nolint:errcheck // nothing was written through it
		missing = append([]string{dir}, missing...)
		at, err = f.PlaceLink(dir)
	}
	if err != nil {
		return nil, nil, "", err
	}
	return at, missing, name, nil
}

// toMake lists the directories of a path that are missing below at, which is there: rest is what of
// the path was left. The Judge is asked for Create of each.
func (f *FS) toMake(path, at string, rest []string, hops []Hop) (dirs []string, err error) {
	for _, c := range rest {
		switch c {
		case "", ".":
			continue
		case "..":
			return nil, &BadPathError{Path: path, Why: "goes up from a directory that does not exist"}
		}
		at = join(at, c)
		if err := f.judge.Judge(Object{Spelled: at, True: at, Hops: hops}, Create); err != nil {
			return nil, err
		}
		dirs = append(dirs, at)
	}
	return dirs, nil
}
