//go:build !rooted

package sandbox

import (
	"context"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"moltisfs/internal/guardfs"
)

// numberBits is how many bits of the number of a list of mounts are the worker's; the others say which worker it was.
const numberBits = 40

// Mounts asks only when no reply has told the number just now.
func (c calls) Mounts(seen int64) (text []byte, number int64, err error) {
	p, err := c.s.live()
	if err != nil {
		return nil, 0, err
	}
	turn, own := int64(p.turn)<<numberBits, seen&(1<<numberBits-1)
	if seen != turn|own {
		own = 0
	}
	if own == 0 || own != p.mounts.Load() || time.Now().UnixNano()-p.at.Load() > int64(moment) {
		r, err := p.done(&request{op: opMounts, a: own}, nil)
		if err != nil {
			return nil, 0, err
		}
		text, own = r.data, r.at
	}
	return text, turn | own, nil
}

// queue is a queue of changes inside.
type queue struct {
	s *Session
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
	return &queue{c.s, p, int(r.n)}, nil
}

func (q *queue) Add(dir int, mask uint32) (int, error) {
	p, dir, err := q.s.of(dir)
	if err == nil && p != q.p {
		err = unavailable(q.p.why())
	}
	if err != nil {
		return 0, err
	}
	r, err := p.done(&request{op: opWatch, fd: q.n, dir: dir, a: int64(mask)}, nil)
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

func (q *queue) Close() error {
	_, err := q.p.done(&request{op: opClose, fd: q.n}, nil)
	return err
}
