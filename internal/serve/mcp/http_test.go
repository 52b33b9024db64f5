package mcp_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"moltisfs/internal/approval"
	"moltisfs/internal/dialect"
	tokens "moltisfs/internal/serve"
	"moltisfs/internal/serve/jsonrpc"
	"moltisfs/internal/serve/mcp"
)

var halfOpen = flag.Int("halfopen", 100, "how many connections TestHTTPHalfOpen begins and leaves")

// toy is a dialect that says whose calls it has.
type toy struct {
	begun, finish chan struct{} // of slow
	large         []byte

	mu    sync.Mutex
	ended []string
}

func (d *toy) Definitions() (all []dialect.Definition) {
	for _, name := range []string{"who", "slow", "ask", "large"} {
		all = append(all, dialect.Definition{Name: name, InputSchema: json.RawMessage(`{"type":"object"}`)})
	}
	return all
}

func (d *toy) Call(ctx context.Context, c dialect.Call) (dialect.Answer, error) {
	say := func(format string, args ...any) (dialect.Answer, error) {
		text, _ := json.Marshal(fmt.Sprintf(format, args...))
		return &dialect.Object{Of: "text", Content: text}, nil
	}
	switch c.Tool {
	case "large":
		return &dialect.Object{Of: "text", Content: d.large}, nil
	case "slow":
		d.begun <- struct{}{}
		select {
		case <-d.finish:
			return say("finished")
		case <-ctx.Done():
			d.begun <- struct{}{}
			return say("ended")
		}
	case "ask":
		if c.Approver == nil {
			return say("the host is asked")
		}
		if c.Heard != nil {
			var stop context.CancelFunc
			ctx, stop = context.WithCancel(ctx)
			defer stop()
			defer context.AfterFunc(c.Heard, stop)()
		}
		d.begun <- struct{}{}
		a, err := c.Approver.Ask(ctx, approval.Question{Tool: "ask", Paths: []string{"/a"}, Principal: c.Principal, Session: c.Session})
		if err != nil || ctx.Err() != nil {
			d.begun <- struct{}{}
			return say("withdrawn")
		}
		return say("%v", a.Decision)
	}
	if c.Tool != "who" {
		return nil, &dialect.UnknownToolError{Tool: c.Tool}
	}
	return say("%s %s %s %v %v", c.Principal, c.Session, c.Tier, c.Scope, c.Headers)
}

func (d *toy) EndSession(_ context.Context, principal, session string, _ bool) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ended = append(d.ended, principal+" "+session)
	return nil
}

// served is a server on a loopback port.
type served struct {
	*toy
	t      *testing.T
	http   *mcp.HTTP
	tokens *tokens.TokenStore
	addr   string
	stop   func()
}

func serveHTTP(t *testing.T, tune ...func(*mcp.HTTP)) *served {
	t.Helper()
	s := &served{t: t, toy: &toy{begun: make(chan struct{}), finish: make(chan struct{})}, tokens: tokens.Tokens(filepath.Join(t.TempDir(), "tokens"))}
	var err error
	s.http, err = mcp.NewHTTP(s.toy, mcp.Options{Run: "run-1", Instructions: "Files.", Asking: [2]string{" Asked.", " Elsewhere."}})
	must(t, err)
	for _, f := range tune {
		f(s.http)
	}
	l, err := tokens.Listen("127.0.0.1:0", false)
	must(t, err)
	s.addr = l.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- jsonrpc.New(s.toy, jsonrpc.Options{Tokens: s.tokens, MCP: s.http, Run: "run-1"}).Serve(ctx, l)
	}()
	s.stop = sync.OnceFunc(func() {
		cancel()
		must(t, <-ended)
	})
	t.Cleanup(s.stop)
	return s
}

func (s *served) token(like tokens.Token) string {
	s.t.Helper()
	_, secret, err := s.tokens.Create(like)
	must(s.t, err)
	return secret
}

