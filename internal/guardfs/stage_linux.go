//go:build !rooted

package guardfs

import (
	"context"
	"errors"
	"io"
	"io/fs"

	"golang.org/x/sys/unix"
)

// hold is what a place has that is a temporary name.
type hold struct {
	staged *staged // the new file, while it is open
	left   *Info   // what stat said of the new thing when it was left there
}

// left is what stat said of the new thing when it was left there; nil when there is none.
func (p *Entry) left() *Info {
	if p.hold == nil {
		return nil
	}
	return p.hold.left
}

// Stage makes what is asked for, complete with its metadata, in the directory of p under the name base, which is a temporary one or,
// in a directory that is staged itself, the one of p. Nothing is judged: p was. On an error nothing stays behind.
func (p *Entry) Stage(ctx context.Context, base string, what NewObject) (*Entry, *Staged, error) {
	dir, err := p.fd.use()
	if err != nil {
		return nil, nil, p.failed("stage", err)
	}
	defer p.fd.done() //nolint:errcheck // Close reports it
	if (what.Kind == KindFile && !what.Open) || what.Kind == KindDir || what.Kind == KindSymlink {
		if err := p.fs.journal.give(p.object.True, base); err != nil {
			return nil, nil, err
		}
	}
	h, err := p.beside(base)
	if err != nil {
		return nil, nil, p.failed("stage", err)
	}
	k, made := p.fs.kernel, &Staged{}
	switch what.Kind {
	case KindAbsent:
		if st, lerr := k.lstat(dir, h.base); lerr == nil {
			made.Info = st.info
		} else if lerr != unix.ENOENT {
			err = lerr
		}
	case KindFile:
		err = h.file(ctx, p, dir, &what, made)
	case KindDir:
		err = h.directory(dir, &what, made)
	case KindSymlink:
		err = h.link(dir, &what, made)
	default:
		err = unix.EINVAL
	}
	if err != nil {
		h.Close() //nolint:errcheck // the first error is the one that counts
		return nil, nil, p.nameFailed("stage", err)
	}
	if what.Kind != KindAbsent {
		h.hold.left = &made.Info
	}
	return h, made, nil
}

// beside is the place of a name in the directory of p, which it shares.
func (p *Entry) beside(name string) (*Entry, error) {
	if _, err := p.fd.use(); err != nil {
		return nil, err
	}
	defer p.fd.done() //nolint:errcheck // Close reports it
	o := Object{Spelled: p.object.Spelled, True: join(p.dir.True, name)}
	h := &Entry{fs: p.fs, pin: p.pin, dir: p.dir, base: name, object: o, links: true, hold: &hold{}}
	p.fs.pins.share(&h.fd, p.pin)
	return h, nil
}

func (p *Entry) file(ctx context.Context, of *Entry, dir int, what *NewObject, made *Staged) error {
	k := p.fs.kernel
	s, err := of.stage(ctx, dir, p.base, what, made)
	if err != nil {
		return err
	}
	if !what.Open {
		err = s.take(dir)
	}
	var st status
	if err == nil {
		st, err = k.stat(s.fd.fd) // after its name, which moved its time
	}
	if err == nil && !what.Open {
		err = s.leave(what.Sync && st.info.Mode&0o400 == 0)
	}
	if err != nil {
		s.discard() //nolint:errcheck // the first error is the one that counts
		return err
	}
	if made.Info = st.info; what.Open {
		p.hold.staged = s
	}
	return nil
}

// leave closes the file, which has its name. One that its owner may not open is synced before.
func (s *staged) leave(sync bool) error {
	if sync {
		if err := s.place.fs.kernel.fsync(s.fd.fd); err != nil {
			return err
		}
	}
	return s.fd.close() // some file systems tell only now that they could not write
}

