//go:build unix

package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// running is an MCP server that is up: it has answered the initialization.
type running struct {
	t      *testing.T
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *bufio.Reader
	reader io.Closer
	said   *bufio.Reader // on standard error
}

// startUp runs moltis-fs mcp with args, which name the data directory.
func startUp(t *testing.T, args ...string) *running {
	t.Helper()
	r := &running{t: t, cmd: exec.Command(binary(t), append([]string{"mcp"}, args...)...)}
	withoutTerminal(r.cmd)
	in, err := r.cmd.StdinPipe()
	must(t, err)
	out, err := r.cmd.StdoutPipe()
	must(t, err)
	said, err := r.cmd.StderrPipe()
	must(t, err)
	must(t, r.cmd.Start())
	t.Cleanup(func() { _ = r.cmd.Process.Kill() })
	r.in, r.reader, r.out, r.said = in, out, bufio.NewReader(out), bufio.NewReader(said)
	r.send(readyMCP)
	return r
}

// send sends a line and gives the answer.
func (r *running) send(line string) string {
	r.t.Helper()
	_, err := io.WriteString(r.in, line+"\n")
	answer, rerr := r.out.ReadString('\n')
	must(r.t, errors.Join(err, rerr))
	return answer
}

func (r *running) call(tool, args string) string {
	r.t.Helper()
	return r.send(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"` + tool + `","arguments":` + args + `}}`)
}

// wait waits for the end, and gives what was said until then.
func (r *running) wait() (said string, err error) {
	all, err := io.ReadAll(r.said)
	return string(all), errors.Join(err, r.cmd.Wait())
}

// end closes the input and waits for the end.
func (r *running) end() {
	r.t.Helper()
	r.in.Close()
	if said, err := r.wait(); err != nil {
		r.t.Errorf("%v: %s", err, said)
	}
}

// A signal to stop ends a server that waits for input, without a word after that of the start.
func TestSignals(t *testing.T) {
	t.Parallel()
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		r := startUp(t, "--data-dir", filepath.Join(t.TempDir(), "data"))
		must(t, r.cmd.Process.Signal(sig))
		if said, err := r.wait(); err != nil || strings.Count(said, "\n") != 1 || !strings.HasPrefix(said, "moltis-fs: open is ") {
			t.Errorf("%v: %v %q", sig, err, said)
		}
	}
}

// A reader that goes away does not kill the server: it ends by itself.
func TestTheReaderGoesAway(t *testing.T) {
	t.Parallel()
	r := startUp(t, "--data-dir", filepath.Join(t.TempDir(), "data"))
	must(t, r.reader.Close())
	// One question may still be answered: a process that another test is starting holds the reader's
	// end of the pipe until it is executed.
	go func() {
		for id := 2; ; id++ {
			_, err := fmt.Fprintf(r.in, `{"jsonrpc":"2.0","id":%d,"method":"tools/list"}`+"\n", id)
			if err != nil {
				return // it is gone
			}
			time.Sleep(10 * time.Millisecond) // a few questions are enough
		}
	}()
	if said, err := r.wait(); err != nil {
		t.Errorf("%v %q", err, said)
	}
}

// A reader that stops early, as head does, is told nothing; the command does its work and ends with its own exit status.
func TestNobodyReadsTheAnswer(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	config := filepath.Join(dir, "c.toml")
	file, goes, bad, moltis := filepath.Join(dir, "a"), filepath.Join(dir, "goes"), filepath.Join(dir, "bad.toml"), filepath.Join(dir, "moltis")
	err := os.WriteFile(config, []byte("[tools.fs]\nrequire_approval = false\ncheckpoint_before_mutation = true\n"), 0o600)
	err = errors.Join(err, os.WriteFile(goes, nil, 0o600), os.WriteFile(bad, []byte("[tools.fs]\nrequire = 1\n"), 0o600), os.MkdirAll(filepath.Join(moltis, "00000000000000000000000000000003"), 0o700))
	noise := make([]byte, 1<<20) // a content that becomes a file of the store
	rand.NewChaCha8([32]byte{1}).Read(noise)
	must(t, errors.Join(err, os.WriteFile(filepath.Join(dir, "b"), fmt.Appendf(nil, "%x", noise), 0o600)))
	missing := fmt.Sprintf(`{"file_path":%q}`, filepath.Join(dir, "missing"))
	data := filepath.Join(dir, "data")
	in := []string{"--config", config, "--data-dir", data}
	run := func(status int, args ...string) {
		t.Helper()
		r, w, err := os.Pipe()
		must(t, err)
		defer w.Close()
		r.Close()
		cmd := exec.Command(binary(t), args...)
		var errs strings.Builder
		cmd.Stdout, cmd.Stderr = w, &errs
		_ = cmd.Run()
		if got := cmd.ProcessState.ExitCode(); got != status || errs.Len() > 0 {
			t.Errorf("%v: status %d, and %q", args, got, &errs)
		}
	}
	for _, c := range []struct {
		args   []string
		status int
	}{
		{[]string{"call", "Write", fmt.Sprintf(`{"file_path":%q,"content":"1"}`, file)}, exitOK},
		{[]string{"checkpoint", "list"}, exitOK}, {[]string{"checkpoint", "list", "--json"}, exitOK}, {[]string{"store", "export", "--root", "/"}, exitOK},
		{[]string{"undo"}, exitOK}, {[]string{"undo", "--json"}, exitRefused},
		{[]string{"call", "--dialect", "capability", "--yes", "filesystem.delete", fmt.Sprintf(`{"path":%q}`, goes)}, exitOK}, {[]string{"trash", "list"}, exitOK},
		{[]string{"call", "Read", missing}, exitRefused}, {[]string{"checkpoint", "show", "ck-UUU", "--json"}, exitMisuse},
		{[]string{"store", "import", moltis}, exitRefused}, {[]string{"store", "import", moltis, "--json"}, exitRefused},
		{[]string{"store", "check", "--data"}, exitOK}, {[]string{"call", "Write", fmt.Sprintf(`{"file_path":%q,"content":"2"}`, filepath.Join(dir, "b"))}, exitOK},
	} {
		run(c.status, append(c.args, in...)...)
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("the undo was not made")
	}
	run(exitMisuse, "checkpoint", "nonsense", "--json")
	run(exitRefused, "config", "check", bad)
	run(exitRefused, "config", "check", "--json", bad)
	run(exitOK, "config", "check", config)
	run(exitOK, "version")
	must(t, os.RemoveAll(filepath.Join(data, "checkpoints", "blobs")))
	run(exitRefused, append([]string{"store", "check", "--data"}, in...)...)
	run(exitRefused, append([]string{"store", "check", "--data", "--json"}, in...)...)
}
