package engine

import (
	"errors"
	"io/fs"
	"path"
	"slices"

	"moltisfs/internal/guardfs"
)

// Nearby is the deepest directory on the way to a path that exists and that
// the session may list, and what it may see there.
type Nearby struct {
	Dir   string   // canonical; "" when the session may list none
	Depth int      // how many components of the path are missing above its last one
	Names []string // sorted
}

// maxNearby bounds how many names are looked at for a hint.
const maxNearby = 10_000

// Near finds the surroundings of a path that names nothing. It goes through
// the same doors as a listing, so that a hint tells nothing that Glob would
// not.
func (e *Engine) Near(c *Call, p string) Nearby {
	e, err := e.begun(c)
	if err != nil {
		return Nearby{}
	}
	dir := path.Dir(path.Clean(p))
	for depth := 0; ; depth++ {
		if n, ok := e.list(dir); ok {
			n.Depth = depth
			return n
		}
		if dir == "/" || dir == "." {
			return Nearby{}
		}
		dir = path.Dir(dir)
	}
}

func (e *Engine) list(dir string) (Nearby, bool) {
	h, err := e.fs.Resolve(dir, guardfs.Walk)
	if err != nil {
		return Nearby{}, false
	}
	defer h.Close()
	d, err := h.Dir()
	if err != nil {
		return Nearby{}, false
	}
	defer d.Close()
	entries, _, err := d.List(nil)
	if err != nil {
		return Nearby{}, false
	}
	if len(entries) == 0 && e.judge.Judge(h.Object(), guardfs.Look) != nil {
		// It may lead to something allowed, and shows nothing that is. So nobody is told that it exists.
		return Nearby{}, false
	}
	n := Nearby{Dir: d.True()}
	for _, entry := range entries[:min(len(entries), maxNearby)] {
		name := entry.Name
		if entry.Kind == guardfs.KindDir {
			name += "/"
		}
		n.Names = append(n.Names, name)
	}
	slices.Sort(n.Names)
	return n, true
}

// There looks at what p leads to, if that is a file that the session may read or a directory that it
// may list.
func (e *Engine) There(c *Call, p string) (o guardfs.Object, ok bool) {
	e, err := e.begun(c)
	if err != nil {
		return o, false
	}
	if n, ok := e.list(p); ok {
		return guardfs.Object{Spelled: p, True: n.Dir, Info: guardfs.Info{Kind: guardfs.KindDir}}, true
	}
	h, err := e.fs.Resolve(p, guardfs.Read)
	if err != nil {
		return o, false
	}
	defer h.Close() //nolint:errcheck // nothing was written through it
	return h.Object(), h.Object().Info.Kind == guardfs.KindFile
}

// Real is the canonical name of a regular file or directory that the session
// may read, or of one that it may make.
func (e *Engine) Real(c *Call, p string) (string, error) {
	e, err := e.begun(c)
	if err != nil {
		return "", err
	}
	h, err := e.fs.Resolve(p, guardfs.Read)
	if errors.Is(err, fs.ErrNotExist) {
		place, perr := e.fs.Place(p)
		if perr != nil {
			return "", err
		}
		defer place.Close()
		return place.Object().True, nil
	}
	if err != nil {
		return "", err
	}
	defer h.Close()
	return h.Object().True, nil
}
