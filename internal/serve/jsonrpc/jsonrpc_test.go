package jsonrpc

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"moltisfs/internal/dialect"
	"moltisfs/internal/hook"
	"moltisfs/internal/serve"
	"moltisfs/internal/testdir"
)

var must = testdir.Must

// toy is a dialect that says who called, and keeps events.
type toy struct {
	mu     sync.Mutex
	calls  []dialect.Call
	ended  []string
	event  chan json.RawMessage
	begun  chan struct{}
	finish chan struct{} // slow ends with it
}

type said struct {
	kind, json string
	no         bool
}

func (s said) Kind() string                     { return s.kind }
func (s said) Refused() bool                    { return s.no }
func (s said) Text() string                     { return "in words" }
func (s said) JSON(bool) ([]byte, error)        { return []byte(s.json), nil }
func (s said) Blocks() ([]dialect.Block, error) { return nil, nil }

func (d *toy) Definitions() []dialect.Definition {
	return []dialect.Definition{
		{Name: "filesystem__read", Also: []string{"filesystem.read"}, Entry: json.RawMessage(`{"name":"filesystem.read"}`)},
		{Name: "Read", InputSchema: json.RawMessage(`{"type":"object"}`), OutputSchema: json.RawMessage(`{}`)},
	}
}

func (d *toy) Call(ctx context.Context, c dialect.Call) (dialect.Answer, error) {
	d.mu.Lock()
	d.calls = append(d.calls, c)
	d.mu.Unlock()
	switch c.Tool {
	case "filesystem__read", "Read", "run_js":
		return said{"text", fmt.Sprintf(`{"tool":%q,"by":%q,"session":%q,"args":%s}`, c.Tool, c.Principal, c.Session, c.Args), false}, nil
	case "own_error":
		return said{"x", `{"type":"NotFound","message":"gone","recovery":[],"retryable":true}`, true}, nil
	case "panics":
		panic("in the dialect")
	case "broken":
		return nil, errors.New("the disk at /secret is gone")
	case "large":
		return said{"text", `"` + strings.Repeat("x", maxAnswer) + `"`, false}, nil
	case "slow":
		d.begun <- struct{}{}
		select {
		case <-d.finish:
			return said{"text", `"finished"`, false}, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return nil, &dialect.UnknownToolError{Tool: c.Tool, Nearest: "Read"}
}

func (d *toy) Events(ctx context.Context, _ dialect.Call, after int64, _ int) (dialect.Events, error) {
	select {
	case d.begun <- struct{}{}: // only of a poll that waits
	case <-ctx.Done():
	}
	select {
	case e := <-d.event:
		return dialect.Events{List: []json.RawMessage{e}, Next: after + 1}, nil
	case <-ctx.Done():
		return dialect.Events{Next: after}, nil
	}
}

func (d *toy) EndSession(_ context.Context, principal, session string, _ bool) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ended = append(d.ended, principal+" "+session)
	return nil
}

func (d *toy) made() []dialect.Call {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.calls)
}

func (d *toy) endedOnes() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]string{}, d.ended...)
}

// running is a server on a loopback port and a Unix socket.
type running struct {
	*toy   // that it serves; nil: it serves something else
	t      testing.TB
	server *Server
	url    string
	tcp    *http.Client
	unix   *http.Client // of the socket
	tokens *serve.TokenStore
	stop   func() error // ends it and gives what Serve gave
}

// run serves a toy until the test ends, with other options if there are any.
func run(t testing.TB, change ...func(*Options)) *running {
	t.Helper()
	d := &toy{event: make(chan json.RawMessage), begun: make(chan struct{}), finish: make(chan struct{})}
	r := runDialect(t, d, func(*Server) {}, change...)
	r.toy = d
	return r
}

