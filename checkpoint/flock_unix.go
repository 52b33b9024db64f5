//go:build unix

package checkpoint

import (
	"os"

	"golang.org/x/sys/unix"
)

// tryLock takes the file's lock if nobody has it. Closing the file, or the death of the process, gives it back.
func tryLock(f *os.File) (bool, error) { return flock(f, unix.LOCK_EX) }

// tryLockShared takes it beside others who do the same.
func tryLockShared(f *os.File) (bool, error) { return flock(f, unix.LOCK_SH) }

func flock(f *os.File, how int) (bool, error) {
	for {
		switch err := unix.Flock(int(f.Fd()), how|unix.LOCK_NB); err {
		case nil:
			return true, nil
		case unix.EWOULDBLOCK:
			return false, nil
		case unix.EINTR:
		default:
			return false, err
		}
	}
}
