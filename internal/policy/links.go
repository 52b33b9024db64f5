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

// inode is an identity as two paths can share it. Birth is left out: not every call tells it, and to take a
// reused inode for its predecessor only denies more.
type inode struct{ dev, ino uint64 }

// held is what rules name literally, by identity: a bind mount or an alias that no folding foresees shows the same object.
type held struct {
	paths    []string
	ranks    []rank
	identify func(string) (guardfs.Identity, bool)
	now      func() time.Time

	mu   sync.Mutex
	seen atomic.Pointer[sightings]
}

type sightings struct {
	at  time.Time
	ids map[inode]rank
}

// heldFor is how long a look at the literal paths is good for. A file that comes to a denied name in that time is
// found by its names only.
const heldFor = time.Second

func (h *held) add(path string, r rank) {
	h.paths, h.ranks = append(h.paths, path), append(h.ranks, r)
}

func (h *held) rank(id guardfs.Identity) rank {
	if h.identify == nil || len(h.paths) == 0 {
		return none
	}
	s := h.seen.Load()
	if now := h.now(); s == nil || now.Sub(s.at) > heldFor || now.Before(s.at) {
		h.mu.Lock()
		if s = h.seen.Load(); s == nil || now.Sub(s.at) > heldFor || now.Before(s.at) {
			s = &sightings{at: now, ids: make(map[inode]rank, len(h.paths))}
			for i, p := range h.paths {
				if id, ok := h.identify(p); ok {
					k := inode{id.Dev, id.Ino}
					s.ids[k] = max(s.ids[k], h.ranks[i])
				}
			}
			h.seen.Store(s)
		}
		h.mu.Unlock()
	}
	return s.ids[inode{id.Dev, id.Ino}]
}

// links knows the identities of all files in the denied and protected trees, so that a file with several names can be refused
// when one of them is denied. It counts them when first asked, and again when what it knows may be too old.
type links struct {
	census  func(string, func(string, guardfs.Kind, guardfs.Identity) error) error
	budget  int
	trouble func(error)
	now     func() time.Time

	mu     sync.Mutex
	counts *counts
}

type counts struct {
	of    *denials
	begun time.Time
	ids   map[inode]struct{}
	err   error
}

const (
	// To make a link changes the file's ctime, so a count that began later has seen the link. Clocks of file systems are
	// coarse, hence the margin.
	coarse = 2 * time.Second
	// To move a whole directory into a denied tree changes no file's ctime; after this time that is noticed too.
	countFor = time.Minute
	// The usual budget is walked in about a second.
	defaultBudget = 200_000
)

var errBudget = errors.New("too many files to count")

// linked tells why a file with several hard links is refused, "" when it is not.
func (p *Policy) linked(d *denials, i *guardfs.Info) string {
	l := &p.links
	if len(d.roots) == 0 {
		return ""
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	c := l.counts
	if c == nil || c.of != d || now.Sub(c.begun) > countFor || now.Before(c.begun) ||
		c.err == nil && !c.begun.After(i.ChangeTime.Add(coarse)) {
		c = p.count(d, now)
		l.counts = c
	}
	if c.err != nil {
		return fmt.Sprintf("it has %d hard links, and whether one of them is denied can't be told", i.Links)
	}
	if _, hit := c.ids[inode{i.ID.Dev, i.ID.Ino}]; hit {
		return "another hard link of it is denied"
	}
	return ""
}

func (p *Policy) count(d *denials, now time.Time) *counts {
	l := &p.links
	c := &counts{of: d, begun: now, ids: map[inode]struct{}{}}
	if l.census == nil {
		c.err = errors.New("no way to look for hard links")
		return c
	}
	left := l.budget
	if left == 0 {
		left = defaultBudget
	}
	for _, root := range d.roots {
		err := l.census(root, func(path string, k guardfs.Kind, id guardfs.Identity) error {
			if left--; left < 0 {
				return errBudget
			}
			refused := d.refuses(path) != none
			switch {
			case k == guardfs.KindDir && !refused && !d.reaches(path):
				return fs.SkipDir
			case k == guardfs.KindFile && refused:
				c.ids[inode{id.Dev, id.Ino}] = struct{}{}
			}
			return nil
		})
		if err != nil {
			c.err, c.ids = fmt.Errorf("counting the hard links below %s: %w", root, err), nil
			if l.trouble != nil {
				l.trouble(c.err)
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
