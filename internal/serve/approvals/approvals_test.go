package approvals

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"moltisfs/internal/approval"
	"moltisfs/internal/approval/queue"
	"moltisfs/internal/serve"
	"moltisfs/internal/testdir"
)

var must = testdir.Must

func example() approval.Question {
	return approval.Question{ID: "c1", Principal: "agent", Session: "s1", Tool: "Write", Paths: []string{"/w/a\u202etxt"},
		Diff: "+one\n", Added: 1, Digest: "d"}
}

type asked struct {
	id     string
	answer <-chan approval.Answer
}

// ask puts a question that waits until the test ends.
func ask(t *testing.T, q *queue.Queue, question approval.Question) asked {
	t.Helper()
	before, err := q.List(false)
	must(t, err)
	c, ended := make(chan approval.Answer, 1), make(chan struct{})
	ctx, stop := context.WithCancel(context.Background())
	go func() {
		defer close(ended)
		a, err := q.Ask(ctx, question)
		if err != nil {
			t.Error(err)
		}
		c <- a
	}()
	t.Cleanup(func() { stop(); <-ended })
	id := ""
	testdir.Until(t, "the question", func() bool {
		list, err := q.List(false)
		must(t, err)
		for _, e := range list {
			if !strings.Contains(fmt.Sprint(before), e.ID) {
				id = e.ID
			}
		}
		return id != ""
	})
	return asked{id, c}
}

func TestMethods(t *testing.T) {
	t.Parallel()
	q := queue.Open(t.TempDir())
	methods := Methods(q)
	one, two := ask(t, q, example()), ask(t, q, example())
	for _, c := range []struct {
		method, by, params string
		want               string // in the answer's JSON, or the error
		code               int
	}{
		{"list", "ann", ``, `"id":"` + one.id, 0},
		{"list", "ann", `{"al":true}`, "no argument", codeParams},
		{"list", "ann", `{"all":"maybe"}`, "params: ", codeParams},
		{"list", "ann", `{} {}`, "params: ", codeParams},
		{"show", "ann", `{"id":"` + one.id + `"}`, `a\\u{202e}txt`, 0},
		{"show", "ann", `{"id":"../x"}`, "no such question", codeNotFound},
		{"show", "ann", `{"id":"` + one.id[:6] + `"}`, "no such question", codeNotFound},
		{"approve", "agent", `{"id":"` + one.id + `"}`, "who asks can't answer", codeDenied},
		{"approve", "", `{"id":"` + one.id + `"}`, "needs a name", 0},
		{"approve", "ann", `{"id":"` + one.id + `","decision":"denied"}`, "no argument", codeParams},
		{"deny", "ann", `{"id":"` + one.id + `","reason":"` + strings.Repeat("n", 5000) + `"}`, "at most", codeParams},
		{"approve", "ann", `{"id":"` + one.id + `"}`, `"state":"approved"`, 0},
		{"approve", "bob", `{"id":"` + one.id + `"}`, "was approved by operator ann", codeOver},
		{"deny", "bob", `{"id":"` + two.id + `","reason":"no"}`, `"reason":"no"`, 0},
		{"list", "ann", `{}`, `"approvals":[]`, 0},
		{"list", "ann", `{"all":true}`, `"by":"operator bob"`, 0},
	} {
		result, err := methods["approvals."+c.method](t.Context(), c.by, json.RawMessage(c.params))
		text, merr := json.Marshal(result)
		must(t, merr)
		if e, ok := errors.AsType[*serve.Error](err); ok && e.Code != c.code || !ok && c.code != 0 {
			t.Errorf("%s %s: %v", c.method, c.params, err)
		}
		if said := string(text) + fmt.Sprint(err); !strings.Contains(said, c.want) {
			t.Errorf("%s %s: %s", c.method, c.params, said)
		}
	}
	if a := <-one.answer; a.Decision != approval.Approved || a.By != "operator ann" {
		t.Errorf("%+v", a)
	}
	if a := <-two.answer; a.Decision != approval.Denied || a.Reason != "no" {
		t.Errorf("%+v", a)
	}
}

// served runs a gateway for operator ann.
func served(t *testing.T, g *Gateway) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { g.Serve("ann", w, r) }))
	t.Cleanup(s.Close)
	return s.URL
}

// narrow is a listener whose connections buffer little.
type narrow struct{ net.Listener }

func (l narrow) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err == nil {
		err = c.(*net.TCPConn).SetWriteBuffer(4 << 10)
	}
	return c, err
}

