package tools_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strings"

	"moltisfs/config"
	"moltisfs/tools"
)

// A host that has a client on a pair of streams serves its suite there.
func ExampleServeMCP() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	dir, _ = filepath.EvalSymlinks(dir)
	work := filepath.Join(dir, "work")
	if err := os.Mkdir(work, 0o755); err != nil {
		log.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(work, "a.txt"), []byte("hello\n"), 0o644); err != nil {
		log.Fatal(err)
	}
	cfg := config.Default()
	cfg.Tools.FS.AllowPaths = []string{work + "/**"}
	suite, err := tools.Open(cfg, tools.Options{DataDir: filepath.Join(dir, "data"), Program: tools.Program{Name: "example 1.0"}})
	if err != nil {
		log.Fatal(err)
	}
	defer suite.Close()

	in := strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"probe","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"Glob","arguments":{"pattern":"*.txt","path":"` + work + `"}}}
`)
	var out bytes.Buffer
	if err := tools.ServeMCP(context.Background(), suite.Dialect(), in, &out, tools.MCPOptions{Version: "1.0"}); err != nil {
		log.Fatal(err)
	}
	for line := range strings.Lines(out.String()) {
		var m struct {
			ID     int
			Result struct {
				ServerInfo struct{ Name string }
				IsError    bool
			}
		}
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			log.Fatal(err)
		}
		fmt.Println(m.ID, m.Result.ServerInfo.Name, m.Result.IsError, strings.Contains(line, "a.txt"))
	}
	// Output:
	// 1 moltis-fs false false
	// 2  false true
}
