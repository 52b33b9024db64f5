package main

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"moltisfs/checkpoint"
)

// No name in the store, from an import either, begins a line of its own in an export: git apply would carry it out.
func TestNamesStayInTheirLineOfAnExport(t *testing.T) {
	dir := t.TempDir()
	bad := "w\r\x1b[2J\ndiff --git a/p/evil b/p/evil\nnew file mode 100755\n--- /dev/null\n+++ b/p/evil\n@@ -0,0 +1 @@\n+evil\n"
	db, err := checkpoint.Open(filepath.Join(dir, "checkpoints"), checkpoint.Options{})
	must(t, err)
	change := func(path, was string) checkpoint.Change {
		return checkpoint.Change{
			Path: path, Role: "target", Before: checkpoint.State{Kind: checkpoint.File, Mode: 0o644, Size: int64(len(was))},
			After: checkpoint.State{Kind: checkpoint.Absent}, Content: []byte(was),
		}
	}
	for _, turn := range []string{"", bad, bad, "t", bad, "x" + bad, "x" + bad} { // one call, several, and a turn in parts
		op := checkpoint.Op{Tool: bad, Kind: checkpoint.KindWrite, Principal: bad, Session: bad, Turn: turn, Label: bad, Changes: []checkpoint.Change{change("/p/a"+bad, "1\n")}}
		if _, err := db.Save(context.Background(), op); err != nil {
			t.Fatal(err)
		}
	}
	must(t, db.Close())
	export := func(args ...string) string {
		status, out, errs := runWith(t, "", append([]string{"store", "export", "--data-dir", dir}, args...)...)
		if status != exitOK {
			t.Fatalf("%v: status %d: %s", args, status, errs)
		}
		return out
	}
	told := func(what, text string) {
		t.Helper()
		if strings.ContainsAny(text, "\r\x1b") || strings.Contains(text, "\n+evil") || strings.Contains(text, "\ndiff --git a/p/evil") || !strings.Contains(text, `012diff --git a/p/evil`) {
			t.Errorf("%s:\n%q", what, text)
		}
	}
	told("the patch", export("--root", "/"))
}
