package tools_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"moltisfs/config"
	"moltisfs/internal/guardfs"
	"moltisfs/internal/policy"
	"moltisfs/internal/testdir"
	"moltisfs/internal/toolstest"
	"moltisfs/tools"
)

// TestBindMounts: a denied file is denied under each name that it is mounted at, by each kind of rule.
func TestBindMounts(t *testing.T) {
	if !testdir.OwnMounts(t) {
		return
	}
	s, root := suite(t, func(fs *config.FS) {
		fs.AllowPaths = append(fs.AllowPaths, filepath.Dir(fs.WorkspaceRoot)+"/outer/**")
		fs.DenyPaths = []string{fs.WorkspaceRoot + "/secrets/**", fs.WorkspaceRoot + "/*/private/**", "**/*.pem"}
	}, tools.Options{})
	toolstest.Layout(t, root, "ok/f = a\nok/g = a\nshared/f = a\npub/\nsecrets/k = TOPSECRET a\nsecrets/sub/k = TOPSECRET a\n"+
		"secrets/link => ../ok/f\na/private/k = TOPSECRET a\na/open = a\nb/x.pem = TOPSECRET a\n../outer/ws/f = a")
	testdir.Mount(t, "tmpfs", root+"/secrets/disk", 0)
	toolstest.Layout(t, root, "secrets/disk/deep/k = TOPSECRET a")
	was := call(t, s, "Read", map[string]any{"file_path": root + "/shared/f"})
	if tools.Refused(was) {
		t.Fatal(mustEncode(t, was))
	}
	bind := func(from, at string) { testdir.Mount(t, from, root+at, unix.MS_BIND) }
	bind(root+"/secrets", "/pub/dir")
	bind(root+"/secrets/sub", "/pub/sub")
	bind(root+"/secrets/k", "/pub/file")
	bind(root+"/a", "/pub/a")
	bind(root+"/b/x.pem", "/pub/x.txt")
	bind(root+"/secrets/disk/deep", "/pub/disk")
	bind(root+"/pub/sub", "/pub/again")
	bind(filepath.Dir(root)+"/data", "/pub/data")
	bind(root, "/pub/whole")
	testdir.Mount(t, root+"/secrets", root+"/pub/tree", unix.MS_BIND|unix.MS_REC)
	bind(root+"/shared", "/secrets/shared")
	testdir.Mount(t, root, filepath.Dir(root)+"/outer/ws", unix.MS_BIND)

	denied := []string{
		"/pub/dir/k", "/pub/dir/new", "/pub/dir/sub/k", "/pub/dir", "/pub/dir/link", "/pub/sub/k", "/pub/sub", "/pub/file", "/pub/a/private/k", "/pub/x.txt",
		"/pub/disk/k", "/pub/disk", "/pub/again/k", "/pub/data/audit/audit.jsonl", "/pub/data/audit", "/pub/whole/secrets/k", "/pub/whole/a/private/k",
		"/pub/tree/disk/deep/k", "/shared/f", "/../outer/ws/secrets/k", "/pub/dir/../ok/f", "/pub/dir/none/../../ok/f",
	}
	for _, name := range denied {
		for _, tool := range pathTools {
			if p := call(t, s, tool.Name, tool.Args(root+name, true)); p.Kind() != tools.KindPathDenied {
				t.Errorf("%s %s: %s", tool.Name, name, mustEncode(t, p))
			}
		}
	}
	for _, name := range []string{"/ok/f", "/pub/a/open", "/pub/whole/ok/g", "/../outer/ws/ok/f"} {
		does(t, s, "Read", map[string]any{"file_path": root + name})
	}
	for _, dir := range []string{"", "/pub", "/pub/a", "/pub/whole", "/pub/whole/secrets", "/../outer/ws"} {
		for tool, args := range map[string]map[string]any{
			"Grep": {"pattern": "TOPSECRET", "path": root + dir, "output_mode": "content"}, "Glob": {"pattern": "**", "path": root + dir},
		} {
			got := mustEncode(t, call(t, s, tool, args))
			for _, tell := range []string{"TOPSECRET a", "private", "/k\"", "audit", root + "/pub/file", root + "/pub/x.txt"} {
				if strings.Contains(got, tell) {
					t.Errorf("%s of %s names %s: %s", tool, dir, tell, got)
				}
			}
		}
	}
	// After an unmount the names are open again.
	for _, at := range []string{"/pub/file", "/secrets/shared"} {
		must(t, unix.Unmount(root+at, 0))
	}
	for _, name := range []string{"/pub/file", "/shared/f"} {
		does(t, s, "Read", map[string]any{"file_path": root + name})
	}
}

