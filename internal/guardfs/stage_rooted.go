//go:build !linux || rooted

package guardfs

import (
	"bytes"
	"context"
	"io"
	"io/fs"
	"os"
	"runtime"
	"syscall"
)

// temp is the state of an entry that is a temporary name.
type temp struct {
	made *Info // the object that Stage left there, as it was left; nil: none, or another process staged it
}

// beside is the entry of a temporary name in the directory of p.
func (p *Entry) beside(name string) (*Entry, error) {
	root, err := p.root.OpenRoot(".")
	if err != nil {
		return nil, err
	}
	o := Object{Spelled: p.object.Spelled, True: join(p.dir.True, name)}
	return &Entry{fs: p.fs, root: root, fi: p.fi, dir: p.dir, base: name, object: o, links: true, temp: &temp{}}, nil
}

// Stage makes what is asked for, complete with its metadata, in the directory of p under the name base, which is a temporary one or,
// in a directory that is staged itself, the one of p. Nothing is judged: p was. On an error nothing stays behind.
func (p *Entry) Stage(ctx context.Context, base string, what NewObject) (*Entry, *Staged, error) {
	if what.Kind != KindAbsent {
		if err := p.fs.journal.give(p.object.True, base); err != nil {
			return nil, nil, err
		}
	}
	t, err := p.beside(base)
	if err != nil {
		return nil, nil, p.failed("stage", err)
	}
	root, made := t.root, &Staged{}
	fi, err := root.Lstat(base)
	absent := os.IsNotExist(err)
	switch {
	case err == nil && what.Kind != KindAbsent:
		err = fs.ErrExist
	case absent && what.Kind == KindAbsent:
		err = nil
	case absent:
		if err = t.make(ctx, &what, made); err == nil {
			if fi, err = root.Lstat(base); err == nil {
				t.temp.made = &made.Info
			}
		}
	}
	if err != nil {
		// Some calls report a failure and took effect.
		if now, lerr := root.Lstat(base); absent && !os.IsExist(err) && lerr == nil &&
			infoOf(root.Root, base, now).Kind == what.Kind {
			root.Remove(base) //nolint:errcheck // it is on record
		}
		t.Close() //nolint:errcheck // the first error is the one that counts
		return nil, nil, p.nameFailed("stage", err)
	}
	if fi != nil {
		made.Info = infoOf(root.Root, base, fi)
	}
	if what.metadata() == nil {
		made.Meta = Metadata{Mode: made.Info.Mode, UID: made.Info.UID, GID: made.Info.GID}
	}
	return t, made, nil
}

// make makes the new object at p, with the metadata that it will have when it is published. Stage removes what an error leaves.
func (p *Entry) make(ctx context.Context, what *NewObject, made *Staged) error {
	meta := what.metadata()
	switch what.Kind {
	case KindFile:
		return p.makeFile(ctx, what, meta, made)
	case KindSymlink:
		return p.root.do("symlink", func() error { return p.root.Symlink(string(what.Content), p.base) })
	case KindDir:
		mode := fs.FileMode(0o777)
		if what.Mode != 0 {
			mode = what.Mode
		}
		if meta != nil {
			mode = 0o700 // nobody looks in before the right mode is set
		}
		err := p.root.do("mkdir", func() error { return p.root.Mkdir(p.base, mode) })
		if err != nil || meta == nil {
			return err
		}
		d, err := p.root.Open(p.base)
		if err != nil {
			return err
		}
		made.Dropped = carry(d, meta, true)
		return d.Close()
	}
	return syscall.EINVAL
}

