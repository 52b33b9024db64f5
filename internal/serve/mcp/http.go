package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"moltisfs/internal/dialect"
	"moltisfs/internal/ndjson"
	"moltisfs/internal/serve"
)

// HTTP answers requests of streamable HTTP at one address. Those of 2026-07-28 stand alone. Those of
// older revisions belong to a session, which ends when nobody uses it for an hour; a broken stream can be taken up again by its
// Last-Event-ID. A session is its principal's: to others it is not there.
//
// The host knows the caller of each request, reads its body, and checks Host and Origin.
type HTTP struct {
	*server
	withSessions, stateless http.Handler
	end                     context.CancelFunc
	stopping                context.Context // ends before the server: streams that wait for news end
	stop                    context.CancelFunc
	takes, away             time.Duration // takeTime and absence
	requests                sync.WaitGroup
}

// ErrNoRight is the cause with which the context of a request ends when its caller may make no more calls.
var ErrNoRight = errors.New("the caller has lost its right")

const (
	callerKey = "caller"
	absence   = 30 * time.Second // while it waits at no request of its session a client is not yet taken for gone
	takeTime  = time.Minute      // to take a part of an answer
	farewell  = 2 * time.Second  // to take the last answers of a server that ends

	sessionHeader = "Mcp-Session-Id"
	codeSession   = -32001 // as other servers have it
)

// NewHTTP makes a handler for callers of d. Of the options, Principal, Session and Elicit are the callers'.
func NewHTTP(d dialect.Dialect, o Options) (*HTTP, error) {
	done, end := context.WithCancel(context.Background())
	s, srv, err := newServer(done, d, o)
	if err != nil {
		end()
		return nil, err
	}
	return s.overHTTP(srv, end), nil
}

// overHTTP serves what srv has until end.
func (s *server) overHTTP(srv *sdk.Server, end context.CancelFunc) *HTTP {
	h := &HTTP{server: s, end: end, takes: takeTime, away: absence}
	h.stopping, h.stop = context.WithCancel(s.done)
	// The token of a request is checked by then; so the SDK gets it with each message.
	known := auth.RequireBearerToken(func(ctx context.Context, _ string, _ *http.Request) (*auth.TokenInfo, error) {
		by := ctx.Value(callerContext{}).(*Caller)
		return &auth.TokenInfo{UserID: by.Call.Principal, Extra: map[string]any{callerKey: by}}, nil
	}, &auth.RequireBearerTokenOptions{AllowMissingExpiration: true})
	get := func(*http.Request) *sdk.Server { return srv }
	const noLimit = -1 // the host has read the body
	h.withSessions = known(sdk.NewStreamableHTTPHandler(get, &sdk.StreamableHTTPOptions{DisableLocalhostProtection: true,
		MaxRequestBodyBytes: noLimit, EventStore: &events{of: map[string]*kept{}}}))
	h.stateless = known(sdk.NewStreamableHTTPHandler(get, &sdk.StreamableHTTPOptions{DisableLocalhostProtection: true,
		MaxRequestBodyBytes: noLimit, Stateless: true, PropagateRequestCancellation: true}))
	return h
}

type callerContext struct{}

// Serve answers the request r with this body, of the caller by.
func (h *HTTP) Serve(w http.ResponseWriter, r *http.Request, body []byte, by *Caller) {
	h.requests.Add(1)
	defer h.requests.Done()
	m, bad := posted{}, error(nil)
	if r.Method == http.MethodPost {
		m, bad = look(body)
	}
	id := r.Header.Get(sessionHeader)
	stateless := r.Header.Get("Mcp-Protocol-Version") >= statelessVersion || id == "" && m.stateless()
	if e, ok := bad.(*jsonrpc.Error); ok {
		refuse(w, http.StatusBadRequest, m.id, e)
		return
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	if r.Method == http.MethodGet || m.method == "subscriptions/listen" {
		defer context.AfterFunc(h.stopping, cancel)()
	}
	next := h.withSessions
	switch {
	case stateless:
		next = h.stateless
	case id != "":
		one, leave := h.find(by.Call.Principal, id)
		if one == nil {
			refuse(w, http.StatusNotFound, m.id, &jsonrpc.Error{Code: codeSession, Message: "there is no such session; it may have ended: initialize anew"})
			return
		}
		defer leave()
		by.session, by.heard = id, one.Of.attend(one.Alive)
		defer one.Of.turnAway(h.away)
		if r.Method == http.MethodDelete {
			h.sessions.EndOne(one) // the SDK would wait for its calls
			w.WriteHeader(http.StatusNoContent)
			return
		}
	case m.method != "initialize":
		refuse(w, http.StatusBadRequest, m.id, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest,
			Message: "there is no " + sessionHeader + ": begin with initialize, or send the MCP-Protocol-Version " + statelessVersion})
		return
	}
	by.right, by.lapse = context.WithCancel(context.Background())
	r = r.Clone(context.WithValue(ctx, callerContext{}, by))
	r.Body = io.NopCloser(bytes.NewReader(body))
	r.Header.Set("Authorization", "Bearer -") // the caller is known; the SDK wants one
	next.ServeHTTP(timed{w, h.takes}, r)
	if context.Cause(ctx) == ErrNoRight {
		by.lapse()
	}
}

