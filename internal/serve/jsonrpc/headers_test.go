package jsonrpc

import (
	"fmt"
	"net/http"
	"testing"
)

// What a policy sees of a request: nothing that keeps a secret, and no header hidden by another.
func TestPolicyHeaders(t *testing.T) {
	t.Parallel()
	h := http.Header{}
	for _, kv := range [][2]string{{"x-mcp-Team", "red"}, {"X-MCP-User-ID", "7"}, {"X-Mcp-User-Id", "8"}, {"X-MCP-", "none"},
		{"Authorization", "Bearer s"}, {"X-McpTeam", "blue"}, {"Cookie", "c"}} {
		h.Add(kv[0], kv[1])
	}
	if got := fmt.Sprint(policyHeaders(h)); got != "map[team:red user-id:7, 8]" {
		t.Error(got)
	}
}
