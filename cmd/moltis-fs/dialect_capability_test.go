package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"moltisfs/config"
	"moltisfs/internal/approval"
	"moltisfs/internal/dialect"
	"moltisfs/internal/dialect/capability"
	"moltisfs/internal/engine"
	"moltisfs/tools"
)

// yes approves of everything.
type yes struct{}

func (yes) Ask(context.Context, approval.Question) (approval.Answer, error) {
	return approval.Answer{Decision: approval.Approved}, nil
}

// Two dialects over one engine have one history: checkpoint_restore brings back what filesystem.delete took
// away, a file that one has read the other may write, and each record names the dialect of its call.
func TestOneHistory(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	cfg, p := config.Default(), root+"/a"
	fs := &cfg.Tools.FS
	fs.RequireApproval, fs.CheckpointBeforeMutation, fs.TrackReads, fs.MustReadBeforeWrite = false, true, true, true
	data := filepath.Join(t.TempDir(), "data")
	e, err := engine.Open(cfg, engine.Host{DataDir: data, Approver: yes{}})
	must(t, err)
	defer e.Close()
	capabilities, err := capability.Over(e, config.Capability{})
	must(t, err)
	must(t, os.WriteFile(p, []byte("day"), 0o600))
	by := map[string]dialect.Dialect{"capability": capabilities, "tools": tools.Over(e).Dialect()}
	for _, c := range []struct {
		dialect, tool, args string
		refused             bool
		now                 string // "" when there is none
	}{
		{"tools", "Write", `{"file_path":"P","content":"night"}`, true, "day"},
		{"capability", "filesystem.read", `{"path":"P"}`, false, "day"},
		{"tools", "Write", `{"file_path":"P","content":"night"}`, false, "night"},
		{"capability", "filesystem.write", `{"path":"P","content":"noon"}`, false, "noon"},
		{"capability", "filesystem.append", `{"path":"P","content":"!"}`, false, "noon!"},
		{"capability", "filesystem.delete", `{"path":"P"}`, false, ""},
		{"tools", "checkpoint_restore", `{"id":"undo"}`, false, "noon!"},
		{"tools", "checkpoint_restore", `{"id":"undo"}`, false, "noon"},
		{"tools", "checkpoint_restore", `{"id":"undo"}`, false, "night"},
		{"tools", "checkpoint_restore", `{"id":"undo"}`, false, "day"},
		{"tools", "checkpoints_list", `{}`, false, "day"},
	} {
		a, err := by[c.dialect].Call(t.Context(), dialect.Call{Session: "s", Tool: c.tool,
			Args: json.RawMessage(strings.ReplaceAll(c.args, `"P"`, `"`+p+`"`))})
		if err != nil || a.Refused() != c.refused {
			t.Fatalf("%s %s: %v, %v", c.tool, c.args, a, err)
		}
		now, err := os.ReadFile(p)
		if c.now == "" && !errors.Is(err, os.ErrNotExist) || c.now != "" && string(now) != c.now {
			t.Errorf("after %s %s: %q, %v", c.tool, c.args, now, err)
		}
		for _, want := range []string{"Write", "filesystem.write", "filesystem.append", "filesystem.delete"} {
			if c.tool == "checkpoints_list" && !strings.Contains(a.Text(), want) {
				t.Errorf("no %s in %s", want, a.Text())
			}
		}
	}
	record := recordsOf(t, data)
	for _, want := range []string{`"dialect":"capability","tool":"filesystem.append"`, `"dialect":"tools","tool":"Write"`} {
		if !strings.Contains(record, want) {
			t.Errorf("no %s in\n%s", want, record)
		}
	}
}
