//go:build unix

package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The workspace of a session goes to the trash when the session ends. A killed server's workspaces go there when the next one starts, and no other's.
func TestWorkspacesEndWithTheirSessions(t *testing.T) {
	t.Parallel()
	dir := realDir(t)
	homes, conf := filepath.Join(dir, "homes"), filepath.Join(dir, "c.toml")
	text := fmt.Sprintf("[tools.fs]\nallow_paths = [%q]\nrequire_approval = false\n[tools.jettson]\nworkspaces = %q\nper_session = true\n", homes+"/**", homes)
	must(t, errors.Join(os.Mkdir(homes, 0o755), os.WriteFile(conf, []byte(text), 0o600)))
	type server struct {
		*exec.Cmd
		in        io.WriteCloser
		out, errs *bufio.Reader
	}
	start := func(session string) (s server) {
		t.Helper()
		s.Cmd = exec.Command(binary(t), "mcp", "--dialect", "jettson", "--config", conf, "--session", session, "--data-dir", filepath.Join(dir, "data"))
		withoutTerminal(s.Cmd)
		in, err1 := s.StdinPipe()
		out, err2 := s.StdoutPipe()
		errs, err3 := s.StderrPipe()
		must(t, errors.Join(err1, err2, err3, s.Start()))
		t.Cleanup(func() { _ = s.Process.Kill() })
		s.in, s.out, s.errs = in, bufio.NewReader(out), bufio.NewReader(errs)
		return s
	}
	send := func(s server, line string) string {
		t.Helper()
		_, err := io.WriteString(s.in, line+"\n")
		answer, rerr := s.out.ReadString('\n')
		must(t, errors.Join(err, rerr))
		return answer
	}
	call := func(s server, tool, args, want string) {
		t.Helper()
		if answer := send(s, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"`+tool+`","arguments":`+args+`}}`); !strings.Contains(answer, want) {
			t.Errorf("%s %s: %q is not in %s", tool, args, want, answer)
		}
	}
	there := func(what string, want ...string) {
		t.Helper()
		found, err := os.ReadDir(homes)
		var names []string
		for _, e := range found {
			names = append(names, e.Name())
		}
		if err != nil || strings.Join(names, " ") != strings.Join(want, " ") {
			t.Errorf("%s: the workspaces are %q, want %q, %v", what, names, want, err)
		}
	}
	write := func(s server) {
		t.Helper()
		send(s, readyMCP)
		call(s, "jettson_files_write", `{"path":"f","content":"x"}`, "bytes_written")
	}
	one, other, killed := start("one"), start("other"), start("killed")
	for _, s := range []server{one, other, killed} {
		write(s)
	}
	there("written", "local%killed", "local%one", "local%other")
	must(t, killed.Process.Kill())
	_ = killed.Wait() // it was killed
	there("one was killed", "local%killed", "local%one", "local%other")
	next := start("next")
	send(next, readyMCP)
	there("the next one is there", "local%one", "local%other")
	for _, s := range []server{one, next} {
		s.in.Close()
		_, _ = io.Copy(io.Discard, s.errs)
		if err := s.Wait(); err != nil {
			t.Error(err)
		}
	}
	there("its session ended", "local%other")
}
