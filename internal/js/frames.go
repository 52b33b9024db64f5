package js

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
)

// A frame is four bytes of length (little-endian), its kind, and the rest.
const (
	frameStart  = 'S' // Script, as JSON
	frameCall   = 'C' // see appendCall
	frameLone   = 'L' // a call, and until its answer comes the worker does nothing
	frameReply  = 'R' // number of the call, kind, data
	frameWait   = 'W' // nanoseconds, after which the worker wants a frameRing; it forgets the last one
	frameRing   = 'T'
	frameOutput = 'O' // what the console says
	frameEnd    = 'E' // Result, as JSON

	maxFrame = 256 << 20
	maxHeld  = 64 << 10
)

// framer collects frames and lets them go in one write.
type framer struct {
	mu  sync.Mutex
	out io.Writer
	buf []byte
}

// send writes one frame, and what was held before it.
func (f *framer) send(kind byte, parts ...[]byte) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.add(kind, parts)
	return f.flush()
}

// hold keeps a frame for a while, unless there is much already.
func (f *framer) hold(kind byte, parts ...[]byte) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.add(kind, parts); len(f.buf) < maxHeld {
		return nil
	}
	return f.flush()
}

// release lets go what is held. If that is one call, and alone says so, its frame says it too.
func (f *framer) release(alone bool) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if alone && len(f.buf) > 0 && f.buf[4] == frameCall {
		f.buf[4] = frameLone
	}
	return f.flush()
}

func (f *framer) add(kind byte, parts [][]byte) {
	n := 1
	for _, p := range parts {
		n += len(p)
	}
	f.buf = append(binary.LittleEndian.AppendUint32(slices.Grow(f.buf, 4+n), uint32(n)), kind)
	for _, p := range parts {
		f.buf = append(f.buf, p...)
	}
}

func (f *framer) flush() (err error) {
	if len(f.buf) > 0 {
		_, err = f.out.Write(f.buf)
	}
	if f.buf = f.buf[:0]; cap(f.buf) > 4*maxHeld {
		f.buf = nil
	}
	return err
}

func (f *framer) json(kind byte, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return f.send(kind, b)
}

func (f *framer) reply(id uint32, r Reply) error {
	if len(r.Data) > maxFrame-64 {
		r = Reply{failed, []byte(`{"Message":"the answer is too large"}`)}
	}
	return f.send(frameReply, append(binary.LittleEndian.AppendUint32(nil, id), r.Kind), r.Data)
}

type unframer struct{ in *bufio.Reader }

func newUnframer(r io.Reader) *unframer { return &unframer{bufio.NewReaderSize(r, 16<<10)} }

// next is one frame; io.EOF is the end between two.
func (u *unframer) next() (kind byte, body []byte, err error) {
	var head [5]byte
	if _, err := io.ReadFull(u.in, head[:]); err != nil {
		if errors.Is(err, io.ErrUnexpectedEOF) {
			err = io.EOF // it was killed in the middle
		}
		return 0, nil, err
	}
	n := binary.LittleEndian.Uint32(head[:])
	if n < 1 || n > maxFrame {
		return 0, nil, fmt.Errorf("a frame of %d bytes", n)
	}
	body = make([]byte, n-1)
	if _, err := io.ReadFull(u.in, body); err != nil {
		return 0, nil, io.EOF
	}
	return head[4], body, nil
}

// appendCall writes a call: its number, whether it is recursive and binary, then the texts, each
// after its length. The data comes behind it.
func appendCall(to []byte, id uint32, q Request) []byte {
	to = binary.LittleEndian.AppendUint32(to, id)
	var flags byte
	if q.Recursive {
		flags |= 1
	}
	if q.Binary {
		flags |= 2
	}
	to = append(to, flags)
	for _, s := range []string{q.Op, q.Path, q.To, q.Encoding} {
		to = append(binary.LittleEndian.AppendUint32(to, uint32(len(s))), s...)
	}
	return to
}

var errBadFrame = errors.New("a call that is cut off")

func parseCall(b []byte) (id uint32, q Request, err error) {
	if len(b) < 5 {
		return 0, q, errBadFrame
	}
	id, q.Recursive, q.Binary = binary.LittleEndian.Uint32(b), b[4]&1 != 0, b[4]&2 != 0
	b = b[5:]
	for _, s := range []*string{&q.Op, &q.Path, &q.To, &q.Encoding} {
		if len(b) < 4 {
			return 0, q, errBadFrame
		}
		n := binary.LittleEndian.Uint32(b)
		if b = b[4:]; uint64(n) > uint64(len(b)) {
			return 0, q, errBadFrame
		}
		*s, b = string(b[:n]), b[n:]
	}
	q.Data = b
	return id, q, nil
}
