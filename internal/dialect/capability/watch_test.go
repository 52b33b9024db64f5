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

// next are the events until none has come for a while, as "type path" or "rename from > to".
func (f *follower) next() (out []string) {
	f.t.Helper()
	for {
		ctx, cancel := context.WithTimeout(f.t.Context(), 200*time.Millisecond)
		events, err := f.Events(ctx, dialect.Call{Session: f.session, Scope: f.scope}, f.cursor, 1000)
		cancel()
		must(f.t, err)
		if len(events.List) == 0 {
			return out
		}
		for _, raw := range events.List {
			var e event
			must(f.t, json.Unmarshal(raw, &e))
			if e.Cursor <= f.cursor && e.Type != engine.EventRescan {
				f.t.Errorf("cursor %d after %d", e.Cursor, f.cursor)
			}
			f.cursor = e.Cursor
			text := e.Type + " " + strings.TrimPrefix(e.Path, f.root+"/")
			if e.From != "" {
				text = e.Type + " " + strings.TrimPrefix(e.From, f.root+"/") + " > " +
					strings.TrimPrefix(e.To, f.root+"/")
			}
			if n := len(out); n == 0 || out[n-1] != text || e.Type != engine.EventModify {
				out = append(out, text)
			}
		}
		if f.scope != nil {
			f.cursor = events.Next // past what was not told
		}
		if f.cursor != events.Next {
			f.t.Errorf("the last event has cursor %d, next is %d", f.cursor, events.Next)
		}
	}
}

// exactly skips a test of what only Linux tells.
func (f *follower) exactly() {
	if f.e.Containment() == "best_effort" {
		f.t.Skip("SKIPPED: renames are told by halves on this system")
	}
}

