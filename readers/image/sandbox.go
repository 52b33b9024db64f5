package image

import (
	"context"
	"encoding/binary"
	"errors"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"moltisfs/readers/unreadable"
	"moltisfs/readers/wasm"
)

// sandboxMemory bounds what a decoder may take.
const sandboxMemory = 512 << 20

// sandbox calls into one instance of a decoder. After the first error nothing is called any more.
type sandbox struct {
	ctx context.Context
	mod api.Module
	err error
}

// newSandbox starts a decoder in a worker process. To be cut off at a deadline, WebAssembly has to
// look at the clock in every loop, which makes these decoders four times slower; a process can be
// killed.
func newSandbox(cache string, gzipped []byte) (*sandbox, error) {
	ctx := context.Background()
	c := wazero.NewRuntimeConfig().WithMemoryLimitPages(sandboxMemory >> 16).
		WithCoreFeatures(api.CoreFeaturesV2 | experimental.CoreFeaturesThreads)
	run, code, err := wasm.Compile(ctx, c, cache, gzipped)
	if err != nil {
		return nil, err
	}
	if _, err := wasi_snapshot_preview1.Instantiate(ctx, run); err != nil {
		return nil, err
	}
	mod, err := run.InstantiateModule(ctx, code, wazero.NewModuleConfig().WithStartFunctions("_initialize"))
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

// put copies bytes into the sandbox.
func (s *sandbox) put(b []byte) uint32 {
	at := s.alloc(len(b))
	if s.err == nil && !s.mod.Memory().Write(at, b) {
		s.err = &unreadable.Limit{What: "image", Resource: "memory"}
	}
	return at
}

// decode calls the function of that name, which both decoders have, and reports whether it went
// well.
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
