package engine

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"syscall"

	"moltisfs/checkpoint"
	"moltisfs/internal/edit/diff"
	"moltisfs/internal/guardfs"
	"moltisfs/internal/policy"
	encodings "moltisfs/internal/text"
)

// Compared is one path of a checkpoint, or of all since a point in time, beside what it became.
type Compared struct {
	Path           string
	Before, After  checkpoint.Kind // what it was, and what it is compared with
	Added, Removed int             // lines
	Diff           string          // unified; "" for what has no lines
	Binary         bool
}

// Compare shows what a checkpoint's call changed, or, with now set, what has become of its paths
// since. It changes nothing. Paths that this session may not read today are not shown: denied
// counts them.
func (e *Engine) Compare(ctx context.Context, c *Call, r checkpoint.Restore,
	now bool) (out []Compared, skipped []Blocked, denied int, err error) {
	if e, err = e.begun(c); err != nil {
		return nil, nil, 0, err
	}
	db, err := e.checkpoints.open()
	if err != nil {
		return nil, nil, 0, err
	}
	plan, err := e.planFor(ctx, c, db, r)
	if err != nil {
		return nil, nil, 0, err
	}
	c.Trace.Paths = nil
	for i := range plan.Items {
		item := &plan.Items[i]
		if item.Role == checkpoint.RoleParent && !leaf(item.Want.Kind) && !leaf(item.Base.Kind) &&
			!leaf(item.Head.Kind) {
			continue // nothing but a directory at any time
		}
		c.Trace.Paths = append(c.Trace.Paths, item.Path)
		one, why, err := e.compare(ctx, c, db, item, now)
		if _, no := errors.AsType[*policy.Denied](err); no {
			denied++
			continue
		}
		if err != nil {
			return nil, nil, 0, err
		}
		if why != none {
			skipped = append(skipped, Blocked{Path: item.Path, Why: why})
			continue
		}
		if item.Role == checkpoint.RoleParent && !leaf(one.Before) && !leaf(one.After) {
			continue
		}
		out = append(out, one)
	}
	return out, skipped, denied, nil
}

func (e *Engine) compare(
	ctx context.Context, c *Call, db *checkpoint.DB, item *checkpoint.Item, now bool,
) (one Compared, why Why, err error) {
	// Policy speaks in here, also when the disk is not asked for.
	after, content, why, err := e.lookAt(ctx, c, item.Path)
	if err != nil || now && why != none {
		return one, why, err
	}
	if !now && item.Role != checkpoint.RoleAppended {
		after, content = item.Base, nil
		if after.Kind == checkpoint.File {
			if after.Hash == "" { // nobody computed it, or it was purged
				return one, AfterUnknown, nil
			}
			if content, err = db.Content(ctx, after.Hash); errors.Is(err, checkpoint.ErrNoContent) {
				return one, AfterUnknown, nil
			}
		}
	}
	if item.Role == checkpoint.RoleAppended && !now {
		return e.compareTail(ctx, db, item)
	}
	var old []byte
	if err == nil && item.Want.Kind == checkpoint.File {
		if !item.Stored {
			return one, ContentOf.Of(Unstored.Of(item.Missing)), nil
		}
		old, err = db.Content(ctx, item.Want.Hash)
	}
	if err != nil {
		return one, none, err
	}
	one = Compared{Path: item.Path, Before: item.Want.Kind, After: after.Kind}
	one.Binary = encodings.Sniff(old).NUL || encodings.Sniff(content).NUL
	if !one.Binary {
		hunks := diff.Patch(text(old), text(content))
		one.Added, one.Removed = diff.Counts(hunks)
		one.Diff = diff.Unified(item.Path, diff.EndsOf(leaf(one.Before), leaf(one.After)), hunks)
	}
	return one, none, nil
}

// compareTail shows what was appended, or taken back, as far as it is one tail that is stored. The
// line numbers are those of the tail.
func (e *Engine) compareTail(ctx context.Context, db *checkpoint.DB, item *checkpoint.Item) (
	one Compared, why Why, err error,
) {
	from, to := item.Want, item.Base
	tail := to.Tail
	if from.Size > to.Size {
		tail = from.Tail
	}
	if tail == "" {
		return one, AfterUnknown, nil
	}
	content, err := db.Content(ctx, tail)
	n := to.Size - from.Size
	if errors.Is(err, checkpoint.ErrNoContent) || err == nil && int64(len(content)) != max(n, -n) {
		return one, AfterUnknown, nil
	}
	if err != nil {
		return one, none, err
	}
	one = Compared{Path: item.Path, Before: from.Kind, After: to.Kind,
		Binary: encodings.Sniff(content).NUL}
	if !one.Binary {
		hunks := diff.Patch(nil, text(content))
		if n < 0 {
			hunks = diff.Patch(text(content), nil)
		}
		one.Added, one.Removed = diff.Counts(hunks)
		one.Diff = diff.Unified(item.Path, diff.Edited, hunks)
	}
	return one, none, nil
}

// lookAt reads what is at path, if this session may. why says that it can't be compared.
func (e *Engine) lookAt(
	ctx context.Context, c *Call, path string,
) (s checkpoint.State, content []byte, why Why, err error) {
	is, content, held, err := e.overlaid(ctx, c, path)
	if err != nil || held && is.True == path && is.Info.Size <= e.cfg.Checkpoint.MaxFileBytes {
		return checkpoint.State{Kind: checkpoint.File}, content, none, err
	}
	h, err := e.fs.Resolve(path, guardfs.Read)
	// A file in the place of its directory is a missing path, as for stateOf.
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return checkpoint.State{Kind: checkpoint.Absent}, nil, none, nil
	}
	// Policy has allowed it: the other paths can be shown.
	if no, ok := errors.AsType[*guardfs.PathError](err); ok {
		return s, nil, NotLookedAt.Of(no.Err), nil
	}
	if err != nil {
		return s, nil, none, err
	}
	defer h.Close()
	o := h.Object()
	switch {
	case o.True != path:
		return s, nil, LinkNow, nil
	case o.Info.Kind == guardfs.KindDir:
		return checkpoint.State{Kind: checkpoint.Dir}, nil, none, nil
	case o.Info.Kind != guardfs.KindFile:
		return s, nil, KindNow.Of(o.Info.Kind), nil
	case o.Info.Size > e.cfg.Checkpoint.MaxFileBytes:
		return s, nil, TooLargeNow, nil
	}
	f, err := h.Open()
	if no, ok := errors.AsType[*guardfs.PathError](err); ok {
		return s, nil, NotRead.Of(no.Err), nil
	}
	if err != nil {
		return s, nil, none, err
	}
	defer f.Close()
	content, err = io.ReadAll(io.NewSectionReader(f, 0, e.cfg.Checkpoint.MaxFileBytes))
	return checkpoint.State{Kind: checkpoint.File}, content, none, err
}
