// Package acp is the file methods of the Agent Client Protocol, version 1, as a dialect over the
// engine: fs/read_text_file and fs/write_text_file, and the question whether a program may run
// (terminal/create). It knows parameters, results, error codes and words. Messages come and go
// by internal/serve/acp.
//
// A call comes with the editor's texts as its Overlay, if the editor has the methods. Then they are
// what is read and written, a file that is made included. An Overlay that is also a [Giver] may say
// that it takes none: then a change goes to the disk, if the editor has nothing unsaved there.
package acp

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"path"
	"strconv"
	"strings"
	"time"

	"moltisfs/config"
	"moltisfs/internal/approval"
	"moltisfs/internal/args"
	"moltisfs/internal/dialect"
	"moltisfs/internal/engine"
	"moltisfs/internal/guardfs"
	"moltisfs/internal/refusal"
)

// The methods that are calls.
const (
	Read     = "fs/read_text_file"
	Write    = "fs/write_text_file"
	Terminal = "terminal/create"
)

// A Giver is an Overlay that may only give texts.
type Giver interface{ Takes() bool }

// Dialect is the methods. It is safe for concurrent use.
type Dialect struct {
	e   *engine.Engine
	cfg config.ACP
}

// Over is the dialect over an engine, which stays the caller's to close.
func Over(e *engine.Engine, cfg config.ACP) *Dialect { return &Dialect{e, cfg} }

// Offers says whether [tools.policy] and read_only leave a method.
func (d *Dialect) Offers(method string) bool {
	return d.e.Tools().Allows(method, method == Write, follows(method)...)
}

func follows(method string) []string {
	if method == Write {
		return engine.Changing
	}
	return nil
}

// call is one call on its way.
type call struct {
	*engine.Call
	*Dialect
	params params
	answer any
}

// Call carries out one method. The JSON of the answer is its result, or of a refusal the error
// object of JSON-RPC.
func (d *Dialect) Call(ctx context.Context, in dialect.Call) (dialect.Answer, error) {
	c := &call{Dialect: d, Call: engine.NewCall(in, "acp", in.Tool)}
	run := map[string]func(context.Context) error{
		Read: c.read, Write: c.write, Terminal: c.terminal,
	}[in.Tool]
	if run == nil {
		return nil, d.e.Unknown(ctx, c.Call, in, nil, &dialect.UnknownToolError{Tool: in.Tool})
	}
	limit := d.e.TimeFor(in.Tool == Write, in.Tier)
	if in.Tool == Terminal {
		limit = time.Minute + time.Duration(d.e.Config().ApprovalTimeout)
	}
	return c.do(ctx, in, limit, func(raw json.RawMessage) error {
		if err := args.CheckText(raw); err != nil {
			return err
		}
		c.params = params{}
		if json.Unmarshal(raw, &c.params) != nil {
			return args.Errorf("", "the parameters are not those of %s", in.Tool)
		}
		return c.check()
	}, run)
}

// Enter judges the working directory of a session: it must be a directory that may be seen. name is
// its true name.
func (d *Dialect) Enter(ctx context.Context, in dialect.Call, cwd string) (
	name string, refused dialect.Answer, err error,
) {
	in.Tool = Read
	c := &call{Dialect: d, Call: engine.NewCall(in, "acp", in.Tool)}
	c.params.Path = &cwd
	a, err := c.do(ctx, in, time.Minute, func(json.RawMessage) error { return c.check() },
		func(ctx context.Context) error {
			is, err := c.Stat(ctx, cwd, true)
			if name = is.Path; err == nil && is.Kind != guardfs.KindDir {
				err = engine.Refuse(refusal.NoDirectory, cwd, nil)
			}
			return err
		})
	if err != nil || a.Refused() {
		return "", a, err
	}
	return name, nil, nil
}

