//go:build !rooted

package sandbox

import (
	"context"
	"errors"
	"io/fs"

	"golang.org/x/sys/unix"
)

// make makes the call of q, if q is permitted. ctx ends those that may take long.
func (w *worker) make(ctx context.Context, q *request, r *reply) (err error) {
	switch q.op {
	case opPing:
	case opSearch:
		return w.searched(ctx, q, r)
	case opOpen2, opOpen, opReopen:
		return w.opened(q, r)
	case opClose:
		return w.close(q.fd)
	case opMounts:
		r.data, r.at, err = w.calls.Mounts(q.a)
		r.bits |= mounts
	case opInotify, opWatch, opUnwatch, opEvents, opWait:
		return w.watch(ctx, q, r)
	case opStatx, opReadlink:
		return w.look(q, r)
	default:
		if h, _ := w.get(q.fd); h != nil && h.leads != "" && (q.op == opGetdents || q.op == opSeek) {
			return w.above(h, q, r)
		}
		if err = w.permit(q); err == nil {
			err = w.call(q, r)
		}
	}
	return err
}

// opened opens an object and describes it in r, so that nobody has to ask at once.
func (w *worker) opened(q *request, r *reply) error {
	flags, fd, err := int(q.a), -1, error(nil)
	if q.op == opReopen {
		h, herr := w.get(q.fd)
		switch {
		case herr != nil:
			return herr
		case flags&unix.O_TRUNC != 0:
			return unix.EINVAL
		case !h.inside && flags&unix.O_PATH == 0:
			return unix.EACCES
		}
		fd, err = w.calls.Reopen(q.fd, flags)
	} else if err = w.mayOpen(q.dir, q.name, flags); err == nil && q.op == opOpen2 {
		fd, err = w.calls.Openat2(q.dir, q.name, uint64(q.a), uint64(q.b))
	} else if err == nil {
		fd, err = w.calls.Openat(q.dir, q.name, flags, uint32(q.b))
	}
	if err != nil {
		return err
	}
	if _, err = w.admit(fd, flags, r); err != nil {
		return err
	}
	if r.magic, err = w.calls.Magic(fd); err == nil {
		r.bits |= hasMagic
	}
	const plain = unix.O_PATH | unix.O_DIRECTORY | unix.O_WRONLY | unix.O_RDWR
	if r.stat[1]&unix.S_IFMT == unix.S_IFREG && flags&plain == 0 {
		w.begin(fd, r)
	}
	return w.told(r)
}

// begin reads the beginning of a file that was opened to be read, if that is all of it.
func (w *worker) begin(fd int, r *reply) {
	size := int(r.stat[2])
	if r.stat[2] > ahead {
		return
	}
	p := r.buffer(size + 1)
	for n := 0; n <= size; {
		m, err := w.calls.Pread(fd, p[n:], int64(n))
		if err != nil {
			return
		}
		if n += m; m == 0 {
			r.data, r.bits = p[:n], r.bits|hasData
			break
		}
	}
	if r.bits&hasData == 0 {
		return
	}
	var none [1]byte
	if n, err := w.calls.Fgetxattr(fd, "", none[:]); n == 0 && err == nil {
		r.bits |= noAttrs
	}
	x, err := w.calls.Statx(fd, "", unix.AT_EMPTY_PATH)
	now := fields(&x)
	now[10], now[11] = r.stat[10], r.stat[11] // to read may move the time of access
	if err == nil && now == r.stat {
		r.bits |= steady
	}
}

// ahead is how large a file may be that comes with its descriptor: bytes.
const ahead = 32 << 10

func (r *reply) buffer(n int) []byte {
	if cap(r.room) < n {
		r.room = make([]byte, max(n, chunk))
	}
	return r.room[:n]
}

// read answers with the bytes that call reads.
func (w *worker) read(r *reply, n int, call func(p []byte) (int, error)) error {
	if n < 0 || n > chunk {
		return unix.EINVAL
	}
	p := r.buffer(n)
	n, err := call(p)
	if err == nil {
		r.n, r.data = int64(n), p[:min(max(n, 0), len(p))]
	}
	return err
}

// told says which list of mounts there is now.
func (w *worker) told(r *reply) (err error) {
	if _, r.at, err = w.calls.Mounts(w.mounts.Load()); err == nil {
		w.mounts.Store(r.at)
		r.bits |= mounts
	}
	return err
}

// look describes the object at a name, or behind a descriptor. Of one outside of the root it tells no more than
// a handle does: the root itself has its name there.
func (w *worker) look(q *request, r *reply) error {
	h, err := w.get(q.fd)
	outside := err == nil && !h.inside && q.name != ""
	if err == nil && q.name != "" && !component(q.name) {
		err = unix.EINVAL
	} else if outside && q.op == opReadlink {
		err = unix.EACCES
	}
	if err != nil {
		return err
	}
	switch q.op {
	case opReadlink:
		r.text, err = w.calls.Readlinkat(q.fd, q.name)
	case opStatx:
		var x unix.Statx_t
		if x, err = w.calls.Statx(q.fd, q.name, int(q.a)); err == nil {
			if r.stat, r.bits = fields(&x), hasStat; q.name == "" {
				r.text, _ = w.calls.Name(q.fd) // it is asked for next as a rule
				r.text = r.text[:min(len(r.text), maxText)]
			}
		}
	}
	kind := r.stat[1] & unix.S_IFMT
	if err == nil && outside && kind != unix.S_IFDIR && kind != unix.S_IFLNK {
		*r, err = reply{}, unix.EACCES
	}
	return err
}

