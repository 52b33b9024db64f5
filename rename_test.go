package moltisfs

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
)

// The module path is in go.mod, and one command changes it: after that nothing imports the old one, and all is found.
func TestRenameModule(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("SKIPPED: the script is for a POSIX shell")
	}
	dir := t.TempDir()
	for _, p := range files(t, []string{".go", "go.mod", "go.sum"}) {
		text, err := os.ReadFile(p)
		to := filepath.Join(dir, filepath.FromSlash(p))
		if err := errors.Join(err, os.MkdirAll(filepath.Dir(to), 0o755), os.WriteFile(to, text, 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	script, err := filepath.Abs("scripts/rename-module")
	if err != nil {
		t.Fatal(err)
	}
	rename := func(module string) (string, error) {
		cmd := exec.Command(script, module)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	for _, bad := range []string{"", "/x", "a b", `x"y`, "x#y", "a//b"} {
		if out, err := rename(bad); err == nil {
			t.Errorf("%q was taken: %s", bad, out)
		}
	}
	const module = "example.com/someone/files"
	if out, err := rename(module); err != nil {
		t.Fatal(err, out)
	}
	if out, _ := exec.Command("grep", "-rl", `"moltisfs/`, dir).Output(); len(out) > 0 {
		t.Errorf("the old path is left in %s", out)
	}
	if out, _ := exec.Command("grep", "-rl", `"`+module+`/`, dir).Output(); bytes.Count(out, []byte("\n")) < 100 {
		t.Errorf("the new path is in few files: %s", out)
	}
}
