package jsonrpc

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"moltisfs/internal/serve"
)

// A stranger takes the place of another stranger; a caller with a token is let in and stays. A principal has its share of those
// that are known.
func TestConnections(t *testing.T) {
	t.Parallel()
	r := runDialect(t, &toy{}, func(s *Server) { s.connections = newConnections(32) }) // eight strangers, eight that are known, four for each principal
	secrets := map[string]string{}
	for _, who := range []string{"alice", "bob"} {
		_, secrets[who] = r.token(serve.Token{Principal: who})
	}
	dial := func() net.Conn {
		t.Helper()
		c, err := net.Dial("tcp", strings.TrimPrefix(r.url, "http://"))
		must(t, err)
		t.Cleanup(func() { c.Close() })
		return c
	}
	ask := func(c net.Conn, secret string) int {
		t.Helper()
		fmt.Fprintf(c, "POST /rpc HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: 59\r\n\r\n%-59s",
			secret, `{"jsonrpc":"2.0","id":1,"method":"capabilities.list"}`)
		r, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			return 0
		}
		_, _ = io.Copy(io.Discard, r.Body)
		return r.StatusCode
	}
	letIn := func(secret string) { // as soon as the server has noticed what was closed
		t.Helper()
		for got := 0; got != http.StatusOK; {
			c := dial()
			if got = ask(c, secret); got != http.StatusOK && got != http.StatusTooManyRequests {
				t.Fatalf("somebody with a token: %d", got)
			}
			c.Close()
		}
	}
	bob := dial()
	if got := ask(bob, secrets["bob"]); got != http.StatusOK {
		t.Fatal(got)
	}
	for i := range 100 {
		fmt.Fprint(dial(), "POST /rpc HTTP/1.1\r\nHost: ")
		if i%10 == 0 {
			letIn(secrets["bob"])
		}
	}
	if got := ask(bob, secrets["bob"]); got != http.StatusOK {
		t.Errorf("a connection of before: %d", got)
	}
	r.server.connections.mu.Lock()
	n := len(r.server.connections.strangers)
	r.server.connections.mu.Unlock()
	if n > 8 {
		t.Errorf("%d strangers", n)
	}
	var held []net.Conn
	for i, want := range []int{200, 200, 200, 200, http.StatusTooManyRequests, http.StatusTooManyRequests} {
		c := dial()
		if got := ask(c, secrets["alice"]); got != want {
			t.Errorf("connection %d of one principal: %d, want %d", i, got, want)
		}
		held = append(held, c)
	}
	letIn(secrets["bob"])
	held[0].Close()
	letIn(secrets["alice"])
}

// A policy sees no header that keeps a secret, and none hides another.
func TestPolicyHeaders(t *testing.T) {
	t.Parallel()
	h := http.Header{}
	for _, kv := range [][2]string{{"x-mcp-Team", "red"}, {"X-MCP-User-ID", "7"}, {"X-Mcp-User-Id", "8"}, {"X-MCP-", "none"},
		{"Authorization", "Bearer s"}, {"X-McpTeam", "blue"}, {"Cookie", "c"}} {
		h.Add(kv[0], kv[1])
	}
	if got := fmt.Sprint(policyHeaders(h)); got != "map[team:red user-id:7, 8]" {
		t.Error(got)
	}
}

// timed is an answer that knows its deadline.
type timed struct {
	*httptest.ResponseRecorder
	deadline time.Time
}

func (w *timed) SetWriteDeadline(d time.Time) error { w.deadline = d; return nil }

// The time that an answer had does not end the next one on the same connection, though it has no body and sets none.
func TestDeadlineOfTheAnswerBefore(t *testing.T) {
	t.Parallel()
	r := run(t)
	_, secret := r.token(serve.Token{Principal: "ci"})
	w := &timed{httptest.NewRecorder(), time.Unix(1, 0)}
	q := httptest.NewRequest("POST", "http://127.0.0.1/rpc", strings.NewReader(`{"jsonrpc":"2.0","method":"session.create"}`))
	q.Header.Set("Authorization", "Bearer "+secret)
	q.Header.Set("Content-Type", "application/json")
	r.server.ServeHTTP(w, q)
	if w.Code != http.StatusNoContent || !w.deadline.IsZero() {
		t.Errorf("%d, until %v", w.Code, w.deadline)
	}
}
