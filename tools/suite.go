package tools

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"time"

	"moltisfs/config"
	"moltisfs/internal/dialect"
	"moltisfs/internal/engine"
	"moltisfs/internal/nearest"
	"moltisfs/internal/policy"
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

// An Editor is the user's editor, as a client of the Agent Client Protocol. Read, Edit, MultiEdit
// and Write see and change its unsaved text, and the disk where it has none. Grep and Glob see the
// disk, and name the files of which this session has met unsaved text. It is [dialect.Editor]:
//
//	Read  func(ctx context.Context, path string) (text string, err error) // fs/read_text_file
//	Write func(ctx context.Context, path, text string) error              // fs/write_text_file
//
// nil is what the client does not offer.
type Editor = dialect.Editor

// A Definition is what a model is told of a tool. It is [dialect.Definition]:
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

// Suite is the tools over one policy, one audit record and one checkpoint
// history. It is safe for concurrent use.
type Suite struct {
	cfg    config.FS
	tools  policy.Tools
	engine *engine.Engine
	loops  *loops       // nil when reads are not tracked
	page   dialect.Page // what fits whoever is answered
	logger *slog.Logger
	close  func() error // the engine's, once; nil for one of others
}

// ErrClosed is the error of every call after Close, and of one that Close met while it waited for
// its approver. Such a call has changed nothing.
var ErrClosed = engine.ErrClosed

// Over is the suite over an engine that is open already, and that other dialects may stand on: one
// policy, one audit record and one history for all of them. Who opened the engine closes it.
func Over(e *engine.Engine) *Suite {
	s := &Suite{cfg: e.Config(), tools: e.Tools(), engine: e, logger: e.Logger()}
	s.page = s.fitted(dialect.Page{}).page
	if s.cfg.TrackReads {
		s.loops = &loops{sessions: map[[2]string]*lastRead{}}
	}
	return s
}

// Close lets no call in any more, takes back the questions that wait for an answer, waits for the
// calls under way, and gives back what Open took. A call whose question was taken back changes
// nothing and ends with ErrClosed. Every other call runs to its end: whoever is in a hurry cancels
// the contexts of its calls.
//
// Closing again, at the same time too, waits likewise and answers the same. Options.Progress must
// not call it: a call under way waits for that. A suite that is Over an engine leaves it open.
func (s *Suite) Close() error {
	if s.close == nil {
		return nil
	}
	return s.close()
}

// Containment says how firmly paths are held on this system: "kernel", "walk"
// or "best_effort".
func (s *Suite) Containment() string { return s.engine.Containment() }

// Definitions are the tools that may be called, in the order of [All]. A tool
// that [tools.policy] denies is not among them.
func (s *Suite) Definitions() []Definition {
	var out []Definition
	for i := range table {
		if table[i].allowed(s.tools) {
			out = append(out, table[i].definition())
		}
	}
	return out
}

// call is Call, and a call that was cancelled is a refusal too.
func (s *Suite) call(ctx context.Context, in Call) (p Payload, err error) {
	c, tool := engine.Taken(in, "tools", in.Tool), row(in.Tool)
	if tool == nil || !tool.allowed(s.tools) {
		var follows []string
		if tool != nil {
			follows = tool.Follows
		}
		return nil, s.engine.Unknown(ctx, c, in, follows, s.unknown(in.Tool))
	}
	var limit time.Duration
	if tool.OwnTime {
		limit = s.engine.OwnTime(tool.Effect != Reads)
	} else {
		limit = s.engine.TimeFor(tool.Effect != Reads, in.Tier)
	}
	var args any
	var note string
	var out Payload // a call that is left behind still writes to it: so it is not p
	err = s.engine.Do(ctx, c, engine.Operation{
		Changes: tool.Effect != Reads, Follows: tool.Follows, Time: limit,
		Args: in.Args,
		Decode: func(raw json.RawMessage) (_ any, err error) {
			if args, note, err = tool.decode(raw); err != nil {
				return nil, err
			}
			if path := pathOf(args); path != "" {
				c.Trace.Paths = []string{path}
			}
			if d, ok := args.(dryRunner); ok {
				c.Trace.DryRun = d.dryRun()
			}
			if a, ok := args.(asker); ok {
				c.Trace.Asked = a.asked()
			}
			return args, nil
		},
		Run: func(ctx context.Context) (err error) {
			out, err = tool.run(ctx, s.fitted(in.Page), c, args)
			switch {
			case err != nil:
			case tool.Effect != Reads:
				s.loops.reset(c)
			case c.Trace.Bytes == 0:
				c.Trace.Bytes = int64(len(out.Text()))
			}
			if n, ok := out.(interface{ read(string) }); ok && note != "" {
				n.read(note)
			}
			return err
		},
		Refuse: func(ctx context.Context, err error) string {
			r := s.refuse(c, tool.Name, args, err)
			if r == nil {
				return ""
			}
			out = r
			return r.Reason
		},
		Answer: func() (json.RawMessage, error) { return Encode(out) },
		Replace: func(raw json.RawMessage) error {
			r, err := replaced(raw, Refused(out))
			if err == nil {
				out = r
			}
			return err
		},
	})
	if left, ok := errors.AsType[*engine.LeftBehind](err); ok {
		return s.refuse(engine.Taken(in, "tools", in.Tool), tool.Name, nil, left.Refusal), nil
	}
	if err != nil {
		return nil, err
	}
	if w, ok := out.(interface{ warn(string) }); ok && c.Trace.Unrecorded {
		w.warn("the outcome could not be written to the audit log")
	}
	return out, nil
}

func row(name string) *Tool {
	for i := range table {
		if table[i].Name == name {
			return &table[i]
		}
	}
	return nil
}

func (s *Suite) unknown(name string) *UnknownToolError {
	var names []string
	for _, d := range s.Definitions() {
		names = append(names, d.Name)
	}
	return &UnknownToolError{Tool: name, Nearest: nearest.Of(name, names)}
}
