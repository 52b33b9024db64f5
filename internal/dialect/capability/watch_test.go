package capability

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"moltisfs/config"
	"moltisfs/internal/dialect"
	"moltisfs/internal/engine"
	"moltisfs/internal/testdir"
)

// follower reads the events of a session.
type follower struct {
	room
	t       *testing.T
	session string
	cursor  int64
	last    string // event
	scope   *dialect.Scope
}

// watches begins a watch, and skips the test where nothing can be watched.
func (f *follower) watches(args string) (id string) {
	f.t.Helper()
	a := f.as(f.t, watchCall(f.session, args))
	if a["type"] == "WatchUnsupported" {
		f.t.Skip("SKIPPED: nothing can be watched on this system")
	}
	id, _ = a["watch_id"].(string)
	if id == "" {
		f.t.Fatalf("%s: %s", args, mustJSON(a))
	}
	return id
}

func watchCall(session, args string) dialect.Call {
	return dialect.Call{Session: session, Tool: "filesystem.watch", Args: json.RawMessage(args)}
}

// next waits for one event, and tells it as "type path" or "rename from > to". A modify that repeats the event before it is left out.
// Without waiting it gives "" if there is none.
func (f *follower) next(waits bool) string {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), time.Minute)
	defer cancel()
	if !waits {
		cancel()
	}
	for {
		events, err := f.Events(ctx, dialect.Call{Session: f.session, Scope: f.scope}, f.cursor, 1)
		must(f.t, err)
		if len(events.List) == 0 {
			if waits {
				f.t.Fatalf("nothing came in a minute after %q", f.last)
			}
			return ""
		}
		var e event
		must(f.t, json.Unmarshal(events.List[0], &e))
		if e.Cursor <= f.cursor && e.Type != engine.EventRescan || e.Cursor != events.Next {
			f.t.Errorf("cursor %d after %d, next is %d", e.Cursor, f.cursor, events.Next)
		}
		f.cursor = events.Next
		text := e.Type + " " + strings.TrimPrefix(e.Path, f.root+"/")
		if e.From != "" {
			text = e.Type + " " + strings.TrimPrefix(e.From, f.root+"/") + " > " + strings.TrimPrefix(e.To, f.root+"/")
		}
		if text == f.last && e.Type == engine.EventModify {
			continue
		}
		f.last = text
		return text
	}
}

// tells waits for as many events as it wants. One too many is what the next call finds; without any it looks whether there is one by now.
func (f *follower) tells(what string, want ...string) {
	f.t.Helper()
	if len(want) == 0 {
		if got := f.next(false); got != "" {
			f.t.Errorf("%s: %q", what, got)
		}
		return
	}
	var got []string
	for range want {
		got = append(got, f.next(true))
	}
	if !slices.Equal(got, want) {
		f.t.Errorf("%s: %q, want %q", what, got, want)
	}
}

// until waits until all that it wants was told, and gives all that was.
func (f *follower) until(want ...string) (got []string) {
	f.t.Helper()
	for slices.ContainsFunc(want, func(w string) bool { return !slices.Contains(got, w) }) {
		got = append(got, f.next(true))
	}
	return got
}

// exactly skips a test of what only Linux tells.
func (f *follower) exactly() {
	if f.e.Containment() == "best_effort" {
		f.t.Skip("SKIPPED: renames are told by halves on this system")
	}
}

func (f *follower) rename(from, to string) {
	f.t.Helper()
	must(f.t, os.Rename(filepath.Join(f.root, from), filepath.Join(f.root, to)))
}

func denySecrets(c *config.Config, _ *engine.Host) { c.Tools.FS.DenyPaths = []string{"**/secret*"} }

func TestWatch(t *testing.T) {
	t.Parallel()
	f := &follower{room: open(t, denySecrets), t: t, session: "s"}
	f.exactly()
	f.watches(`{"path":"R","recursive":true}`)
	f.write(t, "a", "x")
	f.tells("a new file", "create a", "modify a")
	f.write(t, "secret", "x")
	f.tells("what is denied")
	f.rename("a", "b")
	f.tells("a rename", "rename a > b")
	f.rename("b", "secret2")
	f.tells("into what is denied", "delete b")
	f.rename("secret2", "c")
	f.tells("out of it", "create c")
	f.write(t, "d/e/f", "")
	f.until("create d/e/f") // in fresh directories
	f.rename("d", "g")
	f.write(t, "g/e/f", "y")
	f.until("rename d > g", "modify g/e/f")
	f.rename("../"+filepath.Base(f.root), "../moved") // the root itself
	f.until("gone " + f.root)
	if a := f.call(t, "agent.events", `{"cursor":0,"limit":2}`); len(a["events"].([]any)) != 2 ||
		a["next_cursor"] != 2.0 {
		t.Errorf("from the beginning: %s", mustJSON(a))
	}
}

