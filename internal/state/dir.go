package state

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"moltisfs/internal/guardfs/flock"
)

// Dir is Files in a directory of the file system, at Path. Update makes the directory if necessary. A directory that is a link, or that
// others may write in, is refused. A file that is not regular, such as a link or a pipe, is refused and never followed. Held and Update
// rest on locks of files, which end with the process that has them.
type Dir struct {
	Path string
	// Temp names a file that is not whole yet: Replace makes it under the lock of an Update, and puts it on stable storage before it takes
	// its place. With "" writers need no lock, since each has such a file of its own, and nothing of Replace is synced.
	Temp    string
	Most    int64                   // bytes of a file; a longer one is refused; 0: there is no limit
	Private bool                    // a file that others may read or write is refused
	Fault   func(step string) error // for tests: it hears of each step of a write, and can make it fail
}

var _ Files = Dir{}

// Open opens a file for reading, as [Files] says.
func (d Dir) Open(name string) (io.ReadCloser, error) {
	f, err := d.open(name, os.O_RDONLY)
	if err != nil {
		return nil, err // and no interface around a nil file
	}
	return f, nil
}

// open opens a file of ours.
func (d Dir) open(name string, flags int) (*os.File, error) {
	if err := d.check(); err != nil {
		return nil, err
	}
	path := d.file(name)
	if flock.NoFollow == 0 { // then a link would be followed
		if info, err := os.Lstat(path); err == nil && !info.Mode().IsRegular() {
			return nil, d.ours(path, info)
		}
	}
	f, err := os.OpenFile(path, flags|flock.NoFollow, 0o600)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil {
		err = d.ours(path, info)
	}
	if err != nil {
		f.Close() //nolint:errcheck // nothing was written to it
		return nil, err
	}
	return f, nil
}

// check refuses a directory that is not our own.
func (d Dir) check() error {
	info, err := os.Lstat(d.Path)
	switch {
	case err != nil:
		return err
	case !info.IsDir():
		return fmt.Errorf("%s is no directory", d.Path)
	case others(info, 0o022):
		return fmt.Errorf("others may write in %s (%v)", d.Path, info.Mode())
	}
	return nil
}

// ours refuses a file that can't be one of ours.
func (d Dir) ours(path string, info fs.FileInfo) error {
	switch {
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is not a file of ours: it is no regular file", path)
	case d.Most > 0 && info.Size() > d.Most:
		return fmt.Errorf("%s is not a file of ours: it is too large", path)
	case d.Private && others(info, 0o077):
		return fmt.Errorf("%s is open to others (%s)", path, info.Mode())
	}
	return nil
}

// others reports whether the mode of a file gives one of these bits to others than its owner.
func others(info fs.FileInfo, bits fs.FileMode) bool {
	return runtime.GOOS != "windows" && info.Mode().Perm()&bits != 0 // there they say nothing
}

func (d Dir) file(name string) string { return filepath.Join(d.Path, name) }

// place is what a Mark holds: which file it was, and its last bytes before the mark, since another file may get the number of one that is
// gone.
type place struct {
	info fs.FileInfo
	end  []byte
}

const endBytes = 64

// Since reads what came to a file, as [Files] says. A file that has not grown since, but was changed, counts as another one.
func (d Dir) Since(name string, m *Mark) (tail []byte, anew bool, err error) {
	was, known := m.Of.(place)
	info, err := os.Lstat(d.file(name))
	if err == nil && known && os.SameFile(was.info, info) && was.info.Size() == info.Size() && was.info.ModTime().Equal(info.ModTime()) {
		return nil, false, nil
	}
	f, err := d.open(name, os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		*m = Mark{}
		return nil, known, nil
	}
	if err != nil {
		return nil, false, err
	}
	defer f.Close() //nolint:errcheck // nothing was written to it
	if info, err = f.Stat(); err != nil {
		return nil, false, err
	}
	from := m.Bytes - int64(len(was.end))
	if anew = !known || !os.SameFile(was.info, info) || info.Size() <= m.Bytes; anew {
		from = 0
	}
	all := make([]byte, info.Size()-from)
	n, err := f.ReadAt(all, from)
	if err != nil && err != io.EOF {
		return nil, false, err
	}
	all = all[:n]
	if tail = all; !anew {
		if !bytes.HasPrefix(all, was.end) {
			*m = Mark{}
			return d.Since(name, m)
		}
		tail = all[len(was.end):]
	}
	*m = Mark{from + int64(n), place{info, bytes.Clone(all[max(0, n-endBytes):])}}
	return tail, anew, nil
}

// List gives the names of the files. Where there is no directory there are none.
func (d Dir) List() (names []string, err error) {
	if err = d.check(); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		return nil, err
	}
	entries, err := os.ReadDir(d.Path)
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names, err
}

// Look tells of each name what is known of the file, as [Files] says.
func (d Dir) Look(names ...string) ([]Info, error) {
	out := make([]Info, len(names))
	for i, name := range names {
		if info, err := os.Lstat(d.file(name)); err == nil && d.ours(d.file(name), info) == nil {
			out[i] = Info{info.Size(), info.ModTime()}
		}
	}
	return out, nil
}

