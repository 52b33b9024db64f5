package main

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// Several changes of one script wait for a person, over MCP: all at the same time where a server may
// send requests, one after the other where calls are held. Each gets its own answer, in whatever
// order they come; what was refused is an exception that says what to do.
func TestScriptAsksOverMCP(t *testing.T) {
	t.Parallel()
	for _, revision := range []string{"2025-11-25", "2026-07-28"} {
		t.Run(revision, func(t *testing.T) { t.Parallel(); scriptAsks(t, revision) })
	}
}

func scriptAsks(t *testing.T, revision string) {
	root, data := t.TempDir(), filepath.Join(t.TempDir(), "data")
	config := filepath.Join(t.TempDir(), "moltis.toml")
	must(t, os.WriteFile(config, []byte("[tools.js]\nfilesystem = true\n"), 0o600))
	var mu sync.Mutex
	var asked []string
	all := make(chan struct{}) // closed when every question is there
	client := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, &sdk.ClientOptions{
		ElicitationHandler: func(_ context.Context, r *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
			first, _, _ := strings.Cut(r.Params.Message, " +")
			name := filepath.Base(first)
			mu.Lock()
			asked = append(asked, name[:1])
			if len(asked) == 4 {
				close(all)
			}
			mu.Unlock()
			if revision < "2026" {
				<-all
			}
			if name[:1] == "c" {
				return &sdk.ElicitResult{Action: "decline"}, nil // by itself: no person is so fast
			}
			return &sdk.ElicitResult{Action: "accept"}, nil
		},
	})
	cmd := exec.Command(binary(t), "mcp", "--root", root, "--config", config, "--data-dir", data, "--dialect", "jsfs")
	withoutTerminal(cmd)
	s, err := client.Connect(t.Context(), &sdk.CommandTransport{Command: cmd}, &sdk.ClientSessionOptions{ProtocolVersion: revision})
	must(t, err)
	defer s.Close() //nolint:errcheck // it is only ours
	const code = `const ended = [];
const all = await Promise.allSettled([..."abcd"].map((n) => fs.writeFile(n + ".txt", n).finally(() => ended.push(n))));
console.log(all.map((r) => r.status === "fulfilled" ? "made" : r.reason.code + " " + r.reason.message).join("|"));
console.log((await fs.readdir(".")).sort().join());
console.log(ended.sort().join(""));`
	r, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: "run_js", Arguments: map[string]any{"code": code, "timeout_secs": 20}})
	must(t, err)
	raw, _ := json.Marshal(r.Content)
	var told []struct{ Text string }
	var said struct {
		Output, Error string
		Changed       []string
	}
	if err := json.Unmarshal(raw, &told); err != nil || len(told) == 0 || json.Unmarshal([]byte(told[0].Text), &said) != nil {
		t.Fatalf("%v: %s", err, raw)
	}
	const no = "fs.writeFile: c.txt: the change needs approval, and nobody can be asked; nothing was changed: nobody was asked: the client answered the question by itself, as clients do that run without a person (headless, in CI); have the operator start the server with --approve yes, which leaves it to the client's own permissions, or with --approve queue, or set require_approval = false in [tools.fs]"
	if want := "made|made|APPROVAL_DENIED " + no + "|made\na.txt,b.txt,d.txt\nabcd\n"; said.Output != want || said.Error != "" {
		t.Errorf("%q %q, want %q", said.Output, said.Error, want)
	}
	if slices.Sort(asked); !slices.Equal(asked, []string{"a", "b", "c", "d"}) || len(said.Changed) != 3 {
		t.Errorf("asked %q, %+v", asked, said)
	}
	for n, want := range map[string]string{"a": "a", "b": "b", "c": "", "d": "d"} {
		if got, _ := os.ReadFile(filepath.Join(root, n+".txt")); string(got) != want {
			t.Errorf("%s.txt holds %q", n, got)
		}
	}
}
