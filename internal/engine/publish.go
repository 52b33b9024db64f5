package engine

import (
	"bytes"
	"context"
	"errors"
	"syscall"

	"moltisfs/checkpoint"
	"moltisfs/internal/guardfs"
)

// beside runs both at once. The first is the longer one: the second may have to wait until a thread wakes up, or the first one
// sleeps, because on a virtual machine the kernel often puts both on one processor.
func beside(first, second func() error) (error, error) {
	done := make(chan error, 1)
	go func() { done <- second() }()
	err := first()
	return err, <-done
}

func (e *Engine) sync() bool { return e.cfg.Durability != "none" }

// putBack undoes what may be made of a change of one file, because something failed with cause. What
// can't be put back is named: the checkpoint holds it.
func (e *Engine) putBack(ctx context.Context, p *point, t *Target, cause error) error {
	ctx = context.WithoutCancel(ctx)
	if t.Published != nil || e.madeAllTheSame(t, cause) {
		if err := e.putBackOne(ctx, t, p.tag); err != nil {
			e.logger.Error("a change that failed half-way could not be put back", "path", t.True, "err", err)
			p.settle(ctx, checkpoint.Foreign)
			return halfMade(cause, []string{t.True}, p.id, false)
		}
	}
	p.settle(ctx, checkpoint.Aborted)
	return cause
}

// madeAllTheSame reports whether a target whose publication failed with cause is not certainly as others left it: where nothing can be looked
// at any more, the exchange may have been made and not have been undone.
func (e *Engine) madeAllTheSame(t *Target, cause error) bool {
	now, err := e.loadLink(t.True)
	if err != nil {
		return true
	}
	if state(now).Same(state(t.Before)) {
		return false
	}
	if !now.Exists { // removed, by us unless it is said that it was somebody else
		_, others := errors.AsType[*guardfs.ConflictError](cause)
		return !others && (t.After.Kind != guardfs.KindFile || t.Before.Info.Kind == guardfs.KindSymlink)
	}
	return t.isOurs(now)
}

// loadLink looks at a path as a mutation would, a link for itself. What is no file or link, or can't be reached by that name any more, comes without content.
func (e *Engine) loadLink(path string) (*guardfs.Before, error) {
	place, err := e.fs.PlaceLink(path)
	if _, ok := errors.AsType[*guardfs.MissingParentError](err); ok {
		return &guardfs.Before{}, nil
	}
	if err != nil {
		return nil, err
	}
	defer place.Close()
	o := place.Object()
	if k := o.Info.Kind; o.True != path || k == guardfs.KindDir || k == guardfs.KindOther || o.Info.Size > maxLoad {
		return &guardfs.Before{Exists: true, Info: o.Info}, nil
	}
	return place.Load(maxLoad)
}

// isOurs says that what is there is what we made of the target. The same content in another file is somebody else's.
func (t *Target) isOurs(now *guardfs.Before) bool {
	if !state(now).Same(t.announced()) {
		return false
	}
	switch t.After.Kind {
	case guardfs.KindFile:
		return t.own != guardfs.Identity{} && t.own == now.Info.ID
	}
	return true
}

// announced is what the target was to become.
func (t *Target) announced() checkpoint.State {
	switch t.After.Kind {
	case guardfs.KindFile:
		return checkpoint.State{Kind: checkpoint.File, Hash: t.After.Hash}
	case guardfs.KindSymlink:
		return checkpoint.State{Kind: checkpoint.Symlink, Target: t.After.Target}
	case guardfs.KindDir:
		return checkpoint.State{Kind: checkpoint.Dir}
	}
	return checkpoint.State{Kind: checkpoint.Absent}
}

func (e *Engine) putBackOne(ctx context.Context, t *Target, tag string) error {
	was := t.Before
	if t.givesWay() { // the directory itself is made anew after that
		was = &guardfs.Before{}
	}
	return e.become(ctx, t.True, tag, t.isOurs, was)
}

// become makes path what it was, if it still is what we made of it, which ours says. A link is taken for itself. tag is that of the operation.
func (e *Engine) become(ctx context.Context, path, tag string, ours func(*guardfs.Before) bool, was *guardfs.Before) error {
	place, err := e.fs.PlaceLink(path)
	if _, ok := errors.AsType[*guardfs.MissingParentError](err); (ok || errors.Is(err, syscall.ENOTDIR)) && !was.Exists {
		return nil
	}
	if err != nil {
		return err
	}
	defer place.Close()
	place.Label(tag)
	if place.Object().True != path {
		return &guardfs.SymlinkError{Path: path, Target: place.Object().True}
	}
	now, err := place.Load(maxLoad)
	if err != nil {
		return err
	}
	if state(now).Same(state(was)) {
		return nil
	}
	if now.Exists && !ours(now) {
		return &guardfs.ConflictError{Path: path, Why: guardfs.ChangedAgain}
	}
	link := was.Exists && was.Info.Kind == guardfs.KindSymlink
	if now.Exists && (!was.Exists || link || now.Info.Kind == guardfs.KindSymlink) {
		if err := place.Remove(ctx, now, e.sync()); err != nil {
			return err
		}
		if now, err = place.Load(maxLoad); err != nil {
			return err
		}
	}
	switch {
	case !was.Exists:
		return nil
	case link:
		return place.Symlink(string(was.Content))
	}
	s, err := place.Stage(ctx, was.Content, guardfs.StageOptions{Meta: &was.Meta, Sync: e.sync()})
	if err != nil {
		return err
	}
	defer s.Discard()
	_, err = s.Commit(ctx, now)
	return err
}

// intend writes the intent before anything changes; a record that can't be
// written stops the change.
func (e *Engine) intend(c *Call) error {
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
