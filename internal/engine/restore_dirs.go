package engine

import (
	"errors"
	"io/fs"
	"maps"
	"path"
	"slices"
	"syscall"

	"moltisfs/checkpoint"
	"moltisfs/internal/edit"
	"moltisfs/internal/guardfs"
	"moltisfs/internal/policy"
)

const (
	unreachable = "the system does not let us into a directory on the way to it"
	unreadable  = "the system does not let us read it"
)

// leave lets a restore that may skip go on without a file that this process may not read, of which nobody can tell what it is now.
func (r *restore) leave(path string, err error) bool {
	if r.o.OnConflict != OnConflictSkip || !forbidden(err) {
		return false
	}
	r.left = append(r.left, Left{path, unreadable})
	return true
}

// forbidden says that it is the system, not policy, that does not let us.
func forbidden(err error) bool {
	_, system := errors.AsType[*guardfs.PathError](err)
	return system && errors.Is(err, fs.ErrPermission)
}

// obstacle says what stands at a path that is of another kind than the plan knows, or on the way to it, so that it can't even be
// loaded; "" when nothing does, or when it is the chain that should refuse.
func (e *Engine) obstacle(item *checkpoint.Item) string {
	place, err := e.fs.PlaceLink(item.Path)
	if errors.Is(err, syscall.ENOTDIR) {
		return "something that is no directory is on the way to it"
	}
	if _, no := errors.AsType[*policy.Denied](err); no {
		return "it is out of reach today"
	}
	if forbidden(err) {
		return unreachable
	}
	if err != nil {
		return ""
	}
	defer place.Close()
	o := place.Object()
	if o.True != item.Path {
		return "a directory on the way to it has become a symbolic link"
	}
	known := func(k checkpoint.Kind) bool { return item.Want.Kind == k || item.Head.Kind == k }
	ok := true
	switch o.Info.Kind {
	case guardfs.KindDir:
		// A plan of a directory does nothing to one that is there but remove it when nothing is in it.
		ok = known(checkpoint.Dir) || item.Role == checkpoint.RoleParent
	case guardfs.KindSymlink:
		ok = known(checkpoint.Symlink)
	case guardfs.KindFile:
		ok = item.Want.Kind != checkpoint.Dir
	case guardfs.KindAbsent:
	default:
		ok = false
	}
	if ok {
		return ""
	}
	return "a " + o.Info.Kind.String() + " is there now"
}

// onlyNew keeps of a plan's directories those that have to be made or can go, so that a restore of what is there already
// changes nothing. Policy speaks on every one that is made. goes are the paths that the plan removes.
func (r *restore) onlyNew(m *Mutation, goes map[string]bool) error {
	e := r.e
	var make []NewDir
	toMake := func(d NewDir) error {
		at := d.Path
		if top := m.swapAbove(at); top != "" {
			at = top // only there is something to look at
		}
		err := e.allowed(nil, at)
		if why := hindered(err); why != "" && r.o.OnConflict == OnConflictSkip {
			r.left = append(r.left, Left{d.Path, why})
			return nil
		}
		make = append(make, d)
		return err
	}
	for _, d := range m.Dirs {
		place, err := e.place(m, d.Path)
		if _, ok := errors.AsType[*guardfs.MissingParentError](err); ok || m.nowhere(d.Path, err) {
			if err := toMake(d); err != nil {
				return err
			}
			continue
		}
		if err != nil {
			return err
		}
		kind := place.Object().Info.Kind
		place.Close()
		switch kind {
		case guardfs.KindDir:
		case guardfs.KindAbsent:
			if err := toMake(d); err != nil {
				return err
			}
		default:
			return &ConflictsError{Conflicts: []PathConflict{{Path: d.Path, Why: "a " + kind.String() + " is in the place of the directory"}}}
		}
	}
	var drop []string
	for _, d := range m.Drop {
		goes[d] = false // until it is seen that it can
	}
	for _, d := range m.Drop { // innermost first
		there, why := e.onlyHolds(d, goes)
		if why != "" {
			r.kept = append(r.kept, KeptDir{Path: d, Why: why})
		}
		if !there || why != "" {
			continue
		}
		if err := e.allowed(nil, d); err != nil {
			why := hindered(err)
			if why == "" || r.o.OnConflict != OnConflictSkip {
				return err
			}
			r.left = append(r.left, Left{d, why})
			continue
		}
		goes[d] = true
		drop = append(drop, d)
	}
	m.Dirs, m.Drop = make, drop
	return nil
}

