package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"moltisfs/checkpoint"
	"moltisfs/internal/guardfs"
)

// DeleteOptions says how a path goes.
type DeleteOptions struct {
	Recursive bool // a directory with all it holds; otherwise it must be empty
	DryRun    bool
}

// NotEmptyError: the directory holds something, and Recursive was not said.
type NotEmptyError struct{ Path string }

func (e *NotEmptyError) Error() string { return "the directory " + e.Path + " is not empty" }

// TooManyError: a tree is too large to go to the trash in one change.
type TooManyError struct {
	Path string
	Max  int
}

func (e *TooManyError) Error() string {
	return fmt.Sprintf("%s holds more than %d entries", e.Path, e.Max)
}

// maxTree bounds how many entries one delete takes into the trash.
const maxTree = 10_000

// trashFiles puts the files that a restore removes into the trash, on the terms of whoever calls.
func trashFiles(c *Call) func(string, guardfs.Kind) *checkpoint.Trashed {
	return func(_ string, k guardfs.Kind) *checkpoint.Trashed {
		if k == guardfs.KindDir {
			return nil
		}
		return &checkpoint.Trashed{Agent: !c.ByUser, Files: 1}
	}
}

// Delete moves a file, a symbolic link (itself, not what it leads to) or a directory into the trash of the call's principal:
// an ordinary guarded mutation, checkpointed whatever the config says. Done.Trashed has the one entry. Content that cannot be stored
// (above max_file_bytes, excluded) is not deleted: *MissingContentError.
func (e *Engine) Delete(ctx context.Context, c *Call, path string, o DeleteOptions) (*Done, error) {
	place, err := e.fs.PlaceLink(path)
	if err != nil {
		return nil, err
	}
	object := place.Object()
	place.Close()
	m := Mutation{Summary: "delete " + object.True, DryRun: o.DryRun, Checkpoint: true, Whole: true, Links: map[string]bool{}, Op: checkpoint.Op{Kind: checkpoint.KindDelete}}
	size, files := int64(0), 0
	switch object.Info.Kind {
	case guardfs.KindAbsent:
		return nil, &guardfs.PathError{Op: "delete", Path: path, Err: fs.ErrNotExist}
	case guardfs.KindDir:
		if size, files, err = e.gather(ctx, object.True, &m, o.Recursive); err != nil {
			return nil, err
		}
	default:
		m.Paths, m.Links[object.True] = []string{object.True}, true
		size, files = object.Info.Size, 1
	}
	m.Trash = func(p string, _ guardfs.Kind) *checkpoint.Trashed {
		if p != object.True {
			return nil
		}
		return &checkpoint.Trashed{Agent: !c.ByUser, Size: size, Files: files, Identity: object.Info.ID.String()}
	}
	m.Next = func(ts []*Target) error {
		for _, t := range ts {
			t.After = After{Kind: guardfs.KindAbsent}
		}
		return nil
	}
	done, err := e.Mutate(ctx, c, m)
	if err == nil && slices.Contains(done.Kept, object.True) {
		err = &NotEmptyError{object.True} // somebody put something in meanwhile; what was deleted is in the checkpoint
	}
	return done, err
}

// gather lists what is below a directory: files and links as paths, directories innermost first.
func (e *Engine) gather(ctx context.Context, dir string, m *Mutation, recursive bool) (size int64, files int, err error) {
	h, err := e.fs.Resolve(dir, guardfs.Remove)
	if err != nil {
		return 0, 0, err
	}
	defer h.Close()
	d, err := h.Dir()
	if err != nil {
		return 0, 0, err
	}
	defer d.Close()
	var walk func(d *guardfs.Dir) error
	walk = func(d *guardfs.Dir) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		entries, denied, err := d.List(nil)
		if err != nil {
			return err
		}
		if len(entries)+denied > 0 && !recursive || denied > 0 {
			return &NotEmptyError{d.True()} // what is denied is not even counted aloud
		}
		for _, entry := range entries {
			name := d.True() + "/" + entry.Name
			if len(m.Paths)+len(m.Drop) >= maxTree {
				return &TooManyError{dir, maxTree}
			}
			if entry.Kind == guardfs.KindDir {
				sub, err := d.OpenDir(entry.Name, false)
				if err != nil {
					return err
				}
				err = walk(sub)
				sub.Close()
				if err != nil {
					return err
				}
				continue
			}
			info, err := d.Stat(entry.Name)
			if err != nil {
				return err
			}
			size, files = size+info.Size, files+1
			m.Paths, m.Links[name] = append(m.Paths, name), true
		}
		m.Drop = append(m.Drop, d.True())
		return nil
	}
	return size, files, walk(d)
}

