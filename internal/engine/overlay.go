package engine

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"math"
	"time"
	"unicode/utf8"

	"moltisfs/approval"
	"moltisfs/checkpoint"
	"moltisfs/grep"
	"moltisfs/internal/guardfs"
)

// Client is who is at the other end of a call.
type Client struct {
	Approver approval.Approver // nil: the engine's own
	Overlay  Overlay           // nil: all files are as the disk has them
}

// An Overlay has the texts that a client holds instead of the disk: an editor's unsaved buffers. Of
// a path that it holds its text is the whole content. Read, Stat, Search in that file, Copy and
// Compare answer it; a change of that file alone goes to it, and any other is UnsavedText. An error
// of it ends the call: the disk never stands in for it.
//
// Paths are canonical, and policy has let each through. Whatever goes through a directory (List,
// ListTree, Walk, Search, Files, Watch) tells of the disk: who gives an Overlay has to say that.
//
// It is called from any goroutine, and must come back when ctx ends.
type Overlay interface {
	// Load is the text that is held of a path, in UTF-8; held is false where the disk counts.
	Load(ctx context.Context, path string) (text string, held bool, err error)
	// Store puts text in the place of old. A client that can tell that it holds another text by now
	// changes nothing, and fails.
	Store(ctx context.Context, path, old, text string) error
}

// clientTime is how long a client may take over one text.
const clientTime = 10 * time.Second

// roleBuffer is the role of a path in a checkpoint whose text a client held.
const roleBuffer = "buffer"

// held asks the client for its text of a path that policy has let through.
func (c *Call) held(ctx context.Context, path string) (text []byte, held bool, err error) {
	if c.Overlay == nil {
		return nil, false, nil
	}
	type reply struct {
		text string
		held bool
	}
	ctx, cancel := context.WithTimeout(ctx, clientTime)
	defer cancel()
	is, err := answered(ctx, "client", func() (r reply, err error) {
		r.text, r.held, err = c.Overlay.Load(ctx, path)
		return r, err
	})
	switch {
	case err != nil:
		return nil, false, clientFailed(ctx, path, err)
	case !is.held:
		return nil, false, nil
	case len(is.text) > maxLoad:
		return nil, false, &guardfs.TooLargeError{Path: path, Size: int64(len(is.text)), Max: maxLoad}
	case !utf8.ValidString(is.text):
		return nil, false, clientFailed(ctx, path, errors.New("its text is not UTF-8"))
	}
	return []byte(is.text), true, nil
}

// clientFailed is the error of a call whose client failed. What it says is for people: it must not
// pass for a finding about the disk.
func clientFailed(ctx context.Context, path string, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("asking the client for %s: %w", path, ctx.Err())
	}
	return Refuse(ClientFailed, path, errors.New(err.Error()))
}

// heldInfo is what there is to know of a path with that text; i is what is on the disk.
func heldInfo(i guardfs.Info, path string, text []byte) guardfs.Info {
	if i.Kind == guardfs.KindAbsent { // no other object has its identity
		sum := fnv.New64a()
		sum.Write([]byte(path)) //nolint:errcheck // a hash takes everything
		i = guardfs.Info{Kind: guardfs.KindFile, Links: 1}
		i.ID = guardfs.Identity{Dev: math.MaxUint64, Ino: sum.Sum64()}
	}
	i.Size = int64(len(text))
	return i
}

// overlaid is the text that the client holds of what path names, with what there is to know of it. o is
// what the disk has, or err says that it has nothing.
func (e *Engine) overlaid(ctx context.Context, c *Call, path string, o guardfs.Object, err error) (
	_ guardfs.Object, text []byte, held bool, _ error,
) {
	if c.Overlay == nil || err == nil && o.Info.Kind != guardfs.KindFile || err != nil && !errors.Is(err, fs.ErrNotExist) {
		return o, nil, false, err
	}
	if err != nil { // policy has let the path be read, and has to say so of its true name
		o = guardfs.Object{Spelled: path, True: e.fs.Canonical(path)}
		h, again := e.fs.Resolve(o.True, guardfs.Read)
		if again == nil {
			h.Close() //nolint:errcheck // nothing was written through it
		}
		if !errors.Is(again, fs.ErrNotExist) {
			return o, nil, false, cmp.Or(again, err)
		}
	}
	text, held, failed := c.held(ctx, o.True)
	if !held {
		return o, nil, false, cmp.Or(failed, err)
	}
	o.Info = heldInfo(o.Info, o.True, text)
	return o, text, true, nil
}

// A heldFile is a text as a search reads it.
type heldFile struct {
	*bytes.Reader
	info guardfs.Info
}

func (f heldFile) Close() error { return nil }
func (f heldFile) Info() grep.Info {
	return grep.Info{Kind: grep.KindFile, Size: f.info.Size, Ino: f.info.ID.Ino, ModTime: f.info.ModTime}
}

// Unsaved says that a client holds the text of the target: Before is that text, and the disk is not
// changed.
func (t *Target) Unsaved() bool { return t.disk != nil }

// encoding is the one to read and write the target in: a client's text has no other than UTF-8.
func (t *Target) encoding(asked string) string {
	if t.Unsaved() {
		return "utf-8"
	}
	return asked
}

