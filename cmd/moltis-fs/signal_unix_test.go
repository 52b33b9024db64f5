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
	t.Parallel()
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
	t.Parallel()
	r := startUp(t, readyMCP, "mcp")
	if err := r.reader.Close(); err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(r.in, `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`+"\n") // it may be gone already
	if err := r.cmd.Wait(); err != nil {
		t.Errorf("%v %q", err, r.errs.String())
	}
}

// withoutAReader runs the program with nobody to read its answer, or with out, and gives its status and what it said.
func withoutAReader(t *testing.T, out *os.File, stdin string, args ...string) (status int, errs string) {
	t.Helper()
	if out == nil {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
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

// Whoever reads no further than he needs, as head does, hears nothing of it; what was to be done is done, and the exit status is that of what came of it.
func TestNobodyReadsTheAnswer(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	config := filepath.Join(dir, "c.toml")
	file, bad, moltis := filepath.Join(dir, "a"), filepath.Join(dir, "bad.toml"), filepath.Join(dir, "moltis")
	err := os.WriteFile(config, []byte("[tools.fs]\nrequire_approval = false\ncheckpoint_before_mutation = true\n"), 0o600)
	err = errors.Join(err, os.WriteFile(bad, []byte("[tools.fs]\nrequire = 1\n"), 0o600), os.MkdirAll(filepath.Join(moltis, "00000000000000000000000000000003"), 0o700))
	noise := make([]byte, 1<<20) // a content that becomes a file of the store
	rand.NewChaCha8([32]byte{1}).Read(noise)
	if err := errors.Join(err, os.WriteFile(filepath.Join(dir, "b"), fmt.Appendf(nil, "%x", noise), 0o600)); err != nil {
		t.Fatal(err)
	}
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
		{[]string{"checkpoint", "list"}, exitOK}, {[]string{"checkpoint", "list", "--json"}, exitOK}, {[]string{"checkpoint", "export", "--patch"}, exitOK},
		{[]string{"checkpoint", "undo"}, exitOK}, {[]string{"checkpoint", "undo"}, exitRefused}, {[]string{"trash", "list"}, exitOK},
		{[]string{"call", "Read", missing}, exitRefused}, {[]string{"checkpoint", "show", "ck-ZZZ", "--json"}, exitMisuse},
		{[]string{"checkpoint", "import-moltis", moltis}, exitRefused}, {[]string{"checkpoint", "import-moltis", moltis, "--json"}, exitRefused},
		{[]string{"checkpoint", "check", "--data"}, exitOK}, {[]string{"call", "Write", fmt.Sprintf(`{"file_path":%q,"content":"2"}`, filepath.Join(dir, "b"))}, exitOK},
	} {
		run(c.status, "", append(c.args, in...)...)
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("the undo was not made")
	}
	run(exitRefused, `{"id":1,"tool":"Read","args":`+missing+"}\n", append([]string{"call", "--batch"}, in...)...)
	run(exitMisuse, "", "checkpoint", "nonsense", "--json")
	run(exitRefused, "", "config", "check", bad)
	run(exitRefused, "", "config", "check", "--json", bad)
	run(exitOK, "", "config", "check", config)
	run(exitOK, "", "version")
	if err := os.RemoveAll(filepath.Join(data, "checkpoints", "blobs")); err != nil {
		t.Fatal(err)
	}
	run(exitRefused, "", append([]string{"checkpoint", "check", "--data"}, in...)...)
	run(exitRefused, "", append([]string{"checkpoint", "check", "--data", "--json"}, in...)...)
	run(exitRefused, "", append([]string{"checkpoint", "check", "--repair"}, in...)...)
}

// A repository that is whole stays, whether or not anybody can be told of it.
func TestTheRepositoryStaysWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("SKIPPED ORACLE: no git")
	}
	dir := t.TempDir()
	config := filepath.Join(dir, "c.toml")
	if err := os.WriteFile(config, []byte("[tools.fs]\nrequire_approval = false\ncheckpoint_before_mutation = true\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	in := []string{"--config", config, "--data-dir", filepath.Join(dir, "data")}
	if status, errs := withoutAReader(t, nil, "", append([]string{"call", "Write", fmt.Sprintf(`{"file_path":%q,"content":"1"}`, filepath.Join(dir, "a"))}, in...)...); status != exitOK {
		t.Fatal(status, errs)
	}
	export := func(out *os.File, name string, want int) {
		t.Helper()
		bare := filepath.Join(dir, name)
		if status, errs := withoutAReader(t, out, "", append([]string{"checkpoint", "export", "--git", bare}, in...)...); status != want {
			t.Errorf("%s: status %d, and %q", name, status, errs)
		}
		gitIn(t, dir, nil, "-C", bare, "fsck", "--strict")
		gitIn(t, dir, nil, "-C", bare, "rev-parse", "--verify", "checkpoints~1")
		if left, _ := filepath.Glob(filepath.Join(bare, ".export-*")); len(left) > 0 {
			t.Errorf("%s: %v", name, left)
		}
	}
	export(nil, "closed.git", exitOK)
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("SKIPPED: no device that is full: ", err)
	}
	defer full.Close()
	export(full, "full.git", exitBroken)
}

// An export that fails takes away only what it made, not what others put into its directory meanwhile.
func TestAFailedExportLeavesWhatOthersMade(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "bare.git")
	theirs := filepath.Join(dir, "HEAD")
	git := filepath.Join(t.TempDir(), "git")
	t.Setenv("PATH", filepath.Dir(git)+":"+os.Getenv("PATH"))
	x := func(script string) error {
		if err := os.WriteFile(git, []byte("#!/bin/sh\n"+script), 0o700); err != nil {
			t.Fatal(err)
		}
		in := &invocation{streams: streams{nil, io.Discard, io.Discard, os.Getenv}}
		return (&gitExport{ctx: t.Context(), root: "/"}).repository(nil, dir, in)
	}
	if err := x("exit 1"); err == nil {
		t.Error("no error")
	}
	if _, err := os.Stat(filepath.Dir(dir)); err == nil {
		t.Error("what it made on the way is there")
	}
	// Three ways on: it fails at the beginning, at the end, and where its files are to go to their places.
	for _, script := range []string{
		`echo theirs > "` + theirs + `"; exit 1`,
		`echo theirs > "` + theirs + `"; case "$1" in init) ;; *) exit 1 ;; esac`,
		`cat > /dev/null; case "$1" in init) ;; *) echo theirs > "` + theirs + `"; echo ours > "$2/A"; echo ours > "$2/HEAD" ;; esac`,
	} {
		if err := x(script); err == nil {
			t.Error("no error")
		}
		entries, err := os.ReadDir(dir)
		if got, _ := os.ReadFile(theirs); err != nil || len(entries) != 1 || string(got) != "theirs\n" {
			t.Errorf("%s: %v %v %q", script, entries, err, got)
		}
		if err := os.RemoveAll(filepath.Dir(dir)); err != nil {
			t.Fatal(err)
		}
	}
}
