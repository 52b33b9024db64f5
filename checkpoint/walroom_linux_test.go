package checkpoint_test

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// movesTheLog holds the lock of whoever moves the log to the database, until release.
func movesTheLog(t *testing.T, dir string) (release func()) {
	t.Helper()
	const checkpointer = 121 // WAL_CKPT_LOCK in the file of the log's index
	f, err := os.OpenFile(filepath.Join(dir, "checkpoints.db-shm"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	lock := unix.Flock_t{Type: unix.F_WRLCK, Start: checkpointer, Len: 1}
	if err := unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLKW, &lock); err != nil {
		t.Fatal(err)
	}
	return func() {
		lock.Type = unix.F_UNLCK
		if err := unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &lock); err != nil {
			t.Fatal(err)
		}
		// Not closed: that would take the locks of SQLite in this process from the file.
		shmFiles = append(shmFiles, f)
	}
}

var shmFiles []*os.File
