// Package feed keeps what happened for each session, until somebody fetches it or it is too much,
// and since when and how often a session calls. It knows who watches and how often they may; what a
// watch is, it is told. It touches no file.
//
// Cursors only grow. A cursor that is older than what is kept has missed something: an event of type
// Rescan says so. Feeds is safe for concurrent use.
package feed

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// What watches may take. A user of the system has 128 queues for all its programs. The engine divides
// the directories.
const (
	OfSession   = 16
	OfPrincipal = 32
	Kept        = 16_384 // events of a session

	ofAll = 64
)

// The types of events that are of any concern here.
const (
	Modify = "modify" // two in a row are one
	Rescan = "rescan"
)

// ErrEnded says that the session ended before its watch had begun.
var ErrEnded = errors.New("the session has ended")

// An Event is told with the cursor after which the next one comes.
type Event struct {
	Cursor    int64  `json:"cursor"`
	Type      string `json:"type"`
	Watch     string `json:"watch_id,omitempty"`
	Path      string `json:"path,omitempty"` // of a rename: where it is now
	From      string `json:"from,omitempty"` // of a rename, with To
	To        string `json:"to,omitempty"`
	Directory bool   `json:"directory"`
	Time      string `json:"time"`

	of *Watch
}

// Now is the time of an event that is noticed at this moment.
func Now() string { return time.Now().UTC().Format(time.RFC3339Nano) }

// A Watch is one of a session.
type Watch struct {
	ID    string
	Close func() error // ends Run
	// Run hands over events until the watch ends, by Close or by itself.
	Run func(tell func([]Event))
	// Judge says how an event may be told to the one who fetches it; false: not at all.
	Judge func(e Event, by any) (Event, bool)
	Gone  Event // that tells of its end
}

// Feeds are the events of all sessions. The zero value is ready.
type Feeds struct {
	mu    sync.Mutex
	of    map[[2]string]*feed // by principal and session
	count int                 // watches
}

// A feed is there while somebody watches, waits, or may come back for what is kept.
type feed struct {
	key      [2]string
	watches  []*Watch
	reserved int     // watches that are being made
	kept     []Event // the last of them
	dropped  int64   // cursor of the last that is not kept any more
	read     int64   // cursor of the last that somebody was given
	waiting  int
	changed  chan struct{} // closed with the next event
	ended    bool
	renewed  int // times that its watches were ended by EndWatches
	running  sync.WaitGroup
}

func (s *Feeds) feed(key [2]string) *feed {
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
func (s *Feeds) tidy(f *feed) {
	if f.waiting+f.reserved+len(f.watches)+len(f.kept) == 0 && f.dropped == 0 && s.of[f.key] == f {
		delete(s.of, f.key)
	}
}

// LimitError says that there are too many watches already.
type LimitError struct {
	Used, Most int
	What       string
}

func (e *LimitError) Error() string {
	return fmt.Sprintf("%d of %d %s are used", e.Used, e.Most, e.What)
}

// Begin begins a watch of a session, if it may have one more. The error is a *LimitError, ErrEnded,
// or what begin fails with.
func (s *Feeds) Begin(principal, session string, begin func() (*Watch, error)) error {
	f, err := s.reserve([2]string{principal, session})
	if err != nil {
		return err
	}
	w, err := begin()
	s.mu.Lock()
	defer s.mu.Unlock()
	f.reserved--
	switch {
	case err != nil:
		s.count--
		s.tidy(f)
	case f.ended:
		s.count--
		w.Close() //nolint:errcheck // nothing was asked of it
		return ErrEnded
	default:
		f.watches = append(f.watches, w)
		f.running.Go(func() {
			w.Run(func(events []Event) { s.add(f, w, events) })
			s.drop(f, w)
		})
	}
	return err
}

// reserve takes the place of one watch, or says why there is none.
func (s *Feeds) reserve(key [2]string) (*feed, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	own := 0
	for _, f := range s.of {
		if f.key[0] == key[0] {
			own += len(f.watches) + f.reserved
		}
	}
	f := s.feed(key)
	defer s.tidy(f)
	for _, limit := range []LimitError{
		{len(f.watches) + f.reserved, OfSession, "watches of this session"},
		{own, OfPrincipal, "watches of this principal"},
		{s.count, ofAll, "watches of all"},
	} {
		if limit.Used >= limit.Most {
			return nil, &limit
		}
	}
	f.reserved++
	s.count++
	return f, nil
}

// drop takes a watch that has ended out of its feed.
func (s *Feeds) drop(f *feed, w *Watch) {
	w.Close() //nolint:errcheck // nothing more is asked of it
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.Index(f.watches, w); i >= 0 {
		f.watches = slices.Delete(f.watches, i, i+1)
		s.count--
	}
	s.tidy(f)
}

// Unwatch ends a watch of a session. ok: there was one.
func (s *Feeds) Unwatch(principal, session, id string) (ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.of[[2]string{principal, session}]
	if f == nil {
		return false
	}
	i := slices.IndexFunc(f.watches, func(w *Watch) bool { return w.ID == id })
	if i < 0 {
		return false
	}
	f.watches[i].Close() //nolint:errcheck // its Run ends by that
	f.watches = slices.Delete(f.watches, i, i+1)
	s.count--
	s.tidy(f)
	return true
}

// End ends the watches of a session, and returns when nothing of them runs any more.
func (s *Feeds) End(principal, session string) {
	key := [2]string{principal, session}
	s.mu.Lock()
	f := s.of[key]
	if f == nil {
		s.mu.Unlock()
		return
	}
	delete(s.of, key)
	f.ended = true
	for _, w := range f.watches {
		w.Close() //nolint:errcheck // its Run ends by that
	}
	s.count -= len(f.watches)
	f.watches, f.kept = nil, nil
	f.wake()
	s.mu.Unlock()
	f.running.Wait()
}

// EndWatches ends the watches of all sessions, for another engine takes the place of theirs. What
// was kept of them is judged by rules that hold no more, so it is told no more: their ends are, each
// by its Gone, and whoever waits is woken.
func (s *Feeds) EndWatches() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.of {
		f.dropped, f.kept = f.last(), nil
		f.renewed++
		for _, w := range f.watches {
			w.Close() //nolint:errcheck // its Run ends by that
			e := w.Gone
			e.Cursor, e.Watch, e.Time, e.of = f.last()+1, w.ID, Now(), w
			f.kept = append(f.kept, e)
		}
		s.count -= len(f.watches)
		f.watches = nil
		f.wake()
	}
}

