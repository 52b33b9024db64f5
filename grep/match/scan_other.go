//go:build !amd64 || purego || noasm

package match

import "unsafe"

// vectors gives the best level of this machine: there are kernels for amd64 only.
func vectors() level { return scalar }

func (level) pairScan(unsafe.Pointer, int, *pair) int { return -1 }

func (level) maskScan(unsafe.Pointer, int, int, int, *[96]byte, *blockHits, int) (int, int) {
	return 0, 0
}

func (level) asciiScan(_ unsafe.Pointer, n int) int { return n }
