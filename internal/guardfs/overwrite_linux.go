//go:build !rooted

package guardfs

import (
	"io/fs"

	"golang.org/x/sys/unix"
)

// Fixed says why the file at p can't be exchanged for another one, and whether it may be written in place; nil: it can be exchanged, or
// nobody knows. A file with other names is never written in place: they may lie anywhere. An error says that it can't be changed at all.
func (p *Entry) Fixed() (*FixedError, error) {
	dir, err := p.fd.use()
	if err != nil {
		return nil, p.failed("change", err)
	}
	defer p.fd.done() //nolint:errcheck // Close reports it
	k := p.fs.kernel
	st, err := k.lstat(dir, p.base)
	in, derr := k.stat(dir)
	if err != nil || derr != nil || st.info.Kind != KindFile {
		return nil, nil // whoever changes it meets that
	}
	f := &FixedError{Path: p.object.Spelled, Err: unix.EBUSY}
	if st.mount == in.mount {
		f.Dir, f.Err = p.dir.True, k.calls.Faccessat(dir, ".", unix.W_OK|unix.X_OK)
		if f.Err == nil && in.info.Mode&fs.ModeSticky != 0 {
			uid, _, _ := k.calls.User()
			f.Sticky = uid != 0 && uid != int(in.info.UID) && uid != int(st.info.UID)
		}
		switch {
		case f.Sticky:
			f.Err = unix.EPERM
		case f.Err == unix.EROFS:
			return nil, p.failed("change", f.Err)
		case f.Err != unix.EACCES && f.Err != unix.EPERM:
			return nil, nil
		}
	}
	switch err := k.calls.Faccessat(dir, p.base, unix.R_OK|unix.W_OK); err {
	case nil:
		f.Writable = st.info.Links == 1
	case unix.EROFS:
		return nil, p.failed("write", err)
	}
	return f, nil
}

// Allowed asks the system whether this process may make and remove names in the place's directory; an error when not. That it may promises
// nothing, it only tells early what would fail.
func (p *Entry) Allowed() error {
	dir, err := p.fd.use()
	if err != nil {
		return p.failed("change", err)
	}
	defer p.fd.done() //nolint:errcheck // Close reports it
	switch err := p.fs.kernel.calls.Faccessat(dir, ".", unix.W_OK|unix.X_OK); err {
	case unix.EACCES, unix.EPERM, unix.EROFS:
		return p.nameFailed("change", err)
	}
	return nil
}

// Overwrite writes content into the file at p, in place, if that is what was describes. It is for a file that can't be exchanged, whose
// content before and after the caller has: an error after begun leaves a mixture of them, in whole blocks. The end is cut off last.
// With content nil it only syncs what is there.
func (p *Entry) Overwrite(was Precondition, content []byte) (pub *Published, begun bool, err error) {
	dir, err := p.fd.use()
	if err != nil {
		return nil, false, p.failed("write", err)
	}
	defer p.fd.done() //nolint:errcheck // Close reports it
	if err := p.look(Modify); err != nil {
		return nil, false, err
	}
	if err := p.still(); err != nil {
		return nil, false, err
	}
	k := p.fs.kernel
	held, why, err := k.hold(dir, p.base, was)
	if err != nil {
		return nil, false, p.failed("compare", err)
	}
	if why != "" {
		return nil, false, p.conflict(why)
	}
	defer k.close(held) //nolint:errcheck // nothing was written through it
	fd, err := k.reopen(held, unix.O_WRONLY|unix.O_NONBLOCK|unix.O_NOCTTY)
	if err != nil {
		return nil, false, p.failed("write", err)
	}
	defer func() {
		if cerr := k.close(fd); err == nil && cerr != nil { // some file systems tell only now
			pub, err = nil, p.failed("write", cerr)
		}
	}()
	st, err := k.stat(fd)
	switch {
	case err != nil:
		return nil, false, p.failed("stat", err)
	case was.Like != nil && st.info.Links > max(was.Like.Info.Links, 1):
		return nil, false, p.conflict(NameAdded)
	}
	if content != nil {
		if more := int64(len(content)) - st.info.Size; more > 0 {
			if err := k.room(fd, st.info.Size, more); err != nil {
				return nil, false, p.failed("write", err)
			}
		}
		begun = true
		if err := k.writeOver(fd, content, st.info.Size); err != nil {
			return nil, true, p.failed("write", err)
		}
	}
	if err = k.fsync(fd); err == nil {
		st, err = k.stat(fd)
	}
	if err != nil {
		return nil, begun, p.failed("sync", err)
	}
	return &Published{Info: st.info, True: p.object.True}, begun, nil
}

// writeOver writes content from the beginning of a file of so many bytes, and cuts off what is behind it.
func (k *kernel) writeOver(fd int, content []byte, size int64) error {
	for rest := content; len(rest) > 0; {
		n, err := k.write(fd, rest[:min(len(rest), batch)])
		if err == nil && n == 0 {
			err = unix.EIO
		}
		if err != nil {
			return err
		}
		rest = rest[n:]
	}
	if size <= int64(len(content)) {
		return nil
	}
	return k.do("truncate", func() error { return k.calls.Ftruncate(fd, int64(len(content))) })
}
