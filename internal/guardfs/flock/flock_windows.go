package flock

import (
	"os"

	"golang.org/x/sys/windows"
)

// NoFollow are flags for os.OpenFile; there are none here.
const NoFollow = 0

const (
	exclusive = windows.LOCKFILE_EXCLUSIVE_LOCK
	shared    = 0
	atOnce    = windows.LOCKFILE_FAIL_IMMEDIATELY
)

// lock locks a byte far behind what the file holds: on Windows a lock keeps others from reading.
func lock(f *os.File, how uint32) (bool, error) {
	at := windows.Overlapped{OffsetHigh: 1 << 8} // 1 TiB
	err := windows.LockFileEx(windows.Handle(f.Fd()), how, 0, 1, 0, &at)
	if err == windows.ERROR_LOCK_VIOLATION || err == windows.ERROR_IO_PENDING {
		return false, nil
	}
	return err == nil, err
}

func unlock(f *os.File) error {
	at := windows.Overlapped{OffsetHigh: 1 << 8}
	return windows.UnlockFileEx(windows.Handle(f.Fd()), 0, 1, 0, &at)
}
