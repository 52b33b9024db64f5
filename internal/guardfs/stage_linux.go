//go:build !rooted

package guardfs

import (
	"context"

	"golang.org/x/sys/unix"
)

// Staged is a complete file that has no name yet, or only a temporary one, and waits to be published.
type Staged struct {
	place   *Place
	fd      descriptor
	name    string // that it gets beside the place, of a hold that is open; else one is made up
	temp    string // its name in the directory; "" while it has none
	id      Identity
	sync    bool
	parked  *Info  // what stat said when it was closed until Commit; nil when fd is open
	staged  status // what it was when Commit began
	dropped []string
}

// Stage writes content into a new file in the place's directory, without a name where the file system can do that,
// gives it the metadata that it will have when published, and with o.Sync waits until it is on stable storage. On
// an error nothing stays behind. The Staged MUST be discarded, also after Commit.
func (p *Place) Stage(ctx context.Context, content []byte, o StageOptions) (*Staged, error) {
	dir, err := p.fd.use()
	if err != nil {
		return nil, p.failed("stage", err)
	}
	defer p.fd.done() //nolint:errcheck // Close reports it
	switch kind := p.object.Info.Kind; kind {
	case KindDir, KindOther:
		return nil, &NotRegularError{Path: p.object.Spelled, Kind: p.fs.kernel.specialAt(dir, p.base, &p.object.Info)}
	case KindSymlink:
		return nil, &NotRegularError{Path: p.object.Spelled, Kind: kind.String()}
	}
	s, err := p.stage(ctx, dir, content, o)
	if err != nil {
		return nil, p.failed("stage", err)
	}
	return s, nil
}

// stage is Stage whatever is at p.
func (p *Place) stage(ctx context.Context, dir int, content []byte, o StageOptions) (*Staged, error) {
	meta := o.Meta
	if meta == nil && o.Like != nil && o.Like.Exists {
		meta = &o.Like.Meta
	}
	s := &Staged{place: p, sync: o.Sync && !o.NameLater}
	mode := uint32(0o666) // the umask, or the directory's default ACL, makes of it what a new file has
	if meta != nil {
		mode = 0o600 // nobody looks in before the right mode is set
	}
	if err := s.create(dir, mode); err != nil {
		return nil, err
	}
	if meta == nil && o.Made != nil {
		if err := s.tell(o.Made); err != nil {
			s.Discard() //nolint:errcheck // the first error is the one that counts
			return nil, err
		}
	}
	if err := s.fill(ctx, content, meta, o); err != nil {
		s.Discard() //nolint:errcheck // the first error is the one that counts
		return nil, err
	}
	if o.Park != "" {
		if err := s.park(dir, o.Park); err != nil {
			s.Discard() //nolint:errcheck // the first error is the one that counts
			return nil, err
		}
	}
	return s, nil
}

// park gives the file, which is complete, a temporary name if it has none, and closes it.
func (s *Staged) park(dir int, hash string) error {
	k, fd := s.place.fs.kernel, s.fd.fd
	if s.temp == "" {
		name, err := s.place.trade(s.id.Ino, hash)
		if err != nil {
			return err
		}
		if err := k.publish(fd, dir, name); err != nil && !s.isOwn(dir, name) {
			return err
		}
		s.temp = name
	}
	st, err := k.stat(fd) // the name moved its time
	if err != nil {
		return err
	}
	if err := s.fd.close(); err != nil {
		return err // some file systems tell only now that they could not write
	}
	s.parked = &st.info
	return nil
}

// open gives the staged file's descriptor, which close gives back. One that was closed has to be as it was left: whoever may write in the
// directory can put another thing under its name.
func (s *Staged) open(dir int) (fd int, close func(), err error) {
	p := s.place
	if s.parked == nil {
		fd, err := s.fd.use()
		if err != nil {
			return -1, nil, p.failed("publish", err)
		}
		return fd, func() { s.fd.done() }, nil //nolint:errcheck // it is not the last use
	}
	k := p.fs.kernel
	fd, err = k.openat(dir, s.temp, unix.O_PATH|unix.O_NOFOLLOW, 0)
	if err == unix.ENOENT {
		return -1, nil, p.conflict(TempRemoved)
	}
	if err != nil {
		return -1, nil, p.failed("publish", err)
	}
	st, err := k.stat(fd)
	if err == nil && st.unchanged(s.parked) {
		return fd, func() { k.close(fd) }, nil //nolint:errcheck // nothing was written through it
	}
	k.close(fd) //nolint:errcheck // nothing was written through it
	if err != nil {
		return -1, nil, p.failed("publish", err)
	}
	return -1, nil, p.conflict(TempSwapped)
}

