package engine

import (
	"context"
	"errors"
	"io"
	"slices"

	"moltisfs/checkpoint"
	"moltisfs/internal/guardfs"
)

// A restore takes an append in place back only where the file still ends with exactly what was
// appended, at that very place: then a copy of what comes before takes its place, so that a kill
// leaves either. What others changed before the tail stays as it is.

// A piece is one tail of a file.
type piece struct {
	at, size int64
	hash     string
}

// tails are what the session's changes of a plan have left at the end of a file, in their order;
// end is how long the file is with them. ok is false where others came in between, or where it was
// not only appended to.
func (r *restore) tails(ctx context.Context, item *checkpoint.Item) (
	first *checkpoint.Recorded, left []piece, end int64, ok bool, err error,
) {
	for _, id := range item.Own {
		op, err := r.db.Get(ctx, id, checkpoint.Scope{AllSessions: true})
		if err != nil {
			return nil, nil, 0, false, err
		}
		at := slices.IndexFunc(op.Changes, func(c checkpoint.Recorded) bool {
			return c.Path == item.Path
		})
		if at < 0 || op.Changes[at].Role != checkpoint.RoleAppended {
			return nil, nil, 0, false, nil
		}
		c := &op.Changes[at]
		n := c.After.Size - c.Before.Size
		if first == nil {
			if first, end = c, c.Before.Size; n < 0 {
				left = []piece{{c.After.Size, -n, c.Before.Tail}}
			}
		}
		if c.Before.Size != end {
			return nil, nil, 0, false, nil
		}
		if end = c.After.Size; n > 0 {
			left = append(left, piece{c.Before.Size, n, c.After.Tail})
			continue
		}
		for len(left) > 0 && left[len(left)-1].at >= end {
			left = left[:len(left)-1]
		}
	}
	return first, left, end, first != nil, nil
}

// decideTail decides on a file that was only appended to, as decide does.
func (r *restore) decideTail(ctx context.Context, t *Target, item *checkpoint.Item) (Why, error) {
	t.leaveAsIs()
	why, err := r.tailBecomes(ctx, t, item)
	if err == nil && why == none && !t.Unchanged() {
		if err = r.e.changeable(t); err == nil && t.After.From != nil {
			err = r.e.allowed(t.place, t.True)
		}
		why = blockedWhy(err)
		if why != none && r.o.OnConflict == OnConflictSkip {
			return why, nil
		}
		return none, err
	}
	switch {
	case err != nil || why == none || r.o.OnConflict == OnConflictSkip:
		return why, err
	case why.Name == Unstored.Name:
		return none, Refuse(NotStored, t.True, why)
	case r.o.OnConflict == OnConflictForce: // others' bytes could not be brought back
		return none, Refuse(WouldLose, t.True, nil)
	}
	r.conflicts = append(r.conflicts, Blocked{Path: t.True, Why: why})
	return none, nil
}

// tailBecomes sets what becomes of the target, or says why nothing can.
func (r *restore) tailBecomes(ctx context.Context, t *Target, item *checkpoint.Item) (Why, error) {
	first, left, end, ok, err := r.tails(ctx, item)
	now := t.Before.Info.Size
	switch {
	case err != nil:
		return none, err
	case !t.Before.Exists || t.Before.Info.Kind != guardfs.KindFile:
		return ChangedOutside, nil
	case !ok:
		return ChangedByOthers, nil
	case now == item.Want.Size && (now != end || len(left) == 0):
		return none, nil
	case !t.large() || now != end:
		return ChangedOutside, nil
	case item.Want.Size <= end:
		return r.cutTail(ctx, t, item.Want.Size, left)
	case end != first.After.Size || slices.ContainsFunc(left, func(p piece) bool {
		return p.at+p.size > end
	}): // another tail would have to go first
		return Unstored.Of(checkpoint.SkipAppended), nil
	}
	content, err := r.db.Content(ctx, item.Want.Tail)
	if errors.Is(err, checkpoint.ErrNoContent) || item.Want.Tail == "" {
		return Unstored.Of(checkpoint.SkipAppended), nil
	}
	t.After = After{Kind: guardfs.KindFile, Content: content, Tail: true}
	return none, err
}

// cutTail makes the target what it is without all that comes after size, if that is only what left
// says.
func (r *restore) cutTail(ctx context.Context, t *Target, size int64, left []piece) (Why, error) {
	info := t.Before.Info
	if info.Size-size > maxLoad {
		return Unstored.Of(checkpoint.SkipTooLarge), nil
	}
	f, err := r.e.openSame(t.True, info.ID)
	if err != nil {
		return none, err
	}
	defer f.Close() //nolint:errcheck // nothing was written through it
	cut := make([]byte, info.Size-size)
	if n, err := f.ReadAt(cut, size); err != nil && !errors.Is(err, io.EOF) || n < len(cut) {
		return ChangedOutside, err
	}
	at := size
	for _, p := range left {
		if p.at < size {
			continue
		}
		if p.at != at || HashOf(cut[at-size:][:p.size]) != p.hash {
			return ChangedOutside, nil
		}
		at += p.size
	}
	if at != info.Size {
		return ChangedOutside, nil
	}
	if len(cut) == 0 {
		return none, nil
	}
	was := *t.Before
	if was.Hash, err = r.e.sums.of(ctx, f, r.e.now); err != nil {
		return none, err
	}
	if is, err := f.Stat(); err != nil || is.Size != info.Size || !is.ModTime.Equal(info.ModTime) ||
		!is.ChangeTime.Equal(info.ChangeTime) {
		return ChangedOutside, err
	}
	t.Before = &was
	t.After = After{Kind: guardfs.KindFile, From: &From{t.True, info, size}, cut: cut}
	return none, nil
}
