package policy

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
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
