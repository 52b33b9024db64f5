package main

import (
	"bufio"
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"moltisfs/internal/fleetbox"
)

// A fleetOf has what the machines of a test share: a tree, a database and a bucket.
type fleetOf struct {
	t                  testing.TB
	dir, tree          string
	database, contents string
	fs, fleet          string // more of [tools.fs] and of [tools.fs.fleet]
}

func newFleet(t testing.TB) *fleetOf {
	dir := realDir(t)
	f := &fleetOf{t: t, dir: dir, tree: filepath.Join(dir, "tree"), database: fleetbox.Database(t), contents: fleetbox.Contents(t, nil)}
	must(t, os.Mkdir(f.tree, 0o755))
	return f
}

// A machine has a data directory and a configuration of its own.
type machine struct {
	*fleetOf
	data, config string
}

// machine gives the machine of a name. database is how it reaches the fleet's; "": none is in between. "-": it is in no fleet.
func (f *fleetOf) machine(name, database string) *machine {
	f.t.Helper()
	m := &machine{f, filepath.Join(f.dir, "data-"+name), filepath.Join(f.dir, name+".toml")}
	text := fmt.Sprintf("[tools.fs]\nworkspace_root = %q\nallow_paths = [\"${ROOT}/**\"]\ncheckpoint_before_mutation = true\n%s\n", f.tree, cmp.Or(f.fs, "require_approval = false"))
	if database == "" {
		database = f.database
	}
	if database != "-" {
		text += fmt.Sprintf("[tools.fs.fleet]\ndatabase = %q\ncontents = %q\n%s", database, f.contents, f.fleet)
	}
	must(f.t, os.WriteFile(m.config, []byte(text), 0o600))
	return m
}

func (m *machine) command(args ...string) *exec.Cmd {
	cmd := exec.Command(binary(m.t), args...)
	cmd.Dir = m.tree
	cmd.Env = append(os.Environ(), "HOME="+m.dir, "MOLTIS_CONFIG="+m.config, "MOLTIS_DATA_DIR="+m.data)
	withoutTerminal(cmd)
	return cmd
}

// try runs a command.
func (m *machine) try(args ...string) (status int, out, errs string) {
	m.t.Helper()
	cmd := m.command(args...)
	var o, e bytes.Buffer
	cmd.Stdout, cmd.Stderr = &o, &e
	if err := cmd.Run(); cmd.ProcessState == nil {
		m.t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), o.String(), e.String()
}

// run runs a command that has to succeed, and gives its answer.
func (m *machine) run(args ...string) string {
	m.t.Helper()
	status, out, errs := m.try(args...)
	if status != 0 {
		m.t.Fatalf("%s: status %d: %s%s", strings.Join(args, " "), status, out, errs)
	}
	return out
}