// overlay is the text that the client holds in the place of what is on the disk, and that; or what is on
// the disk, and nil.
func (d *Desk) overlay(t *Target, disk *guardfs.Before) (_, _ *guardfs.Before, err error) {
	text, held, err := d.held(t.True)
	if err != nil || !held {
		return disk, nil, err
	}
	if disk.Exists && disk.Info.Kind != guardfs.KindFile {
		return nil, nil, Refuse(UnsavedText, t.True, nil)
	}
	if t.disk == disk && t.Before.Hash == HashOf(text) {
		return t.Before, disk, nil
	}
	b := &guardfs.Before{Exists: true, Content: text, Hash: HashOf(text), Meta: disk.Meta}
	b.Info = heldInfo(disk.Info, t.True, text)
	if !disk.Exists { // saved, it will be a new file
		b.Meta, err = t.place.Fresh(0o666, false)
		b.Info.Mode, b.Info.UID, b.Info.GID = b.Meta.Mode, b.Meta.UID, b.Meta.GID
	}
	return b, disk, err
}

// notHeld refuses a path of which the client holds the text.
func (d *Desk) notHeld(path string) error {
	_, held, err := d.held(path)
	if held {
		err = Refuse(UnsavedText, path, nil)
	}
	return err
}

// unmixed refuses a plan that changes a path of which the client holds the text, unless a new text
// of it is all that comes of the plan.
func (d *Desk) unmixed(p *Plan) error {
	for i := range p.Steps {
		s := &p.Steps[i]
		if t := s.file; t != nil {
			if t.Unsaved() && (len(p.Steps) > 1 || s.Action != Put || s.Exact || !utf8.Valid(t.After.Content)) {
				return Refuse(UnsavedText, t.True, nil)
			}
			continue
		}
		for _, name := range []string{s.Path, s.To} {
			if name == "" || inTrash(name) || d.c.Overlay == nil {
				continue
			}
			if err := d.notHeld(name); err != nil {
				return err
			}
			if s.Action == Rename && s.Before.Kind == checkpoint.Dir && name == s.Path {
				if err := d.noneHeldBelow(name); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// noneHeldBelow refuses a directory with a file of which the client holds the text.
func (d *Desk) noneHeldBelow(name string) error {
	h, err := d.e.fs.Resolve(name, guardfs.Walk)
	if err != nil {
		return err
	}
	defer h.Close() //nolint:errcheck // nothing was written through it
	top, err := h.Dir()
	if err != nil {
		return err
	}
	var walk func(*guardfs.Dir) error
	walk = func(dir *guardfs.Dir) error {
		defer dir.Close() //nolint:errcheck // nothing was written through it
		entries, _, err := dir.List(nil)
		for i := 0; err == nil && i < len(entries); i++ {
			if n := entries[i]; n.Kind != guardfs.KindDir {
				err = d.notHeld(joined(dir.True(), n.Name))
			} else if sub, oerr := dir.OpenDir(n.Name, false); oerr == nil {
				err = walk(sub)
			} else {
				err = oerr
			}
		}
		return err
	}
	return walk(top)
}

// unsaved is the one target of a plan whose text goes to the client; nil for every other plan.
func (p *Plan) unsaved() *Target {
	if len(p.Steps) == 1 && p.Steps[0].file != nil && p.Steps[0].file.Unsaved() {
		return p.Steps[0].file
	}
	return nil
}

// store carries out a plan whose text goes to the client: save, look once more, hand over. A client
// may not be able to take it only over the text that it had, so the last look is right before.
func (e *Engine) store(ctx context.Context, c *Call, ts targets, p *Plan, t *Target) (*Done, error) {
	done, point := &Done{Targets: ts}, &point{e: e, c: c}
	err := point.save(ctx, t, p, done)
	if err == nil {
		text, held, lerr := c.held(ctx, t.True)
		if err = lerr; err == nil && (!held || HashOf(text) != t.Before.Hash) {
			err = &guardfs.ConflictError{Path: t.True, Why: guardfs.ContentChanged}
		}
	}
	if err != nil {
		point.settle(ctx, checkpoint.Aborted)
		return nil, err
	}
	if sure, err := c.store(ctx, t); err != nil {
		text, held, lerr := c.held(context.WithoutCancel(ctx), t.True)
		switch is := HashOf(text); {
		case lerr == nil && held && is == t.After.Hash:
		case lerr == nil && held && is == t.Before.Hash && sure:
			point.settle(ctx, checkpoint.Aborted)
			return nil, err
		default: // nobody can tell, or it may still come
			point.settle(ctx, checkpoint.Foreign)
			return nil, halfMade(err, []string{t.True}, point.id, false)
		}
	}
	t.Published = &guardfs.Published{True: t.True, Info: heldInfo(t.Before.Info, t.True, t.After.Content)}
	point.settle(ctx, checkpoint.Committed)
	return done, nil
}

// store hands the new text of a target over. An error is sure where the client has come back with it:
// else it may still take the text.
func (c *Call) store(ctx context.Context, t *Target) (sure bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, clientTime)
	defer cancel()
	old, text := string(t.Before.Content), string(t.After.Content)
	_, err = answered(ctx, "client", func() (struct{}, error) {
		return struct{}{}, c.Overlay.Store(ctx, t.True, old, text)
	})
	if err != nil {
		err = clientFailed(ctx, t.True, err)
	}
	return ctx.Err() == nil, err
}
