package ignore_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"moltisfs/grep/ignore"
)

// TestOddRuleFiles compares with git where a rule file or a repository is not what it seems.
func TestOddRuleFiles(t *testing.T) {
	t.Parallel()
	needGit(t)
	root := trueDir(t)
	many := strings.Repeat("nothing-of-that-name-*.x\n", 60_000)
	link := func(to string) func(string) error { return func(p string) error { return os.Symlink(to, p) } }
	for name, c := range map[string]struct {
		files map[string]string
		also  map[string]func(string) error
		info  string // .git/info/exclude
	}{
		"excluded directory": {files: map[string]string{".gitignore": "d/\n!d/keep\n!d/\n/e/*\n!/e/keep\n", "d/keep": "", "d/x": "", "e/keep": "", "e/x": ""}},
		"negated below":      {files: map[string]string{".gitignore": "d/\n", "d/.gitignore": "!*\n", "d/x": ""}},
		"linked":             {files: map[string]string{"rules": "x\n", "x": "", "sub/x": ""}, also: map[string]func(string) error{".gitignore": link("rules"), "sub/.gitignore": link("../rules")}},
		"directory":          {files: map[string]string{".gitignore/x": "", "x": "", "sub/.gitignore/y": ""}},
		"huge":               {files: map[string]string{".gitignore": many + "x\n!sub/x\n" + many, "x": "", "sub/x": "", "y": ""}},
		"one long line":      {files: map[string]string{".gitignore": strings.Repeat("a*", 2000) + "\nx\n", "x": "", strings.Repeat("a", 200): ""}},
		"marks":              {files: map[string]string{".gitignore": "\xef\xbb\xbfx\r\n\xef\xbb\xbfy\r\n", "sub/.gitignore": "\xef\xbb\xbf!x\n", "x": "", "y": "", "sub/x": ""}, info: "\xef\xbb\xbfz\r\n"},
		"bytes":              {files: map[string]string{".gitignore": "\xff?\n[\xe0-\xef]\n", "\xffa": "", "\xe9": "", "é": "", "\xf0": ""}},
		"no last line end":   {files: map[string]string{".gitignore": "x\ny \\ ", "x": "", "y  ": "", "y": ""}},
		"info over root":     {files: map[string]string{".gitignore": "!x\n", "x": "", "y": ""}, info: "x\ny\n"},
		"ignores itself":     {files: map[string]string{".gitignore": "*\n", "x": ""}},
		"empty .git":         {files: map[string]string{".gitignore": "x\n", "sub/.git/nothing": "", "sub/x": "", "sub/y": ""}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(root, strings.ReplaceAll(name, " ", "-"))
			repository(t, dir, "")
			for f, text := range c.files {
				put(t, dir, f, text)
			}
			for f, make := range c.also {
				if err := make(filepath.Join(dir, f)); err != nil {
					t.Skip("SKIPPED: such a name or link can't be made here: ", err)
				}
			}
			put(t, dir, ".git/info/exclude", c.info)
			for _, at := range []string{dir, filepath.Join(dir, "sub")} {
				if _, err := os.Stat(at); err != nil {
					continue
				}
				if got, want := listed(t, at, ignore.Options{}), gitListed(t, at); !slices.Equal(got, want) {
					t.Errorf("%s: %q, git says %q", at, got, want)
				}
			}
		})
	}
}

// TestLinkedRepository: a .git that is a link makes a repository, as for git; what it holds counts
// as unread.
func TestLinkedRepository(t *testing.T) {
	needGit(t)
	root := trueDir(t)
	dir := filepath.Join(root, "tree")
	put(t, dir, ".gitignore", "/sub/x\n")
	put(t, dir, "sub/x", "")
	put(t, dir, "sub/y", "")
	repository(t, filepath.Join(root, "store"), "")
	if err := os.Symlink("../store/.git", filepath.Join(dir, ".git")); err != nil {
		t.Skip("SKIPPED: such a name or link can't be made here: ", err)
	}
	sub := filepath.Join(dir, "sub")
	if got, want := listed(t, sub, ignore.Options{}), gitListed(t, sub); !slices.Equal(got, want) {
		t.Errorf("%q, git says %q", got, want)
	}
	if _, base, unread := ignore.Load(dirAt(sub), ignore.Options{}); base != "sub/" || unread != 1 {
		t.Errorf("from %q, %d unread", base, unread)
	}
}
