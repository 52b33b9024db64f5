package tools_test

import (
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"moltisfs/config"
	"moltisfs/tools"
)

// callAs is call for one principal, session and turn.
func callAs(t testing.TB, s *tools.Suite, who, turn, tool string, args map[string]any) tools.Payload {
	t.Helper()
	raw, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	p, err := s.Call(context.Background(), tools.Call{Principal: who, Session: who, Turn: turn, Tool: tool, Args: raw})
	if err != nil {
		t.Fatalf("%s %s: the host is broken: %v", tool, raw, err)
	}
	return p
}

// What others wrote into a file, and is not there any more, no answer about a session's own history shows: not as a conflict, not as what was
// there before a change outside, not by restoring that.
func TestNothingOfOthersIsShown(t *testing.T) {
	const secret = "SECRET-of-bob"
	s, root := suite(t, func(c *config.FS) { c.CheckpointBeforeMutation = true }, tools.Options{})
	f := write(t, root+"/f", "1\n")
	do := func(who, turn, tool string, args map[string]any) tools.Payload {
		p := callAs(t, s, who, turn, tool, args)
		if who == "alice" && strings.Contains(mustEncode(t, p)+p.Text(), secret) {
			t.Errorf("%s %v shows it: %s", tool, args, mustEncode(t, p))
		}
		return p
	}
	do("alice", "t1", "Edit", map[string]any{"file_path": f, "old_string": "1", "new_string": "2"})
	do("bob", "t1", "Edit", map[string]any{"file_path": f, "old_string": "2", "new_string": secret})
	write(t, f, "out\n")
	for _, args := range []map[string]any{{"dry_run": true}, {"dry_run": true, "on_conflict": "merge"}, {}} {
		args["since"] = "1h"
		p := do("alice", "t1", "checkpoint_restore", args)
		if p.Kind() != tools.KindConflict || !strings.Contains(p.Text(), "-2\n+out") {
			t.Errorf("%v: the conflict must show what became of this session's own: %s", args, mustEncode(t, p))
		}
	}
	var external string
	list := do("alice", "next", "checkpoints_list", map[string]any{"file_path": f}).(*tools.Checkpoints)
	for _, c := range list.Checkpoints {
		if c.Reason == "external" {
			external = c.ID
		}
	}
	if external == "" {
		t.Fatalf("the change outside is not on record: %s", mustEncode(t, list))
	}
	for _, against := range []string{"now", "after"} {
		do("alice", "next", "checkpoint_diff", map[string]any{"id": external, "against": against})
	}
	if p := do("alice", "next", "checkpoint_restore", map[string]any{"id": external}); tools.Refused(p) {
		t.Errorf("the external change can't be taken back: %s", mustEncode(t, p))
	}
	if got, err := os.ReadFile(f); err != nil || string(got) != "2\n" {
		t.Errorf("what was there before the change outside is %q for this session (%v)", got, err)
	}
}

