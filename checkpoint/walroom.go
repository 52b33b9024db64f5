package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"modernc.org/sqlite"
)

// Say a commit makes the log longer. Then the file system writes down the new length too, and a
// commit beside a file that is being written and synced waits for that twice. So the keeper makes
// the log long before it is needed, and commits write over what is there. SQLite takes what follows
// the last frame for the rest of an older log.
const (
	walRoom      = 8 << 20 // what the commits between two transfers take
	walRoomAfter = 4       // saves: a process that lives for one call does not pay for it
)

// The log is part of the store that MaxBytes bounds. It may take an eighth, within these limits; of
// a very small store a third.
const (
	logMost  = 64 << 20
	logLeast = 384 << 10
	logShare = 8
)

func (l Limits) logMost() int64 {
	return min(max(l.MaxBytes/logShare, min(logLeast, l.MaxBytes/3)), logMost)
}

// indexes gives the bytes of the index of a log of that length, and of the small files of the store.
func indexes(log int64) int64 { return slack + log/512 }

// besideLog gives the part of MaxBytes for catalog and contents.
func (l Limits) besideLog() int64 { return l.MaxBytes - l.logMost() - indexes(l.logMost()) }

// The bytes that a transaction writes to the log are known only when it is committed, and then they are there.
// These bound it from above, in pages.
const (
	page        = 4 << 10
	frame       = page + 24
	savePages   = 40 // of a save, beside its contents
	changePages = 3  // of each of its changes
	rowPages    = 3  // of a checkpoint that goes, or a content
)

// growth is the most that a transaction adds: to the log, to the database, and in files beside it.
// The files are there already.
type growth struct{ log, db, files int64 }

// grow is the growth by a save with so many changes, and contents of so many bytes.
func grow(changes int, contents, files int64) growth {
	bytes := contents + contents/64
	log := int64(savePages+changePages*changes) * frame
	return growth{bytes + log, bytes + int64(slack+changes*page), files}
}

// small is the growth by a transaction that writes a few rows.
var small = growth{log: 24 * frame}

var logWait = 5 * time.Second // for whoever keeps the log from being emptied; a var for tests

// within begins a writing transaction that keeps to MaxBytes whatever it adds up to g. It empties
// the log for it. It waits for those who read an older state only where there is no room beside
// their log. A save that does not fit beside an empty log is a *FullError.
//
// What other saves have written to files of their own by then is not counted.
func (c *committer) within(ctx context.Context, g growth) error {
	tried := false
	for start, pause := time.Now(), time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		if err := c.exec(ctx, "BEGIN IMMEDIATE"); err != nil {
			return named(err)
		}
		log, over, full, err := c.over(ctx, g)
		if err == nil && over <= 0 && (tried || log+g.log <= c.held.limits.logMost()) {
			return nil
		}
		if err := errors.Join(err, c.exec(ctx, "ROLLBACK")); err != nil {
			return err
		}
		if most := c.held.limits.MaxBytes; full > 0 {
			return &FullError{most + full, most}
		}
		emptied, err := c.emptyLog(ctx)
		if err != nil {
			return err
		}
		if !emptied && over > 0 {
			if time.Since(start) > logWait {
				return fmt.Errorf("there is no room beside the log of the store, "+
					"and somebody keeps it from being emptied: %w", ErrBusy)
			}
			time.Sleep(pause)
		}
		tried = true
	}
}

// over says how long the log is, by how much the store may pass its bound with g, and by how much
// it would beside an empty log. Inside a writing transaction nobody else makes either longer. What
// only takes away never passes the bound beside an empty log: else a store that is over it could
// not be cleaned.
func (c *committer) over(ctx context.Context, g growth) (log, over, full int64, err error) {
	if log, err = c.db.logBytes(); err != nil {
		return 0, 0, 0, err
	}
	version, err := c.dataVersion()
	if err != nil {
		return 0, 0, 0, err
	}
	known := c.current && version == c.version
	if known {
		over, full, err = c.beyond(g, log)
	}
	if err == nil && (!known || over > 0) {
		if c.held, err = c.db.measure(ctx, c); err == nil {
			over, full, err = c.beyond(g, log)
		}
	}
	if g.db == 0 && full > 0 {
		over, full = over-full, 0
	}
	return log, over, full, err
}

// beyond is by how much the store passes its bound with g, beside its log and beside an empty one.
func (c *committer) beyond(g growth, log int64) (over, full int64, err error) {
	l := &c.held.limits
	db := max(c.held.pages, c.held.pages-c.held.free+g.db)
	full = db + c.held.files + g.files + indexes(max(l.logMost(), log+g.log)) + g.log - l.MaxBytes
	if over = full + log; log > 0 {
		// The file becomes shorter only with the log: pages that the catalog gave back are still there.
		fi, err := os.Lstat(filepath.Join(c.db.dir, fileName))
		if err != nil {
			return 0, 0, err
		}
		over += max(0, fi.Size()-db)
	}
	return over, full, nil
}

// emptyLog moves what the log holds to the database and makes it as short as can be. It waits for
// nobody: emptied is false when somebody reads an older state, or moves it too. It is for the one
// who runs a batch, outside of transactions.
func (c *committer) emptyLog(ctx context.Context) (emptied bool, err error) {
	if c.doubt != nil {
		return false, nil
	}
	if _, err := c.conn.ExecContext(ctx, "PRAGMA busy_timeout(0)"); err != nil {
		return false, err
	}
	emptied, err = c.moveLog(ctx, "TRUNCATE")
	if e, ok := errors.AsType[*sqlite.Error](err); ok && e.Code()&0xff == 5 { // SQLITE_BUSY
		emptied, err = false, nil
	}
	if err == nil && emptied {
		nudge(c.db.keep.long)
	}
	_, err2 := c.conn.ExecContext(ctx, "PRAGMA busy_timeout("+busyTimeout+")")
	return emptied, errors.Join(err, err2)
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

// lengthen makes the log walRoom long, or half of its share.
func (d *DB) lengthen(ctx context.Context) error {
	room := min(walRoom, d.keep.limits.Load().logMost()/2)
	if room < walRoom/8 {
		return nil // it is emptied again too soon
	}
	// Inside a writing transaction nobody else appends to the log or starts it anew.
	write := func(context.Context, *committer) error {
		f, err := os.OpenFile(filepath.Join(d.dir, fileName+"-wal"), os.O_WRONLY, 0)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		fi, err := f.Stat()
		if err == nil && fi.Size() > 0 && fi.Size() < room {
			_, err = f.WriteAt(make([]byte, room-fi.Size()), fi.Size())
		}
		return errors.Join(err, f.Close())
	}
	return d.com.submit(ctx, &job{kind: single, grow: growth{log: room}, run: write})
}
