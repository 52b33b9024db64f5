//go:build unix

package audit

import (
	"io/fs"
	"os"
	"syscall"
)

// A link in place of the log must not send the records elsewhere; a fifo must not block.
const openFlags = syscall.O_NOFOLLOW | syscall.O_NONBLOCK

// hasName says whether the open file of info still has a name anywhere.
func hasName(info fs.FileInfo) bool {
	s, ok := info.Sys().(*syscall.Stat_t)
	return !ok || s.Nlink > 0
}

func privateFile(f *os.File) error { return f.Chmod(0o600) }
