package rewind

import (
	"bytes"
	"context"
	"errors"

	"moltisfs/checkpoint"
	"moltisfs/internal/edit/diff"
)

// merge keeps what others changed and takes out what this session did. nil: it can't be merged.
//
//   - Changed outside since the last record: a three-way merge over what was recorded last.
//   - Else each change to be taken out gets a three-way merge over what it left, the newest first.
//     It is the one change that is meant, or the session's own where others came in between.
func (r *Rewind) merge(ctx context.Context, item *checkpoint.Item, now Now) ([]byte, error) {
	if now.State.Kind != checkpoint.File {
		return nil, nil
	}
	inverse := r.Plan.Mode == checkpoint.ModeInverse
	if !inverse && !item.Foreign {
		if n := len(item.Own); n > 0 {
			last, err := r.changes(ctx, item.Own[n-1], item.Path)
			if err != nil || last == nil {
				return nil, err
			}
		}
		return r.threeWay(ctx, item.Head, now.Content, item.Want)
	}
	content, ops := now.Content, r.Plan.Undoes
	if !inverse {
		ops = item.Own
	}
	for i := len(ops) - 1; i >= 0; i-- {
		changes, err := r.changes(ctx, ops[i], item.Path)
		if err != nil || changes == nil {
			return nil, err
		}
		for _, c := range changes {
			if content, err = r.threeWay(ctx, c.After, content, c.Before); err != nil || content == nil {
				return nil, err
			}
		}
	}
	return content, nil
}

// changes lists the changes of path by an operation. It is nil where nobody recorded what it left, as of an
// import: there After repeats Before.
func (r *Rewind) changes(ctx context.Context, id checkpoint.ID,
	path string) ([]checkpoint.Recorded, error) {
	// A session that may see the plan may see this.
	op, err := r.Store.Get(ctx, id, checkpoint.Scope{AllSessions: true})
	if err != nil {
		return nil, err
	}
	out := []checkpoint.Recorded{}
	for _, c := range op.Changes {
		if c.Path != path {
			continue
		}
		if op.Kind == checkpoint.KindImport && c.After.Same(c.Before) {
			return nil, nil
		}
		out = append(out, c)
	}
	return out, nil
}

// threeWay merges ours with theirs over their ancestor. nil: they overlap, or one of them is not a
// text that we have.
func (r *Rewind) threeWay(ctx context.Context, base checkpoint.State, ours []byte,
	theirs checkpoint.State) ([]byte, error) {
	if bytes.IndexByte(ours, 0) >= 0 {
		return nil, nil // no lines to merge by
	}
	var sides [2][]byte
	for i, s := range []checkpoint.State{base, theirs} {
		if s.Kind != checkpoint.File || s.Hash == "" { // nobody computed it, or it was purged
			return nil, nil
		}
		content, err := r.Store.Content(ctx, s.Hash)
		if errors.Is(err, checkpoint.ErrNoContent) || err == nil && bytes.IndexByte(content, 0) >= 0 {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		sides[i] = content
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
