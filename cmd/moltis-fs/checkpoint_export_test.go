package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// gitIn runs git in a directory without anybody's configuration.
func gitIn(t *testing.T, dir string, stdin []byte, args ...string) {
	t.Helper()
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("SKIPPED ORACLE: no git")
	}
	cmd := exec.Command(git, args...)
	cmd.Dir, cmd.Stdin = dir, bytes.NewReader(stdin)
	cmd.Env = append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git %v: %v\n%s\n%s", args, err, out, stdin[:min(len(stdin), 10_000)])
	}
}

// files lists a tree: a link with its target, a file with whether it can be run and its content.
func files(t *testing.T, root string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.Name() == ".git":
			return filepath.SkipDir
		case d.IsDir():
			return nil
		case d.Type() == os.ModeSymlink:
			to, err := os.Readlink(path)
			out[path[len(root)+1:]] = "link to " + to
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		content, err := os.ReadFile(path)
		out[path[len(root)+1:]] = fmt.Sprint(info.Mode()&0o100 != 0, " ", string(content))
		return err
	})
	must(t, err)
	return out
}

// put makes a path of a tree what one side of a patch says.
func put(t *testing.T, path, mode string, content []byte) {
	t.Helper()
	err := os.MkdirAll(filepath.Dir(path), 0o755)
	if err == nil {
		err = os.RemoveAll(path)
	}
	switch {
	case err != nil:
	case mode == gitLink:
		err = os.Symlink(string(content), path)
	case mode == "100755":
		err = os.WriteFile(path, content, 0o755)
	case mode != "":
		err = os.WriteFile(path, content, 0o644)
	}
	must(t, err)
}

// TestGitTakesTheExport: git apply takes what export writes, whatever happened to the paths, and git apply -R takes it back: in a
// repository and out of one, without further arguments.
func TestGitTakesTheExport(t *testing.T) {
	noise := func(n int) string {
		b := make([]byte, n)
		r := rand.NewChaCha8([32]byte{byte(n), byte(n >> 8)})
		r.Read(b)
		return string(b)
	}
	image := "\x00" + noise(70_000)
	patches := []struct{ path, oldMode, newMode, before, after string }{
		{"d/created", "", "100644", "", "a\nb\n"},
		{"d/edited", "100644", "100644", "a\nb\nc\n", "a\nx\nc"},
		{"d/removed", "100644", "", "a\nb\n", ""},
		{"d/created empty", "", "100644", "", ""},
		{"d/removed empty", "100644", "", "", ""},
		{"d/emptied", "100644", "100644", "a\n", ""},
		{"d/filled \"ü\"", "100644", "100644", "", "a\r\n"},
		{"d/new mac", "", "100644", "", "a\rb\rc"},
		{"d/mac edited", "100644", "100644", "a\rb\rc\r", "a\rx\rc\r"},
		{"d/mac away", "100644", "", "a\rb\r", ""},
		{"d/mac to lines", "100644", "100644", "a\rb\r", "a\nb\n"},
		{"d/some CRs", "100644", "100644", "a\rb\r\nc\r\r\nd\r", "a\rx\r\nc\r\r\nd\re\r"},
		{"d/latin1", "100644", "100644", "\xe4\n", "\xf6\n"},
		{"d/made executable", "100644", "100755", "a\n", "a\n"},
		{"d/same", "100644", "100644", "a\n", "a\n"},
		{"d/link", "", gitLink, "", "created"},
		{"d/link moved", gitLink, gitLink, "created", "../edited"},
		{"d/link away", gitLink, "", "edited", ""},
		{"d/file then link", "100644", gitLink, "a\n", "created"},
		{"d/link then file", gitLink, "100644", "created", "a\n"},
		{"d/image", "100644", "100644", image, image[:60_000] + "new" + image[66_000:]}, // a delta, of many copies
		{"d/image run", "100644", "100755", image[:60_000] + "new" + image[66_000:], "\x00" + noise(100)},
		{"d/image grew", "100644", "100644", image[:400], image[:200] + noise(300) + image[200:400]},
		{"d/image \t new", "", "100644", "", "\x00" + noise(53)},
		{"d/image gone", "100644", "", noise(26) + "\x00", ""},
		{"d/image emptied", "100644", "100644", noise(27) + "\x00", ""},
		{"d/image then link", "100644", gitLink, "\x00", "image"},
		{"d/text then image", "100644", "100644", "a\n", "a\x00\n"},
		{"top\nlevel", "100644", "100644", "\x00\x00", "b\n"},
	}
	for _, where := range []string{"a repository", "no repository"} {
		t.Run(where, func(t *testing.T) {
			root, after := t.TempDir(), t.TempDir()
			if where == "a repository" {
				gitIn(t, root, nil, "init", "--quiet")
			}
			var patch bytes.Buffer
			patch.WriteString("# what export says of it\n")
			for _, p := range patches {
				put(t, filepath.Join(root, p.path), p.oldMode, []byte(p.before))
				put(t, filepath.Join(after, p.path), p.newMode, []byte(p.after))
				writeDiff(&patch, p.path, p.oldMode, p.newMode, []byte(p.before), []byte(p.after))
			}
			before, want := files(t, root), files(t, after)
			for _, args := range [][]string{{"--check"}, {}} {
				gitIn(t, root, patch.Bytes(), slices.Concat([]string{"-c", "core.autocrlf=false", "apply", "--whitespace=nowarn"}, args)...)
			}
			compareFiles(t, "applied", files(t, root), want)
			gitIn(t, root, patch.Bytes(), "-c", "core.autocrlf=false", "apply", "--whitespace=nowarn", "-R")
			compareFiles(t, "taken back", files(t, root), before)
		})
	}
}

