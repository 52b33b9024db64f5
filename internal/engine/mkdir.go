package engine

import (
	"context"
	"errors"

	"moltisfs/checkpoint"
	"moltisfs/internal/edit"
	"moltisfs/internal/guardfs"
)

// MkdirArgs say which directory is made.
type MkdirArgs struct {
	Path   string
	Exists bool  // one that is there already is fine
	Rules  Rules // of these only Parents counts
	DryRun bool
}

// Mkdir makes a directory: an ordinary change, checkpointed whatever the config says. An undo
// removes it if it is still that one, and nothing is in it. A link at the path is refused, and
// whatever else is there is a conflict.
func (e *Engine) Mkdir(ctx context.Context, c *Call, a MkdirArgs) (*Done, error) {
	if err := e.is(c, opMkdir, a.Path, "", a.Rules.Parents); err != nil {
		return nil, err
	}
	return e.Change(ctx, c, func(_ context.Context, d *Desk) (*Plan, error) {
		c.Trace.Paths = []string{a.Path}
		p := Plan{DryRun: a.DryRun, Checkpoint: true, Op: checkpoint.Op{Kind: checkpoint.KindMkdir}}
		place, err := d.e.fs.Place(a.Path)
		gone, ok := errors.AsType[*guardfs.MissingParentError](err)
		var name string
		switch {
		case ok && a.Rules.Parents:
			name = gone.True
		case err != nil:
			return nil, err
		default:
			defer place.Close() //nolint:errcheck // nothing was written through it
			name = place.Object().True
		}
		if place != nil && place.Object().Info.Kind != guardfs.KindAbsent {
			if a.Exists && place.Object().Info.Kind == guardfs.KindDir {
				return &p, nil
			}
			return nil, Refuse(Conflicts, name, []Blocked{{Path: name, Why: Occupied}})
		}
		p.Summary = "make directory " + edit.ShownPath(name)
		if p.Steps, err = d.above(a.Path, name); err != nil {
			return nil, err
		}
		p.Steps = append(p.Steps, mkdir(name, 0o777))
		return &p, nil
	})
}