// old and newest are the headers of the two eras.
var (
	old    = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}}
	newest = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}, "Mcp-Protocol-Version": {"2026-07-28"}}
)

func with(h http.Header, pairs ...string) http.Header {
	h = h.Clone()
	for i := 0; i < len(pairs); i += 2 {
		h.Set(pairs[i], pairs[i+1])
	}
	return h
}

// do sends a request; the body of its answer is still to be read.
func (s *served) do(method, secret string, header http.Header, body string) *http.Response {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), method, "http://"+s.addr+"/mcp", strings.NewReader(body))
	must(s.t, err)
	r.Header = header.Clone()
	if host := r.Header.Get("Host"); host != "" {
		r.Host = host
	}
	if secret != "" {
		r.Header.Set("Authorization", "Bearer "+secret)
	}
	resp, err := http.DefaultClient.Do(r)
	must(s.t, err)
	s.t.Cleanup(func() { _ = resp.Body.Close() })
	return resp
}

func (s *served) post(secret string, header http.Header, body string) (int, string) {
	s.t.Helper()
	resp := s.do("POST", secret, header, body)
	b, err := io.ReadAll(resp.Body)
	must(s.t, err)
	return resp.StatusCode, string(b)
}

// initialize begins a session and gives the headers of its requests.
func (s *served) initialize(secret, capabilities string) http.Header {
	s.t.Helper()
	resp := s.do("POST", secret, old, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":`+capabilities+`,"clientInfo":{"name":"t","version":"1"}}}`)
	if _, err := io.ReadAll(resp.Body); err != nil || resp.StatusCode != 200 {
		s.t.Fatal(resp.Status, err)
	}
	h := with(old, "Mcp-Session-Id", resp.Header.Get("Mcp-Session-Id"), "Mcp-Protocol-Version", "2025-11-25")
	if status, body := s.post(secret, h, `{"jsonrpc":"2.0","method":"notifications/initialized"}`); status != 202 {
		s.t.Fatal(status, body)
	}
	return h
}

// modern is a call of the stateless era, with its headers.
func modern(tool, capabilities string) (http.Header, string) {
	return with(newest, "Mcp-Method", "tools/call", "Mcp-Name", tool), `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + tool +
		`","arguments":{},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":` +
		capabilities + `,"io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"}}}}`
}

func callOf(id, tool string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"` + tool + `","arguments":{}}}`
}

