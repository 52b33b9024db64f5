package jettson

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"moltisfs/config"
	"moltisfs/internal/approval"
	"moltisfs/internal/dialect"
	"moltisfs/internal/engine"
	"moltisfs/internal/testdir"
)

var must = testdir.Must

// opened is the dialect over an engine of its own; dir holds the workspaces, or is the workspace.
func opened(t *testing.T, change func(*config.Config)) (d *Dialect, dir string) {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	cfg := config.Default()
	cfg.Tools.FS.RequireApproval = false
	cfg.Tools.FS.WorkspaceRoot = dir
	change(&cfg)
	if cfg.Tools.Jettson.Workspaces != "" {
		cfg.Tools.Jettson.Workspaces = dir
	}
	return over(t, cfg, filepath.Join(t.TempDir(), "data")), dir
}

// over is the dialect over an engine with this data directory.
func over(t *testing.T, cfg config.Config, data string) *Dialect {
	t.Helper()
	e, err := engine.Open(cfg, engine.Host{DataDir: data})
	must(t, err)
	t.Cleanup(func() { _ = e.Close() })
	d, err := Over(e, cfg.Tools.Jettson)
	must(t, err)
	return d
}

// said is the answer of one call, as JSON.
func said(t *testing.T, d *Dialect, c dialect.Call, tool string, args any) string {
	t.Helper()
	raw, ok := args.(string)
	if !ok {
		b, err := json.Marshal(args)
		must(t, err)
		raw = string(b)
	}
	c.Tool, c.Args = "jettson_files_"+tool, json.RawMessage(raw)
	a, err := d.Call(t.Context(), c)
	if err != nil {
		t.Fatalf("%s %s: %v", tool, raw, err)
	}
	return a.Text()
}

func put(t *testing.T, name, content string) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(name), 0o755))
	must(t, os.WriteFile(name, []byte(content), 0o644))
}

// TestOddIsTold: characters and names that are not what they seem are told, where there are some.
func TestOddIsTold(t *testing.T) {
	t.Parallel()
	d, dir := opened(t, func(*config.Config) {})
	put(t, filepath.Join(dir, "a\u202eb"), "1\n2\u200b\u200b\n")
	put(t, filepath.Join(dir, "plain/c"), "1\n")
	for _, c := range []struct{ tool, path, want string }{
		{"read", "a\u202eb", `"hidden_chars":2,"hidden_lines":[2]}`}, {"read", "plain/c", `"truncated":false}`},
		{"list", ".", `"odd_names":["\"a\\u202eb\""]}`}, {"list", "plain", `"is_dir":false}]}`},
	} {
		if got := said(t, d, dialect.Call{}, c.tool, map[string]any{"path": c.path}); !strings.HasSuffix(got, c.want) {
			t.Errorf("%s %q: %s", c.tool, c.path, got)
		}
	}
}

