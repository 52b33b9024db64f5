//go:build !rooted

package guardfs

import (
	"context"
	"io/fs"

	"golang.org/x/sys/unix"
)

// SameMount reports whether p and q are on one mount, so that a thing can be renamed from one to the other.
func (p *Place) SameMount(q *Place) (bool, error) {
	var mounts [2]uint64
	for i, place := range []*Place{p, q} {
		dir, err := place.fd.use()
		if err != nil {
			return false, place.failed("stat directory of", err)
		}
		st, err := place.fs.kernel.stat(dir)
		place.fd.done() //nolint:errcheck // Close reports it
		if err != nil {
			return false, place.failed("stat directory of", err)
		}
		mounts[i] = st.mount
	}
	return mounts[0] == mounts[1], nil
}

// CopyUp makes sure that what stands at p keeps its identity when it is moved, and says what it is then. On an overlay file system a move copies what is in a
// lower layer up, which makes another identity of it; so it is copied up before, by asking for its own mode or for writing, and stays as
// it is. What can't be is left to the move.
func (p *Place) CopyUp() (Info, error) {
	dir, err := p.fd.use()
	if err != nil {
		return Info{}, p.failed("open", err)
	}
	defer p.fd.done() //nolint:errcheck // Close reports it
	k := p.fs.kernel
	fd, st, err := k.occupant(dir, p.base)
	if err != nil {
		return Info{}, p.failed("open", err)
	}
	defer k.discard(fd)
	if seen := p.object.Info; seen.ID != st.info.ID || seen.Kind != st.info.Kind {
		return Info{}, p.conflict(Replaced)
	}
	if st.info.Kind != KindFile && st.info.Kind != KindDir {
		return st.info, nil
	}
	if magic, err := k.magic(fd); err != nil || magic != overlayMagic {
		return st.info, nil
	}
	if st.info.Kind == KindFile {
		n, err := k.reopen(fd, unix.O_WRONLY|unix.O_NONBLOCK|unix.O_NOCTTY)
		if err == nil {
			k.close(n) //nolint:errcheck // nothing was written through it
		}
	} else {
		k.chmod(fd, st.info.Mode) //nolint:errcheck // see above
	}
	if st, err = k.stat(fd); err != nil {
		return Info{}, p.failed("stat", err)
	}
	p.object.Info = st.info
	return st.info, nil
}

// maxNested is how deep RemoveTree goes down with a descriptor for each level; what lies deeper is brought up into the tree's
// own directory, which is read again until nothing is in it.
const maxNested = 100

// removeAll is RemoveTree of what was looked at.
func (p *Place) removeAll(ctx context.Context) error {
	dir, err := p.fd.use()
	if err != nil {
		return err
	}
	defer p.fd.done() //nolint:errcheck // Close reports it
	st, err := p.fs.kernel.stat(dir)
	if err != nil {
		return err
	}
	r := &treeRemoval{ctx: ctx, k: p.fs.kernel, mount: st.mount}
	return r.entry(dir, p.base, 0)
}

type treeRemoval struct {
	ctx   context.Context
	k     *kernel
	mount uint64
	top   int // the tree's own directory
}

func (r *treeRemoval) entry(dir int, name string, depth int) error {
	if err := r.ctx.Err(); err != nil {
		return err
	}
	err := r.k.unlink(dir, name, 0)
	if err == nil || err == unix.ENOENT {
		return nil
	}
	st, lerr := r.k.lstat(dir, name)
	if lerr != nil || st.info.Kind != KindDir {
		return err
	}
	if st.mount != r.mount {
		return ErrMount
	}
	if depth >= maxNested {
		return r.k.do("rename", func() error {
			return r.k.calls.Renameat2(dir, name, r.top, TempName(NewTag(), 0), unix.RENAME_NOREPLACE)
		})
	}
	if err := r.below(dir, name, depth); err != nil {
		return err
	}
	return r.k.unlink(dir, name, unix.AT_REMOVEDIR)
}

// below empties a directory.
func (r *treeRemoval) below(dir int, name string, depth int) error {
	const flags = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW
	fd, err := r.k.openat(dir, name, flags, 0)
	if err == nil {
		err = r.open(fd)
	}
	if err == unix.EACCES {
		if fd, err = r.k.openat(dir, name, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0); err == nil {
			err = r.open(fd)
			r.k.discard(fd)
		}
		if err == nil {
			fd, err = r.k.openat(dir, name, flags, 0)
		}
	}
	if err != nil {
		return err
	}
	defer r.k.discard(fd)
	if depth == 0 {
		r.top = fd
	}
	var buf [16 << 10]byte
	for {
		// From the beginning each time: what was read before is gone.
		if _, err := r.k.calls.Seek(fd, 0, 0); err != nil {
			return err
		}
		n, err := r.k.getdents(fd, buf[:])
		if err != nil {
			return err
		}
		_, _, names := unix.ParseDirent(buf[:n], -1, nil)
		if len(names) == 0 {
			return nil
		}
		for _, name := range names {
			if err := r.entry(fd, name, depth+1); err != nil {
				return err
			}
		}
	}
}

// open makes sure that names can be taken out of the directory behind fd.
func (r *treeRemoval) open(fd int) error {
	st, err := r.k.stat(fd)
	if err != nil || st.info.Mode&0o700 == 0o700 {
		return err
	}
	return r.k.chmod(fd, st.info.Mode|0o700)
}

// chmod gives the object behind fd, which may be an O_PATH handle, a mode.
func (k *kernel) chmod(fd int, mode fs.FileMode) error {
	return k.byHandle(func() error {
		return k.do("chmod", func() error { return k.calls.ChmodPath(fd, bitsOf(mode)) })
	})
}
