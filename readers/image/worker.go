package image

import (
	"bytes"
	"compress/gzip"
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

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"moltisfs/internal/child"
	"moltisfs/readers/unreadable"
	"moltisfs/readers/wasm"
)

// The worker's protocol: a JSON request, and right behind it the file; back comes one JSON reply.

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
	Want
	Cache string // see [Decoders]
}

type workReply struct {
	Shown       *Shown
	Damaged     *unreadable.Damaged
	Unsupported *unreadable.Unsupported
	Limit       *unreadable.Limit
}

// boxed has the decoder of each format that is decoded in a worker: its code, and how to call it.
var boxed = map[string]struct {
	code   []byte
	decode func(*sandbox, []byte) (image.Image, error)
}{"avif": {avifWasm, decodeAVIF}, "heic": {heifWasm, decodeHEIC}}

// RunWorker does one piece of work for [Decoders] of another process. It bounds its own process:
// call it from nothing else's.
func RunWorker(in io.Reader, out io.Writer) error {
	head := json.NewDecoder(io.LimitReader(in, workerRequest))
	var q workRequest
	if err := head.Decode(&q); err != nil {
		return fmt.Errorf("reading the request: %w", err)
	}
	if q.Size < 0 || q.Size > workerFile {
		return fmt.Errorf("a file of %d bytes is too long", q.Size)
	}
	// The decoder's own code may be written to the cache. A stranger's file comes after the limits.
	box := boxed[q.Format]
	s, err := newSandbox(q.Cache, box.code)
	if err := child.Bound(workerMemory, workerCPU); err != nil {
		return fmt.Errorf("limiting the worker: %w", err)
	}
	data := make([]byte, q.Size)
	if _, err := io.ReadFull(io.MultiReader(head.Buffered(), in), data); err != nil {
		return fmt.Errorf("reading the file: %w", err)
	}
	var reply workReply
	var img image.Image
	if err == nil {
		img, err = box.decode(s, data)
	}
	if err == nil {
		turn := 1
		if q.Format == "avif" { // libheif has done it
			_, turn = boxes(data)
		}
		reply.Shown, err = fitted(context.Background(), img, turn, q.Want)
	}
	reply.fail(err)
	return json.NewEncoder(out).Encode(reply)
}

// fail puts err into the reply. An error of ours is not the file's, and it may name paths of ours.
func (w *workReply) fail(err error) {
	if err != nil && !errors.As(err, &w.Limit) && !errors.As(err, &w.Damaged) && !errors.As(err, &w.Unsupported) {
		w.Unsupported = tellOperator("the file", "its decoder does not work")
	}
}

func (w *workReply) error() error {
	switch {
	case w.Limit != nil:
		return w.Limit
	case w.Damaged != nil:
		return w.Damaged
	case w.Unsupported != nil:
		return w.Unsupported
	}
	return nil
}

// inWorker decodes a file in a new process and has it scaled there. A crash or an overrun there is an error here, and
// nothing else.
func (d *Decoders) inWorker(ctx context.Context, format string, file []byte, want Want) (*Shown, error) {
	what := strings.ToUpper(format) + " image"
	if len(boxed[format].code) == 0 {
		return nil, convertIt("this "+what, "this program was built without the tag nodynamic")
	}
	if len(d.Worker) == 0 {
		return nil, tellOperator(what, "no worker program is configured")
	}
	body, err := json.Marshal(workRequest{format, int64(len(file)), want, d.CacheDir})
	if err != nil {
		return nil, err
	}
	cmd := child.Command(ctx, d.Worker)
	cmd.WaitDelay = time.Second
	cmd.Stdin = io.MultiReader(bytes.NewReader(body), bytes.NewReader(file))
	var reply workReply
	stdout, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return nil, tellOperator(what, "the worker program does not start ("+err.Error()+")")
	}
	unread := json.NewDecoder(io.LimitReader(stdout, workerReply)).Decode(&reply)
	if unread != nil {
		stdout.Close() // nobody reads on: the worker must not wait for that
	}
	err = cmd.Wait()
	switch {
	case ctx.Err() != nil:
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return nil, &unreadable.Limit{What: "image", Resource: "time"}
		}
		return nil, ctx.Err()
	case errors.As(err, new(*exec.ExitError)):
		return nil, &unreadable.Limit{What: "image", Resource: "memory or time"}
	case err != nil || unread != nil || reply == (workReply{}):
		return nil, tellOperator(what, "the worker program does not answer as it should")
	}
	return reply.Shown, reply.error()
}

