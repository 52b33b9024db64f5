//go:build !rooted

package sandbox

import (
	"encoding/binary"
	"io"
	"slices"
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
	flags  int
	pos    int64 // of a directory, how much of its listing there was
	synced bool  // nothing was written since it was
	told
}

// told holds the answers that came with it; each serves one question.
type told struct {
	at, changes int64 // when that was
	stat        *stat
	after       *stat // when all of data had been read
	bare        bool  // it has no extended attributes
	magic       *uint32
	name        string
	data        []byte
	end         bool // data is all that there is, and from is where it goes on
	from        int64
}

// moment is how long an answer that came with a descriptor serves.
const moment = 2 * time.Millisecond

// fresh gives the knowledge about a descriptor, or nothing if it is too old.
func (p *process) fresh(fd int, take func(o *opened) bool) bool {
	p.openMu.Lock()
	defer p.openMu.Unlock()
	o := p.known.open[fd]
	if o == nil || o.at == 0 {
		return false
	}
	if time.Now().UnixNano()-o.at < int64(moment) && o.changes == p.changes.Load() && take(o) {
		return true
	}
	o.told = told{}
	return false
}

// ask makes a call on a descriptor, and forgets all that was known of it.
func (c calls) ask(q *request, into []byte) (reply, error) {
	p, fd, err := c.s.of(q.fd)
	if err != nil {
		return reply{}, err
	}
	q.fd = fd
	return p.done(q, into)
}

// done is ask of one that has the worker's numbers, with the error of the call.
func (p *process) done(q *request, into []byte) (reply, error) {
	if changing(q.op) {
		p.changes.Add(1)
		defer p.changes.Add(1)
	}
	p.asking(q, false)
	r, err := p.ask(q, into, nil)
	if err == nil {
		err = p.believed(q, &r, into)
	}
	if err == nil {
		p.asking(q, true)
	}
	return r, err
}