// Paths that are denied by now are counted, not named, whatever a restore answers; and whether there are any is not told to who guesses a name.
func TestRestoreNamesNothingDenied(t *testing.T) {
	data := t.TempDir() + "/data"
	on := func(c *config.FS) { c.CheckpointBeforeMutation, c.CreateParents = true, true }
	s, root := suite(t, on, tools.Options{DataDir: data})
	ids := map[string]string{}
	for _, name := range []string{"a", "sec/key", "b"} {
		p := call(t, s, "Write", map[string]any{"file_path": root + "/" + name, "content": "x"})
		if tools.Refused(p) {
			t.Fatal(p.Text())
		}
		ids[name] = *p.(*tools.Write).CheckpointID
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s, _ = suite(t, func(c *config.FS) {
		on(c)
		c.WorkspaceRoot, c.AllowPaths, c.DenyPaths = root, []string{root + "/**"}, []string{root + "/sec/**"}
	}, tools.Options{DataDir: data})
	for _, x := range []struct {
		args   map[string]any
		kind   string
		denied string
	}{
		{map[string]any{"since": "1h", "dry_run": true}, "checkpoint_restore", `"denied":1`},
		{map[string]any{"since": "1h", "on_conflict": "force", "dry_run": true}, "checkpoint_restore", `"denied":1`},
		{map[string]any{"id": ids["sec/key"]}, tools.KindPathDenied, `"denied":1`},
		{map[string]any{"since": "1h", "paths": []string{root + "/zz"}}, tools.KindBadRequest, "1 more"},
		{map[string]any{"since": "1h", "on_conflict": "skip", "dry_run": true}, "checkpoint_restore", `"denied":1`},
		{map[string]any{"id": ids["sec/key"], "on_conflict": "skip"}, "checkpoint_restore", `"denied":1`},
		{map[string]any{"since": "1h"}, "checkpoint_restore", `"denied":1`},
	} {
		p := call(t, s, "checkpoint_restore", x.args)
		if out := mustEncode(t, p) + p.Text(); p.Kind() != x.kind || strings.Contains(out, "sec") || !strings.Contains(out, x.denied) {
			t.Errorf("%v: %s", x.args, out)
		}
	}
	for name, there := range map[string]bool{"a": false, "b": false, "sec/key": true} {
		if _, err := os.Stat(root + "/" + name); (err == nil) != there {
			t.Errorf("%s: there %v, want %v", name, err == nil, there)
		}
	}
	for _, tool := range []string{"checkpoint_restore", "checkpoint_diff"} {
		answers := map[string]bool{}
		for _, name := range []string{"key", "no"} {
			p := call(t, s, tool, map[string]any{"since": "1h", "paths": []string{root + "/sec/" + name}})
			answers[p.Kind()+strings.ReplaceAll(mustEncode(t, p), "sec/"+name, "")] = true
		}
		if len(answers) != 1 {
			t.Errorf("%s tells whether a denied path is in the history: %v", tool, answers)
		}
	}
}

// A path that names nothing, or not as the store does, is refused with the name that would do; it means neither everything nor nothing.
func TestPathsOfCheckpoints(t *testing.T) {
	s, root := suite(t, func(c *config.FS) { c.CheckpointBeforeMutation = true }, tools.Options{})
	f := root + "/a"
	call(t, s, "Write", map[string]any{"file_path": f, "content": "x"})
	for _, x := range []struct{ path, hint string }{
		{"", "mean all"},
		{"a", "Send it absolute and plain: " + f},
		{root + "/p/../a", "Send it absolute and plain: " + f},
		{root + "//a", "Send it absolute and plain: " + f},
		{root + "/b", "It holds " + f},
	} {
		for _, tool := range []string{"checkpoint_restore", "checkpoint_diff", "checkpoints_list"} {
			args := map[string]any{"since": "1h", "paths": []string{f, x.path}}
			if tool == "checkpoints_list" {
				args = map[string]any{"file_path": x.path}
				if strings.HasPrefix(x.hint, "It holds") {
					continue // an empty list is an answer
				}
			}
			p := call(t, s, tool, args)
			if r, ok := p.(*tools.Refusal); !ok || r.Reason != tools.KindBadRequest || !strings.Contains(r.Hint, x.hint) || r.Next != nil != strings.Contains(x.hint, "Send it") {
				t.Errorf("%s of %q: %s", tool, x.path, mustEncode(t, p))
			} else if r.Next != nil {
				if tool == "checkpoints_list" || tool == "checkpoint_diff" {
					if p := call(t, s, r.Next.Tool, r.Next.Args); tools.Refused(p) || !strings.Contains(mustEncode(t, p), f) {
						t.Errorf("the next call of %s: %s", tool, mustEncode(t, p))
					}
				}
			}
		}
	}
	if got := content(t, f); got != "x" {
		t.Errorf("the file holds %q", got)
	}
}