// runDialect serves a dialect until the test ends. tune adapts the server before it serves.
func runDialect(t testing.TB, d dialect.Dialect, tune func(*Server), change ...func(*Options)) *running {
	t.Helper()
	r := &running{t: t}
	r.tokens = serve.Tokens(filepath.Join(t.TempDir(), "tokens"))
	o := Options{Tokens: r.tokens, Logger: slog.New(slog.DiscardHandler)}
	for _, f := range change {
		f(&o)
	}
	r.server = New(d, o)
	tune(r.server)
	l, err := serve.Listen("127.0.0.1:0", false)
	must(t, err)
	path := filepath.Join(t.TempDir(), "s")
	u, err := serve.Listen("unix:"+path, false)
	must(t, err)
	r.url = "http://" + l.Addr().String()
	r.tcp = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64, MaxConnsPerHost: 256, ExpectContinueTimeout: time.Second}}
	r.unix = &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", path)
	}}}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- r.server.Serve(ctx, l, u) }()
	r.stop = sync.OnceValue(func() error { cancel(); return <-ended })
	t.Cleanup(func() {
		r.unix.CloseIdleConnections()
		r.tcp.CloseIdleConnections()
		if err := r.stop(); err != nil {
			t.Error(err)
		}
	})
	return r
}

func (r *running) token(like serve.Token) (id, secret string) {
	r.t.Helper()
	made, secret, err := r.tokens.Create(like)
	must(r.t, err)
	return made.ID, secret
}

// send posts a body, and gives the status and the answer.
func (r *running) send(secret, body string, change ...func(*http.Request)) (int, string) {
	r.t.Helper()
	req, err := http.NewRequest("POST", r.url+"/rpc", strings.NewReader(body))
	must(r.t, err)
	req.Header.Set("Content-Type", "application/json")
	if secret != "" {
		req.Header.Set("Authorization", "Bearer "+secret)
	}
	for _, f := range change {
		f(req)
	}
	return r.do(r.tcp, req)
}

func (r *running) do(c *http.Client, req *http.Request) (int, string) {
	r.t.Helper()
	resp, err := c.Do(req)
	if err != nil {
		r.t.Error(err)
		return 0, ""
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		r.t.Error(err)
	}
	if len(answer) > 0 && req.URL.Path != "/metrics" && resp.StatusCode != 431 && !json.Valid(answer) {
		r.t.Errorf("no JSON: %s", answer)
	}
	return resp.StatusCode, string(answer)
}

func invocation(tool, more string) string {
	return `{"jsonrpc":"2.0","id":1,"method":"capabilities.invoke","params":{"capability":"` + tool + `"` + more + `}}`
}

