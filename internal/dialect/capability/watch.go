package capability

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"moltisfs/grep"
	"moltisfs/internal/args"
	"moltisfs/internal/dialect"
	"moltisfs/internal/engine"
	"moltisfs/internal/glob"
)

type watchArgs struct {
	Path      string   `json:"path"`
	Recursive bool     `json:"recursive,omitempty" default:"false"`
	Types     []string `json:"event_types,omitempty" enum:"create|modify|delete|rename"`
	Pattern   *string  `json:"pattern,omitempty"`
}

func (a *watchArgs) asked() engine.Asked {
	return engine.Asked{Pattern: value(a.Pattern, ""), Window: strings.Join(a.Types, " ")}
}

func (a *watchArgs) paths() []string { return []string{a.Path} }

// A watch filters the events of one directory by types and names.
type watch struct {
	*engine.Watching
	types []string   // none: all
	names *glob.Glob // nil: all
	whole bool       // names are matched against the path from the root
}

func runWatch(ctx context.Context, c *call, a *watchArgs) (any, error) {
	w := &watch{types: a.Types}
	if p := value(a.Pattern, ""); p != "" {
		var err error
		if w.names, err = glob.Compile(p, glob.Options{LooseStars: true}); err != nil {
			why := err.Error()
			if bad, ok := errors.AsType[*glob.SyntaxError](err); ok {
				why = bad.Why
			}
			return nil, engine.Refuse(engine.BadGlob, "", &grep.GlobError{Glob: p, Why: why})
		}
		w.whole = strings.Contains(p, "/")
	}
	id := "w_" + rand.Text()[:16]
	err := c.logs.begin(keyOf(c.Principal, c.Session), func() (_ *subscription, err error) {
		if w.Watching, err = c.Watch(ctx, a.Path, a.Recursive); err != nil {
			return nil, err
		}
		gone, _ := w.pick(engine.Event{What: engine.EventGone, Path: w.Root, Dir: true})
		return &subscription{ID: id, Close: w.Close, Run: w.run, Judge: w.judge, Gone: gone}, nil
	})
	if limit, ok := errors.AsType[*limitError](err); ok {
		err = engine.Refuse(engine.TooManyWatches, a.Path, limit)
	} else if errors.Is(err, errEnded) {
		err = args.Errorf("begin another session", "%v", err)
	}
	if err != nil {
		return nil, err
	}
	return struct {
		ID        string `json:"watch_id"`
		Path      string `json:"path"`
		Recursive bool   `json:"recursive"`
	}{id, w.Root, a.Recursive}, nil
}

// pick gives an event e as the watch tells it; ok is false if it does not. Events of the watch itself are always told. Of a rename with one
// side in the pattern or the types, a delete or a create is told. With neither of those types the new name is told as modified, as editors
// save by a rename. For example, *.go tells of a rename from x.tmp to x.go as the create of x.go.
func (w *watch) pick(e engine.Event) (out event, ok bool) {
	out = event{Type: e.What, Path: e.Path, Directory: e.Dir, Time: timeNow()}
	switch e.What {
	case engine.EventRescan, engine.EventUnwatched, engine.EventGone:
		return out, true
	case engine.EventRename:
	default:
		return out, w.tells(e.What) && w.matches(e.Path)
	}
	from, to := w.matches(e.Path), w.matches(e.To)
	switch {
	case w.tells(engine.EventRename) && (from && to || from != to && len(w.types) > 0):
		out.From, out.To, out.Path = e.Path, e.To, e.To
	case to && w.tells(engine.EventCreate):
		out.Type, out.Path = engine.EventCreate, e.To
	case to && w.tells(engine.EventModify):
		out.Type, out.Path = engine.EventModify, e.To
	case from && w.tells(engine.EventDelete):
		out.Type = engine.EventDelete
	default:
		return out, false
	}
	return out, true
}

func (w *watch) tells(what string) bool {
	return len(w.types) == 0 || slices.Contains(w.types, what)
}

func (w *watch) matches(name string) bool {
	switch {
	case w.names == nil:
		return true
	case w.whole:
		below := strings.TrimPrefix(strings.TrimPrefix(name, w.Root), "/")
		return w.names.Match(below) || w.names.Match(name)
	}
	return w.names.Match(path.Base(name))
}

