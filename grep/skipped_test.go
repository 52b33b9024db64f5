//go:build linux

package grep

import (
	"context"
	"os"
	"path/filepath"
	"testing"
)

// TestSkippedIsTrue: what a pattern could not have reached was not skipped, and what it names and a
// search does not enter was.
func TestSkippedIsTrue(t *testing.T) {
	dir := t.TempDir()
	for _, f := range []string{"src/a.go", "lib/src/b.go", "out/c.go", ".git/d.go", "src/.svn/e.go"} {
		p := filepath.Join(dir, f)
		must(t, os.MkdirAll(filepath.Dir(p), 0o755))
		must(t, os.WriteFile(p, []byte("x\n"), 0o644))
	}
	must(t, os.WriteFile(filepath.Join(dir, ".gitignore"), []byte("out/\n"), 0o644))
	for name, to := range map[string]string{"dir": "src", "src/f.go": "a.go", "src/f.txt": "a.go"} {
		must(t, os.Symlink(to, filepath.Join(dir, name)))
	}
	d := guarded(t, dir, anything{})
	for pattern, want := range map[string]Skipped{
		"src/*.go": {Links: 1},
		"dir/*.go": {Links: 1}, // named, and not followed
		"d*/*.go":  {Links: 1},
		"**/*.go":  {Links: 1, Ignored: 1, VCS: 2}, // any link could lead somewhere: only f.go is asked for
		"out/*.go": {Ignored: 1},
		".git/*":   {VCS: 1},
		"!src":     {Ignored: 1, VCS: 1, Links: 1},
	} {
		r, err := Files(context.Background(), Walk{Dir: d}, GlobQuery{Pattern: pattern})
		must(t, err)
		if r.Skipped != want {
			t.Errorf("%q: skipped %+v, want %+v", pattern, r.Skipped, want)
		}
	}
}
