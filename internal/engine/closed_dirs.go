package engine

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"path"
	"slices"

	"moltisfs/checkpoint"
	"moltisfs/internal/guardfs"
)

// A directory that is not open to all is remembered once the session has read or changed something in it: if somebody removes it with all it holds, a
// restore must not make it anew for all to see. That goes for those below the workspace root; where none is set, for the one that holds the file. The
// record is that of a mere read, which no rewind and no undo covers.

// keepDirs records the closed directories above these paths, unless that was done in this turn. It is for later: an error costs no more than that.
func (e *Engine) keepDirs(ctx context.Context, c *Call, paths ...string) {
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
			if root := e.cfg.WorkspaceRoot; root != "" && !below(dir, root) || root == "" && dir != path.Dir(p) {
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
	db, err := e.points.open()
	if err != nil {
		return err
	}
	op := checkpoint.Op{Kind: checkpoint.KindRead, Principal: c.Principal, Session: c.Session, Turn: c.Turn, Time: e.now()}
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
		op.Changes = append(op.Changes, checkpoint.Change{Path: dir, Role: checkpoint.RoleParent, Before: now, After: now})
	}
	if op.Changes != nil {
		_, err = db.Save(ctx, op)
	}
	return err
}

// parents are the directories that have to be made for what a restore brings back, from the top down: as they were when they were last recorded, else no
// more open than the nearest one that is there and the files that they are for.
func (r *restore) parents(ctx context.Context, m *Mutation, ts []*Target, dirs []NewDir) ([]NewDir, error) {
	named := map[string]bool{}
	for _, d := range dirs {
		named[d.Path] = true
	}
	open := map[string]fs.FileMode{} // by directory: who may see some file below
	for _, t := range ts {
		if t.place != nil || t.Unchanged() || t.After.Kind == guardfs.KindAbsent {
			continue
		}
		p, err := r.e.fs.PlaceLink(t.Path)
		gone, ok := errors.AsType[*guardfs.MissingParentError](err)
		if m.nowhere(t.Path, err) {
			gone, ok = &guardfs.MissingParentError{Missing: m.swapAbove(t.Path)}, true
		}
		if !ok {
			if err == nil {
				p.Close()
			}
			continue // the chain meets it again
		}
		mode := fs.FileMode(0o666)
		if t.After.Meta != nil {
			mode = t.After.Meta.Mode
		}
		for dir := path.Dir(t.Path); within(dir, gone.Missing); dir = path.Dir(dir) {
			open[dir] |= mode & 0o044
		}
	}
	for dir, seen := range open {
		if named[dir] || slices.Contains(m.Swaps, dir) {
			continue
		}
		mode, known, err := r.db.LastDir(ctx, dir)
		if err != nil {
			return nil, err
		}
		if !known {
			above := r.e.nearestDir(dir)
			mode = 0o700
			for _, bits := range []fs.FileMode{0o070, 0o007} {
				if seen&bits != 0 && above&bits&0o011 != 0 {
					mode |= bits
				}
			}
		}
		dirs = append(dirs, NewDir{Path: dir, Mode: mode})
	}
	slices.SortFunc(dirs, func(a, b NewDir) int { return cmp.Compare(a.Path, b.Path) })
	return dirs, nil
}

// nearestDir is the mode of the deepest directory above dir that is there; 0 when that can't be told.
func (e *Engine) nearestDir(dir string) fs.FileMode {
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