// oneOrTheOther finds what can't be there together: a file or link, and something below it, that the plan wants back as they were at different times. A
// restore that may skip leaves the file alone; what is below it tells more of what was there.
func (r *restore) oneOrTheOther(m *Mutation) error {
	leaf := func(name string) bool {
		item := r.items[name]
		return item != nil && (item.Want.Kind == checkpoint.File || item.Want.Kind == checkpoint.Symlink)
	}
	var wanted []string
	for _, name := range m.Paths {
		if r.items[name].Want.Kind != checkpoint.Absent {
			wanted = append(wanted, name)
		}
	}
	for _, d := range m.Dirs {
		wanted = append(wanted, d.Path)
	}
	for _, mv := range m.Moves {
		if mv.Back {
			wanted = append(wanted, mv.Path)
		}
	}
	over := map[string]string{} // by file: something below it
	for _, name := range wanted {
		for dir := path.Dir(name); len(dir) > 1; dir = path.Dir(dir) {
			if over[dir] == "" && leaf(dir) {
				over[dir] = name
			}
		}
	}
	if len(over) == 0 {
		return nil
	}
	if r.o.OnConflict != OnConflictSkip {
		no := &ConflictsError{Both: true}
		for _, dir := range slices.Sorted(maps.Keys(over)) {
			no.Conflicts = append(no.Conflicts, PathConflict{Path: dir, Why: bothKinds + edit.ShownPath(over[dir])},
				PathConflict{Path: over[dir], Why: "it was there when " + edit.ShownPath(dir) + " was a directory, which is to be a file again"})
		}
		return no
	}
	for dir, below := range over {
		r.left = append(r.left, Left{dir, bothKinds + edit.ShownPath(below)})
		delete(r.items, dir)
	}
	gone := func(name string) bool { return over[name] != "" }
	m.Paths, m.Swaps = slices.DeleteFunc(m.Paths, gone), slices.DeleteFunc(m.Swaps, gone)
	return nil
}

const bothKinds = "at another time it was the directory of "

// settleDirs leaves of the directories to be made those that something comes into, and of those to go those that nothing is in then, now that it is known what
// the targets become. A directory is not made for what is skipped only.
func (r *restore) settleDirs(m *Mutation, ts []*Target, dirs []NewDir, drop []string) (make []NewDir, gone []string) {
	hold := func(in map[string]bool, name string) {
		for dir := path.Dir(name); len(dir) > 1 && !in[dir]; dir = path.Dir(dir) {
			in[dir] = true
		}
	}
	comes, skipped := map[string]bool{}, map[string]bool{}
	for _, t := range ts {
		if t.After.Kind != guardfs.KindAbsent {
			hold(comes, t.True)
		}
	}
	for _, mv := range m.Moves {
		if mv.Back {
			hold(comes, mv.Path)
		}
	}
	for _, l := range r.out.Skipped {
		hold(skipped, l.Path)
	}
	for _, name := range r.away {
		hold(skipped, name)
	}
	for _, d := range slices.Backward(dirs) { // from the top down they are
		if skipped[d.Path] && !comes[d.Path] {
			continue
		}
		hold(comes, d.Path)
		make = append(make, d)
	}
	slices.Reverse(make)
	r.full = nil
	for _, d := range drop {
		if comes[d] {
			r.full = append(r.full, KeptDir{Path: d, Why: keptInUse})
			continue
		}
		gone = append(gone, d)
	}
	return make, gone
}

// onlyHolds looks whether dir is a directory with nothing in it but what goes. why says what keeps it.
func (e *Engine) onlyHolds(dir string, goes map[string]bool) (there bool, why string) {
	h, err := e.fs.Resolve(dir, guardfs.Remove)
	if _, no := errors.AsType[*policy.Denied](err); no || errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return false, "" // what is denied is not named
	}
	if err != nil {
		return true, keptBy(err)
	}
	defer h.Close()
	if h.Object().True != dir || h.Object().Info.Kind != guardfs.KindDir {
		return false, "" // what was made is gone
	}
	d, err := h.Dir()
	if err != nil {
		return true, keptBy(err)
	}
	defer d.Close()
	entries, denied, err := d.List(nil)
	if err != nil {
		return true, keptBy(err)
	}
	if denied > 0 {
		return true, keptInUse
	}
	for _, entry := range entries {
		if !goes[dir+"/"+entry.Name] {
			return true, keptInUse
		}
	}
	return true, ""
}

// keptBy says why a directory that can't be looked into stays.
func keptBy(err error) string {
	if forbidden(err) {
		return keptUnlisted
	}
	return "it could not be looked into: " + reason(err)
}

// dirsStill looks again, under the lock: which directories still have to be made, and which of
// those that go are still there. What can't be looked at is met again.
func (e *Engine) dirsStill(ts targets, m *Mutation) (made []NewDir, err error) {
	m.Drop = slices.DeleteFunc(m.Drop, func(path string) bool {
		place, err := e.fs.PlaceLink(path)
		if err != nil {
			_, gone := errors.AsType[*guardfs.MissingParentError](err)
			return gone || errors.Is(err, syscall.ENOTDIR)
		}
		defer place.Close()
		o := place.Object()
		return o.True == path && o.Info.Kind != guardfs.KindDir
	})
	return e.toMake(ts, m)
}
