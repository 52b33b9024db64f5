package mcp_test

import (
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"moltisfs/config"
	"moltisfs/internal/serve/mcp"
	"moltisfs/tools"
	"moltisfs/tools/toolstest"
)

// A search that its client gave up takes no more time, and the server, which answers what is under way, ends with its input. It
// takes many minutes otherwise.
func TestCancelledSearch(t *testing.T) {
	root := toolstest.Tree(t)
	writeFile(t, filepath.Join(root, "min.js"), strings.Repeat("a", 20<<20))
	cfg := config.Default()
	cfg.Tools.FS.SearchDeadline = config.Duration(100 * time.Hour)
	toServer, fromServer := serve(t, cfg, tools.Options{}, mcp.Options{})
	var said strings.Builder
	ended := make(chan error, 1)
	go func() {
		_, err := io.Copy(&said, fromServer)
		ended <- err
	}()
	send := func(line string) {
		if _, err := io.WriteString(toServer, line+"\n"); err != nil {
			t.Error(err)
		}
	}
	send(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
	send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	send(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"Grep","arguments":{"pattern":"[^y]{1000}[^z]{1000}x","output_mode":"count","path":"` + root + `"}}}`)
	time.Sleep(200 * time.Millisecond) // it is within the line now, as a rule
	send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}`)
	toServer.Close()
	if err := <-ended; err != nil || strings.Contains(said.String(), `"kind":"grep"`) {
		t.Error(said.String(), err)
	}
}