func TestWatchFilters(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ args, before, want string }{ // before the rename, and from there on
		"names":            {`"pattern":"*.log"`, "create x.log, modify x.log", "create d/y.log, modify d/y.log"},
		"paths":            {`"pattern":"d/*.log"`, "", "create d/y.log, modify d/y.log"},
		"types":            {`"event_types":["create"]`, "create x.log, create x.tmp", "create config.json, create d/y.log"},
		"renames":          {`"event_types":["rename"],"pattern":"config.*"`, "", "rename x.tmp > config.json"},
		"saved by renames": {`"event_types":["modify"],"pattern":"config.*"`, "", "modify config.json"},
		"came by a rename": {`"pattern":"config.*"`, "", "create config.json, modify config.json"},
		"left by a rename": {`"pattern":"*.tmp"`, "create x.tmp, modify x.tmp", "delete x.tmp"},
		"both":             {`"event_types":["delete"],"pattern":"*.{tmp,log}"`, "", "delete x.tmp"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := &follower{room: open(t, nil), t: t, session: "s"}
			f.exactly()
			f.write(t, "d/x", "")
			f.watches(`{"path":"R","recursive":true,` + c.args + `}`)
			f.write(t, "x.log", "x")
			f.write(t, "x.tmp", "x")
			if c.before != "" {
				f.tells("before the rename", strings.Split(c.before, ", ")...)
			}
			f.rename("x.tmp", "config.json")
			f.write(t, "d/y.log", "y")
			if c.args == `"pattern":"config.*"` {
				f.write(t, "config.json", "y")
			}
			f.tells("from the rename on", strings.Split(c.want, ", ")...)
		})
	}
}

// A watch tells only of what the call that began it may read, and only its own session.
func TestWatchWithinScope(t *testing.T) {
	t.Parallel()
	f := &follower{room: open(t, nil), t: t, session: "s"}
	f.write(t, "in/a", "")
	f.write(t, "out/a", "")
	call := watchCall("s", `{"path":"R","recursive":true}`)
	call.Scope = &dialect.Scope{Readable: []string{f.root + "/in"}}
	if a := f.as(t, call); a["type"] == "WatchUnsupported" {
		t.Skip("SKIPPED: nothing can be watched on this system")
	} else if a["watch_id"] == nil {
		t.Fatalf("%s", mustJSON(a))
	}
	f.write(t, "out/a", "x")
	f.write(t, "out/b", "x")
	f.write(t, "in/a", "x")
	f.tells("within the scope", "modify in/a")
	f.rename("in/a", "out/c")
	f.tells("out of the scope", "delete in/a")
	other := &follower{room: f.room, t: t, session: "other"}
	other.tells("another session")
	stranger, err := f.Events(ended(t), dialect.Call{Principal: "somebody", Session: "s"}, 0, 10)
	if err != nil || len(stranger.List) > 0 {
		t.Errorf("another principal: %v, %v", stranger.List, err)
	}
}

// ended is a context that nobody waits with.
func ended(t *testing.T) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}

func TestWatchEndsWithItsSession(t *testing.T) {
	before := runtime.NumGoroutine()
	f := &follower{room: open(t, nil), t: t, session: "s"}
	idle := runtime.NumGoroutine()
	id := f.watches(`{"path":"R"}`)
	f.watches(`{"path":"R","recursive":true}`)
	if a := f.call(t, "agent.unwatch", `{"watch_id":"`+id+`"}`); a["watch_id"] != id {
		t.Errorf("%s", mustJSON(a))
	}
	if a := f.call(t, "agent.unwatch", `{"watch_id":"`+id+`"}`); a["type"] != "InvalidArgument" {
		t.Errorf("twice: %s", mustJSON(a))
	}
	f.write(t, "a", "x")
	f.tells("the other watch", "create a", "modify a")
	must(t, f.EndSession(t.Context(), "", "s", false))
	f.write(t, "b", "")
	f.cursor = 0
	f.tells("a session that has ended")
	settles(t, idle, "EndSession")

	f.watches(`{"path":"R"}`)
	waits := make(chan dialect.Events)
	go func() {
		events, _ := f.Events(t.Context(), dialect.Call{Session: "s"}, 0, 1) //nolint:errcheck // the next one tells
		waits <- events
	}()
	must(t, f.e.Close())
	<-waits
	settles(t, before, "Close of the engine")
}

