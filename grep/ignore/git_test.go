package ignore_test

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"moltisfs/grep/ignore"
	"moltisfs/grep/tree"
	"moltisfs/internal/testdir"
)

func TestMain(m *testing.M) {
	remove := testdir.InMemory()
	status := m.Run()
	remove()
	os.Exit(status)
}

var (
	forests = flag.Int("forests", 200, "generated trees that are compared with git")
	seed    = flag.Uint64("seed", 1, "of the generated trees")
)

// osDir shows a directory by path: good enough for a test on a tree that nobody changes.
type osDir struct {
	tree.Dir
	path string
}

func dirAt(path string) osDir { return osDir{tree.FS(os.DirFS(path)), path} }

func (d osDir) True() string { return d.path }
func (d osDir) OpenDir(name string, _ bool) (tree.Dir, error) {
	_, err := d.Dir.OpenDir(name, true)
	return dirAt(filepath.Join(d.path, name)), err
}
func (d osDir) Parent() (tree.Dir, error) {
	if up := filepath.Dir(d.path); up != d.path {
		return dirAt(up), nil
	}
	return nil, io.EOF
}

// listed walks root as a search would and gives what is not ignored, relative to root.
func listed(t testing.TB, root string, o ignore.Options) []string {
	t.Helper()
	var out []string
	var w ignore.Scratch
	set, base, _ := ignore.Load(dirAt(root), o)
	var walk func(d osDir, rel string, set *ignore.Set)
	walk = func(d osDir, rel string, set *ignore.Set) {
		es, err := os.ReadDir(d.path)
		must(t, err)
		var f ignore.Found
		for _, e := range es {
			i, _ := d.Stat(e.Name())
			f.Add(e.Name(), i.Kind)
		}
		in, _ := set.Enter(d, base+rel, f)
		for _, e := range es {
			if e.Name() == ".git" || in.Ignored(base+rel, e.Name(), e.IsDir(), &w) {
				continue
			}
			if e.IsDir() {
				walk(dirAt(filepath.Join(d.path, e.Name())), rel+e.Name()+"/", in)
			} else {
				out = append(out, rel+e.Name())
			}
		}
	}
	walk(dirAt(root), "", set)
	slices.Sort(out)
	return out
}

func needGit(t testing.TB) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("SKIPPED, NOTHING COMPARED: git is not installed")
	}
}

// git runs git in dir, cut off from the user's own configuration.
func git(t testing.TB, dir string, args ...string) []byte {
	t.Helper()
	c := exec.Command("git", args...)
	c.Dir = dir
	c.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL="+os.DevNull, "HOME="+dir)
	var errs bytes.Buffer
	c.Stderr = &errs
	out, err := c.Output()
	if err != nil {
		t.Fatalf("git %q: %v\n%s", args, err, errs.Bytes())
	}
	return out
}

func gitListed(t testing.TB, dir string) []string {
	out := strings.TrimSuffix(string(git(t, dir, "ls-files", "-co", "--exclude-standard", "-z")), "\x00")
	if out == "" {
		return nil
	}
	files := strings.Split(out, "\x00")
	slices.Sort(files)
	return files
}

func put(t testing.TB, root, name, content string) {
	t.Helper()
	p := filepath.Join(root, filepath.FromSlash(name))
	must(t, os.MkdirAll(filepath.Dir(p), 0o755))
	must(t, os.WriteFile(p, []byte(content), 0o644))
}

// repository makes the little that git needs to take dir for a repository; git init would cost more
// than the comparison.
func repository(t testing.TB, dir, config string) {
	put(t, dir, ".git/HEAD", "ref: refs/heads/main\n")
	put(t, dir, ".git/config", "[core]\n\trepositoryformatversion = 0\n\tbare = false\n"+config)
	for _, d := range []string{"objects", "refs"} {
		must(t, os.MkdirAll(filepath.Join(dir, ".git", d), 0o755))
	}
}

