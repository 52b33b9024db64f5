package engine

import (
	"errors"
	"slices"
	"syscall"

	"moltisfs/checkpoint"
	"moltisfs/internal/guardfs"
)

// swapped says whether item trades a directory for a file or link, or the reverse. It does so only
// where the store knows what is there now.
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

// belowFile says that item is to be absent, and is: a file or link is in the place of its
// directory. Of a link that leads to a directory it must be the one that the store knows.
func (r *restore) belowFile(item *checkpoint.Item) bool {
	if item.Want.Kind != checkpoint.Absent {
		return false
	}
	for i := range r.plan.Items {
		if l := &r.plan.Items[i]; l.Head.Kind == checkpoint.Symlink && below(item.Path, l.Path) &&
			r.e.isLink(l.Path) {
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

// whole makes sure that directories that give way will be empty. By now it is known what each file
// becomes.
func (r *restore) whole() (conflicts []Blocked) {
	for _, t := range r.d.files {
		if !t.givesWay() {
			continue
		}
		there, why := r.e.onlyHolds(t.True, r.goes)
		switch {
		case there && why != none, slices.ContainsFunc(r.d.files, func(o *Target) bool {
			return below(o.True, t.True) && o.After.Kind != guardfs.KindAbsent
		}):
			why = HoldsOthers
		case there && slices.ContainsFunc(r.moves, func(mv *Move) bool { return below(mv.Path, t.True) }):
			why = HoldsMoved // it would come back by a rename into the very directory that would be gone
		default:
			continue
		}
		if r.o.OnConflict == OnConflictSkip {
			t.leaveAsIs()
			r.skip(t.True, why)
		} else {
			conflicts = append(conflicts, Blocked{Path: t.True, Why: why, Stays: true})
		}
	}
	return conflicts
}
