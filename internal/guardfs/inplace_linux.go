//go:build !rooted

package guardfs

import (
	"bytes"
	"io"
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

// inPlace opens the very file behind fd with flags and has write change it, which is told what it is. Then it syncs the file, and says what
// it is by then.
func (p *Entry) inPlace(fd, flags int, write func(n int, st *status) error) (now Info, err error) {
	k := p.fs.kernel
	n, err := k.reopen(fd, flags|unix.O_NONBLOCK|unix.O_NOCTTY)
	if err != nil {
		return now, err
	}
	defer func() {
		if cerr := k.close(n); err == nil { // some file systems tell only now
			err = cerr
		}
	}()
	st, err := k.stat(n) // what is open now is what counts
	if err == nil {
		err = write(n, &st)
	}
	if err == nil {
		err = k.fsync(n)
	}
	if err == nil {
		st, err = k.stat(n)
	}
	return st.info, err
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
	pub = &Published{True: p.object.True}
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
		pub.Info, err = p.inPlace(held, unix.O_WRONLY, func(n int, st *status) error {
			size, becomes := st.info.Size, int64(len(content))
			switch {
			case was.Like != nil && st.info.Links > max(was.Like.Info.Links, 1):
				return p.conflict(NameAdded)
			case content == nil:
				return nil
			case becomes > size:
				if err := k.room(n, size, becomes-size); err != nil {
					return err
				}
			}
			begun = true
			err := k.writeFull(n, content)
			if err == nil && size > becomes {
				err = k.do("truncate", func() error { return k.calls.Ftruncate(n, becomes) })
			}
			return err
		})
		return err
	})
	if err != nil {
		return nil, begun, err
	}
	return pub, begun, nil
}

// append is Append once p is judged. Room for all of tail is asked for first, so that a full disk refuses the first byte.
func (p *Entry) append(own Identity, tail []byte) (a Appended, err error) {
	err = p.occupied("append to", func(_, fd int, st status) (err error) {
		switch {
		case fd < 0:
			return p.conflict(WasRemoved)
		case st.info.ID != own:
			return p.conflict(Replaced)
		}
		a.Info, err = p.inPlace(fd, unix.O_RDWR|unix.O_APPEND, func(n int, st *status) error {
			switch {
			case st.info.ID != own || st.info.Kind != KindFile:
				return p.conflict(Replaced)
			case st.info.Links > 1:
				return p.conflict(NameAdded)
			case len(tail) == 0:
				return nil
			}
			if err := p.fs.kernel.room(n, st.info.Size, int64(len(tail))); err != nil {
				return err
			}
			return p.fs.kernel.appendTo(n, st.info.Size, tail, &a)
		})
		return err
	})
	return a, err
}

// room has the file system keep n bytes free for what comes after size. Not every one can.
func (k *kernel) room(fd int, size, n int64) error {
	err := k.do("fallocate", func() error {
		return k.calls.Fallocate(fd, unix.FALLOC_FL_KEEP_SIZE, size, n)
	})
	switch err {
	case unix.ENOSPC, unix.EDQUOT, unix.EFBIG, unix.EIO, unix.EROFS:
		return err
	}
	return nil
}

// appendTo writes tail to the end of the file, by one call as a rule, which no other writer who
// appends can tear. It looks whether the bytes are where the system says that it put them.
func (k *kernel) appendTo(fd int, size int64, tail []byte, a *Appended) error {
	for a.Bytes < len(tail) {
		n, err := k.write(fd, tail[a.Bytes:])
		if err == nil && n == 0 {
			err = unix.EIO
		}
		if err != nil {
			return err
		}
		end, err := k.calls.Seek(fd, 0, io.SeekCurrent)
		at := end - int64(n)
		switch {
		case err != nil:
			return err
		case a.Bytes == 0:
			a.At = at
		case at != a.At+int64(a.Bytes): // somebody came in between
			a.Bytes += n
			return unix.EIO
		}
		a.Bytes += n
	}
	there := make([]byte, len(tail))
	n, err := k.preadFull(fd, there, a.At)
	if err == nil && a.At >= size && bytes.Equal(there[:n], tail) {
		return nil
	}
	if err == nil || err == io.EOF { // somebody has written over it already
		err = unix.EIO
	}
	return err
}

// Writers asks whether another program has the file there open for writing, or mapped. known is false where the system does not tell: on
// file systems without leases, and of somebody else's file.
func (p *Entry) Writers() (open, known bool) {
	err := p.occupied("open", func(_, fd int, st status) error {
		k := p.fs.kernel
		if fd < 0 || st.info.Kind != KindFile {
			return nil
		}
		n, err := k.reopen(fd, ReadFlags)
		if err != nil {
			return err
		}
		defer k.close(n) //nolint:errcheck // nothing was written through it
		if err = k.calls.Lease(n); err == unix.EAGAIN {
			open, err = true, nil
		}
		return err
	})
	return open, err == nil
}
