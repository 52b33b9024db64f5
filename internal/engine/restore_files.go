package engine

import (
	"bytes"
	"context"
	"errors"
	"slices"

	"moltisfs/checkpoint"
	"moltisfs/internal/edit/diff"
	"moltisfs/internal/guardfs"
)

// next says what each target becomes. It is pure: it may be called again when the files moved on.
func (r *restore) next(ctx context.Context, ts []*Target) error {
	r.out.Skipped, r.out.Merged, r.out.Metadata = slices.Clone(r.left), map[string]bool{}, map[string]MetadataOf{}
	conflicts := slices.Clone(r.stuck)
	for _, t := range ts {
		conflict, err := r.wanted(ctx, t, r.items[t.Path])
		if err != nil {
			return err
		}
		if conflict == nil && t.differs() {
			if err := r.hindrance(t); err != nil {
				why := hindered(err)
				if why == none || r.o.OnConflict != OnConflictSkip {
					return err
				}
				t.keep()
				delete(r.out.Merged, t.True)
				r.out.Skipped = append(r.out.Skipped, Blocked{Path: t.True, Why: why})
			}
		}
		if conflict != nil {
			conflicts = append(conflicts, *conflict)
		}
	}
	if conflicts == nil {
		conflicts = r.whole(ts)
	}
	if conflicts != nil {
		return Refuse(Conflicts, "", conflicts)
	}
	return nil
}

// wanted sets what one target becomes.
func (r *restore) wanted(ctx context.Context, t *Target, item *checkpoint.Item) (*Blocked, error) {
	if t.True != item.Path {
		// A directory on the way has become a link: this is another place than the one that was recorded.
		return nil, &guardfs.SymlinkError{Path: item.Path, Target: t.True}
	}
	now := state(t.Before)
	t.ours = madeReadOnly(now, item)
	why := r.conflict(now, item)
	meta, known := item.Metadata(now)
	if now.Kind == checkpoint.File && item.Want.Kind == checkpoint.File && t.place != nil {
		wanted := *metadata(meta)
		can := t.place.Expected(wanted)
		r.out.noteMetadata(t, item, meta, &can)
		meta.Mode, meta.UID, meta.GID, meta.Xattrs = can.Mode, can.UID, can.GID, can.Xattrs
	}
	if now.Same(item.Want) && (now.Kind != checkpoint.File || why != none || sameMetadata(metadata(meta), &t.Before.Meta)) {
		t.keep()
		r.out.metadataStays(t)
		return nil, nil
	}
	if !item.Stored && item.Missing == checkpoint.SkipPurged && r.o.OnConflict != OnConflictSkip {
		return nil, Refuse(NotStored, item.Path, Unstored.Of(item.Missing))
	}
	if why != none && r.o.OnConflict == OnConflictMerge || r.plan.Mode == checkpoint.ModeInverse && !now.Same(item.Base) {
		merged, err := r.merge(ctx, t, item)
		if err != nil {
			return nil, err
		}
		if merged != nil {
			t.After = After{Kind: guardfs.KindFile, Content: merged}
			r.out.Merged[t.True] = true
			r.out.metadataStays(t)
			return nil, nil
		}
		if why == none {
			why = SameLines
		}
	}
	if why != none {
		switch r.o.OnConflict {
		case OnConflictSkip:
			t.keep()
			r.out.Skipped = append(r.out.Skipped, Blocked{Path: t.True, Why: why})
			return nil, nil
		case OnConflictForce:
		default:
			return &Blocked{Path: t.True, Why: why, Diff: r.drift(ctx, t, item)}, nil
		}
	}
	if !item.Stored {
		return nil, r.missing(t, item.Path, Unstored.Of(item.Missing))
	}
	switch item.Want.Kind {
	case checkpoint.File:
		content, err := r.db.Content(ctx, item.Want.Hash)
		if errors.Is(err, checkpoint.ErrNoContent) { // the plan is older than that
			return nil, r.missing(t, item.Path, JustRemoved)
		}
		if err != nil {
			return nil, err
		}
		t.After = After{Kind: guardfs.KindFile, Content: content}
		if known && (now.Kind != checkpoint.File || r.o.KeepTimes || !meta.SameMetadata(now)) {
			t.After.Meta = metadata(meta)
		}
		if known && r.o.KeepTimes {
			t.After.Meta.ModTime = item.Want.ModTime
		}
	case checkpoint.Symlink:
		t.After = After{Kind: guardfs.KindSymlink, Target: item.Want.Target}
	case checkpoint.Dir:
		t.After = After{Kind: guardfs.KindDir, Meta: dirMetadata(item.Want)}
	default:
		t.After = After{Kind: guardfs.KindAbsent}
	}
	return nil, nil
}

