// Package hook is what a host hangs into every call, whichever dialect it came in by: code of its
// own, or programs that the configuration names (see [Command]).
//
//	BeforeToolCall     the arguments are valid, nothing is done yet: continue, change them, block
//	AfterToolCall      the call has ended: look on
//	ToolResultPersist  the answer is about to be given: continue, change it, withhold it
//
// The hooks of one event run one after the other. What one changed is what the next one sees, and
// what they change is checked again as if the caller had sent it. The first that blocks ends it.
//
// A hook that fails, panics, takes longer than [Set.Timeout] or answers nonsense blocks, unless
// [Set.Allow] is set: then it is passed over. AfterToolCall can't block. Each change, block and
// failure is in the audit record.
//
// No lock is held while a hook runs. Hooks MUST be safe for concurrent use, and MUST NOT close the
// suite that calls them.
package hook

import (
	"context"
	"encoding/json"
	"time"
)

// The events.
const (
	BeforeToolCallEvent    = "BeforeToolCall"
	AfterToolCallEvent     = "AfterToolCall"
	ToolResultPersistEvent = "ToolResultPersist"
)

// Info is what each event tells of its call.
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

// A Decision is what a hook wants. The zero Decision lets the call go on as it is.
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

// End is how a call ended.
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
