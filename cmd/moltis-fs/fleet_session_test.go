package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// post sends one message to a server's endpoint for a token, with more headers, and gives status, headers and answer.
func post(t *testing.T, url, secret, body string, headers ...string) (int, http.Header, string) {
	t.Helper()
	q, err := http.NewRequest("POST", url, strings.NewReader(body))
	must(t, err)
	q.Header.Set("Authorization", "Bearer "+secret)
	q.Header.Set("Content-Type", "application/json")
	q.Header.Set("Accept", "application/json, text/event-stream")
	for i := 0; i < len(headers); i += 2 {
		q.Header.Set(headers[i], headers[i+1])
	}
	r, err := http.DefaultClient.Do(q)
	must(t, err)
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	must(t, err)
	return r.StatusCode, r.Header, string(text)
}

// A client whose gateway was killed goes on at another one with the session that it names: what it has read counts, and its history is one.
// The session of the transport is gone.
func TestFleetSessionGoesOn(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.fs = "require_approval = false\ntrack_reads = true\nmust_read_before_write = true"
	a, b := f.machine("a", ""), f.machine("b", "")
	path := filepath.Join(f.tree, "x")
	must(t, os.WriteFile(path, []byte("one\n"), 0o644))
	secret := strings.TrimSpace(a.run("token", "create", "--principal", "ci"))
	first, second := serveOn(t, a), serveOn(t, b)
	const initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`
	begin := func(s *server) string {
		t.Helper()
		status, h, text := post(t, s.url+"/mcp", secret, initialize)
		if status != http.StatusOK {
			t.Fatal(status, text)
		}
		return h.Get("Mcp-Session-Id")
	}
	call := func(s *server, transport, session, tool, arguments string) (int, string) {
		t.Helper()
		body := fmt.Sprintf(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":%q,"arguments":%s,"_meta":{"moltis-fs/session":%q}}}`, tool, arguments, session)
		status, _, text := post(t, s.url+"/mcp", secret, body, "Mcp-Session-Id", transport, "Mcp-Protocol-Version", "2025-06-18")
		return status, text
	}
	rpc := func(s *server, method, params string) string {
		t.Helper()
		_, _, text := post(t, s.url+"/rpc", secret, fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":%s}`, method, params))
		return text
	}
	read := fmt.Sprintf(`{"file_path":%q}`, path)
	write := func(content string) string { return fmt.Sprintf(`{"file_path":%q,"content":%q}`, path, content) }

	transport := begin(first)
	if status, text := call(first, transport, "work", "Read", read); status != http.StatusOK || strings.Contains(text, `"isError":true`) {
		t.Fatal(status, text)
	}
	var made struct {
		Result struct {
			ID string `json:"session_id"`
		}
	}
	must(t, json.Unmarshal([]byte(rpc(first, "session.create", `{}`)), &made))
	rpc(first, "capabilities.invoke", fmt.Sprintf(`{"capability":"Read","session_id":%q,"arguments":%s}`, made.Result.ID, read))
	must(t, first.cmd.Process.Kill())
	first.cmd.Wait() //nolint:errcheck // it was killed

	if status, text := call(second, transport, "work", "Read", read); status != http.StatusNotFound {
		t.Error("the session of the transport: ", status, text)
	}
	transport = begin(second)
	if _, text := call(second, transport, "another", "Write", write("no\n")); !strings.Contains(text, `"isError":true`) {
		t.Error("another session has not read it: ", text)
	}
	if status, text := call(second, transport, "work", "Write", write("two\n")); status != http.StatusOK || strings.Contains(text, `"isError":true`) {
		t.Error("the session that has read it: ", status, text)
	}
	if got := f.content("x"); got != "two\n" {
		t.Errorf("%q", got)
	}
	must(t, os.WriteFile(path, []byte("one\n"), 0o644)) // as that session has read it
	invoke := fmt.Sprintf(`{"capability":"Write","session_id":%q,"arguments":%s}`, made.Result.ID, write("three\n"))
	if text := rpc(second, "capabilities.invoke", invoke); !strings.Contains(text, "-32004") {
		t.Error("not begun here: ", text)
	}
	if text := rpc(second, "session.create", fmt.Sprintf(`{"session_id":%q}`, made.Result.ID)); !strings.Contains(text, made.Result.ID) {
		t.Error(text)
	}
	if text := rpc(second, "capabilities.invoke", invoke); !strings.Contains(text, `"success":true`) || f.content("x") != "three\n" {
		t.Error("it goes on: ", text)
	}
	if log := b.run("log", "--session", "work"); !strings.Contains(log, "Write") {
		t.Error(log)
	}
}
