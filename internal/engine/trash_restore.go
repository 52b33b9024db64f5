package engine

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"moltisfs/checkpoint"
	"moltisfs/internal/guardfs"
)

// entriesAt lists the entries of a path, newest first: those in the trash, or with unsettled those
// that a crash left between two phases.
func (e *Engine) entriesAt(ctx context.Context, db *checkpoint.DB, path string,
	unsettled bool) (out []checkpoint.Trashed, err error) {
	f := checkpoint.TrashFilter{AllPrincipals: true, Path: path, Unsettled: unsettled, Limit: 1000}
	for {
		page, err := db.TrashList(ctx, f)
		if err != nil {
			return nil, err
		}
		out = append(out, page.Entries...)
		if f.Cursor = page.Next; f.Cursor == "" {
			return out, nil
		}
	}
}

// takeMoves makes moves of the items that move as a whole, and returns the others. Nothing else
// below such a tree can be changed in the same plan: the tree and it are taken back one after the
// other.
func (r *restore) takeMoves(ctx context.Context) (rest []*checkpoint.Item, err error) {
	var trees []*checkpoint.Item
	for i := range r.plan.Items {
		item := &r.plan.Items[i]
		if item.Role == roleTree {
			trees = append(trees, item)
		} else {
			rest = append(rest, item)
		}
	}
	for _, item := range trees {
		mv, why, err := r.moveOf(ctx, r.d.c, item)
		if err != nil {
			return nil, err
		}
		if why == none && mv != nil {
			for _, other := range rest {
				if below(other.Path, item.Path) && other.Role != checkpoint.RoleParent {
					why = MovedWhole
				}
			}
		}
		switch {
		case why != none && r.o.OnConflict == OnConflictSkip:
			r.skip(item.Path, why)
			rest = slices.DeleteFunc(rest,
				func(other *checkpoint.Item) bool { return below(other.Path, item.Path) })
		case why != none:
			return nil, Refuse(Conflicts, "", []Blocked{{Path: item.Path, Why: why}})
		case mv != nil:
			r.moves = append(r.moves, mv)
		}
	}
	return rest, nil
}

// moveOf gives the move for one tree; nil: there is nothing to do. why is a conflict.
func (r *restore) moveOf(ctx context.Context, c *Call,
	item *checkpoint.Item) (mv *Move, why Why, err error) {
	place, err := r.e.fs.PlaceLink(item.Path)
	kind := guardfs.KindAbsent
	if forbidden(err) && r.o.OnConflict == OnConflictSkip {
		return nil, Unreachable, nil
	}
	if _, missing := errors.AsType[*guardfs.MissingParentError](err); err != nil && !missing {
		return nil, none, err
	}
	if err == nil {
		kind = place.Object().Info.Kind
		place.Close()
	}
	if item.Foreign && r.o.OnConflict != OnConflictForce {
		return nil, ChangedByOthers, nil
	}
	if item.Want.Kind == checkpoint.Absent {
		if kind == guardfs.KindAbsent {
			return nil, none, nil
		}
		if r.o.OnConflict != OnConflictForce {
			is, err := r.isMoved(ctx, item, item.Head,
				append([]checkpoint.ID{item.HeadID}, r.plan.Undoes...)...)
			if err == nil && !is && !item.HeadSettled {
				is, err = r.isMoved(ctx, item, item.HeadBefore)
			}
			if err != nil || !is {
				return nil, ChangedOutside, err
			}
		}
		in := contents{files: 1}
		if kind != guardfs.KindSymlink { // what it points to is not meant
			if in, err = r.e.census(ctx, item.Path, true, nil); err != nil {
				return nil, none, err
			}
		}
		return &Move{Path: item.Path,
			Entry: checkpoint.Trashed{Agent: !c.ByUser, Size: in.size, Files: in.files}, in: in}, none, nil
	}
	entries, err := r.e.entriesAt(ctx, r.db, item.Path, false)
	if err != nil {
		return nil, none, err
	}
	var found *checkpoint.Trashed
	for i := range entries {
		t := &entries[i]
		switch {
		case t.Parked == "" || strings.HasSuffix(t.Parked, goneSuffix):
		// The last of them is the oldest: what was there first.
		case slices.Contains(r.plan.Undoes, t.Checkpoint):
			found = t
		case found == nil && t.Principal == c.Principal:
			found = t // it came back meanwhile, and went again by a redo
		}
	}
	if found != nil && kind != guardfs.KindAbsent {
		return nil, Occupied, nil
	}
	if found != nil {
		return &Move{Path: item.Path, Back: true, Entry: *found}, none, nil
	}
	why = NotInTrash
	if kind != guardfs.KindAbsent {
		if back, err := r.isMoved(ctx, item, item.Want, r.plan.Undoes...); err != nil || back {
			return nil, none, err
		}
		why = NoneInTrash
	}
	if r.o.OnConflict == OnConflictSkip {
		return nil, why, nil
	}
	return nil, none, Refuse(NotStored, item.Path, why)
}

// isMoved says that the object at item's path may be the one that was moved, with the state was.
// A moved object has no hash. A file is known by size and time. A directory must not be younger than
// the first of ops that moved it.
func (r *restore) isMoved(ctx context.Context, item *checkpoint.Item, was checkpoint.State,
	ops ...checkpoint.ID) (bool, error) {
	now, err := r.e.stateOf(item.Path)
	switch {
	case err != nil || now.Kind != was.Kind:
		return false, err
	case now.Kind == checkpoint.Symlink && was.Target == "":
		return now.ModTime.Equal(was.ModTime), nil
	case now.Kind != checkpoint.Dir:
		return now.Same(was), nil
	}
	place, err := r.e.fs.PlaceLink(item.Path)
	if err != nil {
		return false, err
	}
	info := place.Object().Info
	place.Close()
	if info.Kind != guardfs.KindDir || info.ID.Birth == 0 {
		return info.Kind == guardfs.KindDir, nil
	}
	for _, id := range ops {
		if id == "" {
			continue
		}
		op, err := r.db.Get(ctx, id, checkpoint.Scope{AllSessions: true})
		if err != nil {
			return false, err
		}
		for i := range op.Changes {
			if c := &op.Changes[i]; c.Path == item.Path && c.Role == roleTree {
				return !time.Unix(0, info.ID.Birth).After(op.Time), nil
			}
		}
	}
	return true, nil
}
