// Package jsonrpc serves a dialect over HTTP/1.1, on loopback addresses and Unix sockets: by JSON-RPC 2.0, and by MCP, for which it
// lets callers in and bounds what they take.
//
//	/mcp           streamable HTTP, see [mcp.HTTP]
//	POST /rpc      capabilities.list{category?}  capabilities.describe{name}
//	               capabilities.invoke{capability, arguments, session_id?}
//	               js.run{code | file, timeout_secs?, heap_memory_max_mb?, session_id?}
//	               session.create{session_id?}  session.end{session_id}
//	               session.events{session_id, cursor, limit, wait_ms}
//	GET  /healthz  whether it serves
//	GET  /readyz   whether calls can be carried out
//	GET  /metrics  for Prometheus; operators only
//	     /console/ the operators' page, where there is one
//
// invoke and js.run answer {"success": true, "data": …}, or {"success": false, "error": …} with the
// refusal of the dialect; that of capability has type, message, description, recovery, retryable,
// retry_after and context. A fault of the
// request itself is a JSON-RPC error: the standard codes, -32000 for too much at once, -32001 for
// a call that this caller may not make, -32003 for no valid token, -32004 for no such session.
//
// Callers. A request has a token of package serve as its bearer, and acts within that token's
// scope and tier; or one of the issuer that Options name. A Unix socket asks the system instead who is at the other end: a process of our
// own user needs no token there, and where the system can't tell, it does. Nobody is let in without
// either, on loopback too. An operator's token answers approvals and makes no calls. A token that
// is revoked or expires holds at once no more, and its calls under way end within a second.
//
// Web pages are kept out: the Host has to be an address, localhost or one that was named, against
// DNS rebinding; an Origin has to be that Host or one that was named; a body has to be application/json.
//
// The server keeps no state for a connection. A session belongs to its principal, and ends when nobody uses it for
// an hour, or with the server. Of 1024 the one that was used longest ago ends for one more. All callers are shown the same tools.
//
// Bounds: 32 MiB a body, 100 requests a batch, and 64 calls at the same time for each principal. Calls beyond wait; all else is
// refused. Of the descriptors of the process a quarter is for connections that have shown no token: beyond them the oldest of those
// is closed. Another quarter is for the others, and no principal has more than half of that.
package jsonrpc

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"moltisfs/internal/dialect"
	"moltisfs/internal/guardfs"
	"moltisfs/internal/hook"
	"moltisfs/internal/issuer"
	"moltisfs/internal/serve"
	"moltisfs/internal/serve/mcp"
)

// Options says how to serve. Without Tokens nobody but the sockets' own user gets in.
type Options struct {
	Tokens *serve.TokenStore
	Issuer *issuer.Issuer // whose tokens are taken too; nil: nobody's
	Local  string         // the principal of our own user on a Unix socket, without a token; "local" when empty
	Run    string         // the session of calls that name none; "" leaves that to the dialect
	// Origins and Hosts are let in besides what the package comment says.
	Origins, Hosts []string
	// Operator are methods, and Handlers are paths, that only operators reach: those with an
	// operator's token, and our own user on a Unix socket. by is their principal. The
	// context of a handler ends with its token and with the server.
	Operator map[string]serve.Method
	Handlers map[string]func(by string, w http.ResponseWriter, r *http.Request)
	Console  Console       // nil: there is no page
	Metrics  *hook.Metrics // nil: there are none
	MCP      *mcp.HTTP     // answers /mcp; nil: there is no MCP
	// Ready names what can't answer, so that calls would be refused, and Gauges gives more metrics. Both may be nil.
	Ready  func(context.Context) []string
	Gauges func(context.Context) []byte
	Logger *slog.Logger
}

// A Console is the operators' page, which knows them by a cookie. It has POST /console/rpc and GET /console/events, which are for those whom Admit
// lets in, and serves the rest of /console by itself. Admit has answered a request that it does not let in; holds reports from then
// on whether it still would.
type Console interface {
	http.Handler
	Admit(w http.ResponseWriter, r *http.Request) (principal string, holds func() bool, ok bool)
	Events(by string, w http.ResponseWriter, r *http.Request)
}

// The bounds.
const (
	maxBody    = 32 << 20
	maxBatch   = 100
	maxAnswer  = 64 << 20    // of a batch, beyond which its requests are not carried out
	maxCalls   = 64          // of one principal at the same time; more wait
	maxBytes   = 8 * maxBody // of its bodies, those of calls that wait too; more are refused
	minBytes   = 64 << 10    // a body counts as so many at least
	headerTime = 10 * time.Second
	bodyTime   = time.Minute // to send one, and to take an answer
	idleTime   = 2 * time.Minute
	grace      = 8 * time.Second        // for calls under way when the server is told to end
	flushTime  = 250 * time.Millisecond // for the last answers to leave
	tokenStale = 100 * time.Millisecond // after which a token is looked at again
)

