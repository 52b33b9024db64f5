package ignore_test

import (
	"errors"
	"strings"
	"testing"

	"moltisfs/grep/ignore"
	"moltisfs/grep/tree"
)

// elsewhere is a directory that was renamed while somebody climbed from it.
type elsewhere struct {
	osDir
	name string
}

func (d elsewhere) True() string { return d.name }

// barred is a directory of which one entry can't be looked at, nor read; ".." is the directory above.
type barred struct {
	osDir
	name string
	err  error
}

func (d barred) Stat(name string) (tree.Info, error) {
	if name == d.name {
		return tree.Info{}, d.err
	}
	return d.osDir.Stat(name)
}

func (d barred) ReadSmall(name string, most int64) ([]byte, error) {
	if name == d.name {
		return nil, d.err
	}
	return d.osDir.ReadSmall(name, most)
}

func (d barred) Parent() (tree.Dir, error) {
	if d.name == ".." {
		return nil, d.err
	}
	return d.osDir.Parent()
}

// TestRulesNotRead: rules that are there and can't be had are counted, each file once, and what is
// had of the others holds. To the loader a file that policy hides is not there, and above a hidden
// directory there is nothing.
func TestRulesNotRead(t *testing.T) {
	failed := errors.New("the disk failed")
	for name, c := range map[string]struct {
		files  map[string]string
		barred string
		err    error
		unread int
		holds  bool // that x is ignored
	}{
		"all read":                {map[string]string{".git/HEAD": "ref: refs/heads/main\n", ".gitignore": "x\n"}, "", nil, 0, true},
		"not the .gitignore":      {map[string]string{".gitignore": "x\n"}, ".gitignore", failed, 1, false},
		"a hidden .gitignore":     {map[string]string{".gitignore": "x\n"}, ".gitignore", tree.ErrDenied, 0, false},
		"not the .ignore":         {map[string]string{".gitignore": "x\n", ".ignore": "y\n"}, ".ignore", failed, 1, true},
		"nothing above":           {map[string]string{".gitignore": "x\n"}, "..", failed, 1, true},
		"hidden above":            {map[string]string{".gitignore": "x\n"}, "..", tree.ErrDenied, 0, true},
		".git names its own home": {map[string]string{".git": "gitdir: .\n", ".gitignore": "x\n"}, "", nil, 1, true},
		".git names nothing":      {map[string]string{".git": "gitdir: nowhere\n", ".gitignore": "x\n"}, "", nil, 1, true},
	} {
		dir := t.TempDir()
		var found ignore.Found
		for f, text := range c.files {
			put(t, dir, f, text)
			name, _, below := strings.Cut(f, "/")
			found.Add(name, map[bool]tree.Kind{false: tree.KindFile, true: tree.KindDir}[below])
		}
		d := barred{dirAt(dir), c.barred, c.err}
		above, _, unread := ignore.Load(d, ignore.Options{})
		set, more := above.Enter(d, "", found)
		if holds := set.Ignored("", "x", false, new(ignore.Scratch)); unread+more != c.unread || holds != c.holds {
			t.Errorf("%s: %d unread, want %d; x ignored: %v, want %v", name, unread+more, c.unread, holds, c.holds)
		}
	}
}

// Only files carry rules, and only a file, a directory or a link named .git makes a repository.
func TestFound(t *testing.T) {
	for _, kind := range []tree.Kind{tree.KindOther, tree.KindFile, tree.KindDir, tree.KindLink} {
		for name, want := range map[string]bool{".gitignore": kind == tree.KindFile, ".ignore": kind == tree.KindFile, ".git": kind != tree.KindOther, "gitignore": false} {
			var f ignore.Found
			if f.Add(name, kind); f.Any() != want {
				t.Errorf("%s of kind %d: %v", name, kind, f)
			}
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
		set, base, unread := ignore.Load(elsewhere{dirAt(dir + "/sub"), name}, ignore.Options{})
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
