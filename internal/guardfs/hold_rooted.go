//go:build !linux || rooted

package guardfs

import (
	"context"
	"io/fs"
	"os"
	"syscall"
)

// hold is what a place has that is a temporary name.
type hold struct {
	left *Info // what stat said of the new thing when it was left there
}

// left is what stat said of the new thing when it was left there; nil when there is none.
func (p *Place) left() *Info {
	if p.hold == nil || p.hold.left == nil || p.hold.left.Kind == KindDir {
		return nil
	}
	return p.hold.left
}

// Hold makes the n-th temporary name of the operation that has that tag, in the directory of p, and
// makes there what is asked for, complete with its metadata. Nothing is judged: p was. On an error
// nothing stays behind.
func (p *Place) Hold(ctx context.Context, tag string, n int, what NewObject) (*Place, *Made, error) {
	process, err := p.fs.temporaries.give(p.object.True)
	if err != nil {
		return nil, nil, err
	}
	root, err := p.root.OpenRoot(".")
	if err != nil {
		return nil, nil, p.failed("stage", err)
	}
	name := holdName(tag, n, process)
	h := p.beside(name, root)
	made := &Made{}
	fi, err := root.Lstat(name)
	if there := err == nil; there && what.Kind != KindAbsent {
		err = fs.ErrExist
	} else if !there && os.IsNotExist(err) {
		err = h.make(ctx, &what, made)
		if fi, _ = root.Lstat(name); fi != nil && err == nil && what.Kind != KindAbsent {
			h.hold.left = &made.Info
		}
	}
	if err != nil {
		h.Close() //nolint:errcheck // the first error is the one that counts
		return nil, nil, p.failed("stage", err)
	}
	if fi != nil {
		made.Info = infoOf(root, name, fi)
	}
	if what.Meta == nil && (what.Like == nil || !what.Like.Exists) {
		made.Meta = Metadata{Mode: made.Info.Mode, UID: made.Info.UID, GID: made.Info.GID}
	}
	return h, made, nil
}

// beside is the place of a temporary name in the directory of p. It holds nothing yet.
func (p *Place) beside(name string, root *os.Root) *Place {
	o := Object{Spelled: p.object.Spelled, True: join(p.dir.True, name)}
	return &Place{fs: p.fs, root: root, fi: p.fi, dir: p.dir, base: name, object: o, links: true, hold: &hold{}}
}

func (p *Place) make(ctx context.Context, what *NewObject, made *Made) error {
	meta := what.Meta
	if meta == nil && what.Like != nil && what.Like.Exists {
		meta = &what.Like.Meta
	}
	switch what.Kind {
	case KindAbsent:
		return nil
	case KindFile:
		s, err := p.Stage(ctx, what.Content, StageOptions{Like: what.Like, Meta: what.Meta, KeepSpecialBits: what.KeepSpecialBits})
		if err == nil {
			made.Dropped = s.dropped
			_, err = renameNew(p.root, s.temp, p.base)
		}
		return err
	case KindSymlink:
		return p.root.Symlink(string(what.Content), p.base)
	case KindDir:
		mode := fs.FileMode(0o777)
		if meta != nil {
			mode = 0o700 // nobody looks in before the right mode is set
		}
		err := p.root.Mkdir(p.base, mode)
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

// Sync puts the content of the new file of a hold on stable storage.
func (p *Place) Sync() error {
	if p.hold == nil || p.hold.left == nil || p.hold.left.Kind != KindFile {
		return nil
	}
	f, err := p.root.OpenFile(p.base, os.O_RDWR, 0)
	if err != nil { // one that may not be written can be synced all the same, but for Windows
		f, err = p.root.Open(p.base)
	}
	if err != nil {
		return p.failed("sync", err)
	}
	err = f.Sync()
	f.Close() //nolint:errcheck // nothing was written through it
	if err != nil {
		return p.failed("sync", err)
	}
	return nil
}

// Drop removes from a hold the thing own. Anything else that has the name stays there.
func (p *Place) Drop(own Expect) error {
	if p.hold == nil || own.nothing() {
		return nil
	}
	now, why, err := p.unlike(own)
	if err == nil && why == "" && now.Exists {
		err = p.root.Remove(p.base)
	}
	if err != nil && !os.IsNotExist(err) {
		p.fs.temporaries.stays()
		return p.failed("drop", err)
	}
	return nil
}
