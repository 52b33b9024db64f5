package jsonrpc

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"maps"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"moltisfs/internal/dialect"
	"moltisfs/internal/lazy"
	"moltisfs/internal/serve"
)

// noCalls tells operators why they make no calls.
const noCalls = "an operator's token makes no calls; use another token for them"

// catalog holds the tools that may be called, as list and describe tell of them.
type catalog struct {
	entries    []entry
	names      map[string]int // by every name of an entry
	categories []string
}

type entry struct {
	tool, category string
	json           json.RawMessage
}

func newCatalog(defs []dialect.Definition) catalog {
	c := catalog{names: map[string]int{}}
	for i, d := range defs {
		e := entry{tool: d.Name, category: "tools", json: d.Entry}
		for _, name := range append([]string{d.Name}, d.Also...) {
			dotted := strings.Replace(name, "__", ".", 1)
			if before, _, ok := strings.Cut(dotted, "."); ok {
				e.category = before
			}
			for _, n := range []string{name, dotted, strings.ReplaceAll(name, ".", "__")} {
				if _, taken := c.names[n]; !taken {
					c.names[n] = i
				}
			}
		}
		if e.json == nil {
			e.json, _ = json.Marshal(d) // strings, booleans and schemas that are valid
		}
		c.entries = append(c.entries, e)
		if !slices.Contains(c.categories, e.category) {
			c.categories = append(c.categories, e.category)
		}
	}
	return c
}

// tool gives the name under which the dialect knows a tool of this name, or the beginning of an unknown name.
func (c catalog) tool(name string) string {
	if i, ok := c.names[name]; ok {
		return c.entries[i].tool
	}
	return strings.ToValidUTF8(name[:min(len(name), 256)], "")
}

// A method is one of callers.
type method func(*Server, context.Context, *caller, json.RawMessage) (any, error)

var methods = map[string]method{
	"capabilities.list":     taking((*Server).list),
	"capabilities.describe": taking((*Server).describe),
	"capabilities.invoke":   taking((*Server).invoke),
	"js.run":                taking((*Server).runScript),
	"session.create":        taking((*Server).createSession),
	"session.end":           taking((*Server).endSession),
	"session.events":        taking((*Server).events),
}

// taking is a method with the parameters of P.
func taking[P any](run func(*Server, context.Context, *caller, *P) (any, error)) method {
	read := serve.Params[P]()
	return func(s *Server, ctx context.Context, by *caller, raw json.RawMessage) (any, error) {
		p, err := read(raw)
		if err != nil {
			return nil, err
		}
		return run(s, ctx, by, p)
	}
}

// call carries out one request. A method that a caller may not have is not there for it, but
// operators are told why they make no calls.
func (s *Server) call(ctx context.Context, c *caller, r request) (_ json.RawMessage, e *serve.Error) {
	defer func() {
		if p := recover(); p != nil {
			s.o.Logger.Error("the server panicked", "method", r.method, "panic", p,
				"stack", string(debug.Stack()))
			e = serve.Wrong(codeInternal, "internal error")
		}
	}()
	var result any
	var err error
	m, ours := methods[r.method]
	operators, theirs := s.o.Operator[r.method]
	switch {
	case ours && !c.calls:
		return nil, serve.Wrong(codeDenied, noCalls)
	case r.method == "initialize" || r.method == "server/discover":
		return nil, serve.Wrong(codeMethod, "this address is JSON-RPC's; MCP has another one: %s", mcpPath)
	case ours:
		result, err = m(s, ctx, c, r.params)
	case theirs && c.operates:
		result, err = operators(ctx, c.principal, r.params)
	default:
		names := slices.Collect(maps.Keys(methods))
		if c.operates {
			names = slices.AppendSeq(names, maps.Keys(s.o.Operator))
		}
		slices.Sort(names)
		return nil, &serve.Error{Code: codeMethod, Message: "there is no such method", Data: map[string]any{"methods": names}}
	}
	raw, encoded := result.(json.RawMessage)
	if err == nil && !encoded {
		raw, err = json.Marshal(result)
	}
	if err == nil {
		return raw, nil
	}
	if e, ok := errors.AsType[*serve.Error](err); ok {
		return nil, e
	}
	if s.stopping.Err() != nil {
		return nil, serve.Wrong(codeInternal, "the server is ending")
	}
	if ctx.Err() == nil { // else nobody is there to be told
		s.o.Logger.Error("a request failed", "method", r.method, "principal", c.principal, "err", err)
	}
	return nil, serve.Wrong(codeInternal, "internal error; the server's log says more")
}

