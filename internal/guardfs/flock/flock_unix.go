//go:build unix

package flock

import (
	"os"

	"golang.org/x/sys/unix"
)

// NoFollow are flags for os.OpenFile: a link in the place of a file of ours is refused, and a fifo is not waited for.
const NoFollow = unix.O_NOFOLLOW | unix.O_NONBLOCK

const (
	exclusive = unix.LOCK_EX
	shared    = unix.LOCK_SH
	atOnce    = unix.LOCK_NB
)

func lock(f *os.File, how int) (bool, error) {
	for tries := 0; ; tries++ {
		err := unix.Flock(int(f.Fd()), how)
		switch {
		case err == nil:
			return true, nil
		case err == unix.EWOULDBLOCK:
			return false, nil
		case err != unix.EINTR || tries >= 128:
			return false, err
		}
	}
}

func unlock(f *os.File) error {
	_, err := lock(f, unix.LOCK_UN)
	return err
}
