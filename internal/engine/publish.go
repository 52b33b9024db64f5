package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"moltisfs/checkpoint"
	"moltisfs/internal/guardfs"
)

// publish stores the pre-state and writes the temp files side by side, then
// exchanges them in. If any path fails, the ones before it are put back.
func (e *Engine) publish(ctx context.Context, c *Call, ts targets, m *Mutation) (_ *Done, err error) {
	done := &Done{Targets: ts}
	defer func() {
		if err != nil {
			e.unmake(done.Made)
		}
	}()
	for _, t := range ts {
		if t.place == nil {
			if err := e.makeParents(t, done); err != nil {
				return nil, err
			}
		}
	}

	saved := make(chan error, 1)
	go func() { saved <- e.save(ctx, c, ts, m, done) }()
	staged, stageErr := e.stage(ctx, ts)
	saveErr := <-saved
	defer func() {
		for _, s := range staged {
			if s != nil {
				s.Discard()
			}
		}
	}()
	if err := errors.Join(stageErr, saveErr); err != nil {
		return nil, err
	}

	for i, t := range ts {
		if t.unchanged() {
			continue
		}
		if err := e.commit(ctx, t, staged[i]); err != nil {
			return nil, e.putBack(ctx, ts[:i], err)
		}
	}
	return done, nil
}

func (e *Engine) makeParents(t *Target, done *Done) error {
	made, err := e.fs.MakeParents(t.Path)
	done.Made = append(done.Made, made...)
	if err != nil {
		return err
	}
	place, err := e.fs.Place(t.Path)
	if err != nil {
		return err
	}
	t.place, t.object, t.True = place, place.Object(), place.Object().True
	if t.object.Info.Kind != guardfs.KindAbsent {
		return &guardfs.ConflictError{Path: t.True, Why: "it appeared while its directory was being made"}
	}
	return nil
}

// unmake removes directories that were made for nothing, innermost first.
// Errors are not interesting: a directory that is in use stays.
func (e *Engine) unmake(made []string) {
	for i := len(made) - 1; i >= 0; i-- {
		if place, err := e.fs.Place(made[i]); err == nil {
			_ = place.RemoveEmptyDir(context.Background())
			place.Close()
		}
	}
}

func (e *Engine) sync() bool { return e.cfg.Durability != "none" }

func (e *Engine) stage(ctx context.Context, ts targets) ([]*guardfs.Staged, error) {
	staged := make([]*guardfs.Staged, len(ts))
	for i, t := range ts {
		if t.After.Kind != guardfs.KindFile || t.unchanged() {
			continue
		}
		o := guardfs.StageOptions{Sync: e.sync(), Meta: t.After.Meta}
		if t.Before.Exists && t.After.Meta == nil {
			o.Like = t.Before
		}
		var err error
		if staged[i], err = t.place.Stage(ctx, t.After.Content, o); err != nil {
			return staged, fmt.Errorf("writing beside %s: %w", t.True, err)
		}
	}
	return staged, nil
}

func (e *Engine) commit(ctx context.Context, t *Target, s *guardfs.Staged) (err error) {
	switch t.After.Kind {
	case guardfs.KindFile:
		t.Published, err = s.Commit(ctx, t.Before)
	case guardfs.KindAbsent:
		if err = t.place.Remove(ctx, t.Before, e.sync()); err == nil {
			t.Published = &guardfs.Published{True: t.True}
		}
	case guardfs.KindSymlink:
		if t.Before.Exists {
			if err = t.place.Remove(ctx, t.Before, e.sync()); err != nil {
				return err
			}
		}
		if err = t.place.Symlink(t.After.Target); err == nil {
			t.Published = &guardfs.Published{True: t.True}
		}
	}
	return err
}

// putBack undoes the targets that were already exchanged, because one after
// them failed with cause. What can't be put back is named: the checkpoint
// holds it.
func (e *Engine) putBack(ctx context.Context, ts targets, cause error) error {
	ctx = context.WithoutCancel(ctx)
	var stuck []string
	for i := len(ts) - 1; i >= 0; i-- {
		t := ts[i]
		if t.Published == nil {
			continue
		}
		if err := e.putBackOne(ctx, t); err != nil {
			e.logger.Error("a change that failed half-way could not be put back", "path", t.True, "err", err)
			stuck = append(stuck, t.True)
		}
	}
	if stuck != nil {
		return fmt.Errorf("%w (and these could not be put back: %s)", cause, strings.Join(stuck, ", "))
	}
	return cause
}

