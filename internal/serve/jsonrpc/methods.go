package jsonrpc

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"moltisfs/dialect"
)

// catalog is what may be called, as list and describe tell of it.
type catalog struct {
	entries    []entry
	names      map[string]int // by every name of an entry
	categories []string
}

type entry struct {
	tool, category string
	told           json.RawMessage
}

func newCatalog(defs []dialect.Definition) catalog {
	c := catalog{names: map[string]int{}}
	for i, d := range defs {
		e := entry{tool: d.Name, category: "tools", told: d.Entry}
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
		if e.told == nil {
			e.told, _ = json.Marshal(d) // strings, booleans and schemas that are valid
		}
		c.entries = append(c.entries, e)
		if !slices.Contains(c.categories, e.category) {
			c.categories = append(c.categories, e.category)
		}
	}
	return c
}

// tool is the name under which a dialect knows what is called so.
func (c catalog) tool(name string) string {
	if i, ok := c.names[name]; ok {
		return c.entries[i].tool
	}
	return name
}

// A method is one of callers: the parameters that it knows, and what it does.
type method struct {
	params []string
	run    func(*Server, context.Context, *query) (any, error)
}

var methods = map[string]method{
	"capabilities.list":     {[]string{"category"}, (*Server).list},
	"capabilities.describe": {[]string{"name"}, (*Server).describe},
	"capabilities.invoke":   {[]string{"capability", "arguments", "session_id"}, (*Server).invoke},
	"session.create":        {nil, (*Server).createSession},
	"session.end":           {[]string{"session_id"}, (*Server).endSession},
	"session.events":        {[]string{"session_id", "cursor", "limit", "wait_ms"}, (*Server).events},
}

// call carries out one request. A method that a caller may not have is not there for it, but
// operators are told why they make no calls.
// alone says that it is not one of a batch.
func (s *Server) call(ctx context.Context, c *caller, r request,
	alone bool) (_ json.RawMessage, e *rpcError) {
	defer func() {
		if p := recover(); p != nil {
			s.o.Logger.Error("the server panicked", "method", r.method, "panic", p,
				"stack", string(debug.Stack()))
			e = wrong(codeInternal, "internal error")
		}
	}()
	var result any
	var err error
	m, ours := methods[r.method]
	operators, theirs := s.o.Operator[r.method]
	switch {
	case ours && !c.calls:
		return nil, wrong(codeDenied, "an operator's token makes no calls; use another token for them")
	case ours:
		q := &query{caller: c, alone: alone}
		if q.members, err = paramsOf(r.params, m.params...); err == nil {
			result, err = m.run(s, ctx, q)
		}
	case theirs && c.operates:
		result, err = operators(ctx, c.principal, r.params)
	default:
		names := slices.Collect(maps.Keys(methods))
		if c.operates {
			names = slices.AppendSeq(names, maps.Keys(s.o.Operator))
		}
		slices.Sort(names)
		return nil, &rpcError{codeMethod, "there is no such method", map[string]any{"methods": names}}
	}
	if raw, ok := result.(json.RawMessage); ok && err == nil {
		return raw, nil
	}
	var raw []byte
	if err == nil {
		raw, err = json.Marshal(result)
	}
	if err == nil {
		return raw, nil
	}
	if told := toldAs(err); told != nil {
		return nil, told
	}
	if s.stopping.Err() != nil {
		return nil, wrong(codeInternal, "the server is ending")
	}
	if ctx.Err() == nil { // else nobody is there to be told
		s.o.Logger.Error("a request failed", "method", r.method, "principal", c.principal, "err", err)
	}
	return nil, wrong(codeInternal, "internal error; the server's log says more")
}

func (s *Server) list(_ context.Context, q *query) (any, error) {
	category := q.text("category", false)
	if q.err != nil {
		return nil, q.err
	}
	if category != "" && !slices.Contains(s.catalog.categories, category) {
		return nil, wrong(codeParams, "there is no such category; there are %q", s.catalog.categories)
	}
	found := []json.RawMessage{}
	for _, e := range s.catalog.entries {
		if category == "" || e.category == category {
			found = append(found, e.told)
		}
	}
	return map[string]any{"capabilities": found}, nil
}

func (s *Server) describe(_ context.Context, q *query) (any, error) {
	name := q.text("name", true)
	if q.err != nil {
		return nil, q.err
	}
	if i, ok := s.catalog.names[name]; ok {
		return s.catalog.entries[i].told, nil
	}
	return nil, wrong(codeParams, "there is no such capability")
}

