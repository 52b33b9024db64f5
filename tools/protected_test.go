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

// TestWhatIsNotSeenIsTold: hidden characters of a file with their lines, a name that reads as another,
// and on the card both, and that a file runs code.
func TestWhatIsNotSeenIsTold(t *testing.T) {
	t.Parallel()
	var warned []string
	s, root := suite(t, func(fs *config.FS) { fs.RequireApproval = true }, tools.Options{
		Approver: asker(func(q tools.Question) tools.Answer {
			warned = q.Warnings
			return tools.Answer{Decision: tools.Approved}
		})})
	must(t, os.WriteFile(root+"/a", []byte("plain\na\u200bb\u200b\nplain\n\u202eend\n"), 0o600))
	if p := call(t, s, "Read", map[string]any{"file_path": root + "/a"}); !strings.Contains(p.Text(), "[3 invisible characters hidden in this text, in lines 2, 4]") {
		t.Error(p.Text())
	}
	for _, c := range []struct{ name, content, card, answer string }{
		{"plain.py", "x\n", "", ""},
		{"\u0430pp.py", "x\n", "letters that look like others", "letters that look like others"},
		{"b.py", "x\u202e\n", "cannot be seen", ""},
		{"c.py", "p\u0430y()\n", "two scripts", ""},
		{"Makefile", "all:\n", "runs code when it is used", ""},
		{".envrc", "x\n", "class exec", ""},
	} {
		warned = nil
		p := call(t, s, "Write", map[string]any{"file_path": root + "/" + c.name, "content": c.content})
		card := strings.Join(warned, "\n")
		if !strings.Contains(card, c.card) || c.card == "" && card != "" {
			t.Errorf("the card of %s warns %q", c.name, card)
		}
		if got := mustEncode(t, p); !strings.Contains(got, `"kind":"write"`) || !strings.Contains(got, c.answer) || c.answer == "" && strings.Contains(got, "warning") {
			t.Errorf("%s answers %s", c.name, got)
		}
	}
}