// Each method answers in the form of the protocol, and what is wrong is told in a code.
func TestMethods(t *testing.T) {
	t.Parallel()
	r := run(t)
	_, secret := r.token(serve.Token{Principal: "ci"})
	for _, c := range []struct{ method, params, want string }{
		{"capabilities.list", `{}`, `{"capabilities":[{"name":"filesystem.read"},{"name":"Read",`},
		{"capabilities.list", `{"category":"filesystem"}`, `{"capabilities":[{"name":"filesystem.read"}]}`},
		{"capabilities.list", `{"category":"nets"}`, `"code":-32602,"message":"there is no such category; there are [\"filesystem\" \"tools\"]"`},
		{"capabilities.describe", `{"name":"filesystem.read"}`, `"result":{"name":"filesystem.read"}`},
		{"capabilities.describe", `{"name":"filesystem__read"}`, `"result":{"name":"filesystem.read"}`},
		{"capabilities.describe", `{"name":"Read"}`, `"input_schema":{"type":"object"}`},
		{"capabilities.describe", `{"name":"Raed"}`, `"code":-32602`},
		{"capabilities.describe", `{}`, `"code":-32602,"message":"params: missing: name; add name and call again"`},
		{"capabilities.invoke", `{"capability":"filesystem.read","arguments":{"path":"/a"}}`,
			`{"success":true,"data":{"tool":"filesystem__read","by":"ci","session":"","args":{"path":"/a"}}}`},
		{"capabilities.invoke", `{"capability":"filesystem__read"}`, `"tool":"filesystem__read"`},
		{"capabilities.invoke", `{"capability":"Read","arguments":null}`, `"tool":"Read","by":"ci","session":"","args":{}`},
		{"capabilities.invoke", `{"capability":"Raed"}`, `"code":-32602,"message":"there is no tool \"Raed\"; did you mean Read?","data":{"nearest":"Read"}`},
		{"capabilities.invoke", `{"capability":"` + strings.Repeat("ü", 200) + `"}`, `"there is no tool \"` + strings.Repeat("ü", 128) + `\";`},
		{"capabilities.invoke", `{"capability":"own_error"}`,
			`{"success":false,"error":{"type":"NotFound","message":"gone","recovery":[],"retryable":true}}`},
		{"capabilities.invoke", `{"capability":"panics"}`, `"error":{"code":-32603,"message":"internal error"}`},
		{"capabilities.invoke", `{"capability":"broken"}`, `"code":-32603,"message":"internal error; the server's log says more"`},
		{"capabilities.invoke", `{"capability":"Read","session_id":"s-none"}`, `"code":-32004`},
		{"capabilities.invoke", `{"capability":"Read","principal":"root"}`, `"code":-32602,"message":"params: there is no argument \"principal\"`},
		{"capabilities.invoke", `{"capability":"Read","capability":"Write"}`, `"code":-32602,"message":"params: capability is given twice`},
		{"capabilities.invoke", `{"capability":7}`, `"code":-32602`},
		{"capabilities.invoke", `["Read",{}]`, `"code":-32602`},
		{"js.run", `{"code":"1+1","timeout_secs":3}`,
			`{"success":true,"data":{"tool":"run_js","by":"ci","session":"","args":{"code":"1+1","timeout_secs":3}}}`},
		{"js.run", `{"file":"a.js","heap_memory_max_mb":8}`, `"args":{"file":"a.js","heap_memory_max_mb":8}}`},
		{"js.run", `{"code":"1","session_id":"s-none"}`, `"code":-32004`},
		{"js.run", `{"code":1}`, `"code":-32602`},
		{"js.run", `{"script":"1"}`, `"code":-32602,"message":"params: there is no argument \"script\"`},
		{"session.create", `{"name":"x"}`, `"code":-32602`},
		{"session.end", `{"session_id":"s-none"}`, `"code":-32004`},
		{"session.events", `{"session_id":"s-none","cursor":-1}`, `"code":-32602,"message":"params: cursor is -1; the least is 0`},
		{"session.events", `{"session_id":"s-none","limit":1001}`, `"code":-32602`},
		{"session.events", `{"session_id":"s-none","wait_ms":"soon"}`, `"code":-32602`},
		{"approvals.list", `{}`, `"code":-32601,"message":"there is no such method"`},
		{"Capabilities.list", `{}`, `"code":-32601`},
		{"rpc.discover", `{}`, `"code":-32601`},
	} {
		status, got := r.send(secret, `{"jsonrpc":"2.0","id":"a","method":"`+c.method+`","params":`+c.params+`}`)
		if status != 200 || !strings.HasPrefix(got, `{"jsonrpc":"2.0","id":"a",`) || !strings.Contains(got, c.want) {
			t.Errorf("%s %s: %d %s; want %s", c.method, c.params, status, got, c.want)
		}
		if strings.Contains(got, "/secret") {
			t.Errorf("the host's troubles are told: %s", got)
		}
	}
}

