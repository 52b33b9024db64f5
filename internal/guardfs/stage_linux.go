//go:build !rooted

package guardfs

import (
	"context"
	"io"

	"golang.org/x/sys/unix"
)

// staged is a complete file that has no name yet, or only a temporary one, and waits to be published.
type staged struct {
	place *Place
	fd    descriptor
	name  string // its name in the directory
	named bool   // it has that name; else it has none
	id    Identity
	now   status // what it was when it was made, then with its metadata
}

// stage writes a new file in the place's directory, without a name where the file system can do
// that, with the metadata that it will have when published. On an error nothing stays behind. It
// MUST be discarded, also when it was published.
func (p *Place) stage(ctx context.Context, dir int, name string, what *NewObject, made *Made) (*staged, error) {
	meta := what.Meta
	if meta == nil && what.Like != nil && what.Like.Exists {
		meta = &what.Like.Meta
	}
	s := &staged{place: p, name: name}
	mode := uint32(0o666) // the umask, or the directory's default ACL, makes of it what a new file has
	if meta != nil {
		mode = 0o600 // nobody looks in before the right mode is set
	}
	err := s.create(dir, mode)
	if err != nil {
		return nil, err
	}
	if meta == nil {
		made.Meta, err = s.fresh()
	}
	if err == nil {
		err = s.fill(ctx, what, meta, made)
	}
	if err != nil {
		s.discard() //nolint:errcheck // the first error is the one that counts
		return nil, err
	}
	return s, nil
}

// take gives the file its name, if it has none.
func (s *staged) take(dir int) error {
	if s.named {
		return nil
	}
	err := s.place.fs.kernel.publish(s.fd.fd, dir, s.name)
	if err != nil && s.isOwn(dir, s.name) {
		err = nil
	}
	s.named = err == nil
	return err
}

// isOwn reports whether name is the staged file's. It is asked after a call that changes names has failed,
// because remote file systems report failures of calls that took effect.
func (s *staged) isOwn(dir int, name string) bool {
	st, err := s.place.fs.kernel.lstat(dir, name)
	return err == nil && st.info.ID == s.id
}

// create makes the file: nameless, or where that is not supported with its name.
func (s *staged) create(dir int, mode uint32) error {
	k := s.place.fs.kernel
	fd, err := k.openat(dir, ".", unix.O_TMPFILE|unix.O_RDWR, mode)
	switch err {
	case unix.EOPNOTSUPP, unix.EISDIR, unix.EINVAL, unix.ENOENT, unix.ENOSYS, unix.EPERM:
		if err = s.place.fs.journal.give(s.place.object.True, s.name); err == nil {
			fd, err = k.openat(dir, s.name, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW, mode)
			s.named = err == nil
		}
	}
	if err != nil {
		return err
	}
	st, err := k.stat(fd)
	if err != nil {
		k.close(fd)
		if s.named {
			k.unlink(dir, s.name, 0) //nolint:errcheck // the first error is the one that counts
		}
		return err
	}
	s.id, s.now = st.info.ID, st
	s.fd.open(fd, k.calls)
	return nil
}

// fresh is what the system gave the new file: the umask and the directory's default ACL and group have a say.
func (s *staged) fresh() (m Metadata, err error) {
	k := s.place.fs.kernel
	st, err := k.stat(s.fd.fd)
	if err == nil {
		m = Metadata{Mode: st.info.Mode, UID: st.info.UID, GID: st.info.GID}
		m.Xattrs, err = k.xattrs(s.fd.fd)
	}
	return m, err
}

func (s *staged) fill(ctx context.Context, what *NewObject, meta *Metadata,
	made *Made) error {
	k := s.place.fs.kernel
	fd := s.fd.fd
	const chunk = 4 << 20 // between two looks at ctx
	content := what.Content
	if what.Source != nil {
		if err := s.copyFrom(ctx, what, made); err != nil {
			return err
		}
	}
	for len(content) > 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := k.write(fd, content[:min(len(content), chunk)])
		if err != nil {
			return err
		}
		if n == 0 {
			return unix.EIO
		}
		content = content[n:]
	}
	var err error
	if meta != nil {
		if made.Dropped, err = k.carry(fd, &s.now, meta, what.KeepSpecialBits); err != nil {
			return err
		}
	}
	if what.Meta != nil {
		if err := k.setTimes(fd, what.Meta); err != nil && !unkept(err) {
			return err
		}
	}
	return nil
}

// copyFrom fills the staged file with the beginning of another one, piece by piece.
func (s *staged) copyFrom(ctx context.Context, what *NewObject, made *Made) error {
	k, fd := s.place.fs.kernel, s.fd.fd
	if err := k.room(fd, 0, what.Size); err != nil {
		return err
	}
	var err error
	made.Hash, err = stream(ctx, what.Source, what.Size, func(p []byte) error { return k.writeFull(fd, p) })
	if err == nil {
		err = what.copied()
	}
	if err == io.EOF {
		err = &ConflictError{Path: what.Source.path(), Why: ContentChanged}
	}
	return err
}

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

// discard forgets the staged file, and its temporary name if it still is its own. One that was published it only closes. It may be
// called more than once.
func (s *staged) discard() (err error) {
	if s.named {
		dir, uerr := s.place.fd.use()
		if err = uerr; err == nil {
			err = s.place.fs.kernel.removeOwn(dir, s.name, s.id)
			s.place.fd.done() //nolint:errcheck // Close reports it
		}
		s.named = err != nil
	}
	if cerr := s.fd.close(); err == nil {
		err = cerr
	}
	if err != nil {
		err = s.place.failed("discard "+s.name+" beside", err)
	}
	return err
}

// removeOwn removes a name if it still is that object's. A name that is gone is fine, if it stays gone at a second look.
func (k *kernel) removeOwn(dir int, name string, own Identity) error {
	missed := false
	for try := 0; ; try++ {
		st, err := k.lstat(dir, name)
		if err == nil {
			if st.info.ID != own {
				return nil
			}
			flags := 0
			if st.info.Kind == KindDir {
				flags = unix.AT_REMOVEDIR
			}
			err = k.unlink(dir, name, flags)
		}
		if err == nil || err == unix.ENOENT && missed {
			return nil
		}
		missed = err == unix.ENOENT
		if try >= 3 { // a passing fault is no reason to leave litter
			return err
		}
	}
}
