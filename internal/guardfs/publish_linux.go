//go:build !rooted

package guardfs

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"maps"

	"golang.org/x/sys/unix"
)

// publish is Publish once both names are judged: one rename. After an error the names may have been exchanged all the same.
func (p *Entry) publish(temp *Entry, out, in Precondition) (*Published, error) {
	pub := &Published{}
	err := p.at("publish", func(int) error {
		return temp.at("publish", func(int) error {
			x := newExchange(p, temp, out, in)
			if t := temp.temp; t != nil && t.file != nil && t.file.id == in.ID {
				if err := x.giveName(t); err != nil {
					return err
				}
			}
			return x.run(pub)
		})
	})
	if _, ok := errors.AsType[*ConflictError](err); ok {
		if _, _, werr := p.where(); errors.Is(werr, ErrUnavailable) { // nobody makes calls any more: it is no conflict
			err = werr
		}
	}
	if err != nil {
		return nil, err
	}
	return pub, nil
}

// giveName gives the nameless file of temp its temporary name.
func (x *exchange) giveName(t *temp) error {
	if err := x.p.still(); err != nil {
		return err
	}
	if err := x.temp.giveName(); errors.Is(err, unix.ENOENT) {
		return x.p.conflict(DirRemoved)
	} else if err != nil {
		return err
	}
	st, err := x.p.fs.kernel.stat(t.file.fd.fd)
	if err != nil {
		return err
	}
	t.made, t.file.named = &st.info, false // from here on the names tell
	return nil
}

// handle is a descriptor on what is to be exchanged.
type handle struct{ fd int }

func (h handle) close(f *FS) { f.kernel.close(h.fd) } //nolint:errcheck // nothing was written through it

// identity gives the identity of the object that expect found as e asks.
func (h handle) identity(f *FS, e Precondition) (Identity, error) {
	st, err := f.kernel.stat(h.fd)
	return st.info.ID, err
}

// expect looks at what stands at p before that is exchanged, and opens a handle on it. why says in what it is not what is wanted, or not as
// Stage left it; then there is no handle.
func (p *Entry) expect(want Precondition) (h handle, why Interference, err error) {
	k := p.fs.kernel
	var st status
	h.fd, st, why, err = k.openAs(p.fd.fd, p.base, want)
	if made := p.staged(); err == nil && why == "" && made != nil && made.ID == want.ID && !st.info.unchanged(made) {
		why = ContentChanged
		h.close(p.fs)
	}
	return h, why, err
}

// came compares what has come to p with what was wanted, and says what it is; h is a handle on what was.
func (p *Entry) came(want Precondition, h handle) (why Interference, now Info, err error) {
	why, st, err := p.fs.kernel.differs(p.fd.fd, p.base, want, h.fd)
	return why, st.info, err
}

// apart reports whether the directories of p and q may be different ones.
func (p *Entry) apart(q *Entry) bool { return p.fd.fd != q.fd.fd }

// lookAt looks at a name in p's directory. Its error is an errno, as of the next ones.
func (p *Entry) lookAt(name string) (info Info, err error) {
	err = p.inside(func(dir int) error {
		st, err := p.fs.kernel.lstat(dir, name)
		info = st.info
		return err
	})
	return info, err
}

// same reports whether two names are those of one object.
func (p *Entry) same(x string, q *Entry, y string) bool {
	a, aerr := p.lookAt(x)
	b, berr := q.lookAt(y)
	return aerr == nil && berr == nil && a.ID == b.ID
}

// renameTo renames what is at from in p's directory to a name in q's.
func (p *Entry) renameTo(from string, q *Entry, to string, how renaming) error {
	flags := [...]uint{replaces: 0, refuses: unix.RENAME_NOREPLACE, exchanges: unix.RENAME_EXCHANGE}[how]
	return p.inside(func(a int) error {
		return q.inside(func(b int) error { return p.fs.kernel.rename2(a, from, b, to, flags) })
	})
}

// linkTo gives what is at from in p's directory a second name, in q's.
func (p *Entry) linkTo(from string, q *Entry, to string) error {
	k := p.fs.kernel
	return p.inside(func(a int) error {
		return q.inside(func(b int) error {
			return k.do("link", func() error { return k.calls.Linkat(a, from, b, to) })
		})
	})
}

// unlink removes a name, which is no directory's.
func (p *Entry) unlink(name string) error {
	return p.inside(func(dir int) error { return p.fs.kernel.unlink(dir, name, 0) })
}

// overlayMagic is OVERLAYFS_SUPER_MAGIC of linux/magic.h.
const overlayMagic = 0x794c7630

// openLike looks at the object at name before that is changed. When it is the one that the caller saw (why is ""), fd is a handle on it that the caller
// gives back; it is -1 otherwise.
func (k *kernel) openLike(dir int, name string, want Precondition) (fd int, why Interference, err error) {
	fd, _, why, err = k.openAs(dir, name, want)
	return fd, why, err
}

