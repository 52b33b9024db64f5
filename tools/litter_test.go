package tools_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"moltisfs/config"
	"moltisfs/tools"
)

const temporaryName = ".moltis-0123456789abcdef"

// What a killed process left beside a file is removed by the next start, which finds it in that
// process's record, and no search shows it before. What may be somebody's content is shown and
// stays.
func TestLitterOfKilledProcesses(t *testing.T) {
	s, root := suite(t, nil, tools.Options{})
	data := filepath.Join(filepath.Dir(root), "data")
	write(t, filepath.Join(root, "a.txt"), "needle\n")
	tag := "0123456789abcdef"
	litter, kept := temporaryName+"-0.tmp", temporaryName+"01234567.kept"
	for _, name := range []string{litter, kept} {
		write(t, filepath.Join(root, name), "needle\n")
	}
	write(t, filepath.Join(data, "temporaries", tag), `"`+root+`/a.txt" `+litter+"\n")
	for tool, args := range searches {
		answer := mustEncode(t, call(t, s, tool, args))
		if strings.Contains(answer, litter) || strings.Contains(answer, "denied") || !strings.Contains(answer, "a.txt") || !strings.Contains(answer, kept) {
			t.Errorf("%s: %s", tool, answer)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	cfg := config.Default()
	cfg.Tools.FS.WorkspaceRoot, cfg.Tools.FS.AllowPaths = root, []string{root + "/**"}
	s, err := tools.Open(cfg, tools.Options{DataDir: data})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := os.Lstat(filepath.Join(root, litter)); err == nil {
		t.Error("the next start did not remove it")
	}
	if _, err := os.Lstat(filepath.Join(root, kept)); err != nil {
		t.Error(err)
	}
}

var searches = map[string]map[string]any{
	"Glob": {"pattern": "**"}, "Grep": {"pattern": "needle", "output_mode": "files_with_matches"},
}

// A file of the user's own with a name like our temporary ones is refused to every tool, also as
// the target of a restore, and counted by a search. It is there at any age, whatever is changed
// beside it and however often somebody starts.
func TestOurNamesHideNothing(t *testing.T) {
	s, root := suite(t, func(fs *config.FS) { fs.CheckpointBeforeMutation = true }, tools.Options{})
	for _, name := range []string{temporaryName + "-0.tmp", temporaryName + "-1.old", temporaryName + "-12.new", strings.ToUpper(temporaryName) + "-3.TMP"} {
		path := filepath.Join(root, name)
		refuses := func(when string) {
			t.Helper()
			for tool, args := range map[string]map[string]any{
				"Write": {"file_path": path, "content": "payload"}, "Read": {"file_path": path}, "Grep": {"pattern": "x", "path": path},
				"Edit":        {"file_path": path, "old_string": "", "new_string": "payload"},
				"Glob":        {"pattern": "*", "path": path},
				"Write below": {"file_path": path + "/f", "content": "payload"},
			} {
				tool, _, _ = strings.Cut(tool, " ")
				p := call(t, s, tool, args)
				if p.Kind() != tools.KindPathDenied {
					t.Errorf("%s, %s: %s", when, tool, mustEncode(t, p))
				}
			}
		}
		refuses("nothing there")
		write(t, path, "needle\n")
		old := time.Now().Add(-10000 * time.Hour)
		if err := os.Chtimes(path, old, old); err != nil {
			t.Fatal(err)
		}
		refuses("a file there")
		for tool, args := range searches {
			if answer := mustEncode(t, call(t, s, tool, args)); strings.Contains(answer, name) || !strings.Contains(answer, `"denied":{"count":1`) {
				t.Errorf("%s does not count it: %s", tool, answer)
			}
		}
		if p := call(t, s, "Write", map[string]any{"file_path": root + "/beside", "content": name}); tools.Refused(p) {
			t.Fatal(mustEncode(t, p))
		}
		if got := content(t, path); got != "needle\n" {
			t.Errorf("it holds %q", got)
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
}
