package engine

import (
	"errors"
	"io/fs"
	"maps"
	"path"
	"slices"
	"syscall"

	"moltisfs/checkpoint"
	"moltisfs/internal/guardfs"
	"moltisfs/internal/policy"
)

// leave lets a restore that may skip go on without a file that this process may not read, of which nobody can tell what it is now.
func (r *restore) leave(path string, err error) bool {
	if r.o.OnConflict != OnConflictSkip || !forbidden(err) {
		return false
	}
	r.left = append(r.left, Blocked{Path: path, Why: Unreadable})
	return true
}

// forbidden says that it is the system, not policy, that does not let us.
func forbidden(err error) bool {
	_, system := errors.AsType[*guardfs.PathError](err)
	return system && errors.Is(err, fs.ErrPermission)
}

// obstacle says what stands at a path that is of another kind than the plan knows, or on the way to it, so that it can't even be
// loaded; none when nothing does, or when it is the chain that should refuse.
func (e *Engine) obstacle(item *checkpoint.Item) Why {
	place, err := e.fs.PlaceLink(item.Path)
	if errors.Is(err, syscall.ENOTDIR) {
		return FileOnTheWay
	}
	if _, no := errors.AsType[*policy.Denied](err); no {
		return OutOfReach
	}
	if forbidden(err) {
		return Unreachable
	}
	if err != nil {
		return none
	}
	defer place.Close()
	o := place.Object()
	if o.True != item.Path {
		return LinkOnTheWay
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
		return none
	}
	return OtherKind.Of(o.Info.Kind)
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
		if why := hindered(err); why != none && r.o.OnConflict == OnConflictSkip {
			r.left = append(r.left, Blocked{Path: d.Path, Why: why})
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
			return Refuse(Conflicts, "", []Blocked{{Path: d.Path, Why: KindForDir.Of(kind)}})
		}
	}
	var drop []string
	for _, d := range m.Drop {
		goes[d] = false // until it is seen that it can
	}
	for _, d := range m.Drop { // innermost first
		there, why := e.onlyHolds(d, goes)
		if why != none {
			r.kept = append(r.kept, Blocked{Path: d, Why: why})
		}
		if !there || why != none {
			continue
		}
		if err := e.allowed(nil, d); err != nil {
			why := hindered(err)
			if why == none || r.o.OnConflict != OnConflictSkip {
				return err
			}
			r.left = append(r.left, Blocked{Path: d, Why: why})
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
		var both []Blocked
		for _, dir := range slices.Sorted(maps.Keys(over)) {
			both = append(both, Blocked{Path: dir, Why: WasDirOf.Of(over[dir])}, Blocked{Path: over[dir], Why: WasFile.Of(dir)})
		}
		return Refuse(BothKinds, "", both)
	}
	for dir, below := range over {
		r.left = append(r.left, Blocked{Path: dir, Why: WasDirOf.Of(below)})
		delete(r.items, dir)
	}
	gone := func(name string) bool { return over[name] != "" }
	m.Paths, m.Swaps = slices.DeleteFunc(m.Paths, gone), slices.DeleteFunc(m.Swaps, gone)
	return nil
}

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
			r.full = append(r.full, Blocked{Path: d, Why: InUse})
			continue
		}
		gone = append(gone, d)
	}
	return make, gone
}

// onlyHolds looks whether dir is a directory with nothing in it but what goes. why says what keeps it.
func (e *Engine) onlyHolds(dir string, goes map[string]bool) (there bool, why Why) {
	h, err := e.fs.Resolve(dir, guardfs.Remove)
	if _, no := errors.AsType[*policy.Denied](err); no || errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return false, none // what is denied is not named
	}
	if err != nil {
		return true, keptBy(err)
	}
	defer h.Close()
	if h.Object().True != dir || h.Object().Info.Kind != guardfs.KindDir {
		return false, none // what was made is gone
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
		return true, InUse
	}
	for _, entry := range entries {
		if !goes[dir+"/"+entry.Name] {
			return true, InUse
		}
	}
	return true, none
}

// keptBy says why a directory that can't be looked into stays.
func keptBy(err error) Why {
	if forbidden(err) {
		return Unlisted
	}
	return NotListed.Of(said(err))
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
