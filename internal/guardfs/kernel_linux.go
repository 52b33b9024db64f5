//go:build !rooted

package guardfs

import (
	"fmt"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// kernel is the system as this package sees it: a genuine /proc/self/fd, and the calls, each retried when
// interrupted. All system calls of the package on the agent's tree go through it.
type kernel struct {
	proc descriptor // O_PATH on /proc/self/fd
	walk bool
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

// openKernel finds /proc and makes sure that it is the kernel's and not something mounted to look like it. hook is Options.Fault.
func openKernel(walk bool, hook func(op string) *Fault) (*kernel, error) {
	proc, err := unix.Open("/proc", unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("opening /proc, which is needed to name handles: %w", err)
	}
	defer unix.Close(proc)
	k := &kernel{walk: walk}
	k.batches.New = func() any { return new([batch]byte) }
	root, err := k.stat(proc)
	if err == unix.ENOSYS || err == unix.EPERM {
		k.noStatx = true
		root, err = k.stat(proc)
	}
	if err != nil {
		return nil, fmt.Errorf("inspecting /proc: %w", err)
	}
	if magic, err := k.magic(proc); err != nil || magic != procMagic || root.info.ID.Ino != procRoot {
		return nil, fmt.Errorf("/proc is not the kernel's proc file system")
	}
	fds, err := unix.Openat(proc, "self/fd", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("opening /proc/self/fd: %w", err)
	}
	k.proc.open(fds)
	st, err := k.stat(fds)
	if err == nil && st.mount != root.mount {
		err = fmt.Errorf("something is mounted over it")
	}
	if err == nil {
		// The proof of the pudding: a handle on the root must be called "/".
		err = k.check(hook)
	}
	if err != nil {
		k.proc.close() //nolint:errcheck // nothing was written through it
		return nil, fmt.Errorf("checking /proc/self/fd: %w", err)
	}
	return k, nil
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

// openPath opens a handle on path the fast way: links are followed, magic links are not, nothing is read.
func (k *kernel) openPath(path string) (fd int, err error) {
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_MAGICLINKS}
	return k.openat2(unix.AT_FDCWD, path, &how)
}

func (k *kernel) openat2(dir int, path string, how *unix.OpenHow) (fd int, err error) {
	for try := 0; ; try++ {
		if f := k.before("openat2"); f != nil {
			fd, err = -1, f.Err
		} else {
			fd, err = unix.Openat2(dir, path, how)
		}
		if !again(err, try) && (err != unix.EAGAIN || try >= retries) {
			return fd, err
		}
	}
}

// openat opens name below dir. O_CLOEXEC is added.
func (k *kernel) openat(dir int, name string, flags int, mode uint32) (fd int, err error) {
	for try := 0; ; try++ {
		if f := k.before("openat"); f != nil {
			fd, err = -1, f.Err
		} else {
			fd, err = unix.Openat(dir, name, flags|unix.O_CLOEXEC, mode)
		}
		if !again(err, try) && !leased(err, flags, try) {
			return fd, err
		}
	}
}

// byNumber makes a call on the very object behind fd: on the entry that fd has in /proc/self/fd. The error of a kernel that
// is closed is fs.ErrClosed.
func (k *kernel) byNumber(fd int, call func(proc int, name string) error) error {
	proc, err := k.proc.use()
	if err != nil {
		return err
	}
	defer k.proc.done() //nolint:errcheck // Close reports it
	return call(proc, strconv.Itoa(fd))
}

// reopen opens the very object behind fd again, with other flags; no name is looked up.
func (k *kernel) reopen(fd, flags int) (n int, err error) {
	err = k.byNumber(fd, func(proc int, name string) (err error) {
		n, err = k.openat(proc, name, flags, 0)
		return err
	})
	if err != nil {
		n = -1
	}
	return n, err
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
func (k *kernel) close(fd int) error { return unix.Close(fd) }

// name asks the kernel where the object behind fd is now. A name that is not absolute (the object is outside
// our root) or longer than a path can be is an error.
func (k *kernel) name(fd int) (string, error) {
	var buf [unix.PathMax]byte
	var n int
	err := k.byNumber(fd, func(proc int, name string) (err error) {
		n, err = k.readlink(proc, name, buf[:])
		return err
	})
	if err != nil {
		return "", err
	}
	if n >= len(buf) {
		return "", unix.ENAMETOOLONG
	}
	if n == 0 || buf[0] != '/' {
		return "", unix.EXDEV
	}
	return string(buf[:n]), nil
}

func (k *kernel) readlink(dir int, name string, buf []byte) (n int, err error) {
	for try := 0; ; try++ {
		if f := k.before("readlink"); f != nil {
			n, err = 0, f.Err
		} else {
			n, err = unix.Readlinkat(dir, name, buf)
		}
		if !again(err, try) {
			return n, err
		}
	}
}

// target reads the text of the symbolic link behind fd.
func (k *kernel) target(fd int) (string, error) {
	var buf [unix.PathMax]byte
	n, err := k.readlink(fd, "", buf[:])
	if err != nil {
		return "", err
	}
	if n >= len(buf) {
		return "", unix.ENAMETOOLONG
	}
	return string(buf[:n]), nil
}

// magic is the type of the file system that fd is on.
func (k *kernel) magic(fd int) (uint32, error) {
	var s unix.Statfs_t
	for try := 0; ; try++ {
		var err error
		if f := k.before("statfs"); f != nil {
			err = f.Err
		} else {
			err = unix.Fstatfs(fd, &s)
		}
		if !again(err, try) {
			return uint32(s.Type), err
		}
	}
}

func (k *kernel) pread(fd int, p []byte, off int64) (n int, err error) {
	for try := 0; ; try++ {
		if f := k.before("read"); f != nil {
			n, err = 0, f.Err
		} else {
			n, err = unix.Pread(fd, p, off)
		}
		if !again(err, try) {
			return max(n, 0), err
		}
	}
}

func (k *kernel) read(fd int, p []byte) (n int, err error) {
	for try := 0; ; try++ {
		if f := k.before("read"); f != nil {
			n, err = 0, f.Err
		} else {
			n, err = unix.Read(fd, p)
		}
		if !again(err, try) {
			return max(n, 0), err
		}
	}
}

func (k *kernel) write(fd int, p []byte) (n int, err error) {
	for try := 0; ; try++ {
		switch f := k.before("write"); {
		case f == nil:
			n, err = unix.Write(fd, p)
		case f.Short:
			n, err = unix.Write(fd, p[:(len(p)+1)/2])
		default:
			n, err = 0, f.Err
		}
		if !again(err, try) {
			return max(n, 0), err
		}
	}
}

// getdents fills p with raw directory entries; 0 means that there are no more.
func (k *kernel) getdents(fd int, p []byte) (n int, err error) {
	for try := 0; ; try++ {
		if f := k.before("getdents"); f != nil {
			n, err = 0, f.Err
		} else {
			n, err = unix.Getdents(fd, p)
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
	return k.do("fsync", func() error { return unix.Fsync(fd) })
}

// publish gives the nameless or named object behind fd the name (dir, base); an existing name stays as it is
// and the answer is EEXIST.
func (k *kernel) publish(fd, dir int, base string) error {
	return k.byNumber(fd, func(proc int, name string) error {
		return k.do("link", func() error { return unix.Linkat(proc, name, dir, base, unix.AT_SYMLINK_FOLLOW) })
	})
}

func (k *kernel) rename2(a int, from string, b int, to string, flags uint) error {
	return k.do("rename", func() error { return unix.Renameat2(a, from, b, to, flags) })
}

func (k *kernel) unlink(dir int, name string, flags int) error {
	return k.do("unlink", func() error { return unix.Unlinkat(dir, name, flags) })
}