// makeFile writes a new file.
func (p *Entry) makeFile(ctx context.Context, what *NewObject, meta *Metadata, made *Staged) error {
	mode := fs.FileMode(0o666)
	if what.Mode != 0 {
		mode = what.Mode
	}
	if meta != nil {
		mode = 0o600 // nobody looks in before the right mode is set
	}
	file, err := p.root.OpenFile(p.base, os.O_RDWR|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	var from io.ReaderAt = bytes.NewReader(what.Content)
	size := int64(len(what.Content))
	if what.Source != nil {
		from, size = what.Source, what.Size
	}
	hash, err := stream(ctx, from, size, func(b []byte) error {
		return p.root.do("write", func() error {
			_, err := file.Write(b)
			return err
		})
	})
	if what.Source != nil {
		if made.Hash = hash; err == nil {
			err = what.copied()
		}
		if err == io.EOF {
			err = &ConflictError{Path: what.Source.path(), Why: ContentChanged}
		}
	}
	if err == nil && meta != nil {
		made.Dropped = carry(file, meta, false)
	}
	if cerr := file.Close(); err == nil {
		err = cerr
	}
	if err == nil && what.Meta != nil && !what.Meta.ModTime.IsZero() {
		err = p.root.do("utimes", func() error { return p.root.Chtimes(p.base, what.Meta.ModTime, what.Meta.ModTime) })
	}
	return err
}

// FinishDir notes what the staged directory at p is once all is in it, and gives it the mode that it is to have.
func (p *Entry) FinishDir(made *Staged, mode fs.FileMode) error {
	fi, err := p.root.Lstat(p.base)
	if err == nil && fi.Mode().Perm() != mode.Perm() {
		if err = p.root.do("chmod", func() error { return p.root.Chmod(p.base, mode) }); err == nil {
			fi, err = p.root.Lstat(p.base)
		}
	}
	if err != nil {
		return p.failed("set mode of", err)
	}
	made.Info = infoOf(p.root.Root, p.base, fi)
	return nil
}

// Sync puts the content of the new file at a temporary name on stable storage.
func (p *Entry) Sync() error {
	if made := p.staged(); made == nil || made.Kind != KindFile {
		return nil
	}
	f, err := p.root.OpenFile(p.base, os.O_RDWR, 0)
	if err != nil { // one that may not be written can be synced all the same, but for Windows
		f, err = p.root.Open(p.base)
	}
	if err == nil {
		err = p.root.do("fsync", f.Sync)
		f.Close() //nolint:errcheck // nothing was written through it
	}
	return p.failed("sync", err)
}

// drop removes the thing own.
func (p *Entry) drop(own Precondition) error {
	why, _, err := p.match(own)
	if err == nil && why == "" {
		err = p.unlink(p.base)
	}
	if os.IsNotExist(err) {
		err = nil
	}
	return err
}

// carry gives the staged file or, with dir, directory the metadata m, the mode last; a file gets no set-id bits. dropped lists what could not or must not be kept.
func carry(file *os.File, m *Metadata, dir bool) (dropped []string) {
	mode := m.Mode
	if runtime.GOOS != "windows" {
		fi, err := file.Stat()
		if now := infoOfFile(file, fi); err != nil || now.UID != m.UID || now.GID != m.GID {
			if file.Chown(int(m.UID), int(m.GID)) != nil {
				dropped = append(dropped, "owner")
				if now.GID != m.GID && file.Chown(-1, int(m.GID)) != nil {
					dropped = append(dropped, "group")
					mode = mode&^0o070 | mode&(mode<<3)&0o070 // this group gets no more than everybody
				}
			}
		}
	}
	dropped = append(dropped, setXattrs(file, m.Xattrs)...)
	if keep := dir && len(dropped) == 0; !keep {
		if mode&fs.ModeSetuid != 0 {
			dropped = append(dropped, "setuid")
		}
		if mode&fs.ModeSetgid != 0 {
			dropped = append(dropped, "setgid")
		}
		mode &^= fs.ModeSetuid | fs.ModeSetgid
	}
	if file.Chmod(mode) != nil {
		dropped = append(dropped, "mode")
	}
	return dropped
}

// rmdir removes the empty directory there.
func (p *Entry) rmdir() error {
	if p.object.Info.Kind != KindAbsent && p.object.Info.Kind != KindDir {
		return syscall.ENOTDIR
	}
	return p.root.Remove(p.base)
}
