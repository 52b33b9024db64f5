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
	secret := output("token", "create", "--principal", "ci", "--write", filepath.Join(root, "in"))
	cmd := exec.Command(binary(t), "serve", "--root", root, "--data-dir", data, "--listen", "127.0.0.1:0", "--listen", "unix:", "--approve", "yes", "--dialect", "tools,capability")
	said, err := cmd.StderrPipe()
	must(t, err)
	must(t, cmd.Start())
	defer cmd.Process.Kill()
	lines := bufio.NewReader(said)
	first, _ := lines.ReadString('\n')
	second, _ := lines.ReadString('\n')
	url := regexp.MustCompile(`serving on (http://127\.0\.0\.1:\d+/rpc)`).FindStringSubmatch(first)
	if url == nil || !strings.Contains(second, "serving on unix:"+data+"/serve/rpc.sock") {
		t.Fatalf("it says %s%s", first, second)
	}
	call := func(tool, arguments string) string {
		t.Helper()
		body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"capabilities.invoke","params":{"capability":%q,"arguments":%s}}`, tool, arguments)
		req, err := http.NewRequest("POST", url[1], strings.NewReader(body))
		must(t, err)
		req.Header.Set("Authorization", "Bearer "+secret)
		req.Header.Set("Content-Type", "application/json")
		resp, err := http.DefaultClient.Do(req)
		must(t, err)
		defer resp.Body.Close()
		answer, err := io.ReadAll(resp.Body)
		must(t, err)
		return string(answer)
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
	must(t, cmd.Process.Signal(syscall.SIGTERM))
	rest, _ := io.ReadAll(lines)
	if err := cmd.Wait(); err != nil || !strings.HasPrefix(string(rest), "moltis-fs: open is "+root+" and") ||
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
