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
	must(t, err)
	must(t, r.cmd.Start())
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
	readyMCP = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`
)

// A signal to stop ends a server that waits for input, without a word after that of the start.
func TestSignals(t *testing.T) {
	t.Parallel()
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		r := startUp(t, readyMCP, "mcp")
		must(t, r.cmd.Process.Signal(sig))
		if err := r.cmd.Wait(); err != nil || strings.Count(r.errs.String(), "\n") != 1 ||
			!strings.HasPrefix(r.errs.String(), "moltis-fs: open is ") {
			t.Errorf("%v: %v %q", sig, err, r.errs.String())
		}
	}
}

// A reader that goes away does not kill the server: it ends by itself.
func TestTheReaderGoesAway(t *testing.T) {
	t.Parallel()
	r := startUp(t, readyMCP, "mcp")
	must(t, r.reader.Close())
	// One question may still be answered: a process that another test is starting holds the reader's
	// end of the pipe until it is executed.
	go func() {
		for id := 2; ; id++ {
			_, err := fmt.Fprintf(r.in, `{"jsonrpc":"2.0","id":%d,"method":"tools/list"}`+"\n", id)
			if err != nil {
				return // it is gone
			}
			time.Sleep(10 * time.Millisecond)
		}
	}()
	if err := r.cmd.Wait(); err != nil {
		t.Errorf("%v %q", err, r.errs.String())
	}
}

// withoutAReader runs the program with nobody to read its answer, or with out, and gives its status and what it said.
func withoutAReader(t *testing.T, out *os.File, stdin string, args ...string) (status int, errs string) {
	t.Helper()
	if out == nil {
		r, w, err := os.Pipe()
		must(t, err)
		r.Close()
		defer w.Close()
		out = w
	}
	cmd := exec.Command(binary(t), args...)
	var b strings.Builder
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), out, &b
	_ = cmd.Run()
	return cmd.ProcessState.ExitCode(), b.String()
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
	run := func(status int, stdin string, args ...string) {
		t.Helper()
		if got, errs := withoutAReader(t, nil, stdin, args...); got != status || errs != "" {
			t.Errorf("%v: status %d, and %q", args, got, errs)
		}
	}
	for _, c := range []struct {
		args   []string
		status int
	}{
		{[]string{"call", "Write", fmt.Sprintf(`{"file_path":%q,"content":"1"}`, file)}, exitOK},
		{[]string{"checkpoint", "list"}, exitOK}, {[]string{"checkpoint", "list", "--json"}, exitOK}, {[]string{"checkpoint", "export", "--root", "/"}, exitOK},
		{[]string{"checkpoint", "undo"}, exitOK}, {[]string{"checkpoint", "undo", "--json"}, exitRefused},
		{[]string{"call", "--dialect", "capability", "--yes", "filesystem.delete", fmt.Sprintf(`{"path":%q}`, goes)}, exitOK}, {[]string{"trash", "list"}, exitOK},
		{[]string{"call", "Read", missing}, exitRefused}, {[]string{"checkpoint", "show", "ck-UUU", "--json"}, exitMisuse},
		{[]string{"checkpoint", "import-moltis", moltis}, exitRefused}, {[]string{"checkpoint", "import-moltis", moltis, "--json"}, exitRefused},
		{[]string{"checkpoint", "check", "--data"}, exitOK}, {[]string{"call", "Write", fmt.Sprintf(`{"file_path":%q,"content":"2"}`, filepath.Join(dir, "b"))}, exitOK},
	} {
		run(c.status, "", append(c.args, in...)...)
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("the undo was not made")
	}
	run(exitMisuse, "", "checkpoint", "nonsense", "--json")
	run(exitRefused, "", "config", "check", bad)
	run(exitRefused, "", "config", "check", "--json", bad)
	run(exitOK, "", "config", "check", config)
	run(exitOK, "", "version")
	must(t, os.RemoveAll(filepath.Join(data, "checkpoints", "blobs")))
	run(exitRefused, "", append([]string{"checkpoint", "check", "--data"}, in...)...)
	run(exitRefused, "", append([]string{"checkpoint", "check", "--data", "--json"}, in...)...)
}
