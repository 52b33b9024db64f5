//go:build !rooted

package guardfs

import (
	"os"

	"golang.org/x/sys/unix"
)

// Cloner returns a function that makes dst, an open empty file, share the extents of before, the regular file that Load found there. It
// fails where the file system can't do that, across file systems, and once something else stands there or it was changed. Nobody keeps
// others from writing into the file meanwhile: what dst holds then has to be compared with before.Content. nil where files can't be cloned at all.
func (p *Place) Cloner(before *Before) func(dst *os.File) error {
	return func(dst *os.File) error {
		dir, err := p.fd.use()
		if err != nil {
			return p.failed("clone", err)
		}
		defer p.fd.done() //nolint:errcheck // Close reports it
		k := p.fs.kernel
		fd, st, err := k.occupant(dir, p.base)
		if err != nil {
			return p.failed("clone", err)
		}
		defer k.discard(fd)
		if fd < 0 || st.info.Kind != KindFile || !st.unchanged(&before.Info) {
			return p.conflict(Replaced)
		}
		n, err := k.reopen(fd, readFlags)
		if err != nil {
			return p.failed("clone", err)
		}
		defer k.close(n) //nolint:errcheck // nothing was written through it
		if err := k.clone(n, dst); err != nil {
			return p.failed("clone", err)
		}
		return nil
	}
}

// Cloner is Place.Cloner for a file that is open; it serves until the file is closed.
func (f *File) Cloner() func(dst *os.File) error {
	return func(dst *os.File) error {
		fd, err := f.fd.use()
		if err != nil {
			return f.failed("clone", err)
		}
		defer f.fd.done() //nolint:errcheck // Close reports it
		if err := f.kernel.clone(fd, dst); err != nil {
			return f.failed("clone", err)
		}
		return nil
	}
}

func (k *kernel) clone(fd int, dst *os.File) error {
	return k.do("clone", func() error { return unix.IoctlFileClone(int(dst.Fd()), fd) })
}