// Each row of the page's text, word for word, and what it leaves out in its manner.
func TestPage(t *testing.T) {
	t.Parallel()
	d, dir := opened(t, func(*config.Config) {})
	put(t, dir+"/data.csv", "id,name,email\n")
	put(t, dir+"/scratch/deep/notes.md", "n")
	put(t, dir+"/latin", "caf\xe9")
	put(t, dir+"/large", strings.Repeat("x", maxRead-1)+"é and more")
	put(t, dir+"/exact", strings.Repeat("x", maxRead))
	outside := filepath.Join(t.TempDir(), "passwd")
	put(t, outside, "root")
	for name, to := range map[string]string{"out": outside, "gone": "nothing", "to": "data.csv"} {
		must(t, os.Symlink(to, dir+"/"+name))
	}
	const no = `{"error":"Jettson Files rejected the operation: `
	const escapes = no + `path escapes /workspace or is empty."}`
	for _, c := range []struct{ tool, args, want string }{
		{"read", `{"path":"data.csv"}`, `{"path":"data.csv","content":"id,name,email\n","size_bytes":14,"truncated":false}`},
		{"read", `{"path":"/workspace/data.csv"}`, `{"path":"/workspace/data.csv","content":"id,name,email\n","size_bytes":14,"truncated":false}`},
		{"read", `{"path":"./to"}`, `{"path":"./to","content":"id,name,email\n","size_bytes":14,"truncated":false}`},
		{"read", `{"path":"../etc/passwd"}`, escapes},
		{"read", `{"path":"/"}`, escapes},
		{"read", `{"path":"/tmp/foo"}`, escapes},
		{"read", `{"path":"/workspaces/foo"}`, escapes},
		{"read", `{"path":""}`, escapes},
		{"read", `{"path":"a/../data.csv"}`, escapes},
		{"read", `{"path":"a\u0000b"}`, escapes},
		{"read", `{"path":"out"}`, escapes},
		{"read", `{"path":"none"}`, no + `no such file: none"}`},
		{"read", `{"path":"gone"}`, no + `no such file: gone"}`},
		{"read", `{"path":"none/none"}`, no + `no such file: none/none"}`},
		{"read", `{"path":"scratch"}`, no + `scratch is a directory — use jettson_files_list for that."}`},
		{"read", `{"path":"data.csv/x"}`, no + `data.csv/x, or a part of it, is a file, not a directory — check the path with jettson_files_list."}`},
		{"read", `{"path":"latin"}`, no + `latin is not UTF-8 text — use Jettson Shell for that."}`},
		{"read", `{}`, no + `missing: path`},
		{"read", `{"file":"x"}`, no + ``},
		{"write", `{"path":"scratch/new/notes.md","content":"hé"}`, `{"path":"scratch/new/notes.md","bytes_written":3}`},
		{"write", `{"path":"data.csv","content":""}`, `{"path":"data.csv","bytes_written":0}`},
		{"write", `{"path":"latin","content":"café"}`, `{"path":"latin","bytes_written":5}`},
		{"write", `{"path":"../x","content":""}`, escapes},
		{"write", `{"path":"out","content":""}`, no + `out is a symbolic link, and links are not written through — use the path of the real file."}`},
		{"write", `{"path":".","content":""}`, no + `. is a directory — name a file in it."}`},
		{"write", `{"path":"scratch","content":""}`, no + `scratch is a directory, not a regular file — list it with jettson_files_list."}`},
		{"write", `{"path":"data.csv/x","content":""}`, no + `data.csv/x, or a part of it, is a file, not a directory — check the path with jettson_files_list."}`},
		{"list", `{"path":"scratch"}`, `{"path":"scratch","entries":[{"name":"deep","size_bytes":0,"is_dir":true},{"name":"new","size_bytes":0,"is_dir":true}]}`},
		{"list", `{"path":"scratch","limit":1}`, `{"path":"scratch","entries":[{"name":"deep","size_bytes":0,"is_dir":true}],"left_out":1,"next_offset":1}`},
		{"list", `{"path":"scratch","limit":"5","offset":1}`, `{"path":"scratch","entries":[{"name":"new","size_bytes":0,"is_dir":true}]}`},
		{"list", `{"path":"none"}`, no + `no such directory: none"}`},
		{"list", `{"path":"data.csv"}`, no + `data.csv is a file — use jettson_files_read for that."}`},
		{"list", `{"path":""}`, escapes},
		{"list", `{"path":"/"}`, escapes},
		{"delete", `{"path":"scratch"}`, no + `scratch is a directory — use Jettson Shell with rmdir for that."}`},
		{"delete", `{"path":"."}`, no + `. is a directory — use Jettson Shell with rmdir for that."}`},
		{"delete", `{"path":"none"}`, no + `no such file: none"}`},
		{"delete", `{"path":"/etc/passwd"}`, escapes},
		{"delete", `{"path":"to"}`, `{"path":"to","deleted":true}`},
		{"delete", `{"path":"scratch/new/notes.md"}`, `{"path":"scratch/new/notes.md","deleted":true}`},
	} {
		got := said(t, d, dialect.Call{}, c.tool, c.args)
		if got != c.want && (strings.HasSuffix(c.want, "}") || !strings.HasPrefix(got, c.want)) {
			t.Errorf("%s %s\n got %s\nwant %s", c.tool, c.args, got, c.want)
		}
		if strings.Contains(got, dir) {
			t.Errorf("%s %s names a path of the host: %s", c.tool, c.args, got)
		}
	}
	if b, err := os.ReadFile(outside); err != nil || string(b) != "root" {
		t.Errorf("outside: %q, %v", b, err)
	}
	for path, want := range map[string]string{
		"large": `"size_bytes":1048586,"truncated":true}`, "exact": `"size_bytes":1048576,"truncated":false}`,
	} {
		got := said(t, d, dialect.Call{}, "read", map[string]string{"path": path})
		if !strings.HasSuffix(got, want) || strings.Contains(got, "\ufffd") {
			t.Errorf("%s ends with %s", path, got[len(got)-80:])
		}
	}
	tooMuch := said(t, d, dialect.Call{}, "write", map[string]string{"path": "big", "content": strings.Repeat("x", maxWrite+1)})
	if !strings.HasPrefix(tooMuch, no+"the content is 5242881 bytes") {
		t.Error(tooMuch)
	}
	if got := said(t, d, dialect.Call{}, "write", map[string]string{"path": "big", "content": strings.Repeat("x", maxWrite)}); got != `{"path":"big","bytes_written":5242880}` {
		t.Error(got)
	}
}

// counted approves everything, and counts.
type counted struct{ asked int }

func (c *counted) Ask(context.Context, approval.Question) (approval.Answer, error) {
	c.asked++
	return approval.Answer{Decision: approval.Approved}, nil
}

