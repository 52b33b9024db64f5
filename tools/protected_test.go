package tools_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"moltisfs/config"
	"moltisfs/tools"
)

// TestClassIsToldOfTheSpelling: the class is told of the name that was asked for, and of no name that
// a link leads to. A name that a rule closes, too, answers like any other that a rule closes. The
// answer is the same whether or not something is there.
func TestClassIsToldOfTheSpelling(t *testing.T) {
	t.Parallel()
	s, root := suite(t, func(fs *config.FS) {
		fs.DenyPaths, fs.Unprotected = []string{"**/closed/**"}, []string{"**/open/**"}
	}, tools.Options{})
	for _, name := range []string{"there/.env", "closed/.env", "closed/x", "open/.env"} {
		must(t, os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o700))
		must(t, os.WriteFile(filepath.Join(root, name), []byte("TOKEN\n"), 0o600))
	}
	must(t, os.MkdirAll(filepath.Join(root, "none"), 0o700))
	must(t, os.Symlink("there/.env", filepath.Join(root, "link")))
	must(t, os.Symlink("none/.env", filepath.Join(root, "dangling")))
	answers := map[string]string{}
	for _, name := range []string{"there/.env", "none/.env", "there/.ENV", "closed/.env", "closed/x", "closed/none", "link", "dangling", "open/.env"} {
		p := call(t, s, "Read", map[string]any{"file_path": root + "/" + name})
		answers[name] = strings.ReplaceAll(p.Text(), root+"/"+name, "PATH")
	}
	for name, want := range map[string]string{"none/.env": "there/.env", "there/.ENV": "there/.env", "closed/none": "closed/x", "closed/.env": "closed/x",
		"link": "closed/x", "dangling": "closed/x"} {
		if answers[name] != answers[want] {
			t.Errorf("%s answers\n%s\nand %s\n%s", name, answers[name], want, answers[want])
		}
	}
	if !strings.Contains(answers["there/.env"], "class secret") || strings.Contains(answers["closed/x"], "class") || !strings.Contains(answers["open/.env"], "TOKEN") {
		t.Errorf("%v", answers)
	}
}
