package tools_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"moltisfs/config"
	"moltisfs/internal/dialect"
	"moltisfs/tools"
)

// What searches and restores have come to is counted while they run, for each call apart.
func TestCallsCountTheirFiles(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	root := filepath.Join(dir, "work")
	if err := os.MkdirAll(filepath.Join(root, "sub"), 0o700); err != nil {
		t.Fatal(err)
	}
	const files = 30
	cfg := config.Default()
	cfg.Tools.FS.WorkspaceRoot, cfg.Tools.FS.RequireApproval, cfg.Tools.FS.CheckpointBeforeMutation = root, false, true
	s, err := tools.Open(cfg, tools.Options{DataDir: filepath.Join(dir, "data")})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
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
