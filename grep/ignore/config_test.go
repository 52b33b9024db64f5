package ignore_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"moltisfs/grep/ignore"
)

func TestExcludesPath(t *testing.T) {
	for _, c := range []struct{ home, xdg, config, want string }{
		{"/h", "", "", "/h/.config/git/ignore"},
		{"/h", "/x", "", "/x/git/ignore"},
		{"", "", "", ""},
		{"/h", "", "[core]\n\texcludesFile = ~/mine\n", "/h/mine"},
		{"/h", "", "[Core]\nEXCLUDESFILE=/etc/a  # why\n", "/etc/a"},
		{"/h", "", "[core]\nexcludesfile = \"/a b\" ; x\n", "/a b"},
		{"/h", "", "[core]\nexcludesfile = /a b\\\n c\n", "/a b c"},
		{"/h", "", "[core \"x\"]\nexcludesfile = /no\n[user]\nexcludesfile = /no\n", "/h/.config/git/ignore"},
		{"/h", "", "[core] excludesfile = /one\n[core]\nexcludesfile = /two\n", "/two"},
		{"/h", "", "[core]\nexcludesfile =\n", ""},
		{"/h", "", "[core]\n# excludesfile = /no\n", "/h/.config/git/ignore"},
	} {
		if got := ignore.ExcludesPath(c.home, c.xdg, []byte(c.config)); got != c.want {
			t.Errorf("%q: %q, want %q", c.config, got, c.want)
		}
	}
	if got := ignore.ExcludesPath("/h", "", []byte("[core]\nexcludesfile=/a\n"), []byte("[core]\nexcludesfile=/b\n"), nil); got != "/b" {
		t.Errorf("the last file that sets it: %q", got)
	}
}

// TestExcludes compares with git: the user's own excludes, those that a repository names, and core.ignorecase in the ways that it
// can be written.
func TestExcludes(t *testing.T) {
	needGit(t)
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	files := []string{"a.mine", "A.Mine", "b.txt", "sub/a.mine", "sub/keep.mine", "sub/rules", "Build/x", "build2/x"}
	for name, c := range map[string]struct{ config, home, rules string }{
		"home":            {"", "*.mine\n!keep.mine\n", ""},
		"over home":       {"\texcludesFile = TOP/sub/rules\n", "*.txt\n", "*.mine\n"},
		"relative":        {"\texcludesFile = sub/rules\n", "*.txt\n", "/sub/a.mine\nbuild*\n"},
		"missing":         {"\texcludesFile = TOP/none\n", "*.txt\n", ""},
		"empty":           {"\texcludesFile =\n", "*.txt\n", ""},
		"quoted":          {"\texcludesFile = \"TOP/sub/rules\" # mine\n", "*.txt\n", "*.mine\n"},
		"case":            {"\tignorecase = yes\n", "*.MINE\nbuild/\n", ""},
		"case bare":       {"\tignorecase\n", "*.MINE\nbuild/\n", ""},
		"case off":        {"\tignorecase = true\n[core]\n\tIgnoreCase = 0\n", "*.MINE\nbuild/\n", ""},
		"case and own":    {"\tignorecase = on\n\texcludesfile = sub/rules\n", "", "*.MINE\n"},
		"other section":   {"[user]\n\tignorecase = true\n", "*.MINE\n", ""},
		"continued lines": {"\texcludesFile = sub/\\\nrules\n", "*.txt\n", "*.mine\n"},
	} {
		t.Run(name, func(t *testing.T) {
			top := filepath.Join(dir, strings.ReplaceAll(name, " ", "-"))
			repository(t, top, strings.ReplaceAll(c.config, "TOP", top))
			for _, f := range files {
				put(t, top, f, "")
			}
			put(t, top, "sub/rules", c.rules)
			home := top + ".home"
			put(t, home, ".config/git/ignore", c.home)
			t.Setenv("XDG_CONFIG_HOME", filepath.Join(home, ".config"))
			mine, err := os.ReadFile(ignore.ExcludesPath(home, "", nil))
			if err != nil {
				t.Fatal(err)
			}
			for _, root := range []string{top, filepath.Join(top, "sub")} {
				if got, want := listed(t, root, ignore.Options{Excludes: mine}), gitListed(t, root); !slices.Equal(got, want) {
					t.Errorf("%s: %q, git says %q", root, got, want)
				}
			}
		})
	}
}

// TestSubmodule: a submodule's .git file points to a directory of its own, which holds its excludes.
func TestSubmodule(t *testing.T) {
	needGit(t)
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	top, sub := filepath.Join(dir, "top"), filepath.Join(dir, "top", "sub")
	put(t, top, ".gitignore", "*.o\n")
	git(t, top, "init", "-q")
	put(t, sub, "x.o", "")
	put(t, sub, "y.tmp", "")
	put(t, top, ".git/modules/x", "")
	git(t, top, "init", "-q", "--separate-git-dir", filepath.Join(top, ".git/modules/sub"), sub)
	put(t, top, ".git/modules/sub/info/exclude", "*.tmp\n")
	if got, want := listed(t, sub, ignore.Options{}), gitListed(t, sub); !slices.Equal(got, want) {
		t.Errorf("alone: %q, git says %q", got, want)
	}
	if got := listed(t, top, ignore.Options{}); !slices.Equal(got, []string{".gitignore", "sub/x.o"}) {
		t.Errorf("from above: %q", got)
	}
}