// Principals do not see each other's workspace, nor sessions where each has one, which goes to the
// trash with its session.
func TestWorkspaces(t *testing.T) {
	t.Parallel()
	d, dir := opened(t, func(cfg *config.Config) {
		cfg.Tools.FS.RequireApproval = true // the workspace itself is nobody's to approve
		cfg.Tools.Jettson = config.Jettson{Workspaces: "set", PerSession: true}
	})
	yes := &counted{}
	a := dialect.Call{Principal: "ann", Session: "1", Approver: yes}
	b := dialect.Call{Principal: "ann", Session: "2", Approver: yes}
	odd := dialect.Call{Principal: "../ann", Session: "1", Approver: yes}
	if got := said(t, d, a, "list", `{}`); got != `{"path":".","entries":[]}` {
		t.Error(got)
	}
	if got := said(t, d, a, "write", `{"path":"f","content":"1"}`); got != `{"path":"f","bytes_written":1}` {
		t.Error(got)
	}
	if yes.asked != 1 {
		t.Errorf("asked %d times about one file", yes.asked)
	}
	for _, c := range []dialect.Call{b, odd} {
		if got := said(t, d, c, "read", `{"path":"f"}`); !strings.Contains(got, "no such file") {
			t.Error(got)
		}
		if got := said(t, d, c, "write", `{"path":"g","content":"2"}`); !strings.Contains(got, "bytes_written") {
			t.Error(got)
		}
	}
	if got := said(t, d, dialect.Call{Principal: "ann", Session: "1"}, "write", `{"path":"h","content":""}`); !strings.Contains(got, "needs approval") {
		t.Error(got)
	}
	narrow := dialect.Call{Principal: "ann", Session: "1", Scope: &dialect.Scope{Readable: []string{dir + "/other"}}}
	if got := said(t, d, narrow, "read", `{"path":"f"}`); !strings.Contains(got, "escapes") {
		t.Error(got)
	}
	must(t, d.EndSession(t.Context(), "ann", "1", false))
	if err := d.EndSession(t.Context(), "ann", "1", false); err != nil { // it is gone already
		t.Error(err)
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 2 {
		t.Errorf("%v, %v", left, err)
	}
	for _, e := range left {
		if e.Name() == "ann" || strings.Contains(e.Name(), "..") {
			t.Errorf("a workspace is called %s", e.Name())
		}
	}
}

// Two servers that share a session share its workspace: the last of them moves it to the trash. One
// that never used it leaves it alone.
func TestSharedWorkspace(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	cfg, data := config.Default(), filepath.Join(t.TempDir(), "data")
	cfg.Tools.FS.RequireApproval = false
	cfg.Tools.Jettson = config.Jettson{Workspaces: dir, PerSession: true}
	a, b, idle := over(t, cfg, data), over(t, cfg, data), over(t, cfg, data)
	who := dialect.Call{Principal: "ann", Session: "1"}
	if got := said(t, a, who, "write", `{"path":"f","content":"1"}`); !strings.Contains(got, "bytes_written") {
		t.Fatal(got)
	}
	if got := said(t, b, who, "read", `{"path":"f"}`); !strings.Contains(got, `"content":"1"`) {
		t.Fatal(got)
	}
	for i, d := range []*Dialect{idle, a, b} {
		must(t, d.EndSession(t.Context(), "ann", "1", false))
		_, err := os.Stat(dir + "/ann%1/f")
		if there := err == nil; there != (i < 2) {
			t.Errorf("after %d servers ended the session: %v", i+1, err)
		}
	}
	if got := said(t, a, who, "read", `{"path":"f"}`); !strings.Contains(got, "no such file") {
		t.Error(got)
	}
}

// A configuration without a place for workspaces, and an unknown tool.
func TestRefusedBeforeAnything(t *testing.T) {
	t.Parallel()
	d, _ := opened(t, func(cfg *config.Config) { cfg.Tools.Policy.Deny = []string{"Write", "Edit", "MultiEdit"} })
	var names []string
	for _, def := range d.Definitions() {
		names = append(names, def.Name)
	}
	if got := strings.Join(names, " "); got != "jettson_files_read jettson_files_list" {
		t.Errorf("read-only by names leaves %s", got)
	}
	if _, err := d.Call(t.Context(), dialect.Call{Tool: "jettson_files_delete"}); err == nil {
		t.Error("a denied tool was called")
	}
	e, err := engine.Open(config.Default(), engine.Host{DataDir: filepath.Join(t.TempDir(), "data")})
	must(t, err)
	defer e.Close()
	if _, err := Over(e, config.Jettson{}); err != ErrNoWorkspace {
		t.Error(err)
	}
}

// A write is the content byte for byte, whatever line ends, mark and kind the file had.
func TestWriteIsAsSent(t *testing.T) {
	t.Parallel()
	d, dir := opened(t, func(*config.Config) {})
	for name, was := range map[string]string{"crlf": "a\r\nb\r\n", "mark": "\xef\xbb\xbfa\n", "a.png": "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"} {
		put(t, filepath.Join(dir, name), was)
		got := said(t, d, dialect.Call{}, "write", map[string]any{"path": name, "content": "é\nc\n"})
		if b, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(b) != "é\nc\n" || !strings.Contains(got, `"bytes_written":5`) {
			t.Errorf("%s: %s, and the disk has %q", name, got, b)
		}
	}
}
