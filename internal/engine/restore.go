package engine

import (
	"context"
	"fmt"

	"moltisfs/checkpoint"
	"moltisfs/internal/edit"
	"moltisfs/internal/guardfs"
)

// What a restore does with a path that others changed since its checkpoint.
const (
	OnConflictRefuse = "refuse" // nothing at all is changed
	OnConflictSkip   = "skip"   // that path is left alone
	OnConflictForce  = "force"  // it is overwritten; its content now is in the restore's own checkpoint
	OnConflictMerge  = "merge"  // three-way merge; what overlaps is a conflict still
)

// RestoreOptions says how a restore is carried out.
type RestoreOptions struct {
	OnConflict string // "" is OnConflictRefuse
	DryRun     bool
}

// Restored is what became of a restore.
type Restored struct {
	*Done
	Plan    *checkpoint.Plan
	Skipped []string // paths left alone because others changed them
	Merged  []string
}

// ConflictsError: others changed paths since the checkpoint, so nothing was restored.
type ConflictsError struct{ Conflicts []PathConflict }

// PathConflict is one path of a ConflictsError.
type PathConflict struct {
	Path string `json:"path"`
	Diff string `json:"diff,omitempty"` // from what the store knows to what is there
}

func (e *ConflictsError) Error() string {
	return fmt.Sprintf("%d of the paths were changed by others since the checkpoint", len(e.Conflicts))
}

// MissingContentError: the checkpoint knows of the path but does not hold its content.
type MissingContentError struct{ Path, Why string }

func (e *MissingContentError) Error() string {
	return "the content of " + e.Path + " is not in the checkpoint (" + e.Why + ")"
}

// Restore carries out a plan of the store as an ordinary guarded mutation
// under today's policy: all paths or none, checkpointed itself, so that it can
// be undone.
func (e *Engine) Restore(ctx context.Context, c *Call, r checkpoint.Restore, o RestoreOptions) (*Restored, error) {
	plan, err := e.points.Plan(ctx, r)
	if err != nil {
		return nil, err
	}
	return e.CarryOut(ctx, c, plan, o)
}

// CarryOut is Restore for a plan that is at hand.
func (e *Engine) CarryOut(ctx context.Context, c *Call, plan *checkpoint.Plan, o RestoreOptions) (*Restored, error) {
	out := &Restored{Plan: plan}
	items := map[string]*checkpoint.Item{}
	m := Mutation{
		Summary: fmt.Sprintf("restore %d paths", len(plan.Items)), DryRun: o.DryRun, Blind: true, CreateParents: true,
		Checkpoint: true, Op: checkpoint.Op{Kind: checkpoint.KindRestore, RestoreOf: plan.RestoreOf, UndoOf: plan.UndoOf},
	}
	var dirs []string
	for i := range plan.Items {
		item := &plan.Items[i]
		if item.Role == checkpoint.RoleParent || item.Want.Kind == checkpoint.Dir {
			if item.Want.Kind == checkpoint.Absent {
				dirs = append(dirs, item.Path)
			}
			continue
		}
		if !item.Stored {
			return nil, &MissingContentError{item.Path, item.Missing}
		}
		items[item.Path] = item
		m.Paths = append(m.Paths, item.Path)
	}
	m.Next = func(ts []*Target) error {
		out.Skipped, out.Merged = nil, nil
		var conflicts []PathConflict
		for _, t := range ts {
			conflict, err := e.wanted(ctx, t, items[t.Path], plan, o, out)
			if err != nil {
				return err
			}
			if conflict != nil {
				conflicts = append(conflicts, *conflict)
			}
		}
		if conflicts != nil {
			return &ConflictsError{conflicts}
		}
		return nil
	}
	done, err := e.Mutate(ctx, c, m)
	if err != nil {
		return nil, err
	}
	out.Done = done
	if !o.DryRun {
		e.unmake(dirs) // directories that were made only to hold what is now gone
	}
	return out, nil
}

