//go:build !rooted

package guardfs

import (
	"context"
	"errors"
	"io"
	"io/fs"

	"golang.org/x/sys/unix"
)

// temp is the state of an entry that is a temporary name.
type temp struct {
	beside string      // the true name of the entry that it is for, about which the Judge was asked
	made   *Info       // the object that Stage left there, as it was left; nil: none, or another process staged it
	file   *stagedFile // the new file while it is open, else nil
}

// stagedFile is a file that is being written, or is complete and waits to be published.
type stagedFile struct {
	fd    descriptor
	named bool // it has the temporary name; else it has none
	id    Identity
	now   status // what it was when it was made, then with its metadata
}

// beside is the entry of a temporary name in the directory of p, which it shares.
func (p *Entry) beside(name string) (*Entry, error) {
	if _, err := p.fd.use(); err != nil {
		return nil, err
	}
	defer p.fd.done() //nolint:errcheck // Close reports it
	o := Object{Spelled: p.object.Spelled, True: join(p.dir.True, name)}
	t := &Entry{fs: p.fs, pin: p.pin, dir: p.dir, base: name, object: o, links: true, temp: &temp{beside: p.object.True}}
	p.fs.pins.share(&t.fd, p.pin)
	return t, nil
}

// Stage makes what is asked for, complete with its metadata, in the directory of p under the name base, which is a temporary one or,
// in a directory that is staged itself, the one of p. Nothing is judged: p was. On an error nothing stays behind.
func (p *Entry) Stage(ctx context.Context, base string, what NewObject) (*Entry, *Staged, error) {
	if (what.Kind == KindFile && !what.Open) || what.Kind == KindDir || what.Kind == KindSymlink {
		if err := p.fs.journal.give(p.object.True, base); err != nil {
			return nil, nil, err
		}
	}
	t, err := p.beside(base)
	if err != nil {
		return nil, nil, p.failed("stage", err)
	}
	made := &Staged{}
	switch what.Kind {
	case KindAbsent:
		if made.Info, err = t.lstat(); errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
	case KindFile:
		err = t.stageFile(ctx, &what, made)
	case KindDir:
		err = t.stageDir(&what, made)
	case KindSymlink:
		err = t.stageLink(&what, made)
	default:
		err = unix.EINVAL
	}
	if err != nil {
		t.Close() //nolint:errcheck // the first error is the one that counts
		return nil, nil, p.nameFailed("stage", err)
	}
	if what.Kind != KindAbsent {
		t.temp.made = &made.Info
	}
	return t, made, nil
}

// stageFile writes a new file, without a name where the file system can do that, with the metadata that it will have when it is
// published. It gets its name and is closed, but for NewObject.Open.
func (p *Entry) stageFile(ctx context.Context, what *NewObject, made *Staged) (err error) {
	k := p.fs.kernel
	meta := what.metadata()
	mode := uint32(0o666) // the umask, or the directory's default ACL, makes of it what a new file has
	if what.Mode != 0 {
		mode = bitsOf(what.Mode)
	}
	if meta != nil {
		mode = 0o600 // nobody looks in before the right mode is set
	}
	if err := p.create(mode); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			p.discard() //nolint:errcheck // the first error is the one that counts
		}
	}()
	f := p.temp.file
	fd := f.fd.fd
	if meta == nil {
		made.Meta, err = k.fresh(fd)
	}
	if err == nil {
		err = p.fill(ctx, what, meta, made)
	}
	if err == nil && !what.Open {
		err = p.giveName()
	}
	var st status
	if err == nil {
		st, err = k.stat(fd) // after its name, which moved its time
	}
	if err != nil {
		return err
	}
	if made.Info = st.info; what.Open {
		return nil
	}
	if what.Sync && st.info.Mode&0o400 == 0 { // its owner may not open it again
		if err := k.fsync(fd); err != nil {
			return err
		}
	}
	if err := f.fd.close(); err != nil { // some file systems tell only now that they could not write
		return err
	}
	p.temp.file = nil
	return nil
}

// create makes the file: nameless, or where that is not supported with its name.
func (p *Entry) create(mode uint32) error {
	return p.at("stage", func(dir int) error {
		k, f := p.fs.kernel, &stagedFile{}
		fd, err := k.openat(dir, ".", unix.O_TMPFILE|unix.O_RDWR, mode)
		switch err {
		case unix.EOPNOTSUPP, unix.EISDIR, unix.EINVAL, unix.ENOENT, unix.ENOSYS, unix.EPERM:
			if err = p.fs.journal.give(p.temp.beside, p.base); err == nil {
				fd, err = k.openat(dir, p.base, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW, mode)
				f.named = err == nil
			}
		}
		if err != nil {
			return err
		}
		if f.now, err = k.stat(fd); err != nil {
			k.close(fd) //nolint:errcheck // nothing was written through it
			if f.named {
				k.unlink(dir, p.base, 0) //nolint:errcheck // the first error is the one that counts
			}
			return err
		}
		f.id = f.now.info.ID
		f.fd.open(fd, k.calls)
		p.temp.file = f
		return nil
	})
}

// fresh is the metadata that the system gave a new object: the umask and the directory's default ACL and group have a say.
func (k *kernel) fresh(fd int) (m Metadata, err error) {
	st, err := k.stat(fd)
	if err == nil {
		m = Metadata{Mode: st.info.Mode, UID: st.info.UID, GID: st.info.GID}
		m.Xattrs, err = k.xattrs(fd)
	}
	return m, err
}

