// Package hook runs the hooks of a host in every call, whichever dialect it came in by: code of its
// own, or programs that the configuration names (see [Command]).
//
//	BeforeToolCall     the arguments are valid, nothing is done yet: continue, change them, block
//	AfterToolCall      the call has ended: look on
//	ToolResultPersist  the answer is about to be given: continue, change it, withhold it
//
// The hooks of one event run one after the other. Each sees the changes of the one before, and
// changes are checked again as if the caller had sent them. The first that blocks ends it.
//
// A hook that fails, panics, takes longer than [Set.Timeout] or answers nonsense blocks, unless
// [Set.Allow] is set: then it is passed over. AfterToolCall can't block. Each change, block and
// failure is in the audit record.
//
// No lock is held while a hook runs. Hooks MUST be safe for concurrent use, and MUST NOT close the
// suite that calls them.
package hook

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"
)

// The events.
const (
	BeforeToolCallEvent    = "BeforeToolCall"
	AfterToolCallEvent     = "AfterToolCall"
	ToolResultPersistEvent = "ToolResultPersist"
)

// Info describes the call of an event.
type Info struct {
	Event     string `json:"event"`
	CallID    string `json:"call_id"` // the same in each event of a call, and in the audit log
	Session   string `json:"session_key"`
	Principal string `json:"principal"`
	Turn      string `json:"turn,omitempty"`
	Dialect   string `json:"dialect"`
	Tool      string `json:"tool_name"`
}

// BeforeToolCall is a call that is about to be carried out.
type BeforeToolCall struct {
	Info
	Arguments json.RawMessage `json:"arguments"` // an object: canonical names, typed values
}

// AfterToolCall is a call that has ended.
type AfterToolCall struct {
	Info
	Success  bool            `json:"success"`
	Outcome  string          `json:"outcome"` // "ok", or the kind of the refusal
	Duration time.Duration   `json:"duration_ns"`
	Result   json.RawMessage `json:"result,omitempty"` // the answer; none where the host is broken
}

// ToolResultPersist is an answer that is about to be given.
type ToolResultPersist struct {
	Info
	Result json.RawMessage `json:"result"` // {"result": the answer}
}

// A Decision is the answer of a hook. The zero Decision lets the call go on as it is.
type Decision struct {
	Modify json.RawMessage // takes the place of the arguments, or of {"result": the answer}
	Block  bool
	Reason string // of Block; the model reads it
}

// Before is a hook of BeforeToolCall. Name is for records and refusals.
type Before interface {
	Name() string
	BeforeToolCall(context.Context, BeforeToolCall) (Decision, error)
}

// After is a hook of AfterToolCall.
type After interface {
	Name() string
	AfterToolCall(context.Context, AfterToolCall) error
}

// Persist is a hook of ToolResultPersist.
type Persist interface {
	Name() string
	ToolResultPersist(context.Context, ToolResultPersist) (Decision, error)
}

// An Observer follows calls, for metrics and traces. It changes nothing.
type Observer interface {
	// Begin is told of a call that has come in. The call goes on with the context that comes back, and
	// end is called once.
	Begin(ctx context.Context, i Info) (_ context.Context, end func(End))
}

// End describes the end of a call.
type End struct {
	Outcome  string // "ok", or the kind of the refusal
	Broken   bool   // the host is
	Known    bool   // there is such a tool: else its name is anybody's words
	Path     string // the first that it was about
	Bytes    int64  // read or written
	Duration time.Duration
}

// An Error is the "no" of a hook.
type Error struct {
	Event, Hook string
	Reason      string // of the hook that blocked
	Err         error  // why a hook failed; nil: it blocked
}

func (e *Error) Error() string {
	if e.Err != nil {
		return "the hook " + e.Hook + " failed: " + e.Err.Error()
	}
	return "blocked by the hook " + e.Hook + ": " + e.Reason
}

func (e *Error) Unwrap() error { return e.Err }

// A Set is the hooks of a host, in the order in which they run. The zero Set has none.
type Set struct {
	Before  []Before
	After   []After
	Persist []Persist
	Timeout time.Duration // of each hook; 0: DefaultTimeout
	Allow   bool          // a hook that fails is passed over

	Observer Observer // of every call; may be nil
}

// DefaultTimeout bounds the time of a hook.
const DefaultTimeout = 5 * time.Second

