package policy

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"moltisfs/internal/guardfs"
)

// inode is an identity that two paths can share. The birth time is left out, because not every call
// tells it. A reused inode number may then be taken for the one before; that only denies more.
type inode struct{ dev, ino uint64 }

// ruleInodes are the objects that rules name literally, by identity. A bind mount, or an alias that
// no folding foresees, shows the same object.
type ruleInodes struct {
	paths    []string
	ranks    []rank
	identify func(string) (guardfs.Identity, bool)
	now      func() time.Time

	mu       sync.Mutex
	snapshot atomic.Pointer[inodeSnapshot]
}

type inodeSnapshot struct {
	at  time.Time
	ids map[inode]rank
}

// inodesTTL is how long a look at the literal paths is good for. A file that appears at a denied
// path meanwhile is recognised by its names only.
const inodesTTL = time.Second

func (h *ruleInodes) add(path string, r rank) {
	h.paths, h.ranks = append(h.paths, path), append(h.ranks, r)
}

func (h *ruleInodes) rank(id guardfs.Identity) rank {
	if h.identify == nil || len(h.paths) == 0 {
		return none
	}
	s := h.snapshot.Load()
	if now := h.now(); s == nil || now.Sub(s.at) > inodesTTL || now.Before(s.at) {
		h.mu.Lock()
		if s = h.snapshot.Load(); s == nil || now.Sub(s.at) > inodesTTL || now.Before(s.at) {
			s = &inodeSnapshot{at: now, ids: make(map[inode]rank, len(h.paths))}
			for i, p := range h.paths {
				if id, ok := h.identify(p); ok {
					k := inode{id.Dev, id.Ino}
					s.ids[k] = max(s.ids[k], h.ranks[i])
				}
			}
			h.snapshot.Store(s)
		}
		h.mu.Unlock()
	}
	return s.ids[inode{id.Dev, id.Ino}]
}

// hardLinks knows the identities of all files in the denied and protected trees. A file with
// several names is refused when one of them is there. The trees are walked when this is first
// needed, and again when the result may be too old.
type hardLinks struct {
	census func(string, func(string, guardfs.Kind, guardfs.Identity) error) error
	budget int
	failed func(error)
	now    func() time.Time

	mu    sync.Mutex
	known *deniedInodes
}

type deniedInodes struct {
	of    *denials
	begun time.Time
	ids   map[inode]struct{}
	err   error
}

const (
	// Making a link changes the file's ctime, so a census that began later has seen the link. The
	// clocks of file systems are coarse, hence the margin.
	clockMargin = 2 * time.Second
	// Moving a whole directory into a denied tree changes no file's ctime. That is noticed after
	// this time.
	deniedTTL = time.Minute
	// It takes about a second to visit so many.
	defaultBudget = 200_000
)

var errBudget = errors.New("too many files to count")

// hardLinkDenied tells why a file with several hard links is refused. It gives "" when it is not.
func (p *Policy) hardLinkDenied(d *denials, i *guardfs.Info) string {
	l := &p.hardLinks
	if len(d.censusRoots) == 0 {
		return ""
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	c := l.known
	if c == nil || c.of != d || now.Sub(c.begun) > deniedTTL || now.Before(c.begun) ||
		c.err == nil && !c.begun.After(i.ChangeTime.Add(clockMargin)) {
		c = p.collectDenied(d, now)
		l.known = c
	}
	if c.err != nil {
		const why = "it has %d hard links, and whether one of them is denied can't be told"
		return fmt.Sprintf(why, i.Links)
	}
	if _, hit := c.ids[inode{i.ID.Dev, i.ID.Ino}]; hit {
		return "another hard link of it is denied"
	}
	return ""
}

func (p *Policy) collectDenied(d *denials, now time.Time) *deniedInodes {
	l := &p.hardLinks
	c := &deniedInodes{of: d, begun: now, ids: map[inode]struct{}{}}
	if l.census == nil {
		c.err = errors.New("no way to look for hard links")
		return c
	}
	left := l.budget
	if left == 0 {
		left = defaultBudget
	}
	for _, root := range d.censusRoots {
		err := l.census(root, func(path string, k guardfs.Kind, id guardfs.Identity) error {
			if left--; left < 0 {
				return errBudget
			}
			refused := d.refuses(path) != none
			switch {
			case k == guardfs.KindDir && !refused && !d.mayCoverBelow(path):
				return fs.SkipDir
			case k == guardfs.KindFile && refused:
				c.ids[inode{id.Dev, id.Ino}] = struct{}{}
			}
			return nil
		})
		if err != nil {
			c.err, c.ids = fmt.Errorf("counting the hard links below %s: %w", root, err), nil
			if l.failed != nil {
				l.failed(c.err)
			}
			return c
		}
	}
	return c
}

// outermost sorts paths and drops those below another.
func outermost(paths []string) []string {
	paths = slices.Clone(paths)
	slices.Sort(paths)
	var out []string
	for _, p := range paths {
		inside := slices.ContainsFunc(out, func(o string) bool {
			return p == o || o == "/" || strings.HasPrefix(p, o+"/")
		})
		if !inside {
			out = append(out, p)
		}
	}
	return out
}

// AllowAll is the guardfs.Judge that allows everything. It is for the looks that a Policy itself
// needs, and never for a call of an agent.
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
