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
const protocol = 3

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
	opListxattr
	opGetxattr
	opSetxattr
	opRemovexattr
	opChown
	opChmodPath
	opTouch
	opFallocate
	opTruncate
	opFsync
	opPublish
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
	then       []look // what goes with it, and is made after it
}

// reply is the answer to a request.
type reply struct {
	errno uint32
	bits  byte
	n     int64
	stat  stat
	magic uint32
	again int64 // the descriptor that data is read from, where n is a handle
	at    int64 // the number of the list of mounts
	text  string
	data  []byte
	room  []byte // of the worker, for data
}

// The bits of a reply.
const (
	hasStat  = 1 << iota // stat and magic
	hasText              // the name of what was opened, by which text is known to be one
	hasData              // all that is in the file that was opened
	atEnd                // stat was true before and after, and there are no attributes
	mounts               // at
	more                 // another frame of this reply follows
	readable             // again
)

// stat has the fields of statx in the order of the system's.
type stat [18]uint64

// errNonsense is the error of a message that no worker of ours sends.
var errNonsense = errors.New("it answered what no worker answers")

func (q *request) append(b []byte) []byte {
	b = append(b, byte(q.op))
	b = binary.AppendVarint(b, int64(q.fd))
	b = binary.AppendVarint(b, int64(q.dir))
	b = binary.AppendVarint(b, q.a)
	b = binary.AppendVarint(b, q.b)
	b = binary.AppendVarint(b, q.c)
	b = appendText(b, q.name)
	b = appendText(b, q.text)
	return append(b, q.data...)
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func (q *request) parse(b []byte) bool {
	if len(b) == 0 {
		return false
	}
	r := reading{b: b[1:], ok: true}
	q.op = op(b[0])
	q.fd, q.dir = int(r.varint()), int(r.varint())
	q.a, q.b, q.c = r.varint(), r.varint(), r.varint()
	q.name, q.text = r.text(), r.text()
	q.data = r.b
	return r.ok
}

func (r *reply) append(b []byte) []byte {
	b = append(b, r.bits)
	b = binary.AppendUvarint(b, uint64(r.errno))
	b = binary.AppendVarint(b, r.n)
	if r.bits&hasStat != 0 {
		for _, v := range r.stat {
			b = binary.AppendUvarint(b, v)
		}
		b = binary.AppendUvarint(b, uint64(r.magic))
	}
	if r.bits&readable != 0 {
		b = binary.AppendVarint(b, r.again)
	}
	if r.bits&mounts != 0 {
		b = binary.AppendVarint(b, r.at)
	}
	b = appendText(b, r.text)
	return append(b, r.data...)
}

func (r *reply) parse(b []byte) bool {
	if len(b) == 0 {
		return false
	}
	in := reading{b: b[1:], ok: true}
	r.bits = b[0]
	errno := in.uvarint()
	r.errno, r.n = uint32(errno), in.varint()
	if r.bits&hasStat != 0 {
		for i := range r.stat {
			r.stat[i] = in.uvarint()
		}
		r.magic = uint32(in.uvarint())
	}
	if r.bits&readable != 0 {
		r.again = in.varint()
	}
	if r.bits&mounts != 0 {
		r.at = in.varint()
	}
	r.text = in.text()
	r.data = in.b
	return in.ok && errno < 4096
}

// reading takes a frame apart; ok ends with the first thing that is none.
type reading struct {
	b  []byte
	ok bool
}

func (r *reading) uvarint() uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 {
		r.b, r.ok = nil, false
		return 0
	}
	r.b = r.b[n:]
	return v
}

// varint is the zigzag form of encoding/binary.
func (r *reading) varint() int64 {
	v := r.uvarint()
	return int64(v>>1) ^ -int64(v&1)
}

func (r *reading) text() string {
	n := r.uvarint()
	if n > maxText || n > uint64(len(r.b)) {
		r.b, r.ok = nil, false
		return ""
	}
	s := string(r.b[:n])
	r.b = r.b[n:]
	return s
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
	n := binary.LittleEndian.Uint32(head[:])
	if n < 5 || n > maxFrame {
		return 0, nil, errFrame
	}
	f.buf = slices.Grow(f.buf[:0], int(n)-4)[:n-4]
	_, err = io.ReadFull(f.r, f.buf)
	return binary.LittleEndian.Uint32(head[4:]), f.buf, err
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
	b := binary.LittleEndian.AppendUint32(s.buf, 0)
	b = fill(binary.LittleEndian.AppendUint32(b, id))
	binary.LittleEndian.PutUint32(b[at:], uint32(len(b)-at-4))
	s.buf = b
}

// flush writes the frames that wait. s.mu is held.
func (s *sink) flush() error {
	_, err := s.w.Write(s.buf)
	s.buf = s.buf[:0]
	return err
}
