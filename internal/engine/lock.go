package engine

import (
	"context"
	"errors"
	"maps"
	"path"
	"slices"
	"time"

	"moltisfs/internal/guardfs"
)

// lock takes the locks of some places for one change. Who waits longer than lockWait behind a process that does not let go is told who it
// is, and changes nothing. holder is what others are told of us meanwhile: the tool, never whose session.
func (e *Engine) lock(ctx context.Context, holder string, keys []string) (unlock func(), err error) {
	return e.lockFor(ctx, holder, keys, e.lockWait)
}

// lockTry is how long at least it is waited for a lock: those of calls that are about to end.
const lockTry = 20 * time.Millisecond

func (e *Engine) lockFor(ctx context.Context, holder string, keys []string, wait time.Duration) (unlock func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	unlock, err = e.locks.For(holder).Lock(ctx, keys...)
	if _, locked := errors.AsType[*guardfs.LockedError](err); err != nil && !locked { // nothing of the agent's: its words would be taken for an answer about its files
		err = &hostError{"locking what the call changes, in the data directory", err}
	}
	return unlock, err
}

// lockPlaces takes the locks of all that a change touches. What is not there yet is locked by its name too, with every directory above it that is missing: a place
// of its own it gets once that is made. Where somebody else has made it by the time that the lock is ours, that place is locked as well.
func (e *Engine) lockPlaces(ctx context.Context, c *Call, ts targets, m *Mutation) (unlock func(), err error) {
	const rounds = 16 // as often as directories may come and go under us
	for range rounds {
		keys, _ := e.lockKeys(ts, m)
		unlock, err := e.lock(ctx, c.Tool, keys)
		if err != nil {
			return nil, err
		}
		found, err := e.reopen(ts, m)
		if err == nil && !found {
			found, err = e.reopenMoves(m)
		}
		if err == nil && !found {
			return unlock, nil
		}
		unlock()
		if err != nil {
			return nil, err
		}
	}
	return nil, &guardfs.ConflictError{Path: m.steps(ts, nil).first(), Why: "its directory is being made and removed in turns"}
}

// reopen looks again for the directories that were missing when the targets were loaded. What it finds is not looked at yet. It has to be where it was
// foretold and asked for: a link that was put in the way meanwhile leads elsewhere.
func (e *Engine) reopen(ts targets, m *Mutation) (found bool, err error) {
	for _, t := range ts {
		if t.place != nil {
			continue
		}
		place, err := e.place(m, t.Path)
		if _, missing := errors.AsType[*guardfs.MissingParentError](err); missing || m.nowhere(t.Path, err) {
			continue
		}
		if err != nil {
			return false, err
		}
		if o := place.Object(); o.True != t.True {
			place.Close()
			return false, &guardfs.ConflictError{Path: t.True, Why: "a link was put in its way, which leads to " + o.True}
		}
		t.place, found = place, true
	}
	return found, nil
}

// lockKeys are those of all that a change touches, as far as it is known. tops are the directories that it has to make in ones that exist.
func (e *Engine) lockKeys(ts targets, m *Mutation) (keys, tops []string) {
	names, tops := e.nameKeys(ts, m)
	return append(ts.keys(), append(m.keys(), names...)...), tops
}

// keys are the lock keys of the targets whose directory is there.
func (ts targets) keys() []string {
	var out []string
	for _, t := range ts {
		if t.place == nil {
			continue
		}
		if out = append(out, t.place.LockKey()); !t.Before.Exists {
			out = append(out, guardfs.NameKey(t.True))
		}
	}
	return out
}

func (m *Mutation) keys() (out []string) {
	for _, mv := range m.Moves {
		if mv.place != nil {
			out = append(out, mv.place.LockKey())
		}
		if mv.place != nil && mv.Back {
			out = append(out, guardfs.NameKey(mv.Path))
		}
	}
	return out
}

// nameKeys are the lock keys of what has no place yet, of the missing directories above it, and of the directories that come and go.
func (e *Engine) nameKeys(ts targets, m *Mutation) (keys, tops []string) {
	seen, topmost := map[string]bool{}, map[string]bool{}
	add := func(name string) bool {
		if seen[name] {
			return false
		}
		seen[name] = true
		keys = append(keys, guardfs.NameKey(name))
		return true
	}
	missing := func(p string) {
		if top := e.eachName(p, add); top != "" {
			topmost[top] = true
		}
	}
	// Where directories come and go, others may find nothing: they lock the names then.
	under := func(p string) {
		for top := m.swapAbove(p); top != "" && p != top; p = path.Dir(p) {
			add(p)
		}
	}
	for _, t := range ts {
		if t.place == nil {
			missing(t.Path)
		}
		under(t.Path)
	}
	for _, s := range m.Swaps {
		add(s)
	}
	for _, mv := range m.Moves {
		if mv.place == nil {
			missing(mv.Path)
		}
	}
	for _, d := range m.Dirs {
		missing(d.Path)
		under(d.Path)
	}
	for _, d := range m.Drop {
		add(d)
	}
	return keys, slices.Collect(maps.Keys(topmost))
}

// eachName hands over the true name of path, and those of the missing directories above it, until add has had enough. topmost of these is what has to be made first;
// "" when that can't be told.
func (e *Engine) eachName(p string, add func(name string) (more bool)) (topmost string) {
	place, err := e.fs.PlaceLink(p)
	if err == nil {
		defer place.Close()
		topmost = place.Object().True
		add(topmost)
	}
	if gone, ok := errors.AsType[*guardfs.MissingParentError](err); ok {
		topmost = gone.Missing
		for name := gone.True; add(name) && name != gone.Missing && len(name) > len(gone.Missing); name = path.Dir(name) {
		}
	} // any other error is met again, and said, by whoever is to make it
	return topmost
}
