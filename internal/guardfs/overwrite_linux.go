//go:build !rooted

package guardfs

import (
	"io/fs"

	"golang.org/x/sys/unix"
)

// Fixed says why the file at p can't be exchanged for another one, and whether it may be written in place; nil: it can be exchanged, or
// nobody knows. A file with other names is never written in place: they may lie anywhere. An error says that it can't be changed at all.
func (p *Entry) Fixed() (f *FixedError, err error) {
	err = p.at("change", func(dir int) error {
		k := p.fs.kernel
		st, err := k.lstat(dir, p.base)
		in, derr := k.stat(dir)
		if err != nil || derr != nil || st.info.Kind != KindFile {
			return nil // the change meets that
		}
		fixed := &FixedError{Path: p.object.Spelled, Err: unix.EBUSY}
		if st.mount == in.mount {
			fixed.Dir, fixed.Err = p.dir.True, k.calls.Faccessat(dir, ".", unix.W_OK|unix.X_OK)
			if fixed.Err == nil && in.info.Mode&fs.ModeSticky != 0 {
				uid, _, _ := k.calls.User()
				fixed.Sticky = uid != 0 && uid != int(in.info.UID) && uid != int(st.info.UID)
			}
			switch {
			case fixed.Sticky:
				fixed.Err = unix.EPERM
			case fixed.Err == unix.EROFS:
				return fixed.Err
			case fixed.Err != unix.EACCES && fixed.Err != unix.EPERM:
				return nil
			}
		}
		switch err := k.calls.Faccessat(dir, p.base, unix.R_OK|unix.W_OK); err {
		case nil:
			fixed.Writable = st.info.Links == 1
		case unix.EROFS:
			return p.failed("write", err)
		}
		f = fixed
		return nil
	})
	return f, err
}

// Allowed asks the system whether this process may make and remove names in the entry's directory; an error when not. A yes promises nothing: the answer
// only tells early of a change that would fail.
func (p *Entry) Allowed() error {
	return p.nameFailed("change", p.at("change", func(dir int) error {
		switch err := p.fs.kernel.calls.Faccessat(dir, ".", unix.W_OK|unix.X_OK); err {
		case unix.EACCES, unix.EPERM, unix.EROFS:
			return err
		}
		return nil
	}))
}

// Overwrite writes content into the file at p, in place, if was describes that file. It is for a file that can't be exchanged, whose
// content before and after the caller has: an error after begun leaves a mixture of them, in whole blocks. The end is cut off last.
// With content nil it only syncs what is there.
func (p *Entry) Overwrite(was Precondition, content []byte) (pub *Published, begun bool, err error) {
	if err := p.look(Modify); err != nil {
		return nil, false, err
	}
	if err := p.still(); err != nil {
		return nil, false, err
	}
	var now Info
	err = p.at("write", func(dir int) error {
		k := p.fs.kernel
		held, why, err := k.openLike(dir, p.base, was)
		if err != nil {
			return p.failed("compare", err)
		}
		if why != "" {
			return p.conflict(why)
		}
		defer k.close(held) //nolint:errcheck // nothing was written through it
		fd, err := k.reopen(held, unix.O_WRONLY|unix.O_NONBLOCK|unix.O_NOCTTY)
		if err != nil {
			return err
		}
		begun, now, err = p.overwrite(fd, was, content)
		if cerr := k.close(fd); err == nil { // some file systems tell only now
			err = cerr
		}
		return err
	})
	if err != nil {
		return nil, begun, err
	}
	return &Published{Info: now, True: p.object.True}, begun, nil
}

// overwrite is Overwrite of the file behind fd.
func (p *Entry) overwrite(fd int, was Precondition, content []byte) (begun bool, now Info, err error) {
	k := p.fs.kernel
	st, err := k.stat(fd)
	if err != nil {
		return false, now, err
	}
	if was.Like != nil && st.info.Links > max(was.Like.Info.Links, 1) {
		return false, now, p.conflict(NameAdded)
	}
	if content != nil {
		size := st.info.Size
		if more := int64(len(content)) - size; more > 0 {
			if err := k.room(fd, size, more); err != nil {
				return false, now, err
			}
		}
		begun = true
		err = k.writeFull(fd, content)
		if err == nil && size > int64(len(content)) {
			err = k.do("truncate", func() error { return k.calls.Ftruncate(fd, int64(len(content))) })
		}
	}
	if err == nil {
		err = k.fsync(fd)
	}
	if err == nil {
		st, err = k.stat(fd)
	}
	return begun, st.info, err
}
