//go:build unix

package audit

import (
	"os"
	"syscall"
)

// A link in place of the log must not send the records elsewhere; a fifo must not block.
const openFlags = syscall.O_NOFOLLOW | syscall.O_NONBLOCK

// look is asked before and after every record, hence by descriptor: os.File.Stat takes three times
// as long.
func look(_ *os.File, fd uintptr) (l looked, err error) {
	var st syscall.Stat_t
	for {
		if err = syscall.Fstat(int(fd), &st); err != syscall.EINTR {
			id := fileID{uint64(st.Dev), uint64(st.Ino)} //nolint:unconvert // narrower elsewhere
			return looked{st.Size, st.Nlink > 0, id}, err
		}
	}
}

func privateFile(f *os.File) error { return f.Chmod(0o600) }
