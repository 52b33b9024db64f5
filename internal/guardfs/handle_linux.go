//go:build !rooted

package guardfs

import (
	"io"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// open makes d the owner of fd.
func (d *descriptor) open(fd int, calls Calls) { d.fd, d.owner = fd, calls }

// Handle holds one object: neither a rename nor a swap makes it another one. It does not read.
type Handle struct {
	fs     *FS
	fd     descriptor // O_PATH
	object Object
	mount  uint64
	access Access // that the Judge allowed
}

// handle takes over what t came to.
func (f *FS) handle(t *trail, a Access) *Handle {
	h := &Handle{fs: f, object: t.object, mount: t.st.mount, access: a}
	h.fd.open(t.fd, f.kernel.calls)
	t.fd = -1
	return h
}

// Close gives the handle back.
func (h *Handle) Close() error { return h.fd.close() }

// open is Handle.Open of what may be read.
func (h *Handle) open() (*File, error) {
	fd, err := h.fd.use()
	if err != nil {
		return nil, err
	}
	defer h.fd.done() //nolint:errcheck // Close reports it
	k := h.fs.kernel
	if h.object.Info.Kind != KindFile {
		return nil, &NotRegularError{Path: h.object.Spelled, Kind: h.object.Info.word()}
	}
	n, err := k.reopen(fd, ReadFlags)
	if err != nil {
		return nil, err
	}
	return newFile(k, n, h.object.Spelled)
}

// ReadFlags are the flags of a file that is opened to be read. They never block: not on a fifo, not on a
// lease, and no terminal becomes ours.
const ReadFlags = unix.O_RDONLY | unix.O_NONBLOCK | unix.O_NOCTTY

// openDir is Handle.Dir of a directory that may be listed.
func (h *Handle) openDir() (*Dir, error) {
	fd, err := h.fd.use()
	if err != nil {
		return nil, err
	}
	defer h.fd.done() //nolint:errcheck // Close reports it
	if fd, err = h.fs.kernel.reopenDir(fd); err != nil {
		return nil, err
	}
	return newDir(h.fs, fd, h.object.True, status{info: h.object.Info, mount: h.mount})
}

// reopenDir opens the directory behind fd for listing, or, where it may only be passed through, for passing through.
func (k *kernel) reopenDir(fd int) (int, error) {
	n, err := k.reopen(fd, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NONBLOCK)
	if err == unix.EACCES {
		n, err = k.openat(fd, ".", unix.O_PATH|unix.O_DIRECTORY, 0)
	}
	return n, err
}

// File is a regular file open for reading. It is a bare descriptor: no buffer, no runtime poller.
type File struct {
	kernel *kernel
	fd     descriptor
	dir    string // with name, for errors; dir is "" when name is the whole
	name   string
	info   Info
	pos    atomic.Int64 // of the next Read
}

// newFile takes over fd, or closes it when it is not a regular file.
func newFile(k *kernel, fd int, name string) (*File, error) {
	st, err := k.stat(fd)
	if err == nil && st.info.Kind != KindFile {
		err = &NotRegularError{Path: name, Kind: st.info.word()}
		k.close(fd)
		return nil, err
	}
	if err != nil {
		k.close(fd)
		return nil, &PathError{Op: "stat", Path: name, Err: err}
	}
	f := &File{kernel: k, name: name, info: st.info}
	f.fd.open(fd, k.calls)
	return f, nil
}

// Stat looks at the file now.
func (f *File) Stat() (Info, error) {
	fd, err := f.fd.use()
	if err != nil {
		return Info{}, f.failed("stat", err)
	}
	defer f.fd.done() //nolint:errcheck // Close reports it
	st, err := f.kernel.stat(fd)
	if err != nil {
		return Info{}, f.failed("stat", err)
	}
	return st.info, nil
}

// Read reads on from where the last Read ended. At the end it answers io.EOF.
func (f *File) Read(p []byte) (int, error) {
	fd, err := f.fd.use()
	if err != nil {
		return 0, f.failed("read", err)
	}
	defer f.fd.done() //nolint:errcheck // Close reports it
	n, err := f.kernel.pread(fd, p, f.pos.Load())
	f.pos.Add(int64(max(n, 0)))
	switch {
	case err != nil:
		return 0, f.failed("read", err)
	case n == 0 && len(p) > 0:
		return 0, io.EOF
	}
	return n, nil
}

// ReadAt fills p from byte off on. Less than len(p) comes with io.EOF.
func (f *File) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 {
		return 0, f.failed("read", unix.EINVAL)
	}
	fd, err := f.fd.use()
	if err != nil {
		return 0, f.failed("read", err)
	}
	defer f.fd.done() //nolint:errcheck // Close reports it
	n, err := f.kernel.preadFull(fd, p, off)
	if err != nil && err != io.EOF {
		err = f.failed("read", err)
	}
	return n, err
}

// preadFull fills p; a file that ends before is io.EOF.
func (k *kernel) preadFull(fd int, p []byte, off int64) (n int, err error) {
	for n < len(p) {
		m, err := k.pread(fd, p[n:], off+int64(n))
		if err != nil {
			return n, err
		}
		if m == 0 {
			return n, io.EOF
		}
		n += m
	}
	return n, nil
}

// Close gives the file back.
func (f *File) Close() error { return f.fd.close() }

func (f *File) path() string {
	if f.dir == "" {
		return f.name
	}
	return join(f.dir, f.name)
}

// Steady says that any change of the file after this call moves its change time: nobody has it
// open for writing, and on its file system a first store through a memory mapping counts as a
// change. It asks for a lease, which the kernel gives where nobody writes, and gives it back at
// once. false where that can't be told, as of somebody else's file.
func (f *File) Steady() bool {
	fd, err := f.fd.use()
	if err != nil {
		return false
	}
	defer f.fd.done() //nolint:errcheck // Close reports it
	calls := f.kernel.calls
	magic, err := calls.Magic(fd)
	if err != nil {
		return false
	}
	switch magic {
	case 0xef53, 0x58465342, 0x9123683e, 0xf2f52010: // ext2 to ext4, xfs, btrfs, f2fs; not tmpfs
	default:
		return false
	}
	return calls.Lease(fd) == nil
}
