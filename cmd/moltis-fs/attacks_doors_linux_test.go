package main

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// A stranger is a request that is not to be let in. TOKEN is one that holds.
type stranger struct{ row, host, origin, kind, auth, method, path string }

var strangers = []stranger{
	{"I01", "evil.example", "", "application/json", "Bearer TOKEN", "POST", "/rpc"},
	{"I01", "127.0.0.1.evil.example", "", "application/json", "Bearer TOKEN", "POST", "/rpc"},
	{"I02", "", "https://evil.example", "application/json", "Bearer TOKEN", "POST", "/rpc"},
	{"I02", "", "null", "application/json", "Bearer TOKEN", "POST", "/rpc"},
	{"I03", "", "", "text/plain", "Bearer TOKEN", "POST", "/rpc"},
	{"I03", "", "", "application/x-www-form-urlencoded", "Bearer TOKEN", "POST", "/rpc"},
	{"I03", "", "", "", "Bearer TOKEN", "GET", "/rpc"},
	{"I03", "", "https://evil.example", "", "Bearer TOKEN", "GET", "/ws"},
	{"I04", "", "", "application/json", "", "POST", "/rpc"},
	{"I04", "", "", "application/json", "Bearer TOKENx", "POST", "/rpc"},
	{"I01", "evil.example", "", "application/json", "Bearer TOKEN", "POST", "/mcp"},
	{"I02", "", "https://evil.example", "application/json", "Bearer TOKEN", "POST", "/mcp"},
	{"I03", "", "", "text/plain", "Bearer TOKEN", "POST", "/mcp"},
	{"I04", "", "", "application/json", "", "POST", "/mcp"},
	{"I04", "", "", "application/json", "Bearer TOKENx", "GET", "/mcp"},
	{"I04", "", "", "", "", "GET", "/metrics"},
	{"I04", "", "", "", "", "GET", "/ws"},
}

// knock makes a request of a stranger, to read a file that may be read.
func knock(t *testing.T, url string, d stranger) (int, []byte) {
	t.Helper()
	body := io.Reader(nil)
	if d.method == "POST" {
		body = strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"capabilities.list"}`)
	}
	q, err := http.NewRequest(d.method, url+d.path, body)
	must(t, err)
	q.Host = d.host
	for name, v := range map[string]string{"Origin": d.origin, "Content-Type": d.kind, "Authorization": d.auth} {
		if v != "" {
			q.Header.Set(name, v)
		}
	}
	if d.path == "/ws" {
		q.Header.Set("Connection", "Upgrade")
		q.Header.Set("Upgrade", "websocket")
	}
	a, err := (&http.Client{Timeout: 20 * time.Second}).Do(q)
	must(t, err)
	defer a.Body.Close()
	b, err := io.ReadAll(a.Body)
	must(t, err)
	return a.StatusCode, b
}

// runDoors has the strangers of a row knock at a server, and somebody who may come in.
func runDoors(r *attackRun) {
	if r.door == nil {
		r.door = startServer(r.t, newToken(r.t, r.w.data("d"), "--principal", "agent"), "--config", r.w.data("c.toml"), "--data-dir", r.w.data("d"))
	}
	for _, d := range strangers {
		if d.row != r.row.id {
			continue
		}
		d.auth = strings.Replace(d.auth, "TOKEN", r.door.secret, 1)
		start := time.Now()
		status, body := knock(r.t, r.door.url, d)
		if status < 400 || status >= 500 || told(body) || strings.Contains(string(body), `"result"`) {
			r.t.Errorf("%s: %+v gets %d %s", r.row.id, d, status, body)
		}
		r.note("serve", fmt.Sprint(status), time.Since(start))
	}
	if status, body := knock(r.t, r.door.url, stranger{"", "", "", "application/json", "Bearer " + r.door.secret, "POST", "/rpc"}); status != http.StatusOK {
		r.t.Errorf("%s: who may come in gets %d %s", r.row.id, status, body)
	}
}
