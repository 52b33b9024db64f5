//go:build !rooted

package sandbox

import (
	"encoding/binary"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"moltisfs/internal/guardfs"
)

// table has the descriptors that a worker gave, and its policy: a path outside of the root is
// passed through by handles that read nothing.
type table struct {
	calls guardfs.Calls
	root  string // true name

	mu     sync.Mutex
	held   map[int]*held
	queues int // how many there were
}

// held is one descriptor, or a queue of changes.
type held struct {
	inside bool   // it was at or below the root when it was opened
	leads  string // of a directory above the root: the entry on the way there, the only one it shows
	listed bool   // that was told
	queue  guardfs.Inotify
}

// hold puts a queue into the table.
func (t *table) hold(h *held) (number int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.queues++
	number = 1<<fdBits + t.queues
	t.held[number] = h
	return number
}

// within says whether name is the root or below it.
func (t *table) within(name string) bool {
	rest, ok := strings.CutPrefix(name, t.root)
	return ok && (rest == "" || rest[0] == '/' || t.root == "/")
}

// leads is the entry of dir on the way to root, or "" if dir is not above it.
func leads(dir, root string) string {
	rest, _ := strings.CutPrefix(root, strings.TrimSuffix(dir, "/")+"/")
	if len(rest) == len(root) {
		return ""
	}
	name, _, _ := strings.Cut(rest, "/")
	return name
}

// way answers a listing of a directory above the root.
func (t *table) way(h *held, p []byte) int {
	const header, align, isDir = 19, 8, 4 // struct linux_dirent64, DT_DIR
	n := (header + len(h.leads) + align) / align * align
	t.mu.Lock()
	defer t.mu.Unlock()
	if h.listed || n > len(p) {
		return 0
	}
	h.listed = true
	clear(p[:n])
	p[0] = 1 // an inode number, which nobody looks at for a directory
	binary.NativeEndian.PutUint16(p[16:], uint16(n))
	p[18] = isDir
	copy(p[header:], h.leads)
	return n
}

// get is a descriptor that the worker gave.
func (t *table) get(fd int) (*held, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	h := t.held[fd]
	if h == nil {
		return nil, unix.EBADF
	}
	return h, nil
}

// in is get of a descriptor inside.
func (t *table) in(fd int) error {
	h, err := t.get(fd)
	if err == nil && !h.inside {
		err = unix.EACCES
	}
	return err
}

// dir is in of a directory in which something is to be changed: it may have been moved out
// meanwhile.
func (t *table) dir(fd int, name string) error {
	if !component(name) {
		return unix.EINVAL
	}
	if err := t.in(fd); err != nil {
		return err
	}
	at, err := t.calls.Name(fd)
	if err == nil && !t.within(at) {
		err = unix.EACCES
	}
	return err
}

// component says that name is that of one entry.
func component(name string) bool {
	return name != "" && name != "." && name != ".." && !strings.ContainsAny(name, "/\x00")
}

// mayOpen is asked before name is opened below dir.
func (t *table) mayOpen(dir int, name string, flags int) error {
	handle := flags&unix.O_PATH != 0
	switch {
	case flags&unix.O_TRUNC != 0 || strings.IndexByte(name, 0) >= 0:
		return unix.EINVAL
	case dir == unix.AT_FDCWD:
		if !handle || !strings.HasPrefix(name, "/") {
			return unix.EACCES
		}
		return nil
	case handle:
		if name != "." && name != ".." && !component(name) {
			return unix.EINVAL
		}
		_, err := t.get(dir)
		return err
	case name == ".":
		return t.in(dir)
	case flags&unix.O_NOFOLLOW == 0:
		return unix.EINVAL
	case flags&unix.O_CREAT != 0:
		return t.dir(dir, name)
	case !component(name):
		return unix.EINVAL
	}
	if h, err := t.get(dir); err == nil && h.leads == name {
		return nil
	}
	return t.in(dir)
}

// admit looks at the object that was opened as fd, and puts it into the table, or closes it.
func (t *table) admit(fd, flags int, r *reply) (*held, error) {
	x, err := t.calls.Statx(fd, "", unix.AT_EMPTY_PATH)
	var name string
	if err == nil {
		r.stat, r.bits = fields(&x), r.bits|hasStat
		name, err = t.calls.Name(fd)
	}
	kind := x.Mode & unix.S_IFMT
	h := &held{inside: err == nil && t.within(name), leads: leads(name, t.root)}
	if err == nil && !h.inside {
		if flags&unix.O_PATH == 0 || kind != unix.S_IFDIR && kind != unix.S_IFLNK {
			err = unix.EACCES
		}
	}
	if err != nil {
		t.calls.Close(fd) //nolint:errcheck // nothing was written through it
		return nil, err
	}
	if len(name) <= maxText {
		r.text, r.bits = name, r.bits|hasText
	}
	r.n = int64(fd)
	t.mu.Lock()
	t.held[fd] = h
	t.mu.Unlock()
	return h, nil
}

// close takes a descriptor out of the table before its number is free.
func (t *table) close(fd int) error {
	h, err := t.get(fd)
	if err != nil {
		return err
	}
	t.mu.Lock()
	delete(t.held, fd)
	t.mu.Unlock()
	if h.queue != nil {
		return h.queue.Close()
	}
	return t.calls.Close(fd)
}

// fields are the parts of a statx that a frame carries.
func fields(x *unix.Statx_t) stat {
	return stat{
		uint64(x.Mask), uint64(x.Mode), x.Size, x.Ino,
		uint64(x.Nlink), uint64(x.Uid), uint64(x.Gid),
		uint64(x.Dev_major), uint64(x.Dev_minor), x.Mnt_id,
		uint64(x.Atime.Sec), uint64(x.Atime.Nsec), uint64(x.Mtime.Sec), uint64(x.Mtime.Nsec),
		uint64(x.Ctime.Sec), uint64(x.Ctime.Nsec), uint64(x.Btime.Sec), uint64(x.Btime.Nsec),
	}
}

// most is more than the largest file has that any system of today can hold, bytes.
const most = 1 << 60

// statx takes fields back. ok is false for numbers that no kernel gives.
func (s *stat) statx() (x unix.Statx_t, ok bool) {
	x.Mask, x.Mode, x.Size, x.Ino = uint32(s[0]), uint16(s[1]), s[2], s[3]
	x.Nlink, x.Uid, x.Gid = uint32(s[4]), uint32(s[5]), uint32(s[6])
	x.Dev_major, x.Dev_minor, x.Mnt_id = uint32(s[7]), uint32(s[8]), s[9]
	ok = x.Size <= most
	for i, t := range []*unix.StatxTimestamp{&x.Atime, &x.Mtime, &x.Ctime, &x.Btime} {
		t.Sec, t.Nsec = int64(s[10+2*i]), uint32(s[11+2*i])
		ok = ok && s[11+2*i] < 1e9
	}
	return x, ok
}
