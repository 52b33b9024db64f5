package tools_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"moltisfs/config"
	"moltisfs/internal/guardfs"
	"moltisfs/internal/policy"
	"moltisfs/internal/testdir"
	"moltisfs/internal/toolstest"
	"moltisfs/tools"
)

// ownMounts runs the test again in a process that has its mounts for itself, where it answers true.
func ownMounts(t *testing.T) bool {
	t.Helper()
	const mark = "MOLTISFS_TEST_MOUNTS"
	if os.Getenv(mark) != "" {
		return true
	}
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), mark+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
	if os.Geteuid() != 0 {
		cmd.SysProcAttr.Cloneflags = syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: os.Geteuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getegid(), Size: 1}}
	}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Skip("SKIPPED: a process can't have mounts of its own here: ", err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("with mounts of its own: %v\n%s", err, out.String())
	} else if strings.Contains(out.String(), "SKIPPED") {
		t.Skip(out.String())
	}
	return false
}

// mount binds from to at, which is made; a from without a slash is a file system to be made there.
func mount(t *testing.T, from, at string, flags uintptr) {
	t.Helper()
	kind := ""
	info, err := os.Stat(from)
	switch {
	case !strings.Contains(from, "/"):
		kind = from
		fallthrough
	case err == nil && info.IsDir():
		err = os.MkdirAll(at, 0o755)
	case err == nil:
		err = os.WriteFile(at, nil, 0o644)
	}
	if err == nil {
		err = unix.Mount(from, at, kind, flags, "")
	}
	if err != nil {
		t.Fatalf("mounting %s: %v", at, err)
	}
	t.Cleanup(func() { unix.Unmount(at, unix.MNT_DETACH) })
}

// TestBindMounts: a denied file is denied under each name that it is mounted at, by each kind of rule.
func TestBindMounts(t *testing.T) {
	if !ownMounts(t) {
		return
	}
	s, root := suite(t, func(fs *config.FS) {
		fs.AllowPaths = append(fs.AllowPaths, filepath.Dir(fs.WorkspaceRoot)+"/outer/**")
		fs.DenyPaths = []string{fs.WorkspaceRoot + "/secrets/**", fs.WorkspaceRoot + "/*/private/**", "**/*.pem"}
	}, tools.Options{})
	toolstest.Layout(t, root, "ok/f = a\nok/g = a\nshared/f = a\npub/\nsecrets/k = TOPSECRET a\nsecrets/sub/k = TOPSECRET a\n"+
		"secrets/link => ../ok/f\na/private/k = TOPSECRET a\na/open = a\nb/x.pem = TOPSECRET a\n../outer/ws/f = a")
	mount(t, "tmpfs", root+"/secrets/disk", 0)
	toolstest.Layout(t, root, "secrets/disk/deep/k = TOPSECRET a")
	was := call(t, s, "Read", map[string]any{"file_path": root + "/shared/f"})
	if tools.Refused(was) {
		t.Fatal(mustEncode(t, was))
	}
	bind := func(from, at string) { mount(t, from, root+at, unix.MS_BIND) }
	bind(root+"/secrets", "/pub/dir")
	bind(root+"/secrets/sub", "/pub/sub")
	bind(root+"/secrets/k", "/pub/file")
	bind(root+"/a", "/pub/a")
	bind(root+"/b/x.pem", "/pub/x.txt")
	bind(root+"/secrets/disk/deep", "/pub/disk")
	bind(root+"/pub/sub", "/pub/again")
	bind(filepath.Dir(root)+"/data", "/pub/data")
	bind(root, "/pub/whole")
	mount(t, root+"/secrets", root+"/pub/tree", unix.MS_BIND|unix.MS_REC)
	bind(root+"/shared", "/secrets/shared")
	mount(t, root, filepath.Dir(root)+"/outer/ws", unix.MS_BIND)

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
	if !ownMounts(t) {
		return
	}
	root := guardfs.Canonical(t.TempDir())
	toolstest.Layout(t, root, "secrets/k = S\nsecrets/sub/k = S\npub/file = a\npub/sub/k = a\npub/other = a")
	for _, deny := range [][]string{{root + "/secrets/**"}, {root + "/secrets/**", "**/*.pem"}} {
		judge, err := policy.New(policy.Options{Deny: deny})
		must(t, err)
		fs, err := guardfs.New(guardfs.Options{Judge: judge})
		must(t, err)
		h, err := fs.Resolve(root+"/pub", guardfs.Read)
		must(t, err)
		d, err := h.Dir()
		must(t, err)
		mount(t, root+"/secrets/k", root+"/pub/file", unix.MS_BIND)
		mount(t, root+"/secrets/sub", root+"/pub/sub", unix.MS_BIND)
		closed(t, d)
		if _, err := d.OpenFile("other"); err != nil {
			t.Error(err)
		}
		for _, at := range []string{"/pub/file", "/pub/sub"} {
			must(t, unix.Unmount(root+at, unix.MNT_DETACH))
		}
		d.Close()
		h.Close()
		fs.Close()
	}
}

// A walk does not let through what is also mounted at a denied name, where no rule touches the
// directory that it is in.
func TestMountedAtADeniedName(t *testing.T) {
	if !ownMounts(t) {
		return
	}
	root := guardfs.Canonical(t.TempDir())
	toolstest.Layout(t, root, "secrets/\npub/file = S\npub/sub/k = S\npub/other = a")
	mount(t, root+"/pub/file", root+"/secrets/k", unix.MS_BIND)
	mount(t, root+"/pub/sub", root+"/secrets/sub", unix.MS_BIND)
	for _, deny := range [][]string{{root + "/secrets/**"}, {root + "/secrets/**", "**/*.pem"}} {
		judge, err := policy.New(policy.Options{Deny: deny})
		must(t, err)
		fs, err := guardfs.New(guardfs.Options{Judge: judge})
		must(t, err)
		defer fs.Close()
		h, err := fs.Resolve(root+"/pub", guardfs.Read)
		must(t, err)
		defer h.Close()
		d, err := h.Dir()
		must(t, err)
		defer d.Close()
		closed(t, d)
		entries, denied, err := d.List(nil)
		if err != nil || denied != 2 || len(entries) != 1 || entries[0].Name != "other" {
			t.Errorf("%q: lists %v and %d more: %v", deny, entries, denied, err)
		}
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
	if !ownMounts(t) {
		return
	}
	s, root := suite(t, nil, tools.Options{})
	mount(t, filepath.Join(filepath.Dir(root), "data"), filepath.Join(root, "innocent"), unix.MS_BIND)
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
			must(t, err)
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
			has(t, at+"/two", "low\n")
			since := mustEncode(t, do("checkpoints_list", map[string]any{"limit": 100}))
			if strings.Contains(since, "external") {
				t.Errorf("a copy up was taken for a change from outside: %s", since)
			}
			do("checkpoint_restore", map[string]any{"since": "1h"})
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
