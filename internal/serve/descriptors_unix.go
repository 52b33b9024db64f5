//go:build unix

package serve

import "syscall"

// Descriptors gives the number of files and connections that the process may have open.
func Descriptors() int {
	var most syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &most); err != nil {
		return 1024
	}
	return int(min(uint64(most.Cur), 1<<20))
}
