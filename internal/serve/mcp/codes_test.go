package mcp_test

import (
	"os"
	"strings"
	"testing"

	"moltisfs/config"
	"moltisfs/internal/serve/mcp"
	"moltisfs/tools"
)

func chmodX(path string) error { return os.Chmod(path, 0o755) }

// A request that says no revision, before any handshake, has bad parameters: there is no code 0.
func TestStrayRequests(t *testing.T) {
	for _, c := range []struct{ method, params, want string }{
		{"tools/list", ``, `-32602`},
		{"tools/list", `,"params":{}`, `-32602`},
		{"tools/call", `,"params":{"name":"Read","arguments":{}}`, `-32602`},
		{"server/discover", ``, `-32602`},
		{"server/discover", `,"params":{"_meta":{}}`, `-32602`},
		{"server/discover", `,"params":{"_meta":{"io.modelcontextprotocol/protocolVersion":7}}`, `"code":-32`},
		{"tools/list", `,"params":{"_meta":{"io.modelcontextprotocol/protocolVersion":7}}`, `-32602`},
		{"tools/list", `,"params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}`, `-32602`},
		{"nonsense", ``, `-32602`},
		{"ping", ``, `"result"`},
	} {
		p := newPlain(t, config.Default(), tools.Options{}, mcp.Options{})
		got := p.line(`{"jsonrpc":"2.0","id":"x","method":"` + c.method + `"` + c.params + `}`)
		if !strings.Contains(got, c.want) || !strings.Contains(got, `"id":"x"`) {
			t.Errorf("%s%s: %s", c.method, c.params, got)
		}
	}
	p := newPlain(t, config.Default(), tools.Options{}, mcp.Options{})
	p.line(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
	for method, want := range map[string]string{"tools/list": `"Read"`, "nonsense": "-32601", "server/discover": "-32602"} {
		if got := p.line(`{"jsonrpc":"2.0","id":2,"method":"` + method + `"}`); !strings.Contains(got, want) {
			t.Errorf("%s after the handshake: %s", method, got)
		}
	}
}