func (p *Entry) directory(dir int, what *NewObject, made *Staged) error {
	k := p.fs.kernel
	meta := what.Meta
	if meta == nil && what.Like != nil {
		meta = &what.Like.Meta
	}
	mode := uint32(0o777) // the umask, or the directory's default ACL, makes of it what a new one has
	if what.Mode != 0 {
		mode = bitsOf(what.Mode)
	}
	if meta != nil {
		mode = 0o700 // nobody looks in before the right mode is set
	}
	err := k.do("mkdir", func() error { return k.calls.Mkdirat(dir, p.base, mode) })
	if err == unix.EEXIST {
		return err
	}
	fd := -1
	if err == nil || err == unix.EIO { // some file systems report failures of calls that took effect
		var oerr error
		fd, oerr = k.openat(dir, p.base, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
		if err == nil {
			err = oerr
		}
	}
	defer func() { k.discard(fd) }()
	if err == nil && meta != nil {
		made.Dropped, err = k.carryDir(fd, *meta)
	}
	var st status
	if err == nil {
		st, err = k.stat(fd)
	}
	if err == nil && meta == nil {
		made.Meta = Metadata{Mode: st.info.Mode, UID: st.info.UID, GID: st.info.GID}
		made.Meta.Xattrs, err = k.xattrs(fd)
	}
	if err != nil {
		k.unlink(dir, p.base, unix.AT_REMOVEDIR) //nolint:errcheck // the first error is the one that counts
		return err
	}
	made.Info = st.info
	return nil
}

func (p *Entry) link(dir int, what *NewObject, made *Staged) error {
	k := p.fs.kernel
	target := string(what.Content)
	if target == "" || len(target) > maxPath {
		return &BadPathError{Path: target, Why: "not the text of a link"}
	}
	err := k.do("symlink", func() error { return k.calls.Symlinkat(target, dir, p.base) })
	if err == unix.EEXIST {
		return err
	}
	fd, st, oerr := k.occupant(dir, p.base)
	defer k.discard(fd)
	if err == nil {
		err = oerr
	}
	if err == nil {
		text, terr := k.target(fd)
		if errors.Is(terr, ErrUnavailable) {
			return terr
		}
		if terr != nil || text != target {
			return unix.EEXIST // another thing took its name at once
		}
		made.Info = st.info
		return nil
	}
	if fd >= 0 {
		k.removeOwn(dir, p.base, st.info.ID) //nolint:errcheck // the first error is the one that counts
	} else {
		k.unlink(dir, p.base, 0) //nolint:errcheck // see above
	}
	return err
}

// FinishDir notes what the staged directory at p is once all is in it, and gives it the mode that it is to have.
func (p *Entry) FinishDir(made *Staged, mode fs.FileMode) error {
	dir, err := p.fd.use()
	if err != nil {
		return p.failed("set mode of", err)
	}
	defer p.fd.done() //nolint:errcheck // Close reports it
	k := p.fs.kernel
	fd, st, err := k.occupant(dir, p.base)
	if err != nil {
		return p.failed("set mode of", err)
	}
	defer k.discard(fd)
	if fd < 0 || st.info.ID != made.Info.ID {
		return p.conflict(Replaced)
	}
	if st.info.Mode != mode {
		if err = k.chmod(fd, mode); err == nil {
			st, err = k.stat(fd)
		}
	}
	if err != nil {
		return p.failed("set mode of", err)
	}
	made.Info = st.info
	return nil
}

// Keep gives what is at a hold a lasting name, puts it on record, and tells where it is.
func (p *Entry) Preserve() (left string, err error) {
	dir, err := p.fd.use()
	if err != nil {
		return "", p.failed("keep", err)
	}
	defer p.fd.done() //nolint:errcheck // Close reports it
	if p.hold == nil {
		return "", p.failed("keep", unix.EINVAL)
	}
	k, to := p.fs.kernel, keptName()
	if err := k.renameNew(dir, p.base, dir, to); err != nil {
		if _, lerr := k.lstat(dir, to); lerr != nil {
			return join(p.dir.True, p.base), nil
		}
	}
	p.fs.journal.keep(KeptFile{join(p.dir.True, to), p.object.Spelled}) // what it is beside
	return join(p.dir.True, to), nil
}

// Empty reports whether nothing is in the directory there.
func (p *Entry) Empty() (empty bool, err error) {
	err = p.withDir("list", func(fd int) error {
		empty, err = p.fs.kernel.empty(fd)
		return err
	})
	return empty, err
}

// Sync puts the content of the new file of a hold on stable storage.
func (p *Entry) Sync() error {
	k := p.fs.kernel
	var err error
	switch h := p.hold; {
	case h == nil || h.left == nil || h.left.Kind != KindFile:
	case h.staged != nil:
		var fd int
		if fd, err = h.staged.fd.use(); err == nil {
			err = k.fsync(fd)
			h.staged.fd.done() //nolint:errcheck // Drop reports it
		}
	case h.left.Mode&0o400 != 0:
		err = p.syncClosed()
	}
	if err != nil {
		return p.failed("sync", err)
	}
	return nil
}

func (p *Entry) syncClosed() error {
	dir, err := p.fd.use()
	if err != nil {
		return err
	}
	defer p.fd.done() //nolint:errcheck // Close reports it
	k := p.fs.kernel
	fd, err := k.openat(dir, p.base, ReadFlags|unix.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	defer k.close(fd) //nolint:errcheck // nothing was written through it
	if st, err := k.stat(fd); err != nil || st.info.ID != p.hold.left.ID {
		return p.conflict(TempSwapped)
	}
	return k.fsync(fd)
}

// Drop removes the thing own from p, which is a temporary name or lies below one. Anything else that has the name stays there. A
// directory that is not empty is ENOTEMPTY.
func (p *Entry) Drop(own Precondition) error {
	if !ReservedPath(join(p.dir.True, p.base)) {
		return p.failed("drop", unix.EINVAL)
	}
	dir, err := p.fd.use()
	if err != nil {
		return p.failed("drop", err)
	}
	defer p.fd.done() //nolint:errcheck // Close reports it
	if own.nothing() {
		return nil
	}
	if err := p.fs.kernel.removeOwn(dir, p.base, own.ID); err != nil {
		return p.nameFailed("drop", err)
	}
	return nil
}

// staged is a complete file that has no name yet, or only a temporary one, and waits to be published.
type staged struct {
	place *Entry
	fd    descriptor
	name  string // its name in the directory
	named bool   // it has that name; else it has none
	id    Identity
	now   status // what it was when it was made, then with its metadata
}

// stage writes a new file in the place's directory, without a name where the file system can do
// that, with the metadata that it will have when published. On an error nothing stays behind. It
// MUST be discarded, also when it was published.
func (p *Entry) stage(ctx context.Context, dir int, name string, what *NewObject, made *Staged) (*staged, error) {
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
	made *Staged) error {
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
func (s *staged) copyFrom(ctx context.Context, what *NewObject, made *Staged) error {
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
