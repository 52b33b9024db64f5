package guardfs

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"moltisfs/internal/guardfs/flock"
)

// A Use says that somebody uses what a key stands for, beside others, also of other processes. It ends
// with the process too.
type Use struct {
	file *os.File
	path string
}

// Use begins one. It waits for who runs Last of the same key, until ctx ends.
func (l *Locks) Use(ctx context.Context, key string) (*Use, error) {
	sum := sha256.Sum256([]byte(key))
	u := &Use{path: filepath.Join(l.shared.dir, "use-"+hex.EncodeToString(sum[:16]))}
	for {
		held, err := u.lock(flock.TryLockShared)
		if held || err != nil {
			return u, err
		}
		select {
		case <-time.After(time.Millisecond):
		case <-ctx.Done():
			return nil, &LockedError{Key: key, Holder: "whoever clears it up", Err: context.Cause(ctx)}
		}
	}
}

// lock opens the file and takes a lock of it that is not held otherwise.
func (u *Use) lock(try func(*os.File) (bool, error)) (held bool, err error) {
	if u.file, err = os.OpenFile(u.path, os.O_RDWR|os.O_CREATE, 0o600); err != nil {
		return false, fmt.Errorf("opening a file of uses: %w", err)
	}
	if held, err = try(u.file); held && err == nil {
		held, err = isAt(u.file, u.path) // the last one may have removed it
	}
	if !held || err != nil {
		u.file.Close() //nolint:errcheck // nothing was written to it
	}
	return held, err
}

// Last ends it, and runs last if nobody else uses the key. Who begins to meanwhile waits for it.
func (u *Use) Last(last func() error) error {
	flock.Close(u.file) //nolint:errcheck // closing is what lets go
	alone, err := u.lock(flock.TryLock)
	if !alone || err != nil {
		return err
	}
	defer flock.Close(u.file) //nolint:errcheck // nothing was written to it
	defer os.Remove(u.path)   //nolint:errcheck // while it is locked; where it stays it does no harm
	return last()
}