// settles waits until no more goroutines run than before.
func settles(t *testing.T, before int, after string) {
	t.Helper()
	testdir.Until(t, "no goroutine left by "+after, func() bool { return runtime.NumGoroutine() <= before })
}

func TestWatchBudget(t *testing.T) {
	t.Parallel()
	f := &follower{room: open(t, nil), t: t, session: "s0"}
	for range watchesOfSession {
		f.watches(`{"path":"R"}`)
	}
	watch := func(session string) map[string]any {
		return f.as(t, watchCall(session, `{"path":"R"}`))
	}
	full := func(session, why string) {
		t.Helper()
		a := watch(session)
		if message, _ := a["message"].(string); a["type"] != "TooManyWatches" ||
			!strings.Contains(message, why) {
			t.Errorf("%s", mustJSON(a))
		}
	}
	full("s0", "16 of 16 watches of this session")
	f.session = "s1"
	for range watchesOfPrincipal - watchesOfSession {
		f.watches(`{"path":"R"}`)
	}
	full("s2", "32 of 32 watches of this principal")
	must(t, f.EndSession(t.Context(), "", "s1", false))
	if a := watch("s2"); a["watch_id"] == nil {
		t.Errorf("after another session ended: %s", mustJSON(a))
	}
	for range 40 { // a refused watch gives its place back
		a := f.as(t, watchCall("s2", `{"path":"R/none"}`))
		if a["type"] != "DirectoryNotFound" {
			t.Fatalf("%s", mustJSON(a))
		}
	}
}

var creates = flag.Int("creates", 3000, "files that are made in fresh directories under a watch")

// However fast files come in fresh nested directories, each is told, or that some were missed.
func TestWatchManyCreates(t *testing.T) {
	t.Parallel()
	f := &follower{room: open(t, nil), t: t, session: "s"}
	f.watches(`{"path":"R","recursive":true}`)
	const each = 50
	seen := map[string]bool{}
	made := make(chan error, 1)
	go func() {
		made <- func() error {
			for i := range *creates {
				dir := fmt.Sprintf("%s/a%d/b/c", f.root, i/each)
				if i%each == 0 {
					if err := os.MkdirAll(dir, 0o700); err != nil {
						return err
					}
				}
				if err := os.WriteFile(fmt.Sprintf("%s/f%d", dir, i), nil, 0o600); err != nil {
					return err
				}
			}
			return nil
		}()
	}()
	for left := *creates; left > 0; {
		switch got := f.next(true); {
		case strings.HasPrefix(got, engine.EventRescan): // some are missed
			left = 0
		case seen[got]:
		case strings.HasPrefix(got, "create ") && strings.Contains(got, "/f"):
			seen[got] = true
			left--
		}
	}
	must(t, <-made)
}

// An event is judged again when it is fetched: a directory may lead elsewhere by then.
func TestWatchJudgesWhenFetched(t *testing.T) {
	t.Parallel()
	f := &follower{room: open(t, denySecrets), t: t, session: "s"}
	f.exactly()
	f.write(t, "d/x", "")
	f.write(t, "secret/a", "")
	f.watches(`{"path":"R","recursive":true}`)
	f.write(t, "d/a", "x")
	f.tells("a new file", "create d/a", "modify d/a")
	f.rename("d", "was")
	must(t, os.Symlink("secret", f.root+"/d"))
	f.cursor = 0
	for got := f.next(false); got != ""; got = f.next(false) {
		if strings.Contains(got, " d/") {
			t.Errorf("%q is told of a link into what is denied", got)
		}
	}
}

