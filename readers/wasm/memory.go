package wasm

import (
	"runtime"

	"github.com/tetratelabs/wazero/experimental"
)

// MemoryStep is up to where the memory of a sandbox grows by doubling.
const MemoryStep = 64 << 20

// memory is that of a WebAssembly module. Left to itself the engine copies it with each growth by a
// quarter, and what lies behind fills the heap with several times its cap. Here it is doubled at
// first, and then given all that it may have, of which the system counts only what is written to.
// So cap plus MemoryStep is all that it takes.
type memory struct {
	b   []byte
	max uint64
}

// NewMemory is for experimental.MemoryAllocatorFunc: memory of at most so many bytes.
func NewMemory(_, most uint64) experimental.LinearMemory { return &memory{max: most} }

func (m *memory) Reallocate(size uint64) []byte {
	if size > uint64(cap(m.b)) {
		have := max(size, 2*uint64(cap(m.b)))
		if have > MemoryStep {
			runtime.GC() // of an earlier sandbox nothing may be left
			have = max(size, m.max)
		}
		grown := make([]byte, size, have)
		copy(grown, m.b)
		m.b = grown
	}
	m.b = m.b[:size]
	return m.b
}

func (m *memory) Free() { m.b = nil }
