package checkpoint

import (
	"errors"
	"fmt"
	"syscall"

	"modernc.org/sqlite"
)

// DiskFullError: there is no room on the disk of the store. SQLite needs a little even to read, for
// its log and the log's index, and more to delete. Nothing is lost: all works again when there is
// room.
type DiskFullError struct{ Err error }

func (e *DiskFullError) Error() string {
	return "the disk of the checkpoint store is full: " + e.Err.Error()
}

func (e *DiskFullError) Unwrap() []error { return []error{syscall.ENOSPC, e.Err} }

// named makes a full disk, and a lock that lasts, recognisable to those who know nothing of SQLite.
func named(err error) error {
	if e, ok := errors.AsType[*sqlite.Error](err); ok && !errors.Is(err, ErrBusy) {
		// SQLITE_BUSY; SQLITE_PROTOCOL: the lock that only guards the log's index.
		if c := e.Code() & 0xff; c == 5 || c == 15 {
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
		// SQLITE_FULL. The others are what becomes of the log's index: SQLITE_IOERR_SHMOPEN, _SHMSIZE and
		// _SHMMAP.
		switch c := e.Code(); c {
		case 10 | 18<<8, 10 | 19<<8, 10 | 21<<8:
			return true
		default:
			return c&0xff == 13
		}
	}
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}
