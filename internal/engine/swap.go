package engine

import (
	"cmp"
	"context"
	"errors"
	"path"
	"slices"
	"syscall"

	"moltisfs/checkpoint"
	"moltisfs/internal/guardfs"
	"moltisfs/internal/policy"
)

// A restore may have to put a file or link in the place of a directory (it gives way), or a directory in that of a file or link. No file system can let
// the two trade places together with all that has to come or go inside, so it is done in steps: what stands in the way goes first, files before the directories that
// hold them; then directories are made, then files. Until the first step everything is durable in the checkpoint, and the mark of a change under way
// is there: a failure or a later start goes the same steps backwards. Between the steps nothing may be at the path; no content is ever lost.

// swaps is what a change does first, because something else comes in its place.
type swaps struct {
	first targets         // files and links that go: in directories that give way, or because a directory takes their place
	dirs  []newDir        // directories that give way, innermost first
	own   map[string]bool // by path, of first and dirs

	removed, emptied int // how far it came
}

// givesWay says that a directory is there, and a file or link takes its place.
func (t *Target) givesWay() bool {
	return t.Before.Exists && t.Before.Info.Kind == guardfs.KindDir && (t.After.Kind == guardfs.KindFile || t.After.Kind == guardfs.KindSymlink)
}

// becomesDir says that a file or link is there, and a directory takes its place.
func (t *Target) becomesDir() bool {
	return t.Before.Exists && t.Before.Info.Kind != guardfs.KindDir && t.After.Kind == guardfs.KindDir
}

// swapAbove is the path of m.Swaps that p is below; "" for none.
func (m *Mutation) swapAbove(p string) string {
	for _, s := range m.Swaps {
		if below(p, s) {
			return s
		}
	}
	return ""
}

// swapOver is the target above p whose place a directory takes; nil for none.
func (ts targets) swapOver(m *Mutation, p string) *Target {
	s := m.swapAbove(p)
	if s == "" {
		return nil
	}
	for _, t := range ts {
		if t.True == s && t.becomesDir() {
			return t
		}
	}
	return nil
}

