package engine

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"syscall"
	"time"

	"moltisfs/checkpoint"
	"moltisfs/internal/engine/rewind"
	"moltisfs/internal/guardfs"
	"moltisfs/internal/policy"
)

// forbidden says that it is the system, not policy, that does not let us.
func forbidden(err error) bool {
	_, system := errors.AsType[*guardfs.PathError](err)
	return system && errors.Is(err, fs.ErrPermission)
}

// dirsToMake keeps of the directories that are to be there those that are not. Policy speaks first.
func (r *restore) dirsToMake() error {
	var make []Step
	for _, d := range r.dirs {
		is, why, err := r.dirNow(d.Path)
		switch {
		case why == none && err == nil && is == guardfs.KindDir:
			continue
		case why == none && err == nil && is == guardfs.KindAbsent:
			// Nothing can be looked at below what a plan swaps.
			why, err = r.mayChange(cmp.Or(r.d.swapAbove(d.Path), d.Path))
		case why == none && err == nil && r.o.OnConflict == OnConflictSkip:
			why = OtherKind.Of(is)
		case why == none && err == nil:
			err = Refuse(Conflicts, "", []Blocked{{Path: d.Path, Why: KindForDir.Of(is)}})
		}
		if err != nil {
			return err
		}
		if why != none {
			r.skip(d.Path, why)
			continue
		}
		make = append(make, d)
	}
	r.dirs = make
	return nil
}

// dirsToGo picks those directories that can go, the deepest first. One that was a file in between
// is elsewhere in the plan.
func (r *restore) dirsToGo(ctx context.Context) error {
	slices.SortFunc(r.drop, func(a, b string) int { return strings.Compare(b, a) })
	all := r.drop
	r.drop = nil
	for _, d := range all {
		r.goes[d] = false // until it is seen that it can
	}
	for _, d := range all {
		is, why, _ := r.dirNow(d) // what can't be looked at is met again
		if why == none && is == guardfs.KindOther && r.o.OnConflict == OnConflictSkip {
			why = OtherKind.Of(is)
		}
		there, stays := r.e.onlyHolds(d, r.goes)
		var err error
		switch {
		case why != none:
		case stays != none:
			r.kept = append(r.kept, Blocked{Path: d, Why: stays})
			continue
		case !there:
			continue
		default:
			if why, err = r.mayChange(d); err == nil && why == none && r.remade(ctx, d) {
				r.kept = append(r.kept, Blocked{Path: d, Why: ChangedOutside})
				continue
			}
		}
		switch {
		case err != nil:
			return err
		case why != none:
			r.skip(d, why)
		default:
			r.goes[d] = true
			r.drop = append(r.drop, d)
		}
	}
	return nil
}

// remade says that a directory is younger than the Mkdir that made one there: it is somebody
// else's. What was made as the parent of a file goes if it is empty, whoever made it.
func (r *restore) remade(ctx context.Context, name string) bool {
	for i := range r.plan.Items {
		item := &r.plan.Items[i]
		if item.Path != name || item.HeadID == "" || item.Head.Kind != checkpoint.Dir {
			continue
		}
		op, err := r.db.Get(ctx, item.HeadID, checkpoint.Scope{AllSessions: true})
		o, _, lerr := r.e.fs.Lstat(name)
		return err == nil && op.Kind == checkpoint.KindMkdir && lerr == nil && o.Info.ID.Birth != 0 &&
			time.Unix(0, o.Info.ID.Birth).After(op.Time.Add(clockTick))
	}
	return false
}

// mayChange asks the system early whether what is at a path may be changed. why: a restore that may
// skip leaves it alone.
func (r *restore) mayChange(name string) (why Why, err error) {
	err = r.e.allowed(nil, name)
	if why = blockedWhy(err); why != none && r.o.OnConflict == OnConflictSkip {
		return why, nil
	}
	return none, err
}

