package mcp_test

import (
	"context"
	"io"
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
	suite, err := tools.Open(config.Default(), tools.Options{DataDir: filepath.Join(dir, "data")})
	must(b, err)
	b.Cleanup(func() { suite.Close() })
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	go func() {
		_ = mcp.Serve(context.Background(), suite.Dialect(), in, out, mcp.Options{}) // ends with the pipes
		out.Close()
	}()
	client := sdk.NewClient(&sdk.Implementation{Name: "bench", Version: "1"}, nil)
	s, err := client.Connect(context.Background(), &sdk.IOTransport{Reader: fromServer, Writer: toServer}, nil)
	must(b, err)
	b.Cleanup(func() { s.Close(); toServer.Close() })
	return s, file
}
