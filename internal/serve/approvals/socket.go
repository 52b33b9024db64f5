package approvals

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"

	"moltisfs/internal/approval"
	"moltisfs/internal/approval/queue"
)

// A Gateway serves WebSockets in the wire form of Moltis' gateway, protocols 3 and 4. Frames are
//
//	{"type": "req", "id", "method", "params"}
//	{"type": "res", "id", "ok": true, "payload"}   or   "ok": false, "error": {"code", "message"}
//	{"type": "event", "event", "payload", "seq"}
//
// A question that comes is the event exec.approval.requested {requestId, command, sessionKey}, to
// which we add the tool, paths, warnings and the diff, all escaped. exec.approval.request
// {sessionKey?} lists what waits, exec.approval.resolve {requestId, decision} answers "approved" or
// "denied". An id that is not there is warned of and no error, as in Moltis; a question that is
// over is one. connect is answered and not needed: who calls is known from the request.
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

// The bounds. What a client does not take in writeTime closes its connection.
const (
	maxConnections = 32
	maxFrame       = 64 << 10
	maxDiff        = 64 << 10 // of an event
	maxListedDiff  = 4 << 10
	mostAlerts     = 64 // that wait for one client
	writeTime      = 10 * time.Second
	pingEvery      = 30 * time.Second
	lookEvery      = 500 * time.Millisecond
)

// Names and versions of the wire form.
const (
	oldest, newest = 3, 4 // protocols
	requested      = "exec.approval.requested"
	alerted        = "alert"
	invalidRequest = "INVALID_REQUEST"
)

// codes are the wire form's for those of JSON-RPC.
var codes = map[int]string{codeParams: invalidRequest, codeDenied: "FORBIDDEN",
	codeNotFound: "NOT_FOUND", codeOver: "CONFLICT"}

// Tell has an alert sent to all clients, escaped as questions are. told: one takes it.
func (g *Gateway) Tell(a Alert) (told bool) {
	for _, s := range []*string{&a.Principal, &a.SessionKey} {
		*s = approval.Escape(*s, false)
	}
	a.Message = approval.Escape(a.Message, true)
	g.clients.Range(func(c, _ any) bool {
		select {
		case c.(*client).alerts <- a:
			told = true
		default: // it is told of no more than it takes
		}
		return true
	})
	return told
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
	waiting, err := g.Queue.Unanswered() // before it is connected: all that comes later is an event
	if err != nil {
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
	c := &client{queue: g.Queue, alerts: make(chan Alert, mostAlerts), conn: conn, by: by, known: map[string]bool{},
		patience: cmp.Or(g.patience, writeTime), logger: logger}
	for _, id := range waiting {
		c.known[id] = true // exec.approval.request lists them
	}
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