func (f *fleetOf) content(name string) string {
	text, err := os.ReadFile(filepath.Join(f.tree, name))
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// large writes a file that is too large for the catalog, and can't be packed. It begins with "large".
func (f *fleetOf) large(name string) {
	text := []byte("large\n")
	for i := range 20_000 {
		text = fmt.Appendf(text, "%x\n", sha256.Sum256(fmt.Append(nil, name, i)))
	}
	must(f.t, os.WriteFile(filepath.Join(f.tree, name), text, 0o600))
}

// What one machine has made is seen and undone on another.
func TestFleetUndoesElsewhere(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	a, b := f.machine("a", ""), f.machine("b", "")
	a.run("call", "Write", filepath.Join(f.tree, "x"), "content=one\n")
	a.run("call", "Write", filepath.Join(f.tree, "x"), "content=two\n")
	if log := b.run("log"); strings.Count(log, "x") < 2 {
		t.Error(log)
	}
	b.run("undo", "--session", "default", "--yes")
	if got := f.content("x"); got != "one\n" {
		t.Errorf("%q", got)
	}
	a.run("redo", "--yes")
	if got := f.content("x"); got != "two\n" {
		t.Errorf("%q", got)
	}
}

// A store moves into a fleet and out of it, and its history stays what it was.
func TestFleetMove(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	alone, b := f.machine("alone", "-"), f.machine("b", "")
	for i, content := range []string{"one", "two", "three"} {
		alone.run("call", "Write", filepath.Join(f.tree, "x"), "content="+content, "--session", fmt.Sprint("s", i%2), "--turn", fmt.Sprint("turn ", i))
	}
	f.large("x")
	alone.run("call", "Edit", filepath.Join(f.tree, "x"), "old_string=large", "new_string=LARGE")
	alone.run("undo", "--yes")
	id := regexp.MustCompile(`ck-\w+`).FindString(alone.run("log", "--all"))
	alone.run("checkpoint", "pin", id, "--label", "kept")
	all := []string{"log", "--all", "--json", "--limit", "1000"}
	want := alone.run(all...)
	if status, _, errs := b.try("store", "import", alone.data, "--principal", "ann"); status != exitMisuse {
		t.Error(status, errs)
	}
	for range 2 { // the second time nothing is left to be done
		b.run("store", "import", alone.data)
		if got := b.run(all...); got != want {
			t.Errorf("in the fleet:\n%s\nbefore:\n%s", got, want)
		}
	}
	b.run("store", "check", "--data")
	out := f.machine("out", "-")
	out.data = filepath.Join(f.dir, "out")
	if status, _, errs := b.try("store", "backup", f.dir); status != exitMisuse {
		t.Error(status, errs)
	}
	b.run("store", "backup", out.data)
	if got := out.run(all...); got != want {
		t.Errorf("out again:\n%s\nbefore:\n%s", got, want)
	}
	out.run("redo", "--yes")
	if got := f.content("x"); !strings.HasPrefix(got, "LARGE") {
		t.Errorf("%.100q", got)
	}
}

// Without the database changes are refused with the reason, reads go on, and commands say quickly what is so. Nothing tells a secret.
func TestFleetCut(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	wired, wire := fleetbox.Wired(t, f.database)
	a := f.machine("a", wired)
	path := filepath.Join(f.tree, "x")
	a.run("call", "Write", path, "content=one\n")
	session := startMCP(t, a)
	wire.Cut()
	if got := session.call("Write", path, "two\n"); strings.Contains(got, "tester") || !strings.Contains(got, "can't be reached") || f.content("x") != "one\n" {
		t.Error(got)
	}
	if got := session.call("Read", path, ""); !strings.Contains(got, "one") {
		t.Error(got)
	}
	late := startMCP(t, a)
	if got := late.call("Read", path, ""); !strings.Contains(got, "one") {
		t.Error(got)
	}
	if got := late.call("Write", path, "two\n"); !strings.Contains(got, "can't be reached") || f.content("x") != "one\n" {
		t.Error(got)
	}
	for _, line := range []string{"log", "undo --yes", "store stats", "approve", "token list"} {
		begun := time.Now()
		status, out, errs := a.try(strings.Fields(line)...)
		if status != exitBroken || !strings.Contains(errs, "can't be reached") || time.Since(begun) > 6*time.Second {
			t.Errorf("%s: status %d in %v: %s%s", line, status, time.Since(begun), out, errs)
		}
	}
	if out := a.run("status"); !strings.Contains(out, "can't be reached") {
		t.Error(out)
	}
	wire.Mend()
	for i, s := range []*mcpSession{session, late} {
		eventually(t, "it is written again", func() bool { s.call("Write", path, fmt.Sprint(i)); return f.content("x") == fmt.Sprint(i) })
	}
}

// An mcpSession is a client of moltis-fs mcp, whose session is called "default" unless options say otherwise.
type mcpSession struct {
	t    testing.TB
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  *bufio.Reader
	errs *bytes.Buffer
	n    int
}

func startMCP(t testing.TB, m *machine, options ...string) *mcpSession {
	t.Helper()
	s := &mcpSession{t: t, cmd: m.command(append([]string{"mcp", "--session", "default"}, options...)...), errs: &bytes.Buffer{}}
	s.cmd.Stderr = s.errs
	var err error
	s.in, err = s.cmd.StdinPipe()
	must(t, err)
	out, err := s.cmd.StdoutPipe()
	must(t, err)
	s.out = bufio.NewReader(out)
	must(t, s.cmd.Start())
	t.Cleanup(func() { s.cmd.Process.Kill(); s.cmd.Wait() })
	s.ask(readyMCP)
	fmt.Fprintln(s.in, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return s
}

// ask sends a line and gives the answer.
func (s *mcpSession) ask(line string) string {
	s.t.Helper()
	fmt.Fprintln(s.in, line)
	for {
		got, err := s.out.ReadString('\n')
		if err != nil {
			s.t.Fatalf("%v after %s: %s", err, line, s.errs)
		}
		if strings.Contains(got, `"id":`) {
			return got
		}
	}
}

// call calls a tool with the path of a file and, for Write, its content.
func (s *mcpSession) call(tool, path, content string) string {
	s.t.Helper()
	args := map[string]any{"file_path": path}
	if tool == "Write" {
		args["content"] = content
	}
	s.n++
	line, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": s.n, "method": "tools/call", "params": map[string]any{"name": tool, "arguments": args}})
	must(s.t, err)
	return s.ask(string(line))
}

// eventually waits until something holds.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !holds(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("it never holds: %s", what)
		}
	}
}
