//go:build amd64 && !purego && !noasm

package match

import (
	"unsafe"

	"golang.org/x/sys/cpu"
)

// vectors gives the best level of this machine.
func vectors() level {
	switch {
	case cpu.X86.HasAVX2:
		return avx2
	case cpu.X86.HasSSSE3:
		return ssse3
	}
	return sse2 // every amd64 has it
}

// pairScan wants l.pairs().
func (l level) pairScan(p unsafe.Pointer, n int, q *pair) int {
	if l == avx2 {
		return pairScanAVX2(p, n, q)
	}
	return pairScanSSE2(p, n, q)
}

// maskScan wants l.masks().
func (l level) maskScan(
	p unsafe.Pointer, n, o1, o2 int, m *[96]byte, out *blockHits, room int,
) (count, at int) {
	if l == avx2 {
		return maskScanAVX2(p, n, o1, o2, m, out, room)
	}
	return maskScanSSSE3(p, n, o1, o2, m, out, room)
}

// asciiScan wants l == avx2.
func (l level) asciiScan(p unsafe.Pointer, n int) int { return asciiScanAVX2(p, n) }

//go:noescape
func pairScanAVX2(p unsafe.Pointer, n int, q *pair) int

//go:noescape
func pairScanSSE2(p unsafe.Pointer, n int, q *pair) int

//go:noescape
func maskScanAVX2(
	p unsafe.Pointer, n, o1, o2 int, m *[96]byte, out *blockHits, room int,
) (count, at int)

//go:noescape
func maskScanSSSE3(
	p unsafe.Pointer, n, o1, o2 int, m *[96]byte, out *blockHits, room int,
) (count, at int)

//go:noescape
func asciiScanAVX2(p unsafe.Pointer, n int) int