// Trash lists what the call's principal has in the trash.
func (e *Engine) Trash(ctx context.Context, c *Call, f checkpoint.TrashFilter) (checkpoint.TrashPage, error) {
	db, err := e.points.open()
	if err != nil {
		return checkpoint.TrashPage{}, err
	}
	f.Principal, f.AllPrincipals, f.Unsettled = c.Principal, false, false
	return db.TrashList(ctx, f)
}

// Untrash brings an entry of the call's principal back to where it was, under today's policy and never over something that is there.
func (e *Engine) Untrash(ctx context.Context, c *Call, id checkpoint.TrashID, dryRun bool) (*Restored, error) {
	db, err := e.points.open()
	if err != nil {
		return nil, err
	}
	t, err := db.TrashGet(ctx, id, c.Principal, false)
	if err != nil {
		return nil, err
	}
	op, err := db.Get(ctx, t.Checkpoint, checkpoint.Scope{AllSessions: true}) // the entry is the right to it
	if err != nil {
		return nil, err
	}
	plan := &checkpoint.Plan{Mode: checkpoint.ModeState, RestoreOf: op.ID}
	r := &restore{e: e, db: db, plan: plan, o: RestoreOptions{DryRun: dryRun}, items: map[string]*checkpoint.Item{}, out: &Restored{Plan: plan, Merged: map[string]bool{}}}
	m := Mutation{
		Summary: "bring " + t.Path + " back from the trash", DryRun: dryRun, Blind: true, CreateParents: true, Checkpoint: true,
		Links: map[string]bool{}, Op: checkpoint.Op{Kind: checkpoint.KindRestore, RestoreOf: op.ID},
	}
	for _, ch := range op.Changes {
		if ch.Path != t.Path && !below(ch.Path, t.Path) {
			continue
		}
		switch ch.Before.Kind {
		case checkpoint.Dir:
			m.Dirs = append(m.Dirs, NewDir{ch.Path, ch.Before.Mode})
		case checkpoint.File, checkpoint.Symlink:
			// Head absent: anything that is there is a conflict.
			r.items[ch.Path] = &checkpoint.Item{Path: ch.Path, Want: ch.Before, Stored: ch.Stored || ch.Before.Kind != checkpoint.File, Missing: ch.Skipped,
				Head: checkpoint.State{Kind: checkpoint.Absent}, HeadSettled: true}
			m.Paths, m.Links[ch.Path] = append(m.Paths, ch.Path), true
		}
	}
	slices.SortFunc(m.Dirs, func(a, b NewDir) int { return len(a.Path) - len(b.Path) }) // a parent is shorter
	if t.Kind == checkpoint.Dir {
		if place, err := e.fs.PlaceLink(t.Path); err == nil {
			taken := place.Object().Info.Kind != guardfs.KindAbsent
			place.Close()
			if taken {
				return nil, &ConflictsError{[]PathConflict{{Path: t.Path, Why: "something is there"}}}
			}
		} else if _, ok := errors.AsType[*guardfs.MissingParentError](err); !ok {
			return nil, err
		}
	}
	m.Next = func(ts []*Target) error { return r.next(ctx, ts) }
	if r.out.Done, err = e.Mutate(ctx, c, m); err != nil {
		return nil, err
	}
	if dryRun {
		return r.out, nil
	}
	if err := errors.Join(db.TrashSettle(ctx, id, checkpoint.Gone), db.TrashDrop(ctx, id)); err != nil {
		// It is back, and a second try is refused because something is there.
		e.logger.Warn("a trash entry that was restored could not be removed", "id", id, "err", err)
	}
	return r.out, nil
}

func below(path, dir string) bool {
	return len(path) > len(dir)+1 && path[:len(dir)] == dir && path[len(dir)] == '/'
}
