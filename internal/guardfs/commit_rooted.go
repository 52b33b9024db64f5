//go:build !linux || rooted

package guardfs

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"runtime"
	"sync"
	"syscall"
)

// Staged is a complete file with a temporary name that waits to be published.
type Staged struct {
	place   *Place
	temp    string // "" when published or discarded
	fi      fs.FileInfo
	id      Identity
	sync    bool
	dropped []string
	once    sync.Once
}

// Stage writes content into a new file with a random name in the place's directory, gives it the metadata that it
// will have when published, and with o.Sync waits until it is on stable storage. On an error nothing stays behind.
// The Staged MUST be discarded, also after Commit.
func (p *Place) Stage(ctx context.Context, content []byte, o StageOptions) (*Staged, error) {
	switch kind := p.object.Info.Kind; kind {
	case KindAbsent, KindFile:
	default:
		return nil, &NotRegularError{Path: p.object.Spelled, Kind: kind.String()}
	}
	meta := o.Meta
	if meta == nil && o.Like != nil && o.Like.Exists {
		meta = &o.Like.Meta
	}
	mode := fs.FileMode(0o666)
	if meta != nil {
		mode = 0o600 // nobody looks in before the right mode is set
	}
	temp, err := p.temporary()
	if err != nil {
		return nil, err
	}
	s := &Staged{place: p, temp: temp, sync: o.Sync && !o.NameLater}
	file, err := p.root.OpenFile(s.temp, os.O_RDWR|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return nil, p.failed("stage", err)
	}
	err = s.fill(ctx, file, content, meta, o)
	if cerr := file.Close(); err == nil {
		err = cerr
	}
	if err == nil && o.Meta != nil && !o.Meta.ModTime.IsZero() {
		err = p.root.Chtimes(s.temp, o.Meta.ModTime, o.Meta.ModTime)
	}
	if err != nil {
		s.Discard() //nolint:errcheck // the first error is the one that counts
		return nil, p.failed("stage", err)
	}
	return s, nil
}

func (s *Staged) fill(ctx context.Context, file *os.File, content []byte, meta *Metadata, o StageOptions) (err error) {
	if s.fi, err = file.Stat(); err != nil {
		return err
	}
	const chunk = 4 << 20 // between two looks at ctx
	s.id = infoOfFile(file, s.fi).ID
	for len(content) > 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := file.Write(content[:min(len(content), chunk)])
		if err != nil {
			return err
		}
		content = content[n:]
	}
	if meta != nil {
		s.dropped = carry(file, meta, o.KeepSpecialBits)
	}
	if o.Sync {
		return file.Sync()
	}
	return nil
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

// ID is the staged file's identity, by which it is known also after a Commit, whatever that came to. The zero Identity where the system tells none.
func (s *Staged) ID() Identity { return s.id }

// Discard forgets the staged file. It may be called more than once, also after Commit.
func (s *Staged) Discard() error {
	if s.temp == "" {
		return nil
	}
	root := s.place.root
	if fi, err := root.Lstat(s.temp); err == nil && (s.fi == nil || os.SameFile(fi, s.fi)) {
		if err := root.Remove(s.temp); err != nil && !os.IsNotExist(err) {
			s.place.fs.temporaries.Stays()
			return s.place.failed("remove temporary "+s.temp+" of", err)
		}
	}
	s.temp = ""
	return nil
}

// Commit gives the staged file its name. before is what the caller saw there (nil or Exists false: nothing). Where
// nothing was, the name is made by a link, which never replaces. Where a file was, it is compared once more with
// before and then replaced. An error means that the place is as others left it; a *ConflictError, that somebody else
// was there in between. The staged file is used up either way.
func (s *Staged) Commit(ctx context.Context, before *Before) (*Published, error) {
	p := s.place
	if err := ctx.Err(); err != nil {
		return nil, p.failed("publish", err)
	}
	if s.temp == "" {
		return nil, p.failed("publish", fs.ErrClosed)
	}
	pub := &Published{Dropped: s.dropped, True: p.object.True}
	err := p.still()
	if err == nil {
		if before == nil || !before.Exists {
			err = s.publishNew(pub)
		} else {
			err = s.overwrite(before, pub)
		}
	}
	s.Discard() //nolint:errcheck // the first error is the one that counts
	if err != nil {
		return nil, err
	}
	if s.sync {
		if err := syncRoot(p.root); err != nil {
			pub.Unsynced = "syncing the directory: " + cause(err).Error()
		}
	}
	pub.Info = Info{Kind: KindFile}
	if fi, err := p.root.Lstat(p.base); err == nil && os.SameFile(fi, s.fi) {
		pub.Info = infoOf(p.root, p.base, fi)
	}
	return pub, nil
}

