package checkpoint

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// A commit that makes the log longer has the file system write down the new length too, and a commit beside a file that is
// being written and synced waits for that twice. So the keeper makes the log long before it is needed: from then on commits write
// over what is there. SQLite takes what follows the last frame for what it is, the rest of an older log.
const (
	walRoom      = 8 << 20 // what the commits between two transfers take
	walRoomAfter = 4       // saves: a process that lives for one call does not pay for it
)

// lengthen makes the log at least walRoom long.
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
		if err == nil && fi.Size() > 0 && fi.Size() < walRoom {
			_, err = f.WriteAt(make([]byte, walRoom-fi.Size()), fi.Size())
		}
		return errors.Join(err, f.Close())
	})
}