// asking drops the knowledge about q's descriptor that the call makes untrue or old.
func (p *process) asking(q *request, done bool) {
	p.openMu.Lock()
	defer p.openMu.Unlock()
	o := p.known.open[q.fd]
	switch {
	case o == nil:
	case !done:
		o.stat, o.name = nil, ""
		o.synced = o.synced && !slices.Contains([]op{opWrite, opFallocate, opTruncate}, q.op)
	case q.op == opFsync:
		o.synced = true
	}
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

// base finds the worker for a call below dir.
func (c calls) base(dir int) (*process, int, error) {
	if dir == unix.AT_FDCWD {
		p, err := c.s.live()
		return p, dir, err
	}
	return c.s.of(dir)
}

func (c calls) Openat2(dir int, name string, flags, resolve uint64) (int, error) {
	return c.opened(opOpen2, dir, name, int(flags), int64(resolve))
}

func (c calls) Openat(dir int, name string, flags int, mode uint32) (int, error) {
	return c.opened(opOpen, dir, name, flags, int64(mode))
}

func (c calls) opened(o op, dir int, name string, flags int, b int64) (int, error) {
	p, dir, err := c.base(dir)
	if err != nil {
		return -1, err
	}
	return p.opens(&request{op: o, dir: dir, name: name, a: int64(flags), b: b}, flags)
}

func (c calls) Reopen(fd, flags int) (int, error) {
	p, fd, err := c.s.of(fd)
	if err != nil {
		return -1, err
	}
	return p.opens(&request{op: opReopen, fd: fd, a: int64(flags)}, flags)
}

func (p *process) opens(q *request, flags int) (int, error) {
	if flags&unix.O_CREAT != 0 {
		p.changes.Add(1)
	}
	changes := p.changes.Load()
	r, err := p.done(q, nil)
	if err != nil {
		return -1, err
	}
	o := &opened{flags: flags, told: told{at: time.Now().UnixNano(), changes: changes}}
	if r.bits&hasStat != 0 {
		o.stat, o.magic = &r.stat, &r.magic
	}
	if r.bits&hasText != 0 {
		o.name = r.text
	}
	if o.end = r.bits&hasData != 0; o.end {
		o.data = r.data
		if o.bare = r.bits&atEnd != 0; o.bare {
			o.after = o.stat
		}
	}
	fd := int(r.n)
	p.openMu.Lock()
	defer p.openMu.Unlock()
	if fd < 0 || fd >= 1<<fdBits || p.known.open[fd] != nil { // a number that is none, or that it gave
		return -1, p.nonsense()
	}
	p.known.open[fd] = o
	return p.turn<<fdBits | fd, nil
}

// Close waits only where something was written, and not synced since: there the file system may
// tell that it could not.
func (c calls) Close(fd int) error {
	p, fd, err := c.s.of(fd)
	if err != nil {
		return nil // the worker's end has closed it
	}
	p.openMu.Lock()
	o := p.known.open[fd]
	delete(p.known.open, fd)
	p.openMu.Unlock()
	if o != nil && o.flags&(unix.O_WRONLY|unix.O_RDWR) != 0 && !o.synced {
		_, err = p.done(&request{op: opClose, fd: fd}, nil)
		return err
	}
	if !p.isDead() {
		p.failed(p.out.add(0, (&request{op: opClose, fd: fd}).append))
	}
	return nil
}

func (c calls) Name(fd int) (name string, err error) {
	p, fd, err := c.s.of(fd)
	if err != nil {
		return "", err
	}
	known := p.fresh(fd, func(o *opened) bool {
		name, o.name = o.name, ""
		return name != ""
	})
	if !known {
		var r reply
		r, err = p.done(&request{op: opName, fd: fd}, nil)
		name = r.text
	}
	return name, err
}

func (c calls) Readlinkat(dir int, name string) (string, error) {
	p, dir, err := c.s.of(dir)
	if err != nil {
		return "", err
	}
	r, err := p.done(&request{op: opReadlink, fd: dir, name: name}, nil)
	return r.text, err
}

func (c calls) Statx(dir int, name string, flags int) (x unix.Statx_t, err error) {
	p, dir, err := c.s.of(dir)
	if err != nil {
		return x, err
	}
	var s *stat
	changes := p.changes.Load()
	if name == "" {
		p.fresh(dir, func(o *opened) bool {
			if s, o.stat = o.stat, nil; s == nil {
				s, o.after = o.after, nil
			}
			return s != nil
		})
	}
	if s == nil {
		r, err := p.done(&request{op: opStatx, fd: dir, name: name, a: int64(flags)}, nil)
		if err != nil {
			return x, err
		}
		if s = &r.stat; name == "" && r.text != "" { // where it is comes with what it is
			p.openMu.Lock()
			if o := p.known.open[dir]; o != nil {
				o.told = told{name: r.text, changes: changes, at: time.Now().UnixNano()}
			}
			p.openMu.Unlock()
		}
	}
	x, _ = s.statx()
	return x, nil
}

func (c calls) Magic(fd int) (magic uint32, err error) {
	p, fd, err := c.s.of(fd)
	if err != nil {
		return 0, err
	}
	known := p.fresh(fd, func(o *opened) bool {
		if o.magic == nil {
			return false
		}
		magic, o.magic = *o.magic, nil
		return true
	})
	if known {
		return magic, nil
	}
	r, err := p.done(&request{op: opMagic, fd: fd}, nil)
	return r.magic, err
}

func (c calls) Faccessat(dir int, name string, mode uint32) error {
	_, err := c.ask(&request{op: opAccess, fd: dir, name: name, a: int64(mode)}, nil)
	return err
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

// lied ends the worker of the moment.
func (s *Session) lied() error {
	s.mu.Lock()
	p := s.now
	s.mu.Unlock()
	if p == nil {
		return unavailable(errNonsense)
	}
	return p.nonsense()
}

func (c calls) Pread(fd int, buf []byte, off int64) (n int, err error) {
	p, fd, err := c.s.of(fd)
	if err != nil {
		return 0, err
	}
	known := p.fresh(fd, func(o *opened) bool {
		if !o.end || off != o.from {
			return false
		}
		n = copy(buf, o.data[min(off, int64(len(o.data))):])
		if o.from += int64(n); n == 0 && len(buf) > 0 {
			o.data, o.end = nil, false
		}
		o.stat, o.name, o.magic = nil, "", nil
		return true
	})
	if known {
		return n, nil
	}
	buf = buf[:min(len(buf), chunk)]
	r, err := p.done(&request{op: opPread, fd: fd, a: off, b: int64(len(buf))}, buf)
	return int(r.n), err
}

// Write waits for the answer only where the caller has to know how much was stored: at the end of
// somebody's file. Else an error is that of the calls that follow, which are made one after
// another.
func (c calls) Write(fd int, buf []byte) (int, error) {
	p, fd, o, err := c.known(fd)
	if err != nil {
		return 0, err
	}
	p.openMu.Lock()
	o.synced = false
	p.openMu.Unlock()
	if o.flags&unix.O_APPEND != 0 {
		r, err := p.done(&request{op: opWrite, fd: fd, data: buf[:min(len(buf), chunk)]}, nil)
		return int(r.n), err
	}
	p.changes.Add(1)
	for rest := buf; len(rest) > 0; {
		if p.isDead() {
			return 0, unavailable(p.why())
		}
		part := rest[:min(len(rest), chunk)]
		p.tell(&request{op: opWrite, fd: fd, a: 1, data: part})
		rest = rest[len(part):]
	}
	return len(buf), nil
}

func (c calls) Seek(fd int, off int64, whence int) (int64, error) {
	r, err := c.ask(&request{op: opSeek, fd: fd, a: off, b: int64(whence)}, nil)
	if _, _, o, kerr := c.known(fd); kerr == nil && off == 0 && whence == io.SeekStart {
		atomic.StoreInt64(&o.pos, 0)
	}
	return r.n, err
}

func (c calls) Fgetxattr(fd int, name string, p []byte) (int, error) {
	if w, own, err := c.s.of(fd); err == nil && name == "" && w.fresh(own, func(o *opened) (bare bool) {
		bare, o.bare = o.bare, false
		return bare
	}) {
		return 0, nil
	}
	r, err := c.ask(&request{op: opGetxattr, fd: fd, name: name, b: int64(len(p))}, p)
	return int(r.n), err
}