// wake wakes whoever waits for a feed.
func (f *feed) wake() {
	close(f.changed)
	f.changed = make(chan struct{})
}

// add gives the events of a watch their cursors and wakes who waits. The oldest give way.
func (s *Feeds) add(f *feed, w *Watch, events []Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(events) == 0 || !slices.Contains(f.watches, w) { // it was ended meanwhile
		return
	}
	for _, e := range events {
		if n := len(f.kept); n > 0 && f.read < f.last() && e.repeats(&f.kept[n-1]) {
			continue
		}
		e.Cursor, e.Watch, e.of = f.last()+1, w.ID, w
		f.kept = append(f.kept, e)
	}
	if more := len(f.kept) - Kept; more > 0 {
		f.dropped += int64(more)
		f.kept = slices.Delete(f.kept, 0, more)
	}
	f.wake()
}

// repeats says that an event adds nothing to the one before it, which nobody has read yet.
func (e *Event) repeats(last *Event) bool {
	return e.Type == Modify && last.Type == e.Type && last.of == e.of && last.Path == e.Path
}

func (f *feed) last() int64 { return f.dropped + int64(len(f.kept)) }

// after are the events after a cursor. A cursor that is older than what is kept, or that is none of
// this feed, has missed some: a rescan says so, and all that is kept follows.
func (f *feed) after(cursor int64, most int) (list []Event, next int64) {
	if cursor < f.dropped || cursor > f.last() {
		cursor = f.dropped
		list = append(list, Event{Cursor: cursor, Type: Rescan, Directory: true, Time: Now()})
	}
	from := int(cursor - f.dropped)
	n := min(len(f.kept)-from, max(most-len(list), 0))
	f.read = max(f.read, cursor+int64(n))
	return append(list, f.kept[from:from+n]...), cursor + int64(n)
}

// After gives the events of a session after a cursor, as they may be told to by, which is what Judge
// is given, and waits for the first until ctx ends, closing is closed, or the watches are ended. next
// is the cursor to go on with.
func (s *Feeds) After(ctx context.Context, closing <-chan struct{}, principal, session string,
	cursor int64, most int, by any) (list []Event, next int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.feed([2]string{principal, session})
	f.waiting++
	defer func() { f.waiting--; s.tidy(f) }()
	over, renewed := false, f.renewed
	for {
		if f.ended {
			return nil, cursor
		}
		over = over || f.renewed != renewed
		list, next = f.after(cursor, most)
		changed := f.changed
		s.mu.Unlock()
		none := len(list) == 0
		if list = judged(list, by); none && !over && most > 0 && ctx.Err() == nil {
			select {
			case <-changed:
			case <-ctx.Done():
			case <-closing:
				over = true
			}
		}
		s.mu.Lock()
		if len(list) > 0 || most <= 0 || none && (over || ctx.Err() != nil) {
			return list, next
		}
		cursor = next // what came may not be told
	}
}

// judged are the events that may be told to somebody.
func judged(list []Event, by any) (out []Event) {
	for _, e := range list {
		told := true
		if e.of != nil && e.of.Judge != nil {
			e, told = e.of.Judge(e, by)
		}
		if told {
			out = append(out, e)
		}
	}
	return out
}
