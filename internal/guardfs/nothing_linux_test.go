//go:build !rooted

package guardfs

import (
	"os"
	"path/filepath"
	"testing"
)

// Nothing is certain only of what is not there.
func TestNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	f := open(t, everything{})
	must(t, os.WriteFile(filepath.Join(dir, "file"), nil, 0o600))
	for link, to := range map[string]string{"link": "file", "dangling": "none", "loop": "loop"} {
		must(t, os.Symlink(to, filepath.Join(dir, link)))
	}
	for name, want := range map[string]bool{"": false, "file": false, "link": false, "none": true, "dangling": true,
		"loop": false, "file/below": false, "none/below": true} {
		if got := f.Nothing(filepath.Join(dir, name)); got != want {
			t.Errorf("%q: %v", name, got)
		}
	}
}
