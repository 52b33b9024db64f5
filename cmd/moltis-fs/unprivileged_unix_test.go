//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

// somebody is a user who is not root, with a home and a workspace of his own.
type somebody struct {
	t           *testing.T
	program, ws string
	home        string
	uid, gid    int
}

const nobody = 65534

func unprivileged(t *testing.T) *somebody {
	t.Helper()
	s := &somebody{t: t, program: binary(t), uid: os.Getuid(), gid: os.Getgid()}
	dir := realDir(t)
	s.ws, s.home = filepath.Join(dir, "ws"), filepath.Join(dir, "home")
	for _, d := range []string{s.ws, s.home} {
		must(t, os.Mkdir(d, 0o755))
		if os.Getuid() == 0 {
			s.uid, s.gid = nobody, nobody
			if err := os.Chown(d, s.uid, s.gid); err != nil {
				t.Skip("SKIPPED: root may not give a directory to nobody: ", err)
			}
		}
	}
	if os.Getuid() == 0 { // he must get at the program, and at what is his
		for _, d := range []string{filepath.Dir(s.program), dir} {
			for ; len(d) > 1 && strings.HasPrefix(d, os.TempDir()) && d != os.TempDir(); d = filepath.Dir(d) {
				must(t, os.Chmod(d, 0o755))
			}
		}
	}
	config := "[tools.fs]\ncheckpoint_before_mutation = true\nrequire_approval = false\n"
	must(t, os.WriteFile(filepath.Join(dir, "on.toml"), []byte(config), 0o644))
	if out, status := s.run("version"); status != 0 {
		t.Skip("SKIPPED: the program can't be run as nobody: ", out)
	}
	return s
}

// run runs the program and gives all it says.
func (s *somebody) run(args ...string) (out string, status int) {
	s.t.Helper()
	cmd := exec.Command(s.program, args...)
	cmd.Dir = s.ws
	cmd.Env = []string{"HOME=" + s.home, "MOLTIS_CONFIG=" + filepath.Join(filepath.Dir(s.ws), "on.toml")}
	var b bytes.Buffer
	cmd.Stdout, cmd.Stderr = &b, &b
	if os.Getuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(s.uid), Gid: uint32(s.gid), NoSetGroups: false}}
	}
	err := cmd.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return b.String(), exit.ExitCode()
	}
	if err != nil {
		return err.Error(), -1
	}
	return b.String(), 0
}

func (s *somebody) must(args ...string) string {
	s.t.Helper()
	out, status := s.run(args...)
	if status != 0 {
		s.t.Fatalf("%v: status %d: %s", args, status, out)
	}
	return out
}

// write makes a call of Write in turn t1.
func (s *somebody) write(name, content string) {
	s.t.Helper()
	s.must("call", "--session", "s1", "--turn", "t1", "Write", fmt.Sprintf(`{"file_path": %q, "content": %q}`, filepath.Join(s.ws, name), content))
}

func (s *somebody) chmod(name string, mode os.FileMode) {
	s.t.Helper()
	must(s.t, os.Chmod(filepath.Join(s.ws, name), mode))
}

// A removal that the system does not let a rewind make is named, before anything is changed and in a dry run too; skip passes it by, and says so.
func TestRewindIntoReadOnlyDirectory(t *testing.T) {
	t.Parallel()
	s := unprivileged(t)
	for _, dir := range []string{"a", "b", "gone"} {
		must(t, os.Mkdir(filepath.Join(s.ws, dir), 0o755))
		must(t, os.Chown(filepath.Join(s.ws, dir), s.uid, s.gid))
	}
	for name, content := range map[string]string{"a/f": "1\n", "b/f": "1\n", "b/same": "1\n", "b/locked": "1\n", "gone/f": "1\n"} {
		s.write(name, content)
	}
	s.must("call", "--session", "s1", "--turn", "t2", "Read", fmt.Sprintf(`{"file_path": %q}`, filepath.Join(s.ws, "a/f")))
	for _, name := range []string{"a/f", "b/f", "b/same", "gone/f"} {
		s.must("call", "--session", "s1", "--turn", "t2", "Write", fmt.Sprintf(`{"file_path": %q, "content": "2\n"}`, filepath.Join(s.ws, name)))
	}
	s.must("call", "--session", "s1", "--turn", "t2", "Write", fmt.Sprintf(`{"file_path": %q, "content": "1\n"}`, filepath.Join(s.ws, "b/same")))
	for _, name := range []string{"new", "b/made"} {
		s.must("call", "--session", "s1", "--turn", "t2", "Write", fmt.Sprintf(`{"file_path": %q, "content": "new\n"}`, filepath.Join(s.ws, name)))
	}
	s.chmod("b", 0o555)
	t.Cleanup(func() { s.chmod("b", 0o755) })

	rewind := []string{"checkpoint", "rewind", "--session", "s1", "--turn", "t2", "--yes"}
	before := files(t, s.ws)
	for _, more := range [][]string{nil, {"--dry-run"}} {
		out, status := s.run(append(rewind, more...)...)
		if status != exitRefused || !strings.Contains(out, filepath.Join(s.ws, "b/made")) || !strings.Contains(out, "--on-conflict skip") {
			t.Errorf("%v: status %d, and the path is not named: %s", more, status, out)
		}
	}
	compareFiles(t, "refused", files(t, s.ws), before)
	out := s.must(append(rewind, "--dry-run", "--on-conflict", "skip")...)
	if !strings.Contains(out, "skipped "+filepath.Join(s.ws, "b/made")+" (the system does not let us change its directory)") {
		t.Errorf("the dry run does not say that it would be skipped: %s", out)
	}
	out = s.must(append(rewind, "--on-conflict", "skip")...)
	inPlace := "false 1\n" // since the file may be written
	if runtime.GOOS != "linux" {
		inPlace = "false 2\n"
	}
	if !strings.Contains(out, "skipped "+filepath.Join(s.ws, "b/made")+" (the system does not let us change its directory)") || strings.Contains(out, "skipped "+filepath.Join(s.ws, "b/same")) {
		t.Errorf("what is passed by is said, and nothing else: %s", out)
	}
	compareFiles(t, "skipped", files(t, s.ws), map[string]string{"a/f": "false 1\n", "b/f": inPlace, "b/made": "false new\n", "b/same": "false 1\n", "b/locked": "false 1\n", "gone/f": "false 1\n"})
	s.chmod("b", 0o755)
	s.must(rewind...)
	compareFiles(t, "all", files(t, s.ws), map[string]string{"a/f": "false 1\n", "b/f": "false 1\n", "b/same": "false 1\n", "b/locked": "false 1\n", "gone/f": "false 1\n"})
}