// A directory that was opened before something is mounted in it does not let it through.
func TestMountDuringAWalk(t *testing.T) {
	if !testdir.OwnMounts(t) {
		return
	}
	root := guardfs.Canonical(t.TempDir())
	toolstest.Layout(t, root, "secrets/k = S\nsecrets/sub/k = S\npub/file = a\npub/sub/k = a\npub/other = a")
	eachDenied(t, root, func(d *guardfs.Dir) {
		testdir.Mount(t, root+"/secrets/k", root+"/pub/file", unix.MS_BIND)
		testdir.Mount(t, root+"/secrets/sub", root+"/pub/sub", unix.MS_BIND)
		closed(t, d)
		if _, err := d.OpenFile("other"); err != nil {
			t.Error(err)
		}
		for _, at := range []string{"/pub/file", "/pub/sub"} {
			must(t, unix.Unmount(root+at, unix.MNT_DETACH))
		}
	})
}

// A walk does not let through a file that is also mounted at a denied name, where no rule touches the
// directory that it is in.
func TestMountedAtADeniedName(t *testing.T) {
	if !testdir.OwnMounts(t) {
		return
	}
	root := guardfs.Canonical(t.TempDir())
	toolstest.Layout(t, root, "secrets/\npub/file = S\npub/sub/k = S\npub/other = a")
	testdir.Mount(t, root+"/pub/file", root+"/secrets/k", unix.MS_BIND)
	testdir.Mount(t, root+"/pub/sub", root+"/secrets/sub", unix.MS_BIND)
	eachDenied(t, root, func(d *guardfs.Dir) {
		closed(t, d)
		entries, denied, err := d.List(nil)
		if err != nil || denied != 2 || len(entries) != 1 || entries[0].Name != "other" {
			t.Errorf("lists %v and %d more: %v", entries, denied, err)
		}
	})
}

// eachDenied opens the directory pub of root under rules that deny secrets, by a plain one and by wildcards too.
func eachDenied(t *testing.T, root string, do func(*guardfs.Dir)) {
	t.Helper()
	for _, deny := range [][]string{{root + "/secrets/**"}, {root + "/secrets/**", "**/*.pem"}} {
		judge, err := policy.New(policy.Options{Deny: deny})
		must(t, err)
		fs, err := guardfs.New(guardfs.Options{Judge: judge})
		must(t, err)
		h, err := fs.Resolve(root+"/pub", guardfs.Read)
		must(t, err)
		d, err := h.Dir()
		must(t, err)
		do(d)
		d.Close()
		h.Close()
		fs.Close()
	}
}

// closed tries each way to the entries file and sub of d, which are denied.
func closed(t *testing.T, d *guardfs.Dir) {
	t.Helper()
	for name, open := range map[string]func() error{
		"OpenFile":   func() error { _, err := d.OpenFile("file"); return err },
		"OpenListed": func() error { _, err := d.OpenListed("file"); return err },
		"ReadSmall":  func() error { _, err := d.ReadSmall("file", 10); return err },
		"Stat":       func() error { _, err := d.Stat("file"); return err },
		"OpenDir":    func() error { _, err := d.OpenDir("sub", true); return err },
	} {
		if _, denied := open().(*policy.Denied); !denied {
			t.Errorf("%s is not denied", name)
		}
	}
}