// A body that is not what the protocol says is refused by a code, and nothing of it is carried out.
func TestHostileBodies(t *testing.T) {
	t.Parallel()
	r := run(t)
	_, secret := r.token(serve.Token{Principal: "ci"})
	call := invocation("Read", "")
	for name, c := range map[string]struct{ body, want string }{
		"nothing":          {"", `"id":null,"error":{"code":-32700`},
		"blanks":           {" \n", `"id":null,"error":{"code":-32700`},
		"cut":              {call[:40], `"id":null,"error":{"code":-32700`},
		"two":              {call + call, `"id":null,"error":{"code":-32700`},
		"not UTF-8":        {strings.Replace(call, "Read", "R\xff", 1), `"id":null,"error":{"code":-32700`},
		"NUL":              {call + "\x00", `"id":null,"error":{"code":-32700`},
		"number":           {"7", `"id":null,"error":{"code":-32600`},
		"null":             {"null", `"id":null,"error":{"code":-32600`},
		"string":           {`"x"`, `"id":null,"error":{"code":-32600`},
		"empty object":     {"{}", `"id":null,"error":{"code":-32600`},
		"empty batch":      {"[]", `{"jsonrpc":"2.0","id":null,"error":{"code":-32600`},
		"batch of numbers": {"[1,2]", `[{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"a request is an object"}},{`},
		"batch in a batch": {"[[" + call + "]]", `[{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"a request is an object"}}]`},
		"batch not UTF-8":  {"[" + call + "," + strings.Replace(call, "Read", "R\xff", 1) + "]", `{"jsonrpc":"2.0","id":null,"error":{"code":-32700`},
		"huge batch":       {"[" + strings.Repeat(call+",", maxBatch) + call + "]", `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"a batch has at most 100`},
		"no version":       {strings.Replace(call, `"jsonrpc":"2.0",`, "", 1), `"id":1,"error":{"code":-32600`},
		"version 1":        {strings.Replace(call, `"2.0"`, `"1.0"`, 1), `"id":1,"error":{"code":-32600`},
		"version a number": {strings.Replace(call, `"2.0"`, `2.0`, 1), `"id":1,"error":{"code":-32600`},
		"no method":        {`{"jsonrpc":"2.0","id":1}`, `"id":1,"error":{"code":-32600`},
		"method a number":  {`{"jsonrpc":"2.0","id":1,"method":1}`, `"id":1,"error":{"code":-32600`},
		"id an object":     {strings.Replace(call, `"id":1`, `"id":{}`, 1), `"id":null,"error":{"code":-32600`},
		"id a list":        {strings.Replace(call, `"id":1`, `"id":[1]`, 1), `"id":null,"error":{"code":-32600`},
		"id true":          {strings.Replace(call, `"id":1`, `"id":true`, 1), `"id":null,"error":{"code":-32600`},
		"id endless":       {strings.Replace(call, `"id":1`, `"id":"`+strings.Repeat("x", 300)+`"`, 1), `"id":null,"error":{"code":-32600`},
		"id twice":         {strings.Replace(call, `"id":1`, `"id":1,"id":2`, 1), `"id":null,"error":{"code":-32600,"message":"\"id\" is there twice"`},
		"method twice":     {strings.Replace(call, `"id":1`, `"id":1,"method":"session.create"`, 1), `"error":{"code":-32600,"message":"\"method\" is there twice"`},
		"other case":       {strings.Replace(call, `"id"`, `"ID"`, 1), `"id":null,"error":{"code":-32600,"message":"there is no \"ID\" in a request`},
		"params a string":  {`{"jsonrpc":"2.0","id":1,"method":"capabilities.list","params":"x"}`, `"id":1,"error":{"code":-32602`},
		"deep": {invocation("Read", `,"arguments":{"a":`+strings.Repeat("[", 5000)+strings.Repeat("]", 5000)+"}"),
			`"id":1,"error":{"code":-32602,"message":"params: the arguments are nested deeper than 64`},
		"deep and cut":       {strings.Repeat("[", 1<<20), `"id":null,"error":{"code":-32700`},
		"brackets in a text": {invocation("Read", `,"arguments":{"a":"\"`+strings.Repeat("[", 5000)+`\\"}`), `"success":true`},
	} {
		before := len(r.made())
		status, got := r.send(secret, c.body)
		if status != 200 || !strings.Contains(got, c.want) {
			t.Errorf("%s: %d %.300s; want %s", name, status, got, c.want)
		}
		if carried := len(r.made()) - before; carried > 0 && !strings.Contains(c.want, "success") {
			t.Errorf("%s: %d calls were carried out", name, carried)
		}
	}
}

