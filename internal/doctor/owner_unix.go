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