// Skip passes by what can't be read, what can't be reached and a made directory that can't be removed, and says so.
func TestSkipPassesByWhatTheSystemForbids(t *testing.T) {
	t.Parallel()
	s := unprivileged(t)
	for _, dir := range []string{"shut", "fixed"} {
		must(t, errors.Join(os.Mkdir(filepath.Join(s.ws, dir), 0o755), os.Chown(filepath.Join(s.ws, dir), s.uid, s.gid)))
	}
	config := "[tools.fs]\ncheckpoint_before_mutation = true\nrequire_approval = false\ncreate_parents = true\n"
	must(t, os.WriteFile(filepath.Join(filepath.Dir(s.ws), "on.toml"), []byte(config), 0o644))
	for _, name := range []string{"open", "locked", "shut/f", "fixed/made/deep/new"} {
		s.write(name, "1\n")
	}
	s.chmod("locked", 0)
	s.chmod("shut", 0)
	s.chmod("fixed", 0o555)
	t.Cleanup(func() { s.chmod("shut", 0o755); s.chmod("fixed", 0o755) })
	if out, status := s.run("call", "--session", "s1", "checkpoint_restore", `{"turn": "t1"}`); status == 0 || !strings.Contains(out, "permission_denied") {
		t.Fatalf("status %d: %s", status, out)
	}
	for _, dry := range []bool{true, false} {
		out := s.must("call", "--session", "s1", "checkpoint_restore", fmt.Sprintf(`{"turn": "t1", "on_conflict": "skip", "dry_run": %v}`, dry))
		var p struct {
			Restored bool
			Skipped  []struct{ Path, Why string }
		}
		if err := json.Unmarshal([]byte(out), &p); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		got := map[string]string{}
		for _, l := range p.Skipped {
			got[strings.TrimPrefix(l.Path, s.ws+"/")] = l.Why
		}
		want := map[string]string{"locked": "the system does not let us read it", "shut/f": "the system does not let us into a directory on the way to it",
			"fixed/made": "the system does not let us change its directory"}
		if !maps.Equal(got, want) || p.Restored == dry {
			t.Errorf("dry %v: skipped %v: %s", dry, got, out)
		}
	}
	for name, there := range map[string]bool{"open": false, "locked": true, "fixed/made": true, "fixed/made/deep": false} {
		if _, err := os.Lstat(filepath.Join(s.ws, name)); (err == nil) != there {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A user who may not give files away makes a file his own by changing it; a restore says so each time, without writing anything anew, and one by
// root gives the owner back.
func TestRestoreOfOwnerAsNobody(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("SKIPPED: it takes root to make a file that is somebody else's")
	}
	s := unprivileged(t)
	path := filepath.Join(s.ws, "roots")
	must(t, os.WriteFile(path, []byte("1\n"), 0o666))
	s.chmod("roots", 0o666)
	owner := func() uint32 {
		t.Helper()
		info, err := os.Stat(path)
		must(t, err)
		return info.Sys().(*syscall.Stat_t).Uid
	}
	s.must("call", "--session", "s1", "Read", fmt.Sprintf(`{"file_path": %q}`, path))
	if out := s.must("call", "--session", "s1", "Write", fmt.Sprintf(`{"file_path": %q, "content": "2\n"}`, path)); !strings.Contains(out, `"metadata_dropped":["owner","group"]`) || owner() != nobody {
		t.Fatalf("the owner is %d: %s", owner(), out)
	}
	for _, said := range []string{"restored ", "unchanged "} {
		if out := s.must("restore", "--session", "s1", "--yes", "ck-1H0"); !strings.Contains(out, said+path) || !strings.Contains(out, "could not be restored: owner, group") {
			t.Errorf("what could not be given back is not said: %s", out)
		}
	}
	s.uid, s.gid = 0, 0
	// A store is opened by its owner only.
	must(t, filepath.WalkDir(s.home, func(path string, _ os.DirEntry, err error) error { return errors.Join(err, os.Lchown(path, 0, 0)) }))
	if out := s.must("restore", "--session", "s1", "--yes", "ck-1H0"); !strings.Contains(out, "also restored: owner, group") || owner() != 0 {
		t.Errorf("the owner is %d: %s", owner(), out)
	}
}