// Requests of a batch are answered in their order; one without an id is not answered.
func TestBatchesAndNotifications(t *testing.T) {
	t.Parallel()
	r := run(t)
	_, secret := r.token(serve.Token{Principal: "ci"})
	note := strings.Replace(invocation("Read", ""), `"id":1,`, "", 1)
	for _, c := range []struct {
		body, want string
		status     int
	}{
		{note, "", 204},
		{"[" + note + "," + note + "]", "", 204},
		{"[" + note + "," + invocation("Read", "") + "]", `[{"jsonrpc":"2.0","id":1,"result":{"success":true,`, 200},
		{`[{"jsonrpc":"2.0","id":3,"method":"x"},{"jsonrpc":"2.0","id":2,"method":"y"}]`, `[{"jsonrpc":"2.0","id":3,"error":`, 200},
		{`{"jsonrpc":"2.0","id":null,"method":"capabilities.list"}`, `{"jsonrpc":"2.0","id":null,"result":`, 200},
		{`{"jsonrpc":"2.0","id":-7.5,"method":"capabilities.list"}`, `{"jsonrpc":"2.0","id":-7.5,"result":`, 200},
	} {
		if status, got := r.send(secret, c.body); status != c.status || !strings.HasPrefix(got, c.want) || (got == "") != (c.want == "") {
			t.Errorf("%s: %d %s; want %s", c.body, status, got, c.want)
		}
	}
	if len(r.made()) != 5 {
		t.Errorf("%d calls were carried out", len(r.made()))
	}
	_, got := r.send(secret, "["+invocation("large", "")+","+invocation("Read", "")+"]")
	if !strings.Contains(got[maxAnswer:], `"error":{"code":-32000`) || len(r.made()) != 6 {
		t.Errorf("after a large answer: %s", got[maxAnswer:])
	}
}

// A caller without a token, or with one that does not hold, is told one thing, whatever it was. What a token is
// for is all that it does.
func TestTokens(t *testing.T) {
	t.Parallel()
	r := run(t, func(o *Options) {
		o.Metrics = &hook.Metrics{}
		o.Operator = map[string]serve.Method{
			"approvals.list": func(_ context.Context, by string, p json.RawMessage) (any, error) { return by + string(p), nil },
			"approvals.deny": func(context.Context, string, json.RawMessage) (any, error) {
				return nil, serve.Wrong(-32044, "too late")
			},
		}
		o.Handlers = map[string]func(string, http.ResponseWriter, *http.Request){
			"/ws": func(by string, w http.ResponseWriter, _ *http.Request) { fmt.Fprintf(w, "%q", by) },
		}
	})
	id, revoked := r.token(serve.Token{Principal: "ci"})
	_, expired := r.token(serve.Token{Principal: "ci", Expires: time.Now().Add(-time.Minute)})
	_, agent := r.token(serve.Token{Principal: "ci", Tier: "ask", ByUser: true, Scope: &serve.Scope{Readable: []string{"/a"}}})
	_, operator := r.token(serve.Token{Principal: "boss", Operator: true})
	if status, _ := r.send(revoked, invocation("Read", "")); status != 200 {
		t.Fatalf("before it is revoked: %d", status)
	}
	if _, err := r.tokens.Revoke(id); err != nil {
		t.Fatal(err)
	}
	var answers []string
	for _, secret := range []string{"", revoked, expired, "wrong", agent + "x", agent[:len(agent)-1]} {
		before := len(r.made())
		status, got := r.send(secret, invocation("Read", ""))
		if status != 401 || len(r.made()) != before {
			t.Errorf("%.8q: %d %s", secret, status, got)
		}
		answers = append(answers, got)
	}
	for _, a := range answers {
		if a != answers[0] || !strings.Contains(a, `"code":-32003`) {
			t.Errorf("one can be told from the others: %q", answers)
		}
	}
	for _, h := range []string{"Basic " + agent, "Bearer", "Bearer  " + agent, agent, "Bearer " + agent + " "} {
		status, got := r.send("", invocation("Read", ""), func(q *http.Request) { q.Header["Authorization"] = []string{h} })
		if ok := h == "Bearer "+agent+" "; status != 401 && !ok { // blanks at the end are HTTP's
			t.Errorf("%.12q: %d %s", h, status, got)
		}
	}
	if status, _ := r.send(agent, invocation("Read", ""), func(q *http.Request) { q.Header.Add("Authorization", "Bearer "+operator) }); status != 401 {
		t.Errorf("two tokens at once: %d", status)
	}
	if status, got := r.send(agent, invocation("Read", "")); status != 200 {
		t.Errorf("%d %s", status, got)
	}
	last := r.made()[len(r.made())-1]
	if last.Tier != "ask" || !last.ByUser || last.Scope == nil || last.Scope.Readable[0] != "/a" || last.Scope.Writable != nil || last.Principal != "ci" {
		t.Errorf("the call was %+v", last)
	}
	approvals := `{"jsonrpc":"2.0","id":1,"method":"approvals.list","params":{}}`
	for _, c := range []struct{ secret, body, want string }{
		{operator, approvals, `"result":"boss{}"`},
		{operator, strings.Replace(approvals, "list", "deny", 1), `"error":{"code":-32044,"message":"too late"}`},
		{agent, approvals, `"code":-32601`},
		{operator, invocation("Read", ""), `"code":-32001`},
		{operator, `{"jsonrpc":"2.0","id":1,"method":"session.create"}`, `"code":-32001`},
	} {
		if _, got := r.send(c.secret, c.body); !strings.Contains(got, c.want) {
			t.Errorf("%s: %s", c.body, got)
		}
	}
	for path, want := range map[string][3]int{"/metrics": {401, 403, 200}, "/ws": {401, 403, 200}, "/healthz": {200, 200, 200}, "/": {404, 404, 404}} {
		for i, secret := range []string{"", agent, operator} {
			status, _ := r.send(secret, "", func(q *http.Request) { q.Method, q.URL.Path = "GET", path })
			if status != want[i] {
				t.Errorf("%s: %d for %.8q, want %d", path, status, secret, want[i])
			}
		}
	}
}

