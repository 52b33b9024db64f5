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
	"path"
	"slices"
	"strings"

	"moltisfs/config"
	"moltisfs/internal/args"
	"moltisfs/internal/dialect"
	"moltisfs/internal/engine"
	"moltisfs/internal/nearest"
	"moltisfs/internal/policy"
)

// Dialect is the four tools. It is safe for concurrent use.
type Dialect struct {
	e     *engine.Engine
	cfg   config.Jettson
	homes *engine.Workspaces
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
	return &Dialect{e, cfg, e.Workspaces(cfg.Workspaces, cfg.PerSession, &engine.Homes{})}, nil
}

// With is the dialect of a server: with the workspaces that are kept for its sessions. Those that
// servers left which were killed go to the trash.
func (d *Dialect) With(homes *engine.Homes) *Dialect {
	d.homes = d.e.Workspaces(d.cfg.Workspaces, d.cfg.PerSession, homes)
	if err := d.homes.Sweep(context.Background(), ending("", "")); err != nil {
		d.e.Logger().Warn("a workspace whose server was killed could not be moved to the trash", "err", err)
	}
	return d
}

// ending is the call that ends a session.
func ending(principal, session string) engine.Call {
	return engine.Call{Principal: principal, Session: session, Dialect: "jettson", Tool: "jettson_session_end"}
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

// DefinitionsUnder are those of the tools that a configuration leaves.
func DefinitionsUnder(cfg config.Tools) ([]dialect.Definition, error) {
	lists, err := policy.NewTools(cfg.Policy.Names(), cfg.Policy.Deny, cfg.FS.ReadOnly)
	if err != nil {
		return nil, err
	}
	return definitions(lists), nil
}

func definitions(lists policy.Tools) (out []dialect.Definition) {
	for _, t := range tools {
		if lists.Allows(t.name, t.follows != nil, t.follows...) {
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
	c := &call{Dialect: d, home: d.homes.Of(in.Principal, in.Session),
		Call: engine.Taken(in, "jettson", in.Tool)}
	t, unknown := d.tool(in.Tool)
	if unknown != nil {
		return nil, d.e.Unknown(ctx, c.Call, in, nil, unknown)
	}
	c.Scope = (*engine.Scope)(in.Scope.Within(c.home))
	out := &dialect.Object{Of: t.name}
	err := d.e.Do(ctx, c.Call, engine.Operation{
		Args: in.Args, Changes: t.follows != nil, Follows: t.follows,
		Time: d.e.TimeFor(t.follows != nil, in.Tier),
		Decode: func(raw json.RawMessage) (any, error) {
			given, err := t.args.Decode(raw)
			if err == nil {
				c.resolve(given)
			}
			return given, err
		},
		Run: func(ctx context.Context) (err error) {
			if c.at == "" {
				return errEscapes
			}
			if err = d.homes.Enter(ctx, c.Call, c.home); err == nil {
				err = t.run(ctx, c)
			}
			if err == nil {
				out.Content, err = args.Encode(c.answer)
			}
			return err
		},
		Refuse: func(_ context.Context, err error) string {
			reason := engine.Reason(err)
			if reason == nil {
				return ""
			}
			out.Of, out.No = string(reason.Code), true
			if out.Content, err = rejected(c.why(reason)); err != nil {
				return ""
			}
			return out.Of
		},
		Answer:  func() (json.RawMessage, error) { return out.Content, nil },
		Replace: func(raw json.RawMessage) error { out.Content = raw; return nil },
	})
	if left, ok := errors.AsType[*engine.LeftBehind](err); ok {
		c := &call{Dialect: d, home: c.home, Call: engine.Taken(in, "jettson", in.Tool)}
		out := &dialect.Object{Of: string(left.Refusal.Code), No: true}
		out.Content, err = rejected(c.why(left.Refusal))
		return out, err
	}
	if err != nil {
		return nil, err
	}
	return out, nil
}

// rejected is the answer of a refusal.
func rejected(why string) (json.RawMessage, error) {
	return args.Encode(reply{Error: "Jettson Files rejected the operation: " + why})
}

func (d *Dialect) tool(name string) (tool, error) {
	var names []string
	for _, t := range tools {
		if d.e.Tools().Allows(t.name, t.follows != nil, t.follows...) {
			names = append(names, t.name)
		}
	}
	if !slices.Contains(names, name) {
		return tool{}, &dialect.UnknownToolError{Tool: name, Nearest: nearest.Of(name, names)}
	}
	return tools[slices.IndexFunc(tools, func(t tool) bool { return t.name == name })], nil
}

// EndSession moves the workspace of a session to the trash, where each session has one: the last of
// the servers that used it does.
func (d *Dialect) EndSession(ctx context.Context, principal, session string) error {
	c := ending(principal, session)
	return d.homes.End(ctx, &c)
}

// resolve makes a path of the host's out of the model's. What would leave /workspace has none.
func (c *call) resolve(given any) {
	c.path, c.at = ".", ""
	switch a := given.(type) {
	case *pathArgs:
		c.path = a.Path
	case *writeArgs:
		c.path, c.content = a.Path, a.Content
	case *listArgs:
		if a.Path != nil {
			c.path = *a.Path
		}
	}
	rel := c.path
	if rest, ok := strings.CutPrefix(rel, "/workspace"); ok && (rest == "" || rest[0] == '/') {
		rel = "." + rest
	}
	if rel == "" || rel[0] == '/' || strings.ContainsRune(rel, 0) ||
		slices.Contains(strings.Split(rel, "/"), "..") {
		return
	}
	c.at = path.Join(c.home, rel)
	c.Trace.Paths = []string{c.at}
}
