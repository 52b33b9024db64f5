// Package jettson is Jettson Files as a dialect over the engine: four tools that see one directory,
// which they call /workspace, and nothing else. It knows names, arguments, words and where each
// caller's workspace is. The engine does the work and keeps the promises.
//
// The text of the system, and its words for errors, are those of the published page "Jettson
// Files". What the page leaves out is said in its manner. 1 MB is 1,048,576 bytes here.
package jettson

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"time"

	"moltisfs/approval"
	"moltisfs/config"
	"moltisfs/dialect"
	"moltisfs/internal/args"
	"moltisfs/internal/engine"
	"moltisfs/internal/nearest"
	"moltisfs/internal/policy"
)

// Dialect is the four tools. It is safe for concurrent use.
type Dialect struct {
	e       *engine.Engine
	cfg     config.Jettson
	root    string // workspace_root
	asks    bool   // require_approval
	patient time.Duration
}

// ErrNoWorkspace says that the configuration has no place for a workspace.
var ErrNoWorkspace = errors.New("there is no workspace: neither workspace_root nor " +
	"tools.jettson.workspaces is set")

// Over is the dialect over an engine, which stays the caller's to close. The error is
// ErrNoWorkspace.
func Over(e *engine.Engine, cfg config.Jettson) (*Dialect, error) {
	fs := e.Config()
	if fs.WorkspaceRoot == "" && cfg.Workspaces == "" {
		return nil, ErrNoWorkspace
	}
	return &Dialect{e, cfg, fs.WorkspaceRoot, fs.RequireApproval,
		time.Duration(fs.ApprovalTimeout)}, nil
}

// tool is one row of the table.
type tool struct {
	name, title, doc string
	changes          bool
	args             *args.Spec
	run              func(context.Context, *call) error
}

// follows are the tools that a change here goes with: read-only by their names holds for all.
func (t tool) follows() []string {
	if t.changes {
		return []string{"Write", "Edit", "MultiEdit"}
	}
	return nil
}

var tools = []tool{
	{"jettson_files_read", "Read a file",
		"Reads a text file of /workspace. Of a file over 1 MB the first 1 MB is returned, with " +
			"truncated: true.", false, args.Of[pathArgs](nil), read},
	{"jettson_files_write", "Write a file",
		"Writes a text file of /workspace, and the directories above it. Overwrites an existing file.",
		true, args.Of[writeArgs](nil), write},
	{"jettson_files_list", "List a directory", "Lists a directory of /workspace.",
		false, args.Of[listArgs](nil), list},
	{"jettson_files_delete", "Delete a file",
		"Deletes a file of /workspace. Directories are refused.", true, args.Of[pathArgs](nil), remove},
}

type pathArgs struct {
	Path string `json:"path" doc:"Path relative to /workspace. Traversal (../) is refused."`
}

type writeArgs struct {
	Path    string `json:"path" doc:"Path relative to /workspace. Parent directories are created."`
	Content string `json:"content" doc:"UTF-8 content to write. Up to 5 MB."`
}

type listArgs struct {
	Path *string `json:"path,omitempty" default:"." doc:"Directory relative to /workspace."`
}

// call is one call on its way.
type call struct {
	*engine.Call
	d       *Dialect
	args    any
	path    string // as the model spells it
	home    string // the workspace; absolute
	at      string // the path within it; absolute
	answers any
}

// Definitions are the tools that [tools.policy] leaves.
func (d *Dialect) Definitions() []dialect.Definition { return definitions(d.e.Tools()) }

// DefinitionsUnder are those of the tools that a policy leaves.
func DefinitionsUnder(p config.Policy) ([]dialect.Definition, error) {
	lists, err := policy.NewTools(p.Allow, p.Deny)
	if err != nil {
		return nil, err
	}
	return definitions(lists), nil
}

func definitions(lists policy.Tools) (out []dialect.Definition) {
	for _, t := range tools {
		if lists.Allows(t.name, t.follows()...) {
			out = append(out, dialect.Definition{
				Name: t.name, Title: t.title, Description: t.doc, ReadOnly: !t.changes,
				Destructive: t.changes, Idempotent: t.name != "jettson_files_delete",
				InputSchema: t.args.Schema(), OutputSchema: json.RawMessage(`{"type":"object"}`),
			})
		}
	}
	return out
}

// Call runs one tool.
func (d *Dialect) Call(ctx context.Context, in dialect.Call) (dialect.Answer, error) {
	c := &call{d: d, Call: &engine.Call{
		Principal: in.Principal, Session: in.Session, Turn: in.Turn, Dialect: "jettson",
		Tool: in.Tool, Client: engine.Client{Approver: in.Approver}, Tier: in.Tier, ByUser: in.ByUser,
	}}
	c.home = d.workspace(in.Principal, in.Session)
	c.Scope = within(c.home, in.Scope)
	t, unknown := d.tool(in.Tool)
	op := engine.Operation{
		Unknown: unknown != nil, Args: in.Args, Changes: t.changes, Follows: t.follows(),
		Time: time.Minute,
	}
	if t.changes && (d.asks || in.Tier == approval.TierAsk) {
		op.Time += d.patient
	}
	answer := &Answer{tool: t.name}
	op.Decode = func(raw json.RawMessage) (err error) {
		if unknown != nil {
			return unknown
		}
		if c.args, err = t.args.Decode(raw); err != nil {
			return err
		}
		c.resolve()
		return nil
	}
	op.Run = func(ctx context.Context) error {
		if c.at == "" {
			return errEscapes
		}
		return t.run(ctx, c)
	}
	op.Refuse = func(_ context.Context, err error) string {
		if unknown != nil {
			return "unknown_tool"
		}
		reason := engine.Reason(err)
		if reason == nil {
			return ""
		}
		answer.kind, c.answers = string(reason.Code), map[string]string{"error": c.sentence(err, reason)}
		return answer.kind
	}
	op.Answer = func() (_ json.RawMessage, err error) {
		if answer.json == nil {
			answer.json, err = encode(c.answers)
		}
		return answer.json, err
	}
	op.Replace = func(raw json.RawMessage) error { answer.json = raw; return nil }
	if err := d.e.Do(ctx, c.Call, op); err != nil || unknown != nil {
		if errors.Is(err, engine.ErrClosed) || unknown == nil {
			return nil, err
		}
		return nil, errors.Join(unknown, err)
	}
	_, err := op.Answer()
	return answer, err
}

func (d *Dialect) tool(name string) (tool, *dialect.UnknownToolError) {
	var names []string
	for _, t := range tools {
		if !d.e.Tools().Allows(t.name, t.follows()...) {
			continue
		}
		if t.name == name {
			return t, nil
		}
		names = append(names, t.name)
	}
	return tool{}, &dialect.UnknownToolError{Tool: name, Nearest: nearest.Of(name, names)}
}

// Answer is what a call came to: the page's object, or {"error": …}.
type Answer struct {
	tool, kind string
	json       json.RawMessage
}

// Kind is the code of a refusal, else the tool's name.
func (a *Answer) Kind() string {
	if a.kind != "" {
		return a.kind
	}
	return a.tool
}

func (a *Answer) Refused() bool                    { return a.kind != "" }
func (a *Answer) Text() string                     { return string(a.json) }
func (a *Answer) JSON(bool) ([]byte, error)        { return a.json, nil }
func (a *Answer) Blocks() ([]dialect.Block, error) { return nil, nil }

func encode(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}
