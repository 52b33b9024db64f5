package tools_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"moltisfs/config"
	"moltisfs/internal/dialect"
	"moltisfs/internal/toolstest"
	"moltisfs/tools"
)

// suite opens a suite over a fresh tree that it may touch and nothing else.
func suite(t testing.TB, change func(*config.FS), o tools.Options) (*tools.Suite, string) {
	t.Helper()
	return suiteIn(t, *sandboxed, change, o)
}

// suiteIn is suite through a worker, see -sandbox; "" for none.
func suiteIn(t testing.TB, through string, change func(*config.FS), o tools.Options) (*tools.Suite, string) {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	root := filepath.Join(dir, "ws")
	if err := os.Mkdir(root, 0o755); err != nil {
		t.Fatal(err)
	}
	cfg := config.Default()
	cfg.Tools.FS.WorkspaceRoot, cfg.Tools.FS.AllowPaths, cfg.Tools.FS.RequireApproval = root, []string{root + "/**"}, false
	if change != nil {
		change(&cfg.Tools.FS)
	}
	if o.DataDir == "" {
		o.DataDir = filepath.Join(dir, "data")
	}
	open := tools.Open
	if through != "" {
		open = func(cfg config.Config, o tools.Options) (*tools.Suite, error) { return openIn(t, through, cfg, o) }
	}
	s, err := open(cfg, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s, root
}

func call(t testing.TB, s *tools.Suite, tool string, args map[string]any) tools.Payload {
	t.Helper()
	return callWithin(t, s, nil, tool, args)
}

// callWithin is call within a scope.
func callWithin(t testing.TB, s *tools.Suite, in *dialect.Scope, tool string, args map[string]any) tools.Payload {
	t.Helper()
	raw, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	p, err := s.Call(context.Background(), tools.Call{Tool: tool, Args: raw, Scope: in})
	if err != nil {
		t.Fatalf("%s %s: the host is broken: %v", tool, raw, err)
	}
	return p
}

func write(t testing.TB, path, content string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func content(t testing.TB, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// asker answers as the function says.
type asker func(tools.Question) tools.Answer

func (a asker) Ask(_ context.Context, q tools.Question) (tools.Answer, error) { return a(q), nil }

func TestTheApproverSeesWhatWillRun(t *testing.T) {
	var asked []tools.Question
	s, root := suite(t, func(fs *config.FS) { fs.RequireApproval = true }, tools.Options{Approver: asker(func(q tools.Question) tools.Answer {
		asked = append(asked, q)
		return tools.Answer{Decision: tools.Approved}
	})})
	f := write(t, root+"/a.txt", "one\ntwo\n")
	call(t, s, "Edit", map[string]any{"file_path": f, "old_string": "two", "new_string": "2"})
	if len(asked) != 1 {
		t.Fatalf("%d questions", len(asked))
	}
	q := asked[0]
	if q.Tool != "Edit" || q.Paths[0] != f || q.Added != 1 || q.Removed != 1 || !strings.Contains(q.Diff, "-two\n+2\n") || q.Digest == "" {
		t.Errorf("the question does not show the change: %+v", q)
	}
	call(t, s, "Edit", map[string]any{"file_path": f, "old_string": "no such", "new_string": "2"})
	call(t, s, "Edit", map[string]any{"file_path": f, "old_string": "one", "new_string": "1", "dry_run": true})
	call(t, s, "Write", map[string]any{"file_path": f, "content": "one\n2\n"}) // what is there already
	if len(asked) != 1 {
		t.Errorf("a person was asked about a call that changes nothing: %+v", asked[1:])
	}
}

// A name that reads like another one is pointed out.
func TestLookalikeNamesAreWarned(t *testing.T) {
	var asked tools.Question
	s, root := suite(t, func(fs *config.FS) { fs.RequireApproval = true }, tools.Options{Approver: asker(func(q tools.Question) tools.Answer {
		asked = q
		return tools.Answer{Decision: tools.Denied}
	})})
	for name, want := range map[string]bool{"app.py": false, "\u0430pp.py": true, "отчёт.txt": false} {
		call(t, s, "Write", map[string]any{"file_path": root + "/" + name, "content": "x"})
		if got := strings.Contains(strings.Join(asked.Warnings, "\n"), "look like others: 'а' is U+0430 (Cyrillic)"); got != want {
			t.Errorf("%s: %q", name, asked.Warnings)
		}
	}
}

func TestAChangeDuringTheQuestionIsStale(t *testing.T) {
	var f string
	s, root := suite(t, func(fs *config.FS) { fs.RequireApproval = true }, tools.Options{Approver: asker(func(q tools.Question) tools.Answer {
		if strings.Contains(q.Diff, "+2\n") && !strings.Contains(q.Diff, "foreign") {
			os.WriteFile(f, []byte("foreign\ntwo\n"), 0o644)
		}
		return tools.Answer{Decision: tools.Approved}
	})})
	f = write(t, root+"/a.txt", "one\ntwo\n")
	p := call(t, s, "Edit", map[string]any{"file_path": f, "old_string": "two", "new_string": "2"})
	if p.Kind() != tools.KindApprovalStale || content(t, f) != "foreign\ntwo\n" {
		t.Fatalf("%s: %s; the file holds %q", p.Kind(), p.Text(), content(t, f))
	}
	if r := p.(*tools.Refusal); !strings.Contains(mustEncode(t, r), `foreign`) {
		t.Errorf("the refusal does not show the new diff: %s", mustEncode(t, r))
	}
}

// A link that is put in the way of a new file while somebody is asked about it would lead the approved change elsewhere.
func TestALinkDuringTheQuestionLeadsNowhere(t *testing.T) {
	var root string
	s, r := suite(t, func(fs *config.FS) { fs.RequireApproval, fs.CreateParents = true, true }, tools.Options{Approver: asker(func(tools.Question) tools.Answer {
		if err := os.Symlink(root+"/other", root+"/new"); err != nil {
			t.Error(err)
		}
		return tools.Answer{Decision: tools.Approved}
	})})
	if root = r; os.Mkdir(root+"/other", 0o755) != nil {
		t.Fatal("no directory to lead to")
	}
	p := call(t, s, "Write", map[string]any{"file_path": root + "/new/f", "content": "x"})
	if left, _ := os.ReadDir(root + "/other"); p.Kind() != tools.KindApprovalStale || len(left) > 0 {
		t.Errorf("%s: %s; %v", p.Kind(), p.Text(), left)
	}
}

func mustEncode(t testing.TB, p tools.Payload) string {
	t.Helper()
	b, err := tools.Encode(p)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestBrokenApproverIsNoApproval(t *testing.T) {
	s, root := suite(t, func(fs *config.FS) { fs.RequireApproval = true }, tools.Options{Approver: broken{}})
	raw := json.RawMessage(`{"file_path":"` + root + `/a","content":"x"}`)
	if p, err := s.Call(context.Background(), tools.Call{Tool: "Write", Args: raw}); err == nil && !tools.Refused(p) {
		t.Fatalf("an approver that fails let the change through: %v", p)
	}
	if _, err := os.Stat(root + "/a"); err == nil {
		t.Fatal("the file was written")
	}
}

type broken struct{}

func (broken) Ask(context.Context, tools.Question) (tools.Answer, error) {
	return tools.Answer{Decision: tools.Approved}, errors.New("the queue is down")
}

func TestReadLedgerSurvivesARestart(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	track := func(fs *config.FS) { fs.TrackReads, fs.MustReadBeforeWrite = true, true }
	dir, _ := filepath.EvalSymlinks(t.TempDir())
	f := write(t, dir+"/a.txt", "one\n")
	open := func() *tools.Suite {
		cfg := config.Default()
		cfg.Tools.FS.AllowPaths, cfg.Tools.FS.RequireApproval = []string{dir + "/**"}, false
		track(&cfg.Tools.FS)
		s, err := tools.Open(cfg, tools.Options{DataDir: data})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	s := open()
	call(t, s, "Read", map[string]any{"file_path": f})
	s.Close()
	s = open()
	defer s.Close()
	if p := call(t, s, "Write", map[string]any{"file_path": f, "content": "two\n"}); tools.Refused(p) {
		t.Fatalf("what was read before the restart is forgotten: %s", p.Text())
	}
}

func TestOurOwnFilesAreOffLimits(t *testing.T) {
	s, root := suite(t, func(fs *config.FS) { fs.AllowPaths, fs.CheckpointBeforeMutation, fs.TrackReads = nil, true, true }, tools.Options{})
	data := filepath.Join(filepath.Dir(root), "data")
	write(t, root+"/a.txt", "needle\n")
	call(t, s, "Read", map[string]any{"file_path": root + "/a.txt"})
	call(t, s, "Edit", map[string]any{"file_path": root + "/a.txt", "old_string": "needle", "new_string": "pin"})
	before := toolstest.Snapshot(t, data)
	link := filepath.Join(root, "link")
	if err := os.Symlink(data, link); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{data, link, strings.ToUpper(data[:1]) + data[1:] + "/../data"} {
		for _, c := range []struct {
			tool string
			args map[string]any
		}{
			{"Read", map[string]any{"file_path": dir + "/audit"}},
			{"Read", map[string]any{"file_path": dir + "/nothing"}},
			{"Write", map[string]any{"file_path": dir + "/x", "content": "x"}},
			{"Edit", map[string]any{"file_path": dir + "/x", "old_string": "", "new_string": "x"}},
			{"MultiEdit", map[string]any{"file_path": dir + "/x", "edits": []any{map[string]any{"old_string": "", "new_string": "x"}}}},
			{"Glob", map[string]any{"pattern": "**", "path": dir}},
			{"Grep", map[string]any{"pattern": "x", "path": dir}},
		} {
			if p := call(t, s, c.tool, c.args); p.Kind() != tools.KindPathDenied {
				t.Errorf("%s %v: %s", c.tool, c.args, mustEncode(t, p))
			}
		}
	}
	if p := call(t, s, "Glob", map[string]any{"pattern": "**", "path": filepath.Dir(data)}); strings.Contains(mustEncode(t, p), data) {
		t.Errorf("a walk from above names our files: %s", p.Text())
	}
	for name, c := range toolstest.Snapshot(t, data) {
		if _, was := before[name]; !was && !strings.HasPrefix(name, "..") && !strings.Contains(name, "ledger") && !strings.Contains(name, "locks") {
			t.Errorf("%s appeared: %q", name, c)
		}
	}
}

func TestTheDataDirMustBeOutOfReach(t *testing.T) {
	dir, _ := filepath.EvalSymlinks(t.TempDir())
	for _, c := range []struct {
		name   string
		change func(*config.Config)
		ok     bool
	}{
		{"inside an allowed tree", func(c *config.Config) { c.Tools.FS.AllowPaths = []string{dir + "/**"} }, false},
		{"inside the workspace", func(c *config.Config) { c.Tools.FS.WorkspaceRoot = dir }, false},
		{"denied there", func(c *config.Config) {
			c.Tools.FS.AllowPaths, c.Tools.FS.DenyPaths = []string{dir + "/**"}, []string{dir + "/data/**"}
		}, true},
		{"nothing may write", func(c *config.Config) {
			c.Tools.FS.AllowPaths = []string{dir + "/**"}
			c.Tools.Policy.Allow = []string{"Read", "Glob", "Grep"}
		}, true},
		{"elsewhere", func(c *config.Config) { c.Tools.FS.AllowPaths = []string{dir + "/ws/**"} }, true},
		{"no allow list", func(c *config.Config) {}, true},
	} {
		cfg := config.Default()
		c.change(&cfg)
		s, err := tools.Open(cfg, tools.Options{DataDir: dir + "/data"})
		if (err == nil) != c.ok {
			t.Errorf("%s: %v", c.name, err)
		}
		var hinted *tools.DataDirError
		if err != nil && (!errors.As(err, &hinted) || hinted.Hint() == "") {
			t.Errorf("%s: no hint in %v", c.name, err)
		}
		if s != nil {
			s.Close()
		}
	}
}

func TestEveryCallIsOnRecord(t *testing.T) {
	s, root := suite(t, nil, tools.Options{})
	f := write(t, root+"/a.txt", "needle-content\n")
	call(t, s, "Read", map[string]any{"file_path": f})
	call(t, s, "Read", map[string]any{"file_path": "/etc/passwd"})
	call(t, s, "Edit", map[string]any{"file_path": f, "old_string": "needle-content", "new_string": "pin-content"})
	call(t, s, "Edit", map[string]any{"file_path": f})
	if _, err := s.Call(context.Background(), tools.Call{Tool: "Nope"}); err == nil {
		t.Error("an unknown tool answered")
	}
	s.Close()
	var lines []map[string]any
	for line := range strings.Lines(records(t, filepath.Join(filepath.Dir(root), "data"))) {
		var one map[string]any
		if err := json.Unmarshal([]byte(line), &one); err == nil {
			lines = append(lines, one)
		}
		if strings.Contains(line, "needle-content") {
			t.Errorf("content in the audit log: %s", line)
		}
	}
	var got []string
	for _, l := range lines {
		if l["phase"] != nil {
			got = append(got, strings.Join([]string{l["phase"].(string), l["dialect"].(string) + "." + l["tool"].(string), str(l["outcome"])}, " "))
		}
	}
	want := "outcome operator.start ok,outcome tools.Read ok,outcome tools.Read path_denied,intent tools.Edit ,outcome tools.Edit ok," +
		"outcome tools.Edit bad_request,outcome tools.Nope unknown_tool,outcome operator.stop ok"
	if strings.Join(got, ",") != want {
		t.Errorf("the record says\n%s, want\n%s", strings.Join(got, ","), want)
	}
}

func str(v any) string {
	s, _ := v.(string)
	return s
}

func TestNoAuditNoChange(t *testing.T) {
	if os.Getuid() == 0 {
		t.Log("as root: the log directory is replaced by a file instead of made unwritable")
	}
	s, root := suite(t, nil, tools.Options{})
	f := write(t, root+"/a.txt", "one\n")
	audit := filepath.Join(filepath.Dir(root), "data", "audit-changes")
	if err := os.RemoveAll(audit); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(audit, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	// The open log file is unlinked: a record in it would be lost, so the log must notice or reopen; either way
	// nothing may be changed without a record that can be found.
	raw := json.RawMessage(`{"file_path":"` + f + `","old_string":"one","new_string":"two"}`)
	p, err := s.Call(context.Background(), tools.Call{Tool: "Edit", Args: raw})
	if err == nil && !tools.Refused(p) {
		t.Errorf("changed without a record: %v", mustEncode(t, p))
	}
	if got := content(t, f); got != "one\n" {
		t.Errorf("the file holds %q", got)
	}
}

func TestNamesOfHistoryAreBounded(t *testing.T) {
	s, root := suite(t, nil, tools.Options{})
	f := write(t, root+"/f", "a")
	for _, name := range []string{strings.Repeat("x", 257), "a\x00b", "\xff", "a\nb"} {
		for _, c := range []tools.Call{{Session: name}, {Principal: name}, {Turn: name}} {
			c.Tool, c.Args = "Read", json.RawMessage(`{"file_path":"`+f+`"}`)
			if p, err := s.Call(t.Context(), c); err != nil || p.Kind() != tools.KindBadRequest {
				t.Errorf("%.20q: %v, %v", name, p, err)
			}
		}
	}
}

// null is no value for what is required, and no hash is an empty one.
func TestNullIsNoValue(t *testing.T) {
	s, root := suite(t, nil, tools.Options{})
	f := write(t, root+"/f", "one\n")
	for _, c := range []struct {
		tool string
		args map[string]any
	}{
		{"Edit", map[string]any{"file_path": f, "old_string": "one", "new_string": nil}},
		{"Edit", map[string]any{"file_path": root + "/g", "old_string": nil, "new_string": "x"}},
		{"Write", map[string]any{"file_path": root + "/g", "content": nil}},
		{"Read", map[string]any{"file_path": nil}},
		{"Grep", map[string]any{"pattern": nil}},
		{"MultiEdit", map[string]any{"file_path": f, "edits": nil}},
		{"MultiEdit", map[string]any{"file_path": f, "edits": []any{nil}}},
		{"Write", map[string]any{"file_path": f, "content": "x", "expected_hash": ""}},
		{"Edit", map[string]any{"file_path": f, "old_string": "one", "new_string": "x", "expected_hash": "abc"}},
	} {
		if p := call(t, s, c.tool, c.args); p.Kind() != tools.KindBadRequest {
			t.Errorf("%s %v: %s", c.tool, c.args, mustEncode(t, p))
		}
	}
	if got := content(t, f); got != "one\n" {
		t.Errorf("the file is now %q", got)
	}
}
