// Package blob keeps contents small: as a difference to an earlier version or compressed, encrypted
// where that is asked for. Large results go into a Store. It knows nothing of operations: the
// catalog, which belongs to the caller, holds a Row for each content and knows which row a delta
// stands on.
package blob

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"moltisfs/checkpoint/localdir"
)

// Hash is the SHA-256 of a content.
type Hash [sha256.Size]byte

func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// ParseHash reads what String wrote.
func ParseHash(s string) (h Hash, err error) {
	if len(s) != 2*len(h) {
		return h, fmt.Errorf("a hash has %d hex digits, this has %d", 2*len(h), len(s))
	}
	_, err = hex.Decode(h[:], []byte(s))
	return h, err
}

// Store keeps the packed contents that are too large for the catalog, each under a name of NewName.
// All methods may be called from many goroutines and processes.
type Store interface {
	// Put writes z under name, which nothing has yet. Name and bytes are on stable storage on return:
	// the row that names it may get there at any time.
	Put(ctx context.Context, name string, z []byte) error
	// Get reads the bytes that Put wrote, size of them; another size is an error. Where there
	// is nothing the error is fs.ErrNotExist.
	Get(ctx context.Context, name string, size int64) ([]byte, error)
	// Delete removes name. It is no error if there is nothing.
	Delete(ctx context.Context, name string) error
	// List calls fn with each name and its size, until fn returns an error. A size below 0 is of what
	// can't be read.
	List(ctx context.Context, fn func(name string, size int64) error) error
}

// NewName draws a name for the content h: ab/<hash>-<random>. The random part makes every writer's
// file its own, so that no process can remove or half-write what another one's row names.
func NewName(h Hash) string {
	var salt [4]byte
	rand.Read(salt[:])
	hx := h.String()
	return hx[:2] + "/" + hx + "-" + hex.EncodeToString(salt[:])
}

// isName guards against a tampered row that names a file elsewhere.
func isName(name string) bool {
	if len(name) != 3+64+1+8 || name[2] != '/' || name[67] != '-' || name[:2] != name[3:5] {
		return false
	}
	for i, c := range []byte(name) {
		if i != 2 && i != 67 && (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

// ErrName: the name of a file in a row is not one of NewName.
var ErrName = errors.New("the row names no blob file")

// Files is a Store of files in the directory Dir, which is there.
type Files struct {
	Dir  string
	subs sync.Map // directories below Dir whose names are on stable storage
}

func (s *Files) path(name string) string { return filepath.Join(s.Dir, filepath.FromSlash(name)) }

// Put writes a new file.
func (s *Files) Put(_ context.Context, name string, z []byte) error {
	if !isName(name) {
		return ErrName
	}
	full := s.path(name)
	sub := filepath.Dir(full)
	// A directory that is there may not be on stable storage yet: its maker may have been killed, or failed.
	if _, ok := s.subs.Load(sub); !ok {
		if err := os.Mkdir(sub, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		if err := localdir.Sync(s.Dir); err != nil {
			return err
		}
		s.subs.Store(sub, true)
	}
	f, err := os.OpenFile(full, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if _, err = f.Write(z); err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = localdir.Sync(sub)
	}
	if err != nil {
		os.Remove(full)
	}
	return err
}

// Get reads a file.
func (s *Files) Get(_ context.Context, name string, size int64) ([]byte, error) {
	if !isName(name) {
		return nil, ErrName
	}
	if size < 0 || size > 2*maxSize {
		return nil, fmt.Errorf("impossible size %d", size)
	}
	// Without O_NONBLOCK a named pipe in its place would be waited for.
	f, err := os.OpenFile(s.path(name), os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if fi, err := f.Stat(); err != nil {
		return nil, err
	} else if !fi.Mode().IsRegular() {
		return nil, errors.New("the blob file is no regular file")
	}
	b := make([]byte, size)
	if _, err := io.ReadFull(f, b); err != nil {
		return nil, err
	}
	if n, _ := f.Read(make([]byte, 1)); n != 0 {
		return nil, errors.New("the blob file is too long")
	}
	return b, nil
}

// Delete removes a file.
func (s *Files) Delete(_ context.Context, name string) error {
	if !isName(name) {
		return nil
	}
	if err := os.Remove(s.path(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// List walks the directory. Files that Put did not write are left out.
func (s *Files) List(ctx context.Context, fn func(name string, size int64) error) error {
	return filepath.WalkDir(s.Dir, func(p string, e fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // just removed
		}
		if err != nil || e.IsDir() {
			return errors.Join(err, ctx.Err())
		}
		rel, err := filepath.Rel(s.Dir, p)
		if err != nil {
			return err
		}
		size := int64(-1)
		if fi, err := e.Info(); err == nil && fi.Mode().IsRegular() {
			size = fi.Size()
		}
		if name := filepath.ToSlash(rel); isName(name) {
			return fn(name, size)
		}
		return nil
	})
}
