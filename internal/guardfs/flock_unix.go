//go:build unix

package guardfs

import (
	"os"

	"golang.org/x/sys/unix"
)

// tryLock takes the lock if nobody has it. Closing the file, or the death of the process, gives it back.
func tryLock(file *os.File) (bool, error) {
	for try := 0; ; try++ {
		err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		switch {
		case err == nil:
			return true, nil
		case err == unix.EWOULDBLOCK:
			return false, nil
		case err != unix.EINTR || try >= 128:
			return false, err
		}
	}
}
