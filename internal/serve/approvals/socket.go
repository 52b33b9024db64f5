package approvals

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"

	"moltisfs/internal/approval"
	"moltisfs/internal/approval/queue"
	"moltisfs/internal/serve"
)

// A Gateway serves WebSockets in the wire form of Moltis' gateway, protocols 3 and 4. Frames are
//
//	{"type": "req", "id", "method", "params"}
//	{"type": "res", "id", "ok": true, "payload"}   or   "ok": false, "error": {"code", "message"}
//	{"type": "event", "event", "payload", "seq"}
//
// A question that comes is the event exec.approval.requested {requestId, command, sessionKey}, to
// which we add its card, which is escaped. exec.approval.request
// {sessionKey?} lists what waits, exec.approval.resolve {requestId, decision} answers "approved" or
// "denied". An id that is not there is warned of and no error, as in Moltis; a question that is
// over is one. connect is answered and not needed: the request has told the caller.
//
// The event alert {alertId, severity, message, context, principal, sessionKey} is ours: an agent sent
// one. A client that does not take them misses some.
//
// A long diff is cut, and says so. Then approvals.show shows the whole of it, before it may be
// approved.
type Gateway struct {
	Queue   *queue.Queue
	Origins []string // web pages that may connect besides those of the same host
	Logger  *slog.Logger

	open     atomic.Int32
	clients  sync.Map      // *client by itself
	patience time.Duration // for tests
}

// The bounds. A client that does not take a message in writeTime loses its connection.
const (
	maxConnections = 32
	maxFrame       = 64 << 10
	maxDiff        = 64 << 10 // of an event
	maxListedDiff  = 4 << 10
	mostAlerts     = 64 // that wait for one client
	writeTime      = 10 * time.Second
	pingEvery      = 30 * time.Second
)

// Names and versions of the wire form.
const (
	oldest, newest = 3, 4 // protocols
	requested      = "exec.approval.requested"
	alerted        = "alert"
)

// codes are the wire form's for those of JSON-RPC.
var codes = map[int]string{codeParams: "INVALID_REQUEST", codeDenied: "FORBIDDEN", codeNotFound: "NOT_FOUND",
	codeOver: "CONFLICT", codeMethod: "UNKNOWN_METHOD", codeProtocol: "PROTOCOL_ERROR", codeInternal: "INTERNAL"}

// Tell has an alert sent to all clients, escaped as questions are. It reports whether one takes it.
func (g *Gateway) Tell(a Alert) (taken bool) {
	for _, s := range []*string{&a.Principal, &a.SessionKey} {
		*s = approval.Escape(*s, false)
	}
	a.Message = approval.Escape(a.Message, true)
	g.clients.Range(func(c, _ any) bool {
		select {
		case c.(*client).alerts <- a:
			taken = true
		default: // it is told of no more than it takes
		}
		return true
	})
	return taken
}

// Serve makes a WebSocket of a request of the operator by, and serves it until either side ends it
// or the request's context does. Requests of web pages of other hosts are refused.
func (g *Gateway) Serve(by string, w http.ResponseWriter, r *http.Request) {
	if g.open.Add(1) > maxConnections {
		g.open.Add(-1)
		http.Error(w, "too many connections", http.StatusServiceUnavailable)
		return
	}
	defer g.open.Add(-1)
	logger := cmp.Or(g.Logger, slog.New(slog.DiscardHandler))
	follows := queue.Follower{Queue: g.Queue}
	if _, _, err := follows.Look(); err != nil { // exec.approval.request lists them; all that comes later is an event
		logger.Error("looking into the queue", "err", err)
		http.Error(w, "the queue can't be read", http.StatusInternalServerError)
		return
	}
	conn, err := websocket.Accept(w, r, &websocket.AcceptOptions{OriginPatterns: g.Origins})
	if err != nil {
		return // it has been told
	}
	defer conn.CloseNow() //nolint:errcheck // nothing is left to be said
	conn.SetReadLimit(maxFrame)
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	c := &client{queue: g.Queue, alerts: make(chan Alert, mostAlerts), conn: conn, by: by, follows: follows,
		patience: cmp.Or(g.patience, writeTime), logger: logger}
	g.clients.Store(c, c)
	defer g.clients.Delete(c)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer cancel()
		c.watch(ctx)
	}()
	err = c.read(ctx)
	cancel()
	<-ended
	if r.Context().Err() != nil {
		conn.Close(websocket.StatusGoingAway, "") //nolint:errcheck // see above
	} else if err != nil {
		conn.Close(websocket.StatusUnsupportedData, err.Error()) //nolint:errcheck // see above
	}
}