// nowhere says that a directory on the way to p is a file or link as yet, and becomes a directory in the same change. Policy has spoken already.
func (m *Mutation) nowhere(p string, err error) bool {
	return errors.Is(err, syscall.ENOTDIR) && m.swapAbove(p) != ""
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

// place opens the place of p. A link that becomes a directory in the same change is not followed: below it there is nothing as yet, as below a file (ENOTDIR).
// Policy speaks on where it leads and on the path as it will be.
func (e *Engine) place(m *Mutation, p string) (*guardfs.Place, error) {
	open := e.fs.Place
	if m.Links[p] {
		open = e.fs.PlaceLink
	}
	place, err := open(p)
	top := m.swapAbove(p)
	if _, no := errors.AsType[*policy.Denied](err); no || top == "" || !e.isLink(top) {
		return place, err
	}
	if err == nil {
		place.Close()
	}
	if err := e.judge.Judge(guardfs.Object{Spelled: p, True: p}, guardfs.Create); err != nil {
		return nil, err
	}
	return nil, &guardfs.PathError{Op: "open directory of", Path: p, Err: syscall.ENOTDIR}
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

// reload looks again at what is there; a directory is only looked at where one is expected.
func (e *Engine) reload(t *Target, m *Mutation) (*guardfs.Before, error) {
	b, err := t.place.Reload(t.Before, maxLoad)
	if _, no := errors.AsType[*guardfs.NotRegularError](err); no && slices.Contains(m.Swaps, t.Path) && t.place.Object().Info.Kind == guardfs.KindDir {
		return dirBefore(t.place)
	}
	return b, err
}

// swapsOf lists what has to go first; nil, as nearly always, when nothing has.
func (e *Engine) swapsOf(ts targets, m *Mutation) (*swaps, error) {
	s := &swaps{own: map[string]bool{}}
	for _, t := range ts {
		switch {
		case t.becomesDir():
			s.first = append(s.first, t)
		case t.givesWay():
			s.dirs = append(s.dirs, newDir{path: t.True, state: state(t.Before)})
		}
	}
	if len(s.first)+len(s.dirs) == 0 {
		return nil, nil
	}
	inside := func(p string) bool {
		return slices.ContainsFunc(s.dirs, func(d newDir) bool { return below(p, d.path) })
	}
	var drop []newDir
	for _, d := range m.Drop { // innermost first
		if inside(d) {
			was, err := e.dirState(d)
			if err != nil {
				return nil, err
			}
			drop = append(drop, newDir{path: d, state: was})
		}
	}
	for _, t := range ts {
		if t.After.Kind == guardfs.KindAbsent && !t.Unchanged() && inside(t.True) {
			s.first = append(s.first, t)
		}
	}
	s.dirs = append(drop, s.dirs...)
	for _, t := range s.first {
		s.own[t.True] = true
	}
	for _, d := range s.dirs {
		s.own[d.path] = true
	}
	return s, nil
}

// has says whether p goes with the first steps. A directory that gives way is not meant: what comes in its place comes with the others.
func (s *swaps) has(t *Target) bool { return s != nil && s.own[t.True] && !t.givesWay() }

// clear goes the first steps. How far it came is noted for putBack.
func (e *Engine) clear(ctx context.Context, s *swaps) error {
	for _, t := range s.first {
		s.removed++
		if err := e.commit(ctx, t, nil, e.sync()); err != nil {
			return err
		}
	}
	for _, d := range s.dirs {
		s.emptied++
		err := e.removeEmpty(d.path, "")
		switch {
		case inUse(err):
			return &guardfs.ConflictError{Path: d.path, Why: "something was put into it"}
		case errors.Is(err, errNotOurs):
			return &guardfs.ConflictError{Path: d.path, Why: "another thing is there now"}
		case err != nil:
			return err
		}
	}
	return nil
}

// remakeDirs makes the directories anew that clear has removed, outermost first, and says of which it could not.
func (e *Engine) remakeDirs(s *swaps) (stuck []string) {
	for i := s.emptied - 1; i >= 0; i-- {
		d := s.dirs[i]
		if err := e.remake(&checkpoint.Recorded{Path: d.path, Before: d.state}); err != nil {
			e.logger.Error("a directory that was removed could not be made again", "path", d.path, "err", err)
			stuck = append(stuck, d.path)
		}
	}
	return stuck
}

// kept are the directories of m that clear has left for the end of the change.
func (s *swaps) kept(drop []string) []string {
	if s == nil {
		return drop
	}
	return slices.DeleteFunc(slices.Clone(drop), func(d string) bool { return s.own[d] })
}

// missingBelow lists the directories that have to be made below one that takes the place of a file, down to p, from the top down.
func (e *Engine) missingBelow(m *Mutation, top *Target, p string) (dirs []string, err error) {
	for ; p != top.True; p = path.Dir(p) {
		place, err := e.place(m, p)
		if err == nil {
			place.Close()
			return nil, &guardfs.ConflictError{Path: top.True, Why: "a directory is in its place already"}
		}
		if !errors.Is(err, syscall.ENOTDIR) { // policy
			return nil, err
		}
		dirs = append(dirs, p)
	}
	slices.Reverse(dirs)
	return dirs, nil
}

// A restore's part.

// swapped looks whether item has to trade a directory for a file or link, or the reverse: only where that is what the store knows is there.
func (r *restore) swapped(item *checkpoint.Item) bool {
	place, err := r.e.fs.PlaceLink(item.Path)
	if err != nil {
		return false // the chain meets it again
	}
	defer place.Close()
	o := place.Object()
	if o.True != item.Path || item.Role == roleTree {
		return false
	}
	switch o.Info.Kind {
	case guardfs.KindDir:
		return leaf(item.Want.Kind) && item.Head.Kind == checkpoint.Dir
	case guardfs.KindFile, guardfs.KindSymlink:
		return item.Want.Kind == checkpoint.Dir && leaf(item.Head.Kind)
	}
	return false
}

func leaf(k checkpoint.Kind) bool { return k == checkpoint.File || k == checkpoint.Symlink }

// belowFile says that item is to be absent, and is because a file or link is in the place of its directory: the link that the store knows to be there,
// where it leads to a directory.
func (r *restore) belowFile(item *checkpoint.Item) bool {
	if item.Want.Kind != checkpoint.Absent {
		return false
	}
	for i := range r.plan.Items {
		if l := &r.plan.Items[i]; l.Head.Kind == checkpoint.Symlink && below(item.Path, l.Path) && r.e.isLink(l.Path) {
			now, err := r.e.stateOf(l.Path)
			return err == nil && now.Same(l.Head)
		}
	}
	place, err := r.e.fs.PlaceLink(item.Path)
	if err == nil {
		place.Close()
	}
	return errors.Is(err, syscall.ENOTDIR)
}

// stays says, for a restore that may skip, why the file that is in the place of a directory can't give way; none when it can. All that belongs into the directory
// stays away with it.
func (r *restore) stays(item *checkpoint.Item) (why Why, err error) {
	if item.Want.Kind != checkpoint.Dir {
		return none, nil // of a directory it is seen with what it holds
	}
	now, err := r.e.stateOf(item.Path)
	if err != nil {
		return none, err
	}
	if why := r.conflict(now, item); why != none {
		return why, nil
	}
	if now.Kind == checkpoint.File && !r.e.storable(item.Path, now.Size) {
		return NotSavable, nil
	}
	return hindered(r.e.allowed(nil, item.Path)), nil
}

// whole makes sure, once it is known what each target becomes, that directories that give way are empty by then, and that nothing goes below a file.
func (r *restore) whole(ts []*Target) (conflicts []Blocked) {
	for _, t := range ts {
		item := r.items[t.Path]
		kept := item.Want.Kind == checkpoint.Dir && t.Before.Exists && t.Before.Info.Kind != guardfs.KindDir && t.After.Kind != guardfs.KindDir
		if !kept && !t.givesWay() {
			continue
		}
		i := slices.IndexFunc(ts, func(o *Target) bool { return below(o.True, t.True) && o.After.Kind != guardfs.KindAbsent })
		switch {
		case i < 0 && (kept || r.holds[t.Path] == none):
		case kept:
			conflicts = append(conflicts, Blocked{Path: ts[i].True, Why: FileStays, Stays: true})
		case r.o.OnConflict == OnConflictSkip:
			t.keep()
			r.out.Skipped = append(r.out.Skipped, Blocked{Path: t.True, Why: cmp.Or(r.holds[t.Path], HoldsOthers)})
		default:
			conflicts = append(conflicts, Blocked{Path: t.True, Why: cmp.Or(r.holds[t.Path], HoldsOthers), Stays: true})
		}
	}
	return conflicts
}

// holding notes of the directories that are to give way whether something is in them that the plan does not remove. goes are the paths that it does.
func (r *restore) holding(m *Mutation, goes map[string]bool) {
	r.holds = map[string]Why{}
	for _, s := range m.Swaps {
		if r.items[s].Want.Kind == checkpoint.Dir {
			continue
		}
		there, why := r.e.onlyHolds(s, goes)
		// What is moved as a whole comes back by a rename into the very directory that would be gone.
		moves := slices.ContainsFunc(m.Moves, func(mv *Move) bool { return below(mv.Path, s) })
		switch {
		case there && why != none:
			r.holds[s] = HoldsOthers
		case there && moves:
			r.holds[s] = HoldsMoved
		}
	}
}

// newDir is the directory that takes the place of a file.
func (t *Target) newDir() NewDir {
	if t.After.Meta == nil || t.After.Meta.Mode.Perm() == 0 {
		return NewDir{Path: t.True, Mode: 0o700}
	}
	return NewDir{t.True, t.After.Meta.Mode, t.After.Meta}
}
