package engine

import (
	"context"
	"errors"
	"io/fs"
	"path"

	"moltisfs/checkpoint"
	"moltisfs/internal/guardfs"
)

// Once a session has changed something in a directory that is not open to all, the mode of
// that directory is recorded. Somebody may remove it with all it holds, and a restore must not make
// it anew for all to see.
//
// This holds for directories below the workspace root. Where none is set, it holds for the one with
// the file. The record has the kind of a read, so no rewind and no undo covers it.

// recordClosedDirs records the closed directories above these paths, once a turn. It is for later,
// so an error is only logged.
func (e *Engine) recordClosedDirs(ctx context.Context, c *Call, paths ...string) {
	if !e.cfg.CheckpointBeforeMutation {
		return
	}
	if err := e.storeDirs(ctx, c, paths); err != nil {
		e.logger.Warn("the modes of directories could not be kept", "err", err)
	}
}

func (e *Engine) storeDirs(ctx context.Context, c *Call, paths []string) error {
	var closed []string
	o := &e.outside
	for _, p := range paths {
		for dir := path.Dir(p); len(dir) > 1; dir = path.Dir(dir) {
			if root := e.cfg.WorkspaceRoot; root != "" && !below(dir, root) ||
				root == "" && dir != path.Dir(p) {
				break // what holds all the work is not removed and brought back
			}
			o.mu.Lock()
			done := o.dirs[dir]
			if !done {
				if o.dirs == nil || len(o.dirs) > maxLooks {
					o.dirs = map[string]bool{}
				}
				o.dirs[dir] = true
			}
			o.mu.Unlock()
			if done { // and so are those above
				break
			}
			place, err := e.fs.Place(dir)
			if err != nil {
				break // policy lets nobody make directories from here up
			}
			i := place.Object().Info
			place.Close()
			if i.Kind == guardfs.KindDir && i.Mode.Perm()&0o055 != 0o055 {
				closed = append(closed, dir)
			}
		}
	}
	if closed == nil {
		return nil
	}
	db, err := e.checkpoints.open()
	if err != nil {
		return err
	}
	op := checkpoint.Op{Kind: checkpoint.KindRead, Principal: c.Principal, Session: c.Session,
		Turn: c.Turn, Time: e.now()}
	for _, dir := range closed {
		now, err := e.dirState(dir)
		if err != nil {
			return err
		}
		if last, known, err := db.LastDir(ctx, dir); err != nil || known && last == now.Mode {
			if err != nil {
				return err
			}
			continue
		}
		op.Changes = append(op.Changes,
			checkpoint.Change{Path: dir, Role: checkpoint.RoleParent, Before: now, After: now})
	}
	if op.Changes != nil {
		_, err = db.Save(ctx, op)
	}
	return err
}

// seen are, by directory that has to be made, the modes of the files that come below it, together.
func (r *restore) seen(missing map[string]bool) map[string]fs.FileMode {
	out := map[string]fs.FileMode{}
	for _, t := range r.d.files {
		mode := fs.FileMode(0o666)
		if t.After.Meta != nil {
			mode = 0o600 | t.After.Meta.Mode
		}
		there := t.After.Kind != guardfs.KindAbsent
		for dir := path.Dir(t.True); there && missing[dir]; dir = path.Dir(dir) {
			out[dir] |= mode
		}
	}
	return out
}

// modeAbove is the mode of the nearest directory above dir that exists; 0 when that is unknown.
func (e *Engine) modeAbove(dir string) fs.FileMode {
	for dir = path.Dir(dir); ; dir = path.Dir(dir) {
		h, err := e.fs.Resolve(dir, guardfs.Look)
		if err == nil {
			mode := h.Object().Info.Mode
			h.Close()
			return mode
		}
		if len(dir) <= 1 || !errors.Is(err, fs.ErrNotExist) {
			return 0
		}
	}
}
