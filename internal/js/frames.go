package js

import (
	"bufio"
	"encoding/gob"
	"errors"
	"io"
	"sync"
	"time"
)

// A frame is one message between the parent and the worker. The field that is set says what it is: given
// {ID: 7, Call: &Request{Op: "readFile", Path: "a"}}, the call number 7, whose answer is {ID: 7, Reply: …}.
type frame struct {
	ID     int     // of Call and Reply
	Start  *Script // the first to the worker
	Call   *Request
	Alone  bool // until the answer to this Call comes the worker does nothing
	Reply  *Reply
	Wait   time.Duration // after which the worker wants a Ring; it forgets the last one
	Ring   bool
	Output string  // of the console
	End    *Result // the last of the worker
}

// maxData bounds the bytes of an answer: gob takes no message of a GB.
const maxData = 512 << 20

// framer writes frames, for several goroutines.
type framer struct {
	mu  sync.Mutex
	out *bufio.Writer
	enc *gob.Encoder
}

func newFramer(w io.Writer) *framer {
	f := &framer{out: bufio.NewWriterSize(w, 64<<10)}
	f.enc = gob.NewEncoder(f.out)
	return f
}

// hold keeps a frame until the next flush, unless there is much already.
func (f *framer) hold(one frame) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.enc.Encode(one)
}

func (f *framer) flush() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.out.Flush()
}

// send writes a frame, after the held ones.
func (f *framer) send(one frame) error {
	return errors.Join(f.hold(one), f.flush())
}

// unframer reads frames.
type unframer struct{ *gob.Decoder }

func newUnframer(r io.Reader) unframer {
	return unframer{gob.NewDecoder(bufio.NewReaderSize(r, 64<<10))}
}

// next reads one frame; io.EOF is the end, also in the middle of one, whose writer was killed.
func (u unframer) next() (f frame, err error) {
	if err = u.Decode(&f); errors.Is(err, io.ErrUnexpectedEOF) {
		err = io.EOF
	}
	return f, err
}

var errBadFrame = errors.New("a frame that nobody waits for")