func (s *Server) invoke(ctx context.Context, q *query) (any, error) {
	name, id := q.text("capability", true), q.text("session_id", false)
	if q.err != nil {
		return nil, q.err
	}
	c := q.caller
	if id != "" {
		_, leave, err := s.sessions.use(c.principal, id)
		if err != nil {
			return nil, err
		}
		defer leave()
	}
	arguments := q.members["arguments"]
	if arguments == nil {
		arguments = json.RawMessage("{}")
	}
	leave, err := s.load.call(ctx, c.principal)
	if err != nil {
		return nil, err
	}
	defer leave()
	answer, err := s.dialect.Call(ctx, dialect.Call{
		Principal: c.principal, Session: id, Tool: s.catalog.tool(name), Args: arguments,
		Tier: c.tier, Scope: c.scope, ByUser: c.byUser,
	})
	if unknown, ok := errors.AsType[*dialect.UnknownToolError](err); ok {
		e := wrong(codeParams, "%s", unknown.Error())
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

// wrapped is an answer in the form of the protocol.
func wrapped(a dialect.Answer) (json.RawMessage, error) {
	raw, err := a.JSON(true)
	if err != nil {
		return nil, err
	}
	before := `{"success":true,"data":`
	if a.Refused() {
		before = `{"success":false,"error":`
		if raw, err = refusal(a, raw); err != nil {
			return nil, err
		}
	}
	return slices.Concat([]byte(before), raw, []byte("}")), nil
}

// recovery is one way on.
type recovery struct {
	Action      string          `json:"action"`
	Description string          `json:"description"`
	Capability  string          `json:"capability,omitempty"`
	Inputs      json.RawMessage `json:"inputs,omitempty"`
}

// refusal is the error object of a refusal. A dialect that has such objects itself has said all.
func refusal(a dialect.Answer, raw json.RawMessage) (json.RawMessage, error) {
	var says struct {
		Type, Message, Error, Hint string
		Recovery                   []recovery
		Next                       struct {
			Tool string
			Args json.RawMessage
		}
	}
	_ = json.Unmarshal(raw, &says) // other forms have other types there
	if says.Type != "" && says.Message != "" && says.Recovery != nil {
		return raw, nil
	}
	message := says.Error
	if message == "" {
		message = a.Text()
	}
	ways := []recovery{}
	if says.Hint != "" || says.Next.Tool != "" {
		ways = append(ways, recovery{"hint", says.Hint, says.Next.Tool, says.Next.Args})
	}
	return json.Marshal(struct {
		Type        string          `json:"type"`
		Message     string          `json:"message"`
		Description string          `json:"description"`
		Recovery    []recovery      `json:"recovery"`
		Retryable   bool            `json:"retryable"`
		RetryAfter  *int            `json:"retry_after"`
		Context     json.RawMessage `json:"context"`
	}{a.Kind(), message, message, ways, false, nil, raw})
}

func (s *Server) createSession(_ context.Context, q *query) (any, error) {
	id, err := s.sessions.create(q.caller.principal)
	if err != nil {
		return nil, err
	}
	return map[string]any{"session_id": id, "idle_seconds": int(sessionIdle.Seconds())}, nil
}

func (s *Server) endSession(ctx context.Context, q *query) (any, error) {
	id := q.text("session_id", true)
	if q.err != nil {
		return nil, q.err
	}
	one, leave, err := s.sessions.use(q.caller.principal, id)
	if err != nil {
		return nil, err
	}
	leave()
	if err := s.sessions.end(ctx, one); err != nil {
		return nil, err
	}
	return map[string]any{"session_id": id, "ended": true}, nil
}

// events waits for what happens in a session, if there is nothing yet. In a batch it does not wait.
func (s *Server) events(ctx context.Context, q *query) (any, error) {
	id, cursor := q.text("session_id", true), q.number("cursor", 0, 1<<62)
	limit, wait := q.number("limit", 100, 1000), q.number("wait_ms", 0, 60_000)
	if q.err != nil {
		return nil, q.err
	}
	one, leave, err := s.sessions.use(q.caller.principal, id)
	if err != nil {
		return nil, err
	}
	defer leave()
	if !q.alone {
		wait = 0
	}
	polled, cancel := context.WithTimeout(ctx, time.Duration(wait)*time.Millisecond)
	defer cancel()
	defer context.AfterFunc(s.stopping, cancel)()
	defer context.AfterFunc(one.alive, cancel)()
	s.sessions.poll(one, cancel)
	d, ok := s.dialect.(dialect.Feed)
	if !ok { // nothing ever happens
		<-polled.Done()
		return map[string]any{"events": []any{}, "cursor": cursor}, nil
	}
	found, err := d.Events(polled, q.caller.principal, id, cursor, int(limit))
	if err != nil {
		return nil, err
	}
	if found.List == nil {
		found.List = []json.RawMessage{}
	}
	return map[string]any{"events": found.List, "cursor": found.Next}, nil
}
