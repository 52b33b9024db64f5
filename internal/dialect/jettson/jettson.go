// Package jettson is Jettson Files as a dialect over the engine: four tools that see one directory,
// which they call /workspace, and nothing else. It knows names, arguments, words and where each
// caller's workspace is. The engine does the work and keeps the promises.
//
// The words are those of the published page "Jettson Files". Cases that the page leaves out are told in its
// manner. 1 MB is 1,048,576 bytes here.
package jettson

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"moltisfs/config"
	"moltisfs/internal/args"
	"moltisfs/internal/dialect"
	"moltisfs/internal/engine"
	"moltisfs/internal/guardfs"
	"moltisfs/internal/policy"
	"moltisfs/internal/refusal"
	"moltisfs/internal/text"
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

// With is the dialect of a server: with the workspaces that are kept for its sessions. Workspaces of
// servers that were killed go to the trash.
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

var tools = []tool{
	{"jettson_files_read", "Read a file", "Reads a text file of /workspace. Of a file over 1 MB, or " +
		"more than the client shows, the beginning is returned, with truncated: true.", nil, args.Of[pathArgs](nil), read},
	{"jettson_files_write", "Write a file", "Writes a text file of /workspace, and the directories " +
		"above it. Overwrites an existing file.", engine.Changing, args.Of[writeArgs](nil), write},
	{"jettson_files_list", "List a directory", "Lists a directory of /workspace.",
		nil, args.Of[listArgs](nil), list},
	{"jettson_files_delete", "Delete a file", "Deletes a file of /workspace. Directories are refused.",
		engine.Changing, args.Of[pathArgs](nil), remove},
}

type pathArgs struct {
	Path string `json:"path" doc:"Path relative to /workspace. Traversal (../) is refused."`
}

type writeArgs struct {
	Path    string `json:"path" doc:"Path relative to /workspace. Parent directories are created."`
	Content string `json:"content" doc:"UTF-8 content to write. Up to 5 MB."`
}

type listArgs struct {
	Path   *string `json:"path,omitempty" default:"." doc:"Directory relative to /workspace."`
	Limit  *int    `json:"limit,omitempty" default:"1000" min:"1" max:"10000" doc:"Entries to return. left_out counts those after them."`
	Offset *int    `json:"offset,omitempty" default:"0" min:"0" doc:"Entries to pass over."`
}

// Definitions are the tools that [tools.policy] leaves.
func (d *Dialect) Definitions() []dialect.Definition { return definitions(d.e.Tools()) }

// DefinitionsUnder lists the definitions of the tools that a configuration leaves.
func DefinitionsUnder(cfg config.Tools) ([]dialect.Definition, error) {
	return definitions(engine.ToolsUnder(cfg)), nil
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
	limit, offset int    // of a list
	home, at      string // the workspace, and the path in it; absolute. at: "" where it leads out
	page          dialect.Page
	answer        reply
}

// Call runs one tool.
func (d *Dialect) Call(ctx context.Context, in dialect.Call) (dialect.Answer, error) {
	c := &call{Dialect: d, home: d.homes.Of(in.Principal, in.Session),
		Call: engine.NewCall(in, "jettson", in.Tool)}
	if in.Page.Bytes > 0 {
		c.page = d.e.Page(in.Page)
	}
	t, unknown := d.tool(in.Tool)
	if unknown != nil {
		return nil, d.e.Unknown(ctx, c.Call, in, nil, unknown)
	}
	c.Scope = (*engine.Scope)(in.Scope.Within(c.home))
	op := engine.Operation[any, *dialect.Object]{
		Args: in.Args, Changes: t.follows != nil, Follows: t.follows,
		Time: d.e.TimeFor(t.follows != nil, in.Tier),
		Decode: func(raw json.RawMessage) (any, error) {
			given, err := t.args.Decode(raw)
			if err == nil {
				c.resolve(given)
			}
			return given, err
		},
	}
	return refusal.Do(ctx, d.e, c.Call, op, func(ctx context.Context, _ any) (any, error) {
		if c.at == "" {
			return nil, errEscapes
		}
		err := d.homes.Enter(ctx, c.Call, c.home)
		if err == nil {
			err = t.run(ctx, c)
		}
		return c.answer, err
	}, func(r *engine.Refusal) any { return reply{Error: "Jettson Files rejected the operation: " + c.why(r)} })
}

