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
	err := p.at("publish", func(dir int) error {
		return temp.at("publish", func(tempDir int) error {
			x := &exchange{p: p, temp: temp, dir: dir, tempDir: tempDir, out: out, in: in, displaced: -1, staged: -1}
			made := temp.staged()
			x.again = made == nil || made.ID != in.ID
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

// exchange is a rename that gives each of two names what the other has, each in a directory that is pinned.
type exchange struct {
	p, temp      *Entry
	dir, tempDir int // their directories
	out, in      Precondition
	displaced    int    // a handle on what was at p, or -1
	staged       int    // a handle on what was at temp, or -1
	gone         status // of what came out
	again        bool   // a step is taken back: in was at p before
	overwrote    bool   // the file system knows no exchange
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

func (x *exchange) run(pub *Published) (err error) {
	p, k := x.p, x.p.fs.kernel
	if err := p.still(); err != nil {
		return err
	}
	if x.tempDir != x.dir {
		if err := x.temp.still(); err != nil {
			return err
		}
	}
	if !x.in.nothing() {
		if err := x.openStaged(); err != nil {
			return err
		}
		defer k.close(x.staged) //nolint:errcheck // nothing was written through it
	}
	if !x.out.nothing() {
		// The last look comes right before the rename: another object that comes after it has to be put back.
		var why Interference
		if x.displaced, why, err = k.openLike(x.dir, p.base, x.out); err != nil {
			return p.failed("compare", err)
		}
		if why != "" {
			return p.conflict(why)
		}
		defer k.close(x.displaced) //nolint:errcheck // nothing was written through it
	}
	err = x.rename()
	switch {
	case err == nil || x.tookEffect():
		return x.verify(pub)
	case noFlags(err):
		return p.failed("publish", errors.ErrUnsupported)
	case err == unix.EEXIST && x.out.nothing():
		return p.conflict(Appeared)
	case err == unix.EEXIST:
		return x.temp.conflict(Appeared)
	case err == unix.ENOENT && !x.out.nothing() && !x.isAt(x.dir, p.base, x.out.ID):
		return p.conflict(WasRemoved)
	case err == unix.ENOENT && !x.in.nothing() && !x.isAt(x.tempDir, x.temp.base, x.in.ID):
		return p.conflict(TempRemoved)
	case err == unix.ENOENT:
		return p.conflict(DirRemoved)
	case x.tempDir != x.dir && x.temp.Allowed() != nil:
		return x.temp.nameFailed("publish", err)
	}
	return p.nameFailed("publish", err)
}

// openStaged opens a handle on the object that is to come in. One that we left there has to be as it was left: others who may
// write in the directory can put another thing under its name.
func (x *exchange) openStaged() error {
	p, k := x.p, x.p.fs.kernel
	fd, st, err := k.occupant(x.tempDir, x.temp.base)
	if err != nil {
		return err
	}
	if fd < 0 {
		return p.conflict(TempRemoved)
	}
	why, err := k.unlike(fd, &st, x.in, -1, true)
	if made := x.temp.staged(); err == nil && made != nil && made.ID == x.in.ID && !st.info.unchanged(made) {
		why = ContentChanged
	}
	if err == nil && why == "" {
		x.staged = fd
		return nil
	}
	k.close(fd) //nolint:errcheck // nothing was written through it
	if err != nil {
		return p.failed("compare", err)
	}
	return p.conflict(TempSwapped)
}

func (x *exchange) rename() error {
	k := x.p.fs.kernel
	switch {
	case x.in.nothing():
		return k.renameNew(x.dir, x.p.base, x.tempDir, x.temp.base)
	case x.out.nothing():
		return k.renameNew(x.tempDir, x.temp.base, x.dir, x.p.base)
	}
	return x.both()
}

func (x *exchange) isAt(dir int, name string, id Identity) bool {
	st, err := x.p.fs.kernel.lstat(dir, name)
	return err == nil && st.info.ID == id
}

// tookEffect reports whether a rename that failed was made all the same: remote file systems tell that of some.
func (x *exchange) tookEffect() bool {
	if !x.in.nothing() {
		return x.isAt(x.dir, x.p.base, x.in.ID)
	}
	st, err := x.p.fs.kernel.stat(x.displaced) // a copy up may have made another identity of it
	return err == nil && x.isAt(x.tempDir, x.temp.base, st.info.ID)
}

// renameNew is a rename that replaces nothing. Where the file system knows no such thing it is done
// by link, and where there is none of that either by a look and a rename.
func (k *kernel) renameNew(a int, from string, b int, to string) error {
	err := k.rename2(a, from, b, to, unix.RENAME_NOREPLACE)
	if !noFlags(err) {
		return err
	}
	err = k.do("link", func() error { return k.calls.Linkat(a, from, b, to) })
	if err == nil {
		if err = k.unlink(a, from, 0); err != nil {
			k.unlink(b, to, 0) //nolint:errcheck // the first error is the one that counts
		}
		return err
	}
	if err != unix.EEXIST {
		if _, err = k.lstat(b, to); err == nil {
			err = unix.EEXIST
		} else if err == unix.ENOENT {
			err = k.rename2(a, from, b, to, 0)
		}
	}
	return err
}

// both exchanges the names, whatever they have.
func (x *exchange) both() error {
	k := x.p.fs.kernel
	err := k.rename2(x.tempDir, x.temp.base, x.dir, x.p.base, unix.RENAME_EXCHANGE)
	if !noFlags(err) {
		return err
	}
	x.overwrote = true
	if x.again {
		return k.rename2(x.tempDir, x.temp.base, x.dir, x.p.base, 0)
	}
	return x.replace()
}

// replace is both for file systems that know no exchange. The file at p gets another name as well, so that p always has something, and
// the new one is renamed over it. That other name is the one of temp then.
func (x *exchange) replace() error {
	p, t, k := x.p, x.temp, x.p.fs.kernel
	old := OldName(t.base)
	linked := k.do("link", func() error { return k.calls.Linkat(x.dir, p.base, x.tempDir, old) }) == nil
	var at status
	var err error
	if linked {
		if at, err = k.lstat(x.tempDir, old); err == nil && !x.isAt(x.dir, p.base, at.info.ID) {
			err = unix.ENOENT // replaced, or removed, just now
		}
	} else { // then it is away for a moment
		err = k.renameNew(x.dir, p.base, x.tempDir, old)
	}
	if err == nil {
		if err = k.rename2(x.tempDir, t.base, x.dir, p.base, 0); err == nil || x.tookEffect() {
			t.base, t.object.True = old, join(t.dir.True, old)
			return nil
		}
		if !linked {
			k.renameNew(x.tempDir, old, x.dir, p.base) //nolint:errcheck // the first error is the one that counts
		}
	}
	if linked {
		k.removeOwn(x.tempDir, old, at.info.ID) //nolint:errcheck // see above
	}
	return err
}

// verify looks at what came out, and at where the directories are, and rolls back if that is not as it has to be.
func (x *exchange) verify(pub *Published) error {
	p, k := x.p, x.p.fs.kernel
	var why Interference
	var err error
	if !x.out.nothing() && !(x.again && x.overwrote) {
		why, x.gone, err = k.differs(x.tempDir, x.temp.base, x.out, x.displaced)
		if err == unix.ENOENT {
			why, err = "what it replaced was taken from under its temporary name", nil
		}
	}
	if err == nil && why == "" && !x.in.nothing() {
		// Others who exchanged the temporary name for another object have published that; others who replaced the file just now were
		// a moment later than we. It looks the same, and the pre-image is kept.
		now, lerr := k.lstat(x.dir, p.base)
		switch {
		case lerr != nil:
		case now.info.ID == x.in.ID:
			pub.Info = now.info
		case x.out.nothing():
			why = PublishedOrSwap
		default:
			why = PublishedToo
		}
	}
	if err == nil && why == "" {
		pub.True, why = p.moved()
	}
	if err == nil && why == "" && x.tempDir != x.dir {
		_, why = x.temp.moved()
	}
	if err == nil && why == "" {
		if pub.Displaced.ID = x.gone.info.ID; x.gone.info.Kind == KindFile {
			pub.LinksBroken = max(int(x.gone.info.Links)-1, 0)
		}
		return nil
	}
	left := x.rollback()
	if err != nil {
		return p.failed("compare", err)
	}
	return &ConflictError{Path: p.object.Spelled, Why: why, Left: left}
}

// rollback renames back, once, as long as the object that came in is where it came to; that loses nothing. The caller undoes the rest by
// the objects at the two names. left is the name of one that can't go back and has no temporary name.
func (x *exchange) rollback() (left string) {
	k := x.p.fs.kernel
	switch here := x.in.nothing() || x.isAt(x.dir, x.p.base, x.in.ID); {
	case x.in.nothing():
		if k.renameNew(x.tempDir, x.temp.base, x.dir, x.p.base) == unix.EEXIST && x.temp.temp == nil {
			left = x.temp.object.True
		}
	case !here || x.overwrote:
	case x.out.nothing():
		k.renameNew(x.dir, x.p.base, x.tempDir, x.temp.base) //nolint:errcheck // see above
	case x.both() == nil && !x.isAt(x.tempDir, x.temp.base, x.in.ID):
		x.both() //nolint:errcheck // something newer came before it: turn that round
	}
	return left
}

// DropLink removes the name temp if it is a link to the very file at p: a process died within a
// rename that is a link and a removal.
func (p *Entry) DropLink(temp *Entry) error {
	is, err := p.lstat()
	link, lerr := temp.lstat()
	if err != nil || lerr != nil || is.ID != link.ID {
		return nil
	}
	return temp.at("publish", func(dir int) error { return p.fs.kernel.unlink(dir, temp.base, 0) })
}

// overlayMagic is OVERLAYFS_SUPER_MAGIC of linux/magic.h.
const overlayMagic = 0x794c7630

// openLike looks at the object at name before that is changed. When it is the one that the caller saw (why is ""), fd is a handle on it that the caller
// gives back; it is -1 otherwise.
func (k *kernel) openLike(dir int, name string, want Precondition) (fd int, why Interference, err error) {
	fd, st, err := k.occupant(dir, name)
	if err != nil {
		return -1, "", err
	}
	if fd < 0 {
		return -1, WasRemoved, nil
	}
	if why, err = k.unlike(fd, &st, want, -1, true); err != nil || why != "" {
		k.close(fd)
		return -1, why, err
	}
	return fd, "", nil
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

// noFlags says that the file system does not know the flags of renameat2.
func noFlags(err error) bool {
	return err == unix.EINVAL || err == unix.ENOSYS || err == unix.EOPNOTSUPP
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