// dirNow looks at the path of a directory that is to be there, or to go. why: a restore that may
// skip leaves it alone.
func (r *restore) dirNow(name string) (is guardfs.Kind, why Why, err error) {
	if r.belowStay(name) {
		return is, FileOnTheWay, nil
	}
	place, err := r.d.place(name, false)
	if _, missing := errors.AsType[*guardfs.MissingParentError](err); missing ||
		r.d.nowhere(name, err) {
		return guardfs.KindAbsent, none, nil
	}
	if err == nil {
		defer place.Close()
		if o := place.Object(); o.True == name {
			return o.Info.Kind, none, nil
		}
		err = &guardfs.SymlinkError{Path: name, Target: place.Object().True}
	}
	if why := r.unseen(name, err, place); why != none {
		return is, why, nil
	}
	return is, none, err
}

// oneOrTheOther finds paths that exclude each other. A file or link is wanted as it was at one
// time, and something below it as it was at another. With "skip" the file is skipped, because what
// is below it tells more of what was there.
func (r *restore) oneOrTheOther() error {
	var wanted []string
	for _, name := range r.paths {
		if r.items[name].Want.Kind != checkpoint.Absent {
			wanted = append(wanted, name)
		}
	}
	for _, d := range r.dirs {
		wanted = append(wanted, d.Path)
	}
	for _, mv := range r.moves {
		if mv.Back {
			wanted = append(wanted, mv.Path)
		}
	}
	over := rewind.Over(wanted,
		func(name string) bool { return r.items[name] != nil && leaf(r.items[name].Want.Kind) })
	if len(over) == 0 {
		return nil
	}
	if r.o.OnConflict != OnConflictSkip {
		var both []Blocked
		for _, dir := range slices.Sorted(maps.Keys(over)) {
			both = append(both, Blocked{Path: dir, Why: WasDirOf.Of(over[dir])},
				Blocked{Path: over[dir], Why: WasFile.Of(dir)})
		}
		return Refuse(BothKinds, "", both)
	}
	for dir, below := range over {
		r.skip(dir, WasDirOf.Of(below))
		delete(r.items, dir)
	}
	gone := func(name string) bool { return over[name] != "" }
	r.paths, r.d.swaps = slices.DeleteFunc(r.paths, gone), slices.DeleteFunc(r.d.swaps, gone)
	return nil
}

// settleDirs decides which directories come and go, now that it is known what the files become.
func (r *restore) settleDirs() {
	var dirs, comes []string
	for i := range r.dirs {
		dirs = append(dirs, r.dirs[i].Path)
	}
	for _, t := range r.d.files {
		if t.After.Kind != guardfs.KindAbsent {
			comes = append(comes, t.True)
		}
	}
	for _, mv := range r.moves {
		if mv.Back {
			comes = append(comes, mv.Path)
		}
	}
	skipped := slices.Clone(r.unnamed)
	for _, l := range r.out.Skipped {
		skipped = append(skipped, l.Path)
	}
	made, gone, used := rewind.Settle(dirs, r.drop, comes, skipped)
	r.dirs = slices.DeleteFunc(r.dirs, func(d Step) bool { return !slices.Contains(made, d.Path) })
	r.drop = gone
	for _, dir := range used {
		r.kept = append(r.kept, Blocked{Path: dir, Why: InUse})
	}
}

// onlyHolds looks whether dir has nothing in it but what goes. why says what keeps it.
func (e *Engine) onlyHolds(dir string, goes map[string]bool) (there bool, why Why) {
	h, err := e.fs.Resolve(dir, guardfs.Remove)
	if _, no := errors.AsType[*policy.Denied](err); no || errors.Is(err, fs.ErrNotExist) ||
		errors.Is(err, syscall.ENOTDIR) {
		return false, none // what is denied is not named
	}
	if err != nil {
		return true, whyDirStays(err)
	}
	defer h.Close()
	if h.Object().True != dir || h.Object().Info.Kind != guardfs.KindDir {
		return false, none // what was made is gone
	}
	d, err := h.Dir()
	if err != nil {
		return true, whyDirStays(err)
	}
	defer d.Close()
	entries, denied, err := d.List(nil)
	if err != nil {
		return true, whyDirStays(err)
	}
	if denied > 0 ||
		slices.ContainsFunc(entries, func(in guardfs.Entry) bool { return !goes[dir+"/"+in.Name] }) {
		return true, InUse
	}
	return true, none
}

// whyDirStays says why a directory that can't be looked into stays.
func whyDirStays(err error) Why {
	if forbidden(err) {
		return Unlisted
	}
	return NotListed.Of(said(err))
}
