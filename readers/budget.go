package readers

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"moltisfs/internal/share"
)

// DecoderMemory is about how many bytes all decoders of a process take together, whatever the number of Readers: images, PDFs,
// documents and what is compressed. One principal has half of it at the most, or one file that needs more. Who finds
// too little left waits, up to Config.Deadline, and in turn with other principals.
const DecoderMemory = 1 << 30

// What one decoder takes at most, beside images, whose pixels are counted.
const (
	documentMemory = 64 << 20
	unpackMemory   = 128 << 20
)

// decoders is one for the process, as its memory is.
var decoders = share.New(DecoderMemory)

// reserve takes room for a decoder that needs about so many bytes, and gives the function that frees it. Nobody may reserve twice.
func (r *Readers) reserve(ctx context.Context, what string, bytes int64) (free func(), err error) {
	bytes = min(bytes, r.config.Memory) // who needs more is alone; who has less memory takes a larger part of it
	bytes = int64(float64(bytes) / float64(r.config.Memory) * DecoderMemory)
	who := share.Of(ctx)
	if !decoders.Try(who, bytes) {
		inTime, cancel := context.WithTimeout(ctx, r.config.Deadline)
		defer cancel()
		began := time.Now()
		if err := decoders.Take(inTime, who, bytes); err != nil {
			if errors.Is(ctx.Err(), context.Canceled) {
				return nil, ctx.Err()
			}
			return nil, &Busy{What: what, Waited: time.Since(began)}
		}
		runtime.GC() // what others left behind is no room yet
	}
	return func() { decoders.Give(who, bytes) }, nil
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
