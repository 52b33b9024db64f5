//go:build !rooted

package guardfs

import (
	"context"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// Calls are the system calls that this package makes on the agent's tree: those of this machine's
// kernel, or of a worker that makes them elsewhere. Each is made once, and not again after EINTR.
// Descriptors are numbers that only these calls understand; unix.AT_FDCWD goes with an absolute
// path. An error that is no errno says that the call could not be made, or that nobody knows
// whether it was.
type Calls interface {
	// Openat2 opens name below dir, Openat does so without a choice of how to resolve it, and
	// Reopen opens the very object behind fd again. O_CLOEXEC is added.
	Openat2(dir int, name string, flags, resolve uint64) (fd int, err error)
	Openat(dir int, name string, flags int, mode uint32) (fd int, err error)
	Reopen(fd, flags int) (again int, err error)
	Close(fd int) error

	// Name is where the object behind fd is now: the text of its link in /proc/self/fd. Readlinkat
	// with no name reads the link behind dir itself.
	Name(fd int) (string, error)
	Readlinkat(dir int, name string) (string, error)
	Statx(dir int, name string, flags int) (unix.Statx_t, error)
	Fstatat(dir int, name string, flags int) (unix.Stat_t, error)
	Magic(fd int) (uint32, error) // the type of its file system
	Faccessat(dir int, name string, mode uint32) error

	Getdents(fd int, p []byte) (int, error)
	Pread(fd int, p []byte, off int64) (int, error)
	Read(fd int, p []byte) (int, error)
	Write(fd int, p []byte) (int, error)
	Seek(fd int, off int64, whence int) (int64, error)
	Flistxattr(fd int, p []byte) (int, error)
	Fgetxattr(fd int, name string, p []byte) (int, error)

	Fsetxattr(fd int, name string, value []byte) error
	Fremovexattr(fd int, name string) error
	Fchown(fd, uid, gid int) error
	Fchmod(fd int, mode uint32) error
	ChmodPath(fd int, mode uint32) error // Fchmod that takes an O_PATH handle
	Touch(fd int, modified unix.Timespec) error
	Fallocate(fd int, mode uint32, off, n int64) error
	Ftruncate(fd int, size int64) error
	Fsync(fd int) error
	Fdatasync(fd int) error

	// Publish makes a link to the object behind fd, which may have no name.
	Publish(fd, dir int, name string) error
	Linkat(a int, from string, b int, to string) error
	Renameat2(a int, from string, b int, to string, flags uint) error
	Unlinkat(dir int, name string, flags int) error
	Mkdirat(dir int, name string, mode uint32) error
	Symlinkat(target string, dir int, name string) error

	Lease(fd int) error                 // takes a lease for reading, and gives it back
	OpenMounts() (fd int, err error)    // /proc/self/mountinfo
	MountsChanged(fd int) (bool, error) // since it was asked before; true is told once
	Inotify() (Inotify, error)          // a queue of its own
	User() (uid, gid int, groups []int) // as whom the calls are made
}

// Inotify is a queue of what changes in directories.
type Inotify interface {
	Add(dir int, mask uint32) (id int, err error)
	Remove(id int) error
	Read(p []byte) (int, error) // EAGAIN when it is empty
	// Wait returns when there is something to read. It is fs.ErrClosed once the queue is closed.
	Wait(ctx context.Context) error
	Close() error
}

// local are the calls of this machine's kernel.
type local struct {
	proc int // O_PATH on a genuine /proc/self/fd
}

// LocalCalls are those of this machine's kernel, for a worker: what they hold lasts as long as the
// process.
func LocalCalls() (Calls, error) { return openLocal() }

// openLocal finds /proc and makes sure that it is the kernel's and not something mounted to look
// like it.
func openLocal() (*local, error) {
	proc, err := unix.Open("/proc", unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("opening /proc, which is needed to name handles: %w", err)
	}
	defer unix.Close(proc)
	k := &kernel{calls: &local{}}
	root, err := k.firstStat(proc)
	if err != nil {
		return nil, fmt.Errorf("inspecting /proc: %w", err)
	}
	magic, err := k.magic(proc)
	if err != nil || magic != procMagic || root.info.ID.Ino != procRoot {
		return nil, fmt.Errorf("/proc is not the kernel's proc file system")
	}
	fds, err := unix.Openat(proc, "self/fd", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("opening /proc/self/fd: %w", err)
	}
	st, err := k.stat(fds)
	if err == nil && st.mount != root.mount {
		err = fmt.Errorf("something is mounted over it")
	}
	if err != nil {
		unix.Close(fds) //nolint:errcheck // nothing was written through it
		return nil, fmt.Errorf("checking /proc/self/fd: %w", err)
	}
	return &local{proc: fds}, nil
}

func (*local) Openat2(dir int, name string, flags, resolve uint64) (int, error) {
	return unix.Openat2(dir, name, &unix.OpenHow{Flags: flags | unix.O_CLOEXEC, Resolve: resolve})
}

func (*local) Openat(dir int, name string, flags int, mode uint32) (int, error) {
	return unix.Openat(dir, name, flags|unix.O_CLOEXEC, mode)
}

func (l *local) Reopen(fd, flags int) (int, error) {
	return unix.Openat(l.proc, strconv.Itoa(fd), flags|unix.O_CLOEXEC, 0)
}

func (*local) Close(fd int) error { return unix.Close(fd) }

func (l *local) Name(fd int) (string, error) { return l.Readlinkat(l.proc, strconv.Itoa(fd)) }

func (*local) Readlinkat(dir int, name string) (string, error) {
	var buf [unix.PathMax]byte
	n, err := unix.Readlinkat(dir, name, buf[:])
	if err == nil && n >= len(buf) {
		err = unix.ENAMETOOLONG
	}
	if err != nil {
		return "", err
	}
	return string(buf[:n]), nil
}

func (*local) Statx(dir int, name string, flags int) (x unix.Statx_t, err error) {
	const mask = unix.STATX_BASIC_STATS | unix.STATX_BTIME | unix.STATX_MNT_ID
	err = unix.Statx(dir, name, flags, mask, &x)
	return x, err
}

func (*local) Fstatat(dir int, name string, flags int) (x unix.Stat_t, err error) {
	err = unix.Fstatat(dir, name, &x, flags)
	return x, err
}

func (*local) Magic(fd int) (uint32, error) {
	var s unix.Statfs_t
	err := unix.Fstatfs(fd, &s)
	return uint32(s.Type), err
}

func (*local) Faccessat(dir int, name string, mode uint32) error {
	return unix.Faccessat(dir, name, mode, unix.AT_EACCESS)
}

func (*local) Getdents(fd int, p []byte) (int, error) { return unix.Getdents(fd, p) }

func (*local) Pread(fd int, p []byte, off int64) (int, error) { return unix.Pread(fd, p, off) }

func (*local) Read(fd int, p []byte) (int, error) { return unix.Read(fd, p) }

func (*local) Write(fd int, p []byte) (int, error) { return unix.Write(fd, p) }

func (*local) Seek(fd int, off int64, whence int) (int64, error) {
	return unix.Seek(fd, off, whence)
}

func (*local) Flistxattr(fd int, p []byte) (int, error) { return unix.Flistxattr(fd, p) }

func (*local) Fgetxattr(fd int, name string, p []byte) (int, error) {
	return unix.Fgetxattr(fd, name, p)
}

func (*local) Fsetxattr(fd int, name string, value []byte) error {
	return unix.Fsetxattr(fd, name, value, 0)
}

func (*local) Fremovexattr(fd int, name string) error { return unix.Fremovexattr(fd, name) }

func (*local) Fchown(fd, uid, gid int) error { return unix.Fchown(fd, uid, gid) }

func (*local) Fchmod(fd int, mode uint32) error { return unix.Fchmod(fd, mode) }

func (l *local) ChmodPath(fd int, mode uint32) error {
	return unix.Fchmodat(l.proc, strconv.Itoa(fd), mode, 0)
}

func (l *local) Touch(fd int, modified unix.Timespec) error {
	times := []unix.Timespec{{Nsec: unix.UTIME_OMIT}, modified}
	return unix.UtimesNanoAt(l.proc, strconv.Itoa(fd), times, 0)
}

func (*local) Fallocate(fd int, mode uint32, off, n int64) error {
	return unix.Fallocate(fd, mode, off, n)
}

func (*local) Ftruncate(fd int, size int64) error { return unix.Ftruncate(fd, size) }

func (*local) Fsync(fd int) error { return unix.Fsync(fd) }

func (*local) Fdatasync(fd int) error { return unix.Fdatasync(fd) }

func (l *local) Publish(fd, dir int, name string) error {
	return unix.Linkat(l.proc, strconv.Itoa(fd), dir, name, unix.AT_SYMLINK_FOLLOW)
}

func (*local) Linkat(a int, from string, b int, to string) error {
	return unix.Linkat(a, from, b, to, 0)
}

func (*local) Renameat2(a int, from string, b int, to string, flags uint) error {
	return unix.Renameat2(a, from, b, to, flags)
}

func (*local) Unlinkat(dir int, name string, flags int) error {
	return unix.Unlinkat(dir, name, flags)
}

func (*local) Mkdirat(dir int, name string, mode uint32) error {
	return unix.Mkdirat(dir, name, mode)
}

func (*local) Symlinkat(target string, dir int, name string) error {
	return unix.Symlinkat(target, dir, name)
}

func (*local) Lease(fd int) error {
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_SETLEASE, unix.F_RDLCK); err != nil {
		return err
	}
	_, err := unix.FcntlInt(uintptr(fd), unix.F_SETLEASE, unix.F_UNLCK)
	return err
}

func (l *local) OpenMounts() (int, error) {
	return unix.Openat(l.proc, "../mountinfo", unix.O_RDONLY|unix.O_CLOEXEC, 0)
}

func (*local) MountsChanged(fd int) (bool, error) {
	p := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLPRI}}
	_, err := unix.Poll(p, 0)
	return p[0].Revents&(unix.POLLPRI|unix.POLLERR) != 0, err
}

func (*local) User() (uid, gid int, groups []int) {
	groups, _ = os.Getgroups() // none that could be told
	return os.Geteuid(), os.Getegid(), groups
}

func (f *FS) user() int {
	uid, _, _ := f.kernel.calls.User()
	return uid
}
