package grep

import (
	"errors"
	"io"
	"io/fs"

	"moltisfs/grep/ignore"
)

// ruleDir shows a Dir to the loader of ignore rules. What policy hides does not exist for it. When
// a directory above the root is hidden, the climb ends there, and nothing counts as skipped.
type ruleDir struct{ d Dir }

func (r ruleDir) True() string { return r.d.True() }

func (r ruleDir) Close() error { return r.d.Close() }

func (r ruleDir) ReadSmall(name string, max int64) ([]byte, error) {
	b, err := r.d.ReadSmall(name, max)
	return b, hidden(err, fs.ErrNotExist)
}

func hidden(err, as error) error {
	if errors.Is(err, ErrDenied) {
		return as
	}
	return err
}

func (r ruleDir) Stat(name string) (fs.FileMode, error) {
	i, err := r.d.Stat(name)
	err = hidden(err, fs.ErrNotExist)
	switch i.Kind {
	case KindFile:
		return 0, err
	case KindDir:
		return fs.ModeDir, err
	case KindLink:
		return fs.ModeSymlink, err
	}
	return fs.ModeIrregular, err
}

func (r ruleDir) OpenDir(name string) (ignore.Dir, error) {
	_, err := r.d.Stat(name) // fails for a directory that may only be passed through
	var d Dir
	if err == nil {
		d, err = r.d.OpenDir(name, true)
	}
	if err != nil {
		return nil, hidden(err, fs.ErrNotExist)
	}
	return ruleDir{d}, nil
}

func (r ruleDir) Parent() (ignore.Dir, error) {
	d, err := r.d.Parent()
	if err != nil {
		return nil, hidden(err, io.EOF)
	}
	return ruleDir{d}, nil
}