// run gives the events of a watch to tell until the watch ends.
func (w *watch) run(tell func([]event)) {
	gone := false
	for {
		events, err := w.Events(context.Background(), 256)
		var told []event
		for _, e := range events {
			gone = gone || e.What == engine.EventGone
			if out, ok := w.pick(e); ok {
				told = append(told, out)
			}
		}
		if err != nil && !gone { // whatever it is, nobody watches now
			out, _ := w.pick(engine.Event{What: engine.EventGone, Path: w.Root, Dir: true})
			told = append(told, out)
		}
		tell(told)
		if err != nil {
			return
		}
	}
}

// A reader fetches events: scoped if its call has a scope, and sees says of which paths it may hear.
type reader struct {
	scoped bool
	sees   func(name string) bool
}

// judge asks once more when an event is fetched, which may be long after it was noticed: under the
// scope of the call that began the watch, and under that of by, a *reader. The end of the watch is
// told in any case but outside that scope: it may be that nothing can be looked at any more.
func (w *watch) judge(e event, by *reader) (event, bool) {
	tells := func(name string) bool { return w.Tells(name) && by.sees(name) }
	if e.Type == engine.EventGone {
		return e, !by.scoped || by.sees(e.Path)
	}
	if e.From == "" {
		return e, tells(e.Path)
	}
	from, to := tells(e.From), tells(e.To)
	switch {
	case from && !to:
		e.Type, e.Path = engine.EventDelete, e.From
	case to && !from:
		e.Type = engine.EventCreate
	case from:
		return e, true
	}
	e.From, e.To = "", ""
	return e, from || to
}

type eventsArgs struct {
	Cursor *int `json:"cursor,omitempty" default:"0" min:"0"`
	Limit  *int `json:"limit,omitempty" default:"100" min:"1" max:"1000"`
	Wait   *int `json:"wait_ms,omitempty" default:"0" min:"0" max:"30000"`
}

func runEvents(ctx context.Context, c *call, a *eventsArgs) (any, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(value(a.Wait, 0))*time.Millisecond)
	defer cancel()
	by := dialect.Call{Principal: c.Principal, Session: c.Session, Scope: (*dialect.Scope)(c.Scope)}
	for most := value(a.Limit, 100); ; {
		events, err := c.Dialect.Events(ctx, by, int64(value(a.Cursor, 0)), most)
		if err != nil {
			return nil, err
		}
		out := struct {
			Events []any `json:"events"`
			Next   int64 `json:"next_cursor"`
		}{raws(events), events.Next}
		if n := len(out.Events); n > 1 && c.page.Over(textOf(out)) > 0 {
			most = n / 2 // the others come by the cursor
			continue
		}
		return out, nil
	}
}

func raws(events dialect.Events) []any {
	out := make([]any, len(events.List))
	for i, e := range events.List {
		out[i] = e
	}
	return out
}

type unwatchArgs struct {
	ID string `json:"watch_id"`
}

func runUnwatch(_ context.Context, c *call, a *unwatchArgs) (any, error) {
	if !c.logs.unwatch(keyOf(c.Principal, c.Session), a.ID) {
		return nil, args.Errorf("give a watch_id that filesystem.watch answered in this session",
			"there is no watch %.300s", a.ID)
	}
	return struct {
		ID string `json:"watch_id"`
	}{a.ID}, nil
}

// Events implements [dialect.Feed]. One rescan stands for the events that the reader missed.
func (d *Dialect) Events(ctx context.Context, in dialect.Call, after int64, most int) (dialect.Events, error) {
	sees, err := d.e.Sees((*engine.Scope)(in.Scope))
	if err != nil {
		return dialect.Events{}, err
	}
	list, next := d.logs.after(ctx, d.e.Ending().Done(), keyOf(in.Principal, in.Session), after, most, &reader{in.Scope != nil, sees})
	out := dialect.Events{Next: next}
	for _, e := range list {
		raw, err := args.Encode(e)
		if err != nil {
			return dialect.Events{}, fmt.Errorf("telling an event: %w", err)
		}
		out.List = append(out.List, raw)
	}
	return out, nil
}

