package main

import (
	"bufio"
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
)

// theirClient is a JSON-RPC client that is not ours, npm's json-rpc-2.0, in a process of its own.
type theirClient struct {
	t  *testing.T
	in io.Writer
	by *bufio.Reader
}

func newTheirClient(t *testing.T, url, secret string) *theirClient {
	t.Helper()
	cmd := exec.Command("node", filepath.Join("..", "..", ".ci", "inspector", "jsonrpc.mjs"), url, secret)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	must(t, err)
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	t.Cleanup(func() { _ = in.Close(); _ = cmd.Wait() })
	return &theirClient{t, in, bufio.NewReader(out)}
}

// ask makes one request, and gives the line that the client makes of its answer.
func (c *theirClient) ask(method, params string) string {
	c.t.Helper()
	if _, err := fmt.Fprintf(c.in, `{"method":%q,"params":%s}`+"\n", method, params); err != nil {
		c.t.Fatal(err)
	}
	line, err := c.by.ReadString('\n')
	if err != nil {
		c.t.Fatal(err)
	}
	return line
}

// All thirteen capabilities, refusals, approvals and events, by a client and a language that are not ours.
func TestCapabilitiesByAnotherClient(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("../../.ci/inspector/node_modules/json-rpc-2.0"); err != nil {
		t.Skip("SKIPPED: npm's json-rpc-2.0 is not installed; npm ci --prefix .ci/inspector installs it")
	}
	if _, err := exec.LookPath("node"); err != nil {
		t.Skip("SKIPPED: there is no node")
	}
	dir := realDir(t)
	data, root := filepath.Join(dir, "data"), filepath.Join(dir, "work")
	must(t, os.Mkdir(root, 0o700))
	quiet := filepath.Join(dir, "c.toml")
	must(t, os.WriteFile(quiet, []byte("[tools.fs]\nrequire_approval = false\ncheckpoint_before_mutation = true\n"), 0o600))
	own := func(args ...string) string {
		t.Helper()
		out, err := exec.Command(binary(t), append(args, "--data-dir", data)...).Output()
		if err != nil {
			t.Fatalf("%v: %v", args, err)
		}
		return strings.TrimSpace(string(out))
	}
	secret := own("token", "create", "--principal", "agent")
	url := startServer(t, secret, "--config", quiet, "--root", root, "--data-dir", data, "--dialect", "capability").url + "/rpc"
	client := newTheirClient(t, url, secret)
	var session struct {
		Result struct {
			Session string `json:"session_id"`
		}
	}
	must(t, json.Unmarshal([]byte(client.ask("session.create", `{}`)), &session))
	trash := ""
	call := func(name, args string) string {
		t.Helper()
		args = strings.NewReplacer("$R", root, "$T", trash).Replace(args)
		return client.ask("capabilities.invoke", fmt.Sprintf(`{"capability":"filesystem.%s","session_id":%q,"arguments":%s}`, name, session.Result.Session, args))
	}
	listed := client.ask("capabilities.list", `{"category":"filesystem"}`)
	for _, name := range strings.Fields("read write list delete restore stat search search_content copy move watch append edit") {
		if !strings.Contains(listed, `"filesystem.`+name+`"`) {
			t.Errorf("filesystem.%s is not listed", name)
		}
	}
	if got := client.ask("capabilities.describe", `{"name":"filesystem.read"}`); !strings.Contains(got, `"when_to_use"`) {
		t.Errorf("described as %s", got)
	}
	steps := []struct{ name, args, want string }{
		{"watch", `{"path":"$R","recursive":true}`, `"watch_id":`},
		{"write", `{"path":"$R/d/a.txt","content":"one\n"}`, `"type":"ParentNotFound"`},
		{"write", `{"path":"$R/d/a.txt","content":"one\n","create_parents":true}`, `"size":4`},
		{"append", `{"path":"$R/d/a.txt","content":"func Two() {}\n"}`, `"new_size":18`},
		{"read", `{"path":"$R/d/a.txt","offset":4,"limit":4}`, `"content":"func"`},
		{"read", `{"path":"$R/none"}`, `"type":"FileNotFound"`},
		{"read", `{"path":"/etc/hostname"}`, `"type":"PathOutOfScope"`},
		{"stat", `{"path":"$R/d"}`, `"type":"directory"`},
		{"list", `{"path":"$R/d"}`, `"total":1`},
		{"search", `{"path":"$R","pattern":"**/*.txt"}`, `"total_matches":1`},
		{"search_content", `{"path":"$R","pattern":"Two"}`, `"line":2`},
		{"edit", `{"path":"$R","pattern":"Two","replace":"Three","expected_replacements":2}`, `"type":"CountMismatch"`},
		{"edit", `{"path":"$R","pattern":"Two","replace":"Three","expected_replacements":1}`, `"applied":"full"`},
		{"edit", `{"path":"$R","pattern":"T(hree)","replace":"Two","regex":true,"replace_all":true}`, `"files_changed":1`},
		{"copy", `{"source":"$R/d/a.txt","destination":"$R/b.txt"}`, `"size":18`},
		{"copy", `{"source":"$R/d/a.txt","destination":"$R/b.txt"}`, `"type":"DestinationExists"`},
		{"move", `{"source":"$R/b.txt","destination":"$R/c.txt"}`, `"destination":"$R/c.txt"`},
		{"read", `{"path":"$R/c.txt","what":1}`, `"success":false`},
	}
	for _, s := range steps {
		if got := call(s.name, s.args); !strings.Contains(got, strings.ReplaceAll(s.want, "$R", root)) {
			t.Errorf("%s %s: %s", s.name, s.args, got)
		}
	}
	for _, verdict := range []string{"deny", "approve"} { // delete needs a person
		go answerFirst(t, data, verdict)
		got := call("delete", `{"path":"$R/c.txt"}`)
		if verdict == "deny" && !strings.Contains(got, `"success":false`) || verdict == "approve" && !strings.Contains(got, `"recoverable_until"`) {
			t.Errorf("%s: %s", verdict, got)
		}
		if m := regexp.MustCompile(`"trash_path":"([^"]+)"`).FindStringSubmatch(got); m != nil {
			trash = m[1]
		}
	}
	if got := call("restore", `{"path":"$T"}`); !strings.Contains(got, root+"/c.txt") {
		t.Errorf("restored: %s", got)
	}
	if b, err := os.ReadFile(root + "/c.txt"); err != nil || string(b) != "one\nfunc Two() {}\n" {
		t.Errorf("%q, %v", b, err)
	}
	events := client.ask("session.events", fmt.Sprintf(`{"session_id":%q,"cursor":0,"limit":1000}`, session.Result.Session))
	for _, want := range []string{"a.txt", "b.txt", "c.txt"} {
		if !strings.Contains(events, root+"/"+want) && !strings.Contains(events, root+"/d/"+want) {
			t.Errorf("no event of %s in %s", want, events)
		}
	}
	if got := client.ask("session.end", fmt.Sprintf(`{"session_id":%q}`, session.Result.Session)); !strings.Contains(got, `"ended":true`) {
		t.Error(got)
	}
	if got := newTheirClient(t, url, "mfs_wrong").ask("capabilities.list", `{}`); !strings.Contains(got, "401") {
		t.Errorf("without a token: %s", got)
	}
}

// answerFirst answers the first question that waits, as an operator at another terminal does.
func answerFirst(t *testing.T, data, verdict string) {
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		out, err := exec.Command(binary(t), "approvals", "list", "--json", "--data-dir", data).Output()
		id := regexp.MustCompile(`"id": *"([^"]+)"`).FindSubmatch(out)
		if err != nil || id == nil {
			continue
		}
		if out, err := exec.Command(binary(t), "approvals", "show", string(id[1]), "--data-dir", data).CombinedOutput(); err != nil {
			t.Errorf("show: %v\n%s", err, out)
		}
		out, err = exec.Command(binary(t), "approvals", verdict, string(id[1]), "--reason", "a test", "--data-dir", data).CombinedOutput()
		if err != nil {
			t.Errorf("%s: %v\n%s", verdict, err, out)
		}
		return
	}
	t.Error("nobody asked")
}
