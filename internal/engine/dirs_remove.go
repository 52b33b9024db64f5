package engine

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"syscall"
	"time"

	"moltisfs/checkpoint"
	"moltisfs/internal/guardfs"
)

// ownDir is a directory that a change made: this object, whatever is at its path by now.
type ownDir struct{ path, lasting string }

// unopened is the mode of a directory of which nobody knows what it had.
const unopened = 0o700

// removeOwn removes directories that are given outermost first, where they are what was made and nothing is in them.
func (e *Engine) removeOwn(dirs []ownDir) error {
	var errs []error
	for i := len(dirs) - 1; i >= 0; i-- {
		err := e.removeEmpty(dirs[i].path, dirs[i].lasting)
		if err != nil && !errors.Is(err, errNotOurs) && !inUse(err) {
			errs = append(errs, fmt.Errorf("removing %s, which was made for nothing: %w", dirs[i].path, err))
		}
	}
	return errors.Join(errs...)
}

// errNotOurs: another thing is at the path.
var errNotOurs = errors.New("another thing is in its place")

// inUse says that a directory can't be removed because something is in it.
func inUse(err error) bool {
	return errors.Is(err, syscall.ENOTEMPTY) || errors.Is(err, syscall.EEXIST)
}

// removeEmpty removes a directory if it is empty, and, unless lasting is "", only that one. It being gone is no error.
func (e *Engine) removeEmpty(dir, lasting string) error {
	for try := 0; ; try++ {
		place, err := e.fs.PlaceLink(dir)
		if _, ok := errors.AsType[*guardfs.MissingParentError](err); ok || errors.Is(err, syscall.ENOTDIR) {
			return nil
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
			if err = place.RemoveEmptyDir(context.Background()); err == nil && e.sync() {
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

// drop removes what is empty of directories that are given innermost first, and lists those that stay.
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

// said is what the system said.
func said(err error) error {
	if pe, ok := errors.AsType[*guardfs.PathError](err); ok {
		return pe.Err
	}
	return err
}

// bornWithin is how long after the last note the directory that was being made when its process died may have been made. Only the one
// that was begun and of which nobody could note what came of it is measured by that, and not where a file waits for its place.
const (
	bornWithin = 2 * time.Second
	clockTick  = 10 * time.Millisecond // by which the times of two file systems may disagree
)

// ownDirs finds, outermost first, what a change that was cut off has made of its directories and is still there.
func (e *Engine) ownDirs(op *checkpoint.Checkpoint, notes map[string]string, last time.Time) (own []ownDir) {
	for _, c := range op.Changes {
		if c.Role == roleTree || c.Before.Kind == checkpoint.Dir || c.After.Kind != checkpoint.Dir {
			continue
		}
		lasting, begun := notes[c.Path]
		if lasting == "" {
			// Without any note the system itself may have gone down, and the notes with it.
			if !begun && len(notes) > 0 {
				continue
			}
			within := bornWithin
			if begun && slices.ContainsFunc(op.Changes, func(t checkpoint.Recorded) bool { return becameDir(&t) && (t.Path == c.Path || below(c.Path, t.Path)) }) {
				within = math.MaxInt64 // an empty directory, whoever made it since, does not keep the file away whose place it has
			}
			if lasting = e.bornThen(c.Path, c.After.UID, last, within); lasting == "" {
				continue
			}
		}
		own = append(own, ownDir{c.Path, lasting})
	}
	return own
}

// bornThen is the directory at path if it is that user's and was made so soon after since; "" when it is not.
func (e *Engine) bornThen(path string, uid uint32, since time.Time, within time.Duration) string {
	place, err := e.fs.PlaceLink(path)
	if err != nil {
		return ""
	}
	defer place.Close()
	o := place.Object()
	if o.True != path || o.Info.Kind != guardfs.KindDir || o.Info.UID != uid {
		return ""
	}
	born := o.Info.ChangeTime // which also moves when something is put into it
	if o.Info.ID.Birth != 0 {
		born = time.Unix(0, o.Info.ID.Birth)
	}
	if born.Before(since.Add(-clockTick)) || born.Sub(since) > within {
		return ""
	}
	return o.Info.ID.Lasting()
}