// EndSession implements [dialect.Sessions]: the watches of the session end.
func (d *Dialect) EndSession(_ context.Context, principal, session string, forever bool) error {
	d.logs.end(keyOf(principal, session))
	return d.e.EndSession(principal, session, forever)
}

// keyOf names a session as the engine does.
func keyOf(principal, session string) [2]string {
	return [2]string{cmp.Or(principal, "local"), cmp.Or(session, "default")}
}

// Bounds of watches. A user of the system has 128 queues for all programs. The engine divides the directories.
const (
	watchesOfSession   = 16
	watchesOfPrincipal = 32
	watchesOfAll       = 64
	eventsKept         = 16_384 // of a session
)

// errEnded says that the session ended before its watch had begun.
var errEnded = errors.New("the session has ended")

// An event is told with the cursor after which the next one comes.
type event struct {
	Cursor    int64  `json:"cursor"`
	Type      string `json:"type"`
	Watch     string `json:"watch_id,omitempty"`
	Path      string `json:"path,omitempty"` // of a rename: where it is now
	From      string `json:"from,omitempty"` // of a rename, with To
	To        string `json:"to,omitempty"`
	Directory bool   `json:"directory"`
	Time      string `json:"time"`

	of *subscription
}

// timeNow gives the time of an event that is noticed now.
func timeNow() string { return time.Now().UTC().Format(time.RFC3339Nano) }

// A subscription is one watch in the log of a session.
type subscription struct {
	ID    string
	Close func() error // ends Run
	// Run hands over events until the watch ends, by Close or by itself.
	Run func(tell func([]event))
	// Judge says how an event may be told to the one who fetches it; false: not at all.
	Judge func(e event, by *reader) (event, bool)
	Gone  event // that tells of its end
}

// eventLogs keeps the events of all sessions until somebody fetches them or they are too many, and bounds the watches.
// Cursors only grow; a cursor that is older than what is kept has missed something, and an event rescan says so. The zero value is ready,
// and safe for concurrent use.
type eventLogs struct {
	mu    sync.Mutex
	of    map[[2]string]*eventLog // by principal and session
	count int                     // watches
}

// An eventLog is one session's. It is there while somebody watches, waits, or may come back for the events that are kept.
type eventLog struct {
	key      [2]string
	watches  []*subscription
	reserved int     // watches that are being made
	kept     []event // the last of them
	dropped  int64   // cursor of the last that is not kept any more
	read     int64   // cursor of the last that somebody was given
	waiting  int
	changed  chan struct{} // closed with the next event
	ended    bool
	renewed  int // times that its watches were ended by endWatches
	running  sync.WaitGroup
}

func (s *eventLogs) log(key [2]string) *eventLog {
	f := s.of[key]
	if f == nil {
		if s.of == nil {
			s.of = map[[2]string]*eventLog{}
		}
		f = &eventLog{key: key, changed: make(chan struct{})}
		s.of[key] = f
	}
	return f
}

// tidy forgets a log that holds nothing.
func (s *eventLogs) tidy(f *eventLog) {
	if f.waiting+f.reserved+len(f.watches)+len(f.kept) == 0 && f.dropped == 0 && s.of[f.key] == f {
		delete(s.of, f.key)
	}
}

// limitError says that there are too many watches already.
type limitError struct {
	Used, Most int
	What       string
}

func (e *limitError) Error() string {
	return fmt.Sprintf("%d of %d %s are used", e.Used, e.Most, e.What)
}

// begin begins a watch of a session, if it may have one more. The error is a *limitError, errEnded,
// or what begin fails with.
func (s *eventLogs) begin(key [2]string, begin func() (*subscription, error)) error {
	f, err := s.reserve(key)
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
		return errEnded
	default:
		f.watches = append(f.watches, w)
		f.running.Go(func() {
			w.Run(func(events []event) { s.add(f, w, events) })
			s.mu.Lock()
			defer s.mu.Unlock()
			s.drop(f, w)
		})
	}
	return err
}