// Requests that a web page can make a browser send do not come through.
func TestDoors(t *testing.T) {
	t.Parallel()
	r := run(t, func(o *Options) { o.Hosts, o.Origins = []string{"files.example"}, []string{"https://app.example"} })
	_, secret := r.token(serve.Token{Principal: "ci"})
	header := func(name, value string) func(*http.Request) {
		return func(q *http.Request) { q.Header.Set(name, value) }
	}
	host := func(name string) func(*http.Request) { return func(q *http.Request) { q.Host = name } }
	for i, c := range []struct {
		change func(*http.Request)
		want   int
	}{
		{host("evil.example"), 403}, {host("evil.example:80"), 403}, {host("127.0.0.1.evil.example"), 403}, {host("10.0.0.1"), 403},
		{host("localhost.evil.example:7780"), 403}, {host("LOCALHOST"), 200}, {host("[::1]:7780"), 200}, {host("127.0.0.9"), 200},
		{host("files.example"), 200}, {host("Files.Example:443"), 200}, {host("[::1"), 200},
		{header("Origin", "https://evil.example"), 403}, {header("Origin", "null"), 403}, {header("Origin", r.url), 200}, {header("Origin", r.url+"0"), 403}, {header("Origin", ""), 403},
		{header("Origin", "https://app.example"), 200},
		{header("Content-Type", "text/plain"), 415}, {header("Content-Type", ""), 415}, {header("Content-Type", "application/x-www-form-urlencoded"), 415},
		{header("Content-Type", "application/json; charset=utf-16"), 415}, {header("Content-Type", "application/json; charset=UTF-8"), 200},
		{header("Content-Encoding", "gzip"), 415},
		{func(q *http.Request) { q.Method = "GET" }, 405}, {func(q *http.Request) { q.Method = "OPTIONS" }, 405}, {func(q *http.Request) { q.Method = "PUT" }, 405},
		{func(q *http.Request) { q.URL.Path = "/rpc/" }, 404}, {func(q *http.Request) { q.URL.Path = "//rpc" }, 404},
		{func(q *http.Request) { q.Header.Set("X", strings.Repeat("x", 64<<10)) }, 431},
	} {
		if status, got := r.send(secret, invocation("Read", ""), c.change); status != c.want {
			t.Errorf("row %d: %d %s, want %d", i, status, got, c.want)
		}
	}
}

