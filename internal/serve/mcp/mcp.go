// Package mcp serves a dialect over the Model Context Protocol: [Serve] to one client on a pair of streams, and [HTTP] to many by
// streamable HTTP.
//
// Protocol revisions 2024-11-05 to 2025-11-25 (with the initialize handshake) and 2026-07-28
// (without) are spoken side by side.
//
// An answer has a text block in the shape that models trained on Claude Code know. A client that is known to show
// images to a model gets image and resource blocks for the bytes, and one that is known to keep it apart from the
// text gets structuredContent with its JSON: clients.go has the table. A
// refusal has isError set, so that the model sees it and can do better. A tool that does not exist,
// or that this caller may not call, is a protocol error with the nearest tool. So is a broken host.
//
// Nothing but protocol is written to the output. A line that is no message is answered with an
// error and skipped. notifications/cancelled ends the call that it names. When the input ends,
// questions that wait for approval are withdrawn, all other calls under way are answered, and Serve returns nil.
//
// State hangs on the principal and the session, never on the connection. A client may name another
// session, and the turn that checkpoints are grouped by, for each call in _meta, under MetaSession
// and MetaTurn, each a string. Another type, or another key of ours, is a protocol error. Where it
// does not, and the host names no session either, a conversation that the client tells of in its own
// way is one (Codex, VS Code), and else the run of the server. When Serve returns, the sessions that
// it served have ended: their watches and, where they have one, their workspace.
package mcp

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"unicode"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"moltisfs/internal/approval"
	"moltisfs/internal/dialect"
	"moltisfs/internal/serve"
)

// The keys of a call's _meta that a client may set.
const (
	MetaSession = "moltis-fs/session"
	MetaTurn    = "moltis-fs/turn"
)

// Structured picks the clients that get structuredContent, and outputSchema with it.
type Structured string

const (
	// StructuredAuto gives it to clients that are known to keep it apart from the text for the model, and to those
	// that ask for it. Bytes, and the text of a long answer, have a block of their own and are left out of it.
	StructuredAuto Structured = "auto"
	// StructuredAlways gives the whole payload to every client, and images too.
	StructuredAlways Structured = "always"
	StructuredNever  Structured = "never"
)

// Options says how to serve. The zero value is useful.
type Options struct {
	// Principal and Session are whose calls these are, see [dialect.Call]. Run is the session where
	// Session is "" and the client tells of no conversation of its own.
	Principal, Session, Run string
	// Elicit asks the client for approvals, which then shows the question to its user. Where the
	// client can't, the refusal comes at once. Without Elicit the host's own approver is asked.
	Elicit       bool
	Grants       *approval.Grants // of answers of that user; nil: this server has its own
	Structured   Structured       // "" is StructuredAuto
	Version      string           // of the program, told to the client
	Instructions string           // for the model, told to the client
	// Asking is added to them: the first where the client is asked for approvals, the other elsewhere.
	Asking [2]string
	// Changed receives where the dialect may have other definitions; the client is told if it has.
	Changed <-chan struct{}
	Logger  *slog.Logger
}

type server struct {
	dialect  dialect.Dialect
	o        Options
	listed   atomic.Pointer[listed]
	held     held
	grants   *approval.Grants
	sessions serve.Sessions[front]
	local    *Caller         // of all requests; nil: each has its own
	done     context.Context // ends with the server: calls that outlive their request end with it
}

// A Caller is the sender of a request with its rights, as the host knows it.
type Caller struct {
	// Call has the caller's Principal, Scope, Tier, ByUser and Headers. The rest comes with each call.
	Call dialect.Call
	// Elicit asks the caller's client for approvals where it can show the question to its user.
	Elicit bool
	// Turn, when set, waits until the principal may make one more call.
	Turn func(context.Context) (done func(), err error)

	session string          // where the client tells of none; "" is Options.Run
	heard   context.Context // ends when the client can't answer any more; nil: with the call
	right   context.Context // ends with the right to make calls; nil: with the call
	lapse   context.CancelFunc
}

// caller gives the sender of a request.
func (s *server) caller(extra *sdk.RequestExtra) *Caller {
	if s.local != nil {
		return s.local
	}
	return extra.TokenInfo.Extra[callerKey].(*Caller) // HTTP.Serve has put it there
}

