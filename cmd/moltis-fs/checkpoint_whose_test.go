package main

import (
	"strings"
	"testing"
)

// Without --principal nothing of another principal is taken back, unless a session of his is named that local does not have.
func TestUndoIsOfLocal(t *testing.T) {
	t.Parallel()
	root, data := realDir(t), t.TempDir()
	run := func(want int, says, line string) {
		t.Helper()
		status, out, errs := runWith(t, "", append(strings.Fields(line), "--root", root, "--data-dir", data)...)
		if status != want || !strings.Contains(out+errs, says) {
			t.Errorf("%s: status %d, not %d and %q: %s%s", line, status, want, says, out, errs)
		}
	}
	run(exitOK, "", "call --yes --principal bob --session s1 Write file_path="+root+"/x content=x")
	for _, line := range []string{"undo --yes", "undo --all --yes", "checkpoint rewind --since 1h --yes"} {
		run(exitRefused, "no checkpoints of principal local", line)
	}
	run(exitOK, "of principal bob", "diff")
	run(exitOK, "of principal bob", "undo --session s1 --dry-run")
	run(exitOK, "", "call --yes --session s1 Write file_path="+root+"/y content=y")
	run(exitOK, root+"/y", "undo --session s1 --yes")
	run(exitOK, root+"/x", "undo --principal bob --yes")
}
