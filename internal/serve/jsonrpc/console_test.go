package jsonrpc

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"moltisfs/internal/serve"
)

// toyConsole lets in who sends a header, while it is open.
type toyConsole struct {
	open  atomic.Bool
	begun chan bool
}

func (c *toyConsole) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/console/sign-in" {
		w.WriteHeader(http.StatusUnauthorized)
	}
	io.WriteString(w, "the page at "+r.URL.Path) //nolint:errcheck // the test reads it
}

func (c *toyConsole) Admit(w http.ResponseWriter, r *http.Request) (string, func() bool, bool) {
	if !c.open.Load() || r.Header.Get("Cookie") == "" {
		w.WriteHeader(http.StatusUnauthorized)
		return "", nil, false
	}
	return "boss", c.open.Load, true
}

func (c *toyConsole) Events(_ string, _ http.ResponseWriter, r *http.Request) {
	c.begun <- true
	<-r.Context().Done()
	c.begun <- false
}

// The console's requests go by its cookie alone, have the operators' methods and none of the callers', and end with it.
func TestConsole(t *testing.T) {
	t.Parallel()
	page := &toyConsole{begun: make(chan bool, 2)}
	page.open.Store(true)
	r := run(t, func(o *Options) {
		o.Console = page
		o.Operator = map[string]serve.Method{
			"approvals.list": func(_ context.Context, by string, _ json.RawMessage) (any, error) { return "for " + by, nil }}
	})
	send := func(method, path, body string, header ...string) (int, string) {
		q, err := http.NewRequestWithContext(t.Context(), method, r.url+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		q.Header.Set("Content-Type", "application/json")
		for i := 0; i < len(header); i += 2 {
			if q.Header.Set(header[i], header[i+1]); header[i] == "Host" {
				q.Host = header[i+1]
			}
		}
		a, err := r.tcp.Do(q)
		if err != nil {
			t.Fatal(err)
		}
		defer a.Body.Close()
		text, _ := io.ReadAll(a.Body) //nolint:errcheck // then it is short
		return a.StatusCode, string(text)
	}
	const list, call = `{"jsonrpc":"2.0","id":1,"method":"approvals.list"}`, `{"jsonrpc":"2.0","id":1,"method":"capabilities.invoke","params":{"capability":"Read"}}`
	for _, c := range []struct {
		method, path, body string
		header             []string
		status             int
		want               string
	}{
		{"GET", "/console/", "", nil, 200, "the page at /console/"},
		{"GET", "/console", "", nil, 200, "the page at /console"},
		{"POST", "/console/sign-in", "", nil, 401, "the page at /console/sign-in"},
		{"GET", "/consoles", "", nil, 404, "nothing here"},
		{"GET", "/console/", "", []string{"Host", "evil.example"}, 403, "none of this server's"},
		{"POST", "/console/rpc", list, []string{"Cookie", "a=b", "Host", "evil.example"}, 403, "none of this server's"},
		{"POST", "/console/rpc", list, nil, 401, ""},
		{"POST", "/console/rpc", list, []string{"Cookie", "a=b"}, 200, `"for boss"`},
		{"POST", "/console/rpc", list, []string{"Cookie", "a=b", "Origin", "http://127.0.0.1:1"}, 200, `"for boss"`}, // the console judges origins
		{"POST", "/console/rpc", call, []string{"Cookie", "a=b"}, 200, "makes no calls"},
		{"GET", "/console/rpc", "", []string{"Cookie", "a=b"}, 405, "POST"},
		{"POST", "/console/events", "", []string{"Cookie", "a=b"}, 405, "GET"},
		{"POST", "/rpc", list, []string{"Cookie", "a=b"}, 401, "token"}, // a cookie is no token
	} {
		if status, got := send(c.method, c.path, c.body, c.header...); status != c.status || !strings.Contains(got, c.want) {
			t.Errorf("%s %s %v: %d %s", c.method, c.path, c.header, status, got)
		}
	}
	if n := r.server.refused.Load(); n != 2 { // and one for /rpc
		t.Errorf("%d refusals are counted", n)
	}
	go func() {
		q, _ := http.NewRequest(http.MethodGet, r.url+"/console/events", nil) //nolint:errcheck // it is one
		q.Header.Set("Cookie", "a=b")
		if a, err := r.tcp.Do(q); err == nil {
			_ = a.Body.Close()
		}
	}()
	if !<-page.begun {
		t.Fatal("the stream has ended")
	}
	page.open.Store(false)
	if <-page.begun {
		t.Fatal("the stream does not end with its cookie")
	}
}