// client is one connection.
type client struct {
	queue  *queue.Queue
	conn   *websocket.Conn
	by     string
	logger *slog.Logger
	// patience bounds the time to take a message.
	patience time.Duration
	seq      int            // of the events
	follows  queue.Follower // the questions that it is told of
	alerts   chan Alert     // that it is to be told of
}

// show makes a question one for the wire, with at most so many bytes of its diff.
func (c *client) show(e queue.Entry, most int) request {
	q, lines := e.Question, math.MaxInt
	if len(q.Diff) > most {
		lines = strings.Count(q.Diff[:most], "\n")
	}
	r := request{RequestID: e.ID, Command: command(&q), SessionKey: approval.Escape(q.Session, false),
		Card: approval.Card(q, lines), Unseen: approval.Unseen(q, lines), Expires: q.Expires}
	if r.Unseen == 0 && len(q.Paths) <= approval.CardPaths {
		_ = c.queue.Saw(e.ID, operator(c.by)) // else approvals.show has to show it
	}
	return r
}

// send writes one message. A client that does not take it in time is dropped.
func (c *client) send(ctx context.Context, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, c.patience)
	defer cancel()
	return c.conn.Write(ctx, websocket.MessageText, text)
}

func (c *client) event(ctx context.Context, name string, payload any) error {
	c.seq++
	return c.send(ctx, event{"event", name, payload, c.seq})
}

// watch tells of questions that come, and sees to it that somebody is there.
func (c *client) watch(ctx context.Context) {
	look, ping := time.NewTicker(queue.LookEvery), time.NewTicker(pingEvery)
	defer look.Stop()
	defer ping.Stop()
	for {
		var err error
		select {
		case <-ctx.Done():
			return
		case <-look.C:
			err = c.look(ctx)
		case a := <-c.alerts:
			err = c.event(ctx, alerted, a)
		case <-ping.C:
			pong, cancel := context.WithTimeout(ctx, c.patience)
			err = c.conn.Ping(pong)
			cancel()
			if err == nil {
				err = c.event(ctx, "tick", map[string]any{"ts": time.Now().UnixMilli()})
			}
		}
		if err != nil {
			c.logger.Debug("a connection of approvals ends", "by", c.by, "err", err)
			return
		}
	}
}

// look sends the questions that have come since the last look.
func (c *client) look(ctx context.Context) error {
	came, _, err := c.follows.Look()
	for i := 0; i < len(came) && err == nil; i++ {
		if e, gone := c.queue.Get(came[i].ID); gone == nil && e.State == queue.Pending { // else it is over by now
			err = c.event(ctx, requested, c.show(e, maxDiff))
		}
	}
	return err
}

// read carries out requests, one after the other. The error is that of a client that speaks
// something else.
func (c *client) read(ctx context.Context) error {
	for {
		kind, text, err := c.conn.Read(ctx)
		if err != nil {
			return nil // it went away, or sent too much, which it was told
		}
		var f frame
		if kind != websocket.MessageText || json.Unmarshal(text, &f) != nil || f.Type == "" {
			return errors.New("a frame is a JSON object with a type")
		}
		if f.Type != "req" {
			continue // we ask nothing, and take no events
		}
		payload, err := c.call(ctx, f)
		r := response{Type: "res", ID: f.ID, OK: err == nil, Payload: payload}
		if err != nil {
			e, ok := errors.AsType[*serve.Error](err)
			if !ok {
				c.logger.Error("a request failed", "method", f.Method, "by", c.by, "err", err)
				e = serve.Wrong(codeInternal, "internal error; the server's log says more")
			}
			r.Payload, r.Error = nil, map[string]string{"code": codes[e.Code], "message": e.Message}
		}
		if c.send(ctx, r) != nil {
			return nil
		}
	}
}

func (c *client) call(ctx context.Context, f frame) (any, error) {
	methods := Methods(c.queue)
	switch m := methods[f.Method]; {
	case m != nil:
		return m(ctx, c.by, f.Params)
	case f.Method == "exec.approval.request":
		return c.list(f.Params)
	case f.Method == "exec.approval.resolve":
		return c.resolve(f.Params)
	case f.Method == "connect":
		return c.hello(f.Params, slices.Sorted(maps.Keys(methods)))
	}
	return nil, serve.Wrong(codeMethod, "there is no such method")
}