// Server answers requests. Make it with New.
type Server struct {
	o           Options
	catalog     catalog
	dialect     dialect.Dialect
	sessions    serve.Sessions[struct{}]
	load        load
	connections *connections
	stopping    context.Context // ends first: polls and handlers are woken
	stop        context.CancelFunc
	bodyTime    time.Duration // that a body may take

	mu      sync.Mutex
	refused atomic.Int64 // requests without a valid token
	running map[*visit]bool
	visits  sync.WaitGroup // those that run
}

// visit is one request of a caller, which is ended with its token.
type visit struct {
	caller *caller
	cancel context.CancelCauseFunc
}

// New makes a server of d.
func New(d dialect.Dialect, o Options) *Server {
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	s := &Server{
		o: o, catalog: newCatalog(d.Definitions()), dialect: d,
		running: map[*visit]bool{}, bodyTime: bodyTime, connections: newConnections(guardfs.Room()),
	}
	s.sessions.Run, s.sessions.End = o.Run, serve.EndIn(d, o.Logger)
	s.stopping, s.stop = context.WithCancel(context.Background())
	return s
}

// Serve answers the requests that come by the listeners, which it closes, until ctx ends. Then polls are
// answered, calls under way run to their end, and those that take longer than 8 seconds are
// cancelled. All sessions end. It serves once.
func (s *Server) Serve(ctx context.Context, listeners ...net.Listener) error {
	base, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer s.stop()
	hs := &http.Server{
		Handler: s, ReadHeaderTimeout: headerTime, ReadTimeout: s.bodyTime, IdleTimeout: idleTime,
		MaxHeaderBytes: 16 << 10,
		BaseContext:    func(net.Listener) context.Context { return base }, ConnContext: withConnection,
		ErrorLog: slog.NewLogLogger(s.o.Logger.Handler(), slog.LevelDebug),
	}
	failed := make(chan error, len(listeners))
	for _, l := range listeners {
		go func() { failed <- hs.Serve(counted{l, s.connections}) }()
	}
	var err error
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for serving := true; serving; {
		select {
		case <-tick.C:
			s.endLapsed()
			s.sessions.Sweep()
			s.o.MCP.Sweep()
		case err = <-failed:
			serving = false
		case <-ctx.Done():
			serving = false
		}
	}
	s.mu.Lock()
	s.stop()
	s.mu.Unlock()
	s.o.MCP.Stop() // its streams
	s.shutdown(hs)
	s.o.MCP.Close()
	cancel() // a call that has not ended by now ends unchanged or complete
	s.shutdown(hs)
	err = errors.Join(err, hs.Close())
	for _, one := range s.sessions.EndAll(s.o.Run) {
		<-one.Ended
	}
	return err
}

// shutdown takes no more connections, and waits a while for the requests under way. It does not
// wait for strangers, who may have connected and said nothing.
func (s *Server) shutdown(hs *http.Server) {
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	go func() {
		s.visits.Wait()
		time.AfterFunc(flushTime, cancel)
	}()
	_ = hs.Shutdown(ctx) // Close cuts off the others
}

// enter keeps a request among those that end with their caller's token, if any are still taken.
func (s *Server) enter(ctx context.Context, c *caller) (_ context.Context, leave func(), ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopping.Err() != nil {
		return nil, nil, false
	}
	ctx, cancel := context.WithCancelCause(ctx)
	v := &visit{c, cancel}
	s.running[v] = true
	s.visits.Add(1)
	return ctx, func() {
		cancel(nil)
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.running, v)
		s.visits.Done()
	}, true
}

// endLapsed ends the requests whose token holds no more. Others come and go meanwhile: the tokens of a fleet may take seconds to be read.
func (s *Server) endLapsed() {
	s.mu.Lock()
	running := slices.Collect(maps.Keys(s.running))
	s.mu.Unlock()
	holds := map[string]bool{}
	for _, v := range running {
		ok, known := holds[v.caller.secret]
		switch {
		case v.caller.still != nil:
			ok = v.caller.still()
		case !known:
			ok = s.holds(v.caller)
			holds[v.caller.secret] = ok
		}
		if !ok {
			v.cancel(mcp.ErrNoRight)
		}
	}
}

// load counts the bodies and calls that each principal has under way, so that none takes the place of the others.
type load struct {
	mu sync.Mutex
	of map[string]*part
}

// part is the load of one principal: the bytes of its bodies, and its calls. It is there while somebody counts in it.
type part struct {
	bytes, calls *semaphore.Weighted
	users        int
}

func (l *load) enter(principal string) (p *part, leave func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if p = l.of[principal]; p == nil {
		if l.of == nil {
			l.of = map[string]*part{}
		}
		p = &part{bytes: semaphore.NewWeighted(maxBytes), calls: semaphore.NewWeighted(maxCalls)}
		l.of[principal] = p
	}
	p.users++
	return p, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if p.users--; p.users == 0 {
			delete(l.of, principal)
		}
	}
}

// turn waits until the principal may make one more call, and gives that back with done.
func (l *load) turn(ctx context.Context, principal string) (done func(), err error) {
	p, leave := l.enter(principal)
	if err := p.calls.Acquire(ctx, 1); err != nil {
		leave()
		return nil, err
	}
	return func() { p.calls.Release(1); leave() }, nil
}