func (f *forest) plant(t testing.TB, dir string) {
	config := fmt.Sprintf("\tignorecase = %v\n", f.fold)
	if f.global != "" {
		put(t, dir, ".git/global", f.global)
		config += "\texcludesFile = " + filepath.Join(dir, ".git/global") + "\n"
	}
	repository(t, dir, config)
	for _, p := range f.files {
		put(t, dir, p, "")
	}
	for p, c := range f.rules {
		put(t, dir, p, c)
	}
	if f.info != "" {
		put(t, dir, ".git/info/exclude", f.info)
	}
}

func (f *forest) String() string {
	return fmt.Sprintf("fold %v\nfiles %q\nrules %q\ninfo %q\nglobal %q", f.fold, f.files, f.rules, f.info, f.global)
}

// TestGit compares generated trees with git. Long run: go test ./grep/ignore -run TestGit$ -forests
// 20000 -seed 7
func TestGit(t *testing.T) {
	needGit(t)
	n := *forests
	if testing.Short() {
		n = min(n, 40)
	}
	const parts = 4 // beside one another: git is a process of its own
	for part := range parts {
		t.Run(fmt.Sprint(part), func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			trees, bad := 0, 0
			for i := part; i < n; i += parts {
				trees++
				f := gen{rand.New(rand.NewPCG(*seed, uint64(i)))}.forest()
				dir := filepath.Join(root, fmt.Sprint(i))
				f.plant(t, dir)
				want := gitListed(t, dir)
				got := listed(t, dir, ignore.Options{Excludes: []byte(f.global)})
				if !slices.Equal(got, want) {
					t.Errorf("tree %d\n%v\nhidden by us, not by git: %q\nshown by us, not by git: %q",
						i, f, minus(want, got), minus(got, want))
					if bad++; bad == 5 {
						t.FailNow()
					}
				}
				os.RemoveAll(dir)
			}
			t.Logf("%d trees, %d differ from git", trees, bad)
		})
	}
}

// constructs are rules of one construct each; each is the only rule of one tree that is compared with git.
var constructs = []string{
	"ba?", "[!a]", "[^a].txt", "a/b", "a/**", "/*\n!*az/", "doc/\n!*/", "***/x", "foo**/bar", "a[", "[[:digit:]]", "{a,b}", "a\\ ", " lead", "trail ", "tab\t",
	"\\#hash", "\\!bang", "\xef\xbb\xbfbom", "^c", "a+b", "(p)", "$d", "n**m", "?", "??", "*.log\n!keep.log", "/top", "a/**/b", "**/x", "!x", "[a-c]", "[]a]",
	"[\u00fc", "a*a*a*a*a*a*a*a*b",
}

var constructFiles = []string{
	"ba?", "bar", "bax", "a.txt", "b.txt", "a/b", "a/c/b", "x/a/b", "doc/one", "baz/one", "fob/one", "p/q/x", "x/y", "foo/bar", "foox/y/bar", "foobar/bar", "7", "a ", " lead", "trail", "trail ",
	"tab", "tab\t", "#hash", "!bang", "bom", "^c", "c", "a+b", "aab", "(p)", "p/z", "$d", "d", "nm", "nxm", "n/m", "é", "e", "keep.log", "run.log", "top", "s/top", "]", "{a,b}",
	strings.Repeat("a", 44) + "c", // takes git a second; sixty would take it fifteen
}

func TestConstructs(t *testing.T) {
	t.Parallel()
	needGit(t)
	dir := t.TempDir()
	(&forest{files: constructFiles}).plant(t, dir)
	for _, rule := range constructs {
		put(t, dir, ".gitignore", rule+"\n")
		want, got := gitListed(t, dir), listed(t, dir, ignore.Options{})
		if !slices.Equal(got, want) {
			t.Errorf("%q\nhidden by us: %q\nshown by us: %q", rule, minus(want, got), minus(got, want))
		}
	}
}

func minus(a, b []string) []string {
	return slices.DeleteFunc(slices.Clone(a), func(s string) bool { return slices.Contains(b, s) })
}
