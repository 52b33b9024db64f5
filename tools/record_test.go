package tools_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"moltisfs/config"
	"moltisfs/internal/audit"
	"moltisfs/internal/toolstest"
	"moltisfs/tools"
)

// records are both logs under a data directory, in the order of time.
func records(t *testing.T, data string) string {
	t.Helper()
	var b strings.Builder
	err := audit.Read(t.Context(), filepath.Join(data, "audit"), false, nil, func(line []byte) error {
		b.Write(append(line[:len(line):len(line)], '\n'))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// lastRecord is the last line of the audit log beside root.
func lastRecord(t *testing.T, root string) (r map[string]any) {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(records(t, filepath.Join(filepath.Dir(root), "data"))), "\n")
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &r); err != nil {
		t.Fatal(err)
	}
	return r
}

// A dry run is no change, and its record says so, whatever became of it; that of a change does not.
func TestDryRunsAreMarkedInTheRecord(t *testing.T) {
	s, root := suite(t, func(fs *config.FS) { fs.CheckpointBeforeMutation = true }, tools.Options{})
	const notebook = `{"cells":[{"id":"a1","cell_type":"code","metadata":{},"outputs":[],"execution_count":null,"source":["1"]}],"metadata":{},"nbformat":4,"nbformat_minor":5}`
	f, nb := write(t, root+"/f", "one\n"), write(t, root+"/n.ipynb", notebook)
	args := map[string]map[string]any{
		"Write":              {"file_path": f, "content": "two\n"},
		"Edit":               {"file_path": f, "old_string": "two", "new_string": "three"},
		"MultiEdit":          {"file_path": f, "edits": []any{map[string]any{"old_string": "three", "new_string": "four"}}},
		"NotebookEdit":       {"notebook_path": nb, "cell_id": "a1", "new_source": "2"},
		"checkpoint_restore": {"id": "undo"},
	}
	for _, d := range s.Definitions() {
		if d.ReadOnly {
			continue
		}
		a := args[d.Name]
		if a == nil || !strings.Contains(string(d.InputSchema), `"dry_run"`) {
			t.Errorf("%s changes things, and this test does not know how, or it knows no dry_run", d.Name)
			continue
		}
		for _, dry := range []bool{true, false} {
			if a["dry_run"] = dry; !dry {
				delete(a, "dry_run")
			}
			p := call(t, s, d.Name, a)
			if r := lastRecord(t, root); tools.Refused(p) || r["outcome"] != "ok" || (r["dry_run"] == true) != dry || r["phase"] != "outcome" {
				t.Errorf("%s, dry_run %t: %s; on record: %v", d.Name, dry, p.Text(), r)
			}
		}
	}
	call(t, s, "Edit", map[string]any{"file_path": f, "old_string": "nowhere", "new_string": "x", "dry_run": true})
	if r := lastRecord(t, root); r["outcome"] != "no_match" || r["dry_run"] != true {
		t.Errorf("a refused dry run: %v", r)
	}
}

// A path that is closed answers the same whatever rule closes it, and the words fit inside of the workspace and outside. The
// operator's log names the rule.
func TestNoRuleIsTold(t *testing.T) {
	s, root := suite(t, func(fs *config.FS) {
		fs.DenyPaths = []string{fs.WorkspaceRoot + "/secret/**", fs.WorkspaceRoot + "/.env*"}
		fs.AllowPaths = append(fs.AllowPaths, "/proc/**")
	}, tools.Options{})
	toolstest.Layout(t, root, "secret/there = a\na = 1")
	if err := os.Link(root+"/secret/there", root+"/hard"); err != nil {
		t.Fatal(err)
	}
	want := ""
	for _, c := range []struct{ path, rule string }{
		{root + "/.env", "deny_paths"},
		{root + "/secret/there", "deny_paths"},
		{root + "/hard", "deny_paths"},
		{filepath.Dir(root) + "/elsewhere", "allow_paths"},
		{"/etc/passwd", "allow_paths"},
		{filepath.Dir(root) + "/data/audit/audit.jsonl", "hard"},
		{"/proc/self/environ", "pseudo"},
	} {
		for _, tool := range pathTools {
			p := call(t, s, tool.Name, tool.Args(c.path, true))
			got := strings.ReplaceAll(mustEncode(t, p), c.path, "PATH")
			if want == "" {
				want = got
			}
			if got != want || strings.Contains(got, "_paths") {
				t.Errorf("%s %s answers\n%s, not\n%s", tool.Name, c.path, got, want)
			}
			if r := lastRecord(t, root); r["rule"] != c.rule || r["decision"] != "denied" {
				t.Errorf("%s %s is on record as %v", tool.Name, c.path, r)
			}
		}
	}
	if strings.Contains(want, "utside") || strings.Contains(want, "Stay under") {
		t.Errorf("%s is said of what lies in the workspace", want)
	}
}

// So it is with tools: who calls learns that there is none, who runs it why.
func TestDeniedToolsAreOnRecord(t *testing.T) {
	dir := t.TempDir()
	cfg := config.Default()
	cfg.Tools.Policy.Deny = []string{"Edit"}
	s, err := tools.Open(cfg, tools.Options{DataDir: dir + "/data"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for name, rule := range map[string]any{"Edit": "tools.policy", "NotebookEdit": "tools.policy", "Fetch": nil} {
		if _, err := s.Call(context.Background(), tools.Call{Tool: name}); err == nil || strings.Contains(err.Error(), "polic") {
			t.Errorf("%s: %v", name, err)
		}
		r := lastRecord(t, dir+"/ws")
		if r["rule"] != rule || r["outcome"] != "unknown_tool" || rule != nil && r["decision"] != "denied" {
			t.Errorf("%s is on record as %v", name, r)
		}
	}
}

// What a call looked for, which part it took and how much it was given is on record, and who called.
func TestWhatWasAskedIsOnRecord(t *testing.T) {
	s, root := suite(t, nil, tools.Options{})
	f := write(t, root+"/f", strings.Repeat("0123456789\n", 100))
	type m = map[string]any
	for _, x := range []struct {
		tool string
		args m
		want m
	}{
		{"Read", m{"file_path": f}, m{"bytes": nil, "pattern": nil, "window": nil, "by": "agent", "client": "probe/1"}},
		{"Read", m{"file_path": f, "offset": 3, "limit": 2}, m{"window": "offset 3 limit 2"}},
		{"Read", m{"file_path": f, "tail": true, "limit": 5}, m{"window": "limit 5 tail"}},
		{"Grep", m{"pattern": "9$", "path": root, "head_limit": 7}, m{"pattern": "9$", "window": "head_limit 7"}},
		{"Glob", m{"pattern": "**/*.go", "path": root}, m{"pattern": "**/*.go", "window": nil}},
		{"Write", m{"file_path": root + "/new", "content": "four"}, m{"bytes": 4.0, "pattern": nil, "turn": "t7"}},
	} {
		raw, _ := json.Marshal(x.args)
		if _, err := s.Call(t.Context(), tools.Call{Tool: x.tool, Args: raw, Client: "probe/1", Turn: "t7"}); err != nil {
			t.Fatal(err)
		}
		r := lastRecord(t, root)
		for key, want := range x.want {
			if key == "bytes" && want == nil {
				if n, _ := r[key].(float64); n < 1100 || n > 2200 {
					t.Errorf("%s %v: bytes is %v", x.tool, x.args, r[key])
				}
			} else if r[key] != want {
				t.Errorf("%s %v: %s is %v, not %v", x.tool, x.args, key, r[key], want)
			}
		}
		if r["pid"] != float64(os.Getpid()) || r["user"] == "" {
			t.Errorf("%s: %v", x.tool, r)
		}
	}
	raw, _ := json.Marshal(m{"file_path": f, "limit": 1})
	if _, err := s.Call(t.Context(), tools.Call{Tool: "Read", Args: raw, ByUser: true}); err != nil {
		t.Fatal(err)
	}
	if r := lastRecord(t, root); r["by"] != "person" || r["bytes"].(float64) > 100 {
		t.Errorf("one line of 1,100 bytes, read by a person: %v", r)
	}
}

// Calls that change something are in the log of changes too, with their intents; others are not, however they end. What a caller may have made
// up is cut, and a true name is not.
func TestRecordsOfChanges(t *testing.T) {
	t.Parallel()
	s, root := suite(t, func(fs *config.FS) { fs.DenyPaths = []string{root0 + "/**"} }, tools.Options{})
	dir, long := filepath.Join(filepath.Dir(root), "data", "audit"), strings.Repeat("/"+strings.Repeat("n", 200), 10)
	must(t, os.MkdirAll(root+long, 0o755))
	write(t, root+long+"/there", "x\n")
	for _, c := range []struct {
		tool    string
		args    map[string]any
		changes int // records in the log of changes
		most    int // bytes of its line, the last
	}{
		{"Read", map[string]any{"file_path": root + long + "/there"}, 0, 5000},
		{"Read", map[string]any{"file_path": root + long + "/there" + strings.Repeat("q", 2000)}, 0, 2200},
		{"Read", map[string]any{"file_path": root + "/" + strings.Repeat("q/", 1000)}, 0, 2200},
		{"Write", map[string]any{"file_path": root + strings.Repeat("/"+strings.Repeat("q", 200), 10), "content": "x"}, 0, 2200},
		{"Write", map[string]any{"file_path": root0 + long, "content": "x"}, 0, 2200},
		{"Write", map[string]any{"file_path": root + "/f", "content": "x", "dry_run": true}, 0, 5000},
		{"Glob", map[string]any{"pattern": "*"}, 0, 5000},
		{"Write", map[string]any{"file_path": root + "/f", "content": "x"}, 2, 5000},
		{"Edit", map[string]any{"file_path": root + long + "/there", "old_string": "x", "new_string": "y"}, 2, 5000},
	} {
		was := strings.Count(content(t, dir+"-changes/audit.jsonl"), "\n")
		call(t, s, c.tool, c.args)
		if n := strings.Count(content(t, dir+"-changes/audit.jsonl"), "\n") - was; n != c.changes {
			t.Errorf("%s %v: %d records of changes, want %d", c.tool, c.args, n, c.changes)
		}
		lines := strings.Split(strings.TrimSpace(records(t, filepath.Dir(dir))), "\n")
		last := lines[len(lines)-1]
		if len(last) > c.most {
			t.Errorf("%s: %d bytes: %s", c.tool, len(last), last)
		}
		if c.most > 4000 && strings.Contains(fmt.Sprint(c.args), long) && !strings.Contains(last, long) {
			t.Errorf("%s: a true name is cut: %s", c.tool, last)
		}
	}
}

// root0 is a directory that nothing may be made in.
const root0 = "/nowhere/at/all"
