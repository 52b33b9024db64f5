package image

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"io"
	"os/exec"
	"strings"
	"time"

	"moltisfs/internal/child"
	"moltisfs/readers/unreadable"
)

// The worker's protocol: four bytes of length (little-endian), a JSON request, the file; back comes
// one JSON reply.

const (
	workerRequest = 64 << 10  // bytes of a request
	workerFile    = 512 << 20 // bytes of the file
	workerReply   = 256 << 20
	workerMemory  = 1 << 30 // bytes of data the worker may have, where the system can bound it
	workerCPU     = 15      // seconds
)

type workRequest struct {
	Format string // "avif" or "heic"
	Size   int64  // of the file
	Edge   int
	Most   int64
	Cache  string // a directory of our own for compiled decoders; empty: none
}

type workReply struct {
	Shown *Shown `json:",omitempty"`
	Kind  string `json:",omitempty"` // of an error: "damaged", "unsupported", "limit"
	What  string `json:",omitempty"`
	Why   string `json:",omitempty"`
	Do    string `json:",omitempty"`
	Is    int64  `json:",omitempty"`
	Max   int64  `json:",omitempty"`
}

// boxed are the formats that are decoded in a worker.
var boxed = map[string]struct {
	code   []byte
	decode func(*sandbox, []byte) (image.Image, error)
}{"avif": {avifWasm, decodeAVIF}, "heic": {heifWasm, decodeHEIC}}

// RunWorker does one piece of work for [Decoders] of another process. It bounds its own process:
// call it from nothing else's.
func RunWorker(in io.Reader, out io.Writer) error {
	return work(in, out, func() error { return child.Bound(workerMemory, workerCPU) })
}

func work(in io.Reader, out io.Writer, limit func() error) error {
	var head [4]byte
	if _, err := io.ReadFull(in, head[:]); err != nil {
		return fmt.Errorf("reading the request: %w", err)
	}
	n := binary.LittleEndian.Uint32(head[:])
	if n > workerRequest {
		return fmt.Errorf("a request of %d bytes is too long", n)
	}
	body := make([]byte, n)
	if _, err := io.ReadFull(in, body); err != nil {
		return fmt.Errorf("reading the request: %w", err)
	}
	var q workRequest
	if err := json.Unmarshal(body, &q); err != nil {
		return fmt.Errorf("reading the request: %w", err)
	}
	if q.Size < 0 || q.Size > workerFile {
		return fmt.Errorf("a file of %d bytes is too long", q.Size)
	}
	// The decoder's own code may be written to the cache. A stranger's file comes after the limits.
	box := boxed[q.Format]
	s, err := newSandbox(q.Cache, box.code)
	if err := limit(); err != nil {
		return fmt.Errorf("limiting the worker: %w", err)
	}
	data := make([]byte, q.Size)
	if _, err := io.ReadFull(in, data); err != nil {
		return fmt.Errorf("reading the file: %w", err)
	}
	var reply workReply
	var img image.Image
	if err == nil {
		img, err = box.decode(s, data)
	}
	if err == nil {
		reply.Shown, err = fitted(context.Background(), img, 1, q.Edge, q.Most)
	}
	reply.fail(err)
	return json.NewEncoder(out).Encode(reply)
}

// fail carries an error over to the other process.
func (w *workReply) fail(err error) {
	var damaged *unreadable.Damaged
	var unsupported *unreadable.Unsupported
	var limit *unreadable.Limit
	switch {
	case err == nil:
	case errors.As(err, &limit):
		w.Kind, w.What, w.Why, w.Is, w.Max = "limit", limit.What, limit.Resource, limit.Is, limit.Max
	case errors.As(err, &damaged):
		w.Kind, w.What, w.Why = "damaged", damaged.What, damaged.Why
	case errors.As(err, &unsupported):
		w.Kind, w.What, w.Why, w.Do = "unsupported", unsupported.What, unsupported.Why, unsupported.Do
	default:
		// Ours, not the file's, and it may name paths of ours.
		w.Kind, w.What, w.Why, w.Do = "unsupported", "the file", "its decoder does not work", "Tell the operator; nothing in the request can change it."
	}
}

func (w *workReply) error() error {
	switch w.Kind {
	case "":
		return nil
	case "limit":
		return &unreadable.Limit{What: w.What, Resource: w.Why, Is: w.Is, Max: w.Max}
	case "unsupported":
		return &unreadable.Unsupported{What: w.What, Why: w.Why, Do: w.Do}
	}
	return &unreadable.Damaged{What: w.What, Why: w.Why}
}

// inWorker decodes a file in a new process and has it scaled there. What crashes or overruns there
// is an error here, and nothing else.
func (d *Decoders) inWorker(ctx context.Context, format string, file []byte, edge int, most int64) (*Shown, error) {
	what := strings.ToUpper(format) + " image"
	if len(boxed[format].code) == 0 {
		return nil, convertIt("this "+what, "this program was built without the tag nodynamic")
	}
	if len(d.Worker) == 0 {
		return nil, tellOperator(what, "no worker program is configured")
	}
	body, err := json.Marshal(workRequest{format, int64(len(file)), edge, most, d.Cache.OnDisk()})
	if err != nil {
		return nil, err
	}
	cmd := child.Command(ctx, d.Worker)
	cmd.WaitDelay = time.Second
	cmd.Stdin = io.MultiReader(bytes.NewReader(binary.LittleEndian.AppendUint32(nil, uint32(len(body)))), bytes.NewReader(body), bytes.NewReader(file))
	var out limitedBuffer
	out.max = workerReply
	cmd.Stdout = &out
	err = cmd.Run()
	switch {
	case ctx.Err() != nil:
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return nil, &unreadable.Limit{What: "image", Resource: "time"}
		}
		return nil, ctx.Err()
	case err != nil:
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			return nil, &unreadable.Limit{What: "image", Resource: "memory or time"}
		}
		return nil, tellOperator(what, "the worker program does not start ("+err.Error()+")")
	}
	var reply workReply
	if err := json.Unmarshal(out.b.Bytes(), &reply); err != nil {
		return nil, tellOperator(what, "the worker program does not answer as it should")
	}
	return reply.Shown, reply.error()
}

// limitedBuffer refuses to grow beyond max.
type limitedBuffer struct {
	b   bytes.Buffer
	max int
}

func (l *limitedBuffer) Write(p []byte) (int, error) {
	if l.b.Len()+len(p) > l.max {
		return 0, errors.New("the reply is too long")
	}
	return l.b.Write(p)
}

func tellOperator(what, why string) error {
	const do = "Tell the operator; nothing in the request can change it."
	return &unreadable.Unsupported{What: what, Why: why, Do: do}
}