func (e *Engine) putBackOne(ctx context.Context, t *Target) error {
	place, err := e.fs.Place(t.True)
	if err != nil {
		return err
	}
	defer place.Close()
	now, err := place.Load(maxLoad)
	if err != nil {
		return err
	}
	if now.Hash != t.After.Hash {
		return &guardfs.ConflictError{Path: t.True, Why: "it was changed again at once"}
	}
	if !t.Before.Exists {
		return place.Remove(ctx, now, e.sync())
	}
	s, err := place.Stage(ctx, t.Before.Content, guardfs.StageOptions{Meta: &t.Before.Meta, Sync: e.sync()})
	if err != nil {
		return err
	}
	defer s.Discard()
	_, err = s.Commit(ctx, now)
	return err
}

// save stores the pre-state of every target that changes. It returns once
// the store says that it is durable.
func (e *Engine) save(ctx context.Context, c *Call, ts targets, m *Mutation, done *Done) error {
	if !m.Checkpoint && !e.cfg.CheckpointBeforeMutation {
		return nil
	}
	op := m.Op
	op.Tool, op.Principal, op.Session, op.Turn, op.Time = c.Tool, c.Principal, c.Session, c.Turn, e.now()
	for _, t := range ts {
		if !t.unchanged() {
			op.Changes = append(op.Changes, change(t))
		}
	}
	for _, dir := range done.Made {
		op.Changes = append(op.Changes, checkpoint.Change{Path: dir, Role: "parent_dir", Before: checkpoint.State{Kind: checkpoint.Absent}, After: checkpoint.State{Kind: checkpoint.Dir}})
	}
	saved, err := e.points.Save(ctx, op)
	if err != nil {
		if e.cfg.Checkpoint.OnError == "allow" && !m.Checkpoint {
			done.Skipped = err.Error()
			e.logger.Warn("a change went ahead without its checkpoint, as on_error allows", "err", err)
			return nil
		}
		return &CheckpointError{Err: err}
	}
	done.Checkpoint, c.Trace.Checkpoint = string(saved.ID), string(saved.ID)
	for _, s := range saved.Skipped {
		done.Skipped = s.Why
	}
	return nil
}

func change(t *Target) checkpoint.Change {
	ch := checkpoint.Change{Path: t.True, Role: "target", Before: state(t.Before)}
	if t.Before.Exists && t.Before.Info.Kind == guardfs.KindFile {
		ch.Content = t.Before.Content
	}
	switch t.After.Kind {
	case guardfs.KindFile:
		ch.After = checkpoint.State{Kind: checkpoint.File, Mode: t.Before.Meta.Mode, Size: int64(len(t.After.Content)), Hash: t.After.Hash}
		if t.After.Meta != nil {
			ch.After.Mode = t.After.Meta.Mode
		}
		ch.AfterContent = t.After.Content
	case guardfs.KindSymlink:
		ch.After = checkpoint.State{Kind: checkpoint.Symlink, Target: t.After.Target}
	default:
		ch.After = checkpoint.State{Kind: checkpoint.Absent}
	}
	return ch
}

func state(b *guardfs.Before) checkpoint.State {
	if !b.Exists {
		return checkpoint.State{Kind: checkpoint.Absent}
	}
	s := checkpoint.State{
		Kind: checkpoint.File, Mode: b.Meta.Mode, UID: b.Meta.UID, GID: b.Meta.GID, ModTime: b.Meta.ModTime,
		Xattrs: b.Meta.Xattrs, Size: b.Info.Size, Hash: b.Hash,
	}
	if b.Info.Kind == guardfs.KindSymlink {
		s.Kind, s.Target, s.Hash = checkpoint.Symlink, string(b.Content), ""
	}
	return s
}

func metadata(s checkpoint.State) *guardfs.Metadata {
	return &guardfs.Metadata{Mode: s.Mode & (fs.ModePerm | fs.ModeSticky), UID: s.UID, GID: s.GID, ModTime: s.ModTime, Xattrs: s.Xattrs}
}

// intend writes the intent before anything changes; a record that can't be
// written stops the change.
func (e *Engine) intend(c *Call, ts targets) error {
	r := e.record(c, "intent")
	if err := e.log.Append(r); err != nil {
		return &hostError{"writing the audit record", err}
	}
	return nil
}

// lines counts as Read does: a final newline makes no extra line.
func lines(content []byte) int {
	n := bytes.Count(content, []byte("\n"))
	if len(content) > 0 && content[len(content)-1] != '\n' {
		n++
	}
	return n
}