// Events are told under the scope of whoever fetches them, whoever began the watch, and by whichever way they are fetched.
func TestEventsUnderTheScopeOfWhoFetches(t *testing.T) {
	t.Parallel()
	f := &follower{room: open(t, nil), t: t, session: "s"}
	f.exactly()
	f.write(t, "pub/a", "")
	f.write(t, "priv/a", "")
	f.write(t, "deep/pub/a", "")
	f.watches(`{"path":"R","recursive":true}`)
	f.watches(`{"path":"R/priv"}`)
	f.watches(`{"path":"R/pub"}`)
	f.write(t, "priv/b", "")
	f.write(t, "pub/b", "")
	f.write(t, "top", "")
	f.rename("priv/b", "pub/c")
	f.rename("pub/b", "priv/d")
	f.rename("deep/pub", "deep/priv")
	for _, dir := range []string{"priv", "pub"} {
		f.rename(dir, dir+"2") // its watch is gone
		f.write(t, dir+"/new", "")
	}
	f.until("create priv/b", "create top", "rename priv/b > pub/c", "gone priv", "gone pub")
	narrow := &follower{room: f.room, t: t, session: "s", scope: &dialect.Scope{Readable: []string{f.root + "/pub"}}}
	for _, got := range narrow.until("create pub/c", "create pub/b", "delete pub/b", "gone pub") {
		if strings.Contains(got, "priv") || strings.Contains(got, "top") || strings.Contains(got, "deep") {
			t.Errorf("outside the scope: %s", got)
		}
	}
	call := dialect.Call{Session: "s", Tool: "agent.events", Args: json.RawMessage(`{"limit":1000}`), Scope: narrow.scope}
	if text := string(mustJSON(f.as(t, call))); strings.Contains(text, "priv") || !strings.Contains(text, "pub/c") {
		t.Errorf("agent.events: %s", text)
	}
	narrow.cursor, narrow.scope = 0, &dialect.Scope{}
	narrow.tells("nothing may be read")
}

// Another engine takes the place of one: whoever waits hears that the watches are gone, what was kept of them is told by no
// rules of before, and the session goes on with its cursor.
func TestWatchesEndWithAReload(t *testing.T) {
	t.Parallel()
	f := &follower{room: open(t, nil), t: t, session: "s"}
	f.watches(`{"path":"R","recursive":true}`)
	f.write(t, "a", "")
	f.tells("before", "create a", "modify a")
	waits := make(chan dialect.Events, 1)
	go func() {
		events, _ := f.Events(t.Context(), dialect.Call{Session: "s"}, f.cursor, 9) //nolint:errcheck // the answer tells
		waits <- events
	}()
	next := open(t, denySecrets)
	next.root = f.root
	next.With(f.Kept)
	f.EndWatches()
	if got := <-waits; len(got.List) != 1 || !strings.Contains(string(got.List[0]), `"gone"`) {
		t.Errorf("%s", got.List)
	}
	old := f.cursor
	f.room = next
	f.tells("with the cursor of before", "gone "+f.root)
	f.tells("once more")
	f.cursor = 0
	f.tells("from the beginning", "rescan ", "gone "+f.root)
	f.cursor = old
	f.tells("the cursor of before, again", "gone "+f.root)
	f.tells("and then no more")
}

// watched is a feed with a watch of one session, which tells what comes by a channel.
func watched(t *testing.T, s *eventLogs, judge func(event, *reader) (event, bool)) (tell func(...string)) {
	t.Helper()
	closed, told := make(chan struct{}), make(chan []event)
	err := s.begin([2]string{"p", "s"}, func() (*subscription, error) {
		return &subscription{ID: "w", Judge: judge, Gone: event{Type: "gone"}, Close: func() error {
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
	must(t, err)
	return func(paths ...string) {
		var events []event
		for _, p := range paths {
			events = append(events, event{Type: "create", Path: p})
		}
		told <- events
	}
}

// A waiting call is woken by an event, by the end of the session, and by the end of all. An event that may not be
// told by then is passed over, and the wait goes on.
func TestWaiting(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var s eventLogs
		denied := map[string]bool{"secret": true}
		tell := watched(t, &s, func(e event, _ *reader) (event, bool) { return e, !denied[e.Path] })
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
		tell = watched(t, &s, func(e event, _ *reader) (event, bool) { return e, true })
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
	var s eventLogs
	w := &subscription{ID: "w"}
	f := s.log([2]string{"p", "s"})
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
