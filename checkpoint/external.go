package checkpoint

import (
	"context"
	"fmt"
	"io/fs"
)

// Expects reports whether the disk may be in state s without anybody outside having changed it: its
// content, or the mode or the owner of a file of which they were recorded.
func (k *Known) Expects(s State) bool {
	return k.State.likely(s) || (!k.Settled && k.Before.likely(s))
}

// likely reports whether a path that was recorded as s is as it was if it is found as now.
func (s State) likely(now State) bool {
	// Of a content that was purged only the size is known. Were it taken for changed, the next turn
	// would store it again.
	purged := s.kind() == File && now.kind() == File && s.Hash == "" && s.ModTime.IsZero() &&
		s.Size == now.Size
	if !purged && !s.Same(now) {
		return false
	}
	return s.kind() != File || s.bare() || now.bare() ||
		s.Mode.Perm() == now.Mode.Perm() && s.UID == now.UID && s.GID == now.GID
}

// knownOf is what a store knows of a path that who recorded something of; nil when all of that was
// aborted, or retention took the newest.
func knownOf(ctx context.Context, h *history, who Scope, path string) (*Known, error) {
	head, err := h.head(ctx, anybody, path)
	if err != nil || head == nil {
		return nil, err
	}
	if gone, err := h.goneOf(ctx, path); err != nil || gone > head.seq {
		return nil, err // what it became last is not known any more: another state now is nobody's change
	}
	c := head.change(path)
	stored := c.AfterStored || c.After.Kind != File
	k := &Known{path, c.After, stored, c.Before, !pending(h, head), c.After}
	if !who.sees(head.c.Principal, head.c.Session) {
		own, err := h.head(ctx, who, path)
		if err != nil || own == nil {
			return nil, err
		}
		k.Own = own.change(path).After
	}
	return k, nil
}

// outside picks those of all, which is what a rewind looks at, for Plan.Outside.
func outside(ctx context.Context, h *history, all []entry, only []string) (out []ID, err error) {
	// The first change of a path by the session, and the last one from outside before that.
	type own struct{ external, first *entry }
	paths := map[string]own{}
	for i := range all {
		e := &all[i]
		for _, c := range e.c.Changes {
			switch o := paths[c.Path]; {
			case o.first != nil || e.c.Outcome == Aborted:
			case e.changes():
				paths[c.Path] = own{o.external, e}
			case e.c.Kind == KindExternal:
				paths[c.Path] = own{e, nil}
			}
		}
	}
	for i := range all {
		e := &all[i]
		if e.c.Kind != KindExternal || e.c.Outcome == Aborted {
			continue
		}
		for _, c := range e.c.Changes {
			if !within(c.Path, only) {
				continue
			}
			o := paths[c.Path]
			left := o.external == e && o.first != nil && o.first.change(c.Path).Before.Same(c.After)
			if !left {
				hd, err := h.head(ctx, anybody, c.Path)
				if err != nil {
					return nil, err
				}
				left = hd != nil && hd.seq == e.seq
			}
			if left {
				out = append(out, idOf(e.seq))
				break
			}
		}
	}
	return out, nil
}

// LastDir is the mode of the directory when anybody recorded it last, on its own or because
// something was made, read or removed in it.
func (d *DB) LastDir(ctx context.Context, path string) (mode fs.FileMode, known bool, err error) {
	err = d.view(ctx, func(h *history) error {
		var w where
		w.and("op.outcome<>?", outcomeCode(Aborted))
		es, err := h.below(ctx, &Filter{Path: path}, w, 1<<63-1, 1)
		if err != nil || len(es) == 0 {
			return err
		}
		if err := h.fillChange(ctx, es[0], path); err != nil {
			return err
		}
		c := es[0].change(path)
		for _, s := range []State{c.After, c.Before} {
			if s.kind() == Dir && s.Mode.Perm() != 0 {
				mode, known = s.Mode, true
				return nil
			}
		}
		return nil
	})
	if err != nil {
		err = fmt.Errorf("looking up a directory: %w", err)
	}
	return mode, known, err
}
