package dialect

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"

	"moltisfs/internal/args"
)

// Sessions is a Dialect that keeps something for a session: watches, a workspace.
type Sessions interface {
	// EndSession drops all that is kept for a session. A session that is not there is no error. Forever says that no session of this
	// name comes again: then what it has read is forgotten too.
	EndSession(ctx context.Context, principal, session string, forever bool) error
}

// A Feed is a Dialect that can tell what happens.
type Feed interface {
	// Events tells what happened for the session of c after a cursor, oldest first, at most so many, as
	// far as the scope of c goes; its tool and arguments mean nothing. The cursor is 0 at the beginning,
	// and Next of the last answer after that. It waits for the first until ctx ends, which is no error.
	Events(ctx context.Context, c Call, after int64, most int) (Events, error)
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
	j := joined{ds: slices.Clone(ds), of: map[string]Dialect{}}
	for _, d := range ds {
		for _, def := range d.Definitions() { // they never change
			for _, name := range append([]string{def.Name}, def.Also...) {
				j.of[name] = d
			}
		}
	}
	return j
}

type joined struct {
	ds []Dialect
	of map[string]Dialect // by each name of a tool
}

func (j joined) Definitions() (all []Definition) {
	for _, d := range j.ds {
		all = append(all, d.Definitions()...)
	}
	return all
}

// Call lets the first dialect answer for a tool that none has, so that the call is on record. The
// nearest name may be another dialect's.
func (j joined) Call(ctx context.Context, c Call) (Answer, error) {
	if d := j.of[c.Tool]; d != nil {
		return d.Call(ctx, c)
	}
	a, err := j.ds[0].Call(ctx, c)
	if e, ok := errors.AsType[*UnknownToolError](err); ok {
		err = &UnknownToolError{e.Tool, args.Nearest(e.Tool, slices.Sorted(maps.Keys(j.of)))}
	}
	return a, err
}

func (j joined) Events(ctx context.Context, c Call, after int64, most int) (Events, error) {
	for _, d := range j.ds {
		if s, ok := d.(Feed); ok {
			return s.Events(ctx, c, after, most)
		}
	}
	<-ctx.Done()
	return Events{Next: after}, nil
}

func (j joined) EndSession(ctx context.Context, principal, session string, forever bool) error {
	var errs []error
	for _, d := range j.ds {
		if s, ok := d.(Sessions); ok {
			errs = append(errs, s.EndSession(ctx, principal, session, forever))
		}
	}
	return errors.Join(errs...)
}
