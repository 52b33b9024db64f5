//go:build !rooted

package guardfs

import (
	"bytes"
	"io"

	"golang.org/x/sys/unix"
)

// append is Append once p is judged. Room for all of tail is asked for first, so that a full disk refuses the first byte.
func (p *Entry) append(own Identity, tail []byte) (a Appended, err error) {
	err = p.occupied("append to", func(_, fd int, st status) (err error) {
		k := p.fs.kernel
		switch {
		case fd < 0:
			return p.conflict(WasRemoved)
		case st.info.ID != own:
			return p.conflict(Replaced)
		}
		n, err := k.reopen(fd, unix.O_RDWR|unix.O_APPEND|unix.O_NONBLOCK|unix.O_NOCTTY)
		if err != nil {
			return err
		}
		defer func() {
			if cerr := k.close(n); err == nil { // some file systems tell only now
				err = cerr
			}
		}()
		if st, err = k.stat(n); err != nil { // what is open now is what counts
			return err
		}
		switch {
		case st.info.ID != own || st.info.Kind != KindFile:
			return p.conflict(Replaced)
		case st.info.Links > 1:
			return p.conflict(NameAdded)
		}
		if len(tail) > 0 {
			if err = k.room(n, st.info.Size, int64(len(tail))); err == nil {
				err = k.appendTo(n, st.info.Size, tail, &a)
			}
		}
		if err == nil {
			err = k.fsync(n)
		}
		if err == nil {
			st, err = k.stat(n)
		}
		a.Info = st.info
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
