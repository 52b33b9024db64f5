package jsonrpc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"moltisfs/internal/approval"
	"moltisfs/internal/dialect"
	"moltisfs/internal/issuer"
	"moltisfs/internal/outage"
	"moltisfs/internal/serve"
	"moltisfs/internal/serve/mcp"
)

// mcpPath is the address of MCP.
const mcpPath = "/mcp"

// caller is the sender of a request, with its rights.
type caller struct {
	principal       string
	calls, operates bool
	scope           *dialect.Scope
	tier            approval.Tier
	byUser, elicits bool
	secret          string      // of its token; "" for our own user on a socket, and in a browser
	still           func() bool // whether a browser's cookie, or an issuer's token, holds; nil for others
	program         string      // as it names itself
	headers         map[string]string
	batch           bool // the request is one of a batch
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-store")
	_ = http.NewResponseController(w).SetWriteDeadline(time.Time{}) // that of the answer before, on the same connection
	var p peer
	if c := connectionOf(r); c != nil {
		p = c.peer
	}
	handler := s.o.Handlers[r.URL.Path]
	switch {
	case p.known && !p.ours:
		refuse(w, http.StatusForbidden, codeAuth, "this socket is another user's")
	case !p.socket && !s.hostOK(r):
		refuse(w, http.StatusForbidden, codeAuth, "the Host is none of this server's; --allow-host names more")
	case s.o.Console != nil && strings.HasPrefix(r.URL.Path+"/", "/console/"):
		s.console(w, r)
	case !s.originOK(r):
		refuse(w, http.StatusForbidden, codeAuth, "requests of web pages are not taken, but of those that --allow-origin names")
	case s.o.Issuer != nil && s.o.Issuer.Describes(r.URL.Path):
		if hasMethod(w, r, http.MethodGet) {
			write(w, http.StatusOK, "application/json", s.o.Issuer.Describe())
		}
	case r.URL.Path == "/healthz" && hasMethod(w, r, http.MethodGet):
		s.health(w)
	case r.URL.Path == "/readyz" && hasMethod(w, r, http.MethodGet):
		s.ready(w, r)
	case r.URL.Path == "/rpc" && hasMethod(w, r, http.MethodPost):
		s.withCaller(w, r, p, s.rpc)
	case r.URL.Path == mcpPath && s.o.MCP != nil:
		s.withCaller(w, r, p, s.mcp)
	case r.URL.Path == "/metrics" && s.o.Metrics != nil && hasMethod(w, r, http.MethodGet):
		s.withCaller(w, r, p, operators(s.metrics))
	case handler != nil:
		s.withCaller(w, r, p, operators(s.untilStopped(handler)))
	case !slices.Contains([]string{"/healthz", "/readyz", "/rpc", "/metrics"}, r.URL.Path):
		refuse(w, http.StatusNotFound, codeMethod, "there is nothing here; requests of JSON-RPC go to /rpc, and of MCP to "+mcpPath)
	}
}

// untilStopped is a handler whose requests end with the server.
func (s *Server) untilStopped(of func(by string, w http.ResponseWriter, r *http.Request)) handler {
	return func(w http.ResponseWriter, r *http.Request, c *caller) {
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		defer context.AfterFunc(s.stopping, cancel)()
		of(c.principal, w, r.WithContext(ctx))
	}
}

// console serves the operators' page. Its own rules stand in the place of those for tokens and origins.
func (s *Server) console(w http.ResponseWriter, r *http.Request) {
	method, next := http.MethodPost, handler(s.rpc)
	switch r.URL.Path {
	case "/console/rpc":
	case "/console/events":
		method, next = http.MethodGet, s.untilStopped(s.o.Console.Events)
	default:
		seen := &statusWriter{ResponseWriter: w}
		if s.o.Console.ServeHTTP(seen, r); seen.status == http.StatusUnauthorized && r.Method == http.MethodPost {
			s.refused.Add(1) // a sign-in
		}
		return
	}
	if !hasMethod(w, r, method) {
		return
	}
	if by, still, ok := s.o.Console.Admit(w, r); ok {
		s.serve(w, r, &caller{principal: by, operates: true, still: still}, next)
	}
}

// statusWriter keeps the status of an answer.
type statusWriter struct {
	http.ResponseWriter
	status int
}

func (w *statusWriter) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