func (f *follower) tells(what string, want ...string) {
	f.t.Helper()
	got := f.next()
	for tries := 0; len(got) < len(want) && tries < 25; tries++ { // a busy machine takes its time
		got = append(got, f.next()...)
	}
	if strings.Join(got, ", ") != strings.Join(want, ", ") {
		f.t.Errorf("%s: %q, want %q", what, got, want)
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
	fresh := ""
	for tries := 0; !strings.Contains(fresh, "create d/e/f") && tries < 25; tries++ {
		fresh += strings.Join(f.next(), ", ")
	}
	if !strings.Contains(fresh, "create d/e/f") {
		t.Errorf("in fresh directories: %s", fresh)
	}
	f.rename("d", "g")
	f.write(t, "g/e/f", "y")
	f.tells("a directory that moved", "rename d > g", "modify g/e/f")
	f.rename("../"+filepath.Base(f.root), "../moved") // the root itself
	got := f.next()
	for tries := 0; len(got) == 0 && tries < 25; tries++ { // a busy machine takes its time
		got = f.next()
	}
	if len(got) != 1 || !strings.HasPrefix(got[0], "gone") {
		t.Errorf("the root went: %q", got)
	}
	if a := f.call(t, "agent.events", `{"cursor":0,"limit":2}`); len(a["events"].([]any)) != 2 ||
		a["next_cursor"] != 2.0 {
		t.Errorf("from the beginning: %s", mustJSON(a))
	}
}

func TestWatchFilters(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ args, want string }{
		"names":            {`"pattern":"*.log"`, "create x.log, modify x.log, create d/y.log, modify d/y.log"},
		"paths":            {`"pattern":"d/*.log"`, "create d/y.log, modify d/y.log"},
		"types":            {`"event_types":["create"]`, "create x.log, create x.tmp, create config.json, create d/y.log"},
		"renames":          {`"event_types":["rename"],"pattern":"config.*"`, "rename x.tmp > config.json"},
		"saved by renames": {`"event_types":["modify"],"pattern":"config.*"`, "modify config.json"},
		"came by a rename": {`"pattern":"config.*"`, "create config.json, modify config.json"},
		"left by a rename": {`"pattern":"*.tmp"`, "create x.tmp, modify x.tmp, delete x.tmp"},
		"both":             {`"event_types":["delete"],"pattern":"*.{tmp,log}"`, "delete x.tmp"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := &follower{room: open(t, nil), t: t, session: "s"}
			f.exactly()
			f.write(t, "d/x", "")
			f.watches(`{"path":"R","recursive":true,` + c.args + `}`)
			f.write(t, "x.log", "x")
			f.write(t, "x.tmp", "x")
			got := f.next()
			f.rename("x.tmp", "config.json")
			got = append(got, f.next()...)
			f.write(t, "d/y.log", "y")
			got = append(got, f.next()...)
			if strings.Contains(c.args, `config.*"`) && !strings.Contains(c.args, "types") {
				f.write(t, "config.json", "y")
				got = append(got, f.next()...)
			}
			for tries := 0; len(got) < strings.Count(c.want, ",")+1 && tries < 25; tries++ {
				got = append(got, f.next()...)
			}
			if text := strings.Join(got, ", "); text != c.want {
				t.Errorf("%s, want %s", text, c.want)
			}
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
	must(t, f.EndSession(t.Context(), "", "s"))
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
	must(t, f.EndSession(t.Context(), "", "s1"))
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
	seen, missed := map[string]bool{}, false
	for wait := true; wait; {
		select {
		case err := <-made:
			must(t, err)
			wait = false
		default:
		}
		for _, e := range f.next() {
			seen[e] = true
			missed = missed || strings.HasPrefix(e, engine.EventRescan)
		}
	}
	lost := 0
	for i := range *creates {
		if !seen[fmt.Sprintf("create a%d/b/c/f%d", i/each, i)] {
			lost++
		}
	}
	t.Logf("%d of %d are told; a rescan: %v", *creates-lost, *creates, missed)
	if lost > 0 && !missed {
		t.Errorf("%d are missed, and nobody says so", lost)
	}
}

// What was noticed is judged again when it is fetched: a directory may lead elsewhere by then.
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
	for f.cursor = 0; ; {
		got := f.next()
		for _, e := range got {
			if strings.Contains(e, " d/") {
				t.Errorf("%q is told of a link into what is denied", e)
			}
		}
		if len(got) == 0 {
			break
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
	var all []string
	for tries := 0; !slices.Contains(all, "gone pub") && tries < 25; tries++ { // a busy machine takes its time
		all = append(all, f.next()...)
	}
	wide := strings.Join(all, ", ")
	for _, want := range []string{"create priv/b", "create top", "rename priv/b > pub/c", "gone priv", "gone pub"} {
		if !strings.Contains(wide, want) {
			t.Errorf("%q is not in %s", want, wide)
		}
	}
	narrow := &follower{room: f.room, t: t, session: "s", scope: &dialect.Scope{Readable: []string{f.root + "/pub"}}}
	got := strings.Join(narrow.next(), ", ")
	for _, no := range []string{"priv", "top", "deep"} {
		if strings.Contains(got, no) {
			t.Errorf("outside the scope: %s", got)
		}
	}
	for _, want := range []string{"create pub/c", "create pub/b", "delete pub/b", "gone pub"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in %s", want, got)
		}
	}
	call := dialect.Call{Session: "s", Tool: "agent.events", Args: json.RawMessage(`{"limit":1000}`), Scope: narrow.scope}
	if text := string(mustJSON(f.as(t, call))); strings.Contains(text, "priv") || !strings.Contains(text, "pub/c") {
		t.Errorf("agent.events: %s", text)
	}
	narrow.cursor, narrow.scope = 0, &dialect.Scope{}
	narrow.tells("nothing may be read")
}

// watched is a feed with a watch of one session, which tells what comes by a channel.
func watched(t *testing.T, s *feeds, judge func(event, *fetcher) (event, bool)) (tell func(...string)) {
	t.Helper()
	closed, told := make(chan struct{}), make(chan []event)
	err := s.begin([2]string{"p", "s"}, func() (*feedWatch, error) {
		return &feedWatch{ID: "w", Judge: judge, Close: func() error {
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