func (s *Staged) publishNew(pub *Published) error {
	p := s.place
	pub.CAS = "link"
	err := p.root.Link(s.temp, p.base)
	if err != nil && !os.IsExist(err) { // no hard links on this file system
		pub.CAS = "recheck"
		if _, lerr := p.root.Lstat(p.base); lerr == nil {
			err = syscall.EEXIST
		} else if os.IsNotExist(lerr) {
			if err = p.root.Rename(s.temp, p.base); err == nil {
				s.temp = ""
			}
		}
	}
	switch {
	case os.IsExist(err):
		return p.conflict(Appeared)
	case err != nil:
		return p.failed("publish", err)
	}
	return nil
}

func (s *Staged) overwrite(before *Before, pub *Published) error {
	p := s.place
	now, why, err := p.differs(p.base, before)
	if err != nil {
		return err
	}
	if why != "" {
		return p.conflict(why)
	}
	if err := p.root.Rename(s.temp, p.base); err != nil {
		return p.failed("publish", err)
	}
	s.temp = ""
	pub.CAS = "recheck"
	pub.LinksBroken = max(int(now.Info.Links)-1, 0)
	return nil
}

// differs compares what has the name now with what the caller saw; why is "" when they are the same.
func (p *Place) differs(name string, before *Before) (now *Before, why Meanwhile, err error) {
	now, err = p.loadAt(name, int64(len(before.Content)))
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

// Remove removes the file or symlink there, only if it still is what the caller saw. It takes the name away first,
// then looks at what it has taken, and gives the name back if that is something else: *ConflictError. An error from
// syncing the directory comes when it is removed already.
func (p *Place) Remove(ctx context.Context, before *Before, sync bool) error {
	if err := ctx.Err(); err != nil {
		return p.failed("remove", err)
	}
	if err := p.look(Remove); err != nil {
		return err
	}
	switch kind := p.object.Info.Kind; {
	case kind == KindAbsent && before != nil && before.Exists:
		return p.conflict(WasRemoved)
	case kind == KindAbsent:
		return p.failed("remove", syscall.ENOENT)
	case kind == KindDir || kind == KindOther:
		return &NotRegularError{Path: p.object.Spelled, Kind: kind.String()}
	case before == nil || !before.Exists:
		return p.conflict(Appeared)
	}
	temp, err := p.trade(0, before.Hash)
	if err != nil {
		return err
	}
	h := p.beside(temp, p.root)
	pub, err := p.Swap(ctx, h, Found(before), Expect{})
	if err != nil {
		return err
	}
	if err := h.Drop(pub.Displaced); err != nil {
		if _, berr := p.Swap(context.WithoutCancel(ctx), h, Expect{}, pub.Displaced); berr != nil {
			return &ConflictError{Path: p.object.Spelled, Why: NotRemoved, Left: join(p.dir.True, h.keep(temp, p.object.True))}
		}
		return err
	}
	if sync {
		if err := syncRoot(p.root); err != nil {
			return p.failed("sync the removal of", err)
		}
	}
	return nil
}

// RemoveEmptyDir removes the directory there. One that is not empty is ENOTEMPTY.
func (p *Place) RemoveEmptyDir(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return p.failed("rmdir", err)
	}
	return p.change("rmdir", Remove, func() error {
		if p.object.Info.Kind != KindAbsent && p.object.Info.Kind != KindDir {
			return syscall.ENOTDIR
		}
		return p.root.Remove(p.base)
	})
}

// syncRoot puts the names in a directory on stable storage, where the system can do that to a directory.
func syncRoot(root *os.Root) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := root.Open(".")
	if err != nil {
		return err
	}
	err = d.Sync()
	d.Close() //nolint:errcheck // nothing was written through it
	return err
}
