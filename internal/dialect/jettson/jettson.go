// Package jettson is Jettson Files as a dialect over the engine: four tools that see one directory,
// which they call /workspace, and nothing else. It knows names, arguments, words and where each
// caller's workspace is. The engine does the work and keeps the promises.
//
// The words are those of the published page "Jettson Files". What the page leaves out is said in its
// manner. 1 MB is 1,048,576 bytes here.
package jettson

import (
	"context"
	"encoding/json"
	"errors"

	"moltisfs/config"
	"moltisfs/dialect"
	"moltisfs/internal/args"
	"moltisfs/internal/engine"
	"moltisfs/internal/nearest"
	"moltisfs/internal/policy"
)

// Dialect is the four tools. It is safe for concurrent use.
type Dialect struct {
	e   *engine.Engine
	cfg config.Jettson
}

// ErrNoWorkspace says that the configuration has no place for a workspace.
var ErrNoWorkspace = errors.New("there is no workspace: neither workspace_root nor " +
	"tools.jettson.workspaces is set")

// Over is the dialect over an engine, which stays the caller's to close. The error is
// ErrNoWorkspace.
func Over(e *engine.Engine, cfg config.Jettson) (*Dialect, error) {
	if e.Config().WorkspaceRoot == "" && cfg.Workspaces == "" {
		return nil, ErrNoWorkspace
	}
	return &Dialect{e, cfg}, nil
}

// tool is one row of the table.
type tool struct {
	name, title, doc string
	follows          []string // what it goes with; nil where it changes nothing
	args             *args.Spec
	run              func(context.Context, *call) error
}

// changes are what [tools.policy] denies to deny changes: it holds for these tools too.
var changes = []string{"Write", "Edit", "MultiEdit"}

var tools = []tool{
	{"jettson_files_read", "Read a file", "Reads a text file of /workspace. Of a file over 1 MB " +
		"the first 1 MB is returned, with truncated: true.", nil, args.Of[pathArgs](nil), read},
	{"jettson_files_write", "Write a file", "Writes a text file of /workspace, and the directories " +
		"above it. Overwrites an existing file.", changes, args.Of[writeArgs](nil), write},
	{"jettson_files_list", "List a directory", "Lists a directory of /workspace.",
		nil, args.Of[listArgs](nil), list},
	{"jettson_files_delete", "Delete a file", "Deletes a file of /workspace. Directories are refused.",
		changes, args.Of[pathArgs](nil), remove},
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
		if lists.Allows(t.name, t.follows...) {
			out = append(out, dialect.Definition{
				Name: t.name, Title: t.title, Description: t.doc, ReadOnly: t.follows == nil,
				Destructive: t.follows != nil, Idempotent: t.name != "jettson_files_delete",
				InputSchema: t.args.Schema(), OutputSchema: json.RawMessage(`{"type":"object"}`),
			})
		}
	}
	return out
}

// call is one call on its way.
type call struct {
	*engine.Call
	*Dialect
	path, content string // as the model gives them
	home, at      string // the workspace, and the path in it; absolute. at: "" where it leads out
	answer        reply
}

// Call runs one tool.
func (d *Dialect) Call(ctx context.Context, in dialect.Call) (dialect.Answer, error) {
	c := &call{Dialect: d, home: d.workspace(in.Principal, in.Session),
		Call: engine.Taken(in, "jettson", in.Tool)}
	t, unknown := d.tool(in.Tool)
	if unknown != nil {
		return nil, d.e.Unknown(ctx, c.Call, in, nil, unknown)
	}
	c.Scope = (*engine.Scope)(in.Scope.Within(c.home))
	out := &Answer{kind: t.name}
	op := engine.Operation{Args: in.Args, Changes: t.follows != nil, Follows: t.follows,
		Time: d.e.TimeFor(t.follows != nil, in.Tier)}
	op.Decode = func(raw json.RawMessage) error {
		given, err := t.args.Decode(raw)
		if err == nil {
			c.resolve(given)
		}
		return err
	}
	op.Run = func(ctx context.Context) error {
		if c.at == "" {
			return errEscapes
		}
		return t.run(ctx, c)
	}
	op.Refuse = func(_ context.Context, err error) string {
		reason := engine.Reason(err)
		if reason == nil {
			return ""
		}
		c.answer = reply{Error: "Jettson Files rejected the operation: " + c.why(err, reason)}
		out.kind, out.refused = string(reason.Code), true
		return out.kind
	}
	op.Answer = func() (_ json.RawMessage, err error) {
		if out.json == nil {
			out.json, err = args.Encode(c.answer)
		}
		return out.json, err
	}
	op.Replace = func(raw json.RawMessage) error { out.json = raw; return nil }
	if err := d.e.Do(ctx, c.Call, op); err != nil {
		return nil, err
	}
	_, err := op.Answer()
	return out, err
}

func (d *Dialect) tool(name string) (tool, error) {
	var names []string
	for _, t := range tools {
		if !d.e.Tools().Allows(t.name, t.follows...) {
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
	kind    string // the tool, or the code of the refusal
	refused bool
	json    json.RawMessage
}

// These implement [dialect.Answer].
func (a *Answer) Kind() string                     { return a.kind }
func (a *Answer) Refused() bool                    { return a.refused }
func (a *Answer) Text() string                     { return string(a.json) }
func (a *Answer) JSON(bool) ([]byte, error)        { return a.json, nil }
func (a *Answer) Blocks() ([]dialect.Block, error) { return nil, nil }