type listParams struct {
	Category string `json:"category,omitempty"`
}

func (s *Server) list(_ context.Context, _ *caller, p *listParams) (any, error) {
	if p.Category != "" && !slices.Contains(s.catalog.categories, p.Category) {
		return nil, serve.Wrong(serve.CodeParams, "there is no such category; there are %q", s.catalog.categories)
	}
	found := []json.RawMessage{}
	for _, e := range s.catalog.entries {
		if p.Category == "" || e.category == p.Category {
			found = append(found, e.json)
		}
	}
	return map[string]any{"capabilities": found}, nil
}

type describeParams struct {
	Name string `json:"name"`
}

func (s *Server) describe(_ context.Context, _ *caller, p *describeParams) (any, error) {
	if i, ok := s.catalog.names[p.Name]; ok {
		return s.catalog.entries[i].json, nil
	}
	return nil, serve.Wrong(serve.CodeParams, "there is no such capability")
}

type invokeParams struct {
	Capability string          `json:"capability"`
	Arguments  json.RawMessage `json:"arguments,omitempty"`
	SessionID  string          `json:"session_id,omitempty"`
}

func (s *Server) invoke(ctx context.Context, by *caller, p *invokeParams) (any, error) {
	_, leave, err := s.session(by, p.SessionID)
	if err != nil {
		return nil, err
	}
	defer leave()
	if p.Arguments == nil {
		p.Arguments = json.RawMessage("{}")
	}
	done, err := s.load.turn(ctx, by.principal)
	if err != nil {
		return nil, err
	}
	defer done()
	answer, err := s.dialect.Call(ctx, dialect.Call{
		Principal: by.principal, Session: cmp.Or(p.SessionID, s.o.Run), Tool: s.catalog.tool(p.Capability),
		Args: p.Arguments, Tier: by.tier, Scope: by.scope, ByUser: by.byUser,
		Client: by.program, Headers: by.headers,
	})
	if unknown, ok := errors.AsType[*dialect.UnknownToolError](err); ok {
		e := serve.Wrong(serve.CodeParams, "%s", unknown.Error())
		if unknown.Nearest != "" {
			e.Data = map[string]any{"nearest": unknown.Nearest}
		}
		return nil, e
	}
	if err != nil {
		return nil, err
	}
	return wrapped(answer)
}

// scriptParams are the arguments of run_js, and the session.
type scriptParams struct {
	Code      *string `json:"code,omitempty"`
	File      *string `json:"file,omitempty"`
	Time      *int    `json:"timeout_secs,omitempty"`
	Memory    *int    `json:"heap_memory_max_mb,omitempty"`
	SessionID string  `json:"session_id,omitempty"`
}

// runScript is invoke of run_js, where that is offered.
func (s *Server) runScript(ctx context.Context, by *caller, p *scriptParams) (any, error) {
	session := p.SessionID
	p.SessionID = ""
	raw, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	return s.invoke(ctx, by, &invokeParams{Capability: "run_js", Arguments: raw, SessionID: session})
}

// wrapped is an answer in the form of the protocol. A refusal is in the dialect's own form.
func wrapped(a dialect.Answer) (json.RawMessage, error) {
	raw, err := a.JSON(true)
	if err != nil {
		return nil, err
	}
	before := `{"success":true,"data":`
	if a.Refused() {
		before = `{"success":false,"error":`
	}
	return slices.Concat([]byte(before), raw, []byte("}")), nil
}

