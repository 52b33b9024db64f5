package policy

import (
	"path"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"moltisfs/internal/glob"
)

// denials is what is denied and protected, under all names that are known to lead there. It is not
// changed once it is made: who judges one path takes one of them.
type denials struct {
	deny   node // by the names in the rules
	folded node // the same rules, folded
	short  []short
	roots  []string // where a census has to look
	full   bool     // the links led to more places than are held: everything is denied
}

// source is a deny rule or something protected, and the names of its literal beginning: as it is
// spelled, and where links led from there.
type source struct {
	names         []string
	exact, folded *glob.Pattern // nil: protected
}

// follower keeps the denials up to date with the links that the rules go through. Where a link led
// before is denied still: else a link that is turned away and back would open what is denied.
type follower struct {
	sources   []*source
	elsewhere []string // where a census has to look as well
	canonical func(string) string
	now       func() time.Time
	begun     time.Time
	mu        sync.Mutex
	more      int          // names that came after the start
	due       atomic.Int64 // when to look again, after begun
	known     atomic.Pointer[denials]
}

const (
	// followFor is how long a look at the links is good for: so late, at most, a link that was made
	// is noticed. Where looks are slow they are rarer, so that they take no more than a fiftieth.
	followFor = 10 * time.Millisecond
	// mostFollowed bounds the memory that links which change for ever can take.
	mostFollowed = 1000
)

// follow is the denials of now.
func (f *follower) follow() *denials {
	if int64(f.now().Sub(f.begun)) < f.due.Load() {
		return f.known.Load()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.now().Sub(f.begun)
	d := f.known.Load()
	if int64(now) < f.due.Load() {
		return d
	}
	changed := d == nil
	for _, s := range f.sources {
		if spelled := s.names[0]; spelled != "/" && f.more <= mostFollowed {
			real := path.Clean(f.canonical(spelled))
			changed = s.add(real, &f.more) || changed
			if dir, base := path.Split(spelled); real != spelled && dir != "/" {
				// The last name may be a link itself: it is denied where it really is, too.
				changed = s.add(path.Join(f.canonical(path.Clean(dir)), base), &f.more) || changed
			}
		}
	}
	if d == nil {
		f.more = 0
	}
	if changed {
		d = f.build()
		f.known.Store(d)
	}
	end := f.now().Sub(f.begun)
	f.due.Store(int64(end + max(followFor, 50*(end-now))))
	return d
}

func (s *source) add(name string, count *int) bool {
	if slices.Contains(s.names, name) {
		return false
	}
	s.names = append(s.names, name)
	*count++
	return true
}

func (f *follower) build() *denials {
	d := &denials{full: f.more > mostFollowed}
	roots := slices.Clone(f.elsewhere)
	for _, s := range f.sources {
		for i, name := range s.names {
			exact, folded := rule{rank: protected}, segments(foldPath(name))
			if s.exact != nil {
				exact = rule{denied, s.exact}
				if i == 0 {
					folded = s.folded.Literal()
				}
			}
			d.deny.hang(segments(name), exact)
			d.folded.hang(folded, rule{exact.rank, s.folded})
			if name != "/" {
				roots = append(roots, name)
			}
			if s.exact == nil {
				d.remember(folded)
			}
		}
		if s.exact != nil {
			d.remember(s.folded.Names())
		}
	}
	d.roots = outermost(roots)
	return d
}

func (d *denials) remember(names []string) {
	for _, name := range names {
		s, ok := shorten(name)
		for i := range d.short {
			ok = ok && d.short[i].long != s.long
		}
		if ok {
			d.short = append(d.short, s)
		}
	}
}

// refusesAny tries all names of one thing.
func (d *denials) refusesAny(name string, also []string) rank {
	worst := d.refuses(name)
	for _, other := range also {
		worst = max(worst, d.refuses(other))
	}
	return worst
}

// shields says whether the removal of a thing would take something protected with it.
func (d *denials) shields(name string) bool {
	if !d.folded.shield {
		return false
	}
	n := d.folded.at(foldPath(name))
	return n != nil && n.shield
}

// reaches reports whether a deny rule may cover something below a directory.
func (d *denials) reaches(dir string) bool {
	if strange(dir) {
		return true
	}
	cursors, below, _ := d.folded.here(foldPath(dir), nil)
	if len(cursors) > 0 || len(below) > 0 {
		return true
	}
	cursors, below, _ = d.deny.here(dir, nil)
	return len(cursors) > 0 || len(below) > 0
}
