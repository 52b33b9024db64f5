package ignore_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"moltisfs/grep/ignore"
)

// TestDocumented are the cases of gitignore(5) and those of git's own tests that bite: one
// construct each. Git is asked too, so that the table can't be wrong where we are.
func TestDocumented(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	_, err := exec.LookPath("git")
	for i, c := range []struct {
		rules, path string
		dir         bool
		want        ignore.Decision
	}{
		{"hello.*", "hello.txt", false, ignore.Ignore},
		{"hello.*", "a/hello.java", false, ignore.Ignore},
		{"/hello.*", "hello.c", false, ignore.Ignore},
		{"/hello.*", "a/hello.java", false, ignore.None},
		{"foo/", "foo", true, ignore.Ignore},
		{"foo/", "foo", false, ignore.None},
		{"foo/", "a/foo", true, ignore.Ignore},
		{"doc/frotz", "doc/frotz", true, ignore.Ignore},
		{"doc/frotz", "a/doc/frotz", true, ignore.None},
		{"foo/*", "foo/test.json", false, ignore.Ignore},
		{"foo/*", "foo/bar/hello.c", false, ignore.None},
		{"**/foo", "foo", false, ignore.Ignore},
		{"**/foo/bar", "x/y/foo/bar", false, ignore.Ignore},
		{"abc/**", "abc/x/y", false, ignore.Ignore},
		{"abc/**", "abc", true, ignore.None},
		{"a/**/b", "a/b", false, ignore.Ignore},
		{"a/**/b", "a/x/y/b", false, ignore.Ignore},
		{"a/**/b", "ab", false, ignore.None},
		{"*.a\n!lib.a", "lib.a", false, ignore.Include},
		{"!lib.a\n*.a", "lib.a", false, ignore.Ignore},
		{"#x\n\\#y", "#x", false, ignore.None},
		{"#x\n\\#y", "#y", false, ignore.Ignore},
		{"\\!x", "!x", false, ignore.Ignore},
		{"x ", "x", false, ignore.Ignore},
		{"x\\ ", "x ", false, ignore.Ignore},
		{"x\t", "x", false, ignore.None},
		{"foo**/bar", "foobar/bar", false, ignore.Ignore},
		{"foo**/bar", "foo/bar", false, ignore.Ignore},
		{"foo**/bar", "foox/y/bar", false, ignore.Ignore},
		{"x**", "xyz", false, ignore.Ignore},
		{"***/x", "a/b/x", false, ignore.Ignore},
		{"[!a]b", "ab", false, ignore.None},
		{"[!a]b", "bb", false, ignore.Ignore},
		{"[]-a]", "]", false, ignore.Ignore},
		{"[[:digit:]]", "7", false, ignore.Ignore},
		{"[a", "[a", false, ignore.None},
		{"a\\", "a\\", false, ignore.None},
		{"?", "é", false, ignore.None}, // bytes, as git has it
		{"??", "é", false, ignore.Ignore},
		{"{a,b}", "a", false, ignore.None},
		{"\xef\xbb\xbfx", "x", false, ignore.Ignore},
		{"x\r\ny", "x", false, ignore.Ignore},
		{"/", "x", false, ignore.None},
		{"/*\n!/foo\n/foo/*\n!/foo/bar", "foo/bar/x", false, ignore.None}, // the last example of gitignore(5)
		{"/*\n!/foo\n/foo/*\n!/foo/bar", "foo", true, ignore.Include},
		{"/*\n!/foo\n/foo/*\n!/foo/bar", "else", false, ignore.Ignore},
		{"foo/*", "foo/bar", true, ignore.Ignore},
		{"/doc/frotz/", "doc/frotz", true, ignore.Ignore},
		{"doc/frotz/", "a/doc/frotz", true, ignore.None},
		{"frotz/", "a/frotz", true, ignore.Ignore},
		{"vmlinux*\n!arch/foo/kernel/vmlinux*", "arch/foo/kernel/vmlinux.lds.S", false, ignore.Include},
		{"!!x", "!x", false, ignore.Include},
		{" x", " x", false, ignore.Ignore},
		{"x \\ ", "x  ", false, ignore.Ignore},
		{"x\\", "x", false, ignore.None},
		{"x\r", "x", false, ignore.Ignore}, // the end of the file is a line end
		{"x\r", "x\r", false, ignore.None},
		{"x\ry", "x\ry", false, ignore.Ignore},
		{"\xff\xfe*", "\xff\xfeq", false, ignore.Ignore},
		{"[\x80-\xff]", "\xe9", false, ignore.Ignore},
		{"caf\xe9", "café", false, ignore.None},
		{"a/", "a", true, ignore.Ignore},
		{"a//", "a", true, ignore.None},
		{"**", "x/y", false, ignore.Ignore},
		{"**/", "x", false, ignore.None},
		{"*", ".hidden", false, ignore.Ignore},
		{"x[!/]y", "x/y", false, ignore.None},
		{"[a-c]", "b", false, ignore.Ignore},
		{"[\\]]", "]", false, ignore.Ignore},
		{"\\a\\b", "ab", false, ignore.Ignore},
		{"", "x", false, ignore.None},
	} {
		if got := ignore.Parse([]byte(c.rules), false).Match(c.path, c.dir); got != c.want {
			t.Errorf("%q on %q (directory %v): %d, want %d", c.rules, c.path, c.dir, got, c.want)
		}
		if err != nil {
			t.Log("SKIPPED, NOT COMPARED: git is not installed")
			continue
		}
		dir := filepath.Join(root, fmt.Sprint(i))
		repository(t, dir, "")
		put(t, dir, ".git/info/exclude", c.rules) // not .gitignore, which a rule may hide
		name := c.path
		if c.dir {
			name += "/in it"
		}
		put(t, dir, name, "")
		got, want := listed(t, dir, ignore.Options{}), gitListed(t, dir)
		if !slices.Equal(got, want) || c.want == ignore.Ignore && want != nil {
			t.Errorf("%q on %q: %q, git says %q", c.rules, name, got, want)
		}
	}
}

