package gitrepo

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestRefuses: git refuses exactly the paths that the export leaves out, with both of its protections on.
func TestRefuses(t *testing.T) {
	t.Parallel()
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("SKIPPED ORACLE: no git")
	}
	dir := t.TempDir()
	if out, err := exec.Command(git, "-C", dir, "init", "--quiet").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	names := []string{
		".git", ".GIT", ".Git ", ".git.", ".git. .", ".git::$INDEX_ALLOCATION", ".git:x", "git~1", "GIT~1", "git~1 .", ".gi\u200ct", "\ufeff.git", ".g\u206aIT", ".git\xff", `a\.git`, `.git\a`, `a\git~1`,
		".gitmodules", ".GITMODULES", ".gitmodules .", ".gitmodules:x", "gitmod~1", "GITMOD~4", "gi7eba~1", "gi7eb~10", "g~123456", "~1234567", ".git\u200dmodules", `a\.gitmodules`,
		".gitignore", ".gita", ".git a", "git", "git~2", "git~10", "a.git", ".gi t", ".git\u00ad", ".github", "gitmod~5", "gitmod~12", "gi7eba~0", "gi7eb~1", "gi7ebaa~1", "~12345678", "x~123456", `a\b`, "a\nb", "\xff.git", ".git\u2000",
	}
	for _, name := range names {
		for _, path := range []string{name, name + "/x", "d/" + name, "d/" + name + "/x"} {
			for _, link := range []bool{false, true} {
				mode := "100644"
				if link {
					mode = Link
				}
				cmd := exec.Command(git, "-c", "core.protectHFS=true", "-c", "core.protectNTFS=true", "update-index", "-z", "--index-info")
				cmd.Dir, cmd.Env = dir, append(os.Environ(), "GIT_INDEX_FILE="+t.TempDir()+"/index", "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1")
				cmd.Stdin = strings.NewReader(mode + " e69de29bb2d1d6434b8b29ae775ad8c2e48c5391 0\t" + path + "\x00")
				out, err := cmd.CombinedOutput()
				refused := err != nil || strings.Contains(string(out), "Ignoring path")
				if got := Refuses(path, link); got != refused {
					t.Errorf("%q, a link: %v: left out %v, git refuses it %v: %s", path, link, got, refused, out)
				}
			}
		}
	}
	if !Refuses("", false) {
		t.Error("the root directory is no path for git")
	}
}
