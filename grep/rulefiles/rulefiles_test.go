package rulefiles

import (
	"errors"
	"io"
	"io/fs"
	"testing"
	"testing/fstest"

	"moltisfs/grep/ignore"
	"moltisfs/grep/tree"
)

func TestIn(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		entries []tree.Entry
		want    ignore.Found
	}{
		"nothing":           {nil, ignore.Found{}},
		"others":            {[]tree.Entry{{Name: "gitignore", Kind: tree.KindFile}, {Name: ".gitignored", Kind: tree.KindFile}}, ignore.Found{}},
		"rules":             {[]tree.Entry{{Name: ".gitignore", Kind: tree.KindFile}, {Name: ".ignore", Kind: tree.KindFile}}, ignore.Found{Gitignore: true, Ignore: true}},
		"no files":          {[]tree.Entry{{Name: ".gitignore", Kind: tree.KindLink}, {Name: ".ignore", Kind: tree.KindDir}}, ignore.Found{}},
		"repository":        {[]tree.Entry{{Name: ".git", Kind: tree.KindDir}}, ignore.Found{Git: fs.ModeDir, HasGit: true}},
		"linked repository": {[]tree.Entry{{Name: ".git", Kind: tree.KindFile}}, ignore.Found{HasGit: true}},
		"link":              {[]tree.Entry{{Name: ".git", Kind: tree.KindLink}}, ignore.Found{Git: fs.ModeSymlink, HasGit: true}},
		"fifo":              {[]tree.Entry{{Name: ".git", Kind: tree.KindOther}}, ignore.Found{}},
		"passed through":    {[]tree.Entry{{Name: ".git", Kind: tree.KindDir, Way: true}}, ignore.Found{}},
	} {
		if got := In(c.entries); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
		for _, e := range c.entries {
			if c.want != (ignore.Found{}) && !Is(e.Name) {
				t.Errorf("%s: %s has no say", name, e.Name)
			}
		}
	}
	if !IsVCS(".git") || !IsVCS(".jj") || IsVCS(".github") || IsVCS("git") {
		t.Error("directories of version control")
	}
}

// denying is a Dir in which policy hides a few names, and what is above it.
type denying struct {
	tree.Dir
	hides map[string]bool
}

func (d denying) hidden(name string) error {
	if d.hides[name] {
		return tree.ErrDenied
	}
	return nil
}

func (d denying) Stat(name string) (tree.Info, error) {
	if err := d.hidden(name); err != nil {
		return tree.Info{}, err
	}
	return d.Dir.Stat(name)
}

func (d denying) ReadSmall(name string, max int64) ([]byte, error) {
	if err := d.hidden(name); err != nil {
		return nil, err
	}
	return d.Dir.ReadSmall(name, max)
}

func (d denying) Parent() (tree.Dir, error) { return nil, tree.ErrDenied }

func testFiles() fstest.MapFS {
	return fstest.MapFS{".gitignore": {Data: []byte("x\n")}, "sub/.gitignore": {Data: []byte("y\n")}, "fifo": {Mode: fs.ModeNamedPipe}}
}

// TestHidden: to the loader a file that policy hides is not there, and above a hidden directory there is nothing.
func TestHidden(t *testing.T) {
	t.Parallel()
	d := Of(denying{tree.FS(testFiles()), map[string]bool{".gitignore": true, "sub": true}})
	if _, err := d.Stat(".gitignore"); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	if _, err := d.ReadSmall(".gitignore", 99); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	if _, err := d.OpenDir("sub"); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	if _, err := d.Parent(); err != io.EOF {
		t.Error(err)
	}
	d = Of(tree.FS(testFiles()))
	for name, want := range map[string]fs.FileMode{".gitignore": 0, "sub": fs.ModeDir, "fifo": fs.ModeIrregular} {
		if m, err := d.Stat(name); err != nil || m != want {
			t.Errorf("%s: %v, %v", name, m, err)
		}
	}
}