// hasMethod reports whether a request has the one method of its place, and refuses it if not.
func hasMethod(w http.ResponseWriter, r *http.Request, want string) bool {
	if r.Method == want {
		return true
	}
	w.Header().Set("Allow", want)
	refuse(w, http.StatusMethodNotAllowed, codeRequest, "the method is "+want+" here")
	return false
}

// hostOK holds off a web page whose name leads to this machine: a name has to be one that we know.
func (s *Server) hostOK(r *http.Request) bool {
	host, _, err := net.SplitHostPort(r.Host)
	if err != nil {
		host = strings.TrimSuffix(strings.TrimPrefix(r.Host, "["), "]")
	}
	if strings.EqualFold(host, "localhost") || slices.ContainsFunc(s.o.Hosts,
		func(h string) bool { return strings.EqualFold(h, host) || strings.EqualFold(h, r.Host) }) {
		return true
	}
	addr, err := netip.ParseAddr(host)
	if err != nil {
		return false
	}
	here, _ := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	return addr.IsLoopback() || here != nil && addr.Unmap() == here.AddrPort().Addr().Unmap()
}

// originOK holds off web pages of others. A page of the Host that a request names is our own.
func (s *Server) originOK(r *http.Request) bool {
	for _, o := range r.Header.Values("Origin") {
		if u, err := url.Parse(o); !slices.Contains(s.o.Origins, o) && (err != nil || u.Host == "" || u.Host != r.Host) {
			return false
		}
	}
	return true
}

// A handler answers requests of callers that are known.
type handler func(http.ResponseWriter, *http.Request, *caller)

// withCaller lets a request in whose caller is known.
func (s *Server) withCaller(w http.ResponseWriter, r *http.Request, p peer, next handler) {
	c, err := s.authenticate(r, p)
	switch {
	case errors.Is(err, serve.ErrUnknownToken):
		s.refused.Add(1)
		s.challenge(w, r, err)
		refuse(w, http.StatusUnauthorized, codeAuth, "a valid token is needed, as of moltis-fs token create: Authorization: Bearer …")
	case errors.Is(err, issuer.ErrScope):
		s.challenge(w, r, err)
		refuse(w, http.StatusForbidden, codeAuth, err.Error())
	case err != nil:
		s.o.Logger.Error("a token can't be checked", "err", err)
		refuse(w, http.StatusServiceUnavailable, codeInternal,
			"the token can't be checked now; the server's log says why")
	default:
		s.serve(w, r, c, next)
	}
}

// challenge says which token is wanted, and where a client gets one.
func (s *Server) challenge(w http.ResponseWriter, r *http.Request, failed error) {
	say := "Bearer"
	if s.o.Issuer != nil {
		if r.Header.Get("Authorization") == "" {
			failed = nil
		}
		say = s.o.Issuer.Challenge(failed)
	}
	w.Header().Set("WWW-Authenticate", say)
}

// serve answers a request of a caller who is let in.
func (s *Server) serve(w http.ResponseWriter, r *http.Request, c *caller, next handler) {
	if !connectionOf(r).belongs(c.principal) {
		refuse(w, http.StatusTooManyRequests, codeBusy, "you have too many connections open; close some")
		return
	}
	ctx, leave, ok := s.enter(r.Context(), c)
	if !ok {
		refuse(w, http.StatusServiceUnavailable, codeInternal, "the server is ending")
		return
	}
	defer leave()
	c.program, c.headers = r.UserAgent(), policyHeaders(r.Header)
	next(w, r.WithContext(ctx), c)
}

// policyHeaders gives the headers that the policy chain sees: X-MCP-*, without that prefix, in lower case. Of one
// that comes more than once the values stand side by side, so that none is hidden by another.
func policyHeaders(all http.Header) map[string]string {
	const prefix = "X-Mcp-"
	out := map[string]string{}
	for name, values := range all {
		if rest, ok := strings.CutPrefix(name, prefix); ok && rest != "" {
			out[strings.ToLower(rest)] = strings.Join(values, ", ")
		}
	}
	return out
}

