//go:build unix

package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// running is a moltis-fs that is up: it has answered what ready says.
type running struct {
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *bufio.Reader
	reader io.Closer
	errs   strings.Builder
}

func startUp(t *testing.T, ready string, args ...string) *running {
	t.Helper()
	r := &running{cmd: exec.Command(binary(t), append(args, "--data-dir", filepath.Join(t.TempDir(), "data"))...)}
	withoutTerminal(r.cmd)
	r.cmd.Stderr = &r.errs
	var err error
	if r.in, err = r.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := r.cmd.StdoutPipe()
	r.reader = out
	if err != nil {
		t.Fatal(err)
	}
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.cmd.Process.Kill() })
	if _, err := io.WriteString(r.in, ready+"\n"); err != nil {
		t.Fatal(err)
	}
	r.out = bufio.NewReader(out)
	if line, err := r.out.ReadString('\n'); err != nil || !strings.Contains(line, `"id":1`) {
		t.Fatalf("%q %v %s", line, err, r.errs.String())
	}
	return r
}

const (
	readyMCP   = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`
	readyBatch = `{"id":1,"tool":"checkpoints_list"}`
)

// SIGINT and SIGTERM end what waits for input, without a word.
func TestSignals(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		for _, c := range [][]string{{readyMCP, "mcp"}, {readyBatch, "call", "--batch"}} {
			r := startUp(t, c[0], c[1:]...)
			if err := r.cmd.Process.Signal(sig); err != nil {
				t.Fatal(err)
			}
			if err := r.cmd.Wait(); err != nil || r.errs.Len() > 0 {
				t.Errorf("%v on %v: %v %q", sig, c[1:], err, r.errs.String())
			}
		}
	}
}

// A reader that goes away does not kill the server: it ends by itself.
func TestTheReaderGoesAway(t *testing.T) {
	r := startUp(t, readyMCP, "mcp")
	if err := r.reader.Close(); err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(r.in, `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`+"\n") // it may be gone already
	if err := r.cmd.Wait(); err != nil {
		t.Errorf("%v %q", err, r.errs.String())
	}
}

// Whoever reads no further than he needs, as head does, hears nothing of it; what was to be done is done.
func TestNobodyReadsTheAnswer(t *testing.T) {
	dir := t.TempDir()
	config := filepath.Join(dir, "c.toml")
	if err := os.WriteFile(config, []byte("[tools.fs]\nrequire_approval = false\ncheckpoint_before_mutation = true\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "a")
	for _, c := range []struct {
		args   []string
		status int
	}{
		{[]string{"call", "Write", fmt.Sprintf(`{"file_path":%q,"content":"1"}`, file)}, exitOK},
		{[]string{"checkpoint", "list"}, exitOK}, {[]string{"checkpoint", "list", "--json"}, exitOK}, {[]string{"checkpoint", "export", "--patch"}, exitOK},
		{[]string{"checkpoint", "undo"}, exitOK}, {[]string{"checkpoint", "undo"}, exitRefused}, {[]string{"trash", "list"}, exitOK},
	} {
		cmd := exec.Command(binary(t), append(c.args, "--config", config, "--data-dir", filepath.Join(dir, "data"))...)
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		r.Close()
		var errs strings.Builder
		cmd.Stdout, cmd.Stderr = w, &errs
		_ = cmd.Run()
		w.Close()
		if got := cmd.ProcessState.ExitCode(); got != c.status || errs.Len() > 0 {
			t.Errorf("%v: status %d, and %q", c.args, got, errs.String())
		}
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("the undo was not made")
	}
}
