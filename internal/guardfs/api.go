// Package guardfs turns path strings into handles and is the only package that touches the agent's tree.
package guardfs

import (
	"context"
	"errors"
	"io/fs"
)

var errSoon = errors.New("not built yet")

type FS struct{ o Options }

func New(o Options) (*FS, error)                                 { return &FS{o}, nil }
func (f *FS) Containment() string                                { return "kernel" }
func (f *FS) Resolve(path string, a Access) (*Handle, error)     { return nil, errSoon }
func (f *FS) Place(path string) (*Place, error)                  { return nil, errSoon }
func (f *FS) MakeParents(path string) (made []string, err error) { return nil, errSoon }
func Canonical(path string) string                               { return path }

type Handle struct{}

func (h *Handle) Object() Object       { return Object{} }
func (h *Handle) Open() (*File, error) { return nil, errSoon }
func (h *Handle) Dir() (*Dir, error)   { return nil, errSoon }
func (h *Handle) Close() error         { return nil }

type File struct{}

func (f *File) Info() Info                              { return Info{} }
func (f *File) Stat() (Info, error)                     { return Info{}, errSoon }
func (f *File) Read(p []byte) (int, error)              { return 0, errSoon }
func (f *File) ReadAt(p []byte, off int64) (int, error) { return 0, errSoon }
func (f *File) Close() error                            { return nil }

type Dir struct{}

func (d *Dir) True() string                                              { return "" }
func (d *Dir) Info() Info                                                { return Info{} }
func (d *Dir) List(buf []Entry) (entries []Entry, denied int, err error) { return nil, 0, errSoon }
func (d *Dir) Stat(name string) (Info, error)                            { return Info{}, errSoon }
func (d *Dir) OpenDir(name string, crossMounts bool) (*Dir, error)       { return nil, errSoon }
func (d *Dir) OpenFile(name string) (*File, error)                       { return nil, errSoon }
func (d *Dir) ReadSmall(name string, max int64) ([]byte, error)          { return nil, errSoon }
func (d *Dir) Parent() (*Dir, error)                                     { return nil, errSoon }
func (d *Dir) Close() error                                              { return nil }

type Place struct{}

func (p *Place) Object() Object                  { return Object{} }
func (p *Place) ParentTrue() string              { return "" }
func (p *Place) Base() string                    { return "" }
func (p *Place) LockKey() string                 { return "" }
func (p *Place) Load(max int64) (*Before, error) { return nil, errSoon }
func (p *Place) Close() error                    { return nil }
func (p *Place) Stage(ctx context.Context, content []byte, o StageOptions) (*Staged, error) {
	return nil, errSoon
}
func (p *Place) Remove(ctx context.Context, before *Before, sync bool) error { return errSoon }
func (p *Place) RemoveEmptyDir(ctx context.Context) error                    { return errSoon }
func (p *Place) Mkdir(mode fs.FileMode) error                                { return errSoon }
func (p *Place) Symlink(target string) error                                 { return errSoon }

type Staged struct{}

func (s *Staged) Commit(ctx context.Context, before *Before) (*Published, error) { return nil, errSoon }
func (s *Staged) Discard() error                                                 { return nil }

type Locks struct{}

func OpenLocks(dir string) (*Locks, error) { return &Locks{}, nil }
func (l *Locks) Lock(ctx context.Context, keys ...string) (unlock func(), err error) {
	return func() {}, nil
}