// timed is the writer of an answer that a client takes in time: each part of it. Who takes nothing is cut off.
type timed struct {
	http.ResponseWriter
	takes time.Duration
}

func (t timed) Unwrap() http.ResponseWriter { return t.ResponseWriter }

func (t timed) Write(b []byte) (int, error) {
	_ = http.NewResponseController(t.ResponseWriter).SetWriteDeadline(time.Now().Add(t.takes))
	return t.ResponseWriter.Write(b)
}

// posted is as much of a message as tells where it belongs.
type posted struct {
	method     string
	id, params json.RawMessage
}

// look takes a body apart. The error of one that is not taken is a *jsonrpc.Error.
func look(body []byte) (m posted, _ error) {
	no := func(code int64, format string, args ...any) (posted, error) {
		return m, &jsonrpc.Error{Code: code, Message: fmt.Sprintf(format, args...)}
	}
	if code, why := ndjson.Fault(body, "body"); code != 0 {
		return no(int64(code), "%s", why)
	}
	body = bytes.TrimSpace(body)
	var id json.RawMessage
	ndjson.Members(body, func(quoted []byte, from, to int) {
		switch string(quoted) {
		case `"method"`:
			_ = json.Unmarshal(body[from:to], &m.method) // another type is no method
		case `"id"`:
			id = body[from:to]
		case `"params"`:
			m.params = body[from:to]
		}
	})
	switch {
	case m.method == "":
	case id != nil && (bytes.IndexByte([]byte(`"-0123456789`), id[0]) < 0 || rounded(id)):
		m.id = id
		return no(jsonrpc.CodeInvalidRequest, "the id is a string, or a whole number of at most 2^53")
	case strings.Contains(m.method, "."):
		m.id = id
		return no(jsonrpc.CodeMethodNotFound, "there is no such method; this address is MCP's, and methods of JSON-RPC go to /rpc")
	}
	m.id = id
	return m, nil
}

// stateless reports whether a message says, as those of the stateless revisions do, of which one it is.
func (m posted) stateless() bool {
	var p struct {
		Meta map[string]json.RawMessage `json:"_meta"`
	}
	return json.Unmarshal(m.params, &p) == nil && p.Meta[sdk.MetaKeyProtocolVersion] != nil
}

// refuse answers a request of which nothing is carried out.
func refuse(w http.ResponseWriter, status int, id json.RawMessage, e *jsonrpc.Error) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	body, _ := json.Marshal(e)                                       // a code and a text
	_, _ = timed{w, takeTime}.Write(ndjson.Reply(id, "error", body)) // a client that has gone hears no more
}

// begin takes a session over when it begins: from here on it is there for its principal.
func (s *server) begin(method string, req sdk.Request) error {
	conn, ok := req.GetSession().(*sdk.ServerSession)
	if method != "initialize" || s.local != nil || !ok {
		return nil
	}
	one, leave, err := s.sessions.Use(s.caller(req.GetExtra()).Call.Principal, conn.ID(), true)
	if err != nil {
		return tooMany(err)
	}
	defer leave()
	if one.Of.conn.Store(conn); one.Alive.Err() != nil {
		hangUp(one)
	}
	return nil
}

// Sweep ends the sessions that nobody has used for an hour. The host calls it now and then.
func (h *HTTP) Sweep() {
	if h != nil {
		h.sessions.Sweep()
	}
}

// Stop ends the streams that wait for news. Calls go on.
func (h *HTTP) Stop() {
	if h != nil {
		h.stop()
	}
}

