package engine

import (
	"context"
	"errors"

	"moltisfs/checkpoint"
	"moltisfs/internal/edit/diff"
	"moltisfs/internal/engine/rewind"
	"moltisfs/internal/guardfs"
)

// next sets the new state of each target.
func (r *restore) next(ctx context.Context) error {
	for _, t := range r.d.files {
		why, err := r.decide(ctx, t)
		if err != nil {
			return err
		}
		if why != none {
			t.leaveAsIs()
			r.skip(t.True, why)
		}
	}
	if r.conflicts == nil {
		r.conflicts = r.whole()
	}
	if r.conflicts != nil {
		return Refuse(Conflicts, "", r.conflicts)
	}
	return nil
}

// decide sets the new state of one target, and notes conflicts. why: it is left alone.
func (r *restore) decide(ctx context.Context, t *Target) (why Why, err error) {
	item, skip := r.items[t.Path], r.o.OnConflict == OnConflictSkip
	if item.Role == checkpoint.RoleAppended {
		return r.decideTail(ctx, t, item)
	}
	now := rewind.Now{State: state(t.Before), Content: t.Before.Content}
	if t.place != nil {
		now.Can = func(s checkpoint.State) checkpoint.State {
			return metaState(t.place.Expected(*metadata(s)))
		}
	}
	if t.Unsaved() { // a text has no metadata to be given
		now.Content = t.raw(t.Before.Content)
		now.State.Hash, now.State.Size = HashOf(now.Content), int64(len(now.Content))
		now.Can = func(checkpoint.State) checkpoint.State { return now.State }
	}
	if item.Role == roleBuffer && !item.Expects(now.State) && !now.State.Same(item.Want) {
		if left, err := r.db.Content(ctx, item.Head.Hash); err == nil && saved(asText(now.Content), left) {
			now.State.Hash, now.State.Size = item.Head.Hash, item.Head.Size // as the client saved it
		}
	}
	t.ours = rewind.MadeReadOnly(item, now.State)
	b, err := r.rules().Decide(ctx, item, now)
	if err != nil {
		return none, err
	}
	if m := b.Metadata; m.Set != nil || m.Stays != nil || m.Dropped != nil {
		r.out.Metadata[t.True] = b.Metadata
	}
	switch {
	case b.Stays:
		t.leaveAsIs()
		return none, nil
	case b.Missing != none && skip:
		return ContentOf.Of(b.Missing), nil
	case b.Missing != none:
		return none, Refuse(NotStored, item.Path, b.Missing)
	case b.Blocked != none && skip:
		return b.Blocked, nil
	case b.Blocked != none:
		r.conflicts = append(r.conflicts,
			Blocked{Path: t.True, Why: b.Blocked, Diff: r.drift(ctx, t, item)})
		return none, nil
	}
	if t.After = after(b); t.Unsaved() {
		t.After.Content, t.After.Meta = t.shown(b.Content), nil
		t.After.Hash = HashOf(t.After.Content)
	}
	if !t.Unchanged() {
		err = r.mayReplace(t)
	}
	if why = blockedWhy(err); why != none && skip {
		return why, nil
	}
	if b.Merged {
		r.out.Merged[t.True] = true
	}
	return none, err
}

// rules decide what becomes of each path.
func (r *restore) rules() *rewind.Rewind {
	return &rewind.Rewind{Store: r.db, Plan: r.plan, Rule: rewind.Rule(r.o.OnConflict),
		KeepTimes: r.o.KeepTimes}
}

// after gives the new state of a target, from the decision b.
func after(b rewind.Becomes) After {
	switch b.State.Kind {
	case checkpoint.File:
		a := After{Kind: guardfs.KindFile, Content: b.Content, Hash: HashOf(b.Content)}
		if b.Exact {
			a.Meta = metadata(b.State)
			a.Meta.ModTime = b.State.ModTime
		}
		return a
	case checkpoint.Symlink:
		return After{Kind: guardfs.KindSymlink, Target: b.State.Target}
	case checkpoint.Dir:
		return After{Kind: guardfs.KindDir, Meta: dirMetadata(b.State)}
	}
	return After{Kind: guardfs.KindAbsent}
}

// trashUnsavable moves a file to the trash that is to go and that the store can't or must not hold,
// as Delete does. It is false for any other file.
func (r *restore) trashUnsavable(ctx context.Context, item *checkpoint.Item) (bool, error) {
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
	if _, err := r.e.census(ctx, item.Path, false, nil); err != nil { // policy
		return false, err
	}
	if err := r.e.allowed(nil, item.Path); err != nil {
		if why := blockedWhy(err); why != none && r.o.OnConflict == OnConflictSkip {
			r.skip(item.Path, why)
			return true, nil
		}
		return false, err
	}
	now, err := r.e.stateOf(item.Path)
	if err == nil && now.Kind == checkpoint.File && now.Hash == "" && item.Head.Hash != "" {
		now, err = r.e.sumOf(item.Path)
	}
	if err != nil {
		return false, err
	}
	switch why := r.rules().Why(item, now); {
	case why != none && r.o.OnConflict == OnConflictSkip:
		r.skip(item.Path, why)
	case why != none && r.o.OnConflict != OnConflictForce:
		r.conflicts = append(r.conflicts, Blocked{Path: item.Path, Why: why})
	default:
		r.moves = append(r.moves,
			&Move{Path: item.Path,
				Entry: checkpoint.Trashed{Agent: !r.d.c.ByUser, Size: o.Info.Size, Files: 1}})
	}
	return true, nil
}

// leaveAsIs leaves the target as it is.
func (t *Target) leaveAsIs() {
	b := t.Before
	if !b.Exists {
		t.After = After{Kind: guardfs.KindAbsent}
		return
	}
	if t.large() {
		t.After = After{Kind: guardfs.KindFile, Tail: true} // of nothing
		return
	}
	t.After = After{Kind: b.Info.Kind, Content: b.Content, Hash: b.Hash}
	if b.Info.Kind == guardfs.KindSymlink {
		t.After.Content, t.After.Target = nil, string(b.Content)
	}
}

// drift is a diff from the last content that the store knows to what is there. Where the session
// may not see that content, it is the one that its own last change left. "" when the store does not
// hold it.
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

// untrash takes entries of what was undone out of the trash, if everything in them is in its place
// again as it was. On an error the entry stays until its time is over.
func (r *restore) untrash(ctx context.Context) {
	there := map[string]checkpoint.State{}
	for _, t := range r.out.Targets {
		there[t.True] = t.announced()
	}
	for i, id := range r.plan.Undoes {
		r.e.told("clearing the trash", i+1, len(r.plan.Undoes))
		if err := r.untrashOf(ctx, id, there); err != nil {
			r.e.logger.Warn("the trash entries of what was undone could not be removed", "id", id,
				"err", err)
		}
	}
}

func (r *restore) untrashOf(ctx context.Context, id checkpoint.ID,
	there map[string]checkpoint.State) error {
	page, err := r.db.TrashList(ctx,
		checkpoint.TrashFilter{AllPrincipals: true, Checkpoint: id, Limit: 1000})
	if err != nil || len(page.Entries) == 0 {
		return err
	}
	op, err := r.db.Get(ctx, id, checkpoint.Scope{AllSessions: true})
	if err != nil {
		return err
	}
	for i := range page.Entries {
		t := &page.Entries[i]
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
			if err := errors.Join(r.db.TrashSettle(ctx, t.ID, checkpoint.Gone),
				r.db.TrashDrop(ctx, t.ID)); err != nil {
				return err
			}
		}
	}
	return nil
}
