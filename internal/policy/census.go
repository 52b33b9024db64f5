package policy

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"

	"moltisfs/internal/guardfs"
)

// AllowAll is the guardfs.Judge that allows everything. It is for the looks that a Policy itself
// needs, and never for what an agent asks.
type AllowAll struct{}

var _ guardfs.Judge = AllowAll{}

// Judge allows.
func (AllowAll) Judge(guardfs.Object, guardfs.Access) error { return nil }

// Dir shows every entry but the trash.
func (AllowAll) Dir(string, ...string) guardfs.DirVerdict {
	return guardfs.DirVerdict{
		Entry: func(name string, _ guardfs.Kind) bool { return !guardfs.IsTrash(name) },
	}
}

// Identify makes Options.Identify of an FS, which must have been opened with AllowAll.
func Identify(f *guardfs.FS) func(path string) (guardfs.Identity, bool) {
	return func(path string) (guardfs.Identity, bool) {
		h, err := f.Resolve(path, guardfs.Look)
		if err != nil {
			return guardfs.Identity{}, false
		}
		defer h.Close() //nolint:errcheck // nothing was written through it
		info := h.Object().Info
		return info.ID, info.Kind != guardfs.KindAbsent
	}
}

type visitor = func(path string, k guardfs.Kind, id guardfs.Identity) error

// maxDepth is how many directories a census has open at once. In a deeper tree the census fails.
const maxDepth = 200

var errTooDeep = errors.New("directories too deep to count")

// Census makes Options.Census of an FS, which must have been opened with AllowAll.
func Census(f *guardfs.FS) func(root string, visit visitor) error {
	return func(root string, visit visitor) error {
		h, err := f.Resolve(root, guardfs.Look)
		if vanished(err) || errors.Is(err, guardfs.ErrPseudo) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("finding %s: %w", root, err)
		}
		defer h.Close() //nolint:errcheck // nothing was written through it
		info := h.Object().Info
		switch err := visit(root, info.Kind, info.ID); {
		case err == fs.SkipDir, err == nil && info.Kind != guardfs.KindDir:
			return nil
		case err != nil:
			return err
		}
		d, err := h.Dir()
		if vanished(err) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("opening %s: %w", root, err)
		}
		defer d.Close() //nolint:errcheck // nothing was written through it
		return census(d, strings.TrimSuffix(root, "/"), 0, visit)
	}
}

// census visits what is below d, whose path is dir ("" for the root).
func census(d *guardfs.Dir, dir string, depth int, visit visitor) error {
	if depth > maxDepth {
		return fmt.Errorf("%s: %w", dir, errTooDeep)
	}
	entries, _, err := d.List(nil)
	if err != nil {
		return fmt.Errorf("listing %s: %w", dir, err)
	}
	for _, e := range entries {
		if e.Kind == guardfs.KindSymlink || e.Kind == guardfs.KindOther {
			continue // nobody can read bytes of another file through them
		}
		path := dir + "/" + e.Name
		// The inode number in the entry is not enough: at a mount it is that of the directory
		// which the mount hides.
		info, err := d.Stat(e.Name)
		if vanished(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("looking at %s: %w", path, err)
		}
		switch err := visit(path, info.Kind, info.ID); {
		case err == fs.SkipDir, err == nil && info.Kind != guardfs.KindDir:
			continue
		case err != nil:
			return err
		}
		sub, err := d.OpenDir(e.Name, true)
		if vanished(err) || errors.Is(err, guardfs.ErrPseudo) {
			continue
		}
		if err != nil {
			return fmt.Errorf("opening %s: %w", path, err)
		}
		err = census(sub, path, depth+1, visit)
		sub.Close() //nolint:errcheck // nothing was written through it
		if err != nil {
			return err
		}
	}
	return nil
}

// vanished reports whether err says that an entry listed a moment ago is gone or replaced. The next census
// finds it where it was moved to.
func vanished(err error) bool {
	return errors.Is(err, fs.ErrNotExist) ||
		errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.ELOOP)
}
