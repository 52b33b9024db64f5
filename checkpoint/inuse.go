package checkpoint

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"moltisfs/internal/guardfs/flock"
)

// Whoever has the store open holds a shared lock on this file, Repair the exclusive one. Repair
// reads the database and puts another in its place: what somebody committed in between would be
// lost.
const inUseFile = "in-use"

// holdOpen takes the lock; flock.Close gives it back. ErrInUse says that somebody else holds
// it in a way that excludes us.
func holdOpen(dir string, alone bool) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, inUseFile), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	lock := flock.TryLockShared
	if alone {
		lock = flock.TryLock
	}
	held, err := lock(f)
	if err == nil && !held {
		err = ErrInUse
		if !alone {
			err = fmt.Errorf("%w: it is being repaired", err)
		}
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// GoneError: the store was removed or moved while this process has it open. Nobody would find what
// is saved to it. It is usable again when it is put back.
type GoneError struct{ Dir string }

func (e *GoneError) Error() string {
	return "the checkpoint store " + e.Dir +
		" was removed, moved away or replaced while this process has it open"
}

// inPlace is a *GoneError unless the open catalog is still the one that others find. It costs one
// stat.
func (d *onDisk) inPlace() error {
	fi, err := os.Stat(filepath.Join(d.dir, fileName))
	if err == nil && os.SameFile(fi, d.file) {
		return nil
	}
	if err == nil || errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return &GoneError{d.dir}
	}
	return err
}

// noRoom reports whether a file could not be made because there is no room for it, or nothing may
// be written there. Such a store can still be read, and nobody can repair it meanwhile either.
func noRoom(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EROFS) ||
		errors.Is(err, syscall.EDQUOT)
}
