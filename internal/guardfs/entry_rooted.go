//go:build !linux || rooted

package guardfs

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"runtime"
)

// Entry is one name in one directory: where something is to be changed. The last component is never followed.
type Entry struct {
	fs     *FS
	root   *dirRoot
	fi     fs.FileInfo // of the directory
	dir    *Object
	base   string
	object Object
	links  bool  // a symbolic link there may itself be loaded; see EntryLink
	temp   *temp // of a temporary name; nil for others
}

// readTarget reads the text of the link that stands there.
func (p *Entry) readTarget() (string, error) { return p.root.Readlink(p.base) }

// pinTo gives p the directory that t came to.
func (p *Entry) pinTo(t *trail) { p.root, p.fi = &dirRoot{Root: t.take(), hook: p.fs.hook}, t.fi }

func (p *Entry) refusePseudo() error {
	if pseudo(p.root.Root) {
		return ErrPseudo
	}
	return nil
}

// lstat looks at the occupant.
func (p *Entry) lstat() (Info, error) { return p.lookAt(p.base) }

// EntriesOpen is how many files are open at most for entries of these true names, all at once.
func EntriesOpen(names []string) int { return len(names) }

// SharedDirs says that EntriesOpen counts directories, not names.
const SharedDirs = false

// Close gives the directory back.
func (p *Entry) Close() error { return p.root.Close() }

// SyncNames puts the names in the entry's directory on stable storage, where the system can do that.
func (p *Entry) SyncNames() error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := p.root.Open(".")
	if err == nil {
		err = p.root.do("fsync", d.Sync)
		d.Close() //nolint:errcheck // nothing was written through it
	}
	return p.failed("sync directory of", err)
}

// still reports a *ConflictError when the directory is no longer where it was judged.
func (p *Entry) still() error {
	t := p.fs.walk(p.dir.True)
	defer t.close()
	if t.err != nil || t.leaf != "" || len(t.hops) > 0 || !os.SameFile(t.fi, p.fi) {
		return p.conflict(DirMoved)
	}
	return nil
}

func (p *Entry) read(before *Before, max int64, how loading) (b *Before, err error) {
	// An object that was judged is not judged again: a temporary name of a dead process would be denied.
	seen := p.object.Info
	now, err := p.lstat()
	if p.object.Info = now; err != nil && (seen.Kind != KindAbsent || !os.IsNotExist(err)) || now.ID != seen.ID || now.Kind != seen.Kind {
		if err := p.look(Modify); err != nil {
			return nil, err
		}
		now = p.object.Info
	}
	if before != nil && now.Kind == KindFile && how.unread(now.Size, max) && now.unchanged(&before.Info) {
		return before, nil
	}
	b, err = p.load(max, how)
	if err == nil && b.Info.Kind == KindSymlink && !p.links {
		return nil, &SymlinkError{Path: p.object.Spelled, Target: string(b.Content)}
	}
	return b, err
}

// load reads what stands there. A file is only described where how says so.
func (p *Entry) load(max int64, how loading) (*Before, error) {
	fi, err := p.root.Lstat(p.base)
	switch {
	case os.IsNotExist(err):
		return &Before{}, nil
	case err != nil:
		return nil, p.failed("stat", err)
	case fi.Mode()&fs.ModeSymlink != 0:
		target, err := p.root.Readlink(p.base)
		if err != nil {
			return nil, p.failed("read link", err)
		}
		return newBefore(infoOf(p.root.Root, p.base, fi), []byte(target), hashOf([]byte(target)), nil), nil
	case !fi.Mode().IsRegular():
		info := basicInfo(fi)
		return nil, &NotRegularError{Path: p.object.Spelled, Kind: info.word()}
	}
	f, err := openFile(p.root, p.base, p.object.Spelled, fi)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // nothing was written through it
	if how.unread(fi.Size(), max) {
		hash := ""
		if how == onlyHash {
			hash, err = stream(context.Background(), f, f.info.Size, func([]byte) error { return nil })
		}
		return newBefore(f.info, nil, hash, xattrs(f.file)), err
	}
	content, err := f.slurp(max)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	return newBefore(info, content, hashOf(content), xattrs(f.file)), nil
}

// Expected is the part of m that a file staged there will most likely have. Published.Dropped has the metadata that was not kept.
func (p *Entry) Expected(m Metadata) Metadata {
	m.Mode &= fs.ModePerm | fs.ModeSticky
	return m
}

// Layered is not known here.
func (p *Entry) Layered() (bool, error) { return false, nil }

// SetAttributes is not possible here.
func (p *Entry) SetAttributes(Identity, Metadata) ([]string, error) {
	return nil, p.failed("set attributes of", errors.ErrUnsupported)
}

// DirMetadata is the metadata of the directory there, without its time and its attributes.
func (p *Entry) DirMetadata() (Metadata, error) {
	i := p.object.Info
	return Metadata{Mode: i.Mode, UID: i.UID, GID: i.GID}, nil
}

// dirRoot is the directory of an entry. A test may have its calls fail, those that change something
// and the looks between them: see Options.Fault.
type dirRoot struct {
	*os.Root
	hook func(op string) *Fault
}

func (r *dirRoot) do(op string, call func() error) error {
	if r.hook == nil {
		return call()
	}
	f := r.hook(op)
	if f == nil || f.Short { // no write is short here
		return call()
	}
	if f.After {
		if err := call(); err != nil {
			return err
		}
	}
	return f.Err
}

// again makes a call that looks or removes, three times if it fails: a passing fault is no reason to take back what was made, or to leave
// something behind.
func (r *dirRoot) again(op string, call func() error) (err error) {
	for range 3 {
		if err = r.do(op, call); err == nil || os.IsNotExist(err) {
			break
		}
	}
	return err
}

// OpenRoot opens a directory below r.
func (r *dirRoot) OpenRoot(name string) (sub *dirRoot, err error) {
	err = r.do("openat", func() error {
		root, err := r.Root.OpenRoot(name)
		sub = &dirRoot{Root: root, hook: r.hook}
		return err
	})
	if err != nil {
		return nil, err
	}
	return sub, nil
}

func (r *dirRoot) OpenFile(name string, flag int, mode fs.FileMode) (f *os.File, err error) {
	try := r.again
	if flag&os.O_CREATE != 0 {
		try = r.do
	}
	err = try("openat", func() error {
		f, err = r.Root.OpenFile(name, flag, mode)
		return err
	})
	return f, err
}

func (r *dirRoot) Open(name string) (*os.File, error) { return r.OpenFile(name, os.O_RDONLY, 0) }

func (r *dirRoot) Lstat(name string) (fi fs.FileInfo, err error) {
	err = r.again("stat", func() error {
		fi, err = r.Root.Lstat(name)
		return err
	})
	return fi, err
}

func (r *dirRoot) Remove(name string) error {
	tried := false
	return r.again("unlink", func() error {
		err := r.Root.Remove(name)
		if tried && os.IsNotExist(err) { // the first try took effect
			err = nil
		}
		tried = true
		return err
	})
}

// SameMount reports whether p and q are on one device. Whether a thing can be renamed from one to the other is told by the rename.
func (p *Entry) SameMount(q *Entry) (bool, error) { return p.dir.Info.ID.Dev == q.dir.Info.ID.Dev, nil }

// CopyUp says what stands at p.
func (p *Entry) CopyUp() (Info, error) { return p.object.Info, nil }

// removeAll is RemoveTree of what was looked at.
func (p *Entry) removeAll(context.Context) error { return p.root.RemoveAll(p.base) }
