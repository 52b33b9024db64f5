//go:build !rooted

package guardfs_test

import (
	"os"
	"path/filepath"
	"testing"

	"moltisfs/internal/guardfs"
)

// Nothing is certain only of what is not there.
func TestNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	f, err := guardfs.New(guardfs.Options{Judge: everything{}})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for link, to := range map[string]string{"link": "file", "dangling": "none", "loop": "loop"} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]bool{"": false, "file": false, "link": false, "none": true, "dangling": true,
		"loop": false, "file/below": false, "none/below": true} {
		if got := f.Nothing(filepath.Join(dir, name)); got != want {
			t.Errorf("%q: %v", name, got)
		}
	}
}