// permit is the error of a call that is not for its descriptors: of names outside of the root only that of an object and the type of its
// file system are told.
func (w *worker) permit(q *request) (err error) {
	switch q.op {
	case opName, opMagic:
		_, err = w.get(q.fd)
		return err
	case opAccess:
		if q.name != "." && !component(q.name) {
			return unix.EINVAL
		}
	case opUnlink, opMkdir, opSymlink:
		return w.dir(q.dir, q.name)
	case opLink, opRename:
		if err = w.dir(q.dir, q.name); err != nil || q.op == opLink && q.text == "" {
			break
		}
		return w.dir(q.fd, q.text)
	}
	if err == nil {
		err = w.in(q.fd)
	}
	return err
}

// call makes a call that is permitted.
func (w *worker) call(q *request, r *reply) (err error) {
	c := w.calls
	switch q.op {
	case opName:
		r.text, err = c.Name(q.fd)
	case opMagic:
		r.magic, err = c.Magic(q.fd)
	case opAccess:
		err = c.Faccessat(q.fd, q.name, uint32(q.a))
	case opGetdents:
		err = w.read(r, int(q.b), func(p []byte) (int, error) { return c.Getdents(q.fd, p) })
	case opPread:
		err = w.read(r, int(q.b), func(p []byte) (int, error) { return c.Pread(q.fd, p, q.a) })
	case opGetxattr:
		err = w.read(r, int(q.b), func(p []byte) (int, error) { return c.Fgetxattr(q.fd, q.name, p) })
	case opWrite:
		var n int
		n, err = c.Write(q.fd, q.data)
		r.n = int64(max(n, 0))
	case opSeek:
		r.n, err = c.Seek(q.fd, q.a, int(q.b))
	case opSetxattr:
		err = c.Fsetxattr(q.fd, q.name, q.data)
	case opRemovexattr:
		err = c.Fremovexattr(q.fd, q.name)
	case opChown:
		err = c.Fchown(q.fd, int(q.a), int(q.b))
	case opChmodPath:
		err = c.ChmodPath(q.fd, uint32(q.a))
	case opTouch:
		err = c.Touch(q.fd, unix.Timespec{Sec: q.a, Nsec: q.b})
	case opFallocate:
		err = c.Fallocate(q.fd, uint32(q.a), q.b, q.c)
	case opTruncate:
		err = c.Ftruncate(q.fd, q.a)
	case opFsync:
		err = c.Fsync(q.fd)
	case opLease:
		err = c.Lease(q.fd)
	case opLink:
		err = c.Linkat(q.fd, q.text, q.dir, q.name)
	case opRename:
		err = c.Renameat2(q.fd, q.text, q.dir, q.name, uint(q.a))
	case opUnlink:
		err = c.Unlinkat(q.dir, q.name, int(q.a))
	case opMkdir:
		err = c.Mkdirat(q.dir, q.name, uint32(q.a))
	case opSymlink:
		err = c.Symlinkat(q.text, q.dir, q.name)
	default:
		err = unix.ENOSYS
	}
	return err
}

// above lists a directory above the root: it shows the entry on the way there and nothing else.
func (w *worker) above(h *held, q *request, r *reply) error {
	switch {
	case q.op == opGetdents:
		return w.read(r, int(q.b), func(p []byte) (int, error) { return w.way(h, p), nil })
	case q.op == opSeek && q.a == 0:
		w.table.mu.Lock()
		h.listed = false
		w.table.mu.Unlock()
		return nil
	}
	return unix.EACCES
}

// watch keeps queues of changes. Each is an entry of the table, by a number that no descriptor has.
func (w *worker) watch(ctx context.Context, q *request, r *reply) error {
	if q.op == opInotify {
		queue, err := w.calls.Inotify()
		if err == nil {
			r.n = int64(w.hold(&held{queue: queue}))
		}
		return err
	}
	h, err := w.get(q.fd)
	switch {
	case err != nil:
		return err
	case h.queue == nil:
		return unix.EBADF
	}
	switch q.op {
	case opWatch:
		mask := uint32(q.a)
		if h, _ := w.get(q.dir); h != nil && h.leads != "" { // the names beside what leads on are not told
			mask = mask&^unix.IN_ALL_EVENTS | unix.IN_DELETE_SELF | unix.IN_MOVE_SELF
		} else {
			err = w.in(q.dir)
		}
		if err == nil {
			var id int
			id, err = h.queue.Add(q.dir, mask)
			r.n = int64(id)
		}
	case opUnwatch:
		err = h.queue.Remove(int(q.a))
	case opEvents:
		err = w.read(r, int(q.b), h.queue.Read)
	case opWait:
		err = h.queue.Wait(ctx)
		if ctx.Err() != nil || errors.Is(err, fs.ErrClosed) {
			err = unix.ECANCELED
		}
	}
	return err
}