// wire is a client of a gateway.
type wire struct {
	*websocket.Conn
	t *testing.T
	n int
}

func dial(t *testing.T, url string) *wire {
	t.Helper()
	conn, _, err := websocket.Dial(t.Context(), url, nil)
	must(t, err)
	conn.SetReadLimit(64 << 20)
	t.Cleanup(func() { conn.CloseNow() })
	return &wire{Conn: conn, t: t}
}

// next is the next frame of a kind.
func (w *wire) next(kind string) string {
	w.t.Helper()
	for {
		_, text, err := w.Read(w.t.Context())
		must(w.t, err)
		if strings.HasPrefix(string(text), `{"type":"`+kind+`"`) {
			return string(text)
		}
	}
}

func (w *wire) call(method, params string) string {
	w.t.Helper()
	w.n++
	must(w.t, w.Write(w.t.Context(), websocket.MessageText,
		fmt.Appendf(nil, `{"type":"req","id":"%d","method":%q,"params":%s}`, w.n, method, params)))
	r := w.next("res")
	if !strings.HasPrefix(r, fmt.Sprintf(`{"type":"res","id":"%d",`, w.n)) {
		w.t.Errorf("the answer to %d is %s", w.n, r)
	}
	return r
}

func TestGateway(t *testing.T) {
	t.Parallel()
	q := queue.Open(t.TempDir())
	early := ask(t, q, example())
	w := dial(t, served(t, &Gateway{Queue: q}))
	late := ask(t, q, example())
	came := w.next("event")
	for _, want := range []string{`"event":"exec.approval.requested"`, `"requestId":"` + late.id + `"`, `"command":"Write /w/a\\u{202e}txt"`,
		`"sessionKey":"s1"`, `\n+one\n"`, `"seq":1`} {
		if !strings.Contains(came, want) {
			t.Errorf("%s is not in %s", want, came)
		}
	}
	id := func(s string) string { return strings.ReplaceAll(s, "ID", late.id) }
	for _, c := range []struct{ method, params, want string }{
		{"connect", `{"minProtocol":3,"maxProtocol":3,"client":{"id":"t"}}`, `"protocol":3`},
		{"connect", `{"protocol":{"min":3,"max":9},"client":{"id":"t"}}`, `"protocol":4`},
		{"connect", `{"protocol":{"min":5,"max":9}}`, `"PROTOCOL_ERROR"`},
		{"exec.approval.request", `{}`, `"pending":["` + early.id + `","` + late.id + `"],"requests":[{`},
		{"exec.approval.request", `{"sessionKey":"s2"}`, `"pending":[],"requests":[]`},
		{"exec.approval.request", `{"sessionKey":"s1"}`, `"session_key":"s1"`},
		{"exec.approval.approve", `{}`, `"UNKNOWN_METHOD"`},
		{"exec.approval.resolve", id(`{"requestId":"ID"}`), `"INVALID_REQUEST"`},
		{"exec.approval.resolve", id(`{"requestId":"ID","decision":"yes"}`), `"INVALID_REQUEST"`},
		{"exec.approval.resolve", `{"requestId":"000000000000","decision":"approved"}`, `"ok":true,"payload":{"ok":true,"warning"`},
		{"exec.approval.resolve", id(`{"requestId":"ID","decision":"denied","command":"x"}`), `"ok":true,"payload":{"ok":true}`},
		{"exec.approval.resolve", id(`{"requestId":"ID","decision":"approved"}`), `"code":"CONFLICT","message":"too late: the question was denied by operator ann"`},
		{"approvals.approve", `{"id":"` + early.id + `"}`, `"state":"approved"`},
		{"approvals.show", `{"id":"x"}`, `"code":"NOT_FOUND"`},
	} {
		if r := w.call(c.method, c.params); !strings.Contains(r, c.want) {
			t.Errorf("%s %s: %s", c.method, c.params, r)
		}
	}
	if a := <-late.answer; a.Decision != approval.Denied || a.By != "operator ann" {
		t.Errorf("%+v", a)
	}
	if a := <-early.answer; a.Decision != approval.Approved {
		t.Errorf("%+v", a)
	}
}