// fill writes the content of the new file, from memory or from another file, and its metadata.
func (p *Entry) fill(ctx context.Context, what *NewObject, meta *Metadata, made *Staged) (err error) {
	k, f := p.fs.kernel, p.temp.file
	fd := f.fd.fd
	if what.Source != nil {
		if err = k.room(fd, 0, what.Size); err == nil {
			made.Hash, err = stream(ctx, what.Source, what.Size, func(b []byte) error { return k.writeFull(fd, b) })
		}
		if err == nil {
			err = what.copied()
		}
		if err == io.EOF {
			err = &ConflictError{Path: what.Source.path(), Why: ContentChanged}
		}
	} else {
		const chunk = 4 << 20 // between two looks at ctx
		for content := what.Content; len(content) > 0 && err == nil; {
			n := min(len(content), chunk)
			if err = ctx.Err(); err == nil {
				err = k.writeFull(fd, content[:n])
			}
			content = content[n:]
		}
	}
	if err == nil && meta != nil {
		made.Dropped, err = k.carry(fd, &f.now, meta)
	}
	if err == nil && what.Meta != nil {
		if terr := k.setTimes(fd, what.Meta); !unkept(terr) {
			err = terr
		}
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

// giveName gives the new file its temporary name, if it has none.
func (p *Entry) giveName() error {
	f := p.temp.file
	if f.named {
		return nil
	}
	return p.at("stage", func(dir int) error {
		k := p.fs.kernel
		err := k.publish(f.fd.fd, dir, p.base)
		if err != nil { // remote file systems report failures of calls that took effect
			if st, lerr := k.lstat(dir, p.base); lerr == nil && st.info.ID == f.id {
				err = nil
			}
		}
		f.named = err == nil
		return err
	})
}

// discard forgets the new file, and its temporary name if it still is its own. One that was published it only closes. It may be
// called more than once.
func (p *Entry) discard() (err error) {
	f := p.temp.file
	if f.named {
		err = p.at("discard", func(dir int) error { return p.fs.kernel.removeOwn(dir, p.base, f.id) })
		f.named = err != nil
	}
	if cerr := f.fd.close(); err == nil {
		err = p.failed("discard", cerr)
	}
	return err
}

// stageDir makes a new directory, which is complete but for its mode: see FinishDir.
func (p *Entry) stageDir(what *NewObject, made *Staged) error {
	return p.at("stage", func(dir int) error {
		k, meta := p.fs.kernel, what.metadata()
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
		switch {
		case err != nil:
		case meta != nil:
			made.Dropped, err = k.carryDir(fd, *meta)
		default:
			made.Meta, err = k.fresh(fd)
		}
		var st status
		if err == nil {
			st, err = k.stat(fd)
		}
		if err != nil {
			k.unlink(dir, p.base, unix.AT_REMOVEDIR) //nolint:errcheck // the first error is the one that counts
			return err
		}
		made.Info = st.info
		return nil
	})
}

// stageLink makes a new symbolic link.
func (p *Entry) stageLink(what *NewObject, made *Staged) error {
	target := string(what.Content)
	if target == "" || len(target) > MaxPath {
		return &BadPathError{Path: target, Why: "not the text of a link"}
	}
	return p.at("stage", func(dir int) error {
		k := p.fs.kernel
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
			text, terr := k.target(fd, "")
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
	})
}

// FinishDir notes what the staged directory at p is once all is in it, and gives it the mode that it is to have.
func (p *Entry) FinishDir(made *Staged, mode fs.FileMode) error {
	return p.occupied("set mode of", func(_, fd int, st status) (err error) {
		k := p.fs.kernel
		if fd < 0 || st.info.ID != made.Info.ID {
			return p.conflict(Replaced)
		}
		if st.info.Mode != mode {
			if err = k.chmod(fd, mode); err == nil {
				st, err = k.stat(fd)
			}
		}
		if err == nil {
			made.Info = st.info
		}
		return err
	})
}

// Sync puts the content of the new file at a temporary name on stable storage.
func (p *Entry) Sync() error {
	made, k := p.staged(), p.fs.kernel
	if made == nil || made.Kind != KindFile {
		return nil
	}
	if f := p.temp.file; f != nil {
		fd, err := f.fd.use()
		if err == nil {
			defer f.fd.done() //nolint:errcheck // Close reports it
			err = k.fsync(fd)
		}
		return p.failed("sync", err)
	}
	if made.Mode&0o400 == 0 { // Stage did
		return nil
	}
	return p.at("sync", func(dir int) error {
		fd, err := k.openat(dir, p.base, ReadFlags|unix.O_NOFOLLOW, 0)
		if err != nil {
			return err
		}
		defer k.close(fd) //nolint:errcheck // nothing was written through it
		if st, err := k.stat(fd); err != nil || st.info.ID != made.ID {
			return p.conflict(TempSwapped)
		}
		return k.fsync(fd)
	})
}

// drop removes the thing own.
func (p *Entry) drop(own Precondition) error {
	return p.at("drop", func(dir int) error { return p.fs.kernel.removeOwn(dir, p.base, own.ID) })
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
