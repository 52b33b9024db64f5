package tree

import (
	"errors"
	"io"
	"io/fs"
	"path"
)

// FS makes a Dir of the root of fsys, for trees in memory, in archives or embedded. Paths in
// results are paths of fsys. A file without ReadAt is read once from the start, in order, by one
// worker.
func FS(fsys fs.FS) Dir { return fsDir{fsys, ""} }

type fsDir struct {
	fsys fs.FS
	path string
}

func (d fsDir) join(name string) string { return path.Join(d.path, name) }
func (d fsDir) name() string            { return path.Clean("./" + d.path) }

func (d fsDir) True() string { return d.path }
func (d fsDir) Close() error { return nil }

func (d fsDir) Parent() (Dir, error) {
	if d.path == "" {
		return nil, io.EOF
	}
	up := path.Dir(d.path)
	if up == "." {
		up = ""
	}
	return fsDir{d.fsys, up}, nil
}

func (d fsDir) List(buf []Entry) ([]Entry, int, error) {
	es, err := fs.ReadDir(d.fsys, d.name())
	buf = buf[:0]
	for _, e := range es {
		buf = append(buf, Entry{Name: e.Name(), Kind: kindOf(e.Type())})
	}
	return buf, 0, err
}

func kindOf(m fs.FileMode) Kind {
	switch {
	case m.IsRegular():
		return KindFile
	case m.IsDir():
		return KindDir
	case m&fs.ModeSymlink != 0:
		return KindLink
	}
	return KindOther
}

func infoOf(i fs.FileInfo) Info {
	return Info{Kind: kindOf(i.Mode()), Size: i.Size(), ModTime: i.ModTime()}
}

// Stat gives the entry's own kind. Only Go 1.25's ReadLinkFS has Lstat; fs.Lstat uses it where it
// is offered.
func (d fsDir) Stat(name string) (Info, error) {
	i, err := fs.Lstat(d.fsys, d.join(name))
	if err != nil {
		return Info{}, err
	}
	return infoOf(i), nil
}

func (d fsDir) OpenDir(name string, _ bool) (Dir, error) {
	i, err := d.Stat(name)
	if err != nil {
		return nil, err
	}
	if i.Kind != KindDir {
		return nil, &fs.PathError{Op: "open directory", Path: d.join(name), Err: fs.ErrInvalid}
	}
	return fsDir{d.fsys, d.join(name)}, nil
}

func (d fsDir) OpenFile(name string) (File, error) {
	i, err := d.Stat(name)
	if err != nil {
		return nil, err
	}
	if i.Kind != KindFile {
		return nil, &fs.PathError{Op: "open file", Path: d.join(name), Err: fs.ErrInvalid}
	}
	f, err := d.fsys.Open(d.join(name))
	if err != nil {
		return nil, err
	}
	return &fsFile{File: f, info: i}, nil
}

func (d fsDir) ReadSmall(name string, max int64) ([]byte, error) {
	f, err := d.OpenFile(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, max+1))
	if err == nil && int64(len(b)) > max {
		err = &fs.PathError{Op: "read", Path: d.join(name), Err: errors.New("too large")}
	}
	return b, err
}

// fsFile is a file that has ReadAt if the one of fsys has it.
type fsFile struct {
	fs.File
	info Info
}

func (f *fsFile) Info() Info { return f.info }

func (f *fsFile) ReadAt(p []byte, off int64) (int, error) {
	if r, ok := f.File.(io.ReaderAt); ok {
		return r.ReadAt(p, off)
	}
	return 0, errors.ErrUnsupported
}
