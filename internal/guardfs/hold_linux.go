//go:build !rooted

package guardfs

import (
	"context"
	"errors"
	"io/fs"

	"golang.org/x/sys/unix"
)

// hold is what a place has that is a temporary name.
type hold struct {
	staged *staged // the new file, while it is open
	left   *Info   // what stat said of the new thing when it was left there
}

// left is what stat said of the new thing when it was left there; nil when there is none.
func (p *Place) left() *Info {
	if p.hold == nil {
		return nil
	}
	return p.hold.left
}

// Hold makes what is asked for, complete with its metadata, in the directory of p under the name base, which is a temporary one or,
// in a directory that is staged itself, the one of p. Nothing is judged: p was. On an error nothing stays behind.
func (p *Place) Hold(ctx context.Context, base string, what NewObject) (*Place, *Made, error) {
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
	k, made := p.fs.kernel, &Made{}
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
		return nil, nil, p.failed("stage", err)
	}
	if what.Kind != KindAbsent {
		h.hold.left = &made.Info
	}
	return h, made, nil
}

// beside is the place of a name in the directory of p, which it shares.
func (p *Place) beside(name string) (*Place, error) {
	if _, err := p.fd.use(); err != nil {
		return nil, err
	}
	defer p.fd.done() //nolint:errcheck // Close reports it
	o := Object{Spelled: p.object.Spelled, True: join(p.dir.True, name)}
	h := &Place{fs: p.fs, pin: p.pin, dir: p.dir, base: name, object: o, links: true, hold: &hold{}}
	p.fs.pins.share(&h.fd, p.pin)
	return h, nil
}

func (p *Place) file(ctx context.Context, of *Place, dir int, what *NewObject, made *Made) error {
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

func (p *Place) directory(dir int, what *NewObject, made *Made) error {
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

func (p *Place) link(dir int, what *NewObject, made *Made) error {
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

// Filled notes what the staged directory at p is once all is in it, and gives it the mode that it is to have.
func (p *Place) Filled(made *Made, mode fs.FileMode) error {
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
func (p *Place) Keep() (left string, err error) {
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
func (p *Place) Empty() (empty bool, err error) {
	err = p.withDir("list", func(fd int) error {
		empty, err = p.fs.kernel.empty(fd)
		return err
	})
	return empty, err
}

// Sync puts the content of the new file of a hold on stable storage.
func (p *Place) Sync() error {
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

func (p *Place) syncClosed() error {
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
func (p *Place) Drop(own Expect) error {
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
		return p.failed("drop", err)
	}
	return nil
}
