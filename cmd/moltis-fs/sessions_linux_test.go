package main

import (
	"bufio"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

var sessionCount = flag.Int("sessions", 150, "how many sessions TestSessionsWithoutEnd has on each road; make soak has 100,000 and 1,024 descriptors")

// Sessions one after another, more than there are descriptors, are all served: by JSON-RPC, by MCP over HTTP, and by their name alone over a pair of
// streams. Those that ended leave no descriptor and no journal.
func TestSessionsWithoutEnd(t *testing.T) {
	t.Parallel()
	dir := realDir(t)
	root, data, config := filepath.Join(dir, "work"), filepath.Join(dir, "data"), filepath.Join(dir, "c.toml")
	must(t, os.Mkdir(root, 0o700))
	must(t, os.WriteFile(filepath.Join(root, "f"), []byte("in it\n"), 0o600))
	must(t, os.WriteFile(config, fmt.Appendf(nil, "[tools.fs]\nworkspace_root = %q\nrequire_approval = false\ntrack_reads = true\n", root), 0o600))
	read := fmt.Sprintf(`{"file_path":"%s/f"}`, root)
	few := uint64(100)
	if *sessionCount > 1000 {
		few = 1024
	}
	limited := func(cmd *exec.Cmd) {
		must(t, unix.Prlimit(cmd.Process.Pid, unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: few, Max: few}, nil))
	}
	journals := func(want int) {
		t.Helper()
		if left, err := filepath.Glob(filepath.Join(data, "ledger", "*.jsonl")); err != nil || len(left) != want {
			t.Errorf("%d journals are left, want %d: %v", len(left), want, err)
		}
	}
	s := startServer(t, newToken(t, data, "--principal", "ci", "--write", root), "--config", config, "--data-dir", data)
	limited(s.cmd)
	has := func(cmd *exec.Cmd, road string) {
		t.Helper()
		fds, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", cmd.Process.Pid))
		status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", cmd.Process.Pid))
		if t.Logf("%s: %d descriptors, %s", road, len(fds), regexp.MustCompile(`VmRSS:.*`).Find(status)); err != nil || len(fds) > 60 {
			t.Errorf("%s leaves %d descriptors, %v", road, len(fds), err)
		}
	}
	id := regexp.MustCompile(`s-[A-Z0-9]+`)
	for i := range *sessionCount {
		name := id.FindString(s.ask("session.create", "{}"))
		got := s.ask("capabilities.invoke", fmt.Sprintf(`{"capability":"Read","arguments":%s,"session_id":%q}`, read, name))
		if ended := s.ask("session.end", fmt.Sprintf(`{"session_id":%q}`, name)); !strings.Contains(got, `"success":true`) || !strings.Contains(ended, `"ended":true`) {
			t.Fatalf("session %d: %s, %s", i, got, ended)
		}
	}
	journals(0)
	has(s.cmd, "JSON-RPC")

	send := func(method, session, body string) (*http.Response, string) {
		q, err := http.NewRequest(method, s.url+"/mcp", strings.NewReader(body))
		must(t, err)
		q.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}, "Authorization": {"Bearer " + s.secret}}
		if session != "" {
			q.Header.Set("Mcp-Session-Id", session)
		}
		a, err := http.DefaultClient.Do(q)
		must(t, err)
		defer a.Body.Close()
		b, err := io.ReadAll(a.Body)
		must(t, err)
		return a, string(b)
	}
	const hello = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`
	call := func(i int, meta string) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"Read","arguments":%s%s}}`, i, read, meta)
	}
	for i := range *sessionCount {
		a, _ := send("POST", "", hello)
		name := a.Header.Get("Mcp-Session-Id")
		send("POST", name, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
		_, got := send("POST", name, call(1, ""))
		if a, _ = send("DELETE", name, ""); name == "" || !strings.Contains(got, "in it") || a.StatusCode != http.StatusNoContent {
			t.Fatalf("session %d %q: %s, %s", i, name, got, a.Status)
		}
	}
	journals(0)
	has(s.cmd, "MCP over HTTP")

	cmd := exec.Command(binary(t), "mcp", "--config", config, "--data-dir", data)
	in, err := cmd.StdinPipe()
	must(t, err)
	pipe, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	limited(cmd)
	out := bufio.NewReader(pipe)
	line := func(body string) string {
		_, err := io.WriteString(in, body+"\n")
		must(t, err)
		got, err := out.ReadString('\n')
		must(t, err)
		return got
	}
	line(hello)
	for i := range *sessionCount {
		if got := line(call(i+1, fmt.Sprintf(`,"_meta":{"moltis-fs/session":"s%d"}`, i))); !strings.Contains(got, "in it") {
			t.Fatalf("session %d: %s", i, got)
		}
	}
	has(cmd, "MCP by name")
	must(t, in.Close())
	must(t, cmd.Wait())
	journals(*sessionCount) // each may come again
}
