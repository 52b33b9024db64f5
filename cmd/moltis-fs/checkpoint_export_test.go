package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestGitTakesTheExport: git apply, run in the root, takes what export --patch writes of absolute paths, whatever happened to them.
func TestGitTakesTheExport(t *testing.T) {
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("SKIPPED ORACLE: no git")
	}
	root := t.TempDir()
	var patch bytes.Buffer
	want := map[string]string{}
	for _, c := range []struct {
		path, oldMode, newMode, before, after string
	}{
		{"/d/created", "", "100644", "", "a\nb\n"},
		{"/d/edited", "100644", "100644", "a\nb\nc\n", "a\nx\nc"},
		{"/d/removed", "100644", "", "a\nb\n", ""},
		{"/d/created empty", "", "100644", "", ""},
		{"/d/removed empty", "100644", "", "", ""},
		{"/d/emptied", "100644", "100644", "a\n", ""},
		{"/d/filled \"ü\"", "100644", "100644", "", "a\r\n"},
		{"/d/made executable", "100644", "100755", "a\n", "a\n"},
		{"/d/created", "100644", "100644", "a\nb\n", "a\nc\n"}, // once more, after it was created
		{"/d/same", "100644", "100644", "a\n", "a\n"},
		{"/d/link", "", gitLink, "", "created"},
		{"/d/file then link", "100644", gitLink, "a\n", "created"},
	} {
		if _, again := want[c.path]; c.oldMode != "" && !again {
			file := filepath.Join(root, c.path)
			if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte(c.before), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want[c.path] = c.after
		if c.newMode == "" {
			want[c.path] = "(absent)"
		}
		patch.WriteString("# what export says of it\n")
		patchFile(&patch, c.path, c.oldMode, c.newMode, []byte(c.before), []byte(c.after))
	}
	for _, args := range [][]string{{"--check"}, {}} {
		cmd := exec.Command(git, append([]string{"-c", "core.autocrlf=false", "apply", "-p1", "--whitespace=nowarn"}, args...)...)
		cmd.Dir, cmd.Stdin = root, bytes.NewReader(patch.Bytes())
		cmd.Env = append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(root), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git apply %v: %v\n%s\n%s", args, err, out, patch.String())
		}
	}
	for path, text := range want {
		file := filepath.Join(root, path)
		got, err := os.ReadFile(file)
		if link, notLink := os.Readlink(file); notLink == nil {
			got = []byte(link)
		} else if os.IsNotExist(err) {
			got = []byte("(absent)")
		}
		if string(got) != text {
			t.Errorf("%s: %q, want %q", path, got, text)
		}
	}
}
