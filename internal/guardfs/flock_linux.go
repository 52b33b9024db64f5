package guardfs

import (
	"os"

	"golang.org/x/sys/unix"
)

// tryLockByte takes the lock of one byte if nobody has it through another open file, also one of this process; shared, beside others who
// do the same. unlockBytes, or the death of the process, gives it back.
func tryLockByte(file *os.File, at int64, shared bool) (bool, error) {
	how := int16(unix.F_WRLCK)
	if shared {
		how = unix.F_RDLCK
	}
	for try := 0; ; try++ {
		lock := unix.Flock_t{Type: how, Start: at, Len: 1}
		err := unix.FcntlFlock(file.Fd(), unix.F_OFD_SETLK, &lock)
		switch {
		case err == nil:
			return true, nil
		case err == unix.EAGAIN || err == unix.EACCES:
			return false, nil
		case err != unix.EINTR || try >= 128:
			return false, err
		}
	}
}

// canLockBytes says whether the system knows such locks: all but those that only imitate Linux do.
func canLockBytes(file *os.File) bool {
	none := unix.Flock_t{Type: unix.F_UNLCK, Start: 2 * lockSlots, Len: 1}
	err := unix.FcntlFlock(file.Fd(), unix.F_OFD_SETLK, &none)
	return err != unix.EINVAL && err != unix.ENOSYS
}

// unlockBytes gives back all locks of bytes of a file. Closing alone would leave them held where another goroutine is just starting a program.
func unlockBytes(file *os.File) error {
	return unix.FcntlFlock(file.Fd(), unix.F_OFD_SETLK, &unix.Flock_t{Type: unix.F_UNLCK})
}
