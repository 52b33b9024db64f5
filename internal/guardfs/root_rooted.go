//go:build !linux || rooted

package guardfs

import (
	"io/fs"
	"os"
	"path"
	"time"
)

// dirRoot is the directory of a place. A test may have its calls fail, those that change something
// and the looks between them: see Options.Fault.
type dirRoot struct {
	*os.Root
	hook func(op string) *Fault
	// parts are directories at or below it that are open: by its path in a name, which is then not
	// looked up again. os.Root would follow a link that was put there.
	parts map[string]*os.Root
}

// at is where a name is: the open directory and the name there.
func (r *dirRoot) at(name string) (*os.Root, string) {
	if part := r.parts[path.Dir(name)]; part != nil {
		return part, path.Base(name)
	}
	return r.Root, name
}

// between gives from the name to as well, or renames it.
func (r *dirRoot) between(from, to string, link bool) error {
	a, x := r.at(from)
	b, y := r.at(to)
	switch {
	case a != b:
		return r.across(a, x, b, y, link)
	case link:
		return a.Link(x, y)
	}
	return a.Rename(x, y)
}

func (r *dirRoot) do(op string, call func() error) error {
	if r.hook == nil {
		return call()
	}
	f := r.hook(op)
	if f == nil || f.Short { // no write is short here
		return call()
	}
	if f.After {
		if err := call(); err != nil {
			return err
		}
	}
	return f.Err
}

// OpenRoot opens a directory below r.
func (r *dirRoot) OpenRoot(name string) (sub *dirRoot, err error) {
	err = r.do("openat", func() error {
		root, err := r.Root.OpenRoot(name)
		sub = &dirRoot{Root: root, hook: r.hook}
		return err
	})
	if err != nil {
		return nil, err
	}
	return sub, nil
}

func (r *dirRoot) OpenFile(name string, flag int, mode fs.FileMode) (f *os.File, err error) {
	err = r.do("openat", func() error {
		f, err = r.Root.OpenFile(name, flag, mode)
		return err
	})
	return f, err
}

func (r *dirRoot) Open(name string) (*os.File, error) { return r.OpenFile(name, os.O_RDONLY, 0) }

func (r *dirRoot) Lstat(name string) (fi fs.FileInfo, err error) {
	err = r.do("stat", func() error {
		at, base := r.at(name)
		fi, err = at.Lstat(base)
		return err
	})
	return fi, err
}

func (r *dirRoot) Rename(from, to string) error {
	return r.do("rename", func() error { return r.between(from, to, false) })
}

func (r *dirRoot) Link(from, to string) error {
	return r.do("link", func() error { return r.between(from, to, true) })
}

func (r *dirRoot) Remove(name string) error {
	return r.do("unlink", func() error {
		at, base := r.at(name)
		return at.Remove(base)
	})
}

func (r *dirRoot) Mkdir(name string, mode fs.FileMode) error {
	return r.do("mkdir", func() error { return r.Root.Mkdir(name, mode) })
}

func (r *dirRoot) Symlink(target, name string) error {
	return r.do("symlink", func() error { return r.Root.Symlink(target, name) })
}

func (r *dirRoot) Chmod(name string, mode fs.FileMode) error {
	return r.do("chmod", func() error { return r.Root.Chmod(name, mode) })
}

func (r *dirRoot) Chtimes(name string, accessed, modified time.Time) error {
	return r.do("utimes", func() error { return r.Root.Chtimes(name, accessed, modified) })
}
