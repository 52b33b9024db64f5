package checkpoint

// The directory of a store of one machine: how it is made, who has it open, and where a damaged one goes.

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"moltisfs/checkpoint/blob"
	"moltisfs/checkpoint/localdir"
	"moltisfs/internal/guardfs/flock"
)

const (
	fileName  = "checkpoints.db"
	blobsName = "blobs"
	asidePart = "damaged-" // a directory with what was there before, as
	asideName = "checkpoints"
)

// suspectFile is made when something of the catalog could not be read. The next Open looks at all of
// it then.
const suspectFile = "suspect"

// suspect notes for the next Open that the catalog is damaged, and why.
func (s *sqliteCatalog) suspect(why string) error {
	if s.frozen {
		return nil
	}
	return os.WriteFile(filepath.Join(s.dir, suspectFile), []byte(why+"\n"), 0o600)
}

// filesOf are the large contents of the store in dir.
func filesOf(dir string) *blob.Files { return &blob.Files{Dir: filepath.Join(dir, blobsName)} }

// prepareDir makes the directory, 0700, and the database file with the mode that SQLite then copies
// to its side files. A directory that is there stays as it is. fresh: nothing is in it yet.
func prepareDir(dir string) (fresh bool, err error) {
	unfit := func(path, why string) (bool, error) {
		return false, &fs.PathError{Op: "open", Path: path, Err: errors.New(why)}
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return false, err
	}
	fi, err := os.Lstat(dir)
	if err != nil {
		return false, err
	}
	if !fi.IsDir() {
		return unfit(dir, "not a directory of its own (a symbolic link?)")
	}
	if err := localdir.Own(fi); err != nil {
		return false, &fs.PathError{Op: "open", Path: dir, Err: err}
	}
	if kind, err := localdir.Network(dir); err != nil {
		return false, err
	} else if kind != "" {
		return false, &NetworkError{dir, kind}
	}
	// Its mode is its owner's business, as long as it holds others off.
	if fi.Mode().Perm()&0o002 != 0 && runtime.GOOS != "windows" {
		return unfit(dir, "anybody may write in it ("+fi.Mode().String()+")")
	}
	if err := os.MkdirAll(filepath.Join(dir, blobsName), 0o700); err != nil {
		return false, err
	}
	name := filepath.Join(dir, fileName)
	if fi, err = os.Lstat(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	if err != nil || fi.Size() == 0 {
		// Either nobody has come to use the store, or its catalog is lost: then there are contents.
		lost := false
		err := filesOf(dir).List(context.Background(), func(string, int64) error {
			lost = true
			return fs.SkipAll
		})
		if err != nil {
			return false, err
		}
		// Looked at again: another process may have made it meanwhile.
		if fi, err = os.Lstat(name); lost && (err != nil || fi.Size() == 0) {
			return false, fmt.Errorf("%w: it is empty, but there are contents of one", ErrDamaged)
		}
	}
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	switch {
	case err == nil:
		err := errors.Join(f.Sync(), f.Close(), localdir.Sync(dir), localdir.Sync(filepath.Dir(dir)))
		if err != nil {
			return false, err
		}
	case !errors.Is(err, fs.ErrExist):
		return false, err
	}
	if fi, err = os.Lstat(name); err != nil {
		return false, err
	}
	if !fi.Mode().IsRegular() {
		return unfit(name, "not a regular file")
	}
	if fi.Mode().Perm() != 0o600 {
		// On a read-only file system nobody can change it, and reading it makes nothing worse.
		if err := os.Chmod(name, 0o600); err != nil && !errors.Is(err, syscall.EROFS) {
			return false, err
		}
	}
	return fi.Size() == 0, nil
}

// inUseFile is locked, shared, by whoever has the store open, and exclusively by who moves a damaged
// one aside.
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
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// noRoom reports whether a file could not be made because there is no room for it, or nothing may
// be written there. Such a store can still be read, and nobody can move it aside meanwhile either.
func noRoom(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EROFS) ||
		errors.Is(err, syscall.EDQUOT)
}

// moveAside moves the store in dir, which can't be read because of why, to damaged-…/checkpoints in it.
// Nobody may have it open. A failure leaves what was not moved for the next try: the catalog goes
// first, and contents without a catalog are moved again.
func (s *sqliteCatalog) moveAside(why error) error {
	dir := s.dir
	said := func(err error) error { return errors.Join(fmt.Errorf("%w: %w", ErrDamaged, why), err) }
	lock, err := holdOpen(dir, true)
	if err != nil {
		return said(err)
	}
	defer flock.Close(lock)
	beside, err := os.MkdirTemp(dir, asidePart)
	to := filepath.Join(beside, asideName)
	if err == nil {
		err = os.Mkdir(to, 0o700)
	}
	if err != nil {
		return said(err)
	}
	for _, name := range []string{fileName, fileName + "-wal", fileName + "-shm", blobsName, suspectFile} {
		err := os.Rename(filepath.Join(dir, name), filepath.Join(to, name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return said(err)
		}
	}
	if err := errors.Join(localdir.Sync(to), localdir.Sync(beside), localdir.Sync(dir)); err != nil {
		return said(err)
	}
	s.logger.Error("the catalog of the checkpoints is damaged; it was moved aside and a new one is begun",
		"error", why, "moved_to", beside)
	return nil
}

// isAside reports whether moveAside has moved the store in dir there: it can be looked at, as far as it
// can be read, and stays as it is.
func isAside(dir string) bool {
	return filepath.Base(dir) == asideName && strings.HasPrefix(filepath.Base(filepath.Dir(dir)), asidePart)
}

// beside lists the directories with what moveAside has moved, and a repair of an earlier version.
func (s *sqliteCatalog) beside() (out []string, err error) {
	entries, err := os.ReadDir(s.dir)
	for _, e := range entries {
		if e.IsDir() && (strings.HasPrefix(e.Name(), asidePart) || strings.HasPrefix(e.Name(), "repair-")) {
			out = append(out, filepath.Join(s.dir, e.Name()))
		}
	}
	return out, err
}

// inPlace costs one stat.
func (s *sqliteCatalog) inPlace() error {
	fi, err := os.Stat(filepath.Join(s.dir, fileName))
	if err == nil && os.SameFile(fi, s.file) {
		return nil
	}
	if err == nil || errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return &GoneError{s.dir}
	}
	return err
}
