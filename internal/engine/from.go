package engine

import (
	"fmt"

	"moltisfs/checkpoint"
	"moltisfs/internal/guardfs"
)

// A From is where the content of a file comes from that is not held in memory: the first bytes of
// another file, which has to stay as it was when it was looked at.
type From struct {
	path string // canonical
	info guardfs.Info
	size int64
}

// String tells two of them apart, for the digest of a plan.
func (f *From) String() string {
	return fmt.Sprint(f.path, " ", f.info.ID.Lasting(), f.info.Size, f.info.ModTime.UnixNano(),
		f.info.ChangeTime.UnixNano(), f.size)
}

// size is how long the content is.
func (a *After) size() int64 {
	if a.From != nil {
		return a.From.size
	}
	return int64(len(a.Content))
}

// source opens what a content comes from. It is no other file by now, nor changed.
func (e *Engine) source(f *From) (*guardfs.File, error) {
	file, err := e.openSame(f.path, f.info.ID)
	if err != nil {
		return nil, err
	}
	now := file.Info()
	if now.Size != f.info.Size || !now.ModTime.Equal(f.info.ModTime) ||
		!now.ChangeTime.Equal(f.info.ChangeTime) {
		file.Close() //nolint:errcheck // nothing was written through it
		return nil, &guardfs.ConflictError{Path: f.path, Why: guardfs.ContentChanged}
	}
	return file, nil
}

// sumOf is stateOf of a file of any size, which is read for its hash.
func (e *Engine) sumOf(path string) (checkpoint.State, error) {
	place, err := e.fs.PlaceLink(path)
	if err != nil {
		return checkpoint.State{}, err
	}
	defer place.Close() //nolint:errcheck // nothing was written through it
	b, err := place.Sum()
	if err != nil {
		return checkpoint.State{}, err
	}
	return state(b), nil
}
