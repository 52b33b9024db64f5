package tools_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"moltisfs/config"
	"moltisfs/internal/dialect"
	"moltisfs/tools"
)

// Undo and redo are of the newest change or of none: where that is out of reach they refuse, tell how many paths it has and name none, and leave
// the older ones alone. With on_conflict skip it counts as undone, and its paths stay as they are.
func TestUndoNeverTakesAnOlderChange(t *testing.T) {
	t.Parallel()
	in := func(root string) *dialect.Scope {
		return &dialect.Scope{Readable: []string{root + "/a.txt"}, Writable: []string{root + "/a.txt"}}
	}
	for name, c := range map[string]struct {
		newer  []string // edited after a.txt
		close  func(t *testing.T, root string)
		deny   string
		scope  func(root string) *dialect.Scope
		denied int
	}{
		"a link to outside in the place of its directory": {[]string{"dd/x"}, func(t *testing.T, root string) {
			must(t, os.Rename(root+"/dd", root+"/ee"))
			must(t, os.Symlink(filepath.Dir(root), root+"/dd"))
		}, "", nil, 1},
		"closed since a restart":    {[]string{"dd/x"}, nil, "dd/**", nil, 1},
		"several closed ones":       {[]string{"dd/x", "dd/y", "dd/z"}, nil, "dd/**", nil, 1},
		"closed by the file's name": {[]string{"dd/x"}, nil, "**/x", nil, 1},
		"out of the caller's scope": {[]string{"dd/x"}, nil, "", in, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var scope *dialect.Scope
			o := tools.Options{DataDir: t.TempDir()}
			s, root := suite(t, func(fs *config.FS) { fs.CheckpointBeforeMutation = true }, o)
			must(t, os.Mkdir(root+"/dd", 0o755))
			for _, f := range append([]string{"a.txt"}, c.newer...) {
				write(t, root+"/"+f, "1\n")
				call(t, s, "Edit", map[string]any{"file_path": root + "/" + f, "old_string": "1", "new_string": "2"})
			}
			reopen := func(deny string) {
				must(t, s.Close())
				cfg := config.Default()
				cfg.Tools.FS.WorkspaceRoot, cfg.Tools.FS.AllowPaths, cfg.Tools.FS.RequireApproval = root, []string{root + "/**"}, false
				if cfg.Tools.FS.CheckpointBeforeMutation = true; deny != "" {
					cfg.Tools.FS.DenyPaths = []string{root + "/" + deny}
				}
				var err error
				if s, err = tools.Open(cfg, o); err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { must(t, s.Close()) })
			}
			refuses := func(id string) {
				t.Helper()
				for _, more := range []string{`{}`, `{"dry_run":true}`, `{"on_conflict":"force"}`, `{"on_conflict":"merge"}`} {
					args := map[string]any{"id": id}
					if strings.Contains(more, "dry") {
						args["dry_run"] = true
					} else if parts := strings.Split(more, `"`); len(parts) > 3 {
						args["on_conflict"] = parts[3]
					}
					p := callWithin(t, s, scope, "checkpoint_restore", args)
					raw, _ := tools.Encode(p)
					if p.Kind() != "path_denied" || !strings.Contains(string(raw), fmt.Sprintf(`"denied":%d`, c.denied)) ||
						!strings.Contains(p.Text(), "the newest change lies where this session may not go") || strings.Contains(string(raw), root) {
						t.Errorf("%s %s: %s", id, more, raw)
					}
				}
			}
			is := func(want string) {
				t.Helper()
				if got, _ := os.ReadFile(root + "/a.txt"); string(got) != want {
					t.Errorf("a.txt has %q, want %q", got, want)
				}
			}
			if c.close != nil {
				c.close(t, root)
			}
			reopen(c.deny)
			if c.scope != nil {
				scope = c.scope(root)
			}
			refuses("undo")
			is("2\n")
			for range c.newer {
				if p := callWithin(t, s, scope, "checkpoint_restore", map[string]any{"id": "undo", "on_conflict": "skip"}); p.Kind() != "checkpoint_restore" {
					t.Fatal(p.Text())
				}
				is("2\n")
			}
			if p := callWithin(t, s, scope, "checkpoint_restore", map[string]any{"id": "undo"}); p.Kind() != "checkpoint_restore" {
				t.Fatal(p.Text())
			}
			is("1\n")
			for _, f := range slices.Backward(c.newer) {
				if got, err := os.ReadFile(root + "/" + f); err == nil && string(got) != "2\n" {
					t.Errorf("%s has %q", f, got)
				}
			}
		})
	}
}

// A redo is of the newest undo or of none.
func TestRedoNeverTakesAnOlderUndo(t *testing.T) {
	t.Parallel()
	s, root := suite(t, func(fs *config.FS) { fs.CheckpointBeforeMutation = true }, tools.Options{})
	for _, f := range []string{"x.txt", "a.txt"} {
		write(t, root+"/"+f, "1\n")
		call(t, s, "Edit", map[string]any{"file_path": root + "/" + f, "old_string": "1", "new_string": "2"})
	}
	undo, redo := map[string]any{"id": "undo"}, map[string]any{"id": "redo"}
	for range 2 { // of a.txt, then of x.txt
		call(t, s, "checkpoint_restore", undo)
	}
	scope := &dialect.Scope{Readable: []string{root + "/a.txt"}, Writable: []string{root + "/a.txt"}}
	if p := callWithin(t, s, scope, "checkpoint_restore", redo); p.Kind() != "path_denied" || !strings.Contains(p.Text(), "newest change") {
		t.Error(p.Text())
	}
	if got, _ := os.ReadFile(root + "/a.txt"); string(got) != "1\n" {
		t.Errorf("a.txt has %q", got)
	}
}
