//go:build !rooted

package sandbox

import (
	"errors"

	"golang.org/x/sys/unix"
)

func (c calls) Fsetxattr(fd int, name string, value []byte) error {
	return c.change(&request{op: opSetxattr, fd: fd, name: name, data: value})
}

func (c calls) Fremovexattr(fd int, name string) error {
	return c.change(&request{op: opRemovexattr, fd: fd, name: name})
}

// change is ask for calls that answer nothing.
func (c calls) change(q *request) error {
	_, err := c.ask(q, nil)
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

// two makes a call on two descriptors, which have to be of one worker.
func (c calls) two(q *request) error {
	p, fd, err := c.s.of(q.fd)
	if err != nil {
		return err
	}
	o, dir, err := c.s.of(q.dir)
	if err != nil {
		return err
	}
	if o != p {
		return unavailable(errors.New("the worker that had it open has ended"))
	}
	q.fd, q.dir = fd, dir
	_, err = p.done(q, nil)
	return err
}

func (c calls) Linkat(a int, from string, b int, to string) error {
	return c.two(&request{op: opLink, fd: a, text: from, dir: b, name: to})
}

func (c calls) Renameat2(a int, from string, b int, to string, flags uint) error {
	return c.two(&request{op: opRename, fd: a, text: from, dir: b, name: to, a: int64(flags)})
}

func (c calls) Unlinkat(dir int, name string, flags int) error {
	return c.below(&request{op: opUnlink, dir: dir, name: name, a: int64(flags)})
}

func (c calls) Mkdirat(dir int, name string, mode uint32) error {
	return c.below(&request{op: opMkdir, dir: dir, name: name, a: int64(mode)})
}

func (c calls) Symlinkat(target string, dir int, name string) error {
	return c.below(&request{op: opSymlink, dir: dir, name: name, text: target})
}

// below makes a call on a name.
func (c calls) below(q *request) error {
	p, dir, err := c.s.of(q.dir)
	if err != nil {
		return err
	}
	q.dir = dir
	_, err = p.done(q, nil)
	return err
}

func (c calls) Lease(fd int) error { return c.change(&request{op: opLease, fd: fd}) }

func (c calls) User() (uid, gid int, groups []int) {
	h := c.s.Hello()
	return h.UID, h.GID, h.Groups
}
