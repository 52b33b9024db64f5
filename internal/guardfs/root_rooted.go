//go:build !linux || rooted

package guardfs

import (
	"io/fs"
	"os"
	"time"
)

// dirRoot is the directory of a place. A test may have its calls fail, those that change something
// and the looks between them: see Options.Fault.
type dirRoot struct {
	*os.Root
	hook func(op string) *Fault
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
		fi, err = r.Root.Lstat(name)
		return err
	})
	return fi, err
}

func (r *dirRoot) Rename(from, to string) error {
	return r.do("rename", func() error { return r.Root.Rename(from, to) })
}

func (r *dirRoot) Remove(name string) error {
	return r.do("unlink", func() error { return r.Root.Remove(name) })
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
