//go:build linux && !rooted

package engine_test

import (
	"io/fs"
	"os"
	"testing"

	"moltisfs/checkpoint"
	"moltisfs/internal/engine"
)

// A directory that was not open to all comes back so, whoever removed it, also in another process; of one that nobody recorded only what its files and
// the directory above allow.
func TestRestoredDirectoriesStayClosed(t *testing.T) {
	for _, c := range []struct {
		name               string
		outer, inner, file fs.FileMode
		wantOut, wantIn    fs.FileMode
	}{
		{"closed", 0o700, 0o755, 0o644, 0o700, 0o755},
		{"closed within", 0o755, 0o700, 0o644, 0o755, 0o700},
		{"for a group", 0o750, 0o710, 0o644, 0o750, 0o710},
		{"open", 0o755, 0o755, 0o644, 0o755, 0o755},
		{"unknown with a private file", 0o755, 0o755, 0o600, 0o700, 0o700},
	} {
		for _, later := range []bool{false, true} {
			x := grow(t, nil)
			if err := os.Chmod(x.ws, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := x.Close(); err != nil {
				t.Fatal(err)
			}
			x.cfg.WorkspaceRoot = x.ws
			x.open()
			path := x.write("d/x/f", "old\n")
			for name, mode := range map[string]fs.FileMode{path: c.file, x.ws + "/d/x": c.inner, x.ws + "/d": c.outer} {
				if err := os.Chmod(name, mode); err != nil {
					t.Fatal(err)
				}
			}
			id := x.put("s", "d/x/f", "new\n")
			if later { // the same mode is not recorded again
				if err := x.Close(); err != nil {
					t.Fatal(err)
				}
				x.open()
				id = x.put("s", "d/x/f", "newer\n")
			}
			if err := os.RemoveAll(x.ws + "/d"); err != nil {
				t.Fatal(err)
			}
			if _, err := x.Restore(ctx, x.call("s"), checkpoint.Restore{ID: id}, engine.RestoreOptions{OnConflict: engine.OnConflictForce}); err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
			for name, want := range map[string]fs.FileMode{"/d": c.wantOut, "/d/x": c.wantIn} {
				if i, err := os.Stat(x.ws + name); err != nil || i.Mode().Perm() != want {
					t.Errorf("%s: %s is %v, want %v (%v)", c.name, name, i.Mode(), want, err)
				}
			}
			if _, err := x.Undo(ctx, x.call("s"), engine.RestoreOptions{}); err != nil {
				t.Fatal(err)
			}
			if _, err := os.Stat(x.ws + "/d"); err == nil {
				t.Errorf("%s: undo leaves the directories", c.name)
			}
		}
	}
}