// missing is what becomes of a target whose content the store does not have.
func (r *restore) missing(t *Target, path string, why Why) error {
	if r.o.OnConflict != OnConflictSkip {
		return Refuse(NotStored, path, why)
	}
	t.keep()
	r.out.Skipped = append(r.out.Skipped, Blocked{Path: t.True, Why: ContentOf.Of(why)})
	return nil
}

// park adds to m the move to the trash of a file that is to go and that the store can't or must not hold, as Delete does. False: it is no such.
func (r *restore) park(ctx context.Context, c *Call, item *checkpoint.Item, m *Mutation) (bool, error) {
	if item.Want.Kind != checkpoint.Absent || item.Role == checkpoint.RoleParent {
		return false, nil
	}
	place, err := r.e.fs.PlaceLink(item.Path)
	if err != nil {
		return false, nil //nolint:nilerr // the chain meets it again, and says so
	}
	o := place.Object()
	place.Close()
	if o.True != item.Path || o.Info.Kind != guardfs.KindFile || r.e.storable(o.True, o.Info.Size) {
		return false, nil
	}
	if _, err := r.e.census(ctx, item.Path, false); err != nil { // policy
		return false, err
	}
	if err := r.e.allowed(nil, item.Path); err != nil {
		if why := hindered(err); why != none && r.o.OnConflict == OnConflictSkip {
			r.left = append(r.left, Blocked{Path: item.Path, Why: why})
			return true, nil
		}
		return false, err
	}
	now, err := r.e.stateOf(item.Path)
	if err != nil {
		return false, err
	}
	why := r.conflict(now, item)
	if why == none && r.plan.Mode == checkpoint.ModeInverse && !now.Same(item.Base) {
		why = SameLines
	}
	switch {
	case why != none && r.o.OnConflict == OnConflictSkip:
		r.left = append(r.left, Blocked{Path: item.Path, Why: why})
	case why != none && r.o.OnConflict != OnConflictForce:
		r.stuck = append(r.stuck, Blocked{Path: item.Path, Why: why})
	default:
		m.Moves = append(m.Moves, &Move{Path: item.Path, Entry: checkpoint.Trashed{Agent: !c.ByUser, Size: o.Info.Size, Files: 1}})
	}
	return true, nil
}

// conflict says why the path is not this session's to change, none when it is.
func (r *restore) conflict(now checkpoint.State, item *checkpoint.Item) Why {
	switch {
	// What a move left has no hash either, but a time, by which it is known.
	case !item.Expects(now) && now.Kind == checkpoint.File && item.Head.Kind == checkpoint.File && item.Head.Hash == "" && item.Head.ModTime.IsZero():
		return LastPurged
	case !item.Expects(now) && item.HeadLost:
		return LastRemoved
	case !item.Expects(now):
		return ChangedOutside
	case item.Foreign && r.plan.Mode != checkpoint.ModeInverse:
		return ChangedByOthers
	}
	return none
}

// madeReadOnly says that the session's last change, as a rule a restore, gave the file the read-only mode that it has, and that it is as that change
// left it. Nobody protected it from the session, which may take that change back.
func madeReadOnly(now checkpoint.State, item *checkpoint.Item) bool {
	n := len(item.Own)
	return n > 0 && item.Own[n-1] == item.HeadID && now.Kind == checkpoint.File && now.Same(item.Head) &&
		now.Mode.Perm() == item.Head.Mode.Perm() && now.Mode&0o222 == 0 && (item.HeadBefore.Kind != checkpoint.File || item.HeadBefore.Mode&0o222 != 0)
}

// keep leaves the target as it is.
func (t *Target) keep() {
	b := t.Before
	if !b.Exists {
		t.After = After{Kind: guardfs.KindAbsent}
		return
	}
	t.After = After{Kind: b.Info.Kind, Content: b.Content}
	if b.Info.Kind == guardfs.KindSymlink {
		t.After.Content, t.After.Target = nil, string(b.Content)
	}
}

