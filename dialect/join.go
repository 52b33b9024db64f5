package dialect

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
)

// Sessions is a Dialect that keeps something for a session: watches, a workspace.
type Sessions interface {
	// EndSession drops what is kept for a session. One that there is not is no error.
	EndSession(ctx context.Context, principal, session string) error
}

// A Feed is a Dialect that can tell what happens.
type Feed interface {
	// Events tells what happened for a session after a cursor, oldest first, at most so many. The
	// cursor is 0 at the beginning, and Next of the last answer after that. It waits for the first
	// until ctx ends, which is no error.
	Events(ctx context.Context, principal, session string, after int64, most int) (Events, error)
}

// Events are some of a session's, and the cursor for what comes after them.
type Events struct {
	List []json.RawMessage
	Next int64
}

// Join makes one dialect of several, which stand over one engine. Their tools have different
// names. It is Sessions and a Feed too: the events are those of the first that has any, and a session
// ends for all of them.
func Join(ds ...Dialect) Dialect {
	if len(ds) == 1 {
		return ds[0]
	}
	return joined(slices.Clone(ds))
}

type joined []Dialect

func (j joined) Definitions() (all []Definition) {
	for _, d := range j {
		all = append(all, d.Definitions()...)
	}
	return all
}

// Call lets the first dialect answer for a tool that none has, so that the call is on record.
func (j joined) Call(ctx context.Context, c Call) (Answer, error) {
	for _, d := range j {
		if _, ok := Find(d, c.Tool); ok {
			return d.Call(ctx, c)
		}
	}
	return j[0].Call(ctx, c)
}

// Find is the tool of that name, or of that other name.
func Find(d Dialect, name string) (Definition, bool) {
	for _, def := range d.Definitions() {
		if def.Name == name || slices.Contains(def.Also, name) {
			return def, true
		}
	}
	return Definition{}, false
}

func (j joined) Events(ctx context.Context, principal, session string, after int64,
	most int) (Events, error) {
	for _, d := range j {
		if s, ok := d.(Feed); ok {
			return s.Events(ctx, principal, session, after, most)
		}
	}
	<-ctx.Done()
	return Events{Next: after}, nil
}

func (j joined) EndSession(ctx context.Context, principal, session string) error {
	var errs []error
	for _, d := range j {
		if s, ok := d.(Sessions); ok {
			errs = append(errs, s.EndSession(ctx, principal, session))
		}
	}
	return errors.Join(errs...)
}
