package checkpoint

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"modernc.org/sqlite"
)

// SQLite needs room even to read (its log and the index of that), and more to delete. So a file of no content is kept beside the store,
// and given back when the disk is full: then the store can still be read and cleaned. Until the file can be made again, nothing is
// saved, or the reserve would soon be used up.
const (
	reserveName  = "reserve"
	reserveBytes = 1 << 20
	tightRows    = 40 // a transaction, so that its part of the log fits into the reserve
)

// keepReserve makes the reserve unless it is there.
func (d *DB) keepReserve() error {
	name := filepath.Join(d.dir, reserveName)
	if fi, err := os.Lstat(name); err == nil && fi.Size() == reserveBytes {
		d.tight.Store(false)
		return nil
	}
	b := make([]byte, reserveBytes)
	rand.Read(b) // what a file system that compresses can't make smaller
	err := os.WriteFile(name, b, 0o600)
	if err != nil {
		os.Remove(name)
		return err
	}
	d.tight.Store(false)
	return nil
}

// withReserve runs fn, and again with the reserve given back if the disk was full.
func (d *DB) withReserve(fn func() error) error {
	err := fn()
	if err == nil || !diskFull(err) || os.Remove(filepath.Join(d.dir, reserveName)) != nil {
		return err
	}
	d.tight.Store(true)
	return fn()
}

// spareReserve refuses a save that would live on the reserve.
func (d *DB) spareReserve() error {
	if !d.tight.Load() {
		return nil
	}
	if err := d.keepReserve(); err != nil {
		return fmt.Errorf("saving checkpoint: %w", &DiskFullError{err})
	}
	return nil
}

// DiskFullError: there is no room on the disk of the store.
type DiskFullError struct{ Err error }

func (e *DiskFullError) Error() string {
	return "the disk of the checkpoint store is full: " + e.Err.Error()
}

func (e *DiskFullError) Unwrap() []error { return []error{syscall.ENOSPC, e.Err} }

// named makes a full disk, and a lock that lasts, recognisable to those who know nothing of SQLite.
func named(err error) error {
	if e, ok := errors.AsType[*sqlite.Error](err); ok && !errors.Is(err, ErrBusy) {
		if c := e.Code() & 0xff; c == 5 || c == 15 { // SQLITE_BUSY; SQLITE_PROTOCOL: the lock that only guards the log's index
			return fmt.Errorf("%w: %w", ErrBusy, err)
		}
	}
	if e := (*DiskFullError)(nil); err == nil || errors.As(err, &e) || !diskFull(err) {
		return err
	}
	return &DiskFullError{err}
}

func diskFull(err error) bool {
	var e *sqlite.Error
	if errors.As(err, &e) {
		// SQLITE_FULL, and what becomes of the index of the log: SQLITE_IOERR_SHMOPEN, _SHMSIZE and _SHMMAP.
		switch c := e.Code(); c {
		case 10 | 18<<8, 10 | 19<<8, 10 | 21<<8:
			return true
		default:
			return c&0xff == 13
		}
	}
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}
