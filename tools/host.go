package tools

import (
	"context"
	"io"

	"moltisfs/internal/approval"
	"moltisfs/internal/dialect"
	"moltisfs/internal/hook"
	"moltisfs/internal/serve/mcp"
)

// A Call is one tool call as it came in. It is [dialect.Call], of which most hosts need
//
//	Principal, Session string          // who calls, and whose history counts
//	Turn               string          // groups the checkpoints of one prompt; may be empty
//	Tool               string
//	Args               json.RawMessage
//	Approver           approval.Approver // asked in the place of the host's
//	Client             string          // the program that calls, for the record
//	ByUser             bool            // a person calls, not an agent
//	Overlay            dialect.Overlay // as a *Editor: whose unsaved text counts
//
// The others are Heard, Tier, Scope, Page, Progress, Headers and Unavailable: until when an approver's
// answer has a hearer, how freely, where, how long answers are, how far it is, what a policy chain sees
// of the request, and why it can't run.
type Call = dialect.Call

// A Definition describes a tool to a model. It is [dialect.Definition]:
//
//	Name, Title, Description                     string
//	ReadOnly, Destructive, Idempotent, OpenWorld bool
//	InputSchema, OutputSchema                    json.RawMessage // JSON Schema 2020-12
//	Also                                         []string // other names it is called by
//	Entry                                        json.RawMessage // of a catalog, if it has one
//	Search                                       dialect.Search // for deferred tools
type Definition = dialect.Definition

// UnknownToolError is a call of a tool that is not there, or that this caller may not call. Its
// fields are Tool and Nearest, "" when nothing is close.
type UnknownToolError = dialect.UnknownToolError

// An Approver decides about one change. It is asked with no lock held and may take minutes; ctx
// ends with the approval timeout, and Ask must return then. It must be safe for concurrent use.
// [ApproverFunc] makes one of a function; [Nobody], [Terminal], [Yes] and [Remember] give ready ones.
type Approver interface {
	Ask(ctx context.Context, q Question) (Answer, error)
}

// Question is one change, ready to happen, put before an Approver. It is [approval.Question]:
//
//	ID                       string
//	Principal, Session, Tool string
//	Paths, New               []string // real names; those of them where nothing is yet
//	Summary                  string   // one line
//	Diff                     string   // unified, not escaped: show it through Escape
//	Added, Removed           int      // lines
//	Code                     []string // those of Paths that run code later
//	Warnings                 []string // what to look at before saying yes
//	Digest                   string   // of everything that the change is
//	Expires                  time.Time
type Question = approval.Question

// Answer is the decision of an Approver. The zero Answer refuses. It is [approval.Answer]:
//
//	Decision Decision
//	By       string         // who answered
//	Reason   string         // why not, in their own words: the model is told
//	Grant    Grant          // how far a yes goes; counts behind Remember
//	Over     interface{ Over(made bool) } // nil, or told of a yes whether the change was made then
type Answer = approval.Answer

// Decision is Approved, Denied, TimedOut, NobodyToAsk or Cancelled.
type Decision = approval.Decision

// ApproverFunc is a function as an Approver.
type ApproverFunc func(context.Context, Question) (Answer, error)

// Ask calls f.
func (f ApproverFunc) Ask(ctx context.Context, q Question) (Answer, error) { return f(ctx, q) }

// The decisions that an Approver may answer.
const (
	Approved    = approval.Approved
	Denied      = approval.Denied
	TimedOut    = approval.TimedOut
	NobodyToAsk = approval.NobodyToAsk
	Cancelled   = approval.Cancelled
)

// A Grant says how far a yes goes beyond the change that it was given to. It counts behind [Remember] only.
type Grant = approval.Grant

// Nobody answers every question with the ways in which somebody could be asked.
func Nobody(ways []string) Approver { return approval.Nobody(ways) }

// Terminal shows each question on out and reads the answer from in.
func Terminal(in io.Reader, out io.Writer) Approver { return approval.Terminal(in, out) }

// Yes approves every change, under the name by.
func Yes(by string) Approver { return approval.Yes(by) }

// Remember asks the approver of, and keeps the grants of its answers until it ends.
func Remember(of Approver) Approver { return approval.Remember(of) }

// Escape gives text without characters that a terminal acts on or that look like others. Line breaks stay if lines is set.
func Escape(text string, lines bool) string { return approval.Escape(text, lines) }

// Hooks run around every call, whichever dialect it came in by: Before, After and Persist in their order, each with Timeout (default: 5 s). A hook
// that fails blocks the call unless Allow is set. The Observer, if there is one, hears of every call. The zero value has none. It is [hook.Set].
type Hooks = hook.Set

// The hooks of each event, with the call that they are given and the decision that they return. No lock is held while a hook runs. Hooks must be safe
// for concurrent use, and must not close the suite that calls them.
type (
	BeforeHook  = hook.Before
	AfterHook   = hook.After
	PersistHook = hook.Persist

	BeforeToolCall    = hook.BeforeToolCall
	AfterToolCall     = hook.AfterToolCall
	ToolResultPersist = hook.ToolResultPersist
	HookDecision      = hook.Decision
)

// An Observer follows calls, for metrics and traces: Begin hears of a call that has come in with a CallInfo, and of its end with a CallEnd. A tracer
// starts its span in Begin and puts it into the context that Begin returns.
type (
	Observer = hook.Observer
	CallInfo = hook.Info
	CallEnd  = hook.End
)

// Metrics is an Observer that counts calls and gives them in the text format of Prometheus. The zero value is ready.
type Metrics = hook.Metrics

// A Dialect is a set of tools as a server offers them: [Suite.Dialect] gives the suite's own.
type Dialect = dialect.Dialect

// MCPOptions say how [ServeMCP] serves. The zero value is useful: the approver of the suite is asked. With Elicit the client is asked, which shows the
// question to its user.
type MCPOptions = mcp.Options

// ServeMCP answers a client of the Model Context Protocol on a pair of streams, until in ends or nobody takes the answers any more, which is no error,
// or until ctx is done. It closes neither stream, and a read from in may be left behind.
//
// Protocol revisions 2024-11-05 to 2025-11-25 (with the initialize handshake) and 2026-07-28 (without) are spoken side by side. Nothing but protocol is
// written to out. A line that is no message is answered with an error and skipped. When in ends, changes that wait for approval are withdrawn and
// all other calls under way are answered. It may run many times at once over one suite, each time for a client of its own.
func ServeMCP(ctx context.Context, d Dialect, in io.Reader, out io.Writer, o MCPOptions) error {
	return mcp.Serve(ctx, d, in, out, o)
}

// An Editor is the user's editor, as a client of the Agent Client Protocol. Read, Edit, MultiEdit
// and Write see and change its unsaved text, and the disk where it has none. Grep and Glob see the
// disk, and name the files of which this session has met unsaved text. It is [dialect.Editor]:
//
//	Read  func(ctx context.Context, path string) (text string, err error) // fs/read_text_file
//	Write func(ctx context.Context, path, text string) error              // fs/write_text_file
//
// Leave a callback nil if the client lacks it.
type Editor = dialect.Editor