func (c *call) do(ctx context.Context, in dialect.Call, limit time.Duration,
	decode func(json.RawMessage) error, run func(context.Context) error) (dialect.Answer, error) {
	op := engine.Operation[params, *dialect.Object]{Args: in.Args, Changes: in.Tool == Write, Follows: follows(in.Tool), Time: limit,
		Private: in.Tool == Terminal, // what was approved goes to the editor as it is
		Decode: func(raw json.RawMessage) (params, error) {
			err := decode(raw)
			return c.params, err
		}}
	return refusal.Do(ctx, c.e, c.Call, op, func(ctx context.Context, _ params) (any, error) {
		err := run(ctx)
		return c.answer, err
	}, func(r *engine.Refusal) any { return c.refusal(r) })
}

// params are the parameters of all methods. Optional ones are decoded leniently, as the protocol's schema
// has it: another type, or a number below zero, counts as absent.
type params struct {
	Path    *string `json:"path,omitempty"`
	Content *string `json:"content,omitempty"`
	Line    natural `json:"line,omitzero"`
	Limit   natural `json:"limit,omitzero"`

	program
}

// program is a program to run, as the protocol has it. Other fields of the request are neither shown
// nor passed on.
type program struct {
	SessionID string     `json:"sessionId,omitempty"`
	Command   string     `json:"command,omitempty"`
	Args      []string   `json:"args,omitempty"`
	Env       []variable `json:"env,omitempty"`
	Cwd       string     `json:"cwd,omitempty"`
	Most      natural    `json:"outputByteLimit,omitzero"`
}

type variable struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// String is a program as a command line for people: environment, command, arguments and directory,
// as in `PAGER=less git log "a b" in /src`. A word that could be taken for another part is in quotes.
func (p *program) String() string {
	var words []string
	for _, v := range p.Env {
		words = append(words, quoted(v.Name, "")+"="+quoted(v.Value, ""))
	}
	words = append(words, quoted(p.Command, "="))
	for _, w := range p.Args {
		words = append(words, quoted(w, ""))
	}
	if p.Cwd != "" {
		words = append(words, "in", quoted(p.Cwd, ""))
	}
	return strings.Join(words, " ")
}

// quoted is a word in quotes if a shell would take it apart, or if it has one of these.
func quoted(w, these string) string {
	if w == "" || w == "in" || strings.ContainsAny(w, " \t\n\"'\\$&|;<>()*?[]{}~#`!"+these) {
		return strconv.Quote(w)
	}
	return w
}

// check refuses a program that can't be shown as it is.
func (p *program) check() error {
	const most = 64 << 10
	for _, v := range p.Env {
		if v.Name == "" || strings.ContainsAny(v.Name, "=\x00") {
			return args.Errorf("", "env has a variable whose name is empty, or has = or NUL in it")
		}
	}
	switch n := len(p.String()); {
	case p.Command == "":
		return args.Errorf("", "missing: command")
	case n > most:
		return args.Errorf("put it into a script, and run that",
			"the command is %d bytes with its environment, over the %d that can be shown to a person", n, most)
	}
	return nil
}

// natural is a number from 0 on; the zero value is absent.
type natural struct {
	n  int
	is bool
}

func (n *natural) UnmarshalJSON(raw []byte) error {
	var f float64
	*n = natural{}
	if err := json.Unmarshal(raw, &f); err == nil && string(raw) != "null" && f >= 0 {
		*n = natural{int(min(f, 1<<31)), true}
	}
	return nil
}

// MarshalJSON gives the number, which is there.
func (n natural) MarshalJSON() ([]byte, error) { return json.Marshal(n.n) }

// check refuses parameters that no policy has to judge.
func (c *call) check() error {
	p := &c.params
	if c.Tool == Terminal {
		return p.program.check()
	}
	if p.Path == nil {
		return args.Errorf("", "missing: path")
	}
	c.Trace.Paths = []string{*p.Path}
	if !isAbsolute(*p.Path) {
		return args.Errorf("name it from the root on", "the path is not absolute: %s",
			approval.Escape(*p.Path, false))
	}
	if c.Tool == Write && p.Content == nil {
		return args.Errorf("", "missing: content")
	}
	return nil
}