// A body has its bounds, said or not, and so has what one principal sends at the same time; another
// does not feel it.
func TestBounds(t *testing.T) {
	t.Parallel()
	r := run(t)
	_, secret := r.token(serve.Token{Principal: "ci"})
	_, other := r.token(serve.Token{Principal: "other"})
	if status, _ := r.send(secret, "", func(q *http.Request) {
		q.Body, q.ContentLength = io.NopCloser(strings.NewReader("x")), maxBody+1
		q.Header.Set("Expect", "100-continue") // nothing is sent before it is said to be welcome
	}); status != 413 {
		t.Errorf("a body too long: %d", status)
	}
	if status, _ := r.send(secret, "", func(q *http.Request) {
		q.Body, q.ContentLength = io.NopCloser(io.LimitReader(blanks{}, maxBody+1)), -1
	}); status != 413 {
		t.Errorf("one that does not say: %d", status)
	}
	if status, got := r.send(secret, "", func(q *http.Request) {
		q.Body, q.ContentLength = io.NopCloser(strings.NewReader(invocation("Read", ""))), -1
	}); status != 200 {
		t.Errorf("in chunks: %d %s", status, got)
	}
	part, leave := r.server.load.enter("ci")
	held := part.bytes
	defer leave()
	if !held.TryAcquire(maxBytes) { // what ended has given all of it back
		t.Fatal("there is no place")
	}
	if status, got := r.send(secret, invocation("Read", "")); status != 429 || !strings.Contains(got, "-32000") {
		t.Errorf("too much at once: %d %s", status, got)
	}
	if status, _ := r.send(other, invocation("Read", "")); status != 200 {
		t.Errorf("another: %d", status)
	}
	held.Release(maxBytes)
	if status, _ := r.send(secret, invocation("Read", "")); status != 200 {
		t.Errorf("afterwards: %d", status)
	}
}

type blanks struct{}

func (blanks) Read(p []byte) (int, error) {
	copy(p, bytes.Repeat([]byte{' '}, len(p)))
	return len(p), nil
}

// On a socket our own user needs no token, and has an operator's authority too. A token there is a
// token.
func TestSocket(t *testing.T) {
	t.Parallel()
	r := run(t, func(o *Options) { o.Metrics = &hook.Metrics{} })
	_, end := r.server.o.Metrics.Begin(t.Context(), hook.Info{Tool: "Read"})
	end(hook.End{Outcome: "ok", Known: true, Duration: 3 * time.Millisecond})
	send := func(path, secret string) (int, string) {
		body, method := "", "GET"
		if path == "/rpc" {
			body, method = invocation("Read", ""), "POST"
		}
		q, err := http.NewRequest(method, "http://any.name"+path, strings.NewReader(body))
		must(t, err)
		q.Header.Set("Content-Type", "application/json")
		if secret != "" {
			q.Header.Set("Authorization", "Bearer "+secret)
		}
		return r.do(r.unix, q)
	}
	c, err := r.unix.Transport.(*http.Transport).DialContext(t.Context(), "", "")
	must(t, err)
	_, known, _ := serve.Peer(c)
	c.Close()
	if !known {
		if status, _ := send("/rpc", ""); status != 401 {
			t.Errorf("where nobody can tell who it is: %d", status)
		}
		return
	}
	if status, got := send("/rpc", ""); status != 200 || !strings.Contains(got, `"by":"local"`) {
		t.Errorf("%d %s", status, got)
	}
	if status, got := send("/metrics", ""); status != 200 || !strings.Contains(got, "\nmoltis_tool_executions_total{tool=\"Read\",success=\"true\"} 1\n") ||
		!strings.Contains(got, `_bucket{tool="Read",le="0.002"} 0`) || !strings.Contains(got, `_bucket{tool="Read",le="0.008"} 1`) ||
		!strings.Contains(got, "\nmoltis_tool_executions_in_flight 0\n") {
		t.Errorf("%d %s", status, got)
	}
	_, secret := r.token(serve.Token{Principal: "ci"})
	if status, got := send("/rpc", secret); status != 200 || !strings.Contains(got, `"by":"ci"`) {
		t.Errorf("%d %s", status, got)
	}
	if status, _ := send("/metrics", secret); status != 403 {
		t.Errorf("an agent's token on a socket: %d", status)
	}
	if status, _ := send("/rpc", "wrong"); status != 401 {
		t.Errorf("a wrong token on a socket: %d", status)
	}
}
