package capability

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"moltisfs/internal/args"
	"moltisfs/internal/engine"
)

// What watches may take. A user of the system has 128 queues for all its programs, and some hundred
// thousand directories, of which an agent must leave enough for others.
const (
	maxWatchesOfSession   = 16
	maxWatchesOfPrincipal = 32
	maxWatches            = 64
	maxDirsOfPrincipal    = 40_000 // when their watches began
	maxKeptEvents         = 16_384 // of a session
)

// feeds are the events of all sessions.
type feeds struct {
	mu    sync.Mutex
	of    map[[2]string]*feed
	count int // watches
}

// A feed is what happened for one session: the last so many events, by cursors that only grow. It
// is there while somebody watches, waits, or may come back for what is kept.
type feed struct {
	key      [2]string
	watches  []*watch
	reserved int     // watches that are being made
	kept     []event // the last of them
	dropped  int64   // cursor of the last that is not kept any more
	read     int64   // cursor of the last that somebody was given
	waiting  int
	changed  chan struct{} // closed with the next event
	ended    bool
	running  sync.WaitGroup
}

func (s *feeds) feed(key [2]string) *feed {
	f := s.of[key]
	if f == nil {
		if s.of == nil {
			s.of = map[[2]string]*feed{}
		}
		f = &feed{key: key, changed: make(chan struct{})}
		s.of[key] = f
	}
	return f
}

// tidy forgets a feed that holds nothing.
func (s *feeds) tidy(f *feed) {
	if f.waiting+f.reserved+len(f.watches)+len(f.kept) == 0 && f.dropped == 0 && s.of[f.key] == f {
		delete(s.of, f.key)
	}
}

// reserve takes the place of one watch, or says why there is none.
func (s *feeds) reserve(principal, session string) (*feed, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := [2]string{principal, session}
	own, dirs := 0, 0
	for _, f := range s.of {
		if f.key[0] == principal {
			own += len(f.watches) + f.reserved
			for _, w := range f.watches {
				dirs += w.Directories
			}
		}
	}
	f := s.feed(key)
	defer s.tidy(f)
	for _, limit := range []struct {
		used, most int
		what       string
	}{
		{len(f.watches) + f.reserved, maxWatchesOfSession, "watches of this session"},
		{own, maxWatchesOfPrincipal, "watches of this principal"},
		{s.count, maxWatches, "watches of all"},
		{dirs, maxDirsOfPrincipal, "directories watched by this principal"},
	} {
		if limit.used >= limit.most {
			return nil, fmt.Errorf("%d of %d %s are used", limit.used, limit.most, limit.what)
		}
	}
	f.reserved++
	s.count++
	return f, nil
}

// release gives a reserved place back.
func (s *feeds) release(f *feed) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f.reserved--
	s.count--
	s.tidy(f)
}

// start puts a watch in its reserved place.
func (s *feeds) start(f *feed, w *watch) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	f.reserved--
	if f.ended {
		s.count--
		w.Close() //nolint:errcheck // nothing was asked of it
		return args.Errorf("begin another session", "the session has ended")
	}
	f.watches = append(f.watches, w)
	f.running.Go(func() { w.run(f, s) })
	return nil
}

// drop takes a watch that has ended out of its feed.
func (s *feeds) drop(f *feed, w *watch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.Index(f.watches, w); i >= 0 {
		f.watches = slices.Delete(f.watches, i, i+1)
		s.count--
	}
	s.tidy(f)
}

// unwatch ends a watch. ok: there was one.
func (s *feeds) unwatch(principal, session, id string) (ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.of[[2]string{principal, session}]
	if f == nil {
		return false
	}
	i := slices.IndexFunc(f.watches, func(w *watch) bool { return w.id == id })
	if i < 0 {
		return false
	}
	f.watches[i].Close() //nolint:errcheck // its goroutine ends by that
	f.watches = slices.Delete(f.watches, i, i+1)
	s.count--
	s.tidy(f)
	return true
}

// end ends the watches of a session, and returns when nothing of them runs any more.
func (s *feeds) end(key [2]string) {
	s.mu.Lock()
	f := s.of[key]
	if f == nil {
		s.mu.Unlock()
		return
	}
	delete(s.of, key)
	f.ended = true
	for _, w := range f.watches {
		w.Close() //nolint:errcheck // its goroutine ends by that
	}
	s.count -= len(f.watches)
	f.watches, f.kept = nil, nil
	close(f.changed)
	f.changed = make(chan struct{})
	s.mu.Unlock()
	f.running.Wait()
}

// add gives the events of a watch their cursors and wakes who waits. The oldest give way.
func (s *feeds) add(f *feed, w *watch, events []event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(events) == 0 || !slices.Contains(f.watches, w) { // it was ended meanwhile
		return
	}
	for _, e := range events {
		if n := len(f.kept); n > 0 && f.read < f.last() && e.repeats(&f.kept[n-1]) {
			continue
		}
		e.Cursor = f.last() + 1
		f.kept = append(f.kept, e)
	}
	if more := len(f.kept) - maxKeptEvents; more > 0 {
		f.dropped += int64(more)
		f.kept = slices.Delete(f.kept, 0, more)
	}
	close(f.changed)
	f.changed = make(chan struct{})
}

// repeats says that an event adds nothing to the one before it, which nobody has read yet.
func (e *event) repeats(last *event) bool {
	return e.Type == engine.EventModify && last.Type == e.Type && last.Watch == e.Watch &&
		last.Path == e.Path
}

func (f *feed) last() int64 { return f.dropped + int64(len(f.kept)) }

// after are the events after a cursor. A cursor that is older than what is kept, or that is none of
// this feed, has missed some: a rescan says so, and all that is kept follows.
func (f *feed) after(cursor int64, most int) (list []event, next int64) {
	if cursor < f.dropped || cursor > f.last() {
		cursor = f.dropped
		list = append(list, event{Cursor: cursor, Type: engine.EventRescan, Directory: true,
			Time: time.Now().UTC().Format(time.RFC3339Nano)})
	}
	from := int(cursor - f.dropped)
	n := min(len(f.kept)-from, max(most-len(list), 0))
	f.read = max(f.read, cursor+int64(n))
	return append(list, f.kept[from:from+n]...), cursor + int64(n)
}

// wait gives the events after a cursor, and waits for the first until ctx or the engine ends.
func (s *feeds) wait(ctx context.Context, closing <-chan struct{}, key [2]string, cursor int64,
	most int) ([]event, int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.feed(key)
	f.waiting++
	defer func() { f.waiting--; s.tidy(f) }()
	for {
		if f.ended {
			return nil, cursor
		}
		list, next := f.after(cursor, most)
		if len(list) > 0 || ctx.Err() != nil || most <= 0 {
			return list, next
		}
		changed := f.changed
		s.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
		case <-closing:
			var cancel context.CancelFunc
			ctx, cancel = context.WithCancel(ctx)
			cancel()
		}
		s.mu.Lock()
	}
}
