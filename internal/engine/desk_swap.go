package engine

import (
	"errors"
	"slices"
	"syscall"

	"moltisfs/internal/guardfs"
	"moltisfs/internal/policy"
)

// A restore may put a file or link in the place of a directory, which gives way, or a directory in
// the place of a file or link.
//
// Such a plan may also put something below the new directory. Nothing can be
// there as long as the file is. So a desk notes such places in advance.

// swapAbove is the path of those that trade that p is below; "" for none.
func (d *Desk) swapAbove(p string) string {
	for _, s := range d.swaps {
		if below(p, s) {
			return s
		}
	}
	return ""
}

// swapOver is the target above p whose place a directory takes; nil for none.
func (d *Desk) swapOver(p string) *Target {
	s := d.swapAbove(p)
	if s == "" {
		return nil
	}
	for _, t := range d.files {
		if t.True == s && t.becomesDir() {
			return t
		}
	}
	return nil
}

// inside says that p is in a directory that gives way to a file or link.
func (d *Desk) inside(p string) bool {
	s := d.swapAbove(p)
	return s != "" &&
		slices.ContainsFunc(d.files, func(t *Target) bool { return t.True == s && t.givesWay() })
}

// nowhere says that a directory on the way to p is a file or link yet, and becomes a directory in
// the same change. Policy has spoken already.
func (d *Desk) nowhere(p string, err error) bool {
	return errors.Is(err, syscall.ENOTDIR) && d.swapAbove(p) != ""
}

// place opens the place of p; link says that a link there is meant itself. A link that becomes a
// directory in the same change is not followed: below it there is nothing as yet, as below a file
// (ENOTDIR). Policy speaks on where it leads and on the path as it will be.
func (d *Desk) place(p string, link bool) (*guardfs.Place, error) {
	open := d.e.fs.Place
	if link {
		open = d.e.fs.PlaceLink
	}
	place, err := open(p)
	top := d.swapAbove(p)
	if _, no := errors.AsType[*policy.Denied](err); no || top == "" || !d.e.isLink(top) {
		return place, err
	}
	if err == nil {
		place.Close()
	}
	if err := d.e.judge.Judge(guardfs.Object{Spelled: p, True: p}, guardfs.Create); err != nil {
		return nil, err
	}
	return nil, &guardfs.PathError{Op: "open directory of", Path: p, Err: syscall.ENOTDIR}
}

// look reads what is there, or what of it changed since; a directory only where one gives way. What
// a client holds comes in the place of a file; disk is that then.
func (d *Desk) look(t *Target) (now, disk *guardfs.Before, err error) {
	was := t.Before
	if t.Unsaved() {
		was = t.disk
	}
	var b *guardfs.Before
	if t.rules.above > 0 {
		b, err = t.place.Peek(was, t.rules.above)
	} else {
		b, err = t.place.Reload(was, maxLoad)
	}
	if _, no := errors.AsType[*guardfs.NotRegularError](err); no && slices.Contains(d.swaps, t.Path) &&
		t.place.Object().Info.Kind == guardfs.KindDir {
		b, err = dirBefore(t.place)
		return b, nil, err
	}
	if err != nil {
		return nil, nil, err
	}
	return d.overlay(t, b)
}

// givesWay says that a directory is there, and a file or link takes its place.
func (t *Target) givesWay() bool {
	return t.Before.Exists && t.Before.Info.Kind == guardfs.KindDir &&
		(t.After.Kind == guardfs.KindFile || t.After.Kind == guardfs.KindSymlink)
}

// becomesDir says that a file or link is there, and a directory takes its place.
func (t *Target) becomesDir() bool {
	return t.Before.Exists && t.Before.Info.Kind != guardfs.KindDir && t.After.Kind == guardfs.KindDir
}

// dirBefore is the directory at a place as what was there before.
func dirBefore(p *guardfs.Place) (*guardfs.Before, error) {
	meta, err := p.DirMetadata()
	if err != nil {
		return nil, err
	}
	i := p.Object().Info
	meta.ModTime = i.ModTime
	return &guardfs.Before{Exists: true, Info: i, Meta: meta}, nil
}

// isLink says that a link is at that very path.
func (e *Engine) isLink(p string) bool {
	place, err := e.fs.PlaceLink(p)
	if err != nil {
		return false
	}
	defer place.Close()
	return place.Object().True == p && place.Object().Info.Kind == guardfs.KindSymlink
}

// newDir is the directory that takes the place of a file.
func (t *Target) newDir() Step {
	if t.After.Meta == nil || t.After.Meta.Mode.Perm() == 0 {
		return mkdir(t.True, 0o700)
	}
	return mkdirAs(t.True, metaState(*t.After.Meta))
}
