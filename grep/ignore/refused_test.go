package ignore_test

import (
	"errors"
	"io/fs"
	"strings"
	"testing"

	"moltisfs/grep/ignore"
)

// elsewhere is a directory that was renamed while somebody climbed from it.
type elsewhere struct {
	osDir
	name string
}

func (d elsewhere) True() string { return d.name }

// barred is a directory of which one file can't be read.
type barred struct {
	osDir
	file string
}

func (d barred) ReadSmall(name string, most int64) ([]byte, error) {
	if name == d.file {
		return nil, errors.New("not for you")
	}
	return d.osDir.ReadSmall(name, most)
}

// TestRulesNotRead: rules that are there and can't be had are counted, each file once, and what is
// had of the others holds.
func TestRulesNotRead(t *testing.T) {
	for name, c := range map[string]struct {
		files  map[string]string
		as     func(osDir) ignore.Dir
		unread int
		holds  bool // that x is ignored
	}{
		"all read":                {map[string]string{".git/HEAD": "ref: refs/heads/main\n", ".gitignore": "x\n"}, nil, 0, true},
		"not the .gitignore":      {map[string]string{".gitignore": "x\n"}, func(d osDir) ignore.Dir { return barred{d, ".gitignore"} }, 1, false},
		"not the .ignore":         {map[string]string{".gitignore": "x\n", ".ignore": "y\n"}, func(d osDir) ignore.Dir { return barred{d, ".ignore"} }, 1, true},
		".git names its own home": {map[string]string{".git": "gitdir: .\n", ".gitignore": "x\n"}, nil, 1, true},
		".git names nothing":      {map[string]string{".git": "gitdir: nowhere\n", ".gitignore": "x\n"}, nil, 1, true},
	} {
		dir := t.TempDir()
		for f, text := range c.files {
			put(t, dir, f, text)
		}
		var d ignore.Dir = osDir(dir)
		if c.as != nil {
			d = c.as(osDir(dir))
		}
		has := func(f string) bool { _, ok := c.files[f]; return ok }
		found := ignore.Found{Gitignore: has(".gitignore"), Ignore: has(".ignore"), HasGit: has(".git") || has(".git/HEAD")}
		if has(".git/HEAD") {
			found.Git = fs.ModeDir
		}
		above, _, _ := ignore.Load(osDir(dir), ignore.Options{})
		set, unread := above.Enter(d, "", found)
		if holds := set.Ignored("", "x", false, new(ignore.Scratch)); unread != c.unread || holds != c.holds {
			t.Errorf("%s: %d unread, want %d; x ignored: %v, want %v", name, unread, c.unread, holds, c.holds)
		}
	}
}

// TestRenamedWhileClimbing: above a root that does not lie any more where its parents are, no rules
// are taken for its own.
func TestRenamedWhileClimbing(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, ".git/HEAD", "ref: refs/heads/main\n")
	put(t, dir, ".gitignore", "x\n")
	put(t, dir, "sub/f", "")
	for _, name := range []string{dir + "/sub", dir + "-moved/sub"} {
		set, base, unread := ignore.Load(elsewhere{osDir(dir + "/sub"), name}, ignore.Options{})
		moved := strings.HasSuffix(name, "-moved/sub")
		if holds := set.Ignored(base, "x", false, new(ignore.Scratch)); holds == moved || (unread > 0) != moved || (base == "") != moved {
			t.Errorf("%s: base %q, %d unread, x ignored: %v", name, base, unread, holds)
		}
	}
}

// TestUnder: a glob can match below a directory only if a segment of it is left for the file.
func TestUnder(t *testing.T) {
	for glob, dirs := range map[string]map[string]bool{
		"a/b":    {"": true, "a": true, "a/b": false, "b": false, "a/b/c": false},
		"a/**":   {"a": true, "a/b": true, "b": false},
		"**/b":   {"a": true, "b": true},
		"[a-]/b": {"a": true, "-": true, "b": false, "a/b": false},
	} {
		g, err := ignore.Compile(glob, ignore.Dialect{Strict: true})
		must(t, err)
		for dir, want := range dirs {
			if g.Under(dir) != want {
				t.Errorf("%s under %q: %v", glob, dir, !want)
			}
		}
	}
}