// wanted sets what one target becomes.
func (e *Engine) wanted(ctx context.Context, t *Target, item *checkpoint.Item, plan *checkpoint.Plan, o RestoreOptions, out *Restored) (*PathConflict, error) {
	now := state(t.Before)
	keep := func() { t.After = After{Kind: kindNow(t), Content: t.Before.Content} }
	if now.Same(item.Want) && now.Mode == item.Want.Mode {
		keep()
		return nil, nil
	}
	foreign := !item.Expects(now)
	if plan.Mode == checkpoint.ModeInverse && !now.Same(item.Base) || foreign && o.OnConflict == OnConflictMerge {
		merged, err := e.merge(ctx, t, item)
		if err != nil {
			return nil, err
		}
		if merged != nil {
			t.After = After{Kind: guardfs.KindFile, Content: merged}
			out.Merged = append(out.Merged, t.True)
			return nil, nil
		}
		foreign = true
	}
	if foreign {
		switch o.OnConflict {
		case OnConflictSkip:
			keep()
			out.Skipped = append(out.Skipped, t.True)
			return nil, nil
		case OnConflictForce:
		default:
			return &PathConflict{Path: t.True, Diff: e.drift(ctx, t, item)}, nil
		}
	}
	switch item.Want.Kind {
	case checkpoint.File:
		content, err := e.points.Content(ctx, item.Want.Hash)
		if err != nil {
			return nil, err
		}
		t.After = After{Kind: guardfs.KindFile, Content: content, Meta: metadata(item.Want)}
	case checkpoint.Symlink:
		t.After = After{Kind: guardfs.KindSymlink, Target: item.Want.Target}
	default:
		t.After = After{Kind: guardfs.KindAbsent}
	}
	return nil, nil
}

func kindNow(t *Target) guardfs.Kind {
	if !t.Before.Exists {
		return guardfs.KindAbsent
	}
	return t.Before.Info.Kind
}

// merge is the three-way merge of what the operation left (base), what is
// there (ours) and what was before it (theirs). nil: it can't be merged.
func (e *Engine) merge(ctx context.Context, t *Target, item *checkpoint.Item) ([]byte, error) {
	if item.Want.Kind != checkpoint.File || item.Base.Kind != checkpoint.File || !item.BaseStored || !t.Before.Exists {
		return nil, nil
	}
	base, err := e.points.Content(ctx, item.Base.Hash)
	if err != nil {
		return nil, err
	}
	theirs, err := e.points.Content(ctx, item.Want.Hash)
	if err != nil {
		return nil, err
	}
	merged, conflicts := edit.Merge(base, t.Before.Content, theirs)
	if len(conflicts) > 0 {
		return nil, nil
	}
	return merged, nil
}

// drift is a diff from the last content that the store knows to what is
// there, "" when the store does not hold it.
func (e *Engine) drift(ctx context.Context, t *Target, item *checkpoint.Item) string {
	if item.Head.Kind != checkpoint.File || !t.Before.Exists {
		return ""
	}
	known, err := e.points.Content(ctx, item.Head.Hash)
	if err != nil {
		return ""
	}
	return edit.Unified(t.True, edit.Patch(text(known), text(t.Before.Content)))
}

// Checkpoints lists what the call's session may see.
func (e *Engine) Checkpoints(ctx context.Context, c *Call, f checkpoint.Filter) (checkpoint.Page, error) {
	f.Principal, f.Session, f.AllSessions = c.Principal, c.Session, e.cfg.Checkpoint.OtherSessions
	return e.points.List(ctx, f)
}

// Checkpoint finds one checkpoint that the call's session may see.
func (e *Engine) Checkpoint(ctx context.Context, c *Call, id checkpoint.ID) (*checkpoint.Checkpoint, error) {
	return e.points.Get(ctx, id, checkpoint.Scope{Principal: c.Principal, Session: c.Session, AllSessions: e.cfg.Checkpoint.OtherSessions})
}
