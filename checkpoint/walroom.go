package checkpoint

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"modernc.org/sqlite"
)

// A commit that makes the log longer has the file system write down the new length too, and a commit beside a file that is
// being written and synced waits for that twice. So the keeper makes the log long before it is needed: from then on commits write
// over what is there. SQLite takes what follows the last frame for what it is, the rest of an older log.
const (
	walRoom      = 8 << 20 // what the commits between two transfers take
	walRoomAfter = 4       // saves: a process that lives for one call does not pay for it
)

// The log is part of the store that MaxBytes bounds. SQLite lets it grow to logMost while somebody writes all the time; that is little beside
// the default bound, and where it is more than a share of a smaller one the log is emptied sooner.
const (
	logMost  = 64 << 20
	logShare = 8
)

func (l Limits) logMost() int64 { return min(l.MaxBytes/logShare, logMost) }

// besideLog is what of MaxBytes is for catalog, indexes and contents.
func (l Limits) besideLog() int64 { return l.MaxBytes - l.logMost() }

// boundLog empties the log when it has passed its share. It waits for nobody: when somebody reads an older state it is tried again after the next
// commit. Only for the one who runs a batch, outside a transaction.
func (c *committer) boundLog(ctx context.Context) error {
	most := c.db.logMost.Load()
	if most >= logMost || c.doubt != nil || c.db.frozen {
		return nil
	}
	if n, err := c.db.logBytes(); err != nil || n <= most {
		return err
	}
	if _, err := c.conn.ExecContext(ctx, "PRAGMA busy_timeout(0)"); err != nil {
		return err
	}
	var busy, log, moved int
	err := c.conn.QueryRowContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)").Scan(&busy, &log, &moved)
	if e, ok := errors.AsType[*sqlite.Error](err); ok && e.Code()&0xff == 5 { // SQLITE_BUSY
		busy, err = 1, nil
	}
	if err == nil && busy == 0 {
		nudge(c.db.keep.long)
	}
	_, err2 := c.conn.ExecContext(ctx, "PRAGMA busy_timeout("+busyTimeout+")")
	return errors.Join(err, err2)
}

// logBytes is how long the log is, whatever of it is in use; 0 when there is none.
func (d *DB) logBytes() (int64, error) {
	fi, err := os.Lstat(filepath.Join(d.dir, fileName+"-wal"))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return fi.Size(), nil
}

// lengthen makes the log at least walRoom long, or half of its share.
func (d *DB) lengthen(ctx context.Context) error {
	// Inside a writing transaction nobody else appends to the log or starts it anew.
	return d.com.do(ctx, func(context.Context, *committer) error {
		f, err := os.OpenFile(filepath.Join(d.dir, fileName+"-wal"), os.O_WRONLY, 0)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		fi, err := f.Stat()
		room := min(walRoom, d.logMost.Load()/2)
		if err == nil && fi.Size() > 0 && fi.Size() < room {
			_, err = f.WriteAt(make([]byte, room-fi.Size()), fi.Size())
		}
		return errors.Join(err, f.Close())
	})
}