func TestFold(t *testing.T) {
	for _, c := range []struct {
		rule, path string
		want       ignore.Decision
	}{
		{"FOO", "foo", ignore.Ignore}, {"foo", "FOO", ignore.Ignore}, {"*.TXT", "a.txt", ignore.Ignore},
		{"/Doc/*.Md", "doc/x.mD", ignore.Ignore}, {"[A-Z]x", "qx", ignore.Ignore}, {"É", "é", ignore.None},
	} {
		if got := ignore.Parse([]byte(c.rule), true).Match(c.path, false); got != c.want {
			t.Errorf("%q on %q: %d, want %d", c.rule, c.path, got, c.want)
		}
	}
}

// TestStars: a hostile pattern costs no more than its length times that of the path, roughly.
func TestStars(t *testing.T) {
	text := strings.Repeat("a", 4000)
	for _, p := range []string{strings.Repeat("a*", 500) + "b", strings.Repeat("*a", 500) + "b", strings.Repeat("a**", 300) + "b", "[" + strings.Repeat("a", 4000), "[\xc3\xbc"} {
		ignore.Parse([]byte(p), false).Match(text, false)
	}
	deep := strings.Repeat("a/", 1000) + "x"
	ignore.Parse([]byte(strings.Repeat("**/a/", 200)+"b"), false).Match(deep, false)
}

// TestRepositories: where rules come from, compared with git where git has a word.
func TestRepositories(t *testing.T) {
	t.Parallel()
	needGit(t)
	dir := trueDir(t)
	main := filepath.Join(dir, "main")
	for name, content := range map[string]string{
		".gitignore": "*.o\nbuild/\n", "a.o": "", "a.c": "", "sub/deep/x.o": "", "sub/deep/y.c": "", "sub/.gitignore": "!keep.o\n",
		"sub/deep/keep.o": "", "build/z.c": "", ".git-local": "", "secret.txt": "", "nested/n.o": "", "nested/n.c": "", "nested/skip": "",
		"fake/.git/x": "", "fake/f.o": "",
	} {
		put(t, main, name, content)
	}
	git(t, main, "init", "-q")
	put(t, main, ".git/info/exclude", "secret.txt\n")
	nested := filepath.Join(main, "nested")
	git(t, nested, "init", "-q")
	put(t, nested, ".git/info/exclude", "skip\n")

	check := func(what string, got []string, want ...string) {
		t.Helper()
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%s:\n%q\nwant\n%q", what, got, want)
		}
	}
	sub := filepath.Join(main, "sub", "deep")
	check("below the root", listed(t, sub, ignore.Options{}), gitListed(t, sub)...)
	check("nested alone", listed(t, nested, ignore.Options{}), gitListed(t, nested)...)
	check("an ignored directory given as the root", listed(t, filepath.Join(main, "build"), ignore.Options{}), "z.c")
	check("all", listed(t, main, ignore.Options{}), ".git-local", ".gitignore", "a.c", "sub/.gitignore", "sub/deep/keep.o", "sub/deep/y.c",
		"nested/n.o", "nested/n.c", // a repository of its own: neither *.o nor the other's exclude hold
	)

	git(t, main, "-c", "user.name=x", "-c", "user.email=x@x", "commit", "-q", "--allow-empty", "-m", "x")
	tree := filepath.Join(dir, "tree")
	git(t, main, "worktree", "add", "-q", tree)
	for _, name := range []string{"secret.txt", "plain.txt"} {
		put(t, tree, name, "")
	}
	check("worktree", listed(t, tree, ignore.Options{}), gitListed(t, tree)...)
	if slices.Contains(listed(t, tree, ignore.Options{}), "secret.txt") {
		t.Error("info/exclude of the common directory does not hold in a worktree")
	}
	must(t, os.Remove(filepath.Join(main, "a.c")))
}