// Connected operators get alerts, escaped. A client that takes none holds nobody up.
func TestAlerts(t *testing.T) {
	t.Parallel()
	g := &Gateway{Queue: queue.Open(t.TempDir())}
	alert := Alert{ID: "a1", Severity: "info", Message: "please\x1b[2J", Principal: "agent\u202e", SessionKey: "s1", Context: map[string]any{"n": 1}}
	if g.Tell(alert) {
		t.Error("nobody is there")
	}
	one, two := dial(t, served(t, g)), dial(t, served(t, g))
	for _, w := range []*wire{one, two} { // it is there when it answers
		w.call("connect", `{"minProtocol":3,"maxProtocol":3,"client":{"id":"t"}}`)
	}
	if !g.Tell(alert) {
		t.Error("two are there")
	}
	for _, w := range []*wire{one, two} {
		if e := w.next("event"); !strings.Contains(e, `"event":"alert","payload":{"alertId":"a1","severity":"info","message":"please\\u{1b}[2J",`+
			`"context":{"n":1},"principal":"agent\\u{202e}","sessionKey":"s1"}`) {
			t.Error(e)
		}
	}
}

// An operator does not answer the question of their own principal.
func TestOwnQuestion(t *testing.T) {
	t.Parallel()
	q := queue.Open(t.TempDir())
	own := example()
	own.Principal = "ann"
	w := dial(t, served(t, &Gateway{Queue: q}))
	a := ask(t, q, own)
	w.next("event")
	if r := w.call("exec.approval.resolve", `{"requestId":"`+a.id+`","decision":"approved"}`); !strings.Contains(r, `"FORBIDDEN"`) {
		t.Error(r)
	}
}

// There is one rule for all doors: by JSON-RPC, by the WebSocket, in either's words.
func TestUnseenByAnyDoor(t *testing.T) {
	t.Parallel()
	q := queue.Open(t.TempDir())
	long := example()
	long.Diff = strings.Repeat("+a line of some length\n", 10_000)
	w := dial(t, served(t, &Gateway{Queue: q}))
	rpc := func(method, by, params string) string {
		result, err := Methods(q)[method](t.Context(), by, json.RawMessage(params))
		text, merr := json.Marshal(result)
		must(t, merr)
		return string(text) + fmt.Sprint(err)
	}
	socket := func(method, _, params string) string { return w.call(method, params) }
	for name, door := range map[string]struct {
		call          func(method, by, params string) string
		method, id, x string // x: more of the parameters
	}{
		"JSON-RPC": {rpc, "approvals.approve", "id", ""}, "the same over the WebSocket": {socket, "approvals.approve", "id", ""},
		"Moltis' own": {socket, "exec.approval.resolve", "requestId", `,"decision":"approved"`},
	} {
		approve := func(id, more string) string {
			return door.call(door.method, "ann", fmt.Sprintf(`{%q:%q%s%s}`, door.id, id, door.x, more))
		}
		one, two := ask(t, q, long), ask(t, q, long)
		for range 2 {
			if e := w.next("event"); len(e) > 2*maxDiff || !strings.Contains(e, `"unseen":`) {
				t.Errorf("%s: %d bytes: %.300s", name, len(e), e)
			}
		}
		if got := approve(one.id, ""); !strings.Contains(got, "was not shown whole") {
			t.Errorf("%s: unseen: %s", name, got)
		}
		if got := approve(one.id, `,"unseen":"yes"`); strings.Contains(got, `"approved"`) || strings.Contains(got, `"ok":true`) {
			t.Errorf("%s: a word for true: %s", name, got)
		}
		if got := approve(one.id, `,"unseen":true`); strings.Contains(got, "was not shown whole") {
			t.Errorf("%s: said: %s", name, got)
		}
		if a := <-one.answer; a.Decision != approval.Approved || a.By != "operator ann, with 10000 lines unseen" {
			t.Errorf("%s: %+v", name, a)
		}
		rpc("approvals.show", "bob", `{"id":"`+two.id+`"}`)
		if got := approve(two.id, ""); !strings.Contains(got, "was not shown whole") {
			t.Errorf("%s: another operator was shown it: %s", name, got)
		}
		rpc("approvals.show", "ann", `{"id":"`+two.id+`"}`)
		if got := approve(two.id, ""); strings.Contains(got, "was not shown whole") {
			t.Errorf("%s: shown: %s", name, got)
		}
		if a := <-two.answer; a.Decision != approval.Approved || a.By != "operator ann" {
			t.Errorf("%s: %+v", name, a)
		}
	}
}

