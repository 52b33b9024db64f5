//go:build !linux || rooted

package guardfs

import (
	"io"
	"io/fs"
	"os"
	"sync"
	"syscall"
)

// Handle holds the directory of one object, and knows which of its entries the object is.
type Handle struct {
	fs     *FS
	dir    *os.Root
	leaf   string // "" when the object is the directory itself
	fi     fs.FileInfo
	object Object
	access Access
}

// handle takes over what t came to.
func (f *FS) handle(t *trail, a Access) *Handle {
	return &Handle{fs: f, dir: t.take(), leaf: t.leaf, fi: t.fi, object: t.object, access: a}
}

// Close gives the handle back.
func (h *Handle) Close() error { return h.dir.Close() }

// open is Handle.Open of what may be read. When another object has taken its name meanwhile, that is a *ConflictError.
func (h *Handle) open() (*File, error) {
	if h.object.Info.Kind != KindFile {
		return nil, &NotRegularError{Path: h.object.Spelled, Kind: h.object.Info.word()}
	}
	return openFile(h.dir, h.leaf, h.object.Spelled, h.fi)
}

// openDir is Handle.Dir of a directory that may be listed.
func (h *Handle) openDir() (*Dir, error) {
	root, err := h.dir.OpenRoot(".")
	if err != nil {
		return nil, err
	}
	return newDir(h.fs, root, h.object.True, h.fi, h.fs.judge.Dir(h.object.True)), nil
}

// File is a regular file open for reading.
type File struct {
	file *os.File
	name string
	info Info
	once sync.Once
}

// opener is a directory that files are opened in.
type opener interface {
	OpenFile(name string, flag int, mode fs.FileMode) (*os.File, error)
}

// openFile opens entry leaf of dir and makes sure that it is the file that fi tells of.
func openFile(dir opener, leaf, name string, fi fs.FileInfo) (*File, error) {
	file, err := dir.OpenFile(leaf, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, &PathError{Op: "open", Path: name, Err: cause(err)}
	}
	now, err := file.Stat()
	var info Info
	if err == nil {
		info = infoOfFile(file, now)
	}
	switch {
	case err != nil:
		err = &PathError{Op: "stat", Path: name, Err: cause(err)}
	case info.Kind != KindFile:
		err = &NotRegularError{Path: name, Kind: info.word()}
	case !os.SameFile(fi, now):
		err = &ConflictError{Path: name, Why: OpenedInTurns}
	default:
		return &File{file: file, name: name, info: info}, nil
	}
	file.Close() //nolint:errcheck // nothing was written through it
	return nil, err
}

// Stat looks at the file now.
func (f *File) Stat() (Info, error) {
	fi, err := f.file.Stat()
	if err != nil {
		return Info{}, f.failed("stat", err)
	}
	return infoOfFile(f.file, fi), nil
}

// Read reads on from where the last Read ended. At the end it answers io.EOF.
func (f *File) Read(p []byte) (int, error) {
	n, err := f.file.Read(p)
	if err != nil && err != io.EOF {
		err = f.failed("read", err)
	}
	return n, err
}

// ReadAt fills p from byte off on. Less than len(p) comes with io.EOF.
func (f *File) ReadAt(p []byte, off int64) (int, error) {
	n, err := f.file.ReadAt(p, off)
	if err != nil && err != io.EOF {
		err = f.failed("read", err)
	}
	return n, err
}

// Close gives the file back.
func (f *File) Close() (err error) {
	f.once.Do(func() { err = f.file.Close() })
	return err
}

// Steady can't be told here.
func (f *File) Steady() bool { return false }

func (f *File) path() string { return f.name }

// slurp reads a whole file of at most max bytes; max < 0: no limit.
func (f *File) slurp(max int64) ([]byte, error) {
	if max >= 0 && f.info.Size > max {
		return nil, &TooLargeError{Path: f.name, Size: f.info.Size, Max: max}
	}
	var from io.Reader = f
	if max >= 0 {
		from = io.LimitReader(f, max+1)
	}
	content, err := io.ReadAll(from)
	if err == nil && max >= 0 && int64(len(content)) > max {
		err = &TooLargeError{Path: f.name, Size: int64(len(content)), Max: max}
	}
	return content, err
}