// merge keeps what others changed and takes out what this session did. nil: it can't be merged, and is a conflict.
//
//   - Changed outside since the last record: a three-way merge over what was recorded last.
//   - Others were at it in between, or one change in the middle is meant: that one, else each of the session's changes from then on, is taken
//     out of what is there now, the newest first, by a three-way merge over what it left behind.
func (r *restore) merge(ctx context.Context, t *Target, item *checkpoint.Item) ([]byte, error) {
	if !t.Before.Exists || t.Before.Info.Kind != guardfs.KindFile {
		return nil, nil
	}
	if r.plan.Mode != checkpoint.ModeInverse && !item.Foreign {
		if n := len(item.Own); n > 0 {
			op, err := r.db.Get(ctx, item.Own[n-1], checkpoint.Scope{AllSessions: true})
			if err != nil {
				return nil, err
			}
			for i := range op.Changes {
				if op.Changes[i].Path == item.Path && unknownAfter(op, &op.Changes[i]) {
					return nil, nil
				}
			}
		}
		return r.threeWay(ctx, item.Head, t.Before.Content, item.Want)
	}
	content, ops := t.Before.Content, r.plan.Undoes
	if r.plan.Mode != checkpoint.ModeInverse {
		ops = item.Own
	}
	for i := len(ops) - 1; i >= 0; i-- {
		op, err := r.db.Get(ctx, ops[i], checkpoint.Scope{AllSessions: true}) // the plan is for whoever may see it
		if err != nil {
			return nil, err
		}
		for _, c := range op.Changes {
			if c.Path != item.Path {
				continue
			}
			if unknownAfter(op, &c) {
				return nil, nil
			}
			if content, err = r.threeWay(ctx, c.After, content, c.Before); err != nil || content == nil {
				return nil, err
			}
		}
	}
	return content, nil
}

// unknownAfter says that nobody recorded what the change left: of an import the state before stands in its place.
func unknownAfter(op *checkpoint.Checkpoint, c *checkpoint.Recorded) bool {
	return op.Kind == checkpoint.KindImport && c.After.Same(c.Before)
}

// threeWay merges ours with theirs over their ancestor. nil: one of them is no text that is at hand, or they overlap.
func (r *restore) threeWay(ctx context.Context, base checkpoint.State, ours []byte, theirs checkpoint.State) ([]byte, error) {
	var sides [2][]byte
	for i, s := range []checkpoint.State{base, theirs} {
		if s.Kind != checkpoint.File {
			return nil, nil
		}
		if s.Hash == "" {
			return nil, nil // nobody computed it, or it was purged
		}
		content, err := r.db.Content(ctx, s.Hash)
		if errors.Is(err, checkpoint.ErrNoContent) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		sides[i] = content
	}
	for _, b := range [][]byte{sides[0], ours, sides[1]} {
		if bytes.IndexByte(b, 0) >= 0 {
			return nil, nil // no lines to merge by
		}
	}
	merged, conflicts := diff.Merge(sides[0], ours, sides[1])
	if len(conflicts) > 0 {
		return nil, nil
	}
	if merged == nil {
		merged = []byte{} // an empty file is a result too
	}
	return merged, nil
}

// drift is a diff from the last content that the store knows, or if that is none that the session may see, from what its own last change left, to
// what is there. "" when the store does not hold it.
func (r *restore) drift(ctx context.Context, t *Target, item *checkpoint.Item) string {
	last := item.Head
	if !item.HeadSeen {
		last = item.Base
	}
	if last.Kind != checkpoint.File || !t.Before.Exists {
		return ""
	}
	known, err := r.db.Content(ctx, last.Hash)
	if err != nil {
		return ""
	}
	return diff.Unified(t.True, diff.Edited, diff.Patch(text(known), text(t.Before.Content)))
}

// untrash takes those entries out of the trash that belong to what was undone, if all that was in them is in its place again as it was. It is a
// matter of tidiness: an error costs an entry that stays until its time is over.
func (r *restore) untrash(ctx context.Context) {
	there := map[string]checkpoint.State{}
	for _, t := range r.out.Targets {
		there[t.True] = t.announced()
	}
	for _, id := range r.plan.Undoes {
		page, err := r.db.TrashList(ctx, checkpoint.TrashFilter{AllPrincipals: true, Checkpoint: id, Limit: 1000})
		if err == nil && len(page.Entries) > 0 {
			err = r.untrashOf(ctx, id, page.Entries, there)
		}
		if err != nil {
			r.e.logger.Warn("the trash entries of what was undone could not be removed", "id", id, "err", err)
		}
	}
}

func (r *restore) untrashOf(ctx context.Context, id checkpoint.ID, entries []checkpoint.Trashed, there map[string]checkpoint.State) error {
	op, err := r.db.Get(ctx, id, checkpoint.Scope{AllSessions: true})
	if err != nil {
		return err
	}
	for i := range entries {
		t := &entries[i]
		if t.Parked != "" {
			continue // that came back by a move of its own, or not
		}
		back := false
		for _, c := range op.Changes {
			if c.Path != t.Path && !below(c.Path, t.Path) || c.Before.Kind == checkpoint.Dir {
				continue
			}
			now, known := there[c.Path]
			if back = known && now.Same(c.Before); !back {
				break
			}
		}
		if back {
			if err := errors.Join(r.db.TrashSettle(ctx, t.ID, checkpoint.Gone), r.db.TrashDrop(ctx, t.ID)); err != nil {
				return err
			}
		}
	}
	return nil
}