func (c *client) list(params json.RawMessage) (any, error) {
	var p struct {
		SessionKey *string `json:"sessionKey"`
	}
	if len(params) > 0 && json.Unmarshal(params, &p) != nil {
		return nil, serve.Wrong(codeParams, "sessionKey is a string")
	}
	entries, err := c.queue.List(false)
	if err != nil {
		return nil, err
	}
	type listed struct {
		ID         string `json:"id"`
		SessionKey string `json:"session_key"` // spelled so there
		request
	}
	ids, requests := []string{}, []listed{}
	for _, e := range entries {
		if p.SessionKey == nil || *p.SessionKey == e.Question.Session {
			if e, err = c.queue.Get(e.ID); err != nil || e.State != queue.Pending {
				continue // it is over by now
			}
			r := c.show(e, maxListedDiff)
			ids, requests = append(ids, e.ID), append(requests, listed{e.ID, r.SessionKey, r})
		}
	}
	return map[string]any{"pending": ids, "requests": requests}, nil
}

func (c *client) resolve(params json.RawMessage) (any, error) {
	var p struct {
		RequestID string `json:"requestId"`
		Decision  string `json:"decision"`
		Reason    string `json:"reason"` // ours, as unseen; the command that Moltis would allow for good is ignored
		Unseen    bool   `json:"unseen"`
	}
	if json.Unmarshal(params, &p) != nil {
		return nil, serve.Wrong(codeParams, "requestId and decision are strings, unseen is true or false")
	}
	d, who := approval.Approved, operator(c.by)
	who.Unseen = p.Unseen
	switch {
	case p.Decision == "denied":
		d = approval.Denied
	case p.Decision != "approved":
		return nil, serve.Wrong(codeParams, `decision is "approved" or "denied"`)
	}
	_, err := c.queue.Answer(p.RequestID, d, who, p.Reason)
	if errors.Is(err, queue.ErrNotFound) {
		c.logger.Warn("an answer to a question that is not there", "id", p.RequestID, "by", c.by)
		return map[string]any{"ok": true, "warning": "there is no such question"}, nil
	}
	if err != nil {
		return nil, asError(err)
	}
	return map[string]any{"ok": true}, nil
}

// hello answers connect, in the older form and the newer one.
func (c *client) hello(params json.RawMessage, methods []string) (any, error) {
	var p struct {
		Protocol struct {
			Min, Max int
		}
		MinProtocol, MaxProtocol int
	}
	if len(params) > 0 && json.Unmarshal(params, &p) != nil {
		return nil, serve.Wrong(codeParams, "connect names its protocols")
	}
	low, high := max(p.Protocol.Min, p.MinProtocol), max(p.Protocol.Max, p.MaxProtocol)
	if low > newest || high < oldest {
		return nil, serve.Wrong(codeProtocol, "the protocols are %d to %d", oldest, newest)
	}
	return map[string]any{
		"type": "hello-ok", "protocol": min(high, newest),
		"server": map[string]any{"version": "moltis-fs", "connId": rand.Text()},
		"features": map[string]any{
			"methods": append(methods, "connect", "exec.approval.request", "exec.approval.resolve"),
			"events":  []string{requested, alerted, "tick"},
		},
		"snapshot": map[string]any{},
		"policy": map[string]any{"maxPayload": maxFrame, "maxBufferedBytes": maxFrame,
			"tickIntervalMs": pingEvery.Milliseconds()},
	}, nil
}

// A frame of the wire form that comes in.
type frame struct {
	Type   string          `json:"type"`
	ID     string          `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
}

type response struct {
	Type    string `json:"type"`
	ID      string `json:"id"`
	OK      bool   `json:"ok"`
	Payload any    `json:"payload,omitempty"`
	Error   any    `json:"error,omitempty"` // its code and message
}

type event struct {
	Type    string `json:"type"`
	Event   string `json:"event"`
	Payload any    `json:"payload"`
	Seq     int    `json:"seq"`
}

// request is a question on the wire. The first three are Moltis'.
type request struct {
	RequestID  string    `json:"requestId"`
	Command    string    `json:"command"`
	SessionKey string    `json:"sessionKey"`
	Card       string    `json:"card"`
	Unseen     int       `json:"unseen,omitempty"` // lines of the diff that are not on the card
	Expires    time.Time `json:"expires,omitzero"`
}

// An Alert is a message of an agent to the operators, on the wire.
type Alert struct {
	ID         string         `json:"alertId"`
	Severity   string         `json:"severity"`
	Message    string         `json:"message"`
	Context    map[string]any `json:"context,omitempty"`
	Principal  string         `json:"principal"`
	SessionKey string         `json:"sessionKey"`
}

// command is the question in one line.
func command(q *approval.Question) string {
	s := approval.Escape(q.Tool, false)
	if len(q.Paths) > 0 {
		s += " " + approval.Escape(q.Paths[0], false)
	}
	if n := len(q.Paths) - 1; n > 0 {
		s += fmt.Sprintf(" and %d more", n)
	}
	return s
}
