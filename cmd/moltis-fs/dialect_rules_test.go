package main

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"moltisfs/config"
	"moltisfs/internal/approval"
	"moltisfs/internal/dialect"
	"moltisfs/internal/dialect/acp"
	"moltisfs/internal/dialect/jsfs"
	"moltisfs/internal/engine"
)

// ruled are calls that make a file: each breaks a rule of the engine or, where it is allowed, breaks none. R is the root.
// a has 11 bytes, big 40, one.png is a picture, n.ipynb a notebook, code.go a program.
var ruled = []struct {
	limit               int64 // max_write_bytes
	dialect, tool, args string
	allowed             bool
}{
	// the size, which nothing lifts
	{16, "tools", "Write", `{"file_path":"R/new","content":"01234567890123456"}`, false},
	{16, "tools", "Write", `{"file_path":"R/new","content":"0123456789012345"}`, true},
	{16, "tools", "Write", `{"file_path":"R/a","content":"01234567890123456","acknowledge":true}`, false},
	{16, "tools", "Edit", `{"file_path":"R/a","old_string":"345","new_string":"3456789012345"}`, false},
	{16, "tools", "Edit", `{"file_path":"R/a","old_string":"345","new_string":"6"}`, true},
	{16, "tools", "Edit", `{"file_path":"R/big","old_string":"BB","new_string":"b"}`, false}, // smaller, but larger than the limit
	{16, "tools", "Edit", `{"file_path":"R/new","old_string":"","new_string":"01234567890123456"}`, false},
	{16, "tools", "MultiEdit", `{"file_path":"R/a","edits":[{"old_string":"1","new_string":"1111"},{"old_string":"9","new_string":"9999"}]}`, false},
	{16, "tools", "NotebookEdit", `{"notebook_path":"R/n.ipynb","cell_id":"c1","new_source":"x"}`, false},
	{16, "tools", "Write", `{"file_path":"R/big","content":"b"}`, true},
	{16, "capability", "filesystem.write", `{"path":"R/new","content":"01234567890123456"}`, false},
	{16, "capability", "filesystem.write", `{"path":"R/new","content":"MDEyMzQ1Njc4OTAxMjM0NTYA","encoding":"binary"}`, false},
	{16, "capability", "filesystem.edit", `{"path":"R/a","find":"345","replace":"3456789012345"}`, false},
	{16, "capability", "filesystem.append", `{"path":"R/a","content":"0123456"}`, false},
	{16, "capability", "filesystem.append", `{"path":"R/a","content":"01234"}`, true},
	{16, "capability", "filesystem.append", `{"path":"R/new","content":"01234567890123456"}`, false},
	{16, "capability", "filesystem.copy", `{"source":"R/big","destination":"R/new"}`, false},
	{16, "capability", "filesystem.copy", `{"source":"R/a","destination":"R/new"}`, true},
	{16, "capability", "filesystem.move", `{"source":"R/big","destination":"R/new"}`, true},
	{16, "jettson", "jettson_files_write", `{"path":"new","content":"01234567890123456"}`, false},
	{16, "jettson", "jettson_files_write", `{"path":"new","content":"0123456789012345"}`, true},
	{16, "acp", acp.Write, `{"sessionId":"s","path":"R/new","content":"01234567890123456"}`, false},
	{16, "acp", acp.Write, `{"sessionId":"s","path":"R/new","content":"0123456789012345"}`, true},
	{16, "jsfs", "run_js", `{"code":"await fs.writeFile('new', '01234567890123456')"}`, false},
	{16, "jsfs", "run_js", `{"code":"await fs.appendFile('a', '0123456')"}`, false},
	{16, "jsfs", "run_js", `{"code":"await fs.appendFile('new', '01234567890123456')"}`, false},
	{16, "jsfs", "run_js", `{"code":"await fs.copyFile('big', 'new')"}`, false},
	{16, "jsfs", "run_js", `{"code":"await fs.rename('big', 'new')"}`, true},

	// the kind, which jettson and jsfs leave to the answerer
	{0, "tools", "Write", `{"file_path":"R/one.png","content":"text"}`, false},
	{0, "tools", "Write", `{"file_path":"R/one.png","content":"text","acknowledge":true}`, true},
	{0, "tools", "Edit", `{"file_path":"R/one.png","old_string":"PNG","new_string":"GIF"}`, false},
	{0, "tools", "MultiEdit", `{"file_path":"R/one.png","edits":[{"old_string":"PNG","new_string":"GIF"}]}`, false},
	{0, "capability", "filesystem.write", `{"path":"R/one.png","content":"text"}`, false},
	{0, "capability", "filesystem.write", `{"path":"R/one.png","content":"iVBORw0KGgo=","encoding":"binary"}`, true},
	{0, "capability", "filesystem.edit", `{"path":"R/one.png","find":"PNG","replace":"GIF"}`, false},
	{0, "acp", acp.Write, `{"sessionId":"s","path":"R/one.png","content":"text"}`, false},
	{0, "acp", acp.Write, `{"sessionId":"s","path":"R/one.png","content":""}`, false},
	{0, "acp", acp.Write, `{"sessionId":"s","path":"R/n.ipynb","content":"text"}`, false},
	{0, "jettson", "jettson_files_write", `{"path":"one.png","content":"text"}`, true},
	{0, "jsfs", "run_js", `{"code":"await fs.writeFile('one.png', 'text')"}`, true},

	// accidents, which only edits and the tools know
	{0, "tools", "Write", `{"file_path":"R/a","content":""}`, false},
	{0, "tools", "Write", `{"file_path":"R/code.go","content":"// ... rest"}`, false},
	{0, "tools", "Edit", `{"file_path":"R/code.go","old_string":"\ta()\n\tb()\n\tc()\n\td()\n","new_string":"\t// ... rest\n"}`, false},
	{0, "capability", "filesystem.edit", `{"path":"R/code.go","find":"\ta()\n\tb()\n\tc()\n\td()\n","replace":"\t// ... rest\n"}`, false},
	{0, "capability", "filesystem.write", `{"path":"R/a","content":""}`, true},
	{0, "acp", acp.Write, `{"sessionId":"s","path":"R/a","content":""}`, true},
	{0, "jsfs", "run_js", `{"code":"await fs.writeFile('a', '')"}`, true},
}

