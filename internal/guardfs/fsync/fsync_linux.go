package fsync

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Starter starts syncs. The zero value is ready; it is safe for concurrent use. It must not be copied.
type Starter struct {
	mu     sync.Mutex
	idle   []queue
	queues int // that there are, idle or not
	before int // syncs, up to warmUp
	none   bool
	closed bool
}

const (
	// maxQueues bounds what is kept for the next time; the system has a limit for all its processes (fs.aio-max-nr).
	maxQueues = 4
	// warmUp is how many syncs go without a queue: the kernel takes tens of milliseconds to let go of one, at the end of the process too, which is far more
	// than a queue saves those who sync once or twice.
	warmUp = 4
)

// errNone: no queue is free, and none is to be made.
var errNone = errors.New("no queue")

// queue is the kernel's aio_context_t, here of one request at a time.
type queue uintptr

// request is struct iocb; a sync has no more than this. key and flags trade places on big-endian systems, and are 0.
type request struct {
	_    uint64
	_    [2]uint32 // key and flags
	op   uint16
	_    int16
	fd   uint32
	_    [2]uint64 // buffer and its size
	_    int64
	_    uint64
	_, _ uint32
}

// event is struct io_event.
type event struct {
	_, _   uint64
	result int64
	_      int64
}

const opFsync = 2 // IOCB_CMD_FSYNC

// Start starts sync, which puts the file fd on stable storage: by the kernel alone where it does that, else by calling sync in a
// goroutine. wait, which must be called once, waits for it and returns its error; fd must stay open until then.
func (s *Starter) Start(fd int, sync func() error) (wait func() error) {
	q, err := s.take()
	if err != nil { // too few syncs or too many at once, an old kernel, a filter of system calls
		return inGoroutine(sync)
	}
	r := &request{op: opFsync, fd: uint32(fd)}
	list := []*request{r}
	n, _, errno := unix.Syscall(unix.SYS_IO_SUBMIT, uintptr(q), 1, uintptr(unsafe.Pointer(&list[0])))
	runtime.KeepAlive(list) // the kernel has copied it
	if errno != 0 || n != 1 {
		s.give(q) // nothing is under way: the file can't be synced so
		return inGoroutine(sync)
	}
	return func() error { return s.wait(q) }
}

// wait returns the result of the one sync under way in q. Whatever is not certainly a success is an error.
func (s *Starter) wait(q queue) error {
	var e event
	for try := 0; ; try++ {
		n, _, errno := unix.Syscall6(unix.SYS_IO_GETEVENTS, uintptr(q), 1, 1, uintptr(unsafe.Pointer(&e)), 0, 0)
		if errno == 0 && n == 1 {
			break
		}
		if (errno == unix.EINTR || errno == 0) && try < 1000 {
			continue
		}
		if errno == 0 {
			errno = unix.EIO
		}
		s.drop()
		// Whether the sync failed can't be known any more. The number says nothing about the file, so that it goes no further than the text.
		return fmt.Errorf("waiting for a sync: %v", errors.Join(errno, q.close()))
	}
	s.give(q)
	return e.err()
}

func (e *event) err() error {
	if e.result < 0 {
		return unix.Errno(-e.result)
	}
	return nil
}

func (s *Starter) take() (queue, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.idle); n > 0 {
		q := s.idle[n-1]
		s.idle = s.idle[:n-1]
		return q, nil
	}
	if s.before < warmUp {
		s.before++
		return 0, errNone
	}
	if s.none || s.closed || s.queues == maxQueues {
		return 0, errNone
	}
	var q queue
	if _, _, errno := unix.Syscall(unix.SYS_IO_SETUP, 1, uintptr(unsafe.Pointer(&q)), 0); errno != 0 {
		s.none = errno != unix.EAGAIN // too many on this system, for now
		return 0, errno
	}
	// A filter may know one call of the family and not another. It must not be found out when a sync is under way.
	var e event
	var now unix.Timespec
	if _, _, errno := unix.Syscall6(unix.SYS_IO_GETEVENTS, uintptr(q), 0, 1, uintptr(unsafe.Pointer(&e)), uintptr(unsafe.Pointer(&now)), 0); errno != 0 && errno != unix.EINTR {
		s.none = true
		go q.close() //nolint:errcheck // nothing was under way
		return 0, errno
	}
	s.queues++
	return q, nil
}

func (s *Starter) give(q queue) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		s.queues--
		go q.close() //nolint:errcheck // nothing is under way
		return
	}
	s.idle = append(s.idle, q)
}

// drop notes that a queue is gone because waiting failed. There will be no other.
func (s *Starter) drop() {
	s.mu.Lock()
	s.queues, s.none = s.queues-1, true
	s.mu.Unlock()
}

// close waits for what is under way.
func (q queue) close() error {
	if _, _, errno := unix.Syscall(unix.SYS_IO_DESTROY, uintptr(q), 0, 0); errno != 0 {
		return errno
	}
	return nil
}

// Close gives back what Start kept for the next time; the kernel is not waited for. A sync started later goes without the
// kernel's help, and one under way gives its queue back itself.
func (s *Starter) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for _, q := range s.idle {
		go q.close() //nolint:errcheck // nothing is under way
	}
	s.queues -= len(s.idle)
	s.idle = nil
}
