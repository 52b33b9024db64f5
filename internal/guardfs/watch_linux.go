//go:build !rooted

package guardfs

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Watcher tells what changed in directories, by inotify. The kernel queues an event before the call that caused it
// returns: whatever was changed before Events is called is among what it gives.
//
// Not reported are stores through a memory mapping, changes made through a hard link that lies in a directory which is not
// watched, and what happens behind a file system's back (on a server, in a lower layer). Watch refuses file systems where
// that is the rule. A Watcher is safe for concurrent use.
type Watcher struct {
	mu    sync.Mutex
	kern  *kernel
	queue Inotify
	buf   []byte
}

// watched are the changes that alter a listing or the content or the metadata of an entry.
const watched = unix.IN_CREATE | unix.IN_DELETE | unix.IN_MODIFY | unix.IN_CLOSE_WRITE | unix.IN_ATTRIB | unix.IN_MOVED_FROM | unix.IN_MOVED_TO |
	unix.IN_DELETE_SELF | unix.IN_MOVE_SELF | unix.IN_ONLYDIR | unix.IN_EXCL_UNLINK

// NewWatcher gives a watcher of nothing. The number of them is limited by the system, to 128 a user as a rule.
func (f *FS) NewWatcher() (*Watcher, error) {
	queue, err := f.kernel.calls.Inotify()
	if err != nil {
		return nil, &PathError{Op: "watch", Path: "/", Err: err}
	}
	return &Watcher{kern: f.kernel, queue: queue, buf: make([]byte, 64<<10)}, nil
}

// Close gives the watcher back, with all watches.
func (w *Watcher) Close() error { return w.queue.Close() }

// Watch begins to watch the entries of d, by its handle. A directory that is watched already keeps its number.
// The error is ErrUnwatchable for file systems whose changes the kernel may not see; ENOSPC when the system's limit is reached.
func (w *Watcher) Watch(d *Dir) (id int, err error) {
	dir, err := d.fd.use()
	if err != nil {
		return 0, &PathError{Op: "watch", Path: d.name, Err: err}
	}
	defer d.fd.done() //nolint:errcheck // Close reports it
	var magic uint32
	if magic, err = w.kern.calls.Magic(dir); err == nil && !Local(magic) {
		err = ErrUnwatchable
	}
	if err == nil {
		id, err = w.queue.Add(dir, watched)
	}
	if err != nil {
		return 0, &PathError{Op: "watch", Path: d.name, Err: err}
	}
	return id, nil
}

// Local: file systems on which every change passes this kernel, and no call waits for a server or
// another process. From linux/magic.h.
func Local(magic uint32) bool {
	switch magic {
	case 0xef53, // ext2, ext3, ext4
		0x58465342, // xfs
		0x9123683e, // btrfs
		0x01021994, // tmpfs
		0x794c7630, // overlayfs
		0xf2f52010, // f2fs
		0x2fc12fc1, // zfs
		0xca451a4e: // bcachefs
		return true
	}
	return false
}

// Unwatch ends a watch. Events of it that are queued still come.
func (w *Watcher) Unwatch(id int) {
	w.queue.Remove(id) //nolint:errcheck // it is gone when the directory is
}

// Events calls fn for all that is queued, without waiting. An Event with Lost set says that some were dropped: nothing is
// known any more.
func (w *Watcher) Events(fn func(Event)) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for {
		n, err := w.queue.Read(w.buf)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.EAGAIN):
			return nil
		case err != nil:
			return &PathError{Op: "watch", Path: "/", Err: err}
		}
		if !parseEvents(w.buf[:n], fn) {
			return &PathError{Op: "watch", Path: "/", Err: fs.ErrInvalid}
		}
	}
}

// Wait returns when there is something to tell, or ctx ends.
func (w *Watcher) Wait(ctx context.Context) error {
	if err := w.queue.Wait(ctx); err != nil {
		return &PathError{Op: "watch", Path: "/", Err: err}
	}
	return nil
}

func happening(mask uint32) Happening {
	switch {
	case mask&unix.IN_CREATE != 0:
		return Created
	case mask&unix.IN_DELETE != 0:
		return Removed
	case mask&unix.IN_MOVED_FROM != 0:
		return MovedFrom
	case mask&unix.IN_MOVED_TO != 0:
		return MovedTo
	}
	return Modified
}

// parseEvents reads struct inotify_event: watch 4, mask 4, cookie 4, length 4, then a name up to a NUL.
func parseEvents(b []byte, fn func(Event)) bool {
	const header = 16
	for len(b) > 0 {
		if len(b) < header {
			return false
		}
		mask := binary.NativeEndian.Uint32(b[4:])
		n := header + int(binary.NativeEndian.Uint32(b[12:]))
		if n > len(b) {
			return false
		}
		name, _, _ := bytes.Cut(b[header:n], []byte{0})
		fn(Event{
			What: happening(mask), Cookie: binary.NativeEndian.Uint32(b[8:]), Dir: mask&unix.IN_ISDIR != 0,
			Ended: mask&unix.IN_IGNORED != 0,
			Watch: int(int32(binary.NativeEndian.Uint32(b))), Name: string(name),
			Lost: mask&unix.IN_Q_OVERFLOW != 0,
		})
		b = b[n:]
	}
	return true
}

// inotify is a queue of this machine's kernel.
type inotify struct {
	file  *os.File
	waits sync.Mutex
}

func (*local) Inotify() (Inotify, error) {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil, err
	}
	return &inotify{file: os.NewFile(uintptr(fd), "inotify")}, nil
}

// do makes a call on the queue, which may be closed meanwhile.
func (q *inotify) do(call func(fd int) (int, error)) (n int, err error) {
	conn, cerr := q.file.SyscallConn()
	if cerr == nil {
		cerr = conn.Control(func(fd uintptr) { n, err = call(int(fd)) })
	}
	if cerr != nil {
		return 0, fs.ErrClosed
	}
	return n, err
}

func (q *inotify) Add(dir int, mask uint32) (int, error) {
	return q.do(func(fd int) (int, error) {
		return unix.InotifyAddWatch(fd, "/proc/self/fd/"+strconv.Itoa(dir), mask)
	})
}

func (q *inotify) Remove(id int) error {
	_, err := q.do(func(fd int) (int, error) { return unix.InotifyRmWatch(fd, uint32(id)) })
	return err
}

func (q *inotify) Read(p []byte) (int, error) {
	return q.do(func(fd int) (int, error) { return unix.Read(fd, p) })
}

func (q *inotify) Close() error {
	err := q.file.Close()
	if errors.Is(err, fs.ErrClosed) {
		err = nil
	}
	return err
}

// Wait waits for one caller at a time, and takes no thread for it.
func (q *inotify) Wait(ctx context.Context) error {
	q.waits.Lock()
	defer q.waits.Unlock()
	if err := q.file.SetReadDeadline(time.Time{}); err != nil {
		return cmp.Or(ctx.Err(), fs.ErrClosed)
	}
	conn, err := q.file.SyscallConn()
	if err != nil {
		return cmp.Or(ctx.Err(), err)
	}
	ended := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		q.file.SetReadDeadline(time.Unix(1, 0)) //nolint:errcheck // it is closed, and Read says so
		close(ended)
	})
	err = conn.Read(func(fd uintptr) bool {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
		return n > 0 || err != nil && err != unix.EINTR
	})
	if !stop() {
		<-ended
	}
	if err != nil {
		return cmp.Or(ctx.Err(), fs.ErrClosed)
	}
	return nil
}
