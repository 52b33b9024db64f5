package ignore_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"moltisfs/grep/ignore"
	"moltisfs/grep/tree"
)

// user reads configuration files from memory.
func user(home, xdg string, files map[string]string, names ...string) ignore.User {
	return ignore.User{Home: home, XDG: xdg, Files: names, Read: func(name string) ([]byte, error) {
		if text, ok := files[name]; ok {
			return []byte(text), nil
		}
		return nil, fs.ErrNotExist
	}}
}

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
		{"/h", "", "[core]\n# a comment does not go on \\\nexcludesfile = /yes\n", "/yes"},
		{"/h", "", "[core]\nexcludesfile = ~else/x\n", ""},
		{"/h", "", "[core]\nexcludesfile = /a\n[include]\npath = b\n", "/b"},
		{"/h", "", "[include]\npath = b\n[core]\nexcludesfile = /a\n", "/a"},
		{"/h", "", "[include]\npath = ~/b\n", "/hb"},
		{"/h", "", "[include]\npath = none\npath = /h/sub/c\n", "/c-sub-d"},
		{"/h", "", "[include]\npath = loop\n", "/loop"},
		{"/h", "", "[includeIf \"gitdir:~/work/\"]\npath = b\n", "/h/.config/git/ignore"}, // no condition is met
	} {
		files := map[string]string{"/etc/git": c.config, "/etc/b": "[core]\nexcludesfile = /b\n", "/h/b": "[core]\nexcludesfile = /hb\n",
			"/h/sub/c": "[include]\npath = d\n", "/h/sub/d": "[core]\nexcludesfile = /c-sub-d\n", "/etc/loop": "[core]\nexcludesfile = /loop\n[include]\npath = loop\npath = loop\n"}
		if got := user(c.home, c.xdg, files, "/etc/git").ExcludesPath(); got != c.want {
			t.Errorf("%q: %q, want %q", c.config, got, c.want)
		}
	}
	files := map[string]string{"/1": "[core]\nexcludesfile=/a\n", "/2": "[core]\nexcludesfile=/b\n"}
	if got := user("/h", "", files, "/1", "/2", "/3").ExcludesPath(); got != "/b" {
		t.Errorf("the last file that sets it: %q", got)
	}
}

// TestExcludes compares with git: the user's own excludes, those that a repository names, and
// core.ignorecase in the ways that it can be written.
func TestExcludes(t *testing.T) {
	needGit(t)
	dir := trueDir(t)
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
		"home in own":     {"\texcludesFile = ~/mine.rules\n", "*.txt\n", ""},
		"include":         {"[include]\n\tpath = ../sub/more\n", "", "*.mine\n"},
		"include missing": {"[include]\n\tpath = ../none\n", "*.txt\n", ""},
		"include home":    {"[include]\n\tpath = ~/mine.config\n", "*.txt\n", "*.mine\n"},
		"include if not":  {"[includeIf \"gitdir:TOP2/\"]\n\tpath = ../sub/more\n", "*.txt\n", "*.mine\n"},
		"include case":    {"[include]\n\tpath = ../sub/fold\n", "*.MINE\n", ""},
		"comment":         {"# \\\n\texcludesFile = sub/rules\n", "*.txt\n", "*.mine\n"},
		"continued lines": {"\texcludesFile = sub/\\\nrules\n", "*.txt\n", "*.mine\n"},
	} {
		t.Run(name, func(t *testing.T) {
			top := filepath.Join(dir, strings.ReplaceAll(name, " ", "-"))
			repository(t, top, strings.ReplaceAll(c.config, "TOP", top))
			for _, f := range files {
				put(t, top, f, "")
			}
			put(t, top, "sub/rules", c.rules)
			put(t, top, "sub/more", "[core]\n\texcludesFile = sub/rules\n")
			put(t, top, "sub/fold", "[core]\n\tignoreCase = yes\n")
			put(t, top, "mine.rules", "*.mine\n") // git runs with its home there
			put(t, top, "mine.config", "[core]\n\texcludesFile = sub/rules\n")
			home := top + ".home"
			put(t, home, ".config/git/ignore", c.home)
			t.Setenv("XDG_CONFIG_HOME", filepath.Join(home, ".config"))
			mine, err := os.ReadFile(ignore.User{Home: home}.ExcludesPath())
			must(t, err)
			for _, root := range []string{top, filepath.Join(top, "sub")} {
				if got, want := listed(t, root, ignore.Options{Excludes: mine, Home: root}), gitListed(t, root); !slices.Equal(got, want) {
					t.Errorf("%s: %q, git says %q", root, got, want)
				}
			}
		})
	}
}

// TestSubmodule: a submodule's .git file points to a directory of its own, which holds its
// excludes.
func TestSubmodule(t *testing.T) {
	needGit(t)
	dir := trueDir(t)
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

// TestIncludesEnd: a configuration can neither include for ever nor have anything read that is no
// file, and what was left out counts.
func TestIncludesEnd(t *testing.T) {
	dir := trueDir(t)
	for name, config := range map[string]string{
		"itself":    "[include]\n\tpath = config\n\tpath = config\n",
		"directory": "[include]\n\tpath = ../sub\n",
		"malformed": "[core\n",
	} {
		top := filepath.Join(dir, name)
		repository(t, top, config)
		put(t, top, "sub/x", "")
		set, _, _ := ignore.Load(dirAt(top), ignore.Options{})
		_, unread := set.Enter(dirAt(top), "", ignore.Found{Git: tree.KindDir})
		if unread == 0 {
			t.Errorf("%s: nothing counted", name)
		}
	}
}