// reserve takes the place of one watch, or says why there is none.
func (s *eventLogs) reserve(key [2]string) (*eventLog, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	own := 0
	for _, f := range s.of {
		if f.key[0] == key[0] {
			own += len(f.watches) + f.reserved
		}
	}
	f := s.log(key)
	defer s.tidy(f)
	for _, limit := range []limitError{
		{len(f.watches) + f.reserved, watchesOfSession, "watches of this session"},
		{own, watchesOfPrincipal, "watches of this principal"},
		{s.count, watchesOfAll, "watches of all"},
	} {
		if limit.Used >= limit.Most {
			return nil, &limit
		}
	}
	f.reserved++
	s.count++
	return f, nil
}

// drop closes a watch, and takes it out of its log if it is still there. s.mu is held.
func (s *eventLogs) drop(f *eventLog, w *subscription) {
	w.Close() //nolint:errcheck // nothing more is asked of it
	if i := slices.Index(f.watches, w); i >= 0 {
		f.watches = slices.Delete(f.watches, i, i+1)
		s.count--
	}
	s.tidy(f)
}

// unwatch ends a watch of a session. ok is false if there is none of this id.
func (s *eventLogs) unwatch(key [2]string, id string) (ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.of[key]
	if f == nil {
		return false
	}
	i := slices.IndexFunc(f.watches, func(w *subscription) bool { return w.ID == id })
	if i >= 0 {
		s.drop(f, f.watches[i])
	}
	return i >= 0
}

// end ends the watches of a session, and returns when nothing of them runs any more.
func (s *eventLogs) end(key [2]string) {
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

// endWatches ends the watches of all sessions, because another engine takes the place of theirs. Their kept events were judged by rules
// that hold no more, and are dropped. Each watch leaves its Gone, and all waits end.
func (s *eventLogs) endWatches() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.of {
		f.dropped, f.kept = f.last(), nil
		f.renewed++
		for _, w := range f.watches {
			w.Close() //nolint:errcheck // its Run ends by that
			e := w.Gone
			e.Cursor, e.Watch, e.Time, e.of = f.last()+1, w.ID, timeNow(), w
			f.kept = append(f.kept, e)
		}
		s.count -= len(f.watches)
		f.watches = nil
		f.wake()
	}
}

// wake ends the waits for a log.
func (f *eventLog) wake() {
	close(f.changed)
	f.changed = make(chan struct{})
}

// add gives the events of a watch their cursors, and ends the waits. The oldest give way.
func (s *eventLogs) add(f *eventLog, w *subscription, events []event) {
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
	if more := len(f.kept) - eventsKept; more > 0 {
		f.dropped += int64(more)
		f.kept = slices.Delete(f.kept, 0, more)
	}
	f.wake()
}

// repeats says that an event adds nothing to the one before it, which nobody has read yet.
func (e *event) repeats(last *event) bool {
	return e.Type == engine.EventModify && last.Type == e.Type && last.of == e.of && last.Path == e.Path
}

func (f *eventLog) last() int64 { return f.dropped + int64(len(f.kept)) }

// since gives at most so many events after a cursor. A cursor that is older than what is kept, or that is none of
// this log, has missed some: a rescan says so, and all that is kept follows.
func (f *eventLog) since(cursor int64, most int) (list []event, next int64) {
	if cursor < f.dropped || cursor > f.last() {
		cursor = f.dropped
		list = append(list, event{Cursor: cursor, Type: engine.EventRescan, Directory: true, Time: timeNow()})
	}
	from := int(cursor - f.dropped)
	n := min(len(f.kept)-from, max(most-len(list), 0))
	f.read = max(f.read, cursor+int64(n))
	return append(list, f.kept[from:from+n]...), cursor + int64(n)
}

// after gives at most so many events of the session key after a cursor, each as Judge lets by hear it. It waits for the first until ctx
// ends, closing is closed, or the watches are ended. next is the cursor to go on with.
func (s *eventLogs) after(ctx context.Context, closing <-chan struct{}, key [2]string, cursor int64, most int, by *reader) (list []event, next int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.log(key)
	f.waiting++
	defer func() { f.waiting--; s.tidy(f) }()
	over, renewed := false, f.renewed
	for {
		if f.ended {
			return nil, cursor
		}
		over = over || f.renewed != renewed
		list, next = f.since(cursor, most)
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

// judged gives the events of a list that by may hear, each as it may hear it.
func judged(list []event, by *reader) (out []event) {
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