// Serve answers the messages from in until in ends or nobody takes the answers any more, which is no
// error, or ctx is done. It closes neither stream; a read from in may be left behind.
func Serve(ctx context.Context, d dialect.Dialect, in io.Reader, out io.Writer, o Options) error {
	done, stop := context.WithCancel(ctx)
	defer stop()
	heard, deaf := context.WithCancel(done)
	defer deaf()
	s, srv, err := newServer(done, d, o)
	if err != nil {
		return err
	}
	s.local = &Caller{Call: dialect.Call{Principal: o.Principal}, Elicit: o.Elicit, session: o.Session, heard: heard}
	session, err := srv.Connect(ctx, &lines{in: in, out: out, ended: deaf}, nil)
	if err != nil {
		return fmt.Errorf("starting the server: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- session.Wait() }()
	var once sync.Once
	hangUp := func() { once.Do(func() { stop(); _ = session.Close() }) } // the peer is gone
	select {
	case <-ctx.Done():
		err = ctx.Err()
		hangUp()
		<-ended
	case err = <-ended:
		hangUp()
		s.held.group.Wait()
	}
	if _, leave, err := s.sessions.Use(o.Principal, cmp.Or(o.Session, o.Run), false); err == nil {
		leave() // it ends also where no call was in it
	}
	s.sessions.EndAll(o.Run)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err == nil || errors.Is(err, io.EOF) || errors.Is(err, io.ErrClosedPipe) || errors.Is(err, syscall.EPIPE) {
		return nil // the client has gone
	}
	return fmt.Errorf("serving: %w", err)
}

// newServer makes a server until done, and the SDK's server on which it stands.
func newServer(done context.Context, d dialect.Dialect, o Options) (*server, *sdk.Server, error) {
	if o.Structured == "" {
		o.Structured = StructuredAuto
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	s := &server{dialect: d, o: o, done: done, grants: cmp.Or(o.Grants, &approval.Grants{})}
	s.sessions.Run, s.sessions.End, s.sessions.HangUp = o.Run, serve.EndIn(d, o.Logger), hangUp
	srv := sdk.NewServer(&sdk.Implementation{Name: "moltis-fs", Title: "moltis-fs guarded files", Version: o.Version}, &sdk.ServerOptions{
		Instructions: o.Instructions,
		GetSessionID: func() string { return "m-" + rand.Text() },
		Capabilities: &sdk.ServerCapabilities{
			Tools: &sdk.ToolCapabilities{ListChanged: o.Changed != nil}},
		SetCacheable: func(_ context.Context, _ sdk.Request, c *sdk.Cacheable) { c.CacheScope = "private" },
	})
	if err := s.list(srv); err != nil {
		return nil, nil, fmt.Errorf("listing the tools: %w", err)
	}
	go s.listAnew(srv)
	srv.AddReceivingMiddleware(s.receive)
	srv.AddSendingMiddleware(send)
	return s, srv, nil
}

// maxResult tells Claude Code not to put a long answer into a file of its own, which these tools
// may not even be allowed to read. It takes no more than this; our own limits are about the same.
const maxResult = 500_000

// tool gives the entry of d in tools/list.
func tool(d dialect.Definition) *sdk.Tool {
	meta := sdk.Meta{}
	if d.ReadOnly {
		meta["anthropic/maxResultSizeChars"] = maxResult
	}
	if !d.Search.Wanted { // a deferred tool is one that the model does not see: it takes the shell instead
		meta["anthropic/alwaysLoad"] = true
	}
	if d.Search.Hint != "" {
		meta["anthropic/searchHint"] = d.Search.Hint
	}
	return &sdk.Tool{
		Meta: meta,
		Name: d.Name, Title: d.Title, Description: d.Description, InputSchema: d.InputSchema, OutputSchema: d.OutputSchema,
		Annotations: &sdk.ToolAnnotations{Title: d.Title, ReadOnlyHint: d.ReadOnly, DestructiveHint: &d.Destructive,
			IdempotentHint: d.Idempotent, OpenWorldHint: &d.OpenWorld},
	}
}

// growStack gives the stack of this goroutine room for a whole call at once. The SDK begins a goroutine for each request, whose stack is small;
// else it is copied several times on the way down.
//
//go:noinline
func growStack(at int) byte {
	var room [24 << 10]byte
	return room[at]
}

// receive sees messages before the SDK does, and answers those that it would answer less well.
func (s *server) receive(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
		growStack(0)
		switch {
		case method == "tools/call":
			if r, ok := req.(*sdk.CallToolRequest); ok && s.listed.Load().known[r.Params.Name] == nil {
				return s.unknown(ctx, r)
			}
		case strings.HasPrefix(method, "prompts/"), strings.HasPrefix(method, "resources/"), method == "logging/setLevel", method == "completion/complete":
			// The SDK answers these with empty lists although the server does not declare the features.
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: fmt.Sprintf("method %q is not supported: this server has tools only", method)}
		}
		res, err := next(ctx, method, req)
		if err == nil {
			err = s.begin(method, req)
		}
		if err != nil {
			return nil, err
		}
		s.instruct(res, req)
		if list, ok := res.(*sdk.ListToolsResult); ok {
			list.Tools = s.listed.Load().tools // in the order of the dialect; the SDK sorts by name
			if r, ok := req.(*sdk.ListToolsRequest); ok && !s.known(clientOf(r.ClientInfo(), r.ClientCapabilities())).structured {
				list.Tools = withoutOutput(list.Tools)
			}
		}
		return res, nil
	}
}

// instruct adds to the instructions how changes are approved, by this client, which is known now, or elsewhere.
func (s *server) instruct(res sdk.Result, req sdk.Request) {
	say := func(caps *sdk.ClientCapabilities) string {
		if s.caller(req.GetExtra()).Elicit && asks(caps) {
			return s.o.Instructions + s.o.Asking[0]
		}
		return s.o.Instructions + s.o.Asking[1]
	}
	switch r := res.(type) {
	case *sdk.InitializeResult:
		if p, ok := req.GetParams().(*sdk.InitializeParams); ok {
			r.Instructions = say(p.Capabilities)
		}
	case *sdk.DiscoverResult:
		if d, ok := req.(*sdk.ServerRequest[*sdk.DiscoverParams]); ok {
			r.Instructions = say(d.ClientCapabilities())
		}
	}
}

// withoutOutput leaves out the output schema. With it, clients insist on structuredContent.
func withoutOutput(list []*sdk.Tool) []*sdk.Tool {
	out := make([]*sdk.Tool, len(list))
	for i, t := range list {
		bare := *t
		bare.OutputSchema = nil
		out[i] = &bare
	}
	return out
}

// known gives the client c as the options have it served.
func (s *server) known(c client) client {
	switch s.o.Structured {
	case StructuredAlways:
		c.structured, c.images = true, true
	case StructuredNever:
		c.structured = false
	}
	return c
}

// unknown puts the call on record and names the nearest tool.
func (s *server) unknown(ctx context.Context, req *sdk.CallToolRequest) (sdk.Result, error) {
	c, err := s.callOf(req)
	if err != nil {
		return nil, err
	}
	o := s.run(ctx, s.caller(req.Extra), c)
	if o.err != nil {
		return nil, protocolError(o.err)
	}
	return s.answer(req, o) // it is there since a moment
}

// protocolError gives the error for the client when no payload came.
func protocolError(err error) error {
	if u, ok := errors.AsType[*dialect.UnknownToolError](err); ok {
		return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: u.Error()}
	}
	if e, ok := errors.AsType[*jsonrpc.Error](err); ok {
		return e
	}
	return &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "the server could not carry out the call: " + err.Error()}
}

