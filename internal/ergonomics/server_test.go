package ergonomics

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

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

// openInside opens one suite for all cases that have the same root.
func openInside(t *testing.T) func(root string) (Server, error) {
	var s *tools.Suite
	n := 0
	return func(root string) (Server, error) {
		if n++; s != nil {
			return inside{s, fmt.Sprint("s", n)}, nil
		}
		cfg := config.Default()
		fs := &cfg.Tools.FS
		fs.WorkspaceRoot, fs.AllowPaths, fs.RequireApproval = root, []string{root + "/**"}, false
		fs.TrackReads, fs.MustReadBeforeWrite = true, true
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

// beside is a server of MCP in another process.
type beside struct {
	cmd   *exec.Cmd
	in    io.WriteCloser
	out   *bufio.Reader
	id    int
	names func(tool string, args map[string]any) (string, map[string]any, bool)
}

// start starts a server; names, where given, writes our calls as that server takes them.
func start(cmd *exec.Cmd, names func(string, map[string]any) (string, map[string]any, bool)) (*beside, error) {
	s := &beside{cmd: cmd, names: names}
	var err error
	if s.in, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	s.out = bufio.NewReaderSize(out, 1<<20)
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	_, err = s.ask("initialize", map[string]any{"protocolVersion": "2025-06-18", "capabilities": map[string]any{},
		"clientInfo": map[string]any{"name": "ergonomics", "version": "1"}})
	if err == nil {
		_, err = io.WriteString(s.in, `{"jsonrpc":"2.0","method":"notifications/initialized"}`+"\n")
	}
	return s, err
}

func (s *beside) ask(method string, params any) (map[string]any, error) {
	s.id++
	b, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": s.id, "method": method, "params": params})
	if err != nil {
		return nil, err
	}
	if _, err := s.in.Write(append(b, '\n')); err != nil {
		return nil, err
	}
	for {
		line, err := s.out.ReadBytes('\n')
		if err != nil {
			return nil, err
		}
		var m struct {
			ID     any            `json:"id"`
			Result map[string]any `json:"result"`
			Error  map[string]any `json:"error"`
		}
		if json.Unmarshal(line, &m) != nil || fmt.Sprint(m.ID) != fmt.Sprint(s.id) {
			continue
		}
		if m.Error != nil {
			return map[string]any{"isError": true, "content": []any{map[string]any{"text": rendered(m.Error)}}}, nil
		}
		return m.Result, nil
	}
}

func (s *beside) Call(tool string, args map[string]any) (a Answer, err error) {
	if s.names != nil {
		var ok bool
		if tool, args, ok = s.names(tool, args); !ok {
			return Answer{Kind: "unsupported", Refused: true, Body: map[string]any{}}, nil
		}
	}
	r, err := s.ask("tools/call", map[string]any{"name": tool, "arguments": args})
	if err != nil {
		return a, err
	}
	a.Refused, _ = r["isError"].(bool)
	a.Body, _ = r["structuredContent"].(map[string]any)
	a.Kind, _ = a.Body["kind"].(string)
	a.Bytes = len(rendered(a.Body))
	if content, ok := r["content"].([]any); ok && len(content) > 0 {
		text, _ := content[0].(map[string]any)["text"].(string)
		a.Text = len(text)
		if strings.HasPrefix(text, "Error") { // as some servers of files say it
			a.Refused = true
		}
	}
	return a, nil
}

func (s *beside) Close() {
	s.in.Close()
	ended := make(chan struct{})
	go func() { s.cmd.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-time.After(3 * time.Second):
		s.cmd.Process.Kill()
		<-ended
	}
}

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
