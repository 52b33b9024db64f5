//go:build !rooted

package sandbox

import (
	"encoding/binary"
	"io"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// calls makes system calls in the worker of the moment. A call that opens something tells its kind: the
// answer serves the next question for that, within a moment and before anything is changed. A file that
// is opened to be read comes with its beginning in the same way.
type calls struct{ s *Session }

// opened is the knowledge of the client about a descriptor.
type opened struct {
	flags int
	pos   int64 // of a directory, how much of its listing there was

	told        reply // what came with it; each bit serves one question
	at, changes int64 // when that was told
	from        int64 // where reading its data goes on
}

// moment is how long an answer that came with a descriptor serves.
const moment = 2 * time.Millisecond

// toldBy has the bit of an answer that came with a descriptor for each operation that it serves.
var toldBy = [opSearch + 1]byte{opStatx: hasStat, opName: hasText, opMagic: hasMagic, opGetxattr: noAttrs, opPread: hasData}

// ahead answers q by what came with its descriptor, unless that is too old. Once data was read, the first stat is old too.
func (p *process) ahead(q *request, into []byte) (r reply, known bool) {
	p.about(q.fd, func(o *opened) {
		t := &o.told
		if time.Now().UnixNano()-o.at >= int64(moment) || o.changes != p.changes.Load() {
			*t = reply{}
		}
		bit := toldBy[q.op]
		if bit == hasStat && t.bits&hasStat == 0 {
			bit = steady
		}
		if known = t.bits&bit != 0 && q.name == "" && (q.op != opPread || q.a == o.from); !known {
			return
		}
		r = *t
		if q.op != opPread {
			t.bits &^= bit
			return
		}
		r.n = int64(copy(into, t.data[min(q.a, int64(len(t.data))):]))
		if t.bits &^= hasStat | hasText | hasMagic; r.n == 0 && len(into) > 0 {
			t.bits &^= hasData
		}
		o.from += r.n
	})
	return r, known
}

// about calls f with the knowledge about a descriptor, if there is any.
func (p *process) about(fd int, f func(o *opened)) {
	p.openMu.Lock()
	defer p.openMu.Unlock()
	if o := p.known.open[fd]; o != nil {
		f(o)
	}
}

// call makes a call in the worker that gave its descriptors.
func (c calls) call(q *request, into []byte) (r reply, err error) {
	p, err := c.at(q)
	if err == nil {
		r, err = p.done(q, into)
	}
	return r, err
}

// at is the worker that gave the descriptors of q, which get its numbers; where q has none, the worker of the moment.
func (c calls) at(q *request) (p *process, err error) {
	for _, n := range []*int{&q.fd, &q.dir} {
		if *n == 0 || *n == unix.AT_FDCWD {
			continue
		}
		var w *process
		if w, *n, err = c.s.of(*n); err == nil && p != nil && w != p {
			err = errEnded
		}
		if err != nil {
			return nil, err
		}
		p = w
	}
	if p == nil {
		return c.s.live()
	}
	return p, nil
}

// done makes a call that has the worker's numbers, with its error. The knowledge about its descriptor that it makes untrue or old is dropped.
func (p *process) done(q *request, into []byte) (reply, error) {
	if r, known := p.ahead(q, into); known {
		return r, nil
	}
	if changing(q.op) {
		p.changes.Add(1)
		defer p.changes.Add(1)
	}
	p.about(q.fd, func(o *opened) { o.told.bits &^= hasStat | hasText })
	changes := p.changes.Load()
	r, err := p.ask(q, into, nil)
	if err == nil {
		err = p.believed(q, &r, into)
	}
	if err == nil && q.op == opStatx && q.name == "" && r.text != "" { // where it is comes with what it is
		p.about(q.fd, func(o *opened) {
			o.told, o.at, o.changes = reply{bits: hasText, text: r.text}, time.Now().UnixNano(), changes
		})
	}
	return r, err
}

// nonsense ends a worker that gives an impossible answer.
func (p *process) nonsense() error {
	p.fail(errNonsense)
	return unavailable(errNonsense)
}

// believed is the error of a reply to q, or, of one that no worker of ours gives, the end of the worker. data is in into. It is all that is
// checked of a reply, but for descriptors (opens) and the hits of a search (elsewhere.check).
func (p *process) believed(q *request, r *reply, into []byte) error {
	if r.errno != 0 {
		return unix.Errno(r.errno)
	}
	_, ok := r.stat.statx()
	ok = ok && len(r.text) < unix.PathMax && strings.IndexByte(r.text, 0) < 0
	switch q.op {
	case opReadlink:
		ok = ok && (r.text != "" || q.name == "")
	case opStatx:
		ok = ok && r.bits&hasStat != 0
	case opWrite:
		ok = ok && 0 <= r.n && r.n <= int64(len(q.data))
	case opGetdents:
		ok = ok && listing(into[:r.n])
	case opMounts:
		ok = ok && r.bits&mounts != 0 && 0 < r.at && r.at < 1<<numberBits
	}
	if !ok {
		return p.nonsense()
	}
	return nil
}

// listing says whether names is a list of struct linux_dirent64, each with a name that can be one.
func listing(names []byte) bool {
	const header = 19
	for len(names) > 0 {
		n := 0
		if len(names) >= header {
			n = int(binary.NativeEndian.Uint16(names[16:]))
		}
		if n <= header || n > len(names) {
			return false
		}
		name, _, ended := strings.Cut(string(names[header:n]), "\x00")
		if !ended || name == "" || strings.IndexByte(name, '/') >= 0 || len(name) > 255 {
			return false
		}
		names = names[n:]
	}
	return true
}

func changing(o op) bool {
	switch o {
	case opWrite, opSetxattr, opRemovexattr, opChown, opChmodPath, opTouch, opFallocate,
		opTruncate, opLink, opRename, opUnlink, opMkdir, opSymlink:
		return true
	}
	return false
}

func (c calls) Openat2(dir int, name string, flags, resolve uint64) (int, error) {
	return c.opens(&request{op: opOpen2, dir: dir, name: name, a: int64(flags), b: int64(resolve)})
}

func (c calls) Openat(dir int, name string, flags int, mode uint32) (int, error) {
	return c.opens(&request{op: opOpen, dir: dir, name: name, a: int64(flags), b: int64(mode)})
}

func (c calls) Reopen(fd, flags int) (int, error) {
	return c.opens(&request{op: opReopen, fd: fd, a: int64(flags)})
}

func (c calls) opens(q *request) (int, error) {
	p, err := c.at(q)
	if err != nil {
		return -1, err
	}
	flags := int(q.a)
	if flags&unix.O_CREAT != 0 {
		p.changes.Add(1)
	}
	changes := p.changes.Load()
	r, err := p.done(q, nil)
	if err != nil {
		return -1, err
	}
	fd := int(r.n)
	o := &opened{flags: flags, at: time.Now().UnixNano(), changes: changes, told: r}
	o.told.n = 0
	p.openMu.Lock()
	defer p.openMu.Unlock()
	if fd < 0 || fd >= 1<<fdBits || p.known.open[fd] != nil { // a number that is none, or that it gave
		return -1, p.nonsense()
	}
	p.known.open[fd] = o
	return p.turn<<fdBits | fd, nil
}

// Close waits only for a file that may have been written: there the file system may tell that it could not.
func (c calls) Close(fd int) error {
	p, fd, err := c.s.of(fd)
	if err != nil {
		return nil // the worker's end has closed it
	}
	p.openMu.Lock()
	o := p.known.open[fd]
	delete(p.known.open, fd)
	p.openMu.Unlock()
	if o != nil && o.flags&(unix.O_WRONLY|unix.O_RDWR) != 0 {
		_, err = p.done(&request{op: opClose, fd: fd}, nil)
		return err
	}
	if !p.isDead() {
		p.failed(p.out.add(0, (&request{op: opClose, fd: fd}).append))
	}
	return nil
}

func (c calls) Name(fd int) (string, error) {
	r, err := c.call(&request{op: opName, fd: fd}, nil)
	return r.text, err
}

func (c calls) Readlinkat(dir int, name string) (string, error) {
	r, err := c.call(&request{op: opReadlink, fd: dir, name: name}, nil)
	return r.text, err
}

func (c calls) Statx(dir int, name string, flags int) (x unix.Statx_t, err error) {
	r, err := c.call(&request{op: opStatx, fd: dir, name: name, a: int64(flags)}, nil)
	if err == nil {
		x, _ = r.stat.statx()
	}
	return x, err
}

func (c calls) Magic(fd int) (uint32, error) {
	r, err := c.call(&request{op: opMagic, fd: fd}, nil)
	return r.magic, err
}

func (c calls) Faccessat(dir int, name string, mode uint32) error {
	return c.change(&request{op: opAccess, fd: dir, name: name, a: int64(mode)})
}

// endless is more than the listing of a directory has, bytes: a walk waits for the end of it.
const endless = 512 << 20

func (c calls) Getdents(fd int, p []byte) (int, error) {
	w, own, o, err := c.known(fd)
	if err != nil {
		return 0, err
	}
	r, err := w.done(&request{op: opGetdents, fd: own, b: int64(min(len(p), chunk))}, p)
	if err != nil {
		return 0, err
	}
	if atomic.AddInt64(&o.pos, r.n) > endless {
		return 0, w.nonsense()
	}
	return int(r.n), nil
}

// known gives the knowledge about a descriptor, with its worker and its number there.
func (c calls) known(fd int) (*process, int, *opened, error) {
	p, fd, err := c.s.of(fd)
	if err != nil {
		return nil, -1, nil, err
	}
	p.openMu.Lock()
	defer p.openMu.Unlock()
	o := p.known.open[fd]
	if o == nil {
		return nil, -1, nil, unix.EBADF
	}
	return p, fd, o, nil
}

func (c calls) Pread(fd int, buf []byte, off int64) (int, error) {
	buf = buf[:min(len(buf), chunk)]
	r, err := c.call(&request{op: opPread, fd: fd, a: off, b: int64(len(buf))}, buf)
	return int(r.n), err
}

func (c calls) Write(fd int, buf []byte) (int, error) {
	r, err := c.call(&request{op: opWrite, fd: fd, data: buf[:min(len(buf), chunk)]}, nil)
	return int(r.n), err
}

func (c calls) Seek(fd int, off int64, whence int) (int64, error) {
	r, err := c.call(&request{op: opSeek, fd: fd, a: off, b: int64(whence)}, nil)
	if _, _, o, kerr := c.known(fd); kerr == nil && off == 0 && whence == io.SeekStart {
		atomic.StoreInt64(&o.pos, 0)
	}
	return r.n, err
}

func (c calls) Fgetxattr(fd int, name string, buf []byte) (int, error) {
	r, err := c.call(&request{op: opGetxattr, fd: fd, name: name, b: int64(len(buf))}, buf)
	return int(r.n), err
}

func (c calls) Fsetxattr(fd int, name string, value []byte) error {
	return c.change(&request{op: opSetxattr, fd: fd, name: name, data: value})
}

func (c calls) Fremovexattr(fd int, name string) error {
	return c.change(&request{op: opRemovexattr, fd: fd, name: name})
}

// change makes a call that answers nothing.
func (c calls) change(q *request) error {
	_, err := c.call(q, nil)
	return err
}

func (c calls) Fchown(fd, uid, gid int) error {
	return c.change(&request{op: opChown, fd: fd, a: int64(uid), b: int64(gid)})
}

func (c calls) ChmodPath(fd int, mode uint32) error {
	return c.change(&request{op: opChmodPath, fd: fd, a: int64(mode)})
}

func (c calls) Touch(fd int, modified unix.Timespec) error {
	sec, nsec := modified.Unix()
	return c.change(&request{op: opTouch, fd: fd, a: sec, b: nsec})
}

func (c calls) Fallocate(fd int, mode uint32, off, n int64) error {
	return c.change(&request{op: opFallocate, fd: fd, a: int64(mode), b: off, c: n})
}

func (c calls) Ftruncate(fd int, size int64) error {
	return c.change(&request{op: opTruncate, fd: fd, a: size})
}

func (c calls) Fsync(fd int) error { return c.change(&request{op: opFsync, fd: fd}) }

func (c calls) Linkat(a int, from string, b int, to string) error {
	return c.change(&request{op: opLink, fd: a, text: from, dir: b, name: to})
}

func (c calls) Renameat2(a int, from string, b int, to string, flags uint) error {
	return c.change(&request{op: opRename, fd: a, text: from, dir: b, name: to, a: int64(flags)})
}

func (c calls) Unlinkat(dir int, name string, flags int) error {
	return c.change(&request{op: opUnlink, dir: dir, name: name, a: int64(flags)})
}

func (c calls) Mkdirat(dir int, name string, mode uint32) error {
	return c.change(&request{op: opMkdir, dir: dir, name: name, a: int64(mode)})
}

func (c calls) Symlinkat(target string, dir int, name string) error {
	return c.change(&request{op: opSymlink, dir: dir, name: name, text: target})
}

func (c calls) Lease(fd int) error { return c.change(&request{op: opLease, fd: fd}) }

func (c calls) User() (uid, gid int, groups []int) {
	h := c.s.Hello()
	return h.UID, h.GID, h.Groups
}
