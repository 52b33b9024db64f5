package engine

import (
	"context"
	"time"

	"moltisfs/checkpoint"
)

// Files is a change of some files, which Next says by their After.
type Files struct {
	Paths   []string
	Parents bool
	Summary string
	Op      checkpoint.Op

	Checkpoint bool
	Links      map[string]bool
	Dirs       []string // to be made
	Drop       []string // directories to be removed
	Whole      bool
	Next       func([]*Target) error
}

// ChangeFiles carries it out, whatever was read of the files.
func (e *Engine) ChangeFiles(ctx context.Context, c *Call, f Files) (*Done, error) {
	return e.Change(ctx, c, func(_ context.Context, d *Desk) (*Plan, error) {
		if err := roomToLoad(f.Paths); err != nil {
			return nil, err
		}
		for _, path := range f.Paths {
			if _, err := d.Load(path, Rules{Parents: f.Parents, Link: f.Links[path]}); err != nil {
				return nil, err
			}
		}
		if f.Next != nil {
			if err := f.Next(d.files); err != nil {
				return nil, err
			}
		}
		p := Plan{Summary: f.Summary, Op: f.Op, Checkpoint: f.Checkpoint, Whole: f.Whole}
		for _, dir := range f.Dirs {
			above, err := d.above(dir+"/x", dir+"/x")
			if err != nil {
				return nil, err
			}
			p.Steps = append(p.Steps, above...)
		}
		for _, dir := range f.Drop {
			s, err := d.rmdir(dir)
			if err != nil {
				return nil, err
			}
			p.Steps = append(p.Steps, s)
		}
		return d.plan(p)
	})
}

// Held is what the client holds of a path.
func (c *Call) Held(ctx context.Context, path string) ([]byte, bool, error) { return c.held(ctx, path) }

// SetClock gives the engine another time.
func (e *Engine) SetClock(now func() time.Time) { e.now = now }

// Sums is how many hashes of files are remembered.
func (e *Engine) Sums() int {
	e.sums.mu.Lock()
	defer e.sums.mu.Unlock()
	return len(e.sums.known)
}

// HalfWay lists what is marked as half-way, by whichever of the two roads.
func (e *Engine) HalfWay(ctx context.Context) (ids []checkpoint.ID, err error) {
	if ids, err = checkpoint.Marked(e.points.dir); err != nil {
		return nil, err
	}
	tags, err := checkpoint.OpenTags(e.points.dir)
	if err != nil || len(tags) == 0 {
		return ids, err
	}
	db, err := e.points.open()
	if err != nil {
		return nil, err
	}
	rows, err := db.Open(ctx)
	for _, r := range rows {
		if !r.Made {
			ids = append(ids, r.ID)
		}
	}
	return ids, err
}
