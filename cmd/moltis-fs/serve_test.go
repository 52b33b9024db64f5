package main

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

// The program serves who has a token, within its scope; a token that is revoked is one no more; and
// SIGTERM ends it with 0.
func TestServe(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("SKIPPED: there is no SIGTERM there")
	}
	dir := realDir(t)
	data, root := filepath.Join(dir, "data"), filepath.Join(dir, "work")
	for _, d := range []string{"in", "out"} {
		must(t, os.MkdirAll(filepath.Join(root, d), 0o700))
		must(t, os.WriteFile(filepath.Join(root, d, "f"), []byte(d+"\n"), 0o600))
	}
	output := func(args ...string) string {
		t.Helper()
		out, err := exec.Command(binary(t), append(args, "--data-dir", data)...).Output()
		if err != nil {
			t.Fatalf("%v: %v", args, err)
		}
		return strings.TrimSpace(string(out))
	}
	secret := newToken(t, data, "--principal", "ci", "--write", filepath.Join(root, "in"))
	s := startServer(t, secret, "--root", root, "--data-dir", data, "--listen", "unix:", "--approve", "yes", "--dialect", "tools,capability")
	s.says("serving on unix:" + data + "/serve/rpc.sock")
	call := func(tool, arguments string) string {
		t.Helper()
		return s.ask("capabilities.invoke", fmt.Sprintf(`{"capability":%q,"arguments":%s}`, tool, arguments))
	}
	for _, c := range []struct{ tool, arguments, want string }{
		{"Read", `{"file_path":"` + root + `/in/f"}`, `{"success":true,"data":{"kind":"text"`},
		{"filesystem.read", `{"path":"` + root + `/in/f"}`, `{"success":true,"data":{"content":"in\n"`},
		{"Write", `{"file_path":"` + root + `/in/g","content":"new"}`, `{"success":true,"data":{"kind":"write"`},
		{"Read", `{"file_path":"` + root + `/out/f"}`, `{"success":false,"error":{"kind":"path_denied","file_path":"`},
		{"Raed", `{}`, `"code":-32602`},
	} {
		if got := call(c.tool, c.arguments); !strings.Contains(got, c.want) {
			t.Errorf("%s %s: %s", c.tool, c.arguments, got)
		}
	}
	id := regexp.MustCompile(`tk-[a-z0-9]+`).FindString(output("token", "list"))
	output("token", "revoke", id)
	if got := call("Read", `{}`); !strings.Contains(got, `"code":-32003`) {
		t.Errorf("with a token that was revoked: %s", got)
	}
	must(t, s.cmd.Process.Signal(syscall.SIGTERM))
	rest, _ := io.ReadAll(s.said)
	if err := s.cmd.Wait(); err != nil || !strings.HasPrefix(string(rest), "moltis-fs: open is "+root+" and") ||
		strings.Count(string(rest), "\n") != 1 {
		t.Errorf("it ends with %v and says %s", err, rest)
	}
	if _, err := os.Lstat(data + "/serve/rpc.sock"); err == nil {
		t.Error("its socket is left")
	}
	record := recordsOf(t, data)
	if !strings.Contains(record, `"principal":"ci"`) || !strings.Contains(record, `"client":"Go-http-client`) || !strings.Contains(record, `"tool":"Raed"`) ||
		!strings.Contains(record, `"session":"run-`) || strings.Contains(record, `"session":"default"`) {
		t.Errorf("on record is %s", record)
	}
}

var urlOf = regexp.MustCompile(`http://127\.0\.0\.1:\d+`)

// A server is one of HTTP under test.
type server struct {
	t           *testing.T
	cmd         *exec.Cmd
	said        *bufio.Reader
	url, secret string
}

func startServer(t *testing.T, secret string, args ...string) *server {
	t.Helper()
	s := &server{t: t, secret: secret, cmd: exec.Command(binary(t), append([]string{"serve", "--listen", "127.0.0.1:0"}, args...)...)}
	said, err := s.cmd.StderrPipe()
	must(t, err)
	s.said = bufio.NewReader(said)
	must(t, s.cmd.Start())
	t.Cleanup(func() { _ = s.cmd.Process.Kill(); _ = s.cmd.Wait() })
	s.url = urlOf.FindString(s.says("serving on http"))
	return s
}

// newToken makes a token in a data directory.
func newToken(t *testing.T, data string, options ...string) string {
	t.Helper()
	status, out, errs := runWith(t, "", append([]string{"token", "create", "--data-dir", data}, options...)...)
	if status != exitOK {
		t.Fatal(errs)
	}
	return strings.TrimSpace(out)
}

// says is the next line that has some words.
func (s *server) says(words string) string {
	s.t.Helper()
	return nextSaid(s.t, s.said, words)
}

// nextSaid is the next line of a program's standard error that has some words.
func nextSaid(t *testing.T, said *bufio.Reader, words string) string {
	t.Helper()
	var all strings.Builder
	for {
		line, err := said.ReadString('\n')
		if all.WriteString(line); err != nil {
			t.Fatalf("%q is not said: %s", words, all.String())
		}
		if strings.Contains(line, words) {
			return line
		}
	}
}

func (s *server) ask(method, params string) string { return s.askAs(s.secret, method, params) }

func (s *server) askAs(secret, method, params string) string {
	s.t.Helper()
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":%s}`, method, params)
	q, err := http.NewRequest("POST", s.url+"/rpc", strings.NewReader(body))
	must(s.t, err)
	q.Header.Set("Authorization", "Bearer "+secret)
	q.Header.Set("Content-Type", "application/json")
	a, err := http.DefaultClient.Do(q)
	must(s.t, err)
	defer a.Body.Close()
	b, err := io.ReadAll(a.Body)
	must(s.t, err)
	return string(b)
}