// TestOurDataByAMount: the data directory is off limits under whatever name it is mounted.
func TestOurDataByAMount(t *testing.T) {
	if !testdir.OwnMounts(t) {
		return
	}
	s, root := suite(t, nil, tools.Options{})
	testdir.Mount(t, filepath.Join(filepath.Dir(root), "data"), filepath.Join(root, "innocent"), unix.MS_BIND)
	for tool, args := range map[string]map[string]any{
		"Glob": {"pattern": "**", "path": root + "/innocent"},
		"Grep": {"pattern": ".", "path": root + "/innocent"},
		"Read": {"file_path": root + "/innocent/audit/audit.jsonl"},
	} {
		if p := call(t, s, tool, args); p.Kind() != tools.KindPathDenied {
			t.Errorf("%s: %s", tool, mustEncode(t, p))
		}
	}
}

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
			must(t, os.Link(lower+"/one", lower+"/two"))
			for _, d := range []string{at, upper, upper + "/up", upper + "/work"} {
				must(t, os.Mkdir(d, 0o755))
			}
			if err := unix.Mount("overlay", at, "overlay", 0, "lowerdir="+lower+",upperdir="+upper+"/up,workdir="+upper+"/work"); err != nil {
				t.Skip("SKIPPED: no overlay file system can be mounted here: ", err)
			}
			t.Cleanup(func() { unix.Unmount(at, unix.MNT_DETACH) })
			for f := range was {
				does(t, s, "Read", map[string]any{"file_path": filepath.Join(at, f)})
			}
			// Somebody else has it copied up: what was read is still what is there.
			w, err := os.OpenFile(at+"/edit", os.O_WRONLY, 0)
			must(t, err)
			w.Close()
			for _, c := range []struct {
				tool, file string
				args       map[string]any
			}{
				{"Write", "write", map[string]any{"content": "mine\n"}},
				{"Write", "new", map[string]any{"content": "mine\n"}},
				{"Write", "deep/down/f", map[string]any{"content": "mine\n"}},
				{"Edit", "deep/down/f", map[string]any{"old_string": "mine", "new_string": "mine too"}},
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
				does(t, s, c.tool, c.args)
				if got := content(t, filepath.Join(at, c.file)); !strings.Contains(got, "mine") {
					t.Errorf("%s %s: %q", c.tool, c.file, got)
				}
			}
			has(t, at+"/two", "low\n")
			since := mustEncode(t, call(t, s, "checkpoints_list", map[string]any{"limit": 100}))
			if strings.Contains(since, "external") {
				t.Errorf("a copy up was taken for a change from outside: %s", since)
			}
			does(t, s, "checkpoint_restore", map[string]any{"since": "1h"})
			for f, text := range was {
				has(t, filepath.Join(at, f), text)
			}
			for _, f := range []string{"new", "deep/down/new"} {
				if _, err := os.Stat(filepath.Join(at, f)); err == nil {
					t.Errorf("%s stayed", f)
				}
			}
		})
	}
}

// A file that can't be exchanged where it is, but may be written, is written in place, whatever the configuration says of checkpoints, and the
// answer says so. Where it may not be, the answer names what does not let us, and never offers the same call again.
func TestFixedNames(t *testing.T) {
	if !guardfs.SharedDirs {
		t.Skip("SKIPPED: on this system nothing is written in place")
	}
	if !testdir.OwnMounts(t) {
		return
	}
	for _, on := range []bool{true, false} {
		s, root := suite(t, func(fs *config.FS) { fs.CheckpointBeforeMutation, fs.RequireApproval = on, false }, tools.Options{})
		toolstest.Layout(t, root, "../host = \"one\\n\"")
		testdir.Mount(t, filepath.Dir(root)+"/host", root+"/bind", unix.MS_BIND)
		testdir.Mount(t, filepath.Dir(root)+"/host", root+"/read-only", unix.MS_BIND)
		if err := unix.Mount("", root+"/read-only", "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
			t.Fatal(err)
		}
		bind := root + "/bind"
		was, err := os.Stat(bind)
		must(t, err)
		for _, c := range []struct {
			tool, want string
			args       map[string]any
		}{
			{"Edit", "two", map[string]any{"old_string": "one", "new_string": "two"}},
			{"MultiEdit", "three", map[string]any{"edits": []map[string]any{{"old_string": "two", "new_string": "three"}}}},
			{"Write", "four", map[string]any{"content": "four\n"}},
			{"checkpoint_restore", "three", map[string]any{"id": "undo"}},
		} {
			if c.tool != "checkpoint_restore" {
				call(t, s, "Read", map[string]any{"file_path": bind})
				c.args["file_path"] = bind
			}
			p := call(t, s, c.tool, c.args)
			if got := mustEncode(t, p); !strings.Contains(got, `"in_place":true`) {
				t.Errorf("checkpoints %v, %s: %s", on, c.tool, got)
			}
			has(t, bind, c.want+"\n")
		}
		if now, err := os.Stat(bind); err != nil || !os.SameFile(was, now) || content(t, filepath.Dir(root)+"/host") != "three\n" {
			t.Errorf("it is another file by now: %v", err)
		}
		call(t, s, "Read", map[string]any{"file_path": root + "/read-only"})
		for tool, args := range map[string]map[string]any{"Write": {"content": "x"}, "Edit": {"old_string": "three", "new_string": "x"}} {
			args["file_path"] = root + "/read-only"
			p := call(t, s, tool, args)
			if got := mustEncode(t, p); p.Kind() != "permission_denied" || !strings.Contains(got, "is read-only") || strings.Contains(got, "Try once more") {
				t.Errorf("%s: %s", tool, got)
			}
		}
	}
}
