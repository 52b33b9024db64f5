package guardfs

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"moltisfs/internal/guardfs/flock"
)

// A Use is one of several uses of the thing that a key stands for, by this process or others. It ends with the process.
type Use struct {
	file *os.File
	path string
	what []byte
}

// Use begins a use of key. It waits, until ctx ends, for a Last of the same key. Abandoned gives the text what
// back, which is the same in all uses of the key.
func (l *Locks) Use(ctx context.Context, key string, what []byte) (*Use, error) {
	sum := sha256.Sum256([]byte(key))
	u := &Use{path: filepath.Join(l.dir, "use-"+hex.EncodeToString(sum[:16])), what: what}
	for {
		held, err := u.lock(flock.TryLockShared)
		if held || err != nil {
			return u, err
		}
		select {
		case <-time.After(time.Millisecond):
		case <-ctx.Done():
			return nil, &LockedError{Key: key, Holder: "the clearing up", Err: context.Cause(ctx)}
		}
	}
}

// lock opens the file and takes a lock of it that is not held otherwise.
func (u *Use) lock(try func(*os.File) (bool, error)) (held bool, err error) {
	if u.file, err = os.OpenFile(u.path, os.O_RDWR|os.O_CREATE, 0o600); err != nil {
		return false, fmt.Errorf("opening a file of uses: %w", err)
	}
	u.file.WriteAt(u.what, 0) //nolint:errcheck // where others have it locked, they have written it
	if held, err = try(u.file); held && err == nil {
		held, err = isAt(u.file, u.path) // the last one may have removed it
	}
	if !held || err != nil {
		u.file.Close() //nolint:errcheck // nothing was written to it
	}
	return held, err
}

// Last ends the use, and runs last if nobody else uses the key. A Use that begins meanwhile waits for it.
func (u *Use) Last(last func() error) error {
	flock.Close(u.file) //nolint:errcheck // closing lets go
	alone, err := u.lock(flock.TryLock)
	if !alone || err != nil {
		return err
	}
	defer flock.Close(u.file) //nolint:errcheck // nothing was written to it
	defer os.Remove(u.path)   //nolint:errcheck // while it is locked; where it stays it does no harm
	return last()
}

// Abandoned runs last for each key whose users were all killed, with their what, and forgets
// it where last succeeds.
func (l *Locks) Abandoned(last func(what []byte) error) error {
	files, _ := filepath.Glob(filepath.Join(l.dir, "use-*")) // it fails for bad patterns only
	var errs []error
	for _, path := range files {
		u := &Use{path: path}
		alone, err := u.lock(flock.TryLock)
		if !alone || err != nil {
			errs = append(errs, err)
			continue
		}
		what, err := os.ReadFile(path)
		if err == nil {
			err = last(what)
		}
		if err == nil {
			err = os.Remove(path)
		}
		flock.Close(u.file) //nolint:errcheck // nothing was written to it
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
