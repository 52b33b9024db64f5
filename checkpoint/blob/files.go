package blob

import (
	"crypto/rand"
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

// Files are the contents that stay large after packing: ab/<hash>-<random>. The random part makes
// every writer's file its own, so that no process can remove or half-write what another one's row
// names. A file without a row is rubbish from a crash; it may also be on its way to a row, so that
// it is not removed before it is old.
type Files struct {
	Dir  string
	subs sync.Map // directories below Dir whose names are on stable storage
}

// Write stores z, the content h as packed, in a new file and returns its name. The file and its
// name are on stable storage when it returns, whatever the store promises: the row that names it
// may get there at any time, and must not name what a power cut took.
func (s *Files) Write(h Hash, z []byte) (name string, err error) {
	var salt [4]byte
	rand.Read(salt[:])
	hx := h.String()
	name = hx[:2] + "/" + hx + "-" + hex.EncodeToString(salt[:])
	full := s.Path(name)
	sub := filepath.Dir(full)
	if err := s.makeDir(sub); err != nil {
		return "", err
	}
	f, err := os.OpenFile(full, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return "", err
	}
	if _, err = f.Write(z); err == nil {
		err = f.Sync()
	}
	err = errors.Join(err, f.Close())
	if err == nil {
		err = localdir.Sync(sub)
	}
	if err != nil {
		os.Remove(full)
		return "", err
	}
	return name, nil
}

// makeDir makes a directory below Dir. That it is there says nothing: whoever made it may not have
// come to sync it, or failed.
func (s *Files) makeDir(sub string) error {
	if _, ok := s.subs.Load(sub); ok {
		return nil
	}
	if err := os.Mkdir(sub, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if err := localdir.Sync(filepath.Dir(sub)); err != nil {
		return err
	}
	s.subs.Store(sub, true)
	return nil
}

// Path is where the file of that name is. Whoever got the name from a row has to ask IsName first.
func (s *Files) Path(name string) string { return filepath.Join(s.Dir, filepath.FromSlash(name)) }

// Remove removes a file. It is no error if there is none.
func (s *Files) Remove(name string) error {
	if !IsName(name) {
		return nil
	}
	if err := os.Remove(s.Path(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Walk calls fn with the name of each file there. fs.SkipAll ends it without an error.
func (s *Files) Walk(fn func(name string, e fs.DirEntry) error) error {
	return filepath.WalkDir(s.Dir, func(p string, e fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // just removed
		}
		if err != nil || e.IsDir() {
			return err
		}
		rel, err := filepath.Rel(s.Dir, p)
		if err != nil {
			return err
		}
		return fn(filepath.ToSlash(rel), e)
	})
}

// IsName guards against a tampered row that names a file elsewhere.
func IsName(name string) bool {
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

// Read returns the bytes of a file, which has to have so many.
func (s *Files) Read(name string, size int64) ([]byte, error) {
	if !IsName(name) {
		return nil, ErrName
	}
	if size < 0 || size > 2*maxSize {
		return nil, fmt.Errorf("impossible size %d", size)
	}
	// Without O_NONBLOCK a named pipe in its place would be waited for.
	f, err := os.OpenFile(s.Path(name), os.O_RDONLY|syscall.O_NONBLOCK, 0)
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
