package engine

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"

	"moltisfs/checkpoint"
	"moltisfs/internal/guardfs"
)

// leftMarks are the operations that were cut off and that this process could not take back: another may, and until then no call waits for it.
type leftMarks struct {
	mu     sync.Mutex
	ids    map[checkpoint.ID]bool
	denied map[checkpoint.ID]bool // without a mark: policy does not let us look whether they were made
	locked map[checkpoint.ID]bool // it was told that their paths are locked
}

// reach notes whether policy keeps us from looking whether a change was made.
func (l *leftMarks) reach(id checkpoint.ID, denied bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.denied == nil {
		l.denied = map[checkpoint.ID]bool{}
	}
	l.denied[id] = denied
}

func (l *leftMarks) outOfReach(id checkpoint.ID) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.denied[id]
}

// log tells of one, once. What is only locked is not left: whoever wants those paths waits, or is refused.
func (l *leftMarks) log(logger *slog.Logger, id checkpoint.ID, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, locked := errors.AsType[*guardfs.LockedError](err); locked {
		if l.locked == nil {
			l.locked = map[checkpoint.ID]bool{}
		}
		if !l.locked[id] {
			logger.Warn("what became of a change that was cut off can't be settled as long as its paths are locked", "id", id, "err", err)
		}
		l.locked[id] = true
		return
	}
	if l.ids[id] {
		return
	}
	if l.ids == nil {
		l.ids = map[checkpoint.ID]bool{}
	}
	l.ids[id] = true
	if errors.Is(err, errOutOfReach) {
		logger.Warn("a change that was cut off half-way is left, with its checkpoint, to a start whose rules let it reach all its paths", "id", id, "err", err)
		return
	}
	logger.Error("a change that was cut off half-way could not be taken back", "id", id, "err", err)
}

func (l *leftMarks) has(id checkpoint.ID) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ids[id]
}

// cutOffError: paths of a change were left half-way by another one. It has been taken back, or is being.
type cutOffError struct{ err error }

func (e *cutOffError) Error() string { return e.err.Error() }
func (e *cutOffError) Unwrap() error { return e.err }

// cutOff finds, under the locks of a change, another one of the paths that it changes or has looked
// at, that is not over. Mostly that is nobody's any more: one that lives has its locks. Else it is
// being taken back, by somebody who waits for us, or made and about to be told.
func (e *Engine) cutOff(ctx context.Context, p *Plan, looked []string) error {
	failed := func(err error) error {
		if e.cfg.Checkpoint.OnError == "allow" { // what needs its checkpoint all the same is refused when that is saved
			e.logger.Warn("it could not be looked for changes that were cut off", "err", err)
			return nil
		}
		return notSaved(err)
	}
	ids, err := checkpoint.Marked(e.points.dir)
	if err != nil {
		return failed(err)
	}
	open, err := checkpoint.OpenTags(e.points.dir)
	if err != nil {
		return failed(err)
	}
	if len(ids)+len(open) == 0 {
		return nil
	}
	db, err := e.points.open()
	if err != nil {
		return failed(err)
	}
	half, err := e.halfOpen(ctx, db)
	if err != nil {
		return failed(err)
	}
	ids = append(ids, half...)
	ours := map[string]bool{}
	for _, p := range append(p.Paths(), looked...) {
		ours[p] = true
	}
	touches := func(c *checkpoint.Recorded) bool {
		if c.Role == checkpoint.RoleParent {
			return false
		}
		if ours[c.Path] {
			return true
		}
		for i := range p.Steps {
			if s := &p.Steps[i]; s.Action == Rename && (below(c.Path, s.Path) || s.To != "" && below(c.Path, s.To)) {
				return true
			}
		}
		if c.Role == roleTree || becameDir(c) || gaveWay(c) { // what comes into its directory stands in the way of taking it back
			for p := range ours {
				if below(p, c.Path) {
					return true
				}
			}
		}
		return false
	}
	for _, id := range ids {
		if e.left.has(id) {
			continue
		}
		op, err := db.Get(ctx, id, checkpoint.Scope{AllSessions: true})
		if errors.Is(err, checkpoint.ErrNotFound) {
			continue
		}
		if err != nil {
			return failed(err)
		}
		moves := func(c checkpoint.Recorded) bool { return c.Role == roleTree }
		if op.Outcome != checkpoint.Presumed && !slices.ContainsFunc(op.Changes, moves) {
			continue // only its mark was left
		}
		for i := range op.Changes {
			if touches(&op.Changes[i]) {
				return &cutOffError{&guardfs.ConflictError{Path: p.first(), Why: guardfs.BeingTakenBack}}
			}
		}
	}
	return nil
}

// halfOpen lists the open operations that may be half made. Of one that was made only temporary names
// are left, and one rename is made or not. Where the last one is the commit nobody says that it was
// made, until the outcome comes along with the next save: the names say it.
func (e *Engine) halfOpen(ctx context.Context, db *checkpoint.DB) (ids []checkpoint.ID, err error) {
	rows, err := db.Open(ctx)
	for i := 0; i < len(rows) && err == nil; i++ {
		p := &passage{e: e, tag: rows[i].Tag}
		err = p.decode(rows[i].Steps, &checkpoint.Checkpoint{})
		if err != nil || rows[i].Made || p.alone() {
			continue
		}
		if p.lastCommits() {
			if whole, err := p.whole(); err == nil && whole {
				continue
			}
		}
		ids = append(ids, rows[i].ID)
	}
	return ids, err
}
