//go:build unix

package audit

import (
	"os"
	"syscall"
)

// A link in place of the log must not send the records elsewhere; a fifo must not block.
const openFlags = syscall.O_NOFOLLOW | syscall.O_NONBLOCK

// sizeAndName gives the size of an open file and whether it still has a name. It is asked after
// every record, hence by descriptor: os.File.Stat takes three times as long.
func sizeAndName(_ *os.File, fd uintptr) (size int64, named bool, err error) {
	var st syscall.Stat_t
	for {
		if err = syscall.Fstat(int(fd), &st); err != syscall.EINTR {
			return st.Size, st.Nlink > 0, err
		}
	}
}

func privateFile(f *os.File) error { return f.Chmod(0o600) }