// A request that is not right is refused at once, and its sender is told why. The rest goes on.
func TestHTTPBadInput(t *testing.T) {
	t.Parallel()
	s := serveHTTP(t)
	ci, other, operator := s.token(tokens.Token{Principal: "ci"}), s.token(tokens.Token{Principal: "other"}), s.token(tokens.Token{Principal: "op", Operator: true})
	session := s.initialize(ci, `{}`)
	id := session.Get("Mcp-Session-Id")
	list := `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`
	for _, c := range []struct {
		name, method, secret string
		header               http.Header
		body                 string
		status               int
		says                 string
	}{
		{"no token", "POST", "", session, list, 401, "-32003"},
		{"a wrong token", "POST", "mfs_wrong", session, list, 401, "-32003"},
		{"a token of three parts", "POST", "a.b.c", session, list, 401, "-32003"},
		{"an operator's token", "POST", operator, session, list, 403, "-32001"},
		{"no token, a stream", "GET", "", session, "", 401, "-32003"},
		{"a foreign Host", "POST", ci, with(session, "Host", "evil.example"), list, 403, "Host"},
		{"a foreign Origin", "POST", ci, with(session, "Origin", "https://evil.example"), list, 403, "web pages"},
		{"an Origin of nowhere", "POST", ci, with(session, "Origin", "null"), list, 403, "web pages"},
		{"our own Origin", "POST", ci, with(session, "Origin", "http://"+s.addr), list, 200, `"who"`},
		{"another's session", "POST", other, session, list, 404, "-32001"},
		{"another's session, a stream", "GET", other, session, "", 404, "-32001"},
		{"another's session, its end", "DELETE", other, session, "", 404, "-32001"},
		{"another's session by its name", "POST", other, with(newest, "Mcp-Session-Id", id), list, 400, "protocolVersion"},
		{"no such session", "POST", ci, with(old, "Mcp-Session-Id", "m-NONE"), list, 404, "initialize anew"},
		{"no session", "POST", ci, old, list, 400, "begin with initialize"},
		{"no session, a stream", "GET", ci, old, "", 400, "begin with initialize"},
		{"another method", "PUT", ci, session, list, 405, "POST, GET or DELETE"},
		{"another type", "POST", ci, with(session, "Content-Type", "text/plain"), list, 415, "application/json"},
		{"compressed", "POST", ci, with(session, "Content-Encoding", "gzip"), list, 415, "application/json"},
		{"a batch", "POST", ci, session, "[" + list + "]", 400, "batches are not supported"},
		{"a batch of the newest revision", "POST", ci, newest, "[" + list + "]", 400, "batches are not supported"},
		{"nothing", "POST", ci, session, "", 400, "-32700"},
		{"no JSON", "POST", ci, session, "{", 400, "-32700"},
		{"no object", "POST", ci, session, `"x"`, 400, "-32600"},
		{"nested too deep", "POST", ci, session, strings.Repeat("[", 20_000), 400, "-32700"},
		{"a method of JSON-RPC", "POST", ci, session, `{"jsonrpc":"2.0","id":1,"method":"capabilities.list"}`, 400, "/rpc"},
		{"no such method", "POST", ci, session, `{"jsonrpc":"2.0","id":1,"method":"x/y"}`, 400, "x/y"},
		{"a revision that is not", "POST", ci, with(newest, "Mcp-Protocol-Version", "2099-01-01", "Mcp-Method", "tools/list"),
			`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2099-01-01","io.modelcontextprotocol/clientCapabilities":{}}}}`, 400, "-32022"},
		{"an event that is not", "GET", ci, with(session, "Last-Event-ID", "NONE_7"), "", 400, "replay"},
		{"no event", "GET", ci, with(session, "Last-Event-ID", "\xff"), "", 400, "malformed"},
		{"an id, null", "POST", ci, session, callOf("null", "who"), 400, `"id":null`},
		{"an id, true", "POST", ci, session, callOf("true", "who"), 400, "the id is"},
		{"an id, a list", "POST", ci, session, callOf("[1]", "who"), 400, "the id is"},
		{"an id, an object", "POST", ci, session, callOf("{}", "who"), 400, "the id is"},
		{"an id, 1.5", "POST", ci, session, callOf("1.5", "who"), 400, `"id":1.5`},
		{"an id, 1e3", "POST", ci, session, callOf("1e3", "who"), 400, `"id":1e3`},
		{"an id of 2^53+1", "POST", ci, session, callOf("9007199254740993", "who"), 400, `"id":9007199254740993`},
		{"an id, negative", "POST", ci, session, callOf("-7", "who"), 200, `"id":-7`},
		{"an id, text", "POST", ci, session, callOf(`"ü\u0000"`, "who"), 200, `"id":"ü\u0000"`},
		{"an id, empty", "POST", ci, session, callOf(`""`, "who"), 200, `"id":""`},
		{"a tool that is not", "POST", ci, session, callOf("1", "nowhere"), 200, "-32602"},
		{"and the session goes on", "POST", ci, session, callOf("1", "who"), 200, "ci " + id},
	} {
		resp := s.do(c.method, c.secret, c.header, c.body)
		b, _ := io.ReadAll(resp.Body)
		if resp.StatusCode != c.status || !strings.Contains(string(b), c.says) {
			t.Errorf("%s: %s %s", c.name, resp.Status, b)
		}
		if c.status == 401 && !strings.HasPrefix(resp.Header.Get("WWW-Authenticate"), "Bearer") {
			t.Errorf("%s: WWW-Authenticate is %q", c.name, resp.Header.Get("WWW-Authenticate"))
		}
	}
	for name, raw := range map[string]string{
		"two lengths":           "Content-Length: 5\r\nContent-Length: 6\r\n\r\n{    }",
		"a length and chunks":   "Content-Length: 5\r\nTransfer-Encoding: chunked, chunked\r\n\r\n",
		"a body of 1 GB":        "Content-Length: 1073741824\r\n\r\n{",
		"a body of no end":      "Transfer-Encoding: chunked\r\n\r\n" + strings.Repeat("100000\r\n"+strings.Repeat(" ", 1<<20)+"\r\n", 33),
		"two Hosts":             "Host: localhost\r\nContent-Length: 0\r\n\r\n",
		"a header without end":  "X: " + strings.Repeat("x", 1<<20) + "\r\n\r\n",
		"a smuggled request":    "Content-Length: 0\r\nContent-Length : 5\r\n\r\n",
		"a length that is none": "Content-Length: -1\r\n\r\n",
	} {
		c, err := net.Dial("tcp", s.addr)
		must(t, err)
		go func() { // it may be cut off before it is read
			_, _ = fmt.Fprintf(c, "POST /mcp HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\n%s", s.addr, ci, raw)
		}()
		line, err := bufio.NewReader(c).ReadString('\n')
		if !strings.HasPrefix(line, "HTTP/1.1 4") && !strings.HasPrefix(line, "HTTP/1.1 501") {
			t.Errorf("%s: %q, %v", name, line, err)
		}
		_ = c.Close()
	}
	if status, got := s.post(ci, session, callOf("1", "who")); status != 200 || !strings.Contains(got, "ci "+id) {
		t.Errorf("afterwards: %d %s", status, got)
	}
	r, err := http.NewRequest("POST", "http://"+s.addr+"/rpc", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"initialize"}`))
	must(t, err)
	r.Header = with(old, "Authorization", "Bearer "+ci)
	resp, err := http.DefaultClient.Do(r)
	must(t, err)
	defer resp.Body.Close()
	if b, _ := io.ReadAll(resp.Body); !strings.Contains(string(b), "/mcp") {
		t.Errorf("MCP at the address of JSON-RPC: %s", b)
	}
}

// A call has the rights of its token, in both eras, and the session that it belongs to. A session that is ended is gone.
func TestHTTPWhoseCall(t *testing.T) {
	t.Parallel()
	s := serveHTTP(t)
	ci := s.token(tokens.Token{Principal: "ci", Tier: "ask", Scope: &tokens.Scope{Readable: []string{"/a"}, Writable: []string{}}})
	session := s.initialize(ci, `{}`)
	id := session.Get("Mcp-Session-Id")
	for _, c := range []struct {
		name, want string
		header     http.Header
		body       string
	}{
		{"of a session", "ci " + id + " ask \\u0026{[/a] []} map[who:me]", with(session, "X-MCP-Who", "me"), callOf("1", "who")},
		{"named in _meta", "ci mine ask", session, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"who","_meta":{"moltis-fs/session":"mine"}}}`},
	} {
		if _, got := s.post(ci, c.header, c.body); !strings.Contains(strings.ReplaceAll(got, `\\`, `\`), c.want) {
			t.Errorf("%s: %s", c.name, got)
		}
	}
	h, body := modern("who", `{}`)
	if _, got := s.post(ci, h, body); !strings.Contains(got, "ci run-1 ask") {
		t.Errorf("without a session: %s", got)
	}
	if resp := s.do("DELETE", ci, session, ""); resp.StatusCode != 204 {
		t.Errorf("its end: %s", resp.Status)
	}
	if status, _ := s.post(ci, session, callOf("1", "who")); status != 404 {
		t.Errorf("a session that has ended: %d", status)
	}
	s.stop()
	slices.Sort(s.ended)
	if want := []string{"ci " + id, "ci mine", "ci run-1"}; !slices.Equal(slices.Compact(s.ended), want) {
		t.Errorf("ended are %v", s.ended)
	}
}

// A principal has so many sessions; one more ends the one that was used longest ago, and nobody else's.
func TestHTTPManySessions(t *testing.T) {
	t.Parallel()
	const most = 20
	s := serveHTTP(t, func(h *mcp.HTTP) { h.SetMost(most) })
	ci, other := s.token(tokens.Token{Principal: "ci"}), s.token(tokens.Token{Principal: "other"})
	theirs, first := s.initialize(other, `{}`), s.initialize(ci, `{}`)
	for i := range most {
		h, body := modern("who", `{}`)
		if status, got := s.post(ci, h, strings.Replace(body, `"_meta":{`, fmt.Sprintf(`"_meta":{"moltis-fs/session":"s%d",`, i), 1)); status != 200 {
			t.Fatal(status, got)
		}
	}
	if n := s.http.SessionsOf("ci"); n != most {
		t.Errorf("ci has %d sessions", n)
	}
	if status, _ := s.post(ci, first, callOf("1", "who")); status != 404 {
		t.Errorf("the oldest: %d", status)
	}
	if status, _ := s.post(other, theirs, callOf("1", "who")); status != 200 {
		t.Errorf("another's: %d", status)
	}
}

// Connections that begin a request and leave it take nobody's place.
func TestHTTPHalfOpen(t *testing.T) {
	t.Parallel()
	s := serveHTTP(t)
	ci := s.token(tokens.Token{Principal: "ci"})
	session := s.initialize(ci, `{}`)
	for i := range *halfOpen {
		c, err := net.Dial("tcp", s.addr)
		if err != nil {
			t.Fatalf("connection %d: %v", i, err)
		}
		t.Cleanup(func() { _ = c.Close() })
		_, _ = fmt.Fprint(c, "POST /mcp HTTP/1.1\r\nHost: x\r\nX-") // the server may have hung up
		if i%100 == 0 {
			if status, got := s.post(ci, session, callOf("1", "who")); status != 200 {
				t.Fatalf("beside %d of them: %d %s", i, status, got)
			}
		}
	}
}

// A client that does not read its answer is cut off. Others do not wait for it.
func TestHTTPClientDoesNotRead(t *testing.T) {
	t.Parallel()
	s := serveHTTP(t, func(h *mcp.HTTP) { h.SetTimes(200*time.Millisecond, time.Hour) })
	s.large = []byte(`"` + strings.Repeat("x", 8<<20) + `"`)
	ci := s.token(tokens.Token{Principal: "ci"})
	session := s.initialize(ci, `{}`)
	c, err := net.Dial("tcp", s.addr)
	must(t, err)
	defer c.Close()
	must(t, c.(*net.TCPConn).SetReadBuffer(64<<10))
	body := callOf("1", "large")
	_, err = fmt.Fprintf(c, "POST /mcp HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"+
		"Mcp-Session-Id: %s\r\nContent-Length: %d\r\n\r\n%s", s.addr, ci, session.Get("Mcp-Session-Id"), len(body), body)
	must(t, err)
	if status, got := s.post(ci, session, callOf("2", "who")); status != 200 || !strings.Contains(got, "ci m-") {
		t.Errorf("beside it: %d %s", status, got)
	}
	if _, err := c.Read(make([]byte, 1)); err != nil { // the answer has begun
		t.Fatal(err)
	}
	for s.http.Waits("ci", session.Get("Mcp-Session-Id")) {
		time.Sleep(10 * time.Millisecond) // the kernel's buffers take their time to fill
	}
	if n, err := io.Copy(io.Discard, c); n > 7<<20 {
		t.Errorf("it was waited for: %d bytes, %v", n, err)
	}
}

// A question ends when the client that was to answer it has gone: in the era of sessions when it has not come back for a while. An answer
// that is under way can be taken up again by who does come back.
func TestHTTPClientGone(t *testing.T) {
	t.Parallel()
	s := serveHTTP(t, func(h *mcp.HTTP) { h.SetTimes(time.Minute, 50*time.Millisecond) })
	ci := s.token(tokens.Token{Principal: "ci", Elicit: true})
	session := s.initialize(ci, `{"elicitation":{"form":{}}}`)
	modernHeader, modernBody := modern("slow", `{}`)
	for _, c := range []struct {
		name   string
		header http.Header
		body   string
	}{{"with a session", session, callOf("1", "ask")}, {"without one", modernHeader, modernBody}} {
		ctx, leave := context.WithCancel(t.Context())
		r, err := http.NewRequestWithContext(ctx, "POST", "http://"+s.addr+"/mcp", strings.NewReader(c.body))
		must(t, err)
		r.Header = with(c.header, "Authorization", "Bearer "+ci)
		gone := make(chan struct{})
		go func() {
			defer close(gone)
			if resp, err := http.DefaultClient.Do(r); err == nil {
				_, _ = io.ReadAll(resp.Body)
				_ = resp.Body.Close()
			}
		}()
		<-s.begun
		leave()
		<-gone
		<-s.begun // it has ended
		t.Log(c.name)
	}

	s = serveHTTP(t)
	ci = s.token(tokens.Token{Principal: "ci"})
	session = s.initialize(ci, `{}`)
	resp := s.do("POST", ci, session, callOf("1", "slow"))
	var event string
	for lines := bufio.NewScanner(resp.Body); event == "" && lines.Scan(); {
		event, _ = strings.CutPrefix(lines.Text(), "id: ")
		if !strings.HasPrefix(lines.Text(), "id: ") {
			event = ""
		}
	}
	<-s.begun
	_ = resp.Body.Close()
	close(s.finish)
	again := s.do("GET", ci, with(session, "Last-Event-ID", event), "")
	if b, err := io.ReadAll(again.Body); err != nil || !strings.Contains(string(b), "finished") {
		t.Errorf("taken up again: %s %s, %v", again.Status, b, err)
	}
}

// A question stands as long as its client waits at a request, and for half a minute more: another request in that time is enough.
func TestHTTPWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		attend, leave := mcp.Attendance()
		begin := time.Now()
		first := attend()
		attend()
		leave()
		time.Sleep(time.Hour) // at the first
		leave()
		for range 3 {
			time.Sleep(29 * time.Second)
			attend()
			leave()
		}
		<-first.Done()
		if took := time.Since(begin); took != time.Hour+3*29*time.Second+30*time.Second {
			t.Errorf("it ended after %v", took)
		}
		if again := attend(); again.Err() != nil {
			t.Error("who comes back is not heard")
		}
	})
}

// A token that is revoked ends its calls under way.
func TestHTTPRevoked(t *testing.T) {
	t.Parallel()
	s := serveHTTP(t)
	made, ci, err := s.tokens.Create(tokens.Token{Principal: "ci"})
	must(t, err)
	session := s.initialize(ci, `{}`)
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		_, _ = io.ReadAll(s.do("POST", ci, session, callOf("1", "slow")).Body)
	}()
	<-s.begun
	_, err = s.tokens.Revoke(made.ID)
	must(t, err)
	<-s.begun // it has ended
	<-answered
}

// At a stop, streams that wait for news end, calls under way have their answer, and all sessions end.
func TestHTTPStop(t *testing.T) {
	t.Parallel()
	s := serveHTTP(t)
	ci := s.token(tokens.Token{Principal: "ci"})
	session := s.initialize(ci, `{}`)
	stream := s.do("GET", ci, session, "")
	if line, err := bufio.NewReader(stream.Body).ReadString('\n'); err != nil || !strings.HasPrefix(line, ":") {
		t.Fatal(line, err)
	}
	resp := s.do("POST", ci, session, callOf("1", "slow"))
	<-s.begun
	stopped := make(chan struct{})
	go func() { s.stop(); close(stopped) }()
	if _, err := io.ReadAll(stream.Body); err != nil {
		t.Error(err)
	}
	close(s.finish)
	if b, err := io.ReadAll(resp.Body); err != nil || !bytes.Contains(b, []byte("finished")) {
		t.Errorf("the call under way: %s, %v", b, err)
	}
	<-stopped
	if len(s.ended) == 0 {
		t.Error("the session has not ended")
	}
}

// Calls that do not end in time are ended, and their clients get the answer, in both eras.
func TestHTTPClose(t *testing.T) {
	t.Parallel()
	s := serveHTTP(t)
	ci := s.token(tokens.Token{Principal: "ci"})
	modernHeader, modernBody := modern("slow", `{}`)
	answers := make(chan string)
	for _, c := range []struct {
		header http.Header
		body   string
	}{{s.initialize(ci, `{}`), callOf("1", "slow")}, {modernHeader, modernBody}} {
		go func() {
			_, got := s.post(ci, c.header, c.body)
			answers <- got
		}()
		<-s.begun
	}
	go s.http.Close()
	for range 2 {
		<-s.begun // one has ended
	}
	for range 2 {
		if got := <-answers; !strings.Contains(got, "ended") {
			t.Errorf("%q", got)
		}
	}
}

// Clients of the SDK call and are asked, in both eras; whose token does not let them be asked, the host is asked for.
func TestHTTPElicitation(t *testing.T) {
	t.Parallel()
	s := serveHTTP(t)
	go func() {
		for range s.begun {
		}
	}()
	defer func() { s.stop(); close(s.begun) }()
	for _, revision := range []string{"2025-06-18", "2025-11-25", "2026-07-28"} {
		for _, may := range []bool{true, false} {
			secret := s.token(tokens.Token{Principal: "ci", Elicit: may})
			c := sdk.NewClient(&sdk.Implementation{Name: "t"}, &sdk.ClientOptions{ElicitationHandler: func(context.Context, *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
				return &sdk.ElicitResult{Action: "accept", Content: map[string]any{"allow": "once"}}, nil
			}})
			conn, err := c.Connect(t.Context(), &sdk.StreamableClientTransport{Endpoint: "http://" + s.addr + "/mcp", HTTPClient: bearer(secret)},
				&sdk.ClientSessionOptions{ProtocolVersion: revision})
			must(t, err)
			r, err := conn.CallTool(t.Context(), &sdk.CallToolParams{Name: "ask"})
			must(t, err)
			want := `Files. Elsewhere. "the host is asked"`
			if may {
				want = `Files. Asked. "approved"`
			}
			if got := conn.InitializeResult().Instructions + " " + r.Content[0].(*sdk.TextContent).Text; got != want {
				t.Errorf("%s, asked: %v: %s", revision, may, got)
			}
			must(t, conn.Close())
		}
	}
}

// A call that its client cancels ends, in both eras.
func TestHTTPCancel(t *testing.T) {
	t.Parallel()
	s := serveHTTP(t)
	secret := s.token(tokens.Token{Principal: "ci"})
	for _, revision := range []string{"2025-11-25", "2026-07-28"} {
		conn, err := sdk.NewClient(&sdk.Implementation{Name: "t"}, nil).Connect(t.Context(), &sdk.StreamableClientTransport{
			Endpoint: "http://" + s.addr + "/mcp", HTTPClient: bearer(secret)}, &sdk.ClientSessionOptions{ProtocolVersion: revision})
		must(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			<-s.begun
			cancel()
		}()
		if _, err := conn.CallTool(ctx, &sdk.CallToolParams{Name: "slow"}); err == nil {
			t.Errorf("%s: it was not cancelled", revision)
		}
		<-s.begun // it has ended
		must(t, conn.Close())
	}
}

// bearer is a client that shows a token.
func bearer(secret string) *http.Client {
	return &http.Client{Transport: shows(secret)}
}

type shows string

func (s shows) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(s))
	return http.DefaultTransport.RoundTrip(r)
}
