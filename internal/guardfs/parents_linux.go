//go:build !rooted

package guardfs

import (
	"errors"
	"io/fs"

	"golang.org/x/sys/unix"
)

// Mkdir makes a directory there; the umask and the parent's default ACL apply. A name that exists is fs.ErrExist. Object tells of the new
// directory then. After any other error nothing stays behind, unless the system does not let it be taken away either. The
// name is not on stable storage before SyncNames.
func (p *Place) Mkdir(mode fs.FileMode) error {
	dir, err := p.fd.use()
	if err != nil {
		return p.failed("mkdir", err)
	}
	defer p.fd.done() //nolint:errcheck // Close reports it
	if err := p.look(Create); err != nil {
		return err
	}
	if err := p.still(); err != nil {
		return err
	}
	k := p.fs.kernel
	err = k.do("mkdir", func() error { return k.calls.Mkdirat(dir, p.base, bitsOf(mode)) })
	if err == unix.EEXIST || err != nil && p.object.Info.Kind != KindAbsent {
		return p.failed("mkdir", err)
	}
	// The pinned directory may have been moved: what counts is where the new one really is. And some file systems report
	// failures of calls that took effect: nothing was there a moment ago.
	st, name, lerr := k.subdirectory(dir, p.base)
	switch {
	case err == nil && lerr == nil && name == join(p.dir.True, p.base):
		p.object.Info = st.info
		return nil
	case err != nil && lerr == unix.ENOENT:
		return p.failed("mkdir", err)
	case err != nil:
		err = p.failed("mkdir", err)
	case lerr != nil:
		err = p.failed("mkdir", lerr)
	default:
		err = p.conflict(DirMoved)
	}
	k.unlink(dir, p.base, unix.AT_REMOVEDIR) //nolint:errcheck // the first error is the one that counts
	return err
}

// rmdir removes the empty directory there.
func (p *Place) rmdir() error {
	dir, err := p.fd.use()
	if err != nil {
		return err
	}
	defer p.fd.done() //nolint:errcheck // Close reports it
	return p.fs.kernel.do("rmdir", func() error { return p.fs.kernel.calls.Unlinkat(dir, p.base, unix.AT_REMOVEDIR) })
}

// empty reports whether nothing is in the directory behind a descriptor that was not read from yet.
func (k *kernel) empty(fd int) (bool, error) {
	var list [4096]byte
	n, err := k.getdents(fd, list[:])
	if err != nil {
		return false, err
	}
	_, n, _ = unix.ParseDirent(list[:n], -1, nil)
	return n == 0, nil
}

// carryDir is carry for a directory. With m.Xattrs nil an inherited ACL stays.
func (k *kernel) carryDir(fd int, m Metadata) (dropped []string, err error) {
	if m.Xattrs == nil {
		inherited, err := k.xattrs(fd)
		if err != nil {
			return nil, err
		}
		if acl, ok := inherited[aclName]; ok {
			m.Xattrs = map[string][]byte{aclName: acl}
		}
	}
	now, err := k.stat(fd)
	if err != nil {
		return nil, err
	}
	return k.carry(fd, &now, &m, true)
}

// DirMetadata is the metadata of the directory there, without its time; of one that this process may not read, without its attributes.
func (p *Place) DirMetadata() (Metadata, error) {
	i := p.object.Info
	m := Metadata{Mode: i.Mode, UID: i.UID, GID: i.GID}
	err := p.withDir("read attributes of", func(fd int) (err error) {
		m.Xattrs, err = p.fs.kernel.xattrs(fd)
		return err
	})
	if errors.Is(err, unix.EACCES) {
		err = nil
	}
	return m, err
}

// withDir opens the directory there, if it still is the object that was looked at last.
func (p *Place) withDir(op string, call func(fd int) error) error {
	dir, err := p.fd.use()
	if err != nil {
		return p.failed(op, err)
	}
	defer p.fd.done() //nolint:errcheck // Close reports it
	k := p.fs.kernel
	fd, err := k.openat(dir, p.base, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return p.failed(op, err)
	}
	defer k.close(fd)
	st, err := k.stat(fd)
	if err == nil && st.info.ID != p.object.Info.ID {
		return p.conflict(Replaced)
	}
	if err == nil {
		err = call(fd)
	}
	if err != nil {
		return p.failed(op, err)
	}
	return nil
}

// subdirectory looks at the directory name below dir, and at where it is.
func (k *kernel) subdirectory(dir int, name string) (status, string, error) {
	fd, err := k.openat(dir, name, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return status{}, "", err
	}
	defer k.close(fd)
	st, err := k.stat(fd)
	if err != nil {
		return status{}, "", err
	}
	at, gone, err := k.trueName(fd, &st)
	if err == nil && gone {
		err = unix.ENOENT
	}
	return st, at, err
}

// Fresh is the metadata that a new file, or with dir a new directory, made there with mode gets from the system: the umask, the
// directory's default ACL and its group have a say. What is made in a new directory gets the same as beside it. Nothing stays behind.
func (p *Place) Fresh(mode fs.FileMode, dir bool) (m Metadata, err error) {
	at, err := p.fd.use()
	if err != nil {
		return m, p.failed("stage", err)
	}
	defer p.fd.done() //nolint:errcheck // Close reports it
	tag := NewTag()
	s := &staged{place: p, name: TempName(tag, 0)}
	if err = s.create(at, bitsOf(mode)); err == nil {
		m, err = s.fresh()
		if derr := s.discard(); err == nil {
			err = derr
		}
	}
	p.fs.journal.Forget(tag)
	if err != nil {
		return m, p.failed("stage", err)
	}
	if dir {
		m.Mode |= p.dir.Info.Mode & fs.ModeSetgid
	}
	return m, nil
}

// syncDir puts the names in the directory behind an O_PATH handle on stable storage.
func (k *kernel) syncDir(dir int) error {
	fd, err := k.reopen(dir, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return err
	}
	err = k.fsync(fd)
	k.close(fd)
	return err
}
