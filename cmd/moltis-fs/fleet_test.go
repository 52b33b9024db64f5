package main

import (
	"bufio"
	"bytes"
	"cmp"
	"crypto/sha256"
	"database/sql"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"moltisfs/checkpoint"
	"moltisfs/checkpoint/blob"
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
	env          []string
}

// machine gives the machine of a name. database is how it reaches the fleet's; "": none is in between. "-": it is in no fleet.
func (f *fleetOf) machine(name, database string) *machine {
	f.t.Helper()
	m := &machine{fleetOf: f, data: filepath.Join(f.dir, "data-"+name), config: filepath.Join(f.dir, name+".toml")}
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
	cmd.Env = append(cmd.Env, m.env...)
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
	fleet, err := checkpoint.Open("", checkpoint.Options{Database: f.database, Blobs: &blob.Files{Dir: t.TempDir()}})
	must(t, err)
	_, err = fleet.Save(t.Context(), checkpoint.Op{Tool: "Write", Kind: checkpoint.KindWrite, Session: "s1", Opening: checkpoint.Opening{Tag: "under way"}})
	must(t, errors.Join(err, fleet.Close()))
	if status, _, errs := b.try("store", "backup", filepath.Join(f.dir, "more")); status != exitRefused || !strings.Contains(errs, "1 change stays behind") {
		t.Error(status, errs)
	}
}

// Without the database changes are refused with the reason, reads go on, and commands say quickly what is so. Nothing tells a secret.
func TestFleetCut(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.fs = "require_approval = false\ntrack_reads = true"
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
	if status, out, errs := a.try("audit", "sessions", "--json"); status != 0 || !strings.Contains(out, `"default"`) || !strings.Contains(out, `"partial": true`) || !strings.Contains(errs, "can't be reached") {
		t.Error(status, out, errs)
	}
	if status, out, _ := a.try("audit", "verify"); status != exitBroken || strings.Count(out, "the chain is whole") != 2 || strings.Count(out, "were not compared") != 2 {
		t.Error(status, out)
	}
	if status, out, _ := a.try("audit", "verify", "--json"); status != exitBroken || !strings.Contains(out, `"ok": false`) || !strings.Contains(out, `"not_compared"`) {
		t.Error(status, out)
	}
	for _, line := range []string{"log", "undo --yes", "store stats", "approve", "token list", "audit verify"} {
		begun := time.Now()
		status, out, errs := a.try(strings.Fields(line)...)
		if status != exitBroken || !strings.Contains(errs, "can't be reached") || time.Since(begun) > 30*time.Second { // it takes no second, but for a busy machine
			t.Errorf("%s: status %d in %v: %s%s", line, status, time.Since(begun), out, errs)
		}
	}
	if out := a.run("status"); !strings.Contains(out, "can't be reached") {
		t.Error(out)
	}
	if status, out, errs := a.try("doctor"); status != exitRefused || !strings.Contains(out, "can't be reached") {
		t.Errorf("doctor: status %d: %s%s", status, out, errs)
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
	errs *locked
	n    int
}

// locked is what a program has written so far.
type locked struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *locked) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (s *mcpSession) said() string {
	s.errs.mu.Lock()
	defer s.errs.mu.Unlock()
	return s.errs.text.String()
}

