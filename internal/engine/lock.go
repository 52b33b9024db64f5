package engine

import (
	"context"
	"errors"
	"path"
	"time"

	"moltisfs/internal/guardfs"
)

// lock takes the locks of some places for one change. A caller who waits longer than lockWait is
// told who has them, and changes nothing. holder is what others are told of us: the tool, never
// whose session.
func (e *Engine) lock(ctx context.Context, holder string,
	keys []string) (unlock func(), err error) {
	return e.lockFor(ctx, holder, keys, e.lockWait)
}

// lockTry is how long at least it is waited for a lock: those of calls that are about to end.
const lockTry = 20 * time.Millisecond

func (e *Engine) lockFor(ctx context.Context, holder string, keys []string,
	wait time.Duration) (unlock func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	unlock, err = e.locks.For(holder).Lock(ctx, keys...)
	// Not the agent's fault: the words of this error would read as an answer about its files.
	if _, locked := errors.AsType[*guardfs.LockedError](err); err != nil && !locked {
		err = &hostError{"locking what the call changes, in the data directory", err}
	}
	return unlock, err
}

// eachName hands over the canonical path, then those of the missing directories above it, until add
// returns false.
func (e *Engine) eachName(p string, add func(name string) (more bool)) {
	place, err := e.fs.PlaceLink(p)
	if err == nil {
		defer place.Close()
		add(place.Object().True)
	}
	if gone, ok := errors.AsType[*guardfs.MissingParentError](err); ok {
		more := func(name string) bool { return name != gone.Missing && len(name) > len(gone.Missing) }
		for name := gone.True; add(name) && more(name); name = path.Dir(name) {
		}
	} // any other error is met again, and said, by whoever is to make it
}
