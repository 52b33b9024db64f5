//go:build !linux || rooted

package guardfs

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"runtime"
	"syscall"
)

// stage writes a new file under a temporary name in the place's directory, with the metadata that it
// will have when published. On an error nothing stays behind.
func (p *Place) stage(ctx context.Context, name string, what *NewObject, meta *Metadata, made *Made) (
	dropped []string, err error,
) {
	mode := fs.FileMode(0o666)
	if meta != nil {
		mode = 0o600 // nobody looks in before the right mode is set
	}
	file, err := p.root.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return nil, err
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
		dropped = carry(file, meta, what.KeepSpecialBits)
	}
	if cerr := file.Close(); err == nil {
		err = cerr
	}
	if err == nil && what.Meta != nil && !what.Meta.ModTime.IsZero() {
		err = p.root.Chtimes(name, what.Meta.ModTime, what.Meta.ModTime)
	}
	if err != nil {
		p.root.Remove(name) //nolint:errcheck // it is on record
		return nil, err
	}
	return dropped, nil
}

// carry gives the staged file the metadata m, the mode last. dropped lists what could not or must not be kept.
func carry(file *os.File, m *Metadata, special bool) (dropped []string) {
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
	if keep := special && len(dropped) == 0; !keep {
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

// differs compares what has the name now with what the caller saw; why is "" when they are the same.
func (p *Place) differs(name string, before *Before) (now *Before, why Meanwhile, err error) {
	now, err = p.loadAt(name, max(int64(len(before.Content)), before.Info.Size))
	var large *TooLargeError
	var odd *NotRegularError
	switch {
	case errors.As(err, &large):
		return now, ContentChanged, nil
	case errors.As(err, &odd):
		return now, NowA(odd.Kind), nil
	case err != nil:
		return now, "", err
	case !now.Exists:
		return now, WasRemoved, nil
	case now.Info.Kind != before.Info.Kind:
		return now, NowA(now.Info.Kind.String()), nil
	case now.Info.ID != before.Info.ID:
		return now, Replaced, nil
	case now.Info.Mode != before.Info.Mode:
		return now, ModeChanged, nil
	case now.Hash != before.Hash:
		return now, ContentChanged, nil
	}
	return now, "", nil
}

// rmdir removes the empty directory there.
func (p *Place) rmdir() error {
	if p.object.Info.Kind != KindAbsent && p.object.Info.Kind != KindDir {
		return syscall.ENOTDIR
	}
	return p.root.Remove(p.base)
}

// syncRoot puts the names in a directory on stable storage, where the system can do that to a directory.
func syncRoot(root *dirRoot) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := root.Open(".")
	if err != nil {
		return err
	}
	err = root.do("fsync", d.Sync)
	d.Close() //nolint:errcheck // nothing was written through it
	return err
}