func compareFiles(t *testing.T, what string, got, want map[string]string) {
	t.Helper()
	for path := range want {
		if got[path] != want[path] {
			t.Errorf("%s: %q is %.80q, want %.80q", what, path, got[path], want[path])
		}
	}
	for path := range got {
		if _, ok := want[path]; !ok {
			t.Errorf("%s: %q is there", what, path)
		}
	}
}

// TestGitRefuses: what git refuses is left out of a patch, with both of its protections on, and hardly more.
func TestGitRefuses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	gitIn(t, dir, nil, "init", "--quiet")
	names := []string{
		".git", ".GIT", ".Git ", ".git.", ".git. .", ".git::$INDEX_ALLOCATION", ".git:x", "git~1", "GIT~1", "git~1 .", ".gi\u200ct", "\ufeff.git", ".g\u206aIT", ".git\xff", `a\.git`, `.git\a`, `a\git~1`,
		".gitmodules", ".GITMODULES", ".gitmodules .", ".gitmodules:x", "gitmod~1", "GITMOD~4", "gi7eba~1", "gi7eb~10", "g~123456", "~1234567", ".git\u200dmodules", `a\.gitmodules`,
	}
	taken := []string{".gitignore", ".gita", ".git a", "git", "git~2", "git~10", "a.git", ".gi t", ".github", "gitmod", "~", `a\b`, "a\nb", ".git\u2000"}
	for _, name := range append(names, taken...) {
		for _, path := range []string{name, name + "/x", "d/" + name, "d/" + name + "/x"} {
			for _, mode := range []string{"100644", gitLink} {
				cmd := exec.Command("git", "-c", "core.protectHFS=true", "-c", "core.protectNTFS=true", "update-index", "-z", "--index-info")
				cmd.Dir, cmd.Env = dir, append(os.Environ(), "GIT_INDEX_FILE="+t.TempDir()+"/index", "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1")
				cmd.Stdin = strings.NewReader(mode + " e69de29bb2d1d6434b8b29ae775ad8c2e48c5391 0\t" + path + "\x00")
				out, err := cmd.CombinedOutput()
				refused := err != nil || strings.Contains(string(out), "Ignoring path")
				if got := gitRefuses(path, mode == gitLink); refused && !got || got && mode != gitLink && !refused || got && slices.Contains(taken, name) {
					t.Errorf("%q, mode %s: left out %v, git refuses it %v: %s", path, mode, got, refused, out)
				}
			}
		}
	}
	if !gitRefuses("", false) {
		t.Error("the root directory is no path for git")
	}
}
