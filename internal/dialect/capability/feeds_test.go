package capability

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"moltisfs/internal/engine"
)

// watched is a feed with a watch of one session, which tells what comes by a channel.
func watched(t *testing.T, s *feeds, judge func(event, *fetcher) (event, bool)) (tell func(...string)) {
	t.Helper()
	closed, told := make(chan struct{}), make(chan []event)
	err := s.begin([2]string{"p", "s"}, func() (*feedWatch, error) {
		return &feedWatch{ID: "w", Judge: judge, Gone: event{Type: "gone"}, Close: func() error {
			select {
			case <-closed:
			default:
				close(closed)
			}
			return nil
		}, Run: func(tell func([]event)) {
			for {
				select {
				case events := <-told:
					tell(events)
				case <-closed:
					return
				}
			}
		}}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return func(paths ...string) {
		var events []event
		for _, p := range paths {
			events = append(events, event{Type: "create", Path: p})
		}
		told <- events
	}
}

// Who waits is woken by an event, by the end of the session, and by the end of all. What may not be
// told by then is passed over, and the wait goes on.
func TestWaiting(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var s feeds
		denied := map[string]bool{"secret": true}
		tell := watched(t, &s, func(e event, _ *fetcher) (event, bool) { return e, !denied[e.Path] })
		closing := make(chan struct{})
		type answer struct {
			list []event
			next int64
		}
		waits := make(chan answer, 1)
		wait := func(cursor int64) {
			go func() {
				list, next := s.after(t.Context(), closing, [2]string{"p", "s"}, cursor, 10, nil)
				waits <- answer{list, next}
			}()
			synctest.Wait()
		}
		wait(0)
		tell("secret")
		synctest.Wait()
		if len(waits) > 0 {
			t.Errorf("what may not be told ends a wait: %v", <-waits)
		}
		tell("secret", "a")
		if a := <-waits; len(a.list) != 1 || a.list[0].Path != "a" || a.next != 3 {
			t.Errorf("%+v", a)
		}
		denied["a"] = true
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if list, next := s.after(ctx, closing, [2]string{"p", "s"}, 0, 10, nil); len(list) > 0 || next != 3 {
			t.Errorf("it was told before: %v, next %d", list, next)
		}
		wait(3)
		s.end([2]string{"p", "s"})
		if a := <-waits; len(a.list) > 0 || a.next != 3 {
			t.Errorf("the session ended: %+v", a)
		}
		wait(0)
		s.endWatches()
		if a := <-waits; len(a.list) > 0 || a.next != 0 {
			t.Errorf("the watches ended, and there was none: %+v", a)
		}
		tell = watched(t, &s, func(e event, _ *fetcher) (event, bool) { return e, true })
		tell("b", "c")
		synctest.Wait()
		wait(2)
		s.endWatches()
		if a := <-waits; len(a.list) != 1 || a.list[0].Type != "gone" || a.next != 3 {
			t.Errorf("the watches ended: %+v", a)
		}
		if list, _ := s.after(ctx, closing, [2]string{"p", "s"}, 0, 10, nil); len(list) != 2 || list[0].Type != engine.EventRescan || list[1].Cursor != 3 {
			t.Errorf("what was kept is told by rules of before: %+v", list)
		}
		s.end([2]string{"p", "s"})
		wait(0)
		close(closing)
		<-waits
		s.mu.Lock()
		defer s.mu.Unlock()
		if len(s.of)+s.count > 0 {
			t.Errorf("%d feeds and %d watches are left", len(s.of), s.count)
		}
	})
}

// A reader that comes too late, or with a cursor of another time, is told so.
func TestFeed(t *testing.T) {
	t.Parallel()
	var s feeds
	w := &feedWatch{ID: "w"}
	f := s.feed([2]string{"p", "s"})
	f.watches = append(f.watches, w)
	for range eventsKept/100 + 5 {
		s.add(f, w, make([]event, 100))
	}
	last := f.last()
	for _, c := range []struct {
		cursor      int64
		most, n     int
		next, first int64
		rescan      bool
	}{
		{last, 10, 0, last, 0, false},
		{last - 5, 10, 5, last, last - 4, false},
		{last - 5, 2, 2, last - 3, last - 4, false},
		{f.dropped, 3, 3, f.dropped + 3, f.dropped + 1, false},
		{f.dropped - 1, 3, 3, f.dropped + 2, f.dropped, true},
		{0, 1, 1, f.dropped, f.dropped, true},
		{last + 1, 3, 3, f.dropped + 2, f.dropped, true},
	} {
		list, next := f.since(c.cursor, c.most)
		if len(list) != c.n || next != c.next ||
			c.n > 0 && (list[0].Cursor != c.first || (list[0].Type == engine.EventRescan) != c.rescan) {
			t.Errorf("after %d at most %d: %d events, next %d", c.cursor, c.most, len(list), next)
		}
	}
	if len(f.kept) != eventsKept || last != int64(len(f.kept))+f.dropped {
		t.Errorf("%d are kept of %d", len(f.kept), last)
	}
}
