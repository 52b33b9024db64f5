package engine

import (
	"moltisfs/internal/guardfs"
)

// A restore may put a file or link in the place of a directory, which gives way, or a directory in
// the place of a file or link.

// givesWay says that a directory is there, and a file or link takes its place.
func (t *Target) givesWay() bool {
	return t.Before.Exists && t.Before.Info.Kind == guardfs.KindDir &&
		(t.After.Kind == guardfs.KindFile || t.After.Kind == guardfs.KindSymlink)
}

// becomesDir says that a file or link is there, and a directory takes its place.
func (t *Target) becomesDir() bool {
	return t.Before.Exists && t.Before.Info.Kind != guardfs.KindDir && t.After.Kind == guardfs.KindDir
}

// dirBefore is the directory at a place as what was there before.
func dirBefore(p *guardfs.Place) (*guardfs.Before, error) {
	meta, err := p.DirMetadata()
	if err != nil {
		return nil, err
	}
	i := p.Object().Info
	meta.ModTime = i.ModTime
	return &guardfs.Before{Exists: true, Info: i, Meta: meta}, nil
}

// isLink says that a link is at that very path.
func (e *Engine) isLink(p string) bool {
	place, err := e.fs.PlaceLink(p)
	if err != nil {
		return false
	}
	defer place.Close()
	return place.Object().True == p && place.Object().Info.Kind == guardfs.KindSymlink
}

// newDir is the directory that takes the place of a file.
func (t *Target) newDir() Step {
	if t.After.Meta == nil || t.After.Meta.Mode.Perm() == 0 {
		return mkdir(t.True, 0o700)
	}
	return mkdirAs(t.True, metaState(*t.After.Meta))
}
