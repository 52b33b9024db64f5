package grep

import (
	"errors"
	"io"
	"io/fs"
	"sync"

	"moltisfs/internal/guardfs"
)

// Guarded makes a Dir of a handle of the guarded filesystem. Closing it closes d.
func Guarded(d *guardfs.Dir) Dir { return &guardedDir{d, new(sync.Pool)} }

// GuardedFile makes a File of an open guarded file. Closing it closes f.
func GuardedFile(f *guardfs.File) File { return guardedFile{f} }

// Handle is the guarded file in f; nil of another file.
func Handle(f File) *guardfs.File {
	g, _ := f.(guardedFile)
	return g.f
}

// guardedDir lends its listings the memory of earlier ones in the same tree.
type guardedDir struct {
	d       *guardfs.Dir
	entries *sync.Pool // of *[]guardfs.DirEntry
}

// guardedFile is one pointer wide: it becomes an interface without an allocation.
type guardedFile struct{ f *guardfs.File }

func (g *guardedDir) True() string { return g.d.True() }
func (g *guardedDir) Info() Info   { return guardedInfo(g.d.Info()) }

func (g *guardedDir) Close() error { return g.d.Close() }

func (g *guardedDir) List(buf []Entry) ([]Entry, int, error) {
	spare, _ := g.entries.Get().(*[]guardfs.DirEntry)
	if spare == nil {
		spare = new([]guardfs.DirEntry)
	}
	es, denied, err := g.d.ListWays(*spare)
	buf = buf[:0]
	for i := range es {
		buf = append(buf, Entry{Name: es[i].Name, Kind: guardedKind(es[i].Kind), Way: es[i].Way})
	}
	if clear(es); cap(es) <= 1<<14 {
		*spare = es
		g.entries.Put(spare)
	}
	return buf, denied, guardedErr(err)
}

func (g *guardedDir) Stat(name string) (Info, error) {
	i, err := g.d.Stat(name)
	return guardedInfo(i), guardedErr(err)
}

func (g *guardedDir) OpenDir(name string, crossMounts bool) (Dir, error) {
	d, err := g.d.OpenDir(name, crossMounts)
	if err != nil {
		return nil, guardedErr(err)
	}
	return &guardedDir{d, g.entries}, nil
}

func (g *guardedDir) OpenFile(name string) (File, error) {
	f, err := g.d.OpenListed(name)
	if err != nil {
		return nil, guardedErr(err)
	}
	return guardedFile{f}, nil
}

func (g *guardedDir) ReadSmall(name string, max int64) ([]byte, error) {
	b, err := g.d.ReadSmall(name, max)
	return b, guardedErr(err)
}

func (g *guardedDir) Parent() (Dir, error) {
	d, err := g.d.Parent()
	if err != nil {
		return nil, guardedErr(err)
	}
	return &guardedDir{d, g.entries}, nil
}

func (g guardedFile) Info() Info                              { return guardedInfo(g.f.Info()) }
func (g guardedFile) Read(p []byte) (int, error)              { return g.f.Read(p) }
func (g guardedFile) ReadAt(p []byte, off int64) (int, error) { return g.f.ReadAt(p, off) }
func (g guardedFile) Close() error                            { return g.f.Close() }

func guardedKind(k guardfs.Kind) Kind {
	switch k {
	case guardfs.KindFile:
		return KindFile
	case guardfs.KindDir:
		return KindDir
	case guardfs.KindSymlink:
		return KindLink
	}
	return KindOther
}

func guardedInfo(i guardfs.Info) Info {
	return Info{
		Kind: guardedKind(i.Kind), Size: i.Size, Ino: i.ID.Ino, Links: i.Links,
		ModTime: i.ModTime, ChangeTime: i.ChangeTime,
	}
}

// deniedError marks a judge's refusal, which guardfs hands through unchanged.
type deniedError struct{ error }

func (e deniedError) Unwrap() []error { return []error{ErrDenied, e.error} }

// guardedErr translates errors. One that is neither the system's nor guardfs's own came from the
// judge.
func guardedErr(err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, guardfs.ErrMount) {
		return ErrMount
	}
	var (
		system  *guardfs.PathError
		link    *guardfs.SymlinkError
		regular *guardfs.NotRegularError
		large   *guardfs.TooLargeError
		bad     *guardfs.BadPathError
	)
	if errors.As(err, &system) || errors.As(err, &link) || errors.As(err, &regular) ||
		errors.As(err, &large) || errors.As(err, &bad) || errors.Is(err, io.EOF) ||
		errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrClosed) {
		return err
	}
	return deniedError{err}
}
