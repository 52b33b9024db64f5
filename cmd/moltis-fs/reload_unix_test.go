//go:build unix

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// SIGHUP reads the configuration again, and a log that was moved away is begun anew; one that can't be used is told and changes nothing.
func TestReload(t *testing.T) {
	t.Parallel()
	dir := realDir(t)
	ws, conf, data := filepath.Join(dir, "ws"), filepath.Join(dir, "c.toml"), filepath.Join(dir, "data")
	configure := func(more string) {
		t.Helper()
		text := fmt.Sprintf("[tools.fs]\nallow_paths = [%q]\n%s\n", ws+"/**", more)
		must(t, os.WriteFile(conf, []byte(text), 0o600))
	}
	must(t, errors.Join(os.Mkdir(ws, 0o755), os.WriteFile(ws+"/f", []byte("hello\n"), 0o644)))
	configure("")
	r := startUp(t, "--config", conf, "--data-dir", data)
	read := func(want string) {
		t.Helper()
		if answer := r.call("Read", fmt.Sprintf(`{"file_path":%q}`, ws+"/f")); !strings.Contains(answer, want) {
			t.Errorf("%q is not in %s", want, answer)
		}
	}
	hangUp := func(says ...string) {
		t.Helper()
		must(t, r.cmd.Process.Signal(syscall.SIGHUP))
		for _, want := range says {
			nextSaid(t, r.said, want)
		}
	}
	read("hello")

	configure(fmt.Sprintf("deny_paths = [%q]", ws+"/f"))
	read("hello") // nobody has told it
	log := filepath.Join(data, "audit", "audit.jsonl")
	must(t, os.Rename(log, log+".2"))
	hangUp("was read again; policy ")
	read("may not touch this path")

	configure("deny_pathz = []")
	must(t, os.Rename(log, log+".1"))
	hangUp("what held before still holds", "deny_pathz")
	read("may not touch this path")
	if text, err := os.ReadFile(log); err != nil || strings.Count(string(text), "\n") != 1 {
		t.Errorf("the log is not begun anew: %q %v", text, err)
	}

	configure("")
	hangUp("was read again")
	read("hello")

	configure("[tools.policy]\ndeny = [\"Write\"]") // the client is told of another list, and of no list that is the same
	hangUp("was read again")
	if told, err := r.out.ReadString('\n'); err != nil || !strings.Contains(told, `"notifications/tools/list_changed"`) {
		t.Errorf("told %q %v", told, err)
	}
	if list := r.send(`{"jsonrpc":"2.0","id":3,"method":"tools/list"}`); strings.Contains(list, `"name":"Write"`) || !strings.Contains(list, `"name":"Read"`) {
		t.Errorf("listed are %s", list)
	}
	r.end()
	var tools, policies []string
	for line := range strings.Lines(recordsOf(t, data)) {
		var r struct{ Tool, Outcome, Policy, Version, Client string }
		must(t, json.Unmarshal([]byte(line), &r))
		tools = append(tools, r.Tool+" "+r.Outcome)
		if r.Policy != "" {
			policies = append(policies, r.Policy)
		} else if r.Client != "t/1" {
			t.Errorf("the client is not on record: %s", line)
		}
	}
	want := "start ok,Read ok,Read ok,reload ok,Read path_denied,Read path_denied,reload ok,Read ok,reload ok,stop ok"
	if got := strings.Join(tools, ","); got != want {
		t.Errorf("the record says\n%s, want\n%s", got, want)
	}
	if len(policies) != 5 || policies[0] == policies[1] || policies[0] != policies[2] || policies[4] != policies[3] {
		t.Errorf("the policies on record: %v", policies)
	}
}

// A service has the null device as its standard input, whatever that is called: it is no terminal, so a SIGHUP reloads.
func TestNothingIsNoTerminal(t *testing.T) {
	null, err := os.Open(os.DevNull)
	must(t, err)
	defer null.Close()
	fd, err := syscall.Dup(int(null.Fd()))
	must(t, err)
	f := os.NewFile(uintptr(fd), "/dev/stdin")
	defer f.Close()
	if isTerminal(f) || isTerminal(null) {
		t.Error("the null device counts as a terminal")
	}
}

// A reload ends the watches of a session and tells it so. The session's cursor goes on, and its workspace goes to the trash when
// the session ends. A killed server's workspaces go there when the next one starts, and no other's.
func TestSessionsOutliveAReload(t *testing.T) {
	t.Parallel()
	dir := realDir(t)
	homes, conf := filepath.Join(dir, "homes"), filepath.Join(dir, "c.toml")
	text := fmt.Sprintf("[tools.fs]\nallow_paths = [%q]\nrequire_approval = false\n[tools.jettson]\nworkspaces = %q\nper_session = true\n", homes+"/**", homes)
	must(t, errors.Join(os.Mkdir(homes, 0o755), os.WriteFile(conf, []byte(text), 0o600)))
	start := func(session string) *running {
		t.Helper()
		return startUp(t, "--dialect", "capability,jettson", "--config", conf, "--session", session, "--data-dir", filepath.Join(dir, "data"))
	}
	call := func(s *running, tool, args, want string) {
		t.Helper()
		if answer := s.call(tool, args); !strings.Contains(answer, want) {
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
	one, other, killed := start("one"), start("other"), start("killed")
	for _, s := range []*running{one, other, killed} {
		call(s, "jettson_files_write", `{"path":"f","content":"x"}`, "bytes_written")
	}
	there("written", "local%killed", "local%one", "local%other")
	call(one, "filesystem__watch", fmt.Sprintf(`{"path":%q,"recursive":true}`, homes), "watch_id")
	_, err := io.WriteString(one.in, `{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"agent__events","arguments":{"wait_ms":30000}}}`+"\n")
	must(t, errors.Join(err, one.cmd.Process.Signal(syscall.SIGHUP)))
	if line, err := one.out.ReadString('\n'); err != nil || !strings.Contains(line, `"gone`) && !strings.Contains(line, `\"gone`) {
		t.Errorf("who waited is told %q, %v", line, err)
	}
	call(one, "agent__events", `{"cursor":0}`, `gone`)
	call(one, "agent__events", `{"cursor":1}`, `\"events\":[]`)
	call(one, "filesystem__watch", fmt.Sprintf(`{"path":%q,"recursive":true}`, homes), "watch_id")
	must(t, os.WriteFile(homes+"/local%one/g", nil, 0o600))
	call(one, "agent__events", `{"cursor":1,"wait_ms":30000}`, `local%one/g`)
	must(t, killed.cmd.Process.Kill())
	_ = killed.cmd.Wait() // it was killed
	there("one was killed", "local%killed", "local%one", "local%other")
	next := start("next")
	there("the next one is there", "local%one", "local%other")
	one.end()
	next.end()
	there("its session ended", "local%other")
}
