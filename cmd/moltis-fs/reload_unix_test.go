//go:build unix

package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// SIGHUP reads the configuration again and opens the log anew; one that can't be used is told and changes nothing.
func TestReload(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	ws, conf, data := filepath.Join(dir, "ws"), filepath.Join(dir, "c.toml"), filepath.Join(dir, "data")
	configure := func(more string) {
		t.Helper()
		text := fmt.Sprintf("[tools.fs]\nallow_paths = [%q]\n%s\n", ws+"/**", more)
		if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.Mkdir(ws, 0o755), os.WriteFile(ws+"/f", []byte("hello\n"), 0o644)); err != nil {
		t.Fatal(err)
	}
	configure("")
	cmd := exec.Command(binary(t), "mcp", "--config", conf, "--data-dir", data)
	withoutTerminal(cmd)
	in, err1 := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	errs, err3 := cmd.StderrPipe()
	if err := errors.Join(err1, err2, err3, cmd.Start()); err != nil {
		t.Fatal(err)
	}
	defer cmd.Process.Kill() //nolint:errcheck // it has ended, or the test has failed
	answers, said := bufio.NewReader(out), bufio.NewReader(errs)
	send := func(line string) string {
		t.Helper()
		_, err := io.WriteString(in, line+"\n")
		answer, rerr := answers.ReadString('\n')
		if err := errors.Join(err, rerr); err != nil {
			t.Fatal(err)
		}
		return answer
	}
	read := func(want string) {
		t.Helper()
		answer := send(fmt.Sprintf(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"Read","arguments":{"file_path":%q}}}`, ws+"/f"))
		if !strings.Contains(answer, want) {
			t.Errorf("%q is not in %s", want, answer)
		}
	}
	hangUp := func(says ...string) {
		t.Helper()
		if err := cmd.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		for _, want := range says {
			for line := ""; !strings.Contains(line, want); {
				if line, err = said.ReadString('\n'); err != nil {
					t.Fatalf("%q was not said: %v", want, err)
				}
			}
		}
	}
	send(strings.ReplaceAll(readyMCP, `"name":"t"`, `"name":"probe"`))
	read("hello")

	configure(fmt.Sprintf("deny_paths = [%q]", ws+"/f"))
	read("hello") // nobody has told it
	log := filepath.Join(data, "audit", "audit.jsonl")
	if err := os.Rename(log, log+".moved"); err != nil {
		t.Fatal(err)
	}
	hangUp("was read again; policy ")
	read("path_denied")

	configure("deny_pathz = []")
	if err := os.Rename(log, log+".moved2"); err != nil {
		t.Fatal(err)
	}
	hangUp("what held before still holds", "deny_pathz")
	read("path_denied")
	if text, err := os.ReadFile(log); err != nil || strings.Count(string(text), "\n") != 1 {
		t.Errorf("the log is not opened anew when a configuration is refused: %q %v", text, err)
	}

	configure("")
	hangUp("was read again")
	read("hello")

	configure("[tools.policy]\ndeny = [\"Write\"]") // the client is told of another list, and of no list that is the same
	hangUp("was read again")
	if told, err := answers.ReadString('\n'); err != nil || !strings.Contains(told, `"notifications/tools/list_changed"`) {
		t.Errorf("told %q %v", told, err)
	}
	if list := send(`{"jsonrpc":"2.0","id":3,"method":"tools/list"}`); strings.Contains(list, `"name":"Write"`) || !strings.Contains(list, `"name":"Read"`) {
		t.Errorf("listed are %s", list)
	}
	in.Close()
	_, _ = io.Copy(io.Discard, said)
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	var tools, policies []string
	for _, name := range []string{log + ".moved", log + ".moved2", log} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			var r struct{ Tool, Outcome, Policy, Version, Client string }
			if err := json.Unmarshal([]byte(line), &r); err != nil {
				t.Fatal(err)
			}
			tools = append(tools, r.Tool+" "+r.Outcome)
			if r.Policy != "" {
				policies = append(policies, r.Policy)
			} else if r.Client != "probe/1" {
				t.Errorf("the client is not on record: %s", line)
			}
			if len(tools) == 3 && name == log {
				t.Errorf("the log that was moved away has %v", tools)
			}
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
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	fd, err := syscall.Dup(int(null.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	f := os.NewFile(uintptr(fd), "/dev/stdin")
	defer f.Close()
	if isTerminal(f) || isTerminal(null) {
		t.Error("the null device counts as a terminal")
	}
}
