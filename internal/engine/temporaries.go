package engine

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"moltisfs/internal/guardfs"
)

// temporariesName is where in the data directory the record is of names that are given beside the
// agent's files for a moment.
const temporariesName = "temporaries"

// sweepDead removes what killed processes have left beside files, as their records say. Where
// policy does not let us look, or something goes wrong, the record stays for another start.
func (e *Engine) sweepDead(ctx context.Context) {
	err := e.temps.Dead(func(tag string, paths []string) (done bool) {
		// Now that it is known to be dead all that it saved is there. What is open, or can't be read,
		// keeps its holds and its record.
		open, err := e.allOpen(ctx)
		if err != nil {
			e.logger.Warn("interrupted changes could not be looked for", "err", err)
			return false
		}
		over := func(operation string) bool {
			return !slices.ContainsFunc(open, func(o openOp) bool { return o.row.Tag == operation }) &&
				e.dead(ctx, operation)
		}
		done = !slices.ContainsFunc(open, func(o openOp) bool {
			return o.steps == nil || o.steps.process == tag
		})
		for _, name := range paths {
			tree := e.fs
			if inTrash(name) {
				tree = e.trash
			}
			place, err := tree.PlaceLink(name)
			if _, gone := errors.AsType[*guardfs.MissingParentError](err); gone ||
				errors.Is(err, syscall.ENOTDIR) {
				continue
			}
			if err == nil {
				var left bool
				left, err = place.Sweep(tag, over)
				done = done && !left
				place.Close() //nolint:errcheck // nothing was written through it
			}
			if err != nil {
				if done = false; errors.Is(err, guardfs.ErrUnavailable) {
					e.temps.Stays()
				}
				e.logger.Info("what a killed process left is left to another start", "beside", name, "err", err)
			}
		}
		return done
	})
	if err != nil {
		e.logger.Warn("what killed processes have left could not be looked for", "err", err)
	}
}

// keptOnly lets us look at the names under which something is kept beside a file, and at nothing else.
type keptOnly struct{}

func (keptOnly) Judge(o guardfs.Object, _ guardfs.Access) error {
	if guardfs.IsKept(path.Base(o.True)) {
		return nil
	}
	return fs.ErrPermission
}

func (keptOnly) Dir(string, ...string) guardfs.DirVerdict { return guardfs.DirVerdict{} }

// KeptFile is a file that could not be put back at Of and is at Path.
type KeptFile = guardfs.KeptFile

// Kept lists the files that could not be put back in their places, are kept beside them, and still are there.
// With remove it is removed for good. For an operator: nobody is asked, and no policy. at is where it is kept.
func Kept(ctx context.Context, dataDir string, at Place, remove bool) ([]guardfs.KeptFile, error) {
	tree, err := guardfs.New(guardfs.Options{Judge: keptOnly{}, Calls: at.Calls})
	if err != nil {
		return nil, err
	}
	defer tree.Close() //nolint:errcheck // nothing was written through it
	var errs []error
	record := guardfs.OpenTemporaries(filepath.Join(dataDir, temporariesName))
	kept, err := record.Kept(func(k guardfs.KeptFile) bool {
		place, err := tree.PlaceLink(k.Path)
		if _, gone := errors.AsType[*guardfs.MissingParentError](err); gone {
			return false
		}
		if err != nil {
			return true // it can't be looked at: that is no reason to forget it
		}
		defer place.Close() //nolint:errcheck // nothing was written through it
		i := place.Object().Info
		if remove && i.Kind != guardfs.KindAbsent {
			errs = append(errs, place.RemoveTree(ctx, i.ID.Lasting()))
		}
		return i.Kind != guardfs.KindAbsent
	})
	return kept, errors.Join(append(errs, err)...)
}

// inTrash says that a path is in a trash directory.
func inTrash(name string) bool {
	for part := range strings.SplitSeq(name, "/") {
		if guardfs.IsTrash(part) {
			return true
		}
	}
	return false
}