func (d *Dialect) tool(name string) (tool, error) {
	var names []string
	for _, t := range tools {
		if d.e.Tools().Allows(t.name, t.follows != nil, t.follows...) {
			names = append(names, t.name)
		}
	}
	if !slices.Contains(names, name) {
		return tool{}, &dialect.UnknownToolError{Tool: name, Nearest: args.Nearest(name, names)}
	}
	return tools[slices.IndexFunc(tools, func(t tool) bool { return t.name == name })], nil
}

// EndSession moves the workspace of a session to the trash, where each session has one: the last of
// the servers that used it does.
func (d *Dialect) EndSession(ctx context.Context, principal, session string, forever bool) error {
	c := ending(principal, session)
	return errors.Join(d.homes.End(ctx, &c), d.e.EndSession(principal, session, forever))
}

// resolve makes a path of the host's out of the model's. A path that would leave /workspace has none. For example, /workspace/a and a are
// both a in the workspace, and a/../b is nothing.
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
		if c.limit = 1000; a.Limit != nil {
			c.limit = *a.Limit
		}
		if a.Offset != nil {
			c.offset = *a.Offset
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

// The bounds of the page.
const (
	maxRead  = 1 << 20
	maxWrite = 5 << 20
)

// errEscapes is the page's refusal of a path that leaves the workspace.
var errEscapes = &args.Error{What: "path escapes /workspace or is empty."}

func refuse(format string, a ...any) error { return args.Errorf("", format, a...) }

func read(ctx context.Context, c *call) error {
	return c.Read(ctx, c.at,
		func(ctx context.Context, s *engine.Source) (*engine.ReadRecord, error) {
			for most := int64(maxRead); ; {
				part, sight, err := s.Bytes(ctx, 0, min(s.Info.Size, most), maxRead)
				if err != nil {
					return nil, err
				}
				whole := part
				for cut := 1; cut < utf8.UTFMax && s.Info.Size > most && !utf8.Valid(whole); cut++ {
					whole = part[:len(part)-cut] // the last character may be cut in two
				}
				if !utf8.Valid(whole) {
					return nil, refuse("%s is not UTF-8 text — use Jettson Shell for that.", c.path)
				}
				content := string(whole)
				c.answer = reply{Path: c.path, Content: &content, Size: new(s.Info.Size),
					Truncated: new(s.Info.Size > most)}
				c.answer.Hidden, c.answer.Lines = text.HiddenLines(content)
				over, n := int64(c.page.Over(textOf(c.answer))), int64(len(part))
				if over <= 0 || n <= utf8.UTFMax {
					return sight, nil
				}
				most = max(min(n-1, n*int64(c.page.Bytes)/(int64(c.page.Bytes)+over)), utf8.UTFMax)
			}
		})
}

// textOf is the text of an answer.
func textOf(r reply) string {
	raw, err := args.Encode(r)
	if err != nil {
		return ""
	}
	return string(raw)
}

func write(ctx context.Context, c *call) error {
	if len(c.content) > maxWrite {
		return refuse("the content is %d bytes, over the limit of 5 MB — use Jettson Shell for that.",
			len(c.content))
	}
	if c.at == c.home {
		return refuse("%s is a directory — name a file in it.", c.path)
	}
	if err := c.homes.Make(ctx, c.Call, c.home); err != nil {
		return err
	}
	_, _, err := c.Write(ctx, engine.WriteArgs{
		Path: c.at, Raw: []byte(c.content),
		Rules: engine.Rules{Parents: true, Meant: true},
	})
	c.answer = reply{Path: c.path, Written: new(len(c.content))}
	return err
}

// reply is every answer of the page, each with the fields that it has.
type reply struct {
	Error     string   `json:"error,omitempty"`
	Path      string   `json:"path,omitempty"`
	Content   *string  `json:"content,omitempty"`
	Size      *int64   `json:"size_bytes,omitempty"`
	Truncated *bool    `json:"truncated,omitempty"`
	Hidden    int      `json:"hidden_chars,omitempty"` // an extra of ours, as what follows
	Lines     []int    `json:"hidden_lines,omitempty"`
	Written   *int     `json:"bytes_written,omitempty"`
	Entries   *[]entry `json:"entries,omitempty"`
	Odd       []string `json:"odd_names,omitempty"`
	LeftOut   int      `json:"left_out,omitempty"` // entries after these
	Next      int      `json:"next_offset,omitempty"`
	Deleted   bool     `json:"deleted,omitempty"`
}

// entry is one of a listing.
type entry struct {
	Name  string `json:"name"`
	Size  int64  `json:"size_bytes"`
	IsDir bool   `json:"is_dir"`
}

func list(ctx context.Context, c *call) error {
	found, err := c.List(ctx, c.at)
	if errors.Is(err, fs.ErrNotExist) && c.at == c.home && c.homes.Lazy() {
		found, err = &engine.Listing{}, nil // it is made with its first file
	}
	if err != nil {
		return err
	}
	entries, names := []entry{}, []string(nil)
	in := found.Entries[min(c.offset, len(found.Entries)):]
	after := max(0, len(in)-c.limit)
	for _, e := range in[:len(in)-after] {
		one := entry{path.Base(e.Path), e.Size, e.Kind == guardfs.KindDir}
		if e.Kind == guardfs.KindSymlink { // what it leads to, if that is in the workspace
			if to, err := c.Stat(ctx, e.Path, true); err == nil {
				one.Size, one.IsDir = to.Size, to.Kind == guardfs.KindDir
			}
		}
		if one.IsDir {
			one.Size = 0
		}
		entries, names = append(entries, one), append(names, one.Name)
	}
	show := func(n int) string {
		some := entries[:n]
		c.answer = reply{Path: c.path, Entries: &some, Odd: engine.OddNames("", slices.Values(names)), LeftOut: after + len(entries) - n}
		if c.answer.LeftOut > 0 {
			c.answer.Next = c.offset + n
		}
		return textOf(c.answer)
	}
	show(c.page.Fit(len(entries), show))
	c.Trace.Paths = []string{c.at}
	return nil
}

func remove(ctx context.Context, c *call) error {
	what, err := c.Stat(ctx, c.at, false)
	if err != nil {
		return err
	}
	if what.Kind == guardfs.KindDir {
		return refuse("%s is a directory — use Jettson Shell with rmdir for that.", c.path)
	}
	_, err = c.Delete(ctx, c.at, engine.DeleteOptions{})
	c.answer = reply{Path: c.path, Deleted: true}
	return err
}

// why says why a call was refused: in the page's words where it has some. It names no path of the host's.
func (c *call) why(r *engine.Refusal) string {
	shown := fmt.Sprintf("%.1000s", c.path)
	inList := c.Tool == "jettson_files_list"
	file, _ := r.Facts.(*guardfs.NotRegularError)
	switch {
	case r.Code == engine.CodePathDenied && r.Class() == "" && r.Rule() != policy.RuleChain:
		return errEscapes.What
	case file != nil && file.Kind == "directory" && c.Tool == "jettson_files_read":
		return shown + " is a directory — use jettson_files_list for that."
	case r.Cause == engine.NotADirectory && inList:
		return shown + " is a file — use jettson_files_read for that."
	case r.Cause == engine.NotADirectory:
	case r.Code == engine.CodeNotFound && inList:
		return "no such directory: " + shown
	case r.Code == engine.CodeNotFound:
		return "no such file: " + shown
	}
	told := refusal.Tell(r, refusal.Voice{Path: shown, Private: true, Now: map[string]string{
		"plain": "yes", "by": " with jettson_files_read"}, Names: func(name string) string {
		return map[string]string{"Glob": "jettson_files_list"}[name]
	}})
	if told.Hint == "" {
		return told.Says
	}
	return told.Says + " — " + refusal.Clause(told.Hint) + "."
}
