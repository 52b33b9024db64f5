//go:build unix

package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"moltisfs/internal/testdir"
)

// wire is one side of the protocol, as the test plays it: it waits for the lines that it expects.
type wire struct {
	t     *testing.T
	lines chan map[string]any
	out   io.Writer
	serve func(m map[string]any) (result any, ours bool) // what is answered at once
	ended func()
}

func newWire(t *testing.T, in io.Reader, out io.Writer, serve func(map[string]any) (any, bool)) *wire {
	w := &wire{t, make(chan map[string]any, 100), out, serve, func() {}}
	go func() {
		defer close(w.lines)
		defer func() { w.ended() }()
		for r := bufio.NewReader(in); ; {
			line, err := r.ReadBytes('\n')
			if err != nil {
				return
			}
			var m map[string]any
			if json.Unmarshal(line, &m) != nil {
				t.Errorf("no message: %s", line)
			} else if result, ours := w.serve(m); ours {
				w.send(map[string]any{"jsonrpc": "2.0", "id": m["id"], "result": result})
			} else {
				w.lines <- m
			}
		}
	}()
	return w
}

func (w *wire) send(m map[string]any) {
	b, err := json.Marshal(m)
	if err == nil {
		_, err = w.out.Write(append(b, '\n'))
	}
	if err != nil {
		w.t.Error(err)
	}
}

func (w *wire) next() map[string]any {
	w.t.Helper()
	return w.nextWithin(20 * time.Second)
}

// nextWithin is nil where the other side has ended.
func (w *wire) nextWithin(most time.Duration) map[string]any {
	w.t.Helper()
	select {
	case m := <-w.lines:
		return m
	case <-time.After(most):
		w.t.Fatal("nothing came")
	}
	return nil
}

// ask is the result of a request to the other side of the proxy.
func (w *wire) ask(method string, params map[string]any) map[string]any {
	w.t.Helper()
	w.send(map[string]any{"jsonrpc": "2.0", "id": method, "method": method, "params": params})
	for {
		m := w.next()
		if m == nil {
			w.t.Fatal("it has ended")
		}
		if m["id"] == method {
			if m["error"] != nil {
				w.t.Fatalf("%s: %v", method, m["error"])
			}
			result, _ := m["result"].(map[string]any)
			return result
		}
	}
}

func nothing(map[string]any) (any, bool) { return nil, false }

// between is a proxy that runs, with the test at both its ends.
type between struct {
	cmd           *exec.Cmd
	editor, agent *wire
	close         func() // the editor's end
	mu            sync.Mutex
	buffers       map[string]string
	asked         []map[string]any // questions, which are answered with yes
}

// acpBetween starts the program between the test as an editor and the test as an agent, whose process passes its streams on. The
// editor has the file methods if files is set.
func acpBetween(t *testing.T, files bool, options ...string) *between {
	t.Helper()
	b := &between{buffers: map[string]string{}}
	dir, err := os.MkdirTemp("", "acp") // the names of sockets are short
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	l, err := net.Listen("unix", filepath.Join(dir, "s"))
	must(t, err)
	args := append([]string{"acp"}, options...)
	var in io.Closer
	b.cmd, b.editor, in = startWire(t, b.serve, append(args, "--", binary(t), "acp-tools", l.Addr().String(), "agent")...)
	c, err := l.Accept()
	must(t, err)
	r := bufio.NewReader(c)
	if _, err := r.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	b.agent = newWire(t, r, c, nothing)
	b.agent.ended = func() { _ = c.Close() }
	b.close = func() { _ = in.Close() }
	b.editor.send(map[string]any{"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": map[string]any{
		"clientCapabilities": map[string]any{"fs": map[string]any{"readTextFile": files, "writeTextFile": files}}}})
	b.agent.send(map[string]any{"jsonrpc": "2.0", "id": b.agent.next()["id"], "result": map[string]any{}})
	b.editor.next()
	return b
}

// startWire starts the program, with the test at its standard input and output. serve is as in newWire.
func startWire(t *testing.T, serve func(map[string]any) (any, bool), args ...string) (*exec.Cmd, *wire, io.Closer) {
	t.Helper()
	cmd := exec.Command(binary(t), args...)
	in, err := cmd.StdinPipe()
	must(t, err)
	out, err := cmd.StdoutPipe()
	must(t, err)
	var said strings.Builder
	cmd.Stderr = &said
	must(t, cmd.Start())
	t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it may have been waited for
		if t.Failed() {
			t.Logf("%v: %s", args[0], said.String())
		}
	})
	return cmd, newWire(t, out, in, serve), in
}

