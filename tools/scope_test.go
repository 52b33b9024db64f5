package tools_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"moltisfs/config"
	"moltisfs/internal/dialect"
	"moltisfs/internal/toolstest"
	"moltisfs/tools"
)

// The tree of the tests below: a caller may read what is in "mine" and "lent", and change what is in
// "mine" and "drop". Whatever else there is has "night" in its name and its content.
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
	{
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
}

// What a session did when it could do more is neither listed, nor shown, nor taken back within a scope
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
	if err := os.Symlink(root+"/mine", link); err != nil {
		t.Fatal(err)
	}
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
