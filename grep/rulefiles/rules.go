// Package rulefiles lets the loader of ignore rules read a tree of package tree, and says which
// entries of a directory hold ignore rules.
package rulefiles

import (
	"errors"
	"io"
	"io/fs"

	"moltisfs/grep/ignore"
	"moltisfs/grep/tree"
)

// dir shows a Dir to the loader of ignore rules. An entry that policy hides does not exist for it. When
// a directory above the root is hidden, the climb ends there, and nothing counts as skipped.
type dir struct{ d tree.Dir }

// Of shows d to the loader.
func Of(d tree.Dir) ignore.Dir { return dir{d} }

func (r dir) True() string { return r.d.True() }

func (r dir) Close() error { return r.d.Close() }

func (r dir) ReadSmall(name string, max int64) ([]byte, error) {
	b, err := r.d.ReadSmall(name, max)
	return b, hidden(err, fs.ErrNotExist)
}

// hidden gives err, or as if policy denied the entry.
func hidden(err, as error) error {
	if errors.Is(err, tree.ErrDenied) {
		return as
	}
	return err
}

func (r dir) Stat(name string) (fs.FileMode, error) {
	i, err := r.d.Stat(name)
	err = hidden(err, fs.ErrNotExist)
	switch i.Kind {
	case tree.KindFile:
		return 0, err
	case tree.KindDir:
		return fs.ModeDir, err
	case tree.KindLink:
		return fs.ModeSymlink, err
	}
	return fs.ModeIrregular, err
}

func (r dir) OpenDir(name string) (ignore.Dir, error) {
	_, err := r.d.Stat(name) // fails for a directory that may only be passed through
	var d tree.Dir
	if err == nil {
		d, err = r.d.OpenDir(name, true)
	}
	if err != nil {
		return nil, hidden(err, fs.ErrNotExist)
	}
	return dir{d}, nil
}

func (r dir) Parent() (ignore.Dir, error) {
	d, err := r.d.Parent()
	if err != nil {
		return nil, hidden(err, io.EOF)
	}
	return dir{d}, nil
}

// In looks for the entries that carry ignore rules.
func In(entries []tree.Entry) (f ignore.Found) {
	for i := range entries {
		switch e := &entries[i]; {
		case e.Name[0] != '.', e.Way:
		case e.Name == ".gitignore":
			f.Gitignore = e.Kind == tree.KindFile
		case e.Name == ".ignore":
			f.Ignore = e.Kind == tree.KindFile
		case e.Name == ".git" && e.Kind == tree.KindDir:
			f.Git, f.HasGit = fs.ModeDir, true
		case e.Name == ".git" && e.Kind == tree.KindFile:
			f.Git, f.HasGit = 0, true
		case e.Name == ".git" && e.Kind == tree.KindLink:
			f.Git, f.HasGit = fs.ModeSymlink, true
		}
	}
	return f
}

// IsVCS says whether name is a directory of a version control system. Such a directory holds no files of the project.
func IsVCS(name string) bool {
	switch name {
	case ".git", ".svn", ".hg", ".bzr", ".jj", ".sl":
		return true
	}
	return false
}

// Is says whether an entry of this name bears on the ignore rules: .gitignore, .ignore or .git.
func Is(name string) bool { return name == ".gitignore" || name == ".ignore" || name == ".git" }
