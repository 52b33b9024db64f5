package tools_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"moltisfs/tools"
)

// What a killed process left beside a file is found by no search, and stays while it is young enough to be in use; what may be somebody's
// content is shown and stays.
func TestLitterOfKilledProcesses(t *testing.T) {
	s, root := suite(t, nil, tools.Options{})
	write(t, filepath.Join(root, "a.txt"), "needle\n")
	young, kept := ".moltis-0123456789abcdef01234568.tmp", ".moltis-0123456789abcdef01234569.kept"
	for _, name := range []string{young, kept} {
		write(t, filepath.Join(root, name), "needle\n")
	}
	for tool, args := range map[string]map[string]any{"Glob": {"pattern": "**"}, "Grep": {"pattern": "needle", "output_mode": "files_with_matches"}} {
		answer := mustEncode(t, call(t, s, tool, args))
		if strings.Contains(answer, young) || !strings.Contains(answer, "a.txt") || !strings.Contains(answer, kept) {
			t.Errorf("%s: %s", tool, answer)
		}
	}
	if p := call(t, s, "Edit", map[string]any{"file_path": filepath.Join(root, "a.txt"), "old_string": "needle", "new_string": "pin"}); tools.Refused(p) {
		t.Fatal(mustEncode(t, p))
	}
	for _, name := range []string{young, kept} {
		if _, err := os.Stat(filepath.Join(root, name)); err != nil {
			t.Error(err)
		}
	}
}