func TestForeignOrigin(t *testing.T) {
	t.Parallel()
	url := served(t, &Gateway{Queue: queue.Open(t.TempDir()), Origins: []string{"https://desk.example"}})
	for origin, let := range map[string]bool{"": true, url: true, "https://desk.example": true, "http://evil.example": false,
		"http://desk.example": false, "https://desk.example.evil.example": false, "null": false} {
		h := http.Header{}
		if origin != "" {
			h.Set("Origin", origin)
		}
		conn, r, err := websocket.Dial(t.Context(), url, &websocket.DialOptions{HTTPHeader: h})
		if (err == nil) != let {
			t.Errorf("%q: %v", origin, err)
		}
		if err != nil && r.StatusCode != http.StatusForbidden {
			t.Errorf("%q: %s", origin, r.Status)
		}
		if err == nil {
			conn.CloseNow()
		}
	}
}

func TestBadFrames(t *testing.T) {
	t.Parallel()
	url := served(t, &Gateway{Queue: queue.Open(t.TempDir())})
	for name, c := range map[string]struct {
		kind websocket.MessageType
		text string
		want websocket.StatusCode
	}{
		"too long": {websocket.MessageText, `{"type":"req","id":"` + strings.Repeat("x", maxFrame) + `"}`, websocket.StatusMessageTooBig},
		"no JSON":  {websocket.MessageText, `connect`, websocket.StatusUnsupportedData},
		"no frame": {websocket.MessageText, `{"jsonrpc":"2.0","method":"approvals.list"}`, websocket.StatusUnsupportedData},
		"an array": {websocket.MessageText, `[]`, websocket.StatusUnsupportedData},
		"binary":   {websocket.MessageBinary, `{"type":"req"}`, websocket.StatusUnsupportedData},
	} {
		w := dial(t, url)
		must(t, w.Write(t.Context(), c.kind, []byte(c.text)))
		_, _, err := w.Read(t.Context())
		if got := websocket.CloseStatus(err); got != c.want {
			t.Errorf("%s: %v", name, err)
		}
	}
	w := dial(t, url) // what we ask nobody for is left alone
	must(t, w.Write(t.Context(), websocket.MessageText, []byte(`{"type":"res","id":"1","ok":true}`)))
	if r := w.call("exec.approval.request", `{}`); !strings.Contains(r, `"ok":true`) {
		t.Error(r)
	}
}

func TestTooManyConnections(t *testing.T) {
	t.Parallel()
	url := served(t, &Gateway{Queue: queue.Open(t.TempDir())})
	for range maxConnections {
		dial(t, url)
	}
	if _, r, err := websocket.Dial(t.Context(), url, nil); err == nil || r.StatusCode != http.StatusServiceUnavailable {
		t.Error(err)
	}
}

// A client that does not read is dropped, and the question waits for others, as it does when a gateway goes away.
func TestSlowReader(t *testing.T) {
	t.Parallel()
	q := queue.Open(t.TempDir())
	g := &Gateway{Queue: q, patience: 100 * time.Millisecond}
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { g.Serve("ann", w, r) }))
	s.Listener = narrow{s.Listener}
	s.Start()
	t.Cleanup(s.Close)
	url := s.URL
	slow, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	must(t, err)
	defer slow.Close()
	must(t, slow.(*net.TCPConn).SetReadBuffer(4<<10))
	fmt.Fprintf(slow, "GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"+
		"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n")
	_, err = io.ReadFull(slow, make([]byte, 12)) // HTTP/1.1 101
	must(t, err)
	long := example()
	long.Diff = strings.Repeat("+a line of some length\n", 2800)
	var all []asked
	for g.open.Load() > 0 && len(all) < 90 {
		long.Principal = fmt.Sprint("agent", len(all)%3) // no one has more than half of what may wait
		all = append(all, ask(t, q, long))
	}
	testdir.Until(t, "the end of the connection", func() bool { return g.open.Load() == 0 })
	w := dial(t, url)
	if r := w.call("exec.approval.resolve", `{"requestId":"`+all[0].id+`","decision":"denied"}`); !strings.Contains(r, `"ok":true`) {
		t.Error(r)
	}
	if a := <-all[0].answer; a.By != "operator ann" {
		t.Errorf("%+v", a)
	}
}

// A connection ends with the context of its request: the token was revoked, or the server ends.
func TestEndOfContext(t *testing.T) {
	t.Parallel()
	g := &Gateway{Queue: queue.Open(t.TempDir())}
	ctx, stop := context.WithCancel(t.Context())
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { g.Serve("ann", w, r.WithContext(ctx)) }))
	defer s.Close()
	w := dial(t, s.URL)
	stop()
	if _, _, err := w.Read(t.Context()); err == nil {
		t.Error("it goes on")
	}
}