func tellOperator(what, why string) *unreadable.Unsupported {
	const do = "Tell the operator; nothing in the request can change it."
	return &unreadable.Unsupported{What: what, Why: why, Do: do}
}

// sandboxMemory is how many bytes a decoder may take.
const sandboxMemory = 512 << 20

// sandbox calls into one instance of a decoder. After the first error nothing is called any more.
type sandbox struct {
	ctx context.Context
	mod api.Module
	err error
}

// newSandbox starts the decoder gzipped in a worker process. To be cut off at a deadline, WebAssembly has to
// look at the clock in every loop, which makes these decoders four times slower; a process can be
// killed.
func newSandbox(cache string, gzipped []byte) (*sandbox, error) {
	ctx := context.Background()
	c := wazero.NewRuntimeConfig().WithMemoryLimitPages(sandboxMemory >> 16).
		WithCoreFeatures(api.CoreFeaturesV2 | experimental.CoreFeaturesThreads)
	zip, err := gzip.NewReader(bytes.NewReader(gzipped))
	if err != nil {
		return nil, err
	}
	code, err := io.ReadAll(zip)
	if err != nil {
		return nil, err
	}
	run, module, err := (&wasm.Cache{Dir: cache}).Compile(ctx, c, code)
	if err != nil {
		return nil, err
	}
	if _, err := wasi_snapshot_preview1.Instantiate(ctx, run); err != nil {
		return nil, err
	}
	mod, err := run.InstantiateModule(ctx, module, wazero.NewModuleConfig().WithStartFunctions("_initialize"))
	return &sandbox{ctx: ctx, mod: mod}, err
}

func (s *sandbox) alloc(n int) uint32 {
	if s.err != nil {
		return 0
	}
	got, err := s.mod.ExportedFunction("malloc").Call(s.ctx, uint64(n))
	if err == nil && (len(got) == 0 || got[0] == 0) {
		err = &unreadable.Limit{What: "image", Resource: "memory"}
	}
	if err != nil {
		s.err = err
		return 0
	}
	return uint32(got[0])
}

// put copies b into the sandbox and returns its address.
func (s *sandbox) put(b []byte) uint32 {
	at := s.alloc(len(b))
	if s.err == nil && !s.mod.Memory().Write(at, b) {
		s.err = &unreadable.Limit{What: "image", Resource: "memory"}
	}
	return at
}

// decode calls the function of that name, which both decoders have, and reports its success.
func (s *sandbox) decode(args ...uint64) bool {
	if s.err != nil {
		return false
	}
	got, err := s.mod.ExportedFunction("decode").Call(s.ctx, args...)
	s.err = err
	return err == nil && len(got) > 0 && got[0] != 0
}

// failed is the limit that the last call ran into, or else the given reason.
func (s *sandbox) failed(why error) error {
	var limit *unreadable.Limit
	if errors.As(s.err, &limit) {
		return limit
	}
	return why
}

// words reads numbers of four bytes.
func (s *sandbox) words(at uint32, n int) []uint32 {
	words := make([]uint32, n)
	if b, ok := s.mod.Memory().Read(at, uint32(4*n)); ok {
		for i := range words {
			words[i] = binary.LittleEndian.Uint32(b[4*i:])
		}
	}
	return words
}
