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

// What is denied is denied under whatever name it is mounted, by whatever rule.
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
		if p := call(t, s, "Read", map[string]any{"file_path": root + name}); tools.Refused(p) {
			t.Errorf("%s: %s", name, mustEncode(t, p))
		}
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
	// What is taken away again is what it was.
	for _, at := range []string{"/pub/file", "/secrets/shared"} {
		if err := unix.Unmount(root+at, 0); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"/pub/file", "/shared/f"} {
		if p := call(t, s, "Read", map[string]any{"file_path": root + name}); tools.Refused(p) {
			t.Errorf("%s: %s", name, mustEncode(t, p))
		}
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
		if err != nil {
			t.Fatal(err)
		}
		fs, err := guardfs.New(guardfs.Options{Judge: judge})
		if err != nil {
			t.Fatal(err)
		}
		h, err := fs.Resolve(root+"/pub", guardfs.Read)
		if err != nil {
			t.Fatal(err)
		}
		d, err := h.Dir()
		if err != nil {
			t.Fatal(err)
		}
		mount(t, root+"/secrets/k", root+"/pub/file", unix.MS_BIND)
		mount(t, root+"/secrets/sub", root+"/pub/sub", unix.MS_BIND)
		for name, open := range map[string]func() error{
			"OpenFile":   func() error { _, err := d.OpenFile("file"); return err },
			"OpenListed": func() error { _, err := d.OpenListed("file"); return err },
			"ReadSmall":  func() error { _, err := d.ReadSmall("file", 10); return err },
			"Stat":       func() error { _, err := d.Stat("file"); return err },
			"OpenDir":    func() error { _, err := d.OpenDir("sub", true); return err },
		} {
			if err := open(); !isDenied(err) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if _, err := d.OpenFile("other"); err != nil {
			t.Error(err)
		}
		for _, at := range []string{"/pub/file", "/pub/sub"} {
			if err := unix.Unmount(root+at, unix.MNT_DETACH); err != nil {
				t.Fatal(err)
			}
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
		for name, open := range map[string]func() error{
			"OpenFile":   func() error { _, err := d.OpenFile("file"); return err },
			"OpenListed": func() error { _, err := d.OpenListed("file"); return err },
			"ReadSmall":  func() error { _, err := d.ReadSmall("file", 10); return err },
			"Stat":       func() error { _, err := d.Stat("file"); return err },
			"OpenDir":    func() error { _, err := d.OpenDir("sub", true); return err },
		} {
			if err := open(); !isDenied(err) {
				t.Errorf("%q: %s: %v", deny, name, err)
			}
		}
		entries, denied, err := d.List(nil)
		if err != nil || denied != 2 || len(entries) != 1 || entries[0].Name != "other" {
			t.Errorf("%q: lists %v and %d more: %v", deny, entries, denied, err)
		}
	}
}

func isDenied(err error) bool {
	_, ok := err.(*policy.Denied)
	return ok
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
