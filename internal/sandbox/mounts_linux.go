//go:build !rooted

package sandbox

import (
	"context"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"moltisfs/internal/guardfs"
)

// mountsFD marks what stands for the list of mounts, which is that of the worker of the moment.
const mountsFD = 1 << 30

// lists holds the askers for the mounts, and the answers that they got.
type lists struct {
	mu   sync.Mutex
	next int
	seen map[int]mountsSeen
}

type mountsSeen struct {
	turn    int
	version int64
}

func (c calls) OpenMounts() (int, error) {
	lists := &c.s.lists
	lists.mu.Lock()
	defer lists.mu.Unlock()
	if lists.seen == nil {
		lists.seen = map[int]mountsSeen{}
	}
	lists.next = (lists.next + 1) % mountsFD
	lists.seen[lists.next] = mountsSeen{}
	return mountsFD | lists.next, nil
}

func (s *Session) forgetMounts(fd int) {
	s.lists.mu.Lock()
	delete(s.lists.seen, fd&^mountsFD)
	s.lists.mu.Unlock()
}

// MountsChanged asks only when no reply has told it just now.
func (c calls) MountsChanged(fd int) (bool, error) {
	p, err := c.s.live()
	if err != nil {
		return false, err
	}
	if time.Now().UnixNano()-p.at.Load() > int64(moment) {
		if _, err := p.done(&request{op: opMounts}, nil); err != nil {
			return false, err
		}
	}
	now, lists := mountsSeen{p.turn, p.version.Load()}, &c.s.lists
	lists.mu.Lock()
	defer lists.mu.Unlock()
	changed := lists.seen[fd&^mountsFD] != now
	lists.seen[fd&^mountsFD] = now
	return changed, nil
}

func (c calls) mountinfo(buf []byte, off int64) (int, error) {
	p, err := c.s.live()
	if err == nil && off > endless/8 {
		err = p.nonsense()
	}
	if err != nil {
		return 0, err
	}
	buf = buf[:min(len(buf), chunk)]
	r, err := p.done(&request{op: opMountinfo, a: off, b: int64(len(buf))}, buf)
	return int(r.n), err
}

// queue is a queue of changes inside.
type queue struct {
	p *process
	n int
}

func (c calls) Inotify() (guardfs.Inotify, error) {
	p, err := c.s.live()
	if err != nil {
		return nil, err
	}
	r, err := p.done(&request{op: opInotify}, nil)
	if err != nil {
		return nil, err
	}
	return &watching{calls: c, queue: queue{p, int(r.n)}}, nil
}

type watching struct {
	calls calls
	queue
}

func (w *watching) Add(dir int, mask uint32) (int, error) {
	p, dir, err := w.calls.s.of(dir)
	if err == nil && p != w.p {
		err = unavailable(w.p.why())
	}
	if err != nil {
		return 0, err
	}
	r, err := p.done(&request{op: opWatch, fd: w.n, dir: dir, a: int64(mask)}, nil)
	return int(r.n), err
}

func (q *queue) Remove(id int) error {
	_, err := q.p.done(&request{op: opUnwatch, fd: q.n, a: int64(id)}, nil)
	return err
}

func (q *queue) Read(buf []byte) (int, error) {
	buf = buf[:min(len(buf), chunk)]
	r, err := q.p.done(&request{op: opEvents, fd: q.n, b: int64(len(buf))}, buf)
	return int(r.n), err
}

func (q *queue) Wait(ctx context.Context) error {
	r, err := q.p.ask(&request{op: opWait, fd: q.n}, nil, ctx)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err == nil && r.errno == uint32(unix.ECANCELED):
		err = os.ErrClosed
	case err == nil && r.errno != 0:
		err = unix.Errno(r.errno)
	}
	return err
}

func (q *queue) Close() error { return q.Remove(-1) }
