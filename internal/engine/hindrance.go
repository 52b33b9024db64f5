package engine

import (
	"bytes"
	"errors"
	"io/fs"
	"path"
	"path/filepath"
	"syscall"

	"moltisfs/internal/guardfs"
	"moltisfs/internal/policy"
)

// hindrance is why a restore can't or must not change a target: WouldLose, ReadOnly,
// HardLinked, or a *guardfs.PathError where the system would not let it.
func (r *restore) hindrance(t *Target) error {
	if r.e.unheld(t) {
		return Refuse(WouldLose, t.True, nil)
	}
	if err := r.e.changeable(t); err != nil {
		return err
	}
	dir := path.Dir(filepath.ToSlash(t.True))
	if t.place == nil && r.asked[dir] { // that is not there yet: once for all that go into it
		return nil
	}
	err := r.e.allowed(t.place, t.True)
	r.asked[dir] = err == nil
	return err
}

// unseen is why a restore that may skip leaves alone what it can't look at; none for an error that
// stops it. place is nil where not even its directory could be opened.
func (r *restore) unseen(name string, err error, place *guardfs.Place) Why {
	if err == nil || r.o.OnConflict != OnConflictSkip {
		return none
	}
	_, denied := errors.AsType[*policy.Denied](err)
	_, link := errors.AsType[*guardfs.SymlinkError](err)
	_, kind := errors.AsType[*guardfs.NotRegularError](err)
	switch {
	case place != nil && place.Object().True != name:
		return LinkOnTheWay
	case errors.Is(err, syscall.ENOTDIR):
		return FileOnTheWay
	case denied:
		return OutOfReach
	case link && r.e.isLink(name):
		return OtherKind.Of(guardfs.KindSymlink)
	case link:
		return LinkOnTheWay
	case kind && place != nil:
		return OtherKind.Of(place.Object().Info.Kind)
	case forbidden(err) && place != nil:
		return Unreadable
	case forbidden(err):
		return Unreachable
	}
	return none
}

// hindered is a hindrance as the reason why a path is left alone; none for any other error.
func hindered(err error) Why {
	r, _ := errors.AsType[*Refusal](err)
	switch {
	case errors.Is(err, WouldLose):
		return NotSavable
	case errors.Is(err, ReadOnly):
		return IsReadOnly.Of(r.Facts)
	case errors.Is(err, HardLinked):
		return IsHardLinked.Of(r.Facts)
	case errors.Is(err, syscall.EROFS):
		return VolumeReadOnly
	case errors.Is(err, fs.ErrPermission):
		return DirNotWritable
	}
	return none
}

// allowed asks the system early whether the directory of path, or the nearest one that exists above it, can be written. place may be nil.
func (e *Engine) allowed(place *guardfs.Place, name string) error {
	if place == nil {
		p, err := e.fs.PlaceLink(name)
		if gone, ok := errors.AsType[*guardfs.MissingParentError](err); ok {
			p, err = e.fs.PlaceLink(gone.Missing)
		}
		if err != nil {
			return nil //nolint:nilerr // the chain meets it again, and says so
		}
		defer p.Close()
		place = p
	}
	err := place.Allowed()
	if pe, ok := errors.AsType[*guardfs.PathError](err); ok {
		return &guardfs.PathError{Op: pe.Op, Path: name, Err: pe.Err}
	}
	return err
}

// unheld says that the change would put something else in the place of content that the store can't or must not hold.
func (e *Engine) unheld(t *Target) bool {
	b := t.Before
	if !b.Exists || b.Info.Kind != guardfs.KindFile || e.storable(t.True, int64(len(b.Content))) {
		return false
	}
	return t.After.Kind != guardfs.KindFile || !bytes.Equal(t.After.Content, b.Content)
}
