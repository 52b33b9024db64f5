package engine

import (
	"errors"
	"io/fs"
	"slices"
	"syscall"

	"moltisfs/checkpoint"
	"moltisfs/internal/guardfs"
)

// halfMade is the error of a change that failed with cause and of which these paths could not be
// taken back. again says that recovery tries again.
func halfMade(cause error, left []string, id checkpoint.ID, again bool) error {
	left = slices.Clone(left)
	slices.Sort(left)
	r := &Refusal{Code: HalfMade.Code, Cause: HalfMade, Facts: HalfFacts{cause, slices.Compact(left),
		string(id), again}}
	if of := Reason(cause); of != nil {
		r.Code = of.Code
	}
	return r // its cause is no Err of it: who tells of that alone says that nothing was changed
}

// Why a checkpoint does not hold what a change leaves behind, though it holds what was there before: as long as that stands in its place, no restore
// overwrites it, because it could not be brought back.
const (
	SkippedNewTooLarge = "new_content_too_large" // above max_file_bytes
	SkippedNewExcluded = "new_content_excluded"
)

// newUnheld finds a new content that the store can't or must not hold; "" when there is none.
func (e *Engine) newUnheld(ts targets) string {
	for _, t := range ts.changing() {
		switch {
		case t.After.Kind != guardfs.KindFile || e.storable(t.True, int64(len(t.After.Content))):
		case e.excluded(t.True):
			return SkippedNewExcluded
		default:
			return SkippedNewTooLarge
		}
	}
	return ""
}

// unsaved finds a content that goes with the change and is neither in the checkpoint nor in the trash; nil when there is none.
func unsaved(changes []checkpoint.Change, skipped []checkpoint.Skip) *checkpoint.Skip {
	for i := range skipped {
		for _, c := range changes {
			if c.Path == skipped[i].Path && c.Skipped != checkpoint.SkipParked && !c.Before.Same(c.After) {
				return &skipped[i]
			}
		}
	}
	return nil
}

// dirState is what a directory looks like that is to go. It has to be known: it may have to come back.
func (e *Engine) dirState(dir string) (checkpoint.State, error) {
	gone := checkpoint.State{Kind: checkpoint.Absent}
	place, err := e.fs.PlaceLink(dir)
	if _, missing := errors.AsType[*guardfs.MissingParentError](err); missing || errors.Is(err, syscall.ENOTDIR) {
		return gone, nil
	}
	if err != nil {
		return gone, err
	}
	defer place.Close()
	if place.Object().Info.Kind != guardfs.KindDir {
		return gone, nil
	}
	m, err := place.DirMetadata()
	return checkpoint.State{Kind: checkpoint.Dir, Mode: m.Mode, UID: m.UID, GID: m.GID, Xattrs: m.Xattrs}, err
}

func change(t *Target) checkpoint.Change {
	ch := checkpoint.Change{Path: t.True, Role: "target", Before: state(t.Before)}
	if t.Before.Exists && t.Before.Info.Kind == guardfs.KindFile {
		ch.Content = t.Before.Content
		if ch.Content == nil {
			ch.Content = []byte{} // an empty file is a content
		}
		if ch.Clone = t.place.Cloner(t.Before); t.Unsaved() {
			ch.Role, ch.Clone = roleBuffer, nil
		}
	}
	switch t.After.Kind {
	case guardfs.KindFile:
		meta := t.metaAfter()
		ch.After = checkpoint.State{Kind: checkpoint.File, Mode: meta.Mode, UID: meta.UID, GID: meta.GID, Xattrs: meta.Xattrs,
			Size: int64(len(t.After.Content)), Hash: t.After.Hash}
		ch.AfterContent = t.After.Content
		if ch.AfterContent == nil {
			ch.AfterContent = []byte{}
		}
	case guardfs.KindSymlink:
		ch.After = checkpoint.State{Kind: checkpoint.Symlink, Target: t.After.Target}
	case guardfs.KindDir:
		ch.After = checkpoint.State{Kind: checkpoint.Dir, Mode: t.After.Meta.Mode, UID: t.After.Meta.UID, GID: t.After.Meta.GID}
	default:
		ch.After = checkpoint.State{Kind: checkpoint.Absent}
	}
	return ch
}

// isNew says that the system, not we, chooses the metadata.
func (t *Target) isNew() bool {
	return t.After.Kind == guardfs.KindFile && t.After.Meta == nil && !t.Before.Exists
}

// metaAfter is what the file will have. It waits for the temp file of a new one, not for its content.
func (t *Target) metaAfter() guardfs.Metadata {
	switch {
	case t.After.Meta != nil && t.place == nil:
		return t.above.Expected(*t.After.Meta)
	case t.After.Meta != nil:
		return t.place.Expected(*t.After.Meta)
	case t.isNew():
		return t.fresh
	case t.givesWay(): // nobody knows what the file had
		m, err := t.place.Fresh(0o666, false)
		if err == nil {
			return m
		}
	}
	return t.place.Expected(*metadata(state(t.Before)))
}

func state(b *guardfs.Before) checkpoint.State {
	if !b.Exists {
		return checkpoint.State{Kind: checkpoint.Absent}
	}
	s := checkpoint.State{
		Kind: checkpoint.File, Mode: b.Meta.Mode, UID: b.Meta.UID, GID: b.Meta.GID, ModTime: b.Meta.ModTime,
		Xattrs: b.Meta.Xattrs, Size: b.Info.Size, Hash: b.Hash,
	}
	switch b.Info.Kind {
	case guardfs.KindSymlink:
		s.Kind, s.Target, s.Hash, s.Size = checkpoint.Symlink, string(b.Content), "", 0
	case guardfs.KindDir:
		s.Kind, s.Hash, s.Size = checkpoint.Dir, "", 0
	}
	return s
}

// metadata is what a restored file gets. Not its old time: to builds and editors the restore is a change like any other.
func metadata(s checkpoint.State) *guardfs.Metadata {
	return &guardfs.Metadata{Mode: s.Mode & (fs.ModePerm | fs.ModeSticky), UID: s.UID, GID: s.GID, Xattrs: s.Xattrs}
}

// announced is what the target is to become.
func (t *Target) announced() checkpoint.State {
	switch t.After.Kind {
	case guardfs.KindFile:
		return checkpoint.State{Kind: checkpoint.File, Hash: t.After.Hash}
	case guardfs.KindSymlink:
		return checkpoint.State{Kind: checkpoint.Symlink, Target: t.After.Target}
	case guardfs.KindDir:
		return checkpoint.State{Kind: checkpoint.Dir}
	}
	return checkpoint.State{Kind: checkpoint.Absent}
}
