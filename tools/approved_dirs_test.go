package tools_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"moltisfs/config"
	"moltisfs/tools"
)

// Write with create_parents, and the undo of it: whoever approves sees the directories, the answer
// and the record name them, and where policy does not allow one, nobody is asked.
func TestParentsAreApprovedByName(t *testing.T) {
	var asked []tools.Question
	yes := asker(func(q tools.Question) tools.Answer {
		asked = append(asked, q)
		return tools.Answer{Decision: tools.Approved, By: "test"}
	})
	data := filepath.Join(t.TempDir(), "data")
	s, root := suite(t, func(fs *config.FS) {
		fs.RequireApproval, fs.CreateParents, fs.CheckpointBeforeMutation = true, true, true
	}, tools.Options{Approver: yes, DataDir: data})
	file, dirs := root+"/n1/n2/f", []string{root + "/n1", root + "/n1/n2"}
	write := map[string]any{"file_path": file, "content": "x\n"}
	named := func(what string, paths []string) {
		t.Helper()
		for _, d := range append(dirs, file) {
			if !slices.Contains(paths, d) {
				t.Errorf("%s does not name %s: %q", what, d, paths)
			}
		}
	}

	write["dry_run"] = true
	if p, ok := call(t, s, "Write", write).(*tools.Write); !ok || !slices.Equal(p.ParentsMade, dirs) || len(asked) > 0 {
		t.Errorf("a dry run: %+v, asked %v", p, asked)
	}
	delete(write, "dry_run")
	for _, c := range []struct {
		tool, summary string
		args          map[string]any
	}{
		{"Write", "write 2 bytes; creates 2 directories: " + dirs[0] + ", " + dirs[1], write},
		{"checkpoint_restore", "restore 3 paths; removes 2 directories: " + dirs[1] + ", " + dirs[0], map[string]any{"id": "undo"}},
	} {
		if p := call(t, s, c.tool, c.args); tools.Refused(p) || len(asked) != 1 {
			t.Fatalf("%s: %s, asked %v", c.tool, mustEncode(t, p), asked)
		}
		if asked[0].Summary != c.summary {
			t.Errorf("%s: %q, should be %q", c.tool, asked[0].Summary, c.summary)
		}
		named("the question of "+c.tool, asked[0].Paths)
		for _, r := range recorded(t, data) {
			if r.Tool == c.tool && r.Phase == "intent" {
				named("the record of "+c.tool, r.Paths)
			}
		}
		asked = nil
	}

	s, root = suite(t, func(fs *config.FS) {
		fs.RequireApproval, fs.CreateParents = true, true
		fs.AllowPaths = []string{strings.TrimSuffix(fs.AllowPaths[0], "**") + "n1/n2/**"}
	}, tools.Options{Approver: yes})
	if p := call(t, s, "Write", map[string]any{"file_path": root + "/n1/n2/f", "content": "x\n"}); p.Kind() != tools.KindPathDenied || len(asked) > 0 {
		t.Errorf("a parent that is not allowed: %s, asked %v", mustEncode(t, p), asked)
	}
	if _, err := os.Stat(root + "/n1"); err == nil {
		t.Error("it was made")
	}
}

type auditRecord struct {
	Tool, Phase string
	Paths       []string
}

func recorded(t *testing.T, data string) (out []auditRecord) {
	t.Helper()
	for line := range strings.Lines(records(t, data)) {
		var r auditRecord
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatal(err)
		}
		out = append(out, r)
	}
	return out
}
