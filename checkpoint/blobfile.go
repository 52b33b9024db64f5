package checkpoint

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// Content that stays large after packing lies in a file of its own: blobs/ab/<hash>-<random>. The random part makes every
// writer's file its own, so that no process can remove or half-write what another one's row names. A file without
// a row is rubbish from a crash; gc removes it when it is an hour old.

// writeExt stores z and returns its name below blobs.
func (d *DB) writeExt(h hash, z []byte) (name string, err error) {
	return d.newExt(h, func(f *os.File) error {
		_, err := f.Write(z)
		return err
	})
}

// cloneExt is writeExt for content that clone lends the extents of. What came is compared: somebody may have written into the file since it
// was read.
func (d *DB) cloneExt(h hash, content []byte, clone func(dst *os.File) error) (name string, err error) {
	return d.newExt(h, func(f *os.File) error {
		if err := clone(f); err != nil {
			return err
		}
		return holds(f, content)
	})
}

var errOther = errors.New("the clone holds something else")

// holds compares what is in f with content.
func holds(f *os.File, content []byte) error {
	buf := make([]byte, 1<<20)
	for off := 0; ; {
		n, err := f.ReadAt(buf, int64(off))
		if !bytes.HasPrefix(content[off:], buf[:n]) {
			return errOther
		}
		off += n
		switch {
		case err != nil && err != io.EOF:
			return err
		case err == io.EOF && off < len(content):
			return errOther
		case err == io.EOF:
			return nil
		}
	}
}

// newExt makes a file for the content h, lets fill fill it and returns its name below blobs. The file and its name are on stable storage
// when it returns, in a Relaxed store too: the row that names it may get there at any time, and must not name what a power cut took.
func (d *DB) newExt(h hash, fill func(f *os.File) error) (name string, err error) {
	var salt [4]byte
	rand.Read(salt[:])
	hx := h.String()
	name = hx[:2] + "/" + hx + "-" + hex.EncodeToString(salt[:])
	full := d.extPath(name)
	sub := filepath.Dir(full)
	if err := d.blobDir(sub); err != nil {
		return "", err
	}
	f, err := os.OpenFile(full, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return "", err
	}
	if err = fill(f); err == nil {
		err = f.Sync()
	}
	err = errors.Join(err, f.Close())
	if err == nil {
		err = syncDir(sub)
	}
	if err != nil {
		os.Remove(full)
		return "", err
	}
	return name, nil
}

// blobDir makes a directory below blobs. That it is there says nothing: whoever made it may not have come to sync it, or failed.
func (d *DB) blobDir(sub string) error {
	if _, ok := d.subs.Load(sub); ok {
		return nil
	}
	if err := os.Mkdir(sub, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if err := syncDir(filepath.Dir(sub)); err != nil {
		return err
	}
	d.subs.Store(sub, true)
	return nil
}

// removeNamed removes files that rows named until now. In a Relaxed store the removal of those rows may be in the log only as far as
// the system knows: after a power cut they would be there again and name nothing.
func (d *DB) removeNamed(names []string) error {
	if len(names) == 0 {
		return nil
	}
	if d.o.Durability != Strict {
		f, err := os.OpenFile(filepath.Join(d.dir, fileName+"-wal"), os.O_RDWR, 0)
		if err == nil {
			err = errors.Join(f.Sync(), f.Close(), syncDir(d.dir))
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if err := d.inPlace(); err != nil { // of another store by now
		return err
	}
	var errs []error
	for _, f := range names {
		if checkExtName(f) {
			errs = append(errs, removeFile(d.extPath(f)))
		}
	}
	return errors.Join(errs...)
}

func (d *DB) sync(dir string) error {
	if d.o.Durability != Strict {
		return nil
	}
	return syncDir(dir)
}

func (d *DB) extPath(name string) string {
	return filepath.Join(d.dir, blobsName, filepath.FromSlash(name))
}

func (d *DB) removeExt(name string) {
	if checkExtName(name) {
		os.Remove(d.extPath(name)) // what stays is collected as rubbish
	}
}

// checkExtName guards against a tampered row that names a file elsewhere.
func checkExtName(name string) bool {
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

var errExtName = errors.New("the row names no blob file")

func (d *DB) readExt(name string, size int64) ([]byte, error) {
	if !checkExtName(name) {
		return nil, errExtName
	}
	// Without O_NONBLOCK a named pipe in its place would be waited for.
	f, err := os.OpenFile(d.extPath(name), os.O_RDONLY|syscall.O_NONBLOCK, 0)
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
