//go:build amd64 && !purego && !noasm

package match

import (
	"unsafe"

	"golang.org/x/sys/cpu"
)

// hasVectors says that this machine can run the kernels below: they want AVX2.
var hasVectors = cpu.X86.HasAVX2

//go:noescape
func pairScan(p unsafe.Pointer, n int, q *pair) int

//go:noescape
func maskScan(
	p unsafe.Pointer, n, o1, o2 int, m *[96]byte, out *blockHits, room int,
) (count, at int)

//go:noescape
func asciiScan(p unsafe.Pointer, n int) int
