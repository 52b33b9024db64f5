//go:build unix

package main

import (
	"bufio"
	"io"
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
