package engine

import (
	"bytes"
	"errors"
	"io/fs"
	"path"
	"path/filepath"
	"syscall"

	"moltisfs/internal/guardfs"
)

// hindrance is why a restore can't or must not change a target that it wants to: WouldLose, ReadOnly,
// HardLinked, or a *guardfs.PathError where the system would not let it.
func (r *restore) hindrance(t *Target) error {
	if r.e.unheld(t) {
		return Refuse(WouldLose, t.True, nil)
	}
	if err := r.e.changeable(t); err != nil {
		return err
	}
	if t.place != nil {
		return r.e.allowed(t.place, t.True)
	}
	dir := path.Dir(filepath.ToSlash(t.True)) // that is not there yet: once for all that go into it
	if !r.asked[dir] {
		if err := r.e.allowed(nil, t.True); err != nil {
			return err
		}
		if r.asked == nil {
			r.asked = map[string]bool{}
		}
		r.asked[dir] = true
	}
	return nil
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

// differs is the opposite of unchanged before the hash of what it becomes is known.
func (t *Target) differs() bool {
	b, a := t.Before, &t.After
	switch {
	case !b.Exists || a.Kind == guardfs.KindAbsent:
		return b.Exists || a.Kind != guardfs.KindAbsent
	case a.Kind != b.Info.Kind:
		return true
	case a.Kind == guardfs.KindFile:
		return !bytes.Equal(a.Content, b.Content) || a.Meta != nil
	}
	return a.Kind == guardfs.KindSymlink && a.Target != string(b.Content)
}

// unheld says that the change would put something else in the place of content that the store can't or must not hold.
func (e *Engine) unheld(t *Target) bool {
	b := t.Before
	if !b.Exists || b.Info.Kind != guardfs.KindFile || e.storable(t.True, int64(len(b.Content))) {
		return false
	}
	return t.After.Kind != guardfs.KindFile || !bytes.Equal(t.After.Content, b.Content)
}