func startMCP(t testing.TB, m *machine, options ...string) *mcpSession {
	t.Helper()
	s := &mcpSession{t: t, cmd: m.command(append([]string{"mcp", "--session", "default"}, options...)...), errs: &locked{}}
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
			s.t.Fatalf("%v after %s: %s", err, line, s.said())
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

// A question of one machine is answered on another.
func TestFleetAnswersElsewhere(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.fs = "require_approval = true"
	a, b := f.machine("a", ""), f.machine("b", "")
	session := startMCP(t, a, "--approve", "queue")
	var answered time.Time
	for i, answer := range []string{"approve", "approvals deny"} {
		got := make(chan string, 1)
		go func() {
			got <- session.call("Write", filepath.Join(f.tree, fmt.Sprint(i)), "new\n")
			answered = time.Now()
		}()
		id := ""
		eventually(t, "the question waits", func() bool {
			found := regexp.MustCompile(`"id": *"([0-9a-f]+)"`).FindStringSubmatch(b.run("approve", "--json"))
			if found != nil {
				id = found[1]
			}
			return found != nil
		})
		b.run("approvals", "show", id)
		b.run(append(strings.Fields(answer), id)...)
		begun := time.Now()
		text := <-got
		t.Log("the answer came after", answered.Sub(begun))
		if yes := answer == "approve"; strings.Contains(text, `"isError":true`) == yes || (f.content(fmt.Sprint(i)) == "new\n") != yes {
			t.Errorf("%s: %s", answer, text)
		}
	}
}

// A token that was made on one machine counts on another, until it is revoked.
func TestFleetTokens(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	wired, wire := fleetbox.Wired(t, f.database)
	a, b := f.machine("a", wired), f.machine("b", "")
	secret, operator := strings.TrimSpace(b.run("token", "create", "--principal", "ci")), strings.TrimSpace(b.run("token", "create", "--principal", "ann", "--operator"))
	s := serveOn(t, a)
	status := func() int {
		q, err := http.NewRequest("POST", s.url+"/rpc", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"capabilities.list"}`))
		must(t, err)
		q.Header.Set("Authorization", "Bearer "+secret)
		q.Header.Set("Content-Type", "application/json")
		r, err := http.DefaultClient.Do(q)
		must(t, err)
		r.Body.Close()
		return r.StatusCode
	}
	get := func(path string) string {
		q, err := http.NewRequest("GET", s.url+path, nil)
		must(t, err)
		q.Header.Set("Authorization", "Bearer "+operator)
		r, err := http.DefaultClient.Do(q)
		must(t, err)
		defer r.Body.Close()
		text, err := io.ReadAll(r.Body)
		must(t, err)
		return string(text)
	}
	if got := status(); got != http.StatusOK {
		t.Error(got)
	}
	if got := get("/metrics"); !regexp.MustCompile(`(?m)^moltis_fleet_lease_seconds [1-9]`).MatchString(got) || !strings.Contains(got, "moltis_fleet_leases_total 1\n") {
		t.Error(got)
	}
	rules, err := os.ReadFile("../../scripts/packaging/moltis-fs.rules.yml")
	must(t, err)
	for _, metric := range regexp.MustCompile(`\bmoltis_fleet_\w+`).FindAllString(string(rules), -1) {
		if !strings.Contains(get("/metrics"), "# TYPE "+metric+" ") {
			t.Errorf("an alert asks for %s, which is not there", metric)
		}
	}
	wire.Cut()
	if got := status(); got < 500 {
		t.Errorf("without the database: %d", got)
	}
	eventually(t, "it is not ready", func() bool { return strings.Contains(get("/readyz"), `"fleet"`) })
	wire.Mend()
	eventually(t, "the token counts again", func() bool { return status() == http.StatusOK })
	b.run("token", "revoke", strings.Fields(b.run("token", "list"))[0])
	eventually(t, "the token is refused", func() bool { return status() == http.StatusUnauthorized })
}

// serveOn starts serve on a machine.
func serveOn(t *testing.T, m *machine, options ...string) *server {
	t.Helper()
	s := &server{t: t, cmd: m.command(append([]string{"serve", "--listen", "127.0.0.1:0"}, options...)...)}
	said, err := s.cmd.StderrPipe()
	must(t, err)
	s.said = bufio.NewReader(said)
	must(t, s.cmd.Start())
	t.Cleanup(func() { s.cmd.Process.Kill(); s.cmd.Wait() })
	s.url = urlOf.FindString(s.says("serving on http"))
	go io.Copy(io.Discard, s.said) //nolint:errcheck // until it ends
	return s
}

var ofTheDead = flag.Int("dead", 200, "files that a machine has changed when it dies")

// A machine dies with its data directory, and another one brings back all files that its session has changed.
func TestFleetRestoresTheDead(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	a, b := f.machine("a", ""), f.machine("b", "")
	files := *ofTheDead
	name := func(i int) string { return fmt.Sprintf("%03d", i) }
	for i := range files {
		must(t, os.WriteFile(filepath.Join(f.tree, name(i)), fmt.Appendf(nil, "old %d\n", i), 0o644))
	}
	session := startMCP(t, a)
	begun := time.Now()
	for i := range files {
		session.call("Write", filepath.Join(f.tree, name(i)), fmt.Sprintf("new %d\n", i))
	}
	t.Log("written in", time.Since(begun))
	session.cmd.Process.Kill()
	session.cmd.Wait()
	must(t, os.RemoveAll(a.data))
	begun = time.Now()
	b.run("checkpoint", "rewind", "--session", "default", "--since", "1d", "--yes")
	t.Log("restored in", time.Since(begun))
	for i := range files {
		if got, want := f.content(name(i)), fmt.Sprintf("old %d\n", i); got != want {
			t.Fatalf("%s: %q, want %q", name(i), got, want)
		}
	}
}

// The ends of the audit log are on record in the fleet: a log that was written anew, with a chain that is whole, is found.
func TestFleetAuditHeads(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	a := f.machine("a", "")
	s := serveOn(t, a)
	for i := range 3 {
		a.run("call", "Write", filepath.Join(f.tree, "x"), fmt.Sprint("content=", i))
	}
	eventually(t, "an end is on record", func() bool { return !strings.Contains(a.run("audit", "verify"), "fleet: 0 ends") })
	s.cmd.Process.Kill()
	s.cmd.Wait()
	must(t, os.RemoveAll(filepath.Join(a.data, "audit-changes")))
	alone := f.machine("alone", "-")
	alone.data = a.data
	alone.run("call", "Write", filepath.Join(f.tree, "x"), "content=forged")
	alone.run("audit", "verify") // which knows nothing of what was
	if status, out, _ := a.try("audit", "verify"); status != exitRefused || !strings.Contains(out, "not_seen") {
		t.Error(status, out)
	}
	must(t, os.Remove(filepath.Join(a.data, "machine"))) // and its name, so that it counts as another log
	a.run("call", "Write", filepath.Join(f.tree, "x"), "content=forged again")
	if status, out, _ := a.try("audit", "verify"); status != exitBroken || strings.Contains(out, "not_seen") || !strings.Contains(out, "another log is on record") {
		t.Error(status, out)
	}
}

// A machine is its data directory, not its host: its audit log is found again elsewhere, and by no other machine of the host.
func TestFleetMachines(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	a, b := f.machine("a", ""), f.machine("b", "")
	for _, m := range []*machine{a, b} {
		m.run("call", "Write", filepath.Join(f.tree, filepath.Base(m.data)), "content=x", "--session", filepath.Base(m.data))
	}
	name := func(m *machine) string {
		name, err := os.ReadFile(filepath.Join(m.data, "machine"))
		must(t, err)
		return string(name)
	}
	if name(a) == name(b) {
		t.Error(name(a))
	}
	ends := func(m *machine, n int) {
		t.Helper()
		if out := m.run("audit", "verify"); !strings.Contains(out, fmt.Sprintf("fleet: %d end", n)) {
			t.Error(out)
		}
	}
	ends(a, 1)
	ends(b, 1)
	moved := f.machine("moved", "") // as under another name of the host
	must(t, os.Rename(a.data, moved.data))
	ends(moved, 1)
	moved.run("call", "Write", filepath.Join(f.tree, "y"), "content=y", "--session", "later")
	ends(moved, 2)
	for _, session := range []string{"data-a", "data-b", "later"} {
		if out := b.run("audit", "sessions"); !strings.Contains(out, "local/"+session) {
			t.Errorf("%s: %s", session, out)
		}
	}
	if out := b.run("audit", "sessions", "--json"); strings.Count(out, `"session"`) != 3 || strings.Count(out, `"changes": 1`) != 3 || strings.Count(out, `"calls": 0`) != 2 {
		t.Error(out)
	}
	if out := b.run("store", "stats"); !strings.Contains(out, "in the bucket") || strings.Contains(out, "files of their own") {
		t.Error(out)
	}
}

// With durable = "local" changes go on without the database, and come to the fleet when it is back. Another machine then goes on.
func TestFleetLocal(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.fleet = "durable = \"local\"\n"
	wired, wire := fleetbox.Wired(t, f.database)
	a, b := f.machine("a", wired), f.machine("b", "")
	path := filepath.Join(f.tree, "x")
	session := startMCP(t, a)
	session.call("Write", path, "one\n")
	eventually(t, "it is in the fleet", func() bool { return !strings.Contains(a.run("status"), "behind") })
	wire.Cut()
	session.call("Write", path, "two\n")
	if got := f.content("x"); got != "two\n" {
		t.Fatalf("%q", got)
	}
	if out := a.run("status"); !strings.Contains(out, "1 change is not in the fleet yet") || !strings.Contains(out, "can't be reached") {
		t.Error(out)
	}
	a.run("log")
	wire.Mend()
	eventually(t, "all is in the fleet", func() bool { return !strings.Contains(a.run("status"), "behind") })
	a.run("call", "Write", filepath.Join(f.tree, "hush"), "content=hush", "--session", "other")
	eventually(t, "that is, too", func() bool { return !strings.Contains(a.run("status"), "behind") })
	a.run("store", "purge", "--path", filepath.Join(f.tree, "hush"), "--yes")
	session.cmd.Process.Kill()
	session.cmd.Wait()
	must(t, os.RemoveAll(a.data))
	if _, out, errs := b.try("store", "backup", filepath.Join(f.dir, "copy")); !strings.Contains(errs, `durable = "remote"`) {
		t.Errorf("a backup of one machine says nothing of the others: %s%s", out, errs)
	}
	for _, line := range []string{"undo --yes", "log"} {
		if _, out, errs := b.try(strings.Fields(line)...); !strings.Contains(errs, "--session NAME fetches") {
			t.Errorf("%s, with nothing fetched: %s%s", line, out, errs)
		}
	}
	if log := b.run("checkpoint", "list", "--session", "other"); !strings.Contains(log, "purged") {
		t.Errorf("a purge does not come to the fleet: %s", log)
	}
	b.run("undo", "--session", "default", "--yes")
	if got := f.content("x"); got != "one\n" {
		t.Errorf("%q", got)
	}
	if log := b.run("log", "--session", "default"); strings.Count(log, "ck-") < 3 {
		t.Error(log)
	}
}

// A reload into another fleet is refused, and no password is told anywhere.
func TestFleetIsReadAtTheStart(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	a := f.machine("a", "")
	s := startMCP(t, a)
	text, err := os.ReadFile(a.config)
	must(t, err)
	must(t, os.WriteFile(a.config, bytes.Replace(text, []byte("prefix"), []byte("other"), 1), 0o600))
	must(t, s.cmd.Process.Signal(syscall.SIGHUP))
	eventually(t, "it is refused", func() bool {
		s.call("Read", filepath.Join(f.tree, "x"), "")
		return strings.Contains(s.said(), "read at the start only")
	})
	wrong, wire := fleetbox.Wired(t, f.database)
	wire.Cut()
	m := f.machine("wrong", wrong)
	m.env = []string{"PGPASSWORD=hush", "AWS_SECRET_ACCESS_KEY=hush"}
	for _, line := range []string{"status", "status --json", "log", "config show", "doctor", "call Read " + m.config} {
		if _, out, errs := m.try(strings.Fields(line)...); strings.Contains(out+errs, "hush") {
			t.Errorf("%s tells a secret: %s%s", line, out, errs)
		}
	}
}

// The accounts of docs/fleet.md are enough: the owner makes the tables, and a gateway works with the other one, which can make and drop
// nothing and can't change the ends of audit logs.
func TestFleetAccounts(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.database = fleetbox.OwnDatabase(t)
	u, err := url.Parse(f.database)
	must(t, err)
	gateways := "moltis_" + u.Path[1:] // roles are of the whole server
	owner := gateways + "_owner"
	text, err := os.ReadFile("../../docs/fleet.md")
	must(t, err)
	own := regexp.MustCompile(`\bmoltis(_owner)?\b`).ReplaceAllString(string(text), gateways+"$1")
	blocks := regexp.MustCompile("(?s)```sql\n(.*?)```").FindAllStringSubmatch(own, -1)
	if len(blocks) != 3 {
		t.Fatalf("%d blocks of SQL", len(blocks))
	}
	as := func(user string) string {
		u, err := url.Parse(f.database)
		must(t, err)
		q := u.Query()
		q.Set("user", user)
		u.RawQuery = q.Encode()
		return u.String()
	}
	do := func(user, script string) error {
		db, err := sql.Open("pgx", as(user))
		must(t, err)
		defer db.Close()
		_, err = db.Exec(script)
		return err
	}
	roles, _, _ := strings.Cut(blocks[0][1], "CREATE DATABASE")
	must(t, do("tester", roles+blocks[1][1]))
	early := f.machine("early", as(gateways))
	if status, out, errs := early.try("call", "Write", filepath.Join(f.tree, "x"), "content=one"); status == exitOK || !strings.Contains(errs, "moltis-fs store check") {
		t.Errorf("without tables: %s%s", out, errs)
	}
	f.machine("owner", as(owner)).run("store", "check")
	must(t, do("tester", blocks[2][1]))
	m := f.machine("m", as(gateways))
	session := startMCP(t, m)
	f.large("x")
	for _, content := range []string{"one\n", "two\n"} {
		if got := session.call("Write", filepath.Join(f.tree, "x"), content); f.content("x") != content {
			t.Fatal(got)
		}
	}
	m.run("undo", "--yes")
	m.run("token", "create", "--principal", "ci")
	m.run("store", "gc")
	m.run("store", "check", "--data")
	if status, out, errs := m.try("store", "purge", "--path", filepath.Join(f.tree, "x"), "--yes"); status != exitOK || !strings.Contains(errs, "VACUUM") {
		t.Errorf("purge: status %d: %s%s", status, out, errs)
	}
	eventually(t, "an end is on record", func() bool { return !strings.Contains(m.run("audit", "verify"), "fleet: 0 ends") })
	for _, statement := range []string{"CREATE TABLE t(a int)", "DROP TABLE op", "DELETE FROM head", "UPDATE head SET seq = 0", "TRUNCATE head"} {
		if err := do(gateways, statement); err == nil || !strings.Contains(err.Error(), "denied") && !strings.Contains(err.Error(), "owner") {
			t.Errorf("%s: %v", statement, err)
		}
	}
}

// A database that would forget what it has confirmed is refused at the start, with the setting to change.
func TestFleetForgets(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.database = fleetbox.OwnDatabase(t) // it is set for all of it
	db, err := sql.Open("pgx", f.database)
	must(t, err)
	defer db.Close()
	_, err = db.Exec("DO $$ BEGIN EXECUTE 'ALTER DATABASE ' || current_database() || ' SET synchronous_commit = off'; END $$")
	must(t, err)
	a := f.machine("a", "")
	for _, line := range []string{"call Write " + filepath.Join(f.tree, "x") + " content=one", "mcp", "serve --listen 127.0.0.1:0", "log"} {
		if status, out, errs := a.try(strings.Fields(line)...); status != exitMisuse || !strings.Contains(errs, "SET synchronous_commit = on") {
			t.Errorf("%s: status %d: %s%s", line, status, out, errs)
		}
	}
}

// A passfile that can't be read is said. The driver goes on without a password, and the server says that it is wrong.
func TestFleetPassfile(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	if status, out, errs := f.machine("a", f.database+"&passfile="+f.dir+"/none").try("status"); status != exitMisuse || !strings.Contains(errs, "passfile=") {
		t.Errorf("status %d: %s%s", status, out, errs)
	}
}

// Without the bucket a change that needs it is refused, and others go on.
func TestFleetWithoutBucket(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	var gone atomic.Bool
	f.contents = fleetbox.Contents(t, func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if gone.Load() {
				w.WriteHeader(http.StatusServiceUnavailable)
				return
			}
			h.ServeHTTP(w, r)
		})
	})
	session := startMCP(t, f.machine("a", ""))
	f.large("large")
	large, small := filepath.Join(f.tree, "large"), filepath.Join(f.tree, "small")
	gone.Store(true)
	if got := session.call("Write", large, "less\n"); !strings.Contains(got, "the store of large contents of the fleet can't be reached") || f.content("large") == "less\n" {
		t.Error(got)
	}
	if got := session.call("Write", small, "one\n"); f.content("small") != "one\n" {
		t.Error(got)
	}
	if got := session.call("Read", large, ""); strings.Contains(got, `"isError":true`) {
		t.Errorf("%.300s", got)
	}
	gone.Store(false)
	eventually(t, "it is written", func() bool { session.call("Write", large, "less\n"); return f.content("large") == "less\n" })
}
