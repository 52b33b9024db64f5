//go:build unix

package doctor

import (
	"os"
	"syscall"
)

// ours says whether a file is root's or of the account that this runs as.
func ours(info os.FileInfo) bool {
	s, ok := info.Sys().(*syscall.Stat_t)
	return !ok || s.Uid == 0 || int(s.Uid) == os.Geteuid()
}

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
