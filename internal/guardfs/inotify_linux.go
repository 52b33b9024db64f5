//go:build !rooted

package guardfs

import (
	"cmp"
	"context"
	"io/fs"
	"os"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// inotify is a queue of this machine's kernel.
type inotify struct {
	fd descriptor

	waits sync.Mutex
	ready *os.File // the same queue, to wait for it
}

func (l *local) Inotify() (Inotify, error) {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil, err
	}
	again, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		unix.Close(fd) //nolint:errcheck // nothing was written through it
		return nil, err
	}
	q := &inotify{ready: os.NewFile(uintptr(again), "inotify")}
	q.fd.open(fd, l)
	return q, nil
}

func (q *inotify) Add(dir int, mask uint32) (int, error) {
	fd, err := q.fd.use()
	if err != nil {
		return 0, err
	}
	defer q.fd.done() //nolint:errcheck // Close reports it
	return unix.InotifyAddWatch(fd, "/proc/self/fd/"+strconv.Itoa(dir), mask)
}

func (q *inotify) Remove(id int) error {
	fd, err := q.fd.use()
	if err != nil {
		return err
	}
	defer q.fd.done() //nolint:errcheck // Close reports it
	_, err = unix.InotifyRmWatch(fd, uint32(id))
	return err
}

func (q *inotify) Read(p []byte) (int, error) {
	fd, err := q.fd.use()
	if err != nil {
		return 0, err
	}
	defer q.fd.done() //nolint:errcheck // Close reports it
	return unix.Read(fd, p)
}

func (q *inotify) Close() error {
	q.ready.Close() //nolint:errcheck // the other descriptor tells
	return q.fd.close()
}

// Wait waits for one caller at a time, and takes no thread for it.
func (q *inotify) Wait(ctx context.Context) error {
	q.waits.Lock()
	defer q.waits.Unlock()
	if err := q.ready.SetReadDeadline(time.Time{}); err != nil {
		return cmp.Or(ctx.Err(), fs.ErrClosed)
	}
	conn, err := q.ready.SyscallConn()
	if err != nil {
		return cmp.Or(ctx.Err(), err)
	}
	ended := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		q.ready.SetReadDeadline(time.Unix(1, 0)) //nolint:errcheck // it is closed, and Read says so
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
