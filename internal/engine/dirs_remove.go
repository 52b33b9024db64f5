package engine

import (
	"context"
	"errors"
	"syscall"
	"time"

	"moltisfs/internal/guardfs"
)

// unopened is the mode of a directory of which nobody knows what it had.
const unopened = 0o700

// errNotOurs: another thing is at the path.
var errNotOurs = errors.New("another thing is in its place")

// inUse says that a directory can't be removed because something is in it.
func inUse(err error) bool {
	return errors.Is(err, syscall.ENOTEMPTY) || errors.Is(err, syscall.EEXIST)
}

// removeEmpty removes a directory if it is empty. Unless lasting is "", it must be that object. A
// directory that is gone is no error.
func (e *Engine) removeEmpty(dir, lasting string) error {
	for try := 0; ; try++ {
		place, err := e.fs.PlaceLink(dir)
		if _, ok := errors.AsType[*guardfs.MissingParentError](err); ok ||
			errors.Is(err, syscall.ENOTDIR) {
			return nil
		}
		if errors.Is(err, guardfs.ErrUnavailable) && try == 0 { // another worker may be there by now
			continue
		}
		if err != nil {
			return err
		}
		o := place.Object()
		switch {
		case o.True != dir:
			err = errNotOurs
		case o.Info.Kind == guardfs.KindAbsent:
			place.Close()
			return nil
		case o.Info.Kind != guardfs.KindDir || lasting != "" && o.Info.ID.Lasting() != lasting:
			err = errNotOurs
		default:
			if err = place.RemoveEmptyDir(context.Background()); err == nil {
				if err := place.SyncNames(); err != nil {
					e.logger.Warn("the removal of a directory could not be synced", "path", dir, "err", err)
				}
			}
		}
		place.Close()
		if err == nil || errors.Is(err, errNotOurs) || inUse(err) || try > 0 {
			return err
		}
		// It may be gone all the same: some file systems report failures of calls that took effect.
	}
}

// drop removes directories that are empty, innermost first, and lists those that stay.
func (e *Engine) drop(dirs []string) (kept []Blocked) {
	for _, d := range dirs {
		err := e.removeEmpty(d, "")
		switch {
		case err == nil:
		case inUse(err):
			kept = append(kept, Blocked{Path: d, Why: InUse, Err: err})
		default:
			e.logger.Warn("a directory could not be removed", "path", d, "err", err)
			kept = append(kept, Blocked{Path: d, Why: NotRemoved.Of(said(err)), Err: err})
		}
	}
	return kept
}

// said is the error of the system.
func said(err error) error {
	if pe, ok := errors.AsType[*guardfs.PathError](err); ok {
		return pe.Err
	}
	return err
}

// clockTick is how far the times of two file systems may disagree.
const clockTick = 10 * time.Millisecond
