package engine

import (
	"context"
	"errors"
	"path"
	"slices"
	"sync"
	"syscall"

	"moltisfs/checkpoint"
	"moltisfs/internal/guardfs"
	"moltisfs/internal/session"
)

// outside remembers turns and looks, to notice changes that were not made by the tools.
type outside struct {
	mu    sync.Mutex
	turns map[session.Key]string // the turn that a session is in
	// by path, what the last look found: what did not move is not read again
	looks map[string]look
	// which recordClosedDirs has seen in this turn
	dirs map[string]bool
}

type look struct {
	stamp string // identity, size and times
	state checkpoint.State
}

const maxLooks = 50_000

// BeginTurn begins the call's turn, if it is a new one. From here on "restore to this turn" means
// something, and what others changed since the session last looked is on record.
//
// It refuses nothing. If the store fails here, the next change fails too, and that is where it
// matters.
func (c *Call) BeginTurn(ctx context.Context) {
	if c.Turn == "" || !c.cfg.CheckpointBeforeMutation {
		return
	}
	o := &c.outside
	o.mu.Lock()
	same := o.turns[c.key()] == c.Turn
	o.mu.Unlock()
	if same {
		return
	}
	if err := c.beginTurn(ctx); err != nil {
		c.logger.Warn("the beginning of a turn could not be recorded", "turn", c.Turn, "err", err)
		return
	}
	o.mu.Lock()
	if o.turns == nil || len(o.turns) > maxLooks {
		o.turns = map[session.Key]string{}
	}
	o.turns[c.key()] = c.Turn
	o.dirs = nil
	o.mu.Unlock()
}

func (c *Call) beginTurn(ctx context.Context) error {
	db, err := c.checkpoints.open()
	if err != nil {
		return err
	}
	who := checkpoint.Scope{Principal: c.Principal, Session: c.Session}
	began, err := db.BeginTurn(ctx, who, c.Turn)
	if err != nil || !began {
		return err
	}
	_, err = c.recordOutside(ctx, db, nil)
	return err
}

// recordOutside compares the files that the call's session knows with what is recorded of them, and
// records what others changed. skip says which paths to pass over; it may be nil. The answer is ""
// when nothing had changed.
func (c *Call) recordOutside(ctx context.Context, db *checkpoint.DB, skip func(path string) bool) (checkpoint.ID, error) {
	known, err := db.Known(ctx, checkpoint.Scope{Principal: c.Principal, Session: c.Session})
	if err != nil {
		return "", err
	}
	op := checkpoint.Op{Kind: checkpoint.KindExternal, Principal: c.Principal, Session: c.Session,
		Turn: c.Turn}
	for _, k := range known {
		if err := ctx.Err(); err != nil {
			return "", err
		}
		if k.State.Kind == checkpoint.Dir ||
			k.Before.Kind == checkpoint.Dir && k.State.Kind == checkpoint.Absent ||
			skip != nil && skip(k.Path) {
			continue
		}
		now, ok := c.observe(&k)
		if !ok || k.Expects(now.After) {
			continue
		}
		if _, held, err := c.held(ctx, k.Path); held || err != nil {
			continue // the disk is not what counts
		}
		moved, err := movedAbove(ctx, db, k.Path)
		if err != nil {
			return "", err
		}
		if !moved {
			op.Changes = append(op.Changes, now)
		}
	}
	if len(op.Changes) == 0 {
		return "", nil
	}
	saved, err := db.Save(ctx, op)
	if err == nil {
		c.logger.Info("files were changed outside of the tools", "checkpoint", saved.ID,
			"session", c.Session)
	}
	return saved.ID, err
}

// observe looks what became of a path since the session recorded it. It passes by what policy
// denies today, and what is too large to be read. Where there is a directory in the place of a
// file, or the reverse, what was there is gone: no tool makes that.
func (c *Call) observe(k *checkpoint.Known) (checkpoint.Change, bool) {
	out := checkpoint.Change{Path: k.Path, Role: "target", Before: k.Own,
		After: checkpoint.State{Kind: checkpoint.Absent}}
	if k.Own.Kind == checkpoint.File && k.Own.Hash == "" {
		// It was recorded without content and hash, as a file too large to read.
		out.Skipped = checkpoint.SkipNotRead
	}
	place, err := c.fs.EntryLink(k.Path)
	if err != nil {
		_, missing := errors.AsType[*guardfs.MissingParentError](err)
		return out, missing || errors.Is(err, syscall.ENOTDIR)
	}
	defer place.Close()
	info := place.Object().Info
	if same := place.Object().True == k.Path; !same || info.Kind == guardfs.KindDir ||
		info.Kind == guardfs.KindOther {
		return out, same
	}
	stamp := info.ID.String() + stamp(info, "")
	o := &c.outside
	o.mu.Lock()
	last := o.looks[k.Path]
	o.mu.Unlock()
	if info.Kind == guardfs.KindFile && last.stamp == stamp && k.Expects(last.state) {
		out.After = last.state
		return out, true
	}
	b, err := place.Load(c.cfg.Checkpoint.MaxFileBytes)
	if err != nil {
		return out, false
	}
	out.After = state(b)
	if b.Exists && b.Info.Kind == guardfs.KindFile {
		out.AfterContent = b.Content
		if out.AfterContent == nil {
			out.AfterContent = []byte{}
		}
		o.mu.Lock()
		if o.looks == nil || len(o.looks) > maxLooks {
			o.looks = map[string]look{}
		}
		o.looks[k.Path] = look{stamp, out.After}
		o.mu.Unlock()
	}
	return out, true
}

// movedAbove says that the newest change of name was that of a directory above it, which the tools gave another name or put
// into the trash: then nobody from outside took name away.
func movedAbove(ctx context.Context, db *checkpoint.DB, name string) (bool, error) {
	page, err := db.List(ctx, checkpoint.Filter{Path: name, NoReads: true, Limit: 1, AllSessions: true})
	return len(page.Checkpoints) > 0 && page.Checkpoints[0].Outcome != checkpoint.Aborted &&
		!slices.ContainsFunc(page.Checkpoints[0].Changes, func(c checkpoint.Recorded) bool { return c.Path == name }), err
}

// Once a session has changed something in a directory that is not open to all, the mode of
// that directory is recorded. Somebody may remove it with all it holds, and a restore must not make
// it anew for all to see.
//
// This holds for directories below the workspace root. Where none is set, it holds for the one with
// the file. The record has the kind of a read, so no rewind and no undo covers it.

// recordClosedDirs records the closed directories above these paths, once a turn. It is for later,
// so an error is only logged.
func (c *Call) recordClosedDirs(ctx context.Context, paths ...string) {
	if !c.cfg.CheckpointBeforeMutation {
		return
	}
	if err := c.storeDirs(ctx, paths); err != nil {
		c.logger.Warn("the modes of directories could not be kept", "err", err)
	}
}

func (c *Call) storeDirs(ctx context.Context, paths []string) error {
	var closed []string
	o := &c.outside
	for _, p := range paths {
		for dir := path.Dir(p); len(dir) > 1; dir = path.Dir(dir) {
			if root := c.cfg.WorkspaceRoot; root != "" && !below(dir, root) ||
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
			place, err := c.fs.Entry(dir)
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
	db, err := c.checkpoints.open()
	if err != nil {
		return err
	}
	op := checkpoint.Op{Kind: checkpoint.KindRead, Principal: c.Principal, Session: c.Session,
		Turn: c.Turn, Time: c.now()}
	for _, dir := range closed {
		now, err := c.dirState(dir)
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