// authenticate finds out whose request it is. The error is serve.ErrUnknownToken, issuer.ErrScope, or the reason why a token can't
// be checked.
func (s *Server) authenticate(r *http.Request, p peer) (*caller, error) {
	header := r.Header.Values("Authorization")
	if len(header) == 0 && p.socket && p.ours {
		return &caller{principal: cmp.Or(s.o.Local, "local"), calls: true, operates: true, elicits: true}, nil
	}
	if len(header) != 1 || s.o.Tokens == nil {
		return nil, serve.ErrUnknownToken
	}
	scheme, secret, _ := strings.Cut(header[0], " ")
	if !strings.EqualFold(scheme, "Bearer") || secret == "" {
		return nil, serve.ErrUnknownToken
	}
	if s.o.Issuer != nil && strings.Count(secret, ".") == 2 { // none of ours
		return s.ofIssuer(r.Context(), secret)
	}
	t, err := s.o.Tokens.Check(secret, time.Now())
	if err != nil {
		return nil, err
	}
	c := &caller{
		principal: t.Principal, calls: !t.Operator, operates: t.Operator, tier: approval.Tier(t.Tier),
		byUser: t.ByUser, elicits: t.Elicit, secret: secret,
	}
	if t.Scope != nil {
		c.scope = &dialect.Scope{Readable: t.Scope.Readable, Writable: t.Scope.Writable}
	}
	return c, nil
}

// ofIssuer is the caller with a token of the issuer.
func (s *Server) ofIssuer(ctx context.Context, token string) (*caller, error) {
	g, err := s.o.Issuer.Check(ctx, token)
	if errors.Is(err, issuer.ErrInvalid) {
		return nil, serve.ErrUnknownToken
	}
	if err != nil {
		return nil, err
	}
	c := &caller{principal: g.Principal, calls: true, elicits: g.May(issuer.Elicit), secret: token,
		still: func() bool { return time.Now().Before(g.Expires) }}
	if !g.May(issuer.Write) {
		c.scope = &dialect.Scope{Readable: everywhere}
	}
	return c, nil
}

