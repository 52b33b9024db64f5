package serve

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"

	"moltisfs/internal/guardfs/flock"
)

const (
	fileName = "tokens.json"
	lockName = "tokens.lock"
	newName  = "tokens.new" // a next file that is not whole yet; whoever has the lock may take it
	maxFile  = 1 << 20
)

// readFile gives the whole file and what it is, nothing where there is none.
func readFile(dir string) ([]byte, fs.FileInfo, error) {
	name := filepath.Join(dir, fileName)
	f, err := os.OpenFile(name, os.O_RDONLY|openFlags, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, nil, err
	case !info.Mode().IsRegular():
		return nil, nil, fmt.Errorf("%s is not a file", name)
	case others(info, 0o077):
		return nil, nil, fmt.Errorf("%s is open to others (%s)", name, info.Mode())
	case info.Size() > maxFile:
		return nil, nil, fmt.Errorf("%s is too large", name)
	case info.Size() == 0:
		return nil, nil, fmt.Errorf("%s is damaged: it is empty", name)
	}
	raw := make([]byte, info.Size())
	_, err = io.ReadFull(f, raw)
	return raw, info, err
}

// unchanged says whether the file is still the one that was read.
func unchanged(dir string, seen fs.FileInfo) bool {
	now, err := os.Lstat(filepath.Join(dir, fileName))
	return err == nil && os.SameFile(now, seen) && now.Mode() == seen.Mode() &&
		now.Size() == seen.Size() && now.ModTime().Equal(seen.ModTime())
}

// checkDir refuses a directory in which others could put another file in the place of ours.
func checkDir(dir string) error {
	info, err := os.Stat(dir)
	if err == nil && others(info, 0o022) {
		err = fmt.Errorf("others may write in %s (%s)", dir, info.Mode())
	}
	return err
}

// others says whether others than its owner may do with a file what the bits say.
func others(info fs.FileInfo, bits fs.FileMode) bool {
	return runtime.GOOS != "windows" && info.Mode().Perm()&bits != 0 // there they say nothing
}

// locked does something while no other process does so.
func locked(dir string, do func() error) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	lock, err := os.OpenFile(filepath.Join(dir, lockName), os.O_RDWR|os.O_CREATE|openFlags, 0o600)
	if err != nil {
		return err
	}
	defer flock.Close(lock) // gives the lock back
	if err := flock.Lock(lock); err != nil {
		return err
	}
	return do()
}

// replaceFile puts raw in the place of the file. The lock is held.
func replaceFile(dir string, raw []byte) error {
	name := filepath.Join(dir, newName)
	if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL|openFlags, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(raw)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(name, filepath.Join(dir, fileName))
	}
	if err != nil {
		return errors.Join(err, os.Remove(name))
	}
	// A token that was revoked must not be back after a power cut.
	if d, err := os.Open(dir); err == nil {
		_ = d.Sync() // not every system can
		_ = d.Close()
	}
	return nil
}
