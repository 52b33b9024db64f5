package tools_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"moltisfs/config"
	"moltisfs/tools"
)

// Today's policy holds for the names in old checkpoints too.
func TestListNamesNothingDenied(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	on := func(c *config.FS) { c.CheckpointBeforeMutation = true }
	s, root := suite(t, on, tools.Options{DataDir: data})
	for _, name := range []string{"secret", "open"} {
		if p := call(t, s, "Write", map[string]any{"file_path": root + "/" + name, "content": "x"}); tools.Refused(p) {
			t.Fatal(p.Text())
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s, _ = suite(t, func(c *config.FS) {
		on(c)
		c.WorkspaceRoot, c.AllowPaths, c.DenyPaths = root, []string{root + "/**"}, []string{root + "/secret"}
	}, tools.Options{DataDir: data})
	for _, x := range []struct {
		args         map[string]any
		rows, denied int
	}{
		{map[string]any{}, 1, 1},
		{map[string]any{"path_contains": "OPEN"}, 1, 0},
		{map[string]any{"path_contains": "secret"}, 0, 0}, // nor is a guess answered
		{map[string]any{"file_path": root + "/secret"}, 0, 0},
		{map[string]any{"file_path": root + "/open"}, 1, 0},
	} {
		p := call(t, s, "checkpoints_list", x.args)
		out, err := tools.Encode(p)
		if err != nil {
			t.Fatal(err)
		}
		list, ok := p.(*tools.Checkpoints)
		if !ok || list.Count != x.rows || len(list.Checkpoints) != x.rows || list.Denied != x.denied || strings.Contains(string(out)+p.Text(), "secret") {
			t.Errorf("%v: %s\n%s", x.args, out, p.Text())
		}
	}
}

// A row whose old content the store does not hold says so, as the change's own result did.
func TestListTellsWhatIsNotStored(t *testing.T) {
	s, root := suite(t, func(c *config.FS) {
		c.CheckpointBeforeMutation = true
		c.Checkpoint.MaxFileBytes = 10
	}, tools.Options{DataDir: filepath.Join(t.TempDir(), "data")})
	for _, content := range []string{"longer than ten bytes", "short"} {
		if p := call(t, s, "Write", map[string]any{"file_path": root + "/f", "content": content}); tools.Refused(p) {
			t.Fatal(p.Text())
		}
	}
	p := call(t, s, "checkpoints_list", map[string]any{})
	list, ok := p.(*tools.Checkpoints)
	if !ok || list.Count != 2 || list.Checkpoints[0].NotStored != "too_large" || list.Checkpoints[1].NotStored != "" || strings.Count(p.Text(), "too_large") != 1 {
		t.Errorf("%+v\n%s", p, p.Text())
	}
}

// What a checkpoint is said to be made by may come from an imported folder.
func TestListKeepsALineEach(t *testing.T) {
	p := &tools.Checkpoints{Count: 1, Checkpoints: []tools.CheckpointRow{{ID: "ck-1H0", Reason: "Write\nck-2VR \x1b[31m", SourcePath: "/w/a", Existed: true}}}
	if text := p.Text(); strings.ContainsAny(text, "\n\x1b") {
		t.Errorf("%q", text)
	}
}

// Some clients show the model the text alone, so what a rewind goes by is in it, and what is listed by no tool's name is found by its reason.
func TestListTextHasTheMarks(t *testing.T) {
	p := &tools.Checkpoints{Count: 2, Checkpoints: []tools.CheckpointRow{
		{ID: "ck-1H0", Reason: "Write", SourcePath: "/w/a", Existed: true, Turn: "t\n1", Label: "before", Pinned: true}, {ID: "ck-2VR", Reason: "external", SourcePath: "/w/b", Existed: true},
	}}
	if text := p.Text(); !strings.Contains(text, "/w/a [turn \"t\\n1\", label before, pinned]\n") || !strings.HasSuffix(text, "external /w/b") {
		t.Errorf("%s", text)
	}
	s, root := suite(t, func(c *config.FS) { c.CheckpointBeforeMutation = true }, tools.Options{DataDir: filepath.Join(t.TempDir(), "data")})
	if p := call(t, s, "Write", map[string]any{"file_path": root + "/f", "content": "x"}); tools.Refused(p) {
		t.Fatal(p.Text())
	}
	for _, x := range []struct {
		tool string
		rows int
	}{{"Write", 1}, {"write", 1}, {"external", 0}, {"Edit", 0}} {
		if list, ok := call(t, s, "checkpoints_list", map[string]any{"tool": x.tool}).(*tools.Checkpoints); !ok || list.Count != x.rows {
			t.Errorf("%s: %+v", x.tool, list)
		}
	}
}

// A path is found however it is spelled: through a link above it, as a link itself, with a slash at its end, and when it is gone. Where a denied
// link leads is not told.
func TestListFindsAPathByItsOtherNames(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	on := func(c *config.FS) { c.CheckpointBeforeMutation = true }
	s, root := suite(t, on, tools.Options{DataDir: data})
	for _, d := range []string{"real/sub", "rel8"} {
		if err := os.MkdirAll(filepath.Join(root, d), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{"link": "real", "hidden": "real", "real/b": "a", "real/c": "gone"} {
		if err := os.Symlink(to, filepath.Join(root, link)); err != nil {
			t.Skip("SKIPPED: no symbolic links:", err)
		}
	}
	do := func(tool, path, content string) {
		t.Helper()
		args := map[string]any{"file_path": root + "/" + path}
		if content != "" {
			args["content"] = content
		}
		if p := call(t, s, tool, args); tools.Refused(p) {
			t.Fatal(p.Text())
		}
	}
	do("Write", "link/a", "x")
	do("Write", "real/gone", "x")
	if err := os.Remove(filepath.Join(root, "real/gone")); err != nil {
		t.Fatal(err)
	}
	count := func(path string, want int) {
		t.Helper()
		p := call(t, s, "checkpoints_list", map[string]any{"file_path": root + "/" + path})
		if list, ok := p.(*tools.Checkpoints); !ok || list.Count != want {
			t.Errorf("%s, want %d: %s", path, want, p.Text())
		}
	}
	for _, path := range []string{"real/a", "link/a", "link/b", "real/a/", "link/a/", "real/gone", "link/gone", "hidden/a"} {
		count(path, 1)
	}
	do("Write", "real/d", "x")
	if err := os.Remove(filepath.Join(root, "real/d")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("a", filepath.Join(root, "real/d")); err != nil {
		t.Fatal(err)
	}
	count("link/d", 2) // what was there, and what it leads to
	count("link/none", 0)
	// The link leads elsewhere by now: where it was a directory of its own before counts as well.
	if err := os.Remove(filepath.Join(root, "link")); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(root, "link"), 0o700); err != nil {
		t.Fatal(err)
	}
	do("Write", "link/a", "y")
	count("link/a", 1)
	if err := os.RemoveAll(filepath.Join(root, "link")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("real", filepath.Join(root, "link")); err != nil {
		t.Fatal(err)
	}
	count("link/a", 2)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s, _ = suite(t, func(c *config.FS) {
		on(c)
		c.WorkspaceRoot, c.AllowPaths, c.DenyPaths = root, []string{root + "/**"}, []string{root + "/hidden/x", root + "/*/hid", root + "/[h]idden"}
	}, tools.Options{DataDir: data})
	count("hidden/a", 0)
	count("real/a", 1)
}