// everywhere is the roots of all trees.
var everywhere = func() []string {
	if runtime.GOOS != "windows" {
		return []string{"/"}
	}
	var drives []string
	for letter := 'A'; letter <= 'Z'; letter++ {
		drives = append(drives, string(letter)+`:\`)
	}
	return drives
}()

// holds reports whether the caller, whose request was let in, may still be there. While the tokens of a fleet can't be reached he is: nobody
// knows that his is revoked.
func (s *Server) holds(c *caller) bool {
	if c.still != nil {
		return c.still()
	}
	if c.secret == "" {
		return true
	}
	_, err := s.o.Tokens.Check(c.secret, time.Now())
	return err == nil || outage.Is(err)
}

// operators keeps next to callers who operate.
func operators(next handler) handler {
	return func(w http.ResponseWriter, r *http.Request, c *caller) {
		if !c.operates {
			refuse(w, http.StatusForbidden, codeDenied, "this is for operators")
			return
		}
		next(w, r, c)
	}
}

func (s *Server) health(w http.ResponseWriter) {
	status, says := http.StatusOK, `{"status":"ok"}`
	if s.stopping.Err() != nil {
		status, says = http.StatusServiceUnavailable, `{"status":"ending"}`
	}
	write(w, status, "application/json", []byte(says))
}

// ready says which parts can't answer. It names them and no more: anybody may ask.
func (s *Server) ready(w http.ResponseWriter, r *http.Request) {
	var failed []string
	if s.stopping.Err() != nil {
		failed = []string{"ending"}
	} else if s.o.Ready != nil {
		failed = s.o.Ready(r.Context())
	}
	status, says := http.StatusOK, `{"status":"ready"}`
	if len(failed) > 0 {
		status, says = http.StatusServiceUnavailable, `{"status":"not ready","failed":["`+strings.Join(failed, `","`)+`"]}`
	}
	write(w, status, "application/json", []byte(says))
}

func (s *Server) metrics(w http.ResponseWriter, r *http.Request, _ *caller) {
	const refused = "moltis_logins_refused_total"
	text := fmt.Appendf(s.o.Metrics.Text(), "# HELP %s Requests without a valid token.\n# TYPE %s counter\n%s %d\n", refused, refused, refused, s.refused.Load())
	if s.o.Gauges != nil {
		text = append(text, s.o.Gauges(r.Context())...)
	}
	write(w, http.StatusOK, "text/plain; version=0.0.4; charset=utf-8", text)
}

// rpc answers the request of a body, or those of its batch.
func (s *Server) rpc(w http.ResponseWriter, r *http.Request, c *caller) {
	body, done, ok := s.body(w, r, c)
	if !ok {
		return
	}
	defer done()
	answer, status := s.answer(r.Context(), c, body)
	if answer == nil {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	write(w, status, "application/json", answer)
}

// mcp answers a request of MCP. What it asks for may take long, so its end is the caller's going, or that of its token.
func (s *Server) mcp(w http.ResponseWriter, r *http.Request, c *caller) {
	var body []byte
	done, ok := func() {}, false
	switch {
	case !c.calls:
		refuse(w, http.StatusForbidden, codeDenied, noCalls)
	case r.Method == http.MethodPost:
		body, done, ok = s.body(w, r, c)
	case r.Method == http.MethodGet || r.Method == http.MethodDelete:
		done, ok = s.take(w, c, minBytes)
	default:
		w.Header().Set("Allow", "POST, GET, DELETE")
		refuse(w, http.StatusMethodNotAllowed, codeRequest, "the method is POST, GET or DELETE here")
	}
	if !ok {
		return
	}
	defer done()
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{}) // that of the body; the answer may be a stream
	turn := func(ctx context.Context) (func(), error) { return s.load.turn(ctx, c.principal) }
	by := &mcp.Caller{Elicit: c.elicits, Turn: turn, Call: dialect.Call{Principal: c.principal, Tier: c.tier,
		Scope: c.scope, ByUser: c.byUser, Headers: c.headers}}
	s.o.MCP.Serve(w, r, body, by)
}

// take takes size bytes of what the caller may have under way, until done. Where it has too much it is refused.
func (s *Server) take(w http.ResponseWriter, c *caller, size int64) (done func(), ok bool) {
	part, leave := s.load.enter(c.principal)
	if !part.bytes.TryAcquire(size) {
		leave()
		w.Header().Set("Retry-After", "1")
		refuse(w, http.StatusTooManyRequests, codeBusy, "you have too much under way; wait for some of it to end")
		return nil, false
	}
	return func() { part.bytes.Release(size); leave() }, true
}

// body reads the body of a request, of which the caller has a share until done. One that can't be taken is refused.
func (s *Server) body(w http.ResponseWriter, r *http.Request, c *caller) (body []byte, done func(), ok bool) {
	kind, parameters, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	charset := parameters["charset"]
	if err != nil || kind != "application/json" || r.Header.Get("Content-Encoding") != "" ||
		charset != "" && !strings.EqualFold(charset, "utf-8") {
		refuse(w, http.StatusUnsupportedMediaType, codeRequest,
			"the Content-Type has to be application/json, in UTF-8 and not compressed")
		return nil, nil, false
	}
	size := r.ContentLength
	if size > maxBody {
		refuse(w, http.StatusRequestEntityTooLarge, codeRequest, tooLarge)
		return nil, nil, false
	}
	if size < 0 {
		size = maxBody // it does not say
	}
	if done, ok = s.take(w, c, max(size, minBytes)); !ok {
		return nil, nil, false
	}
	body, err = readBody(w, r)
	if err == nil {
		return body, done, true
	}
	done()
	if _, over := errors.AsType[*http.MaxBytesError](err); over {
		refuse(w, http.StatusRequestEntityTooLarge, codeRequest, tooLarge)
	} else {
		refuse(w, http.StatusRequestTimeout, codeRequest, "the body did not come whole, or not in time")
	}
	return nil, nil, false
}

// readBody reads it whole, or as much as came in time.
func readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	in := http.MaxBytesReader(w, r.Body, maxBody)
	if r.ContentLength < 0 {
		return io.ReadAll(in)
	}
	body := make([]byte, r.ContentLength)
	_, err := io.ReadFull(in, body)
	return body, err
}

// write gives an answer to a client that takes it in time.
func write(w http.ResponseWriter, status int, kind string, body []byte) {
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(bodyTime))
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Content-Length", strconv.Itoa(len(body))) // else it goes out in chunks
	w.WriteHeader(status)
	_, _ = w.Write(body) // a client that has gone hears no more
}

// refuse answers a request of which nothing is carried out, and lets its sender go. Package http
// reads what is left of the body, so that the answer arrives: for a second, not for as long as a
// body may take.
func refuse(w http.ResponseWriter, status, code int, message string) {
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(time.Second))
	w.Header().Set("Connection", "close")
	write(w, status, "application/json", response(nil, nil, serve.Wrong(code, "%s", message)))
}
