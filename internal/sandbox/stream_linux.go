//go:build !rooted

package sandbox

import (
	"encoding/binary"
	"errors"
	"io"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// frames reads frames from a descriptor that blocks.
type frames struct {
	fd       int
	buf      []byte
	from, to int
}

var errFrame = errors.New("a frame of a length that none has")

// next gives the number and the rest of a frame; it holds until next is called again.
func (f *frames) next() (id uint32, body []byte, err error) {
	if err := f.fill(4); err != nil {
		return 0, nil, err
	}
	n := int(binary.LittleEndian.Uint32(f.buf[f.from:]))
	if n < 5 || n > maxFrame {
		return 0, nil, errFrame
	}
	if err := f.fill(4 + n); err != nil {
		return 0, nil, err
	}
	b := f.buf[f.from+4 : f.from+4+n]
	f.from += 4 + n
	return binary.LittleEndian.Uint32(b), b[4:], nil
}

// fill makes sure that n bytes are there.
func (f *frames) fill(n int) error {
	if f.buf == nil {
		f.buf = make([]byte, 64<<10)
	}
	if f.from == f.to {
		f.from, f.to = 0, 0
	}
	if n > len(f.buf)-f.from {
		to := f.buf
		if n > len(to) {
			to = make([]byte, maxFrame+64<<10)
		}
		f.to = copy(to, f.buf[f.from:f.to])
		f.buf, f.from = to, 0
	}
	for f.to-f.from < n {
		m, err := unix.Read(f.fd, f.buf[f.to:])
		switch {
		case err == unix.EINTR:
		case err != nil:
			return err
		case m == 0:
			return io.EOF
		default:
			f.to += m
		}
	}
	return nil
}

// sink writes frames to a descriptor that blocks, one at a time.
type sink struct {
	mu  sync.Mutex
	fd  int
	buf []byte

	went atomic.Int64 // how much was taken
}

// add makes what fill appends a frame that goes with the next one.
func (s *sink) add(id uint32, fill func(b []byte) []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.frame(id, fill); len(s.buf) > 4096 {
		return s.flush()
	}
	return nil
}

// send writes what fill appends as one frame.
func (s *sink) send(id uint32, fill func(b []byte) []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.frame(id, fill)
	return s.flush()
}

func (s *sink) frame(id uint32, fill func(b []byte) []byte) {
	at := len(s.buf)
	b := binary.LittleEndian.AppendUint32(s.buf, 0)
	b = fill(binary.LittleEndian.AppendUint32(b, id))
	binary.LittleEndian.PutUint32(b[at:], uint32(len(b)-at-4))
	s.buf = b
}

// flush writes what there is.
func (s *sink) flush() error {
	b := s.buf
	s.buf = s.buf[:0]
	for len(b) > 0 {
		n, err := unix.Write(s.fd, b)
		switch {
		case err == unix.EINTR:
		case err != nil:
			return err
		default:
			b = b[n:]
			s.went.Add(int64(n))
		}
	}
	return nil
}
