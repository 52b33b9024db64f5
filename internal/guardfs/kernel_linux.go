//go:build !rooted

package guardfs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// kernel is the system as this package sees it: the calls, each retried when interrupted. All system calls of the
// package on the agent's tree go through it.
type kernel struct {
	calls Calls
	proc  descriptor // what local calls have of /proc; when it is closed no handle can be named
	walk  bool
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
		k.proc.open(l.proc, ownProc{l})
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

// kept owns descriptors that are not ours to close.
type kept struct{}

func (kept) Close(int) error { return nil }

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
		_, err = k.stat(fd)
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

// retry makes a call, once more when it was interrupted. A test may have it fail.
func retry[T any](k *kernel, op string, call func() (T, error)) (v T, err error) {
	var none T
	for try := 0; ; try++ {
		f := k.before(op)
		if f == nil || f.After {
			v, err = call()
		}
		switch {
		case f != nil && f.After: // it took effect: a second call would be another one
			return none, cmp.Or(err, f.Err)
		case f != nil:
			err = f.Err
		}
		if err == nil {
			return v, nil
		}
		if !again(err, try) {
			return none, err
		}
	}
}

// retryOpen is retry of a call that opens with flags; with an error fd is -1. It is made again, too, where somebody holds a lease, or
// renamed something that openat2 went through.
func (k *kernel) retryOpen(op string, flags int, call func() (int, error)) (fd int, err error) {
	for try := 0; ; try++ {
		if f := k.before(op); f != nil {
			fd, err = -1, f.Err
		} else {
			fd, err = call()
		}
		if err == nil {
			return fd, nil
		}
		raced := op == "openat2" && err == unix.EAGAIN && try < retries
		if !again(err, try) && !raced && !leased(err, flags, try) {
			return -1, err
		}
	}
}

// openPath opens a handle on path the fast way: links are followed, magic links are not, nothing is read.
func (k *kernel) openPath(path string) (fd int, err error) {
	return k.openat2(unix.AT_FDCWD, path, unix.O_PATH, unix.RESOLVE_NO_MAGICLINKS)
}

func (k *kernel) openat2(dir int, path string, flags, resolve uint64) (fd int, err error) {
	return k.retryOpen("openat2", 0, func() (int, error) { return k.calls.Openat2(dir, path, flags, resolve) })
}

// openat opens name below dir.
func (k *kernel) openat(dir int, name string, flags int, mode uint32) (fd int, err error) {
	return k.retryOpen("openat", flags, func() (int, error) { return k.calls.Openat(dir, name, flags, mode) })
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
	n = -1
	err = k.byHandle(func() error {
		n, err = k.retryOpen("openat", flags, func() (int, error) { return k.calls.Reopen(fd, flags) })
		return err
	})
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
func (k *kernel) close(fd int) error { return k.calls.Close(fd) }

// discard closes fd if there is one.
func (k *kernel) discard(fd int) {
	if fd >= 0 {
		k.close(fd) //nolint:errcheck // nothing was written through it
	}
}

// name asks the kernel where the object behind fd is now. A name that is not absolute (the object is outside
// our root) or longer than a path can be is an error.
func (k *kernel) name(fd int) (name string, err error) {
	err = k.byHandle(func() error {
		name, err = retry(k, "readlink", func() (string, error) {
			name, err := k.calls.Name(fd)
			if err == nil && !strings.HasPrefix(name, "/") {
				err = unix.EXDEV
			}
			return name, err
		})
		return err
	})
	return name, err
}

// target reads the text of the symbolic link name below dir, or with no name of the one behind dir. Anything else is EINVAL, or ENOENT.
func (k *kernel) target(dir int, name string) (text string, err error) {
	return retry(k, "readlink", func() (string, error) { return k.calls.Readlinkat(dir, name) })
}

// magic is the type of the file system that fd is on.
func (k *kernel) magic(fd int) (magic uint32, err error) {
	return retry(k, "statfs", func() (uint32, error) { return k.calls.Magic(fd) })
}

func (k *kernel) pread(fd int, p []byte, off int64) (n int, err error) {
	return retry(k, "read", func() (int, error) { return k.calls.Pread(fd, p, off) })
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

// do is retry of a call that gives nothing.
func (k *kernel) do(op string, call func() error) error {
	_, err := retry(k, op, func() (struct{}, error) { return struct{}{}, call() })
	return err
}

func (k *kernel) fsync(fd int) error {
	return k.do("fsync", func() error { return k.calls.Fsync(fd) })
}

// publish gives the nameless or named object behind fd the name (dir, base); an existing name stays as it is
// and the answer is EEXIST.
func (k *kernel) publish(fd, dir int, base string) error {
	return k.byHandle(func() error {
		return k.do("link", func() error { return k.calls.Linkat(fd, "", dir, base) })
	})
}

func (k *kernel) rename2(a int, from string, b int, to string, flags uint) error {
	return k.do("rename", func() error { return k.calls.Renameat2(a, from, b, to, flags) })
}

func (k *kernel) unlink(dir int, name string, flags int) error {
	return k.do("unlink", func() error { return k.calls.Unlinkat(dir, name, flags) })
}

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
	Magic(fd int) (uint32, error) // the type of its file system
	Faccessat(dir int, name string, mode uint32) error

	Getdents(fd int, p []byte) (int, error)
	Pread(fd int, p []byte, off int64) (int, error)
	Write(fd int, p []byte) (int, error)
	Seek(fd int, off int64, whence int) (int64, error)
	Fgetxattr(fd int, name string, p []byte) (int, error) // with no name: the names of all, each with a NUL behind it

	Fsetxattr(fd int, name string, value []byte) error
	Fremovexattr(fd int, name string) error
	Fchown(fd, uid, gid int) error
	ChmodPath(fd int, mode uint32) error // of an O_PATH handle, too
	Touch(fd int, modified unix.Timespec) error
	Fallocate(fd int, mode uint32, off, n int64) error
	Ftruncate(fd int, size int64) error
	Fsync(fd int) error

	Linkat(a int, from string, b int, to string) error // with no from: to the object behind a, which may have no name
	Renameat2(a int, from string, b int, to string, flags uint) error
	Unlinkat(dir int, name string, flags int) error
	Mkdirat(dir int, name string, mode uint32) error
	Symlinkat(target string, dir int, name string) error

	// Mounts gives /proc/self/mountinfo and the number of that text; no text where it is the one numbered seen, from 1 on.
	Mounts(seen int64) (text []byte, number int64, err error)

	Lease(fd int) error                 // takes a lease for reading, and gives it back
	Inotify() (Inotify, error)          // a queue of its own
	User() (uid, gid int, groups []int) // as whom the calls are made
}

// Inotify is a queue of changes in directories.
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
	proc   int // O_PATH on a genuine /proc/self/fd
	mounts int // /proc/self/mountinfo. A number, as proc is: a worker that ends may close both

	mu     sync.Mutex
	number int64 // of the text of mounts
}

// ownProc closes the files that openLocal opened.
type ownProc struct{ *local }

func (o ownProc) Close(int) error { return errors.Join(unix.Close(o.mounts), unix.Close(o.proc)) }

// LocalCalls gives the calls of this machine's kernel, for a worker: their files last as long as the
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
	root, err := k.stat(proc)
	if err != nil {
		return nil, fmt.Errorf("statx of /proc, which takes Linux 4.11 and a container runtime that lets it through: %w", err)
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
	list, err := unix.Openat(fds, "../mountinfo", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		unix.Close(fds) //nolint:errcheck // see above
		return nil, fmt.Errorf("opening /proc/self/mountinfo: %w", err)
	}
	return &local{proc: fds, mounts: list}, nil
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

func (*local) Write(fd int, p []byte) (int, error) { return unix.Write(fd, p) }

func (*local) Seek(fd int, off int64, whence int) (int64, error) {
	return unix.Seek(fd, off, whence)
}

func (*local) Fgetxattr(fd int, name string, p []byte) (int, error) {
	if name == "" {
		return unix.Flistxattr(fd, p)
	}
	return unix.Fgetxattr(fd, name, p)
}

func (*local) Fsetxattr(fd int, name string, value []byte) error {
	return unix.Fsetxattr(fd, name, value, 0)
}

func (*local) Fremovexattr(fd int, name string) error { return unix.Fremovexattr(fd, name) }

func (*local) Fchown(fd, uid, gid int) error { return unix.Fchown(fd, uid, gid) }

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

func (l *local) Linkat(a int, from string, b int, to string) error {
	if from == "" {
		return unix.Linkat(l.proc, strconv.Itoa(a), b, to, unix.AT_SYMLINK_FOLLOW)
	}
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

func (l *local) Mounts(seen int64) (text []byte, number int64, err error) {
	l.mu.Lock() // the kernel tells of a change once
	defer l.mu.Unlock()
	for range retries {
		p := []unix.PollFd{{Fd: int32(l.mounts), Events: unix.POLLPRI}}
		if _, err := unix.Poll(p, 0); err == unix.EINTR {
			continue
		} else if err != nil {
			return nil, 0, err
		}
		if l.number == 0 || p[0].Revents&(unix.POLLPRI|unix.POLLERR) != 0 {
			l.number++
			text = nil
		}
		if l.number == seen || text != nil {
			return text, l.number, nil
		}
		// Then it may have changed meanwhile.
		for part := make([]byte, 32<<10); ; {
			n, err := unix.Pread(l.mounts, part, int64(len(text)))
			if err == unix.EINTR {
				continue
			} else if err != nil {
				return nil, 0, err
			} else if n == 0 {
				break
			}
			text = append(text, part[:n]...)
		}
	}
	return nil, 0, unix.EAGAIN
}

func (*local) User() (uid, gid int, groups []int) {
	groups, _ = os.Getgroups() // none that could be told
	return os.Geteuid(), os.Getegid(), groups
}

func (f *FS) user() int {
	uid, _, _ := f.kernel.calls.User()
	return uid
}

// status is the answer of one look at an object: the facts for the caller, and the mount it is on.
type status struct {
	info  Info
	mount uint64 // mount id; the device where the kernel does not say (before Linux 5.8)
}

// stat looks at the object behind fd.
func (k *kernel) stat(fd int) (status, error) {
	return k.statx(fd, "", unix.AT_EMPTY_PATH)
}

// lstat looks at name below dir, not following a link and not triggering an automount.
func (k *kernel) lstat(dir int, name string) (status, error) {
	return k.statx(dir, name, unix.AT_SYMLINK_NOFOLLOW|unix.AT_NO_AUTOMOUNT)
}

func (k *kernel) statx(dir int, name string, flags int) (status, error) {
	x, err := retry(k, "stat", func() (unix.Statx_t, error) { return k.calls.Statx(dir, name, flags) })
	if err != nil {
		return status{}, err
	}
	s := status{
		info: Info{
			Kind:       kindOfMode(uint32(x.Mode)),
			Size:       int64(x.Size),
			Mode:       modeOf(uint32(x.Mode)),
			ModTime:    time.Unix(x.Mtime.Sec, int64(x.Mtime.Nsec)),
			ChangeTime: time.Unix(x.Ctime.Sec, int64(x.Ctime.Nsec)),
			AccessTime: time.Unix(x.Atime.Sec, int64(x.Atime.Nsec)),
			ID:         Identity{Dev: unix.Mkdev(x.Dev_major, x.Dev_minor), Ino: x.Ino},
			Links:      uint64(x.Nlink),
			UID:        x.Uid,
			GID:        x.Gid,
		},
	}
	if s.info.Kind == KindOther {
		s.info.special = "device"
		switch x.Mode & unix.S_IFMT {
		case unix.S_IFIFO:
			s.info.special = "fifo"
		case unix.S_IFSOCK:
			s.info.special = "socket"
		}
	}
	if x.Mask&unix.STATX_BTIME != 0 {
		s.info.ID.Birth = x.Btime.Sec*1e9 + int64(x.Btime.Nsec)
	}
	s.mount = s.info.ID.Dev
	if x.Mask&unix.STATX_MNT_ID != 0 {
		s.mount = x.Mnt_id
	}
	return s, nil
}

func kindOfMode(mode uint32) Kind {
	switch mode & unix.S_IFMT {
	case unix.S_IFREG:
		return KindFile
	case unix.S_IFDIR:
		return KindDir
	case unix.S_IFLNK:
		return KindSymlink
	}
	return KindOther
}

// specialBits are the bits of a mode beside the permissions, as Go and the system have them, with their names in Published.Dropped.
var specialBits = [...]struct {
	mode fs.FileMode
	bit  uint32
	name string
}{{fs.ModeSetuid, unix.S_ISUID, "setuid"}, {fs.ModeSetgid, unix.S_ISGID, "setgid"}, {fs.ModeSticky, unix.S_ISVTX, "sticky"}}

func modeOf(bits uint32) fs.FileMode {
	m := fs.FileMode(bits & 0o777)
	for _, s := range specialBits {
		if bits&s.bit != 0 {
			m |= s.mode
		}
	}
	return m
}

// bitsOf is the inverse of modeOf.
func bitsOf(m fs.FileMode) uint32 {
	bits := uint32(m.Perm())
	for _, s := range specialBits {
		if m&s.mode != 0 {
			bits |= s.bit
		}
	}
	return bits
}

// pseudo reports whether a file system of this type is an interface of the kernel: a text read there is made
// up on the spot, and a write is a command. From linux/magic.h.
func pseudo(magic uint32) bool {
	switch magic {
	case procMagic,
		0x62656572, // sysfs
		0x64626720, // debugfs
		0x74726163, // tracefs
		0xcafe4a11, // bpf
		0x73636673, // securityfs
		0x27e0eb,   // cgroup
		0x63677270, // cgroup2
		0x1cd1,     // devpts
		0xf97cff8c, // selinuxfs
		0x43415d53, // smackfs
		0x5a3c69f0, // apparmorfs (AAFS)
		0x62656570, // configfs
		0xde5e81e4, // efivarfs
		0x6165676c, // pstore
		0x42494e4d, // binfmt_misc
		0x65735543, // fusectl
		0x19800202, // mqueue
		0x6e736673, // nsfs
		0x50494446, // pidfs
		0x67596969, // rpc_pipefs
		0x6e667364, // nfsd
		0x9fa2,     // usbdevice
		0x07655821, // rdtgroup (resctrl)
		0x6c6f6f70, // binderfs
		0xabba1974, // xenfs
		0x09041934, // anon_inode
		0x50495045, // pipefs
		0x534f434b: // sockfs
		return true
	}
	return false
}

// descriptor is a file descriptor that may be closed at any moment, from any goroutine and more than once: the
// number is given back when the last use is over, and never used again, so that it cannot name another file. The zero
// one is closed. No other field of this package that outlives a call holds a number.
type descriptor struct {
	fd    int
	state atomic.Int32 // number of uses under way, plus closing and closed
	owner interface{ Close(fd int) error }
}

const (
	closing = 1 << 29
	closed  = 1 << 30
)

// use gives the number; done must follow. The error is fs.ErrClosed.
func (d *descriptor) use() (int, error) {
	if d.owner == nil {
		return -1, fs.ErrClosed
	}
	if d.state.Add(1)&closing != 0 {
		d.done() //nolint:errcheck // its owner gets the error
		return -1, fs.ErrClosed
	}
	return d.fd, nil
}

func (d *descriptor) done() error {
	if d.state.Add(-1) == closing && d.state.CompareAndSwap(closing, closing|closed) {
		fd := d.fd
		d.fd = -1
		return d.owner.Close(fd)
	}
	return nil
}

// close ends the descriptor; the second and later calls do nothing.
func (d *descriptor) close() error {
	for d.owner != nil {
		s := d.state.Load()
		if s&closing != 0 {
			return nil
		}
		if d.state.CompareAndSwap(s, (s|closing)+1) {
			return d.done()
		}
	}
	return nil
}