// metaPrefix begins the keys of _meta that are ours.
const metaPrefix = "moltis-fs/"

// callOf gives the call of a request. Our keys in its _meta must be
// understood: if a session were passed over, the call would read and undo the server's own.
func (s *server) callOf(req *sdk.CallToolRequest) (dialect.Call, error) {
	session, turn := conversation(req.Params.Meta)
	by := s.caller(req.Extra)
	c := by.Call
	c.Heard, c.Session, c.Turn = by.heard, cmp.Or(s.o.Session, session, by.session, s.o.Run), turn
	c.Tool, c.Args, c.Page = req.Params.Name, req.Params.Arguments, clientOf(req.ClientInfo(), req.ClientCapabilities()).page
	if who := req.ClientInfo(); who != nil {
		c.Client = strings.Trim(who.Name+"/"+who.Version, "/")
	}
	to := map[string]*string{MetaSession: &c.Session, MetaTurn: &c.Turn}
	for _, key := range slices.Sorted(maps.Keys(req.Params.Meta)) {
		if !strings.HasPrefix(strings.ToLower(key), metaPrefix) { // other spellings of ours are mistakes
			continue
		}
		field := to[key]
		if field == nil {
			return c, misspelt("there is no %.100q in _meta; the keys are %q and %q", key, MetaSession, MetaTurn)
		}
		switch v := req.Params.Meta[key].(type) {
		case nil: // as good as left out
		case string:
			if v != "" {
				*field = v
			}
		default:
			return c, misspelt("%q in _meta is no string; send it as a string, or leave it out", key)
		}
	}
	return c, nil
}

func misspelt(format string, args ...any) error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf(format, args...)}
}

// call is tools/call for a tool that there is.
func (s *server) call(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.done, cancel)() // the SDK lets calls run on at a stop
	by := s.caller(req.Extra)
	if by.right != nil {
		defer context.AfterFunc(by.right, cancel)()
	}
	c, err := s.callOf(req)
	if err != nil {
		return nil, err
	}
	c.Progress = &dialect.Progress{}
	if req.Params.RequestState != "" {
		return s.resume(ctx, req, c)
	}
	switch {
	case !by.Elicit:
	case !asks(req.ClientCapabilities()):
		if s.o.Elicit { // there is no other approver
			c.Approver = nobody()
		}
	case req.ProtocolVersion() >= statelessVersion:
		return s.hold(ctx, req, c)
	default:
		c.Approver = &byElicitation{s, req.Session}
	}
	defer progress(ctx, req, c.Progress)()
	return s.answer(req, s.run(ctx, by, c))
}

