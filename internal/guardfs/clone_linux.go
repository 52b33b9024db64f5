//go:build !rooted

package guardfs

import (
	"context"
	"io"
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
		n, err := k.reopen(fd, ReadFlags)
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
	return k.do("clone", func() error { return k.calls.CloneOut(dst, fd) })
}

// copyFrom fills the staged file with the beginning of another one: by a clone where the file
// system can do that, which is read once for its hash, and else piece by piece.
func (s *staged) copyFrom(ctx context.Context, what *NewObject, made *Made) error {
	k, fd := s.place.fs.kernel, s.fd.fd
	from, err := what.Source.fd.use()
	if err != nil {
		return err
	}
	defer what.Source.fd.done() //nolint:errcheck // Close reports it
	err = k.do("clone", func() error { return k.calls.Clone(fd, from) })
	if err == nil {
		err = k.do("truncate", func() error { return k.calls.Ftruncate(fd, what.Size) })
		if err == nil {
			made.Hash, err = stream(ctx, descriptorAt{k, fd}, what.Size,
				func([]byte) error { return nil })
		}
	} else if err = k.room(fd, 0, what.Size); err == nil {
		made.Hash, err = stream(ctx, what.Source, what.Size, func(p []byte) error {
			return k.writeFull(fd, p)
		})
	}
	if err == nil {
		err = what.copied()
	}
	if err == io.EOF {
		err = &ConflictError{Path: what.Source.path(), Why: ContentChanged}
	}
	return err
}

// descriptorAt reads a file of ours.
type descriptorAt struct {
	k  *kernel
	fd int
}

func (d descriptorAt) ReadAt(p []byte, off int64) (int, error) { return d.k.preadFull(d.fd, p, off) }

func (k *kernel) writeFull(fd int, p []byte) error {
	for len(p) > 0 {
		n, err := k.write(fd, p)
		if err == nil && n == 0 {
			err = unix.EIO
		}
		if err != nil {
			return err
		}
		p = p[n:]
	}
	return nil
}