// serve is an editor that holds all texts.
func (b *between) serve(m map[string]any) (any, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	params, _ := m["params"].(map[string]any)
	path, _ := params["path"].(string)
	switch m["method"] {
	case "fs/read_text_file":
		return map[string]any{"content": b.buffers[path]}, true
	case "fs/write_text_file":
		b.buffers[path] = params["content"].(string)
		return nil, true
	case "session/request_permission":
		b.asked = append(b.asked, params)
		return map[string]any{"outcome": map[string]any{"outcome": "selected", "optionId": "once"}}, true
	}
	return nil, false
}

func (b *between) holds(path string) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffers[path]
}

// Changes of the editor's text, by the protocol and by our tools, have one history, and are undone in the editor.
func TestACPUndoInTheEditor(t *testing.T) {
	t.Parallel()
	root, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	dir, err := os.MkdirTemp("", "acp")
	must(t, err)
	defer os.RemoveAll(dir)
	config, file := filepath.Join(dir, "c.toml"), filepath.Join(root, "a.txt")
	for name, text := range map[string]string{file: "disk\n", config: "[tools.fs]\ncheckpoint_before_mutation = true\n"} {
		must(t, os.WriteFile(name, []byte(text), 0o600))
	}
	b := acpBetween(t, true, "--root", root, "--config", config, "--data-dir", filepath.Join(dir, "data"), "--with-mcp")
	b.buffers[file] = "one\ntwo\n"
	b.editor.send(map[string]any{"jsonrpc": "2.0", "id": 1, "method": "session/new", "params": map[string]any{"cwd": root, "mcpServers": []any{}}})
	opened := b.agent.next()
	server := opened["params"].(map[string]any)["mcpServers"].([]any)[0].(map[string]any)
	b.agent.send(map[string]any{"jsonrpc": "2.0", "id": opened["id"], "result": map[string]any{"sessionId": "s"}})
	b.agent.ask("fs/write_text_file", map[string]any{"sessionId": "s", "path": file, "content": "one\n2\n"})

	undo := exec.Command(binary(t), "undo", "--dry-run", "--root", root, "--config", config, "--data-dir", filepath.Join(dir, "data"))
	if said, err := undo.CombinedOutput(); err == nil || !strings.Contains(string(said), "Text that an editor has not saved is not seen here") {
		t.Errorf("the command line says %s, %v", said, err)
	}

	var args []string
	for _, a := range server["args"].([]any) {
		args = append(args, a.(string))
	}
	tools, mcp, _ := startWire(t, nothing, args...) // of this program
	mcp.ask("initialize", map[string]any{"protocolVersion": "2025-06-18", "capabilities": map[string]any{}, "clientInfo": map[string]any{"name": "t", "version": "1"}})
	mcp.send(map[string]any{"jsonrpc": "2.0", "method": "notifications/initialized"})
	call := func(tool string, args map[string]any) string {
		t.Helper()
		r := mcp.ask("tools/call", map[string]any{"name": tool, "arguments": args})
		if r["isError"] == true {
			t.Errorf("%s: %v", tool, r)
		}
		return fmt.Sprint(r["content"])
	}
	if got := call("Read", map[string]any{"file_path": file}); !strings.Contains(got, "2") || strings.Contains(got, "→disk") || !strings.Contains(got, "unsaved text") {
		t.Errorf("read %s", got)
	}
	call("Edit", map[string]any{"file_path": file, "old_string": "one", "new_string": "1"})
	if got := b.holds(file); got != "1\n2\n" {
		t.Errorf("the editor holds %q", got)
	}
	ids := regexp.MustCompile(`ck-\w+`).FindAllString(call("checkpoints_list", map[string]any{}), -1) // the newest first
	for _, id := range slices.Compact(ids) {
		call("checkpoint_restore", map[string]any{"id": id})
	}
	if got := b.holds(file); got != "one\ntwo\n" {
		t.Errorf("undone, the editor holds %q", got)
	}
	if got, err := os.ReadFile(file); err != nil || string(got) != "disk\n" {
		t.Errorf("the disk has %q, %v", got, err)
	}
	if len(b.asked) != 4 {
		t.Errorf("the user was asked %d times", len(b.asked))
	}
	b.close()
	if err := b.cmd.Wait(); err != nil {
		t.Error(err)
	}
	if m, open := <-b.agent.lines; open {
		t.Errorf("the agent heard %v", m)
	}
	_ = tools.Wait() // its server has ended
}

// At SIGHUP the configuration is read again, and agent and editor go on.
func TestACPReload(t *testing.T) {
	t.Parallel()
	root, dir := t.TempDir(), t.TempDir()
	file, config := laid(t, filepath.Join(root, "a.txt"), "one\n"), laid(t, filepath.Join(dir, "c.toml"), "")
	b := acpBetween(t, true, "--root", root, "--config", config, "--data-dir", filepath.Join(dir, "data"))
	read := map[string]any{"sessionId": "s", "path": file}
	b.agent.ask("fs/read_text_file", read)
	laid(t, config, fmt.Sprintf("[tools.fs]\ndeny_paths = [%q]\n", file))
	must(t, b.cmd.Process.Signal(syscall.SIGHUP))
	testdir.Until(t, "a refusal of what is denied", func() bool {
		b.agent.send(map[string]any{"jsonrpc": "2.0", "id": 1, "method": "fs/read_text_file", "params": read})
		return strings.Contains(fmt.Sprint(b.agent.next()["error"]), "path_denied")
	})
	b.close()
	if err := b.cmd.Wait(); err != nil {
		t.Error(err)
	}
}

