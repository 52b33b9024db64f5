//go:build unix

package serve

import "syscall"

// A link in place of a file of ours must not lead elsewhere, and a fifo must not block.
const openFlags = syscall.O_NOFOLLOW | syscall.O_NONBLOCK

// Descriptors is how many files and connections the process may have open.
func Descriptors() int {
	var most syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &most); err != nil {
		return 1024
	}
	return int(min(uint64(most.Cur), 1<<20))
}
