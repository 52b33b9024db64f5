//go:build !amd64 || purego || noasm

package match

import "unsafe"

// hasVectors is false: there are kernels for amd64 only, and nothing below is called.
const hasVectors = false

func pairScan(unsafe.Pointer, int, *pair) int { return -1 }

func maskScan(unsafe.Pointer, int, int, int, *[96]byte, *blockHits, int) (int, int) { return 0, 0 }

func asciiScan(_ unsafe.Pointer, n int) int { return n }