// RunBefore runs the hooks of BeforeToolCall. check gives changed arguments in the form
// that the next hook sees, or says what is wrong with them. notes are for the record. The error is
// an *Error.
func (s *Set) RunBefore(ctx context.Context, p BeforeToolCall,
	check func(json.RawMessage) (json.RawMessage, error),
) (args json.RawMessage, notes []string, err error) {
	p.Event = BeforeToolCallEvent
	return chain(ctx, s, s.Before, p.Event, p.Arguments, check,
		func(ctx context.Context, h Before, payload json.RawMessage) (Decision, error) {
			now := p
			now.Arguments = payload
			return h.BeforeToolCall(ctx, now)
		})
}

// RunAfter runs the hooks of AfterToolCall.
func (s *Set) RunAfter(ctx context.Context, p AfterToolCall) (notes []string) {
	p.Event = AfterToolCallEvent
	for _, h := range s.After {
		now := p
		now.Result = bytes.Clone(p.Result)
		_, err := s.run(ctx, func(ctx context.Context) (Decision, error) {
			return Decision{}, h.AfterToolCall(ctx, now)
		})
		if err != nil {
			notes = append(notes, p.Event+" "+h.Name()+" failed: "+clean(err.Error()))
		}
	}
	return notes
}

// RunPersist runs the hooks of ToolResultPersist over the answer. check says what is wrong with a
// changed one. The error is an *Error.
func (s *Set) RunPersist(ctx context.Context, p ToolResultPersist, check func(json.RawMessage) error,
) (answer json.RawMessage, notes []string, err error) {
	p.Event = ToolResultPersistEvent
	unwrapped := func(data json.RawMessage) (json.RawMessage, error) {
		var changed struct{ Result json.RawMessage }
		if err := json.Unmarshal(data, &changed); err != nil || changed.Result == nil {
			return nil, errors.New(`the data is not {"result": …}`)
		}
		return changed.Result, check(changed.Result)
	}
	return chain(ctx, s, s.Persist, p.Event, p.Result, unwrapped,
		func(ctx context.Context, h Persist, payload json.RawMessage) (Decision, error) {
			now := p
			now.Result = slices.Concat([]byte(`{"result":`), payload, []byte("}"))
			return h.ToolResultPersist(ctx, now)
		})
}

// chain runs hooks one after the other over a payload, and gives it as the last one leaves it. check gives a changed
// payload in the form that the next hook sees.
func chain[H interface{ Name() string }](ctx context.Context, s *Set, hooks []H, event string, payload json.RawMessage,
	check func(json.RawMessage) (json.RawMessage, error), run func(context.Context, H, json.RawMessage) (Decision, error),
) (_ json.RawMessage, notes []string, err error) {
	for _, h := range hooks {
		d, err := s.run(ctx, func(ctx context.Context) (Decision, error) { return run(ctx, h, bytes.Clone(payload)) })
		changed := payload
		if err == nil && !d.Block && d.Modify != nil {
			if changed, err = check(d.Modify); err != nil {
				err = fmt.Errorf("what it changed is not right: %w", err)
			}
		}
		note := func(text string) { notes = append(notes, event+" "+h.Name()+" "+text) }
		switch {
		case err != nil && s.Allow:
			note("failed and was passed over: " + clean(err.Error()))
		case err != nil:
			note("failed: " + clean(err.Error()))
			return nil, notes, &Error{Event: event, Hook: h.Name(), Err: err}
		case d.Block:
			no := &Error{Event: event, Hook: h.Name(), Reason: clean(d.Reason)}
			note("blocked: " + no.Reason)
			return nil, notes, no
		case d.Modify != nil:
			note("changed the payload")
			payload = changed
		}
	}
	return payload, notes, nil
}

// run waits for a hook until its time is over. One that does not come back then is left behind.
func (s *Set) run(ctx context.Context, hook func(context.Context) (Decision, error)) (Decision, error) {
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(s.Timeout, DefaultTimeout))
	defer cancel()
	type reply struct {
		d   Decision
		err error
	}
	got := make(chan reply, 1)
	go func() {
		r := reply{err: errors.New("it gave up")} // by runtime.Goexit
		defer func() {
			if p := recover(); p != nil {
				r = reply{err: fmt.Errorf("it panicked: %v", p)}
			}
			got <- r
		}()
		d, err := hook(ctx)
		r = reply{d, err}
	}()
	var r reply
	select {
	case r = <-got:
	case <-ctx.Done():
		r.err = ctx.Err()
	}
	if errors.Is(r.err, context.DeadlineExceeded) || r.err == nil && ctx.Err() == context.DeadlineExceeded {
		r.err = errors.New("it took too long")
	}
	return r.d, r.err
}