// asks reports whether a client can put a form before its user.
func asks(c *sdk.ClientCapabilities) bool {
	return c != nil && c.Elicitation != nil && (c.Elicitation.Form != nil || c.Elicitation.URL == nil)
}

// outcome is the result of a call.
type outcome struct {
	answer dialect.Answer
	err    error
}

// run carries out a call, when it is the principal's turn and in a session that does not end meanwhile.
func (s *server) run(ctx context.Context, by *Caller, c dialect.Call) outcome {
	one, leave, err := s.sessions.Use(c.Principal, c.Session, false)
	if err != nil {
		return outcome{err: tooMany(err)}
	}
	defer leave()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(one.Alive, cancel)()
	if by.Turn != nil {
		done, err := by.Turn(ctx)
		if err != nil {
			return outcome{err: err}
		}
		defer done()
	}
	p, err := s.dialect.Call(ctx, c)
	return outcome{p, err}
}

func tooMany(err error) error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: err.Error()}
}

func (s *server) answer(req *sdk.CallToolRequest, o outcome) (*sdk.CallToolResult, error) {
	if o.err != nil {
		s.o.Logger.Error("the call could not be carried out", "tool", req.Params.Name, "err", o.err)
		return nil, protocolError(o.err)
	}
	r, err := s.result(o.answer, s.known(clientOf(req.ClientInfo(), req.ClientCapabilities())), s.o.Structured == StructuredAlways)
	if err == nil {
		err = take(r, req.Extra)
	}
	return r, err
}

// fingerprint tells calls apart: the same caller asking for the same thing.
func fingerprint(c dialect.Call) [sha256.Size]byte {
	h := sha256.New()
	for _, part := range []string{c.Principal, c.Session, c.Turn, c.Tool, string(c.Args)} {
		fmt.Fprintf(h, "%d:%s", len(part), part)
	}
	return [sha256.Size]byte(h.Sum(nil))
}

// conversationKeys are the places in a call's _meta where clients name their conversation and the prompt that a
// call belongs to: in, where there is one, holds an object, or its JSON in a string.
var conversationKeys = []struct{ in, session, turn string }{
	{"x-codex-turn-metadata", "session_id", "turn_id"},
	{"", "vscode.conversationId", "vscode.requestId"},
}

// conversation gives the session and turn that a client names in _meta. A value that can't be used counts as
// left out: these keys are not ours.
func conversation(meta map[string]any) (session, turn string) {
	for _, t := range conversationKeys {
		m := meta
		if t.in != "" {
			m, _ = meta[t.in].(map[string]any)
			if text, ok := meta[t.in].(string); ok {
				_ = json.Unmarshal([]byte(text), &m) // a text that is no object names nothing
			}
		}
		if session = name(m[t.session]); session != "" {
			return session, name(m[t.turn])
		}
	}
	return "", ""
}

// name is a value as a session or turn can be called; "" when it can't.
func name(v any) string {
	s, _ := v.(string)
	if s = strings.TrimSpace(s); len(s) > 256 || !utf8.ValidString(s) || strings.ContainsFunc(s, unicode.IsControl) {
		return ""
	}
	return s
}

// listed holds the tools as a client is told of them, and the names that may be called: some tools have
// one more than is listed.
type listed struct {
	tools []*sdk.Tool
	known map[string][]byte // as JSON
}

// list takes over the definitions as they are now. The SDK tells the client of what differs, if the
// server said that the list may change.
func (s *server) list(srv *sdk.Server) error {
	old, now := s.listed.Load(), &listed{known: map[string][]byte{}}
	var fresh []*sdk.Tool
	for _, d := range s.dialect.Definitions() {
		t := tool(d)
		now.tools = append(now.tools, t)
		for _, name := range append([]string{d.Name}, d.Also...) { // only the first is listed
			called := *t
			called.Name = name
			text, err := json.Marshal(&called)
			if err != nil {
				return err
			}
			now.known[name] = text
			if old == nil || !bytes.Equal(old.known[name], text) {
				fresh = append(fresh, &called)
			}
		}
	}
	s.listed.Store(now)
	for _, t := range fresh {
		srv.AddTool(t, s.call)
	}
	if old != nil {
		for name := range old.known {
			if now.known[name] == nil {
				srv.RemoveTools(name)
			}
		}
	}
	return nil
}

// listAnew calls list whenever o.Changed says that the definitions may be others.
func (s *server) listAnew(srv *sdk.Server) {
	for {
		select {
		case <-s.done.Done():
			return
		case <-s.o.Changed:
			if err := s.list(srv); err != nil {
				s.o.Logger.Warn("the tools could not be listed anew", "err", err)
			}
		}
	}
}
