package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/coder/websocket"
)

// A change over JSON-RPC waits until an operator answers: by another request, or by a WebSocket. The token that asks can't.
func TestServeApprovals(t *testing.T) {
	t.Parallel()
	dir := realDir(t)
	data, root := filepath.Join(dir, "data"), filepath.Join(dir, "tree")
	must(t, os.Mkdir(root, 0o700))
	agent, operator := newToken(t, data, "--principal", "ci"), newToken(t, data, "--principal", "ann", "--operator")
	s := startServer(t, agent, "--root", root, "--data-dir", data)
	socket := func(secret string) (*websocket.Conn, *http.Response, error) {
		return websocket.Dial(t.Context(), strings.Replace(s.url, "http", "ws", 1)+"/ws",
			&websocket.DialOptions{HTTPHeader: http.Header{"Authorization": {"Bearer " + secret}}})
	}
	if _, r, err := socket(agent); err == nil || r == nil || r.StatusCode < 400 || r.StatusCode > 403 {
		t.Fatalf("an agent connects: %v", err)
	}
	ws, _, err := socket(operator)
	must(t, err)
	defer ws.CloseNow()
	write := func(name string) <-chan string {
		c := make(chan string, 1)
		go func() {
			c <- s.askAs(agent, "capabilities.invoke", `{"capability":"Write","arguments":{"file_path":"`+root+"/"+name+`","content":"new\n"}}`)
		}()
		return c
	}
	requested := func() string {
		_, text, err := ws.Read(t.Context())
		id := regexp.MustCompile(`"requestId":"([0-9a-f]+)"`).FindSubmatch(text)
		if err != nil || id == nil || !strings.Contains(string(text), `--- /dev/null`) {
			t.Fatalf("%s %v", text, err)
		}
		return string(id[1])
	}
	answer := write("a")
	id := requested()
	for _, method := range []string{"approvals.list", "approvals.approve"} {
		if got := s.askAs(agent, method, `{"id":"`+id+`"}`); !strings.Contains(got, `"code":-32601`) {
			t.Errorf("an agent calls %s: %s", method, got)
		}
	}
	if got := s.askAs(operator, "approvals.list", `{}`); !strings.Contains(got, id) || !strings.Contains(got, `"principal":"ci"`) {
		t.Error(got)
	}
	if got := s.askAs(operator, "approvals.approve", `{"id":"`+id+`"}`); !strings.Contains(got, `"state":"approved"`) {
		t.Error(got)
	}
	if got := <-answer; !strings.Contains(got, `{"success":true,"data":{"kind":"write"`) {
		t.Error(got)
	}
	if got := s.askAs(operator, "approvals.deny", `{"id":"`+id+`"}`); !strings.Contains(got, `"code":-32006`) {
		t.Error(got)
	}
	answer = write("b")
	resolve := fmt.Sprintf(`{"type":"req","id":"1","method":"exec.approval.resolve","params":{"requestId":%q,"decision":"denied","reason":"not b"}}`, requested())
	if err := ws.Write(t.Context(), websocket.MessageText, []byte(resolve)); err != nil {
		t.Error(err)
	}
	if got := <-answer; !strings.Contains(got, `"success":false`) || !strings.Contains(got, "not b") {
		t.Error(got)
	}
	// what an operator takes back is asked about too, and another operator may be first
	back := make(chan string, 1)
	go func() {
		back <- s.askAs(operator, "checkpoints.undo", `{"principal":"ci","session":"`+session(s.askAs(operator, "sessions.list", `{}`))+`"}`)
	}()
	for id = ""; id == ""; { // the answer to resolve comes first
		_, text, err := ws.Read(t.Context())
		must(t, err)
		if m := regexp.MustCompile(`"requestId":"([0-9a-f]+)".*checkpoint_restore`).FindSubmatch(text); m != nil {
			id = string(m[1])
		}
	}
	if got := s.askAs(operator, "approvals.deny", `{"id":"`+id+`","reason":"keep a"}`); !strings.Contains(got, `"tool":"checkpoint_restore"`) {
		t.Error(got)
	}
	if got := s.askAs(operator, "approvals.approve", `{"id":"`+id+`","unseen":true}`); !strings.Contains(got, `"code":-32006`) {
		t.Error(got)
	}
	if got := <-back; !strings.Contains(got, `"code":-32007`) || !strings.Contains(got, "keep a") {
		t.Error(got)
	}
	if got := s.askAs(operator, "audit.refused", `{"principal":"ci"}`); !strings.Contains(got, `{"outcome":"approval_denied","approval":"denied","count":2,`) {
		t.Error(got)
	}
	if _, err := os.Lstat(filepath.Join(root, "a")); err != nil {
		t.Error("what was kept is gone")
	}
	if _, err := os.Lstat(filepath.Join(root, "b")); err == nil {
		t.Error("what was denied is there")
	}
}

// session is the first session of this run that an answer names.
func session(answer string) string { return regexp.MustCompile(`run-[0-9a-z-]+`).FindString(answer) }
