package readers

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/tetratelabs/wazero/experimental"
	"golang.org/x/sync/semaphore"
)

// DecoderMemory is about how many bytes all decoders of a process take together, whatever the number of Readers: images, PDFs,
// documents and what is compressed. Who finds too little left waits, up to Config.Deadline.
const DecoderMemory = 1 << 30

// What one decoder takes at most, beside images, whose pixels are counted.
const (
	documentMemory = 64 << 20
	unpackMemory   = 128 << 20
)

// decoders is one for the process, as its memory is.
var decoders = semaphore.NewWeighted(DecoderMemory)

// reserve takes room for a decoder that needs about so many bytes, and gives the function that frees it. Nobody may reserve twice.
func (r *Readers) reserve(ctx context.Context, what string, bytes int64) (free func(), err error) {
	bytes = min(bytes, DecoderMemory) // who needs more is alone
	if !decoders.TryAcquire(bytes) {
		inTime, cancel := context.WithTimeout(ctx, r.config.Deadline)
		defer cancel()
		began := time.Now()
		if err := decoders.Acquire(inTime, bytes); err != nil {
			if errors.Is(ctx.Err(), context.Canceled) {
				return nil, ctx.Err()
			}
			return nil, &Busy{What: what, Waited: time.Since(began)}
		}
		runtime.GC() // what others left behind is no room yet
	}
	return func() { decoders.Release(bytes) }, nil
}

// pixelMemory is how many bytes a pixel takes at most while an image is decoded and fitted: in a PNG of 16 bits and interlaced,
// a progressive JPEG of four inks, a TIFF of 16 bits. A worker decodes AVIF and HEIC, whatever their headers say.
var pixelMemory = map[string]int64{"png": 12, "jpeg": 24, "gif": 6, "webp": 16, "bmp": 8, "tiff": 16}

// memory is what reading the image takes at most.
func (p *picture) memory(pixels int64, raw []byte) int64 {
	per, ok := pixelMemory[p.name]
	switch {
	case !ok:
		return workerMemory
	case p.name == "jpeg" && !bytes.Contains(raw, []byte("\xff\xc2")): // not progressive
		per = 8
	}
	return per*pixels + int64(len(raw))
}

// Busy is a file for which no memory became free in time: others were being read.
type Busy struct {
	What   string
	Waited time.Duration
}

func (e *Busy) Error() string {
	return fmt.Sprintf("the memory for reading files was in use by other calls for %s, so the %s was not read", e.Waited.Round(time.Second/10), e.What)
}

// Hint says when to ask again.
func (e *Busy) Hint() string {
	return "Call again; read large images and documents one after the other, not side by side."
}

// sandboxStep is up to where a sandbox's memory grows by doubling.
const sandboxStep = 64 << 20

// sandboxRoom is the memory of a WebAssembly module. Left to itself the engine copies it with each growth by a quarter, and what lies
// behind fills the heap with several times its cap. Here it is doubled at first, and then given all that it may have, of which the
// system counts only what is written to. So cap plus sandboxStep is all that it takes.
type sandboxRoom struct {
	b   []byte
	max uint64
}

func newSandboxRoom(_, most uint64) experimental.LinearMemory { return &sandboxRoom{max: most} }

func (m *sandboxRoom) Reallocate(size uint64) []byte {
	if size > uint64(cap(m.b)) {
		room := max(size, 2*uint64(cap(m.b)))
		if room > sandboxStep {
			runtime.GC() // of an earlier sandbox nothing may be left
			room = max(size, m.max)
		}
		grown := make([]byte, size, room)
		copy(grown, m.b)
		m.b = grown
	}
	m.b = m.b[:size]
	return m.b
}

func (m *sandboxRoom) Free() { m.b = nil }