// Close ends the calls under way, unchanged or complete, and has them answered; then all sessions. No more requests come by then.
func (h *HTTP) Close() {
	if h == nil {
		return
	}
	h.end()
	h.held.group.Wait()
	answered := make(chan struct{})
	go func() {
		h.requests.Wait()
		close(answered)
	}()
	select {
	case <-answered:
	case <-time.After(farewell):
	}
	h.sessions.EndAll(h.o.Run)
}

// front holds the connection of a session of HTTP, and how its client waits.
type front struct {
	conn atomic.Pointer[sdk.ServerSession] // nil: it is not one of HTTP

	mu    sync.Mutex
	open  int // requests at which its client waits
	heard context.Context
	deaf  context.CancelFunc
	away  *time.Timer // nil: it is not away
}

type session = serve.Session[front]

// hangUp ends the connection of a session that has ended.
func hangUp(one *session) {
	if conn := one.Of.conn.Load(); conn != nil {
		_ = conn.Close()
	}
}

// find finds a session of HTTP; nil: the principal has none of that name.
func (s *server) find(principal, name string) (one *session, leave func()) {
	one, leave = s.sessions.Find(principal, name)
	if one != nil && one.Of.conn.Load() == nil {
		leave()
		one = nil
	}
	return one, leave
}

// attend notes that the client waits at a request, however long. The context ends when it has not waited at any for a while.
func (one *front) attend(alive context.Context) context.Context {
	one.mu.Lock()
	defer one.mu.Unlock()
	one.open++
	if one.heard == nil || one.away != nil && !one.away.Stop() {
		one.heard, one.deaf = context.WithCancel(alive)
	}
	one.away = nil
	return one.heard
}

// turnAway ends what attend began. After so long without another request the client is taken for gone.
func (one *front) turnAway(after time.Duration) {
	one.mu.Lock()
	defer one.mu.Unlock()
	if one.open--; one.open == 0 {
		one.away = time.AfterFunc(after, one.deaf)
	}
}

// events keeps the newest messages of each session, for clients whose stream broke. It implements [sdk.EventStore].
// Messages to no request in particular are not kept: they say that the list of tools has changed.
type events struct {
	mu sync.Mutex
	of map[string]*kept
}

// kept has the newest messages of a session, the oldest first.
type kept struct {
	list []event
	size int
	next map[string]int // the next index of a stream; none: not all that is newest of it is kept
}

type event struct {
	stream string
	index  int
	data   []byte
}

const (
	keptBytes  = 512 << 10
	keptEvents = 256
)

// Open begins a stream.
func (e *events) Open(_ context.Context, session, stream string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.of[session] == nil {
		e.of[session] = &kept{next: map[string]int{}}
	}
	if stream != "" {
		e.of[session].next[stream] = 0
	}
	return nil
}

// Append keeps a message.
func (e *events) Append(_ context.Context, session, stream string, data []byte) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	k := e.of[session]
	if k == nil {
		return nil // it has ended
	}
	index, all := k.next[stream]
	if !all {
		return nil
	}
	k.next[stream] = index + 1
	k.list, k.size = append(k.list, event{stream, index, data}), k.size+len(data)
	for k.size > keptBytes || len(k.list) > keptEvents {
		old := k.list[0]
		if k.next[old.stream] == old.index+1 {
			delete(k.next, old.stream)
		}
		k.list, k.size = slices.Delete(k.list, 0, 1), k.size-len(old.data)
	}
	return nil
}

// After gives the messages of a stream after one of them.
func (e *events) After(_ context.Context, session, stream string, index int) iter.Seq2[[]byte, error] {
	e.mu.Lock()
	defer e.mu.Unlock()
	var found [][]byte
	k := e.of[session]
	if k == nil {
		k = &kept{}
	}
	for _, one := range k.list {
		if one.stream == stream && one.index > index {
			found = append(found, one.data)
		}
	}
	whole := stream == "" || k.next[stream]-len(found) == index+1
	return func(yield func([]byte, error) bool) {
		if !whole {
			yield(nil, sdk.ErrEventsPurged)
			return
		}
		for _, data := range found {
			if !yield(data, nil) {
				return
			}
		}
	}
}

// SessionClosed forgets the messages of a session.
func (e *events) SessionClosed(_ context.Context, session string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.of, session)
	return nil
}
