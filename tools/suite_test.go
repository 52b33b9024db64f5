package tools_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"moltisfs/checkpoint"
	"moltisfs/config"
	"moltisfs/internal/approval"
	"moltisfs/internal/audit"
	"moltisfs/internal/dialect"
	"moltisfs/internal/hook"
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
	must(t, err)
	root := filepath.Join(dir, "ws")
	must(t, os.Mkdir(root, 0o755))
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
	must(t, err)
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
	must(t, err)
	p, err := s.Call(context.Background(), tools.Call{Tool: tool, Args: raw, Scope: in})
	if err != nil {
		t.Fatalf("%s %s: the host is broken: %v", tool, raw, err)
	}
	return p
}

func write(t testing.TB, path, content string) string {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(path), 0o755))
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func content(t testing.TB, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	must(t, err)
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
	must(t, err)
	return string(b)
}

func TestBrokenApproverIsNoApproval(t *testing.T) {
	s, root := suite(t, func(fs *config.FS) { fs.RequireApproval = true }, tools.Options{
		Approver: tools.ApproverFunc(func(context.Context, tools.Question) (tools.Answer, error) {
			return tools.Answer{Decision: tools.Approved}, errors.New("the queue is down")
		})})
	raw := json.RawMessage(`{"file_path":"` + root + `/a","content":"x"}`)
	if p, err := s.Call(context.Background(), tools.Call{Tool: "Write", Args: raw}); err == nil && !tools.Refused(p) {
		t.Fatalf("an approver that fails let the change through: %v", p)
	}
	if _, err := os.Stat(root + "/a"); err == nil {
		t.Fatal("the file was written")
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
	must(t, os.Symlink(data, link))
	for _, dir := range []string{data, link, strings.ToUpper(data[:1]) + data[1:] + "/../data"} {
		for _, name := range []string{"", "/audit", "/nothing"} {
			for _, tool := range pathTools {
				p := call(t, s, tool.Name, tool.Args(dir+name, false))
				if k := p.Kind(); k != tools.KindPathDenied && !(dir+name == link && k == tools.KindSymlinkRefused) {
					t.Errorf("%s %s: %s", tool.Name, dir+name, mustEncode(t, p))
				}
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
	var got []string
	for line := range strings.Lines(records(t, filepath.Join(filepath.Dir(root), "data"))) {
		var one struct{ Phase, Dialect, Tool, Outcome string }
		if err := json.Unmarshal([]byte(line), &one); err == nil && one.Phase != "" {
			got = append(got, one.Phase+" "+one.Dialect+"."+one.Tool+" "+one.Outcome)
		}
		if strings.Contains(line, "needle-content") {
			t.Errorf("content in the audit log: %s", line)
		}
	}
	want := "outcome operator.start ok,outcome tools.Read ok,outcome tools.Read path_denied,intent tools.Edit ,outcome tools.Edit ok," +
		"outcome tools.Edit bad_request,outcome tools.Nope unknown_tool,outcome operator.stop ok"
	if strings.Join(got, ",") != want {
		t.Errorf("the record says\n%s, want\n%s", strings.Join(got, ","), want)
	}
}

func TestNoAuditNoChange(t *testing.T) {
	if os.Getuid() == 0 {
		t.Log("as root: the log directory is replaced by a file instead of made unwritable")
	}
	s, root := suite(t, nil, tools.Options{})
	f := write(t, root+"/a.txt", "one\n")
	audit := filepath.Join(filepath.Dir(root), "data", "audit-changes")
	must(t, os.RemoveAll(audit))
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
	has(t, f, "one\n")
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

func TestDo(t *testing.T) {
	t.Parallel()
	s, root := suite(t, func(fs *config.FS) { fs.WorkspaceRoot, fs.CheckpointBeforeMutation = "", true }, tools.Options{})
	file := write(t, root+"/a.txt", "one\ntwo\n")
	ctx, as := context.Background(), tools.Call{Session: "s1"}
	read, err := tools.Do[*tools.Content](ctx, s, tools.ReadArgs{FilePath: file}, as)
	if err != nil || !strings.Contains(read.Text(), "one") {
		t.Fatal(read, err)
	}
	edit := tools.EditArgs{FilePath: file, OldString: "two", NewString: "2"}
	done, err := tools.Do[*tools.Edit](ctx, s, &edit, as)
	if err != nil || done.Replacements != 1 || len(done.Patch) != 1 || done.Patch[0].NewStart != 2 {
		t.Fatal(done, err)
	}
	has(t, file, "one\n2\n")
	_, err = s.Undo(ctx, as)
	must(t, err)
	has(t, file, "one\ntwo\n")
	_, err = s.Redo(ctx, as)
	must(t, err)
	has(t, file, "one\n2\n")

	_, err = tools.Do[*tools.Edit](ctx, s, edit, as)
	if no, ok := errors.AsType[*tools.Refusal](err); !ok || no.Kind() != tools.KindNoMatch {
		t.Errorf("a refusal is %v", err)
	}
	_, err = tools.Do[*tools.Content](ctx, s, tools.ReadArgs{FilePath: file + "x"}, as)
	if no, ok := errors.AsType[*tools.Refusal](err); !ok || no.Kind() != tools.KindNotFound || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file is %v", err)
	}
	if _, err = tools.Do[*tools.Edit](ctx, s, tools.ReadArgs{FilePath: file}, as); err == nil {
		t.Error("a Read answered an *Edit")
	}
	if _, err = tools.Do[tools.Payload](ctx, s, struct{}{}, as); err == nil {
		t.Error("arguments of no tool were taken")
	}
	if _, err = tools.Do[tools.Payload](ctx, s, tools.GlobArgs{Pattern: "*"}, as); err == nil {
		t.Error("a Glob without a path, where there is no workspace, was not refused")
	}
}

// Every row of the table knows its own arguments, and no two have the same.
func TestEveryToolHasTypedArguments(t *testing.T) {
	for _, args := range []any{
		tools.ReadArgs{}, tools.WriteArgs{}, tools.EditArgs{}, tools.MultiEditArgs{}, tools.NotebookEditArgs{}, tools.GlobArgs{},
		tools.GrepArgs{}, tools.CheckpointsListArgs{}, tools.CheckpointDiffArgs{}, tools.CheckpointRestoreArgs{},
	} {
		if n := tools.TakenBy(args); n != 1 {
			t.Errorf("%T is the arguments of %d tools", args, n)
		}
	}
}

func TestCancelledIsToldAsOne(t *testing.T) {
	t.Parallel()
	asked := make(chan struct{})
	s, root := suite(t, func(fs *config.FS) { fs.RequireApproval = true }, tools.Options{
		Approver: tools.ApproverFunc(func(ctx context.Context, _ tools.Question) (tools.Answer, error) {
			close(asked)
			<-ctx.Done()
			return tools.Answer{Reason: "the call was cancelled"}, nil
		})})
	file := write(t, root+"/a.txt", "one\ntwo\n")
	ctx, cancel := context.WithCancel(context.Background())
	if _, err := tools.Do[*tools.Content](ctx, s, tools.ReadArgs{FilePath: file}, tools.Call{}); err != nil {
		t.Fatal(err)
	}
	go func() { <-asked; cancel() }()
	p, err := tools.Do[*tools.Write](ctx, s, tools.WriteArgs{FilePath: file, Content: "x"}, tools.Call{})
	if !errors.Is(err, context.Canceled) || p != nil {
		t.Errorf("while it asked: %v, %v", p, err)
	}
	has(t, file, "one\ntwo\n")
	if _, err = tools.Do[*tools.Grep](ctx, s, tools.GrepArgs{Pattern: "o", Path: new(filepath.Dir(file))}, tools.Call{}); !errors.Is(err, context.Canceled) {
		t.Errorf("before it began: %v", err)
	}
}

// TestUpkeep: each act of a host on the store is on record, and none is done without a record.
func TestUpkeep(t *testing.T) {
	t.Parallel()
	s, root := suite(t, func(fs *config.FS) {
		fs.WorkspaceRoot, fs.RequireApproval, fs.CheckpointBeforeMutation = "", false, true
		fs.Checkpoint.Exclude = []string{"new"}
	}, tools.Options{})
	file := write(t, root+"/a.txt", "one\ntwo\n")
	ctx, as := t.Context(), tools.Call{Session: "s1"}
	if _, err := tools.Do[*tools.Write](ctx, s, tools.WriteArgs{FilePath: filepath.Dir(file) + "/new", Content: "x"}, as); err != nil {
		t.Fatal(err)
	}
	must(t, s.Upkeep(ctx, "pin", func(ctx context.Context, db *checkpoint.DB) error {
		page, err := db.List(ctx, checkpoint.Filter{AllSessions: true})
		if err == nil {
			err = db.Pin(ctx, page.Checkpoints[0].ID, checkpoint.Scope{AllSessions: true})
		}
		return err
	}))
	if _, err := s.Undo(ctx, as); err != nil { // the new file, which the store does not hold, goes to the trash
		t.Fatal(err)
	}
	var trash checkpoint.TrashPage
	look := func(ctx context.Context, db *checkpoint.DB) (err error) {
		trash, err = db.TrashList(ctx, checkpoint.TrashFilter{AllPrincipals: true})
		return err
	}
	if must(t, s.Upkeep(ctx, "look", look)); len(trash.Entries) != 1 {
		t.Fatalf("in the trash: %v", trash.Entries)
	}
	must(t, s.EmptyTrash(ctx, trash.Entries))
	if must(t, s.Upkeep(ctx, "look", look)); len(trash.Entries) != 0 {
		t.Errorf("still in the trash: %v", trash.Entries)
	}
	if err := s.Upkeep(ctx, "fail", func(context.Context, *checkpoint.DB) error { return fs.ErrInvalid }); !errors.Is(err, fs.ErrInvalid) {
		t.Error(err)
	}
	log := filepath.Join(filepath.Dir(filepath.Dir(file)), "data", "audit-changes", "audit.jsonl")
	text, _ := os.ReadFile(log)
	for _, want := range []string{`"outcome","call":`, `"dialect":"operator","tool":"pin"`, `"tool":"empty_trash"`, `"tool":"fail"`, `"tool":"start"`, `"version":"host","policy":"`} {
		if !strings.Contains(string(text), want) {
			t.Errorf("%s is not on record:\n%s", want, text)
		}
	}
	// No record, nothing done.
	if err := errors.Join(os.Remove(log), os.Mkdir(log, 0o700)); err != nil {
		t.Fatal(err)
	}
	ran := false
	if err := s.Upkeep(ctx, "pin", func(context.Context, *checkpoint.DB) error { ran = true; return nil }); err == nil || ran {
		t.Errorf("without a record: ran %t, %v", ran, err)
	}
	if err := errors.Join(os.Remove(log), s.Close()); err != nil {
		t.Error(err)
	}
	if err := s.Upkeep(ctx, "pin", look); !errors.Is(err, tools.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

// A tier adds to what the configuration asks for, and takes nothing from it.
func TestTiers(t *testing.T) {
	for _, c := range []struct {
		tier     approval.Tier
		required bool // require_approval
		write    string
		read     string
		asked    int
		warned   bool
	}{
		{"", false, "write", "text", 0, false},
		{"", true, "write", "text", 1, false},
		{approval.TierAutonomous, false, "write", "text", 0, false},
		{approval.TierAutonomous, true, "write", "text", 1, false},
		{approval.TierNotify, false, "write", "text", 0, true},
		{approval.TierNotify, true, "write", "text", 1, true},
		{approval.TierAsk, false, "write", "text", 1, false},
		{approval.TierAsk, true, "write", "text", 1, false},
		{approval.TierBlocked, false, "permission_denied", "permission_denied", 0, false},
		{approval.TierBlocked, true, "permission_denied", "permission_denied", 0, false},
		{"free", false, "", "", 0, false},
	} {
		asked, log := 0, bytes.Buffer{}
		s, root := suite(t, func(fs *config.FS) { fs.RequireApproval = c.required }, tools.Options{
			Approver: asker(func(tools.Question) tools.Answer {
				asked++
				return tools.Answer{Decision: tools.Approved}
			}),
			Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn})),
		})
		write(t, root+"/f", "one\n")
		kind := func(tool string, args map[string]any) string {
			raw, _ := json.Marshal(args)
			p, err := s.Call(t.Context(), tools.Call{Tool: tool, Args: raw, Tier: c.tier})
			if err != nil {
				return ""
			}
			return p.Kind()
		}
		wrote := kind("Write", map[string]any{"file_path": root + "/new", "content": "x"})
		read := kind("Read", map[string]any{"file_path": root + "/f"})
		warned := strings.Contains(log.String(), "tool=Write")
		if wrote != c.write || read != c.read || asked != c.asked || warned != c.warned {
			t.Errorf("%+v: write %q, read %q, asked %d times, warned %t", c, wrote, read, asked, warned)
		}
	}
}

// TestCallsCountTheirFiles: searches and restores count their files while they run, for each call apart.
func TestCallsCountTheirFiles(t *testing.T) {
	t.Parallel()
	const files = 30
	s, root := suite(t, func(fs *config.FS) { fs.CheckpointBeforeMutation = true }, tools.Options{})
	must(t, os.Mkdir(root+"/sub", 0o755))
	call := func(tool, args string) *dialect.Progress {
		t.Helper()
		var p dialect.Progress
		a, err := s.Call(t.Context(), tools.Call{Tool: tool, Args: json.RawMessage(args), Progress: &p})
		if err != nil || tools.Refused(a) {
			t.Fatalf("%s: %v %s", tool, err, a.Text())
		}
		return &p
	}
	for i := range files {
		call("Write", fmt.Sprintf(`{"file_path":%q,"content":"needle %d"}`, filepath.Join(root, "sub", fmt.Sprint("f", i)), i))
	}
	for _, c := range []struct {
		tool, args string
		of         int64
	}{
		{"Glob", `{"pattern":"**/f1*"}`, 0},
		{"Grep", `{"pattern":"needle"}`, 0},
		{"checkpoint_restore", `{"since":"1h"}`, files},
	} {
		if p := call(c.tool, c.args); p.Files.Load() != files || p.Total.Load() != c.of {
			t.Errorf("%s %s: %d of %d files, want %d of %d", c.tool, c.args, p.Files.Load(), p.Total.Load(), files, c.of)
		}
	}
}

// A deed of a hook works on the arguments or the result of a call.
type deed = func(ctx context.Context, payload json.RawMessage) (hook.Decision, error)

// modifies has a hook put data in the place of the payload.
func modifies(data string) deed {
	return func(context.Context, json.RawMessage) (hook.Decision, error) {
		return hook.Decision{Modify: json.RawMessage(data)}, nil
	}
}

// script is a hook of every event that does as it is told. It records the calls that it saw. A hook that is too slow is left behind, and writes
// while the test reads.
type script struct {
	do   deed
	mu   sync.Mutex
	seen []string
}

func (*script) Name() string { return "script" }

func (s *script) see(ctx context.Context, i hook.Info, payload json.RawMessage) (hook.Decision, error) {
	s.mu.Lock()
	s.seen = append(s.seen, i.Event+" "+i.Tool+" "+i.CallID)
	s.mu.Unlock()
	return s.do(ctx, payload)
}

func (s *script) BeforeToolCall(ctx context.Context, p hook.BeforeToolCall) (hook.Decision, error) {
	return s.see(ctx, p.Info, p.Arguments)
}

func (s *script) AfterToolCall(ctx context.Context, p hook.AfterToolCall) error {
	_, err := s.see(ctx, p.Info, p.Result)
	return err
}

func (s *script) ToolResultPersist(ctx context.Context, p hook.ToolResultPersist) (hook.Decision, error) {
	return s.see(ctx, p.Info, p.Result)
}

// Every hook × everything it can do, on a Write: the answer, the file, and the record.
func TestHooks(t *testing.T) {
	does := map[string]deed{
		"continue": func(context.Context, json.RawMessage) (hook.Decision, error) { return hook.Decision{}, nil },
		"block": func(context.Context, json.RawMessage) (hook.Decision, error) {
			return hook.Decision{Block: true, Reason: "not\ntoday"}, nil
		},
		"fail": func(context.Context, json.RawMessage) (hook.Decision, error) {
			return hook.Decision{}, errors.New("oops")
		},
		"panic": func(context.Context, json.RawMessage) (hook.Decision, error) { panic("oops") },
		"slow": func(context.Context, json.RawMessage) (hook.Decision, error) {
			<-t.Context().Done() // it does not heed its own
			return hook.Decision{}, nil
		},
		"modify":    nil, // below
		"no JSON":   modifies(`{"content":`),
		"no object": modifies(`7`),
		"unknown":   modifies(`{"file_path":"/x","content":"x","sudo":true}`),
	}
	type want struct {
		kind, content string
		noted         bool
	}
	wrote, noted := want{"write", "sent", false}, want{"write", "sent", true}
	for event, c := range map[string]struct {
		usual  want
		others map[string]want
	}{
		hook.BeforeToolCallEvent: {want{"policy_error", "", true}, map[string]want{
			"continue": wrote, "block": {"permission_denied", "", true}, "modify": {"write", "changed", true}}},
		hook.AfterToolCallEvent: {wrote, map[string]want{"fail": noted, "panic": noted, "slow": noted}},
		hook.ToolResultPersistEvent: {want{"policy_error", "sent", true}, map[string]want{ // written, and the answer withheld
			"continue": wrote, "block": {"permission_denied", "sent", true}, "modify": {"told", "sent", true}}},
	} {
		for name, do := range does {
			for _, allow := range []bool{false, true} {
				w, ok := c.others[name]
				if !ok {
					w = c.usual
				}
				if allow && w.kind == "policy_error" {
					w = noted // it is passed over
				}
				t.Run(fmt.Sprintf("%s/%s/%t", event, name, allow), func(t *testing.T) {
					t.Parallel()
					h := &script{do: do}
					set := hook.Set{Timeout: time.Minute, Allow: allow}
					if name == "slow" {
						set.Timeout = 20 * time.Millisecond
					}
					switch event {
					case hook.BeforeToolCallEvent:
						set.Before = []hook.Before{h}
					case hook.AfterToolCallEvent:
						set.After = []hook.After{h}
					default:
						set.Persist = []hook.Persist{h}
					}
					s, root := suite(t, nil, tools.Options{Hooks: set})
					file := filepath.Join(root, "new")
					if name == "modify" {
						h.do = modifies(`{"file_path":"` + file + `","content":"changed"}`)
						if event == hook.ToolResultPersistEvent {
							h.do = modifies(`{"result":{"file_path":"` + file + `","kind":"told"}}`)
						}
					}
					p := call(t, s, "Write", map[string]any{"file_path": file, "content": "sent"})
					got, _ := os.ReadFile(file)
					r := lastRecord(t, root)
					if p.Kind() != w.kind || string(got) != w.content || (r["hooks"] != nil) != w.noted || (r["outcome"] == "ok") != (w.content != "") {
						t.Errorf("%s, wrote %q, noted %v, on record as %v; want %+v", p.Text(), got, r["hooks"], r["outcome"], w)
					}
					h.mu.Lock()
					defer h.mu.Unlock()
					if len(h.seen) != 1 || h.seen[0] != event+" Write "+r["call"].(string) {
						t.Errorf("the hook saw %q; the call is %v", h.seen, r["call"])
					}
				})
			}
		}
	}
}

// TestHooksInTheirOrder: a hook sees the changes of the one before it, and a changed image is no image any more.
func TestHooksInTheirOrder(t *testing.T) {
	var read string
	changes := &script{do: func(_ context.Context, p json.RawMessage) (hook.Decision, error) {
		return hook.Decision{Modify: json.RawMessage(strings.Replace(string(p), "secret", "public", 1))}, nil
	}}
	looks := &script{do: func(_ context.Context, p json.RawMessage) (hook.Decision, error) {
		read = string(p)
		return hook.Decision{}, nil
	}}
	s, root := suite(t, nil, tools.Options{Hooks: hook.Set{Persist: []hook.Persist{changes, looks}}})
	write(t, root+"/f", "secret\n")
	p := call(t, s, "Read", map[string]any{"file_path": root + "/f"})
	if strings.Contains(p.Text(), "secret") || !strings.Contains(p.Text(), "public") || !strings.Contains(read, `{"result":{"kind":"text"`) {
		t.Errorf("answered %s; the second hook saw %s", p.Text(), read)
	}
	refused := call(t, s, "Read", map[string]any{"file_path": root + "/nothing"})
	if !tools.Refused(refused) || len(changes.seen) != 2 || len(looks.seen) != 2 {
		t.Errorf("%s; seen %q, %q", refused.Text(), changes.seen, looks.seen)
	}
}

// TestHooksChangeInForm: a call that a hook changed is judged anew: the next hook sees it under our names, whatever the first one spelled, and that is what runs. A
// hook that is passed over leaves what was there.
func TestHooksChangeInForm(t *testing.T) {
	for _, c := range []struct{ changed, saw, wrote string }{
		{`{"path":"FILE","text":"b"}`, `{"file_path":"FILE","content":"b"}`, "b"}, // a hook may use the names of others too
		{`{"path":"FILE","cntent":"b"}`, `{"file_path":"FILE","content":"a"}`, "a"},
		{`{"path":"FILE","content":"b","dry_run":"false","_k":1}`, `{"_k":1,"content":"b","dry_run":false,"file_path":"FILE"}`, "b"},
		{`{"content":"\u0062","file_path":"FILE","encoding":null}`, `{"file_path":"FILE","content":"b"}`, "b"},
		{`{"file_path":"FILE","content":"b","content":"c"}`, `{"file_path":"FILE","content":"a"}`, "a"},
	} {
		var saw string
		var file string
		first := &script{do: func(context.Context, json.RawMessage) (hook.Decision, error) {
			return hook.Decision{Modify: json.RawMessage(strings.ReplaceAll(c.changed, "FILE", file))}, nil
		}}
		second := &script{do: func(_ context.Context, p json.RawMessage) (hook.Decision, error) {
			saw = string(p)
			return hook.Decision{}, nil
		}}
		s, root := suite(t, nil, tools.Options{Hooks: hook.Set{Allow: true, Before: []hook.Before{first, second}}})
		file = filepath.Join(root, "f")
		call(t, s, "Write", map[string]any{"path": file, "content": "a"})
		if want := strings.ReplaceAll(c.saw, "FILE", file); saw != want {
			t.Errorf("%s: the second hook saw %s, want %s", c.changed, saw, want)
		}
		if got, _ := os.ReadFile(file); string(got) != c.wrote {
			t.Errorf("%s: wrote %q, want %q", c.changed, got, c.wrote)
		}
	}
}

// Programs that the configuration names are hooks, and nobody may touch them.
func TestHookPrograms(t *testing.T) {
	dir := t.TempDir()
	program := write(t, filepath.Join(dir, "check"), "#!/bin/sh\ngrep -q secret && { echo no secrets >&2; exit 1; }\nexit 0\n")
	must(t, os.Chmod(program, 0o755))
	s, root := suite(t, func(fs *config.FS) {
		fs.AllowPaths = nil
		fs.Hooks.BeforeToolCall = []string{program + " -x"}
	}, tools.Options{})
	for content, want := range map[string]string{"secret": "permission_denied", "fine": "write"} {
		p := call(t, s, "Write", map[string]any{"file_path": root + "/new", "content": content})
		if p.Kind() != want {
			t.Errorf("%s: %s", content, p.Text())
		}
	}
	if p := call(t, s, "Write", map[string]any{"file_path": program, "content": "#!/bin/true"}); p.Kind() != "path_denied" {
		t.Errorf("the program of a hook: %s", p.Text())
	}
}

// A hook whose program is not there is an error at the start, with its place in the list.
func TestHookProgramThatIsNotThere(t *testing.T) {
	cfg := config.Default()
	there := write(t, filepath.Join(t.TempDir(), "check"), "")
	cfg.Tools.FS.Hooks.AfterToolCall = []string{there + " -x", there + "k -x", filepath.Dir(there)}
	want := "tools.fs.hooks.after_tool_call[1]: \"" + there + "k\" is no program"
	for name, err := range map[string]error{"check": tools.Check(cfg), "open": opening(cfg, t.TempDir()+"/data")} {
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "after_tool_call[2]") {
			t.Errorf("%s: %v; want %s", name, err, want)
		}
	}
}

func opening(cfg config.Config, data string) error {
	s, err := tools.Open(cfg, tools.Options{DataDir: data})
	if err == nil {
		err = s.Close()
	}
	return err
}

// An observer that panics is the host's trouble, not the caller's; the log has a line for each call.
func TestObserverAndLog(t *testing.T) {
	var log bytes.Buffer
	s, root := suite(t, nil, tools.Options{
		Hooks: hook.Set{Observer: panics{}}, Logger: slog.New(slog.NewTextHandler(&log, nil)),
	})
	file := filepath.Join(root, "new")
	if p := call(t, s, "Write", map[string]any{"file_path": file, "content": "sent"}); p.Kind() != "write" {
		t.Error(p.Text())
	}
	if want := `msg="tool call" tool=Write file_path=` + file + ` bytes=4 outcome=ok dialect=tools call=`; !strings.Contains(log.String(), want) {
		t.Errorf("no %s in %s", want, log.String())
	}
	if r := lastRecord(t, root); r["outcome"] != "ok" {
		t.Errorf("on record: %v", r)
	}
}

type panics struct{}

func (panics) Begin(context.Context, hook.Info) (context.Context, func(hook.End)) { panic("oops") }

// records are both logs under a data directory, in the order of time.
func records(t *testing.T, data string) string {
	t.Helper()
	var lines []string
	must(t, audit.ReadBack(t.Context(), filepath.Join(data, "audit"), audit.Mark{}, time.Time{}, false, func(line []byte, _ *audit.Entry, _ audit.Mark, _ bool) bool {
		lines = append(lines, string(line)+"\n")
		return false
	}))
	slices.Reverse(lines)
	return strings.Join(lines, "")
}

// lastRecord is the last line of the audit log beside root.
func lastRecord(t *testing.T, root string) (r map[string]any) {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(records(t, filepath.Join(filepath.Dir(root), "data"))), "\n")
	must(t, json.Unmarshal([]byte(lines[len(lines)-1]), &r))
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
	must(t, os.Link(root+"/secret/there", root+"/hard"))
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
	must(t, err)
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

// TestWhatWasAskedIsOnRecord: the record has the pattern, the window, the size of the answer and the caller.
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

// Calls that change something are in the log of changes too, with their intents; others are not, however they end. A path that a caller may have made
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

// The tree of the tests below: a caller may read what is in "mine" and "lent", and change what is in
// "mine" and "drop". Everything else has "night" in its name and its content.
const scopeTree = `
mine/f = day
mine/n.ipynb = day
mine/sub/g = day
mine/out => ../night/f
mine/away => ../night
lent/f = day
drop/f = day
night/f = night
night/only = night
night-too = night
mine-night/f = night
`

func scoped(t *testing.T) (s *tools.Suite, root string, in *dialect.Scope) {
	t.Helper()
	s, root = suite(t, func(fs *config.FS) { fs.CheckpointBeforeMutation = true }, tools.Options{})
	toolstest.Layout(t, root, scopeTree)
	return s, root, &dialect.Scope{
		Readable: []string{root + "/mine", root + "/lent"}, Writable: []string{root + "/mine/", root + "/drop"},
	}
}

// A scope is held for every tool, for what is there and what is not, and the answer does not tell
// which. It names the scope that left the path out; so does the record.
func TestScopes(t *testing.T) {
	s, root, in := scoped(t)
	before := toolstest.Snapshot(t, root)
	for _, c := range []struct{ path, read, change string }{ // by what they are left out; "" if they are not
		{"mine/f", "", ""},
		{"mine/missing", "", ""},
		{"mine/only", "", ""}, // as one in night is called
		{"mine/sub/g", "", ""},
		{"lent/f", "", "writable_scope"},
		{"lent/missing", "", "writable_scope"},
		{"drop/f", "readable_scope", "readable_scope"},
		{"drop/missing", "readable_scope", "readable_scope"},
		{"night/f", "readable_scope", "writable_scope"},
		{"night/missing", "readable_scope", "writable_scope"},
		{"night-too", "readable_scope", "writable_scope"},
		{"mine-night/f", "readable_scope", "writable_scope"},
		{"mine-missing", "readable_scope", "writable_scope"},
		{"mine/away/f", "readable_scope", "writable_scope"},
		{"mine/away/missing", "readable_scope", "writable_scope"},
		{"mine/out", "readable_scope", ""}, // a link is not written through
		{"mine/../night/f", "readable_scope", "writable_scope"},
		{"../data/audit/audit.jsonl", "readable_scope", "writable_scope"},
	} {
		for _, tool := range pathTools {
			rule := c.read
			if tool.Class == "change" || tool.Class == "cell" {
				rule = c.change
			}
			args := tool.Args(root+"/"+c.path, false)
			args["dry_run"] = true
			if tool.Class == "walk" || tool.Class == "read" {
				delete(args, "dry_run")
			}
			p := callWithin(t, s, in, tool.Name, args)
			said := mustEncode(t, p) + p.Text()
			if strings.Contains(strings.ReplaceAll(said, root+"/"+c.path, ""), "night") {
				t.Errorf("%s %s tells what is outside: %s", tool.Name, c.path, said)
			}
			r := lastRecord(t, root)
			if rule == "" {
				if p.Kind() == tools.KindPathDenied {
					t.Errorf("%s %s: %s", tool.Name, c.path, said)
				}
				continue
			}
			word := strings.TrimSuffix(rule, "able_scope")
			word = map[string]string{"read": "may read", "writ": "may change"}[word]
			if p.Kind() != tools.KindPathDenied || !strings.Contains(p.Text(), word) {
				t.Errorf("%s %s, by %s: %s", tool.Name, c.path, rule, said)
			}
			if r["rule"] != rule || r["decision"] != "denied" {
				t.Errorf("%s %s: the record says %v %v", tool.Name, c.path, r["rule"], r["decision"])
			}
		}
	}
	for name, now := range toolstest.Snapshot(t, root) {
		if !strings.HasPrefix(name, "../data") && before[name] != now {
			t.Errorf("%s changed", name)
		}
	}
}

// A search finds what is in the scope, and counts no more, from above it too.
func TestSearchesInAScope(t *testing.T) {
	s, root, in := scoped(t)
	if g := call(t, s, "Grep", map[string]any{"pattern": "day|night", "path": root}).(*tools.Grep); g.Total.Files != 9 {
		t.Errorf("without a scope: %s", mustEncode(t, g))
	}
	for path, want := range map[string]int{"": 4, "/mine": 3, "/mine/sub": 1, "/lent": 1} {
		g, ok := callWithin(t, s, in, "Grep", map[string]any{"pattern": "day|night", "path": root + path, "output_mode": "count"}).(*tools.Grep)
		if !ok || g.Total.Files != want || g.Total.Matches != want || len(g.Counts) != want || strings.Contains(g.Text(), "night") {
			t.Errorf("Grep %q: %s", path, mustEncode(t, g))
		}
		f, ok := callWithin(t, s, in, "Glob", map[string]any{"pattern": "**", "path": root + path}).(*tools.Glob)
		if !ok || f.Total != want || len(f.Paths) != want || strings.Contains(f.Text(), "night") {
			t.Errorf("Glob %q: %s", path, mustEncode(t, f))
		}
	}
}

// TestHistoryInAScope: changes that a session made with wider access are neither listed, nor shown, nor taken back within a scope
// that leaves it out; and without the scope it still is.
func TestHistoryInAScope(t *testing.T) {
	s, root, in := scoped(t)
	night, mine := root+"/night/f", root+"/mine/f"
	call(t, s, "Write", map[string]any{"file_path": mine, "content": "evening"})
	call(t, s, "Write", map[string]any{"file_path": night, "content": "night, later"})
	list := call(t, s, "checkpoints_list", nil).(*tools.Checkpoints)
	if list.Count != 2 {
		t.Fatal(mustEncode(t, list))
	}
	id := list.Checkpoints[0].ID
	for _, c := range []struct {
		tool string
		args map[string]any
		kind string
	}{
		{"checkpoints_list", nil, "checkpoints"},
		{"checkpoints_list", map[string]any{"file_path": night}, "checkpoints"},
		{"checkpoint_diff", map[string]any{"id": id}, "checkpoint_diff"},
		{"checkpoint_diff", map[string]any{"since": "1h"}, "checkpoint_diff"},
		{"checkpoint_restore", map[string]any{"id": "undo", "dry_run": true}, tools.KindPathDenied}, // not mine in its place
		{"checkpoint_restore", map[string]any{"id": id}, tools.KindPathDenied},
		{"checkpoint_restore", map[string]any{"id": id, "on_conflict": "force"}, tools.KindPathDenied},
		{"checkpoint_restore", map[string]any{"id": id, "paths": []string{night}}, tools.KindPathDenied},
		{"checkpoint_restore", map[string]any{"since": "1h", "dry_run": true}, "checkpoint_restore"},
		{"checkpoint_restore", map[string]any{"since": "1h", "on_conflict": "skip", "dry_run": true}, "checkpoint_restore"},
	} {
		p := callWithin(t, s, in, c.tool, c.args)
		said := strings.ReplaceAll(mustEncode(t, p)+p.Text(), `"file_path":"`+night, "") // which the call named
		if p.Kind() != c.kind || strings.Contains(said, "night") {
			t.Errorf("%s %v: %s", c.tool, c.args, said)
		}
		if d, ok := p.(*tools.CheckpointDiff); ok && d.Denied != 1 {
			t.Errorf("%s %v counts %d", c.tool, c.args, d.Denied)
		}
	}
	if content(t, night) != "night, later" || content(t, mine) != "evening" {
		t.Error("something was taken back")
	}
	if p := callWithin(t, s, in, "checkpoint_restore", map[string]any{"since": "1h", "on_conflict": "skip"}); tools.Refused(p) || content(t, mine) != "day" {
		t.Errorf("what is in the scope stays: %s", mustEncode(t, p))
	}
	if p := call(t, s, "checkpoint_restore", map[string]any{"id": id}); tools.Refused(p) || content(t, night) != "night" {
		t.Errorf("without the scope: %s", mustEncode(t, p))
	}
}

// The configuration holds within a scope; a scope of one file is that file; no paths are none.
func TestNarrowScopes(t *testing.T) {
	s, root, _ := scoped(t)
	one := &dialect.Scope{Readable: []string{root + "/mine/f"}, Writable: []string{root + "/mine/f"}}
	if p := callWithin(t, s, one, "Edit", map[string]any{"file_path": root + "/mine/f", "old_string": "day", "new_string": "noon"}); tools.Refused(p) {
		t.Error(mustEncode(t, p))
	}
	if p := callWithin(t, s, one, "Write", map[string]any{"file_path": root + "/mine/f2", "content": ""}); p.Kind() != tools.KindPathDenied {
		t.Error(mustEncode(t, p))
	}
	if p := callWithin(t, s, one, "Glob", map[string]any{"pattern": "**", "path": root}).(*tools.Glob); len(p.Paths) != 1 || p.Total != 1 {
		t.Error(mustEncode(t, p))
	}
	for _, none := range []*dialect.Scope{{}, {Writable: []string{"/"}}, {Readable: []string{root + "/mine/f*"}}} {
		for _, tool := range pathTools {
			if p := callWithin(t, s, none, tool.Name, tool.Args(root+"/mine/f", true)); p.Kind() != tools.KindPathDenied {
				t.Errorf("%+v %s: %s", none, tool.Name, mustEncode(t, p))
			}
		}
	}
	all := &dialect.Scope{Readable: []string{"/"}, Writable: []string{"/"}}
	for _, path := range []string{"/etc/passwd", filepath.Dir(root) + "/data/audit/audit.jsonl"} {
		p := callWithin(t, s, all, "Read", map[string]any{"file_path": path})
		if p.Kind() != tools.KindPathDenied || lastRecord(t, root)["rule"] == "readable_scope" {
			t.Errorf("what the configuration denies was opened by a scope: %s", mustEncode(t, p))
		}
	}
	link := filepath.Dir(root) + "/link"
	must(t, os.Symlink(root+"/mine", link))
	by := &dialect.Scope{Readable: []string{link}}
	if p := callWithin(t, s, by, "Read", map[string]any{"file_path": root + "/mine/sub/g"}); tools.Refused(p) {
		t.Errorf("a link in the path of a scope is not followed: %s", mustEncode(t, p))
	}
	for _, bad := range []string{"", "mine", "~/mine"} {
		raw, _ := json.Marshal(map[string]any{"file_path": root + "/mine/f"})
		p, err := s.Call(context.Background(), tools.Call{Tool: "Read", Args: raw, Scope: &dialect.Scope{Readable: []string{root, bad}}})
		if err == nil {
			t.Errorf("a scope with %q: %s", bad, mustEncode(t, p))
		}
	}
}

// Sessions that work side by side, each on its own line of one file and all reading and searching meanwhile, lose
// nothing. Where files must be read first, who is told that others changed the file reads it again and goes on. Where
// not, an edit of text that still stands where it was is applied, and says what else has changed.
func TestSessionsSideBySide(t *testing.T) {
	t.Parallel()
	const sessions, rounds = 8, 25
	for _, first := range []bool{true, false} {
		s, root := suite(t, func(fs *config.FS) {
			fs.TrackReads, fs.MustReadBeforeWrite, fs.CheckpointBeforeMutation = true, first, true
		}, tools.Options{})
		var lines strings.Builder
		for i := range sessions {
			fmt.Fprintf(&lines, "counter%d=0;\n%s", i, strings.Repeat("filler\n", 5))
		}
		file := write(t, root+"/shared.txt", lines.String())
		var told atomic.Int64
		var wg, read sync.WaitGroup
		read.Add(sessions)
		for i := range sessions {
			wg.Go(func() {
				run := func(tool string, args map[string]any) tools.Payload {
					return callAs(t, s, fmt.Sprint("s", i), "", tool, args)
				}
				run("Read", map[string]any{"file_path": file})
				read.Done()
				read.Wait() // whoever edits later than the first sees that others did
				for n := range rounds {
					edit := map[string]any{"file_path": file, "old_string": fmt.Sprintf("counter%d=%d;", i, n), "new_string": fmt.Sprintf("counter%d=%d;", i, n+1)}
					p := run("Edit", edit)
					for tries := 0; first && (p.Kind() == tools.KindConflict || p.Kind() == tools.KindModified) && tries < 1000; tries++ {
						told.Add(1)
						run("Read", map[string]any{"file_path": file})
						p = run("Edit", edit)
					}
					e, ok := p.(*tools.Edit)
					if !ok {
						t.Errorf("session %d, round %d: %s", i, n, mustEncode(t, p))
						return
					}
					if e.ChangedMeanwhile != "" {
						told.Add(1)
					}
					switch n % 3 {
					case 0:
						run("Grep", map[string]any{"pattern": "counter", "output_mode": "content"})
					case 1:
						run("Glob", map[string]any{"pattern": "*.txt"})
					case 2:
						run("checkpoints_list", nil)
					}
				}
			})
		}
		wg.Wait()
		got := content(t, file)
		for i := range sessions {
			if want := fmt.Sprintf("counter%d=%d;\n", i, rounds); !strings.Contains(got, want) {
				t.Errorf("session %d lost an edit: no %q in\n%s", i, want, got)
			}
		}
		if told.Load() == 0 {
			t.Error("nobody was told that others changed the file")
		}
	}
}

// FuzzArguments: any arguments are answered with a payload, soon, and a
// refusal leaves every byte where it was.
func FuzzArguments(f *testing.F) {
	for _, seed := range []string{
		`{"file_path":"$ROOT/a.txt"}`,
		`{"file_path":"$ROOT/a.txt","offset":-1,"limit":1e300,"pages":"1-","tail":"true"}`,
		`{"file_path":"$ROOT/d/../a.txt","content":"x","expected_hash":"00"}`,
		`{"file_path":"$ROOT/a.txt","old_string":"one","new_string":"two","replace_all":"true"}`,
		`{"file_path":"$ROOT/a.txt","edits":[{"old_string":"","new_string":""},{"old_string":"a"}]}`,
		`{"file_path":"$ROOT/a.txt","edits":"[{\"old_string\":\"one\",\"new_string\":\"1\"}]"}`,
		`{"pattern":"(?i)o(?=n)|[[:alpha:]{2,}","path":"$ROOT","-C":99999999999,"head_limit":0}`,
		`{"pattern":"**/{a,b}*.[!t]","path":"$ROOT","limit":0}`,
		`{"pattern":"(a*)*b\\1","output_mode":"content","glob":"!**","type":"go"}`,
		`{"id":"zzzz"}`, `{"file_path":"\u0000"}`, `{"file_path":"\ud800"}`, `[[[[`, `null`, `"x"`, "\xff", `{"a":1,"a":2}`, ``,
		`{"file_path":["$ROOT/a.txt"]}`, `{"FILE_PATH":"x"}`, `{"file_path":"$ROOT/pipe","content":"x"}`, `{"file_path":"/dev/zero"}`,
	} {
		for i := range byDefault(f) { // nobody has Bash: it would run what comes
			f.Add(uint8(i), seed)
		}
	}
	s, root := suite(f, nil, tools.Options{DataDir: f.TempDir() + "/data"})
	layout := "a.txt = one\nb.bin = hex 00ff\nd/\npipe fifo\nl => a.txt\nout => ../out\n../out = x"
	toolstest.Layout(f, root, layout)
	before := toolstest.Snapshot(f, root)
	f.Fuzz(func(t *testing.T, i uint8, args string) {
		all := byDefault(t)
		tool := all[int(i)%len(all)]
		start := time.Now()
		p, err := s.Call(t.Context(), tools.Call{Tool: tool.Name, Args: json.RawMessage(strings.ReplaceAll(args, "$ROOT", root))})
		if err != nil {
			t.Fatalf("%s %q: the host is broken: %v", tool.Name, args, err)
		}
		if d := time.Since(start); d > time.Minute {
			t.Errorf("%s %q took %s", tool.Name, args, d) // a hang, not a speed claim
		}
		out, err := tools.Encode(p)
		if err != nil || !json.Valid(out) || !strings.HasPrefix(string(out), `{"kind":"`+p.Kind()+`"`) {
			t.Errorf("%s %q: %v, %s", tool.Name, args, err, out)
		}
		after := toolstest.Snapshot(t, root)
		if !tools.Refused(p) && !tool.ReadOnly {
			before = after
			return
		}
		if !maps.Equal(before, after) {
			t.Errorf("%s %q was refused and changed %v to %v", tool.Name, args, before, after)
		}
	})
}

// TestForeignArguments: other agents' names are taken where the meaning is certain; an uncertain one is
// refused, all of it at once, with the call that was most likely meant, or with none.
func TestForeignArguments(t *testing.T) {
	t.Parallel()
	const edit = `{"file_path":"/a","new_string":"y","old_string":"x"}`
	for _, c := range []struct {
		tool, raw string
		taken     string // the arguments it runs with
		offered   string // where it is refused
		quiet     bool   // it is not worth a note
	}{
		// Names of other agents.
		{"Edit", `{"path":"/a","old_text":"x","new_text":"y"}`, edit, "", false},
		{"Edit", `{"filename":"/a","oldText":"x","newText":"y"}`, edit, "", false},
		{"Edit", `{"target_file":"/a","search":"x","replace":"y"}`, edit, "", false},
		{"Edit", `{"FILE_PATH":"/a","OLD_STRING":"x","NEW-STRING":"y"}`, edit, "", true},
		{"Edit", `{"absolute_path":"/a","find":"x","replacement":"y","instruction":"why"}`, edit, "", false},
		{"Edit", `{"command":"str_replace","path":"/a","old_str":"x","new_str":"y"}`, edit, "", false},
		{"Edit", `{"file_path":"/a","old_string":"x","new_string":"y","expected_replacements":1}`, edit, "", false},
		{"Edit", `{"file_path":"/a","edits":[{"oldText":"x","newText":"y"}]}`, edit, "", false},
		{"Edit", `{"input":{"file_path":"/a","old_string":"x","new_string":"y"}}`, "", "", false},
		{"Edit", `{"path":"/a","edits":{"old_string":"x","new_string":"y"}}`, edit, "", false},
		{"Edit", `"{\"file_path\":\"/a\",\"old_string\":\"x\",\"new_string\":\"y\"}"`, edit, "", false},
		{"Write", `{"path":"/a","file_text":"x"}`, `{"content":"x","file_path":"/a"}`, "", false},
		{"Write", `{"filename":"/a","contents":"x","overwrite":true,"explanation":"w"}`, `{"content":"x","file_path":"/a"}`, "", false},
		{"MultiEdit", `{"path":"/a","edits":[{"old_text":"x","new_text":"y"}],"dryRun":true}`,
			`{"dry_run":true,"edits":[{"new_string":"y","old_string":"x"}],"file_path":"/a"}`, "", false},
		{"MultiEdit", `{"edits":[{"file_path":"/a","old_string":"x","new_string":"y"}]}`, "", "", false},
		{"MultiEdit", `{"file_path":"/a","edits":{"old_string":"x","new_string":"y"}}`,
			`{"edits":[{"new_string":"y","old_string":"x"}],"file_path":"/a"}`, "", false},
		{"Read", `{"path":"/a","start_line":10,"end_line":"20"}`, `{"file_path":"/a","limit":11,"offset":10}`, "", false},
		{"Read", `{"absolutePath":"/a","view_range":[5,-1]}`, `{"file_path":"/a","offset":5}`, "", false},
		{"Read", `{"file":"/a","lines":"5-9"}`, `{"file_path":"/a","limit":5,"offset":5}`, "", false},
		{"Read", `{"target_file":"/a","should_read_entire_file":true,"explanation":"w"}`, `{"file_path":"/a"}`, "", false},
		{"Read", `{"paths":["/a"]}`, `{"file_path":"/a"}`, "", false},
		{"Read", `{"file_path":"/a","tail":20}`, "", "", false},
		{"Read", `{"file_path":"/a","path":"/a"}`, `{"file_path":"/a"}`, "", false},
		{"Grep", `{"query":"x","include":"*.go","ignore_case":true,"directory":"/a","max_results":5}`,
			`{"-i":true,"glob":"*.go","head_limit":5,"path":"/a","pattern":"x"}`, "", false},
		{"Grep", `{"regex":"x","case_sensitive":false}`, `{"-i":true,"pattern":"x"}`, "", false},
		{"Grep", `{"pattern":"x","exclude":["a","b/**"]}`, "", "", false},
		{"Grep", `{"pattern":"a.b","fixed_strings":true}`, "", "", false},
		{"Grep", `{"pattern":"x","fixed_strings":false,"-l":true}`, `{"output_mode":"files_with_matches","pattern":"x"}`, "", false},
		{"Grep", `{"pattern":"x","context_lines":2,"output":"content","glob":["*.a","*.b"]}`,
			`{"-C":2,"glob":"*.a,*.b","output_mode":"content","pattern":"x"}`, "", false},
		{"Grep", `{"pattern":"x","i":true,"A":2}`, `{"-A":2,"-i":true,"pattern":"x"}`, "", true},
		{"Glob", `{"file_pattern":"*.go","cwd":"/a","case_sensitive":true}`, `{"path":"/a","pattern":"*.go"}`, "", false},
		{"Glob", `{"pattern":"*.py","case_sensitive":false}`, "", "", false},
		{"NotebookEdit", `{"path":"/a","cell_id":1,"source":"x"}`, `{"cell_id":"1","new_source":"x","notebook_path":"/a"}`, "", false},

		{"Read", `{"file_path":"/a","limit":"30 lines"}`, "", "", false},
		{"Read", `{"file_path":"/a","limit":"all"}`, "", "", false},
		{"Grep", `{"pattern":"x","-i":"True"}`, `{"-i":true,"pattern":"x"}`, "", false},

		{"checkpoints_list", `{"path":"/a","max_results":5,"after":"2h","explanation":"w"}`, `{"file_path":"/a","limit":5,"since":"2h"}`, "", false},
		{"checkpoint_diff", `{"checkpoint_id":"abc","file_path":"/a"}`, `{"id":"abc","paths":["/a"]}`, "", false},
		{"checkpoint_restore", `{"checkpointId":"abc","files":["/a","/b"],"preview":true,"confirm":true}`, `{"dry_run":true,"id":"abc","paths":["/a","/b"]}`, "", false},
		{"checkpoint_restore", `{"ID":"undo","dryRun":"true"}`, `{"dry_run":true,"id":"undo"}`, "", true},

		// Arguments of no tool, and of the items of a list.
		{"Grep", `{"pattern":"x","_path":"/secret","_working_dir":"/w"}`, `{"pattern":"x"}`, "", true},
		{"Edit", `{"filename":"/a","old_string":"x","new_string":"y","_old_string":"z"}`, edit, "", false},
		{"MultiEdit", `{"path":"/a","edits":"[{\"oldText\":\"x\",\"new_string\":\"y\"}]"}`, `{"edits":[{"new_string":"y","old_string":"x"}],"file_path":"/a"}`, "", false},
		{"MultiEdit", `{"file_path":"/a","edits":[{"file_path":"/b","old_string":"x","new_string":"y"}]}`, "", "", false},
		{"MultiEdit", `{"file_path":"/a","edits":[{"old_string":"x","new_string":"y","insert_line":3}]}`, "", "", false},
		{"MultiEdit", `{"file_path":"/a","edits":"[{\"old_string\":\"\\ud800\",\"new_string\":\"y\"}]"}`, "", "", false},
		{"Read", `"{\"file_path\":\"\\ud800\"}"`, "", "", false},
		{"Read", `{"file_path":"/a","file_path":"/a"}`, "", "", false},
		{"Read", `{"path":"/a","limit":"many"}`, "", "", false},
		{"Read", `{"path":"/a","tail":1}`, "", "", false},
		{"Grep", `{"pattern":["a","b"]}`, "", "", false},
		{"Glob", `{"pattern":["*.a","*.b"]}`, `{"pattern":"*.a,*.b"}`, "", false},

		// An uncertain reading is not carried out, and is offered only where no argument gets lost.
		{"Edit", `{"file_path":"/a","old_strng":"x","new_string":"y"}`, "", edit, false},
		{"Edit", `{"file_path":"/a","old_string":"x","text":"y"}`, "", edit, false},
		{"Edit", `{"file_path":"/a","old_string":"x","new_string":null}`, "", "", false},
		{"Edit", `{"file_path":"/a","old_string":"x","new_string":"y","insert_line":3}`, "", "", false},
		{"Edit", `{"file_path":"/a","old_string":"x","new_string":"y","start_line":3,"bogus":1}`, "", "", false},
		{"Edit", `{"file_path":"/a","old_string":"x","new_string":"y","expected_replacements":3}`, "", "", false},
		{"Edit", `{"file_path":"/a","old_string":"x","new_string":"y","old_text":"z"}`, "", "", false},
		{"Edit", `{"command":"insert","path":"/a","old_str":"x","new_str":"y"}`, "", "", false},
		{"Edit", `{"file_path":"/a","edits":[{"old_text":"x","new_text":"y"},{"old_string":"z","new_string":""}]}`, "",
			`MultiEdit{"edits":[{"new_string":"y","old_string":"x"},{"new_string":"","old_string":"z"}],"file_path":"/a"}`, false},
		{"MultiEdit", `{"file_path":"/a","old_string":"x","new_string":"y"}`, "", "Edit" + edit, false},
		{"Write", `{"file_path":"/a","content":"x","append":true}`, "", "", false},
		{"Write", `{"file_path":"/a","content":"x","mode":"a"}`, "", "", false},
		{"Write", `{"file_path":"/a","content":["x"]}`, "", "", false},
		{"NotebookEdit", `{"path":"/a","cell_number":1,"source":"x"}`, "", "", false},
		{"Read", `{"file_path":"/a","path":"/b"}`, "", "", false},
		{"Read", `{"paths":["/a","/b"]}`, "", "", false},
		{"Glob", `{}`, "", `{"pattern":"*"}`, false},
		{"Glob", `{"directory":"/a"}`, "", `{"path":"/a","pattern":"*"}`, false},
		{"checkpoint_restore", `{"version":"abc"}`, "", `{"id":"abc"}`, false},
		{"checkpoint_restore", `{"id":"abc","force":true}`, "", "", false},
		{"checkpoint_restore", `{"id":"abc","checkpoint":"def"}`, "", "", false},
		{"checkpoint_restore", `{"id":"abc","since":"2h"}`, "", "", false},
		{"Grep", `{"pattern":"x","head_limit":-1,"output_mode":"contents","bogus":1}`, "",
			`{"output_mode":"content","pattern":"x"}`, false},
		{"Grep", `{"patern":"x","foo":1,"glb":"*.go"}`, "", `{"glob":"*.go","pattern":"x"}`, false},
	} {
		taken, note, refused, offered := tools.Understand(c.tool, c.raw)
		if !sameJSON(taken, c.taken) || !sameJSON(offered, c.offered) || c.quiet != (taken != "" && note == "") {
			t.Errorf("%s %s:\ntaken %s (%s)\nrefused %s\noffered %s", c.tool, c.raw, taken, note, refused, offered)
		}
	}
}

func sameJSON(a, b string) bool {
	if a == "" || b == "" {
		return a == b
	}
	toolA, a, _ := strings.Cut(a, "{")
	toolB, b, _ := strings.Cut(b, "{")
	if toolA != toolB {
		return false
	}
	a, b = "{"+a, "{"+b
	var x, y map[string]any
	if json.Unmarshal([]byte(a), &x) != nil || json.Unmarshal([]byte(b), &y) != nil {
		return false
	}
	one, _ := json.Marshal(x)
	two, _ := json.Marshal(y)
	return string(one) == string(two)
}

func TestGoldenCalls(t *testing.T) {
	toolstest.Run(t, "../testdata/calls", toolstest.Direct)
}