// openAs is openLike that says what it has opened.
func (k *kernel) openAs(dir int, name string, want Precondition) (fd int, st status, why Interference, err error) {
	fd, st, err = k.occupant(dir, name)
	if err != nil {
		return -1, st, "", err
	}
	if fd < 0 {
		return -1, st, WasRemoved, nil
	}
	if why, err = k.unlike(fd, &st, want, -1, true); err != nil || why != "" {
		k.close(fd)
		return -1, st, why, err
	}
	return fd, st, "", nil
}

// differs compares the object at name, once that was changed, with the one that the caller saw; held is the handle of openLike, or -1. Nothing there is ENOENT.
func (k *kernel) differs(dir int, name string, want Precondition, held int) (why Interference, st status, err error) {
	fd, st, err := k.occupant(dir, name)
	if err != nil {
		return "", st, err
	}
	if fd < 0 {
		return "", st, unix.ENOENT
	}
	defer k.close(fd)
	why, err = k.unlike(fd, &st, want, held, false)
	return why, st, err
}

// copiedUp says that an object is the one that was expected though its identity is another: to change a name of an overlay file system's
// lower layer copies the file up, which gives it another time of birth, and where it had several names another number too. A handle that was held over
// the change knows it still. Without one, as when somebody else had it copied up, device and number have to be the same, and the content is
// compared in any case.
func (k *kernel) copiedUp(fd, held int, now, was Identity) bool {
	if held >= 0 {
		st, err := k.stat(held)
		if err == nil && st.info.ID == now {
			return true
		}
	}
	if now.Dev != was.Dev || now.Ino != was.Ino {
		return false
	}
	magic, err := k.magic(fd)
	return err == nil && magic == overlayMagic
}

// unlike says in what an object is not what the caller saw: identity, kind, mode, owner or the hash of the
// content. why is "" when they are the same. An object that nobody touched (size, times and all) since it was
// read is not read again when quick is set; a name that was just changed shows in the times of its object, so
// that quick is of no use there.
func (k *kernel) unlike(fd int, st *status, want Precondition, held int, quick bool) (why Interference, err error) {
	if want.Like != nil && st.info.Kind != want.Like.Info.Kind {
		return NowA(st.info.Kind.String()), nil
	}
	before := want.content()
	if st.info.ID != want.ID && !k.copiedUp(fd, held, st.info.ID, want.ID) {
		return Replaced, nil
	}
	if before == nil {
		return "", nil
	}
	was := &before.Info
	switch {
	case st.info.Mode != was.Mode:
		return ModeChanged, nil
	case st.info.UID != was.UID || st.info.GID != was.GID:
		return OwnerChanged, nil
	case quick && st.info.unchanged(was):
		return "", nil
	case st.info.Kind == KindSymlink:
		target, err := k.target(fd, "")
		if err == nil && hashOf([]byte(target)) != before.Hash {
			why = LeadsElsewhere
		}
		return why, err
	case st.info.Size != was.Size:
		return ContentChanged, nil
	}
	n, err := k.reopen(fd, ReadFlags)
	if err != nil {
		return "", err
	}
	defer k.close(n)
	hash, err := k.hash(n)
	if err != nil {
		return "", err
	}
	if hash != before.Hash {
		return ContentChanged, nil
	}
	if quick { // the times differ and the content does not: then it is an attribute, or nothing
		xattrs, err := k.xattrs(n)
		if err == nil && !maps.EqualFunc(xattrs, before.Meta.Xattrs, bytes.Equal) {
			why = AttributesChanged
		}
		return why, err
	}
	return "", nil
}

// hash is the SHA-256 of a file's content in hex.
func (k *kernel) hash(fd int) (string, error) {
	raw := k.batches.Get().(*[batch]byte)
	defer k.batches.Put(raw)
	h := sha256.New()
	for off := int64(0); ; {
		n, err := k.preadFull(fd, raw[:], off)
		h.Write(raw[:n]) //nolint:errcheck // never fails
		off += int64(n)
		if err == io.EOF {
			return hex.EncodeToString(h.Sum(nil)), nil
		}
		if err != nil {
			return "", err
		}
	}
}

// moved looks where the directory is right after a publication. A move to a place that the Judge refuses
// is a reason to take it back; any other is only told.
func (p *Entry) moved() (name string, why Interference) {
	at, gone, err := p.where()
	switch {
	case err != nil:
		return "", DirNameless
	case gone:
		return "", DirRemoved
	}
	o := p.object
	if o.True = join(at, p.base); at != p.dir.True {
		if err := p.fs.judge.Judge(o, Modify); err != nil {
			return "", DirRefused
		}
	}
	return o.True, ""
}