// A signal ends both, although the editor takes nothing.
func TestACPEndsBesideADeafEditor(t *testing.T) {
	t.Parallel()
	out, full, err := os.Pipe()
	must(t, err)
	defer out.Close()
	// by then the pipe is full: nobody can tell when it is
	script := `(sleep 0.5; kill -TERM $PPID) & while :; do echo '{"jsonrpc":"2.0","method":"x"}'; done`
	cmd := exec.Command(binary(t), "acp", "--data-dir", filepath.Join(t.TempDir(), "data"), "--", "sh", "-c", script)
	cmd.Dir, cmd.Stdout = t.TempDir(), full
	in, err := cmd.StdinPipe()
	must(t, err)
	defer in.Close()
	_ = cmd.Run()
	if got := cmd.ProcessState.ExitCode(); got != 143 {
		t.Errorf("status %d", got)
	}
}

// A killed proxy takes the agent and its programs with it, also where they listen to nothing. A parent that
// does not look after them, as control, leaves them.
func TestACPKilled(t *testing.T) {
	t.Parallel()
	deaf := `trap '' HUP TERM; (echo up >&2; while :; do sleep 60; done) & while :; do sleep 60; done`
	killed := func(args ...string) (held *os.File) {
		t.Helper()
		r, w, err := os.Pipe()
		must(t, err)
		t.Cleanup(func() { _ = r.Close() })
		cmd := exec.Command(args[0], args[1:]...)
		cmd.Dir, cmd.Stderr, cmd.SysProcAttr = t.TempDir(), w, &syscall.SysProcAttr{Setpgid: true}
		in, err := cmd.StdinPipe()
		if err == nil {
			err = cmd.Start()
		}
		must(t, err)
		defer in.Close()
		_ = w.Close()
		t.Cleanup(func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })
		for lines, agent := bufio.NewReader(r), 0; ; {
			line, err := lines.ReadString('\n')
			must(t, err)
			if n, _ := fmt.Sscanf(line, "agent %d", &agent); n == 1 {
				t.Cleanup(func() { _ = syscall.Kill(-agent, syscall.SIGKILL) })
			} else if line == "up\n" {
				break
			}
		}
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		return r
	}
	script := "echo agent $$ >&2; " + deaf
	left := killed("sh", "-c", `sh -c "$0" & wait`, script)
	held := killed(binary(t), "acp", "--data-dir", filepath.Join(t.TempDir(), "data"), "--", "sh", "-c", script)
	for _, c := range []struct {
		r    *os.File
		most time.Duration
		want error
	}{{held, time.Minute, nil}, {left, 100 * time.Millisecond, os.ErrDeadlineExceeded}} {
		must(t, c.r.SetReadDeadline(time.Now().Add(c.most)))
		if _, err := io.Copy(io.Discard, c.r); !errors.Is(err, c.want) { // it ends when nobody holds it
			t.Errorf("%v, want %v", err, c.want)
		}
	}
}

// TestUnheld: the start of acp says what it does not hold of an agent, and of one that is known what that means.
func TestUnheld(t *testing.T) {
	t.Parallel()
	for agent, want := range map[string]string{"/usr/bin/my-agent": "opens by itself", "/opt/copilot": "nothing is guarded here", "opencode.exe": "--with-mcp",
		"gemini": "to read", "copilot-not": "opens by itself"} {
		if got := unheld(agent); !strings.HasSuffix(got, want) && !strings.Contains(got, want+",") {
			t.Errorf("%s: %s", agent, got)
		}
	}
	cmd := exec.Command(binary(t), "acp", "--data-dir", t.TempDir(), "--", "true")
	if out, _ := cmd.CombinedOutput(); !strings.Contains(string(out), "not held by this: files that the agent opens by itself\n") {
		t.Errorf("%s", out)
	}
}

// TestMixingClients: init gives clients that mix tools up a prefix, and no others.
func TestMixingClients(t *testing.T) {
	t.Parallel()
	for _, c := range clients() {
		if has := strings.Contains(c.text("/bin/moltis-fs", "/p"), "files_"); has != slices.Contains([]string{"continue", "kiro", "kimi-cli"}, c.name) {
			t.Errorf("%s: %s", c.name, c.text("/bin/moltis-fs", "/p"))
		}
	}
}
