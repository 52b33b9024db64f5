package grep

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"

	"moltisfs/grep/match"
)

// An empty answer says that there is nothing; of a root that is not there that would be untrue.
func TestMissingRoot(t *testing.T) {
	t.Parallel()
	m := compile(t, "x", match.Options{})
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	must(t, os.WriteFile(file, []byte("x\n"), 0o600))
	gone := filepath.Join(dir, "gone")
	for _, x := range []struct {
		name    string
		fsys    fs.FS
		missing bool // fs.ErrNotExist
		ok      bool
	}{
		{"gone", os.DirFS(gone), true, false},
		{"a file", os.DirFS(file), false, false},
		{"here", os.DirFS(dir), false, true},
		{"empty", os.DirFS(t.TempDir()), false, true},
		{"in memory", fstest.MapFS{}, false, true},
	} {
		w := Walk{Dir: FS(x.fsys)}
		_, serr := Search(context.Background(), w, Query{Matcher: m})
		_, ferr := Files(context.Background(), w, GlobQuery{})
		for what, err := range map[string]error{"Search": serr, "Files": ferr} {
			if (err == nil) != x.ok || x.missing && !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s, %s: %v", x.name, what, err)
			}
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Search(ctx, Walk{Dir: FS(os.DirFS(dir))}, Query{Matcher: m}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}