// isAbsolute says whether a path begins at the root, or at a drive's.
func isAbsolute(p string) bool {
	return path.IsAbs(p) || len(p) > 2 && p[1] == ':' && (p[2] == '\\' || p[2] == '/')
}

// terminal asks whether a program may run, which no policy of files holds. The answer is that
// program, and nothing else of the parameters.
func (c *call) terminal(ctx context.Context) error {
	c.Trace.Asked.Pattern = c.params.String()
	if c.Approver == nil {
		return engine.Refuse(engine.NobodyToAsk, "", "there is nobody to ask")
	}
	wait := time.Duration(c.e.Config().ApprovalTimeout)
	whole, err := args.Encode(c.params.program)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(whole)
	q := approval.Question{ID: c.ID, Principal: c.Principal, Session: c.Session, Tool: c.Tool, Client: c.Program,
		Summary: "run " + c.params.String(), Digest: hex.EncodeToString(sum[:]), Expires: time.Now().Add(wait),
		Warnings: []string{"a program does what it likes with files: nothing here holds it"}}
	asking, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	c.Trace.Digest = q.Digest
	a, err := c.Approver.Ask(asking, q)
	if err = c.Answered(ctx, "", a, err); err != nil {
		return err
	}
	if c.answer = c.params.program; a.Over != nil {
		a.Over.Over(true)
	}
	return nil
}

// missing says that an error is that nothing is there.
func missing(err error) bool {
	if err == nil {
		return false
	}
	r := engine.Reason(err)
	return r != nil && r.Code == engine.CodeNotFound
}

// The error codes of the protocol that a refusal can have.
const (
	codeNoMethod  = -32601
	codeInvalid   = -32602
	codeInternal  = -32603
	codeNotFound  = -32002
	codeCancelled = -32800
)

// An Error is the error object of JSON-RPC, with our refusal in its data.
type Error struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Data    Data   `json:"data"`
}

// Data is why a call was refused.
type Data struct {
	Kind  string `json:"kind"`
	Error string `json:"error"`
	Hint  string `json:"hint,omitempty"`
	Path  string `json:"path,omitempty"`
	URI   string `json:"uri,omitempty"`
}

// codes has the codes other than codeInternal: nothing is there, or the parameters name what can't be
// served.
var codes = map[engine.Code]int{
	engine.CodeNotFound: codeNotFound, engine.CodeBadRequest: codeInvalid,
	engine.CodePathDenied: codeInvalid, engine.CodeNotRegularFile: codeInvalid,
	engine.CodeSymlinkRefused: codeInvalid, engine.CodeTooLarge: codeInvalid,
	engine.CodeUnsupported: codeInvalid,
}

// refusal is the error object of a refusal.
func (c *call) refusal(r *engine.Refusal) Error {
	name := r.Path
	if c.params.Path != nil { // as the agent has it
		name = *c.params.Path
	}
	out := Error{Code: codeInternal, Data: Data{Kind: string(r.Code)}}
	if code, ok := codes[r.Code]; ok {
		out.Code = code
	}
	if r.Cause == engine.Cancelled {
		out.Code = codeCancelled
	}
	told := refusal.Tell(r, refusal.Voice{Path: name, Show: func(p string) string { return p },
		Now: map[string]string{"by": " with " + Read}, Names: func(name string) string {
			return map[string]string{"line": "line"}[name]
		}})
	switch {
	case r.Cause == engine.Denied && r.Path == c.Tool:
		told = refusal.Told{Says: "Method not found: the operator lets nobody call " + c.Tool}
		out.Code, name = codeNoMethod, ""
	case r.Code == engine.CodeNotFound:
		told = refusal.Told{Says: "Resource not found: " + name}
	}
	out.Data.Error, out.Data.Hint = approval.Escape(told.Says, false), approval.Escape(told.Hint, false)
	out.Message = out.Data.Error
	if out.Data.Path = name; isAbsolute(name) {
		out.Data.URI = (&url.URL{Scheme: "file", Path: name}).String()
	}
	return out
}
