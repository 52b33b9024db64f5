//go:build unix

package doctor

import (
	"os"
	"syscall"
)

// links is how many names a file has; 0 when it is gone.
func links(path string) uint64 {
	info, err := os.Lstat(path)
	if err != nil {
		return 0
	}
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(s.Nlink)
	}
	return 0
}