// create makes the file: nameless, or where that is not supported with a random name that nobody had before.
func (s *Staged) create(dir int, mode uint32) error {
	k := s.place.fs.kernel
	fd, err := k.openat(dir, ".", unix.O_TMPFILE|unix.O_RDWR, mode)
	switch err {
	case unix.EOPNOTSUPP, unix.EISDIR, unix.EINVAL, unix.ENOENT, unix.ENOSYS, unix.EPERM:
		for try := 0; ; try++ {
			if s.temp, err = s.place.temporary(); err != nil {
				break
			}
			fd, err = k.openat(dir, s.temp, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW, mode)
			if err != unix.EEXIST || try >= 8 {
				break
			}
		}
	}
	if err != nil {
		s.temp = ""
		return err
	}
	st, err := k.stat(fd)
	if err != nil {
		k.close(fd)
		if s.temp != "" {
			k.unlink(dir, s.temp, 0) //nolint:errcheck // the first error is the one that counts
		}
		return err
	}
	s.id = st.info.ID
	s.fd.open(fd)
	return nil
}

// tell says what the system gave the new file: the umask and the directory's default ACL and group have a say.
func (s *Staged) tell(made func(Metadata)) error {
	k := s.place.fs.kernel
	st, err := k.stat(s.fd.fd)
	if err != nil {
		return err
	}
	x, err := k.xattrs(s.fd.fd)
	if err != nil {
		return err
	}
	made(Metadata{Mode: st.info.Mode, UID: st.info.UID, GID: st.info.GID, Xattrs: x})
	return nil
}

func (s *Staged) fill(ctx context.Context, content []byte, meta *Metadata, o StageOptions) error {
	k := s.place.fs.kernel
	fd := s.fd.fd
	const chunk = 4 << 20 // between two looks at ctx
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
		if s.dropped, err = k.carry(fd, meta, o.KeepSpecialBits); err != nil {
			return err
		}
	}
	if o.Meta != nil {
		if err := k.setTimes(fd, o.Meta); err != nil && !unkept(err) {
			return err
		}
	}
	if o.Sync {
		// After a failed fsync the pages are marked clean and a second one would say yes: this file is lost.
		return k.fsync(fd)
	}
	return nil
}

// ID is the staged file's identity, by which it is known also after a Commit, whatever that came to.
func (s *Staged) ID() Identity { return s.id }

// Discard forgets the staged file. After a Commit that succeeded it only gives back the descriptor. It may be called
// more than once.
func (s *Staged) Discard() error {
	err := s.unlinkTemp()
	if cerr := s.fd.close(); err == nil && cerr != nil {
		err = s.place.failed("close", cerr)
	}
	return err
}

// unlinkTemp removes the temporary name, if there is one and it is ours: a name in a shared directory may have
// been put to another object meanwhile.
func (s *Staged) unlinkTemp() error {
	if s.temp == "" {
		return nil
	}
	p := s.place
	dir, err := p.fd.use()
	if err != nil {
		return p.failed("remove temporary "+s.temp+" of", err)
	}
	defer p.fd.done() //nolint:errcheck // Close reports it
	if err := p.drop(dir, s.temp, s.id); err != nil {
		return p.failed("remove temporary "+s.temp+" of", err)
	}
	s.temp = ""
	return nil
}

// drop is removeOwn of a temporary name.
func (p *Place) drop(dir int, name string, own Identity) error {
	err := p.fs.kernel.removeOwn(dir, name, own)
	if err != nil {
		p.fs.temporaries.Stays()
	}
	return err
}

// removeOwn removes a name if it still is that object's. What is gone is fine, if it stays gone at a second look.
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
