//go:build linux && !rooted

package sandbox

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"slices"
	"sync"
)

// protocol is the version of the frames. A worker of another one is refused.
const protocol = 5

// A frame is the length of its rest (4 bytes, little endian), the number of the request (4),
// and a request or a reply. Requests with number 0 are not answered.
const (
	chunk    = 256 << 10 // content in one frame
	maxFrame = chunk + 64<<10
	maxText  = 4096 // a path, a name, the name of an attribute
)

// op is the operation that a request asks for.
type op byte

const (
	opHello op = iota + 1
	opPing
	opCancel // the request whose number is a
	opOpen2
	opOpen
	opReopen
	opClose
	opName
	opReadlink
	opStatx
	opMagic
	opAccess
	opGetdents
	opPread
	opWrite
	opSeek
	opGetxattr
	opSetxattr
	opRemovexattr
	opChown
	opChmodPath
	opTouch
	opFallocate
	opTruncate
	opFsync
	opLink
	opRename
	opUnlink
	opMkdir
	opSymlink
	opLease
	opMounts
	opInotify
	opWatch
	opUnwatch
	opEvents
	opWait
	opSearch
)

// request is one call: a, b and c are its numbers, whatever they mean.
type request struct {
	op         op
	fd, dir    int
	a, b, c    int64
	name, text string
	data       []byte
}

// reply is the answer to a request.
type reply struct {
	errno uint32
	bits  byte
	n     int64
	stat  stat
	magic uint32
	at    int64 // the number of the list of mounts
	text  string
	data  []byte
	room  []byte // of the worker, for data
}

// The bits of a reply.
const (
	hasStat  = 1 << iota
	hasText  // the name of what was opened, by which text is known to be one
	hasMagic // of what was opened
	hasData  // all that is in the file that was opened
	steady   // stat is still true after data was read
	noAttrs  // what was opened has no attributes
	mounts   // at
	more     // another frame of this reply follows
)

// stat has the fields of statx in the order of the system's.
type stat [18]uint64

// errNonsense is the error of a message that no worker of ours sends.
var errNonsense = errors.New("it answered what no worker answers")

// order is the order of the bytes of a number.
var order = binary.LittleEndian

// requestHead is the part of a request before its name, its text and its data.
type requestHead struct {
	Op         op
	FD, Dir    int32
	A, B, C    int64
	Name, Text uint16 // their lengths
}

// replyHead is the part of a reply before its text and its data.
type replyHead struct {
	Bits  byte
	Errno uint16
	Text  uint16 // its length
	Magic uint32
	N, At int64
	Stat  stat
}

func (q *request) append(b []byte) []byte {
	b, _ = binary.Append(b, order, &requestHead{q.op, int32(q.fd), int32(q.dir), q.a, q.b, q.c, uint16(len(q.name)), uint16(len(q.text))})
	return append(append(append(b, q.name...), q.text...), q.data...)
}

func (q *request) parse(b []byte) bool {
	var h requestHead
	n, err := binary.Decode(b, order, &h)
	if err != nil || h.Name > maxText || h.Text > maxText || len(b)-n < int(h.Name)+int(h.Text) {
		return false
	}
	name, rest := b[n:n+int(h.Name)], b[n+int(h.Name):]
	*q = request{op: h.Op, fd: int(h.FD), dir: int(h.Dir), a: h.A, b: h.B, c: h.C, name: string(name), text: string(rest[:h.Text]), data: rest[h.Text:]}
	return true
}

func (r *reply) append(b []byte) []byte {
	b, _ = binary.Append(b, order, &replyHead{r.bits, uint16(r.errno), uint16(len(r.text)), r.magic, r.n, r.at, r.stat})
	return append(append(b, r.text...), r.data...)
}

func (r *reply) parse(b []byte) bool {
	var h replyHead
	n, err := binary.Decode(b, order, &h)
	if err != nil || h.Errno >= 4096 || h.Text > maxText || len(b)-n < int(h.Text) {
		return false
	}
	rest := b[n:]
	r.bits, r.errno, r.magic, r.n, r.at, r.stat = h.Bits, uint32(h.Errno), h.Magic, h.N, h.At, h.Stat
	r.text, r.data = string(rest[:h.Text]), rest[h.Text:]
	return true
}

// frames reads frames.
type frames struct {
	r   *bufio.Reader
	buf []byte
}

func newFrames(r io.Reader) *frames { return &frames{r: bufio.NewReaderSize(r, 64<<10)} }

var errFrame = errors.New("a frame of a length that none has")

// next gives the number and the rest of a frame; it holds until next is called again.
func (f *frames) next() (id uint32, body []byte, err error) {
	var head [8]byte
	if _, err = io.ReadFull(f.r, head[:]); err != nil {
		return 0, nil, err
	}
	n := order.Uint32(head[:])
	if n < 5 || n > maxFrame {
		return 0, nil, errFrame
	}
	f.buf = slices.Grow(f.buf[:0], int(n)-4)[:n-4]
	_, err = io.ReadFull(f.r, f.buf)
	return order.Uint32(head[4:]), f.buf, err
}

// sink writes frames, one at a time.
type sink struct {
	w io.Writer

	mu  sync.Mutex
	buf []byte
}

// add makes a frame of the bytes that fill appends; it goes with the next one.
func (s *sink) add(id uint32, fill func(b []byte) []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.frame(id, fill); len(s.buf) > 4096 {
		return s.flush()
	}
	return nil
}

// send writes the bytes that fill appends as one frame.
func (s *sink) send(id uint32, fill func(b []byte) []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.frame(id, fill)
	return s.flush()
}

func (s *sink) frame(id uint32, fill func(b []byte) []byte) {
	at := len(s.buf)
	b := order.AppendUint32(s.buf, 0)
	b = fill(order.AppendUint32(b, id))
	order.PutUint32(b[at:], uint32(len(b)-at-4))
	s.buf = b
}

// flush writes the frames that wait. s.mu is held.
func (s *sink) flush() error {
	_, err := s.w.Write(s.buf)
	s.buf = s.buf[:0]
	return err
}
