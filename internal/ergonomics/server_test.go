package ergonomics

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"moltisfs/config"
	"moltisfs/tools"
)

func rendered(v any) string {
	b, _ := json.Marshal(v)
	return string(b)
}

// inside is the suite of this commit, in this process; each case has a session of its own.
type inside struct {
	*tools.Suite
	session string
}

// openInside opens one suite for all cases that have the same root, with edit_matching as given.
func openInside(t *testing.T, matching string) func(root string) (Server, error) {
	var s *tools.Suite
	n := 0
	return func(root string) (Server, error) {
		if n++; s != nil {
			return inside{s, fmt.Sprint("s", n)}, nil
		}
		cfg := config.Default()
		fs := &cfg.Tools.FS
		fs.WorkspaceRoot, fs.AllowPaths, fs.RequireApproval = root, []string{root + "/**"}, false
		fs.TrackReads, fs.MustReadBeforeWrite, fs.EditMatching = true, true, matching
		var err error
		if s, err = tools.Open(cfg, tools.Options{DataDir: filepath.Join(filepath.Dir(root), "data")}); err == nil {
			t.Cleanup(func() { s.Close() })
		}
		return inside{s, fmt.Sprint("s", n)}, err
	}
}

func (s inside) Call(tool string, args map[string]any) (a Answer, err error) {
	raw, err := json.Marshal(args)
	if err != nil {
		return a, err
	}
	p, err := s.Suite.Call(context.Background(), tools.Call{Session: s.session, Tool: tool, Args: raw})
	if err != nil {
		return a, err
	}
	body, err := tools.Encode(p)
	if err != nil {
		return a, err
	}
	a = Answer{Kind: p.Kind(), Refused: tools.Refused(p), Bytes: len(body), Text: len(p.Text())}
	return a, json.Unmarshal(body, &a.Body)
}

func (inside) Close() {}

// beside is the reference server of MCP for files, in another process, for all cases. It knows no reads and few arguments.
type beside struct{ *sdk.ClientSession }

func openBeside(t *testing.T, npx string) func(root string) (Server, error) {
	var s *sdk.ClientSession
	return func(root string) (_ Server, err error) {
		if s == nil {
			client := sdk.NewClient(&sdk.Implementation{Name: "ergonomics", Version: "1"}, nil)
			cmd := exec.Command(npx, "-y", "@modelcontextprotocol/server-filesystem", root)
			if s, err = client.Connect(t.Context(), &sdk.CommandTransport{Command: cmd}, nil); err == nil {
				t.Cleanup(func() { s.Close() })
			}
		}
		return beside{s}, err
	}
}

func (s beside) Call(tool string, args map[string]any) (a Answer, err error) {
	tool, args, ok := asFilesystem(tool, args)
	if !ok {
		return Answer{Kind: "unsupported", Refused: true, Body: map[string]any{}}, nil
	}
	r, err := s.CallTool(context.Background(), &sdk.CallToolParams{Name: tool, Arguments: args})
	if wire, ok := errors.AsType[*jsonrpc.Error](err); ok {
		return Answer{Refused: true, Text: len(wire.Message)}, nil
	}
	if err != nil {
		return a, err
	}
	a.Refused = r.IsError
	a.Body, _ = r.StructuredContent.(map[string]any)
	a.Bytes = len(rendered(a.Body))
	if len(r.Content) > 0 {
		if text, ok := r.Content[0].(*sdk.TextContent); ok {
			a.Text = len(text.Text)
			a.Refused = a.Refused || strings.HasPrefix(text.Text, "Error") // as some servers of files say it
		}
	}
	return a, nil
}

func (beside) Close() {}

func asFilesystem(tool string, a map[string]any) (string, map[string]any, bool) {
	one := func(m map[string]any) map[string]any {
		return map[string]any{"oldText": m["old_string"], "newText": m["new_string"]}
	}
	switch tool {
	case "Read":
		return "read_text_file", map[string]any{"path": a["file_path"]}, true
	case "Write":
		return "write_file", map[string]any{"path": a["file_path"], "content": a["content"]}, true
	case "Edit":
		return "edit_file", map[string]any{"path": a["file_path"], "edits": []any{one(a)}}, true
	case "MultiEdit":
		var edits []any
		list, _ := a["edits"].([]any)
		for _, e := range list {
			edits = append(edits, one(e.(map[string]any)))
		}
		return "edit_file", map[string]any{"path": a["file_path"], "edits": edits}, true
	}
	return "", nil, false
}