// A change that breaks a rule is refused in every dialect, and leaves everything as it was.
func TestRulesHoldInEveryDialect(t *testing.T) {
	for _, c := range ruled {
		d, root := ruledBy(t, c.dialect, c.limit)
		before := fmt.Sprint(treeOf(t, root))
		answer := answered(t, d, c.tool, strings.ReplaceAll(c.args, `"R`, `"`+root))
		if changed := fmt.Sprint(treeOf(t, root)) != before; changed != c.allowed {
			t.Errorf("%s %s: changed %v: %s", c.tool, c.args, changed, answer)
		}
	}
}

// A limit that is set later does not keep a file from coming back.
func TestRestoresKnowNoLimit(t *testing.T) {
	for dialectName, calls := range map[string][2][2]string{
		"tools":      {{"Write", `{"file_path":"R/big","content":"b"}`}, {"checkpoint_restore", `{"id":"undo"}`}},
		"capability": {{"filesystem.delete", `{"path":"R/big"}`}, {"filesystem.restore", ``}},
	} {
		d, root := ruledBy(t, dialectName, 16)
		before, answer := fmt.Sprint(treeOf(t, root)), ""
		for _, call := range calls {
			if call[1] == "" {
				var r struct {
					Path string `json:"trash_path"`
				}
				must(t, json.Unmarshal([]byte(answer), &r))
				call[1] = `{"path":"` + r.Path + `"}`
			}
			answer = answered(t, d, call[0], strings.ReplaceAll(call[1], `"R`, `"`+root))
		}
		if now := fmt.Sprint(treeOf(t, root)); now != before {
			t.Errorf("%s: %s leaves %s", dialectName, answer, now)
		}
	}
}

type answerer interface {
	Call(context.Context, dialect.Call) (dialect.Answer, error)
}

// dialectsOver opens an engine over a fresh tree with files. by gives a dialect over it by its name.
func dialectsOver(t *testing.T, files map[string]string, who approval.Approver, set func(*config.FS)) (root, data string, by func(name string) answerer) {
	t.Helper()
	root, data = realDir(t), filepath.Join(t.TempDir(), "data")
	for name, text := range files {
		laid(t, filepath.Join(root, name), text)
	}
	cfg := config.Default()
	fs := &cfg.Tools.FS
	fs.WorkspaceRoot, fs.AllowPaths, fs.RequireApproval, fs.CheckpointBeforeMutation = root, []string{root + "/**"}, false, true
	set(fs)
	e, err := engine.Open(cfg, engine.Host{DataDir: data, Approver: who})
	must(t, err)
	t.Cleanup(func() { must(t, e.Close()) })
	return root, data, func(name string) answerer {
		switch name {
		case "acp":
			return acp.Over(e, cfg.Tools.ACP)
		case jsfs.Name:
			return jsfs.Over(e, jsfs.Options{Config: config.JS{Filesystem: true, Time: config.Duration(time.Minute),
				Memory: 64 << 20}, Worker: []string{binary(t), "js-worker"}})
		}
		i := slices.IndexFunc(dialects(), func(one offered) bool { return one.name == name })
		d, err := dialects()[i].over(e, cfg, nil)
		must(t, err)
		return d
	}
}

// ruledBy gives the dialect of a name, over an engine with max_write_bytes = limit, and the root of a tree of its own.
func ruledBy(t *testing.T, name string, limit int64) (_ answerer, root string) {
	t.Helper()
	root, _, by := dialectsOver(t, map[string]string{
		"a": "0123456789\n", "big": strings.Repeat("b", 38) + "BB", "one.png": "\x89PNG\r\n\x1a\n\x00\x00",
		"n.ipynb": `{"cells":[{"cell_type":"code","id":"c1","metadata":{},"outputs":[],"source":"1"}],"metadata":{},"nbformat":4,"nbformat_minor":5}`,
		"code.go": "package p\n\nfunc f() {\n\ta()\n\tb()\n\tc()\n\td()\n}\n",
	}, approval.Yes("config"), func(fs *config.FS) { fs.MaxWriteBytes = limit })
	return by(name), root
}

// answered is the JSON of the answer of a call.
func answered(t *testing.T, d answerer, tool, args string) string {
	t.Helper()
	a, err := d.Call(t.Context(), dialect.Call{Session: "s", Tool: tool, Args: json.RawMessage(args)})
	if err != nil {
		t.Fatalf("%s %s: %v", tool, args, err)
	}
	raw, err := a.JSON(false)
	must(t, err)
	return string(raw)
}
