package tools_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"moltisfs/config"
	"moltisfs/internal/testdir"
	"moltisfs/tools"
)

// TestLowerLayer: what a container's image brought along is changed, read first where that is required, and brought back like any other file.
func TestLowerLayer(t *testing.T) {
	mem, err := os.MkdirTemp("/dev/shm", "overlay")
	if err != nil {
		t.Skip("SKIPPED: no place for the layers: ", err)
	}
	t.Cleanup(func() { os.RemoveAll(mem) })
	for name, lower := range map[string]string{"one file system": mem + "/lower", "two": testdir.Disk(t)} {
		t.Run(name, func(t *testing.T) {
			s, root := suite(t, func(fs *config.FS) {
				fs.CheckpointBeforeMutation, fs.TrackReads, fs.MustReadBeforeWrite = true, true, true
			}, tools.Options{})
			at, upper := root+"/ov", mem+"/"+strings.ReplaceAll(name, " ", "-")
			const notebook = `{"cells":[{"cell_type":"code","id":"c1","metadata":{},"execution_count":null,"outputs":[],"source":["low"]}],"metadata":{},"nbformat":4,"nbformat_minor":5}`
			was := map[string]string{"write": "low\n", "edit": "low\n", "multi": "low\n", "deep/down/f": "low\n", "one": "low\n", "outside": "low\n", "n.ipynb": notebook}
			for f, text := range was {
				write(t, lower+"/"+f, text)
			}
			if err := os.Link(lower+"/one", lower+"/two"); err != nil {
				t.Fatal(err)
			}
			for _, d := range []string{at, upper, upper + "/up", upper + "/work"} {
				if err := os.Mkdir(d, 0o755); err != nil {
					t.Fatal(err)
				}
			}
			if err := unix.Mount("overlay", at, "overlay", 0, "lowerdir="+lower+",upperdir="+upper+"/up,workdir="+upper+"/work"); err != nil {
				t.Skip("SKIPPED: no overlay file system can be mounted here: ", err)
			}
			t.Cleanup(func() { unix.Unmount(at, unix.MNT_DETACH) })
			do := func(tool string, args map[string]any) tools.Payload {
				t.Helper()
				p := call(t, s, tool, args)
				if tools.Refused(p) {
					t.Fatalf("%s %v: %s", tool, args, mustEncode(t, p))
				}
				return p
			}
			for f := range was {
				do("Read", map[string]any{"file_path": filepath.Join(at, f)})
			}
			// Somebody else has it copied up: what was read is still what is there.
			w, err := os.OpenFile(at+"/edit", os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			w.Close()
			for _, c := range []struct {
				tool, file string
				args       map[string]any
			}{
				{"Write", "write", map[string]any{"content": "mine\n"}},
				{"Write", "new", map[string]any{"content": "mine\n"}},
				{"Write", "deep/down/f", map[string]any{"content": "mine\n"}},
				{"Write", "deep/down/new", map[string]any{"content": "mine\n"}},
				{"Edit", "edit", map[string]any{"old_string": "low", "new_string": "mine"}},
				{"Edit", "one", map[string]any{"old_string": "low", "new_string": "mine"}},
				{"MultiEdit", "multi", map[string]any{"edits": []map[string]any{{"old_string": "low", "new_string": "mine"}}}},
				{"NotebookEdit", "n.ipynb", map[string]any{"cell_id": "c1", "new_source": "mine"}},
			} {
				key := "file_path"
				if c.tool == "NotebookEdit" {
					key = "notebook_path"
				}
				c.args[key] = filepath.Join(at, c.file)
				do(c.tool, c.args)
				if got := content(t, filepath.Join(at, c.file)); !strings.Contains(got, "mine") {
					t.Errorf("%s %s: %q", c.tool, c.file, got)
				}
				if c.file != "deep/down/f" {
					continue
				}
				do("Edit", map[string]any{"file_path": filepath.Join(at, c.file), "old_string": "mine", "new_string": "mine too"})
			}
			if got := content(t, at+"/two"); got != "low\n" {
				t.Errorf("the other name: %q", got)
			}
			since := mustEncode(t, do("checkpoints_list", map[string]any{"limit": 100}))
			if strings.Contains(since, "external") {
				t.Errorf("a copy up was taken for a change from outside: %s", since)
			}
			do("checkpoint_restore", map[string]any{"since": "1h"})
			for f, text := range was {
				if got := content(t, filepath.Join(at, f)); got != text {
					t.Errorf("%s came back as %q", f, got)
				}
			}
			for _, f := range []string{"new", "deep/down/new"} {
				if _, err := os.Stat(filepath.Join(at, f)); err == nil {
					t.Errorf("%s stayed", f)
				}
			}
		})
	}
}
