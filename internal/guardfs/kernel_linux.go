//go:build !rooted

package guardfs

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// kernel is the system as this package sees it: the calls, each retried when interrupted. All system calls of the
// package on the agent's tree go through it.
type kernel struct {
	calls Calls
	proc  descriptor // what local calls have of /proc; when it is closed no handle can be named
	walk  bool
	// noStatx: old container runtimes filter statx. It is found out once: identities from it and from fstat differ.
	noStatx bool
	// hook, when set, runs before every call; tests use it to change the tree between any two calls and to
	// make the N-th call fail. Nil in production.
	hook    func(op string) *Fault
	batches sync.Pool // of *[batch]byte, for List
	table   mountTable
}

const (
	procMagic = 0x9fa0
	procRoot  = 1 // inode number of the root of every procfs
	// retries bounds what is done again after EINTR or EAGAIN, so that no signal storm holds a call for ever.
	retries = 128
)

// openKernel makes sure that handles can be named by these calls; nil stands for this machine's kernel. hook is Options.Fault.
func openKernel(calls Calls, walk bool, hook func(op string) *Fault) (*kernel, error) {
	k := &kernel{calls: calls, walk: walk}
	k.batches.New = func() any { return new([batch]byte) }
	if calls == nil {
		l, err := openLocal()
		if err != nil {
			return nil, err
		}
		k.calls = l
		k.proc.open(l.proc, l)
	} else {
		k.proc.owner = kept{}
	}
	// The proof of the pudding: a handle on the root must be called "/".
	if err := k.check(hook); err != nil {
		k.proc.close() //nolint:errcheck // nothing was written through it
		return nil, fmt.Errorf("checking /proc/self/fd: %w", err)
	}
	return k, nil
}

// kept owns what is not ours to close.
type kept struct{}

func (kept) Close(int) error { return nil }

// firstStat is stat, and finds out whether there is statx.
func (k *kernel) firstStat(fd int) (status, error) {
	st, err := k.stat(fd)
	if err == unix.ENOSYS || err == unix.EPERM {
		k.noStatx = true
		st, err = k.stat(fd)
	}
	return st, err
}

// check names the root directory, and finds out whether openat2 may be used: of all calls while
// opening that one alone is hook's to fail.
func (k *kernel) check(hook func(op string) *Fault) error {
	fd, err := k.openat(unix.AT_FDCWD, "/", unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		return err
	}
	defer k.close(fd)
	name, err := k.name(fd)
	if err == nil {
		_, err = k.firstStat(fd)
	}
	if err != nil {
		return err
	}
	if name != "/" {
		return fmt.Errorf("the root directory is called %q", name)
	}
	if !k.walk {
		k.hook = hook
		two, err := k.openPath("/")
		k.hook = nil
		if err != nil { // ENOSYS before Linux 5.6, EPERM or ENOSYS under a seccomp filter
			k.walk = true
			return nil
		}
		k.close(two)
	}
	return nil
}

func (k *kernel) before(op string) *Fault {
	if k.hook == nil {
		return nil
	}
	return k.hook(op)
}

// again says whether a call is to be made once more.
func again(err error, try int) bool { return err == unix.EINTR && try < retries }

// retry makes a call that reads, once more when it was interrupted. A test may have it fail.
func retry[T any](k *kernel, op string, call func() (T, error)) (v T, err error) {
	for try := 0; ; try++ {
		if f := k.before(op); f != nil {
			err = f.Err
		} else {
			v, err = call()
		}
		if err == nil {
			return v, nil
		}
		if !again(err, try) {
			var none T
			return none, err
		}
	}
}

// retryOpen is retry of a call that opens; with an error fd is -1. busy says of other errors whether to try once more.
func (k *kernel) retryOpen(op string, busy func(err error, try int) bool, call func() (int, error)) (fd int, err error) {
	for try := 0; ; try++ {
		if f := k.before(op); f != nil {
			err = f.Err
		} else {
			fd, err = call()
		}
		if err == nil {
			return fd, nil
		}
		if !again(err, try) && !busy(err, try) {
			return -1, err
		}
	}
}

// openPath opens a handle on path the fast way: links are followed, magic links are not, nothing is read.
func (k *kernel) openPath(path string) (fd int, err error) {
	return k.openat2(unix.AT_FDCWD, path, unix.O_PATH, unix.RESOLVE_NO_MAGICLINKS)
}

func (k *kernel) openat2(dir int, path string, flags, resolve uint64) (fd int, err error) {
	return k.retryOpen("openat2", func(err error, try int) bool { return err == unix.EAGAIN && try < retries },
		func() (int, error) { return k.calls.Openat2(dir, path, flags, resolve) })
}

// openat opens name below dir.
func (k *kernel) openat(dir int, name string, flags int, mode uint32) (fd int, err error) {
	return k.retryOpen("openat", func(err error, try int) bool { return leased(err, flags, try) },
		func() (int, error) { return k.calls.Openat(dir, name, flags, mode) })
}