// createParams are those of session.create: the session to go on with that another server began, or this one before it ended.
type createParams struct {
	SessionID string `json:"session_id,omitempty"`
}

func (s *Server) createSession(_ context.Context, by *caller, p *createParams) (any, error) {
	id := cmp.Or(p.SessionID, "s-"+rand.Text())
	if !madeHere().MatchString(id) { // so that no other session of the principal can be named
		return nil, errNoSession
	}
	one, leave, err := s.sessions.Use(by.principal, id, true)
	if err != nil {
		return nil, serve.Wrong(codeBusy, "%s", err)
	}
	leave()
	return map[string]any{"session_id": one.Name, "idle_seconds": int(serve.SessionIdle.Seconds())}, nil
}

var madeHere = lazy.Regexp(`^s-[A-Z2-7]{26}$`)

// session finds a session of the caller, and uses it until leave. Without a name it is that of the run.
func (s *Server) session(by *caller, name string) (one *serve.Session[struct{}], leave func(), err error) {
	if name == "" {
		if one, leave, err = s.sessions.Use(by.principal, s.o.Run, false); err != nil {
			err = serve.Wrong(codeBusy, "%s", err)
		}
	} else if one, leave = s.sessions.Find(by.principal, name); one == nil {
		err = errNoSession
	}
	return one, leave, err
}

// errNoSession is told of a session that is not there, is another's, or has ended.
var errNoSession = serve.Wrong(codeSession, "there is no such session here: it has ended, or session.create with its session_id goes on with it")

type endParams struct {
	SessionID string `json:"session_id"`
}

func (s *Server) endSession(ctx context.Context, by *caller, p *endParams) (any, error) {
	one, leave := s.sessions.Find(by.principal, p.SessionID)
	if one == nil {
		return nil, errNoSession
	}
	leave()
	if !s.sessions.EndOne(one) {
		return nil, errNoSession
	}
	select {
	case <-one.Ended: // and with it its requests under way
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if one.Err != nil {
		return nil, one.Err
	}
	return map[string]any{"session_id": p.SessionID, "ended": true}, nil
}

type eventsParams struct {
	SessionID string `json:"session_id"`
	Cursor    int64  `json:"cursor,omitempty" min:"0"`
	Limit     int64  `json:"limit,omitempty" min:"0" max:"1000"` // 0: 100
	WaitMS    int64  `json:"wait_ms,omitempty" min:"0" max:"60000"`
}

// events waits for what happens in a session, if there is nothing yet. In a batch it does not wait: a hundred waits would hold a share of
// the caller's bodies for more than an hour.
func (s *Server) events(ctx context.Context, by *caller, p *eventsParams) (any, error) {
	one, leave := s.sessions.Find(by.principal, p.SessionID)
	if one == nil {
		return nil, errNoSession
	}
	defer leave()
	if by.batch {
		p.WaitMS = 0
	}
	polled, cancel := context.WithTimeout(ctx, time.Duration(p.WaitMS)*time.Millisecond)
	defer cancel()
	defer context.AfterFunc(s.stopping, cancel)()
	defer context.AfterFunc(one.Alive, cancel)()
	d, ok := s.dialect.(dialect.Feed)
	if !ok { // nothing ever happens
		<-polled.Done()
		return map[string]any{"events": []any{}, "cursor": p.Cursor}, nil
	}
	found, err := d.Events(polled, dialect.Call{Principal: by.principal, Session: p.SessionID, Scope: by.scope},
		p.Cursor, int(cmp.Or(p.Limit, 100)))
	if err != nil {
		return nil, err
	}
	list := append([]json.RawMessage{}, found.List...) // [], not null
	return map[string]any{"events": list, "cursor": found.Next}, nil
}