// Append appends to a file in one write, which O_APPEND keeps whole beside those of other processes. It is not synced.
func (d Dir) Append(name string, piece []byte) error {
	f, err := d.open(name, os.O_WRONLY|os.O_CREATE|os.O_APPEND)
	if err != nil {
		return err
	}
	_, err = f.Write(piece)
	return errors.Join(err, f.Close())
}

// Replace puts a file in the place of another, as [Files] says. It is complete before it has the name.
func (d Dir) Replace(name string, content []byte) error {
	if err := d.check(); err != nil {
		return err
	}
	var f *os.File
	var err error
	if d.Temp == "" {
		f, err = os.CreateTemp(d.Path, "new-*")
	} else {
		os.Remove(d.file(d.Temp)) //nolint:errcheck // it is there only if its writer was killed
		f, err = os.OpenFile(d.file(d.Temp), os.O_WRONLY|os.O_CREATE|os.O_EXCL|flock.NoFollow, 0o600)
	}
	if err = d.did("create", err); err == nil {
		err = d.write(f, content)
	}
	if f != nil {
		err = errors.Join(err, f.Close())
		if err == nil {
			err = d.did("rename", os.Rename(f.Name(), d.file(name)))
		}
		if err != nil {
			os.Remove(f.Name()) //nolint:errcheck // then the next writer does it
		}
	}
	if err == nil {
		d.syncDir() //nolint:errcheck // not every system can, and the file is there
	}
	return err
}

// write writes to a new file, and puts it on stable storage.
func (d Dir) write(f *os.File, content []byte) error {
	_, err := f.Write(content)
	if err = d.did("write", err); err == nil && d.Temp != "" {
		err = d.did("sync", f.Sync())
	}
	return err
}

// syncDir puts the names on stable storage, where the system can do that.
func (d Dir) syncDir() error {
	if d.Temp == "" {
		return nil
	}
	dir, err := os.Open(d.Path)
	if err != nil {
		return err
	}
	defer dir.Close() //nolint:errcheck // nothing was written through it
	if err = dir.Sync(); runtime.GOOS == "windows" {
		err = nil
	}
	return d.did("sync directory", err)
}

// did gives err, or else the error that a test wants of this step.
func (d Dir) did(step string, err error) error {
	if err != nil || d.Fault == nil {
		return err
	}
	return d.Fault(step)
}

// Touch sets the time of a file, as [Files] says.
func (d Dir) Touch(name string) error {
	f, err := d.open(name, os.O_WRONLY|os.O_CREATE)
	if err != nil {
		return err
	}
	now := time.Now()
	return errors.Join(f.Close(), os.Chtimes(d.file(name), now, now))
}

// Remove removes a file.
func (d Dir) Remove(name string) error { return os.Remove(d.file(name)) }

// Hold makes a file and holds its lock, as [Files] says. Nobody may take the file for one before it is whole: it is there, and held,
// while it is written.
func (d Dir) Hold(name string, pieces ...[]byte) (release func(), err error) {
	if err := d.check(); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(d.file(name), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err = d.did("hold", err); err == nil {
		err = flock.Lock(f) // whoever asks Held has the lock for a moment
	}
	if err == nil {
		err = d.write(f, slices.Concat(pieces...)) // at once: somebody may look before the last piece is there
	}
	if err == nil {
		err = d.syncDir()
	}
	if err != nil {
		if f != nil {
			os.Remove(f.Name()) //nolint:errcheck // nobody holds it
			flock.Close(f)      //nolint:errcheck // it is gone
		}
		return nil, err
	}
	return func() { flock.Close(f) }, nil //nolint:errcheck // closing gives the lock back
}

// Held tells whether somebody has the locks of these files. A file that can't be looked at counts as one that nobody holds.
func (d Dir) Held(names ...string) ([]bool, error) {
	out := make([]bool, len(names))
	for i, name := range names {
		if f, err := d.open(name, os.O_RDWR); err == nil {
			free, err := flock.TryLockShared(f)
			out[i] = err == nil && !free
			flock.Close(f) //nolint:errcheck // closing gives the lock back
		}
	}
	return out, nil
}

// Update runs do under the lock of a file called lock, which it asks for once in a millisecond.
func (d Dir) Update(ctx context.Context, lock string, do func(Files) error) error {
	if err := os.MkdirAll(d.Path, 0o700); err != nil {
		return err
	}
	f, err := d.open(lock, os.O_RDWR|os.O_CREATE)
	if err != nil {
		return fmt.Errorf("locking %s: %w", d.Path, err)
	}
	defer flock.Close(f) //nolint:errcheck // closing gives the lock back
	for {
		if held, err := flock.TryLock(f); err != nil {
			return fmt.Errorf("locking %s: %w", d.Path, err)
		} else if held {
			return do(d)
		}
		select {
		case <-time.After(time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Changes never wakes anybody.
func (d Dir) Changes(string) (changed <-chan struct{}, stop func()) { return nil, func() {} }