// byHandle makes a call on the very object behind a descriptor, which takes /proc/self/fd. The error of a kernel that
// is closed is fs.ErrClosed.
func (k *kernel) byHandle(call func() error) error {
	if _, err := k.proc.use(); err != nil {
		return err
	}
	defer k.proc.done() //nolint:errcheck // Close reports it
	return call()
}

// reopen opens the very object behind fd again, with other flags; no name is looked up.
func (k *kernel) reopen(fd, flags int) (n int, err error) {
	if _, err := k.proc.use(); err != nil {
		return -1, err
	}
	defer k.proc.done() //nolint:errcheck // Close reports it
	return k.retryOpen("openat", func(err error, try int) bool { return leased(err, flags, try) },
		func() (int, error) { return k.calls.Reopen(fd, flags) })
}

// leased says whether an open failed because another process holds a lease that it was now asked to give up,
// and waits a little. Thirty milliseconds in all: file servers give way at once or not for a long while.
func leased(err error, flags, try int) bool {
	if err != unix.EAGAIN || flags&unix.O_NONBLOCK == 0 || try >= 30 {
		return false
	}
	time.Sleep(time.Millisecond)
	return true
}

// close gives fd back. Linux has freed the number even when it reports EINTR, so there is no second try.
func (k *kernel) close(fd int) error { return k.calls.Close(fd) }

// discard closes fd if there is one.
func (k *kernel) discard(fd int) {
	if fd >= 0 {
		k.close(fd) //nolint:errcheck // nothing was written through it
	}
}

// name asks the kernel where the object behind fd is now. A name that is not absolute (the object is outside
// our root) or longer than a path can be is an error.
func (k *kernel) name(fd int) (string, error) {
	if _, err := k.proc.use(); err != nil {
		return "", err
	}
	defer k.proc.done() //nolint:errcheck // Close reports it
	return retry(k, "readlink", func() (string, error) {
		name, err := k.calls.Name(fd)
		if err == nil && !strings.HasPrefix(name, "/") {
			err = unix.EXDEV
		}
		return name, err
	})
}

// target reads the text of the symbolic link behind fd.
func (k *kernel) target(fd int) (text string, err error) {
	return retry(k, "readlink", func() (string, error) { return k.calls.Readlinkat(fd, "") })
}

// magic is the type of the file system that fd is on.
func (k *kernel) magic(fd int) (magic uint32, err error) {
	return retry(k, "statfs", func() (uint32, error) { return k.calls.Magic(fd) })
}

func (k *kernel) pread(fd int, p []byte, off int64) (n int, err error) {
	return retry(k, "read", func() (int, error) { return k.calls.Pread(fd, p, off) })
}

func (k *kernel) read(fd int, p []byte) (n int, err error) {
	return retry(k, "read", func() (int, error) { return k.calls.Read(fd, p) })
}

// getdents fills p with raw directory entries; 0 means that there are no more.
func (k *kernel) getdents(fd int, p []byte) (n int, err error) {
	return retry(k, "getdents", func() (int, error) { return k.calls.Getdents(fd, p) })
}

func (k *kernel) write(fd int, p []byte) (n int, err error) {
	for try := 0; ; try++ {
		switch f := k.before("write"); {
		case f == nil:
			n, err = k.calls.Write(fd, p)
		case f.Short:
			n, err = k.calls.Write(fd, p[:(len(p)+1)/2])
		default:
			n, err = 0, f.Err
		}
		if !again(err, try) {
			return max(n, 0), err
		}
	}
}

// do makes one call that changes something, retried when interrupted.
func (k *kernel) do(op string, call func() error) (err error) {
	for try := 0; ; try++ {
		switch f := k.before(op); {
		case f == nil:
			err = call()
		case f.After:
			if err = call(); err == nil {
				err = f.Err
			}
			return err // it took effect: a second call would be another one
		default:
			err = f.Err
		}
		if !again(err, try) {
			return err
		}
	}
}

func (k *kernel) fsync(fd int) error {
	return k.do("fsync", func() error { return k.calls.Fsync(fd) })
}

// publish gives the nameless or named object behind fd the name (dir, base); an existing name stays as it is
// and the answer is EEXIST.
func (k *kernel) publish(fd, dir int, base string) error {
	return k.byHandle(func() error {
		return k.do("link", func() error { return k.calls.Publish(fd, dir, base) })
	})
}

func (k *kernel) rename2(a int, from string, b int, to string, flags uint) error {
	return k.do("rename", func() error { return k.calls.Renameat2(a, from, b, to, flags) })
}

func (k *kernel) unlink(dir int, name string, flags int) error {
	return k.do("unlink", func() error { return k.calls.Unlinkat(dir, name, flags) })
}