func TestOutside(t *testing.T) {
	dir := trueDir(t)
	put(t, dir, ".gitignore", "*\n")
	root := filepath.Join(dir, "root")
	put(t, root, ".gitignore", "*.log\n*.tmp\n")
	put(t, root, ".ignore", "!a.log\n")
	put(t, root, "sub/.gitignore", "a.log\n")
	for _, f := range []string{"a.log", "b.log", "c.txt", "sub/a.log", "sub/b.tmp"} {
		put(t, root, f, "")
	}
	want := []string{".gitignore", ".ignore", "a.log", "c.txt", "sub/.gitignore", "sub/a.log"}
	if got := listed(t, root, ignore.Options{}); !slices.Equal(got, want) {
		t.Errorf("%q, want %q: .gitignore counts from the root down, .ignore beats it at any depth", got, want)
	}
	// A link named .gitignore is not read, as in git; nor is a directory.
	linked := filepath.Join(dir, "linked")
	put(t, linked, "rules", "*\n")
	put(t, linked, "d/.gitignore/x", "")
	if err := os.Symlink("rules", filepath.Join(linked, ".gitignore")); err != nil {
		t.Skip("SKIPPED: such a name or link can't be made here: ", err)
	}
	if got := listed(t, linked, ignore.Options{}); !slices.Equal(got, []string{".gitignore", "d/.gitignore/x", "rules"}) {
		t.Errorf("%q: a linked .gitignore was read", got)
	}
	yes := true
	if got := listed(t, root, ignore.Options{IgnoreCase: &yes, Excludes: []byte("C.TXT\n")}); slices.Contains(got, "c.txt") {
		t.Error("Excludes and IgnoreCase have no effect")
	}
}

func FuzzParse(f *testing.F) {
	f.Add("*.o\n!a/**/b\n[a-", "a/x/b", true)
	f.Add("a*a*a*b", "aaaa", false)
	f.Add("**/[[:alpha:]]?\\/x", "p/q/x", true)
	f.Add("[\xc3", "\xc3", false)
	f.Fuzz(func(t *testing.T, rules, path string, dir bool) {
		for _, fold := range []bool{false, true} {
			ignore.Parse([]byte(rules), fold).Match(path, dir)
		}
	})
}

// FuzzGit takes a rule file and a path that fuzzing makes up and asks git for its opinion.
func FuzzGit(f *testing.F) {
	needGit(f)
	f.Add("a*\n!ab", "ab")
	f.Add("/x/**/y\n", "x/1/y")
	f.Add("[!a-c]\\ \n", "d ")
	f.Fuzz(func(t *testing.T, rules, path string) {
		path = filepath.ToSlash(filepath.Clean(path))
		if len(path) > 60 || len(rules) > 200 || strings.ContainsAny(path, "\x00\n") || strings.HasPrefix(path, "/") ||
			strings.Contains(path, "..") || strings.Contains(strings.ToLower(path), ".git") || path == "." {
			t.Skip()
		}
		dir := t.TempDir()
		repository(t, dir, "")
		put(t, dir, path, "")
		put(t, dir, ".gitignore", rules)
		if got, want := listed(t, dir, ignore.Options{}), gitListed(t, dir); !slices.Equal(got, want) {
			t.Fatalf("%q on %q: %q, git says %q", rules, path, got, want)
		}
	})
}

// trueDir is a temporary directory, by its true name.
func trueDir(t testing.TB) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	return dir
}

// must ends the test if there is an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
