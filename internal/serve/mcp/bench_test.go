package mcp_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"moltisfs/config"
	"moltisfs/internal/serve/mcp"
	"moltisfs/tools"
)

// BenchmarkReadOverMCP is one Read by the SDK's client over a pair of pipes, of 4 KB and of 2,000 lines in 146 KB: the protocol
// beside the call.
func BenchmarkReadOverMCP(b *testing.B) {
	for name, content := range map[string]string{"4KB": strings.Repeat("sixteen bytes it\n", 4096/17),
		"146KB": strings.Repeat(strings.Repeat("seventy-two b", 6)[:72]+"\n", 2000)} {
		b.Run(name, func(b *testing.B) {
			s, file := benched(b, content)
			for b.Loop() {
				r, err := s.CallTool(context.Background(), &sdk.CallToolParams{Name: "Read", Arguments: map[string]any{"file_path": file}})
				if err != nil || r.IsError {
					b.Fatal(err, r)
				}
			}
		})
	}
}

// benched is a client of a server over a file with that content.
func benched(b *testing.B, content string) (*sdk.ClientSession, string) {
	b.Helper()
	dir, err := filepath.EvalSymlinks(b.TempDir())
	must(b, err)
	file := filepath.Join(dir, "a.txt")
	writeFile(b, file, content)
	toServer, fromServer := serve(b, config.Default(), tools.Options{}, mcp.Options{})
	return connect(b, toServer, fromServer, "bench", "2025-11-25", nil), file
}
