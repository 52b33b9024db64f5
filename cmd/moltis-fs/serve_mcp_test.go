package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coreos/go-oidc/v3/oidc/oidctest"
)

// callMCP calls a tool at /mcp, as the newest revision has it, and gives the answer.
func (s *server) callMCP(secret, tool, arguments string) (*http.Response, string) {
	s.t.Helper()
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q,"arguments":%s,"_meta":{`+
		`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`, tool, arguments)
	q, err := http.NewRequest("POST", s.url+"/mcp", strings.NewReader(body))
	must(s.t, err)
	q.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"},
		"Mcp-Protocol-Version": {"2026-07-28"}, "Mcp-Method": {"tools/call"}, "Mcp-Name": {tool}}
	if secret != "" {
		q.Header.Set("Authorization", "Bearer "+secret)
	}
	a, err := http.DefaultClient.Do(q)
	must(s.t, err)
	defer a.Body.Close()
	b, err := io.ReadAll(a.Body)
	must(s.t, err)
	return a, string(b)
}

// A client with a token of the issuer that the operator names calls within its scopes; clients without one are told where to get it.
func TestServeIssuer(t *testing.T) {
	t.Parallel()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	authority := &oidctest.Server{PublicKeys: []oidctest.PublicKey{{PublicKey: key.Public(), KeyID: "k", Algorithm: "ES256"}}}
	at := httptest.NewServer(authority)
	defer at.Close()
	authority.SetIssuer(at.URL)
	dir := realDir(t)
	root, data, file := filepath.Join(dir, "work"), filepath.Join(dir, "data"), filepath.Join(dir, "c.toml")
	must(t, os.Mkdir(root, 0o700))
	must(t, os.WriteFile(filepath.Join(root, "f"), []byte("in it\n"), 0o600))
	must(t, os.WriteFile(file, fmt.Appendf(nil, "[tools.fs]\nworkspace_root = %q\nrequire_approval = false\n[tools.fs.http]\nissuer = %q\naudience = \"https://files.example.com/mcp\"\n", root, at.URL), 0o600))
	s := startServer(t, "", "--config", file, "--data-dir", data)
	token := func(scope string, holds time.Duration) string {
		return oidctest.SignIDToken(key, "k", "ES256", fmt.Sprintf(`{"iss":%q,"aud":"https://files.example.com/mcp","sub":"ann","scope":%q,"exp":%d}`,
			at.URL, scope, time.Now().Add(holds).Unix()))
	}
	read, write := fmt.Sprintf(`{"file_path":"%s/f"}`, root), fmt.Sprintf(`{"file_path":"%s/g","content":"new"}`, root)
	own := newToken(t, data, "--principal", "ci")
	for _, c := range []struct {
		name, secret, tool, arguments string
		status                        int
		says                          string
	}{
		{"no token", "", "Read", read, 401, "-32003"},
		{"a read token reads", token("files:read", time.Hour), "Read", read, 200, "in it"},
		{"and does not write", token("files:read", time.Hour), "Write", write, 200, "isError"},
		{"a write token writes", token("files:write", time.Hour), "Write", write, 200, "created"},
		{"no scope of ours", token("openid", time.Hour), "Read", read, 403, "files:read"},
		{"an old one", token("files:read", -time.Hour), "Read", read, 401, "-32003"},
		{"a token of ours", own, "Read", read, 200, "in it"},
	} {
		a, got := s.callMCP(c.secret, c.tool, c.arguments)
		if a.StatusCode != c.status || !strings.Contains(got, c.says) {
			t.Errorf("%s: %s %s", c.name, a.Status, got)
		}
		if says := a.Header.Get("WWW-Authenticate"); c.status > 400 && !strings.Contains(says, `resource_metadata="https://files.example.com/.well-known/oauth-protected-resource/mcp"`) {
			t.Errorf("%s: WWW-Authenticate is %s", c.name, says)
		}
	}
	a, err := http.Get(s.url + "/.well-known/oauth-protected-resource/mcp")
	must(t, err)
	defer a.Body.Close()
	if b, err := io.ReadAll(a.Body); err != nil || !strings.Contains(string(b), at.URL) {
		t.Errorf("the description: %s, %v", b, err)
	}
	if record := recordsOf(t, data); !strings.Contains(record, `"principal":"jwt:ann"`) || strings.Contains(record, "eyJ") {
		t.Errorf("on record is %s", record)
	}
}
