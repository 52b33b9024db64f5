//go:build unix

package guardfs

import (
	"os"
	"syscall"
)

// Room is how many files more this process may have open at this moment, as far as that can be told.
func Room() int {
	const most = 1 << 30
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l); err != nil || l.Cur > most {
		return most
	}
	open := 64 // where nobody counts them
	for _, dir := range []string{"/proc/self/fd", "/dev/fd"} {
		if d, err := os.Open(dir); err == nil {
			names, err := d.Readdirnames(-1)
			d.Close()
			if err == nil {
				open = len(names)
				break
			}
		}
	}
	return max(int(l.Cur)-open, 0) //nolint:gosec // it is below most
}
