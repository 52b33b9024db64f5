package ergonomics

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
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

// beside is a server of MCP in another process. names, where given, writes our calls as that server takes them.
type beside struct {
	*sdk.ClientSession
	names func(tool string, args map[string]any) (string, map[string]any, bool)
}

func start(cmd *exec.Cmd, names func(string, map[string]any) (string, map[string]any, bool)) (*beside, error) {
	client := sdk.NewClient(&sdk.Implementation{Name: "ergonomics", Version: "1"}, nil)
	s, err := client.Connect(context.Background(), &sdk.CommandTransport{Command: cmd}, nil)
	return &beside{s, names}, err
}

func (s *beside) Call(tool string, args map[string]any) (a Answer, err error) {
	if s.names != nil {
		var ok bool
		if tool, args, ok = s.names(tool, args); !ok {
			return Answer{Kind: "unsupported", Refused: true, Body: map[string]any{}}, nil
		}
	}
	r, err := s.CallTool(context.Background(), &sdk.CallToolParams{Name: tool, Arguments: args})
	if err != nil {
		if wire, ok := errors.AsType[*jsonrpc.Error](err); ok {
			return Answer{Refused: true, Text: len(wire.Message)}, nil
		}
		return a, err
	}
	a.Refused = r.IsError
	a.Body, _ = r.StructuredContent.(map[string]any)
	a.Kind, _ = a.Body["kind"].(string)
	a.Bytes = len(rendered(a.Body))
	if len(r.Content) > 0 {
		if text, ok := r.Content[0].(*sdk.TextContent); ok {
			a.Text = len(text.Text)
			a.Refused = a.Refused || strings.HasPrefix(text.Text, "Error") // as some servers of files say it
		}
	}
	return a, nil
}

func (s *beside) Close() { _ = s.ClientSession.Close() }

// binary starts another build of moltis-fs.
func binary(program string) func(root string) (Server, error) {
	return func(root string) (Server, error) {
		dir := filepath.Dir(root)
		text := fmt.Sprintf("[tools.fs]\nworkspace_root = %q\nallow_paths = [%q]\nrequire_approval = false\n"+
			"track_reads = true\nmust_read_before_write = true\n", root, root+"/**")
		file := filepath.Join(dir, "moltis.toml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			return nil, err
		}
		if err := os.RemoveAll(filepath.Join(dir, "data")); err != nil {
			return nil, err
		}
		return start(exec.Command(program, "mcp", "--config", file, "--data-dir",
			filepath.Join(dir, "data"), "--structured", "always"), nil)
	}
}

// filesystem starts the reference server of MCP for files, once. It knows no reads and few
// arguments.
func filesystem(t *testing.T, program []string) func(root string) (Server, error) {
	var s *beside
	return func(root string) (Server, error) {
		if s != nil {
			return lasting{s}, nil
		}
		var err error
		if s, err = start(exec.Command(program[0], append(program[1:], root)...), asFilesystem); err == nil {
			t.Cleanup(s.Close)
		}
		return lasting{s}, err
	}
}

// lasting is a server that outlives a case.
type lasting struct{ *beside }

func (lasting) Close() {}

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
