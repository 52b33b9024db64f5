//go:build !amd64 || purego || noasm

package match

import "unsafe"

// vectors says whether pairScan and maskScan may be called: nowhere but on amd64.
func vectors() bool { return false }

func pairScan(unsafe.Pointer, int, *pair) int { return -1 }

func maskScan(unsafe.Pointer, int, int, int, *[96]byte, *blockHits, int) (int, int) { return 0, 0 }
