package guardfs

import (
	"os"

	"golang.org/x/sys/windows"
)

// tryLock takes the lock if nobody has it. Closing the file, or the death of the process, gives it back. The locked
// byte is far behind the holder's name, because on Windows a lock keeps others from reading.
func tryLock(file *os.File) (bool, error) {
	at := windows.Overlapped{Offset: 1 << 20}
	err := windows.LockFileEx(windows.Handle(file.Fd()),
		windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, &at)
	if err == windows.ERROR_LOCK_VIOLATION || err == windows.ERROR_IO_PENDING {
		return false, nil
	}
	return err == nil, err
}
