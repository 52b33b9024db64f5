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

// A watch is one of a session.
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
	err := c.feeds.begin(keyOf(c.Principal, c.Session), func() (_ *feedWatch, err error) {
		if w.Watching, err = c.e.Watch(ctx, c.Call, a.Path, a.Recursive); err != nil {
			return nil, err
		}
		gone, _ := w.pick(engine.Event{What: engine.EventGone, Path: w.Root, Dir: true})
		return &feedWatch{ID: id, Close: w.Close, Run: w.run, Judge: w.judge, Gone: gone}, nil
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

// pick gives an event as the watch wants it told; false: not at all. What tells of the watch itself
// is always told. A rename of which the pattern, or the types, want one side only is a delete or a
// create; who wants neither hears of what came by it as modified, as editors save by a rename.
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

// run hands over the events of a watch until it ends.
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

// A fetcher is whoever fetches events.
type fetcher struct {
	scoped bool
	sees   func(name string) bool
}

// judge asks once more when an event is fetched, which may be long after it was noticed: under the
// scope of the call that began the watch, and under that of by, a *fetcher. The end of the watch is
// told in any case but outside that scope: it may be that nothing can be looked at any more.
func (w *watch) judge(e event, by *fetcher) (event, bool) {
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
	events, err := c.Dialect.Events(ctx, by, int64(value(a.Cursor, 0)), value(a.Limit, 100))
	if err != nil {
		return nil, err
	}
	return struct {
		Events []any `json:"events"`
		Next   int64 `json:"next_cursor"`
	}{raws(events), events.Next}, nil
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
	if !c.feeds.unwatch(keyOf(c.Principal, c.Session), a.ID) {
		return nil, args.Errorf("give a watch_id that filesystem.watch answered in this session",
			"there is no watch %.300s", a.ID)
	}
	return struct {
		ID string `json:"watch_id"`
	}{a.ID}, nil
}

// Events implements [dialect.Feed]. What the cursor's reader missed is told as one rescan.
func (d *Dialect) Events(ctx context.Context, in dialect.Call, after int64, most int) (dialect.Events, error) {
	sees, err := d.e.Sees((*engine.Scope)(in.Scope))
	if err != nil {
		return dialect.Events{}, err
	}
	list, next := d.feeds.after(ctx, d.e.Ending().Done(), keyOf(in.Principal, in.Session), after, most, &fetcher{in.Scope != nil, sees})
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
func (d *Dialect) EndSession(_ context.Context, principal, session string) error {
	d.feeds.end(keyOf(principal, session))
	return nil
}

// keyOf names a session as the engine does.
func keyOf(principal, session string) [2]string {
	return [2]string{cmp.Or(principal, "local"), cmp.Or(session, "default")}
}
