//go:build !rooted

package guardfs

import (
	"io/fs"
	"sync/atomic"
)

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
