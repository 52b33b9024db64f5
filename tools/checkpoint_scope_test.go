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
	s, root := suite(t, func(c *config.FS) { c.CheckpointBeforeMutation, c.Checkpoint.OnRead = true, "content" }, tools.Options{})
	for _, how := range []string{"edit", "read"} {
		f := write(t, root+"/"+how, "1\n")
		do := func(who, turn, tool string, args map[string]any) tools.Payload {
			p := callAs(t, s, who, turn, tool, args)
			if who == "alice" && strings.Contains(mustEncode(t, p)+p.Text(), secret) {
				t.Errorf("%s %v shows it: %s", tool, args, mustEncode(t, p))
			}
			return p
		}
		if how == "edit" {
			do("alice", "t1", "Edit", map[string]any{"file_path": f, "old_string": "1", "new_string": "2"})
			do("bob", "t1", "Edit", map[string]any{"file_path": f, "old_string": "2", "new_string": secret})
		} else {
			do("alice", "t2", "Read", map[string]any{"file_path": f})
			write(t, f, secret+"\n")
			do("bob", "t2", "Read", map[string]any{"file_path": f})
		}
		write(t, f, "out\n")
		if how == "edit" {
			for _, args := range []map[string]any{{"dry_run": true}, {"dry_run": true, "on_conflict": "merge"}, {}} {
				args["since"] = "1h"
				p := do("alice", "t1", "checkpoint_restore", args)
				if p.Kind() != tools.KindConflict || !strings.Contains(p.Text(), "-2\n+out") {
					t.Errorf("%v: the conflict must show what became of this session's own: %s", args, mustEncode(t, p))
				}
			}
		}
		var external string
		list := do("alice", how+" next", "checkpoints_list", map[string]any{"file_path": f}).(*tools.Checkpoints)
		for _, c := range list.Checkpoints {
			if c.Reason == "external" {
				external = c.ID
			}
		}
		if external == "" {
			t.Fatalf("the change outside is not on record: %s", mustEncode(t, list))
		}
		for _, against := range []string{"now", "after"} {
			do("alice", how+" next", "checkpoint_diff", map[string]any{"id": external, "against": against})
		}
		if p := do("alice", how+" next", "checkpoint_restore", map[string]any{"id": external}); tools.Refused(p) {
			t.Errorf("the external change can't be taken back: %s", mustEncode(t, p))
		}
		want := "2\n"
		if how == "read" {
			want = "1\n"
		}
		if got, err := os.ReadFile(f); err != nil || string(got) != want {
			t.Errorf("%s: what was there before the change outside is %q for this session, want %q (%v)", how, got, want, err)
		}
	}
}
