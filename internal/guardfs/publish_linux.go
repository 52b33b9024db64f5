//go:build !rooted

package guardfs

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"maps"

	"golang.org/x/sys/unix"
)

// Publish lets the names p and hold trade what they have: out has to be at p, and in at hold. It is
// one rename. It looks before and after. Where something else came out the answer is a *ConflictError, after one rename
// back if what came in is still there. After an error the names may have been traded all the same, and nothing is lost:
// the caller has both on record, and undoes the step by what stands there. What came out is not removed: see Drop.
//
// Where the file system knows no exchange, a file that others rename to p between the last look and the
// rename is lost; and when a step is taken back (hold is one of Temp), the object at p is not kept.
//
// hold is one that Stage gave, or the place that a thing is renamed to or from. Each place asks its
// own Judge, but for holds, whose names are Reserved.
func (p *Entry) Publish(ctx context.Context, hold *Entry, out, in Precondition) (*Published, error) {
	if err := ctx.Err(); err != nil {
		return nil, p.failed("publish", err)
	}
	if out.nothing() && in.nothing() {
		return nil, p.failed("publish", unix.ENOENT)
	}
	dir, err := p.fd.use()
	if err != nil {
		return nil, p.failed("publish", err)
	}
	defer p.fd.done() //nolint:errcheck // Close reports it
	other, err := hold.fd.use()
	if err != nil {
		return nil, p.failed("publish", err)
	}
	defer hold.fd.done() //nolint:errcheck // Close reports it
	left := hold.left()
	s := &swap{p: p, hold: hold, dir: dir, other: other, out: out, in: in, fd: -1, again: left == nil || left.ID != in.ID}
	if err := judgeSwap(p, hold, out, in); err != nil {
		return nil, err
	}
	if h := hold.hold; h != nil && h.staged != nil && h.staged.id == in.ID {
		if err := s.name(h); err != nil {
			return nil, p.orUnavailable(dir, err)
		}
	}
	pub := &Published{}
	if err := s.run(pub); err != nil {
		return nil, p.orUnavailable(dir, err)
	}
	return pub, nil
}

// name gives the nameless file at the hold its temporary name.
func (s *swap) name(h *hold) error {
	err := s.p.still()
	if err != nil {
		return err
	}
	if err = h.staged.take(s.other); err == unix.ENOENT {
		return s.p.conflict(DirRemoved)
	}
	var st status
	if err == nil {
		st, err = s.p.fs.kernel.stat(h.staged.fd.fd)
	}
	if err != nil {
		return s.p.failed("publish", err)
	}
	h.left, h.staged.named = &st.info, false // from here on the names tell
	return nil
}

// orUnavailable is err, or that nobody makes calls any more: then what looks like a conflict is none.
func (p *Entry) orUnavailable(dir int, err error) error {
	if _, ok := errors.AsType[*ConflictError](err); ok {
		if _, _, werr := p.where(); errors.Is(werr, ErrUnavailable) {
			return p.failed("publish", werr)
		}
	}
	return err
}

// A swap is two names that trade what they have, each in a directory that is held.
type swap struct {
	p, hold    *Entry
	dir, other int // their directories
	out, in    Precondition
	held, fd   int    // handles on what was at p, and at hold
	was        status // of fd, right before the rename
	gone       status // of what came out
	again      bool   // a step is taken back: in was here before
	steps      bool   // the file system knows no exchange
}

func (s *swap) run(pub *Published) error {
	p, k := s.p, s.p.fs.kernel
	if err := p.still(); err != nil {
		return err
	}
	if s.other != s.dir {
		if err := s.hold.still(); err != nil {
			return err
		}
	}
	if !s.in.nothing() && s.fd < 0 {
		if err := s.open(); err != nil {
			return err
		}
		defer k.close(s.fd) //nolint:errcheck // nothing was written through it
	}
	s.held = -1
	if !s.out.nothing() {
		// The last look comes right before the rename: what is swapped in after it has to be put
		// back.
		held, why, err := k.hold(s.dir, p.base, s.out)
		if err != nil {
			return p.failed("compare", err)
		}
		if why != "" {
			return p.conflict(why)
		}
		s.held = held
		defer k.close(held) //nolint:errcheck // nothing was written through it
	}
	err := s.rename()
	switch {
	case err == nil || s.took():
	case noFlags(err):
		return p.failed("publish", errors.ErrUnsupported)
	case err == unix.EEXIST && s.out.nothing():
		return p.conflict(Appeared)
	case err == unix.EEXIST:
		return s.hold.conflict(Appeared)
	case err == unix.ENOENT && !s.out.nothing() && !s.isAt(s.dir, p.base, s.out.ID):
		return p.conflict(WasRemoved)
	case err == unix.ENOENT && !s.in.nothing() && !s.isAt(s.other, s.hold.base, s.in.ID):
		return p.conflict(TempRemoved)
	case err == unix.ENOENT:
		return p.conflict(DirRemoved)
	case s.other != s.dir && s.hold.Allowed() != nil:
		return s.hold.nameFailed("publish", err)
	default:
		return p.nameFailed("publish", err)
	}
	return s.settle(pub)
}

// open takes hold of what is to come in. What we left there has to be as it was left: whoever may
// write in the directory can put another thing under its name.
func (s *swap) open() error {
	p, k := s.p, s.p.fs.kernel
	fd, st, err := k.occupant(s.other, s.hold.base)
	if err == nil && fd < 0 {
		return p.conflict(TempRemoved)
	}
	if err != nil {
		return p.failed("publish", err)
	}
	why, err := k.unlike(fd, &st, s.in, -1, true)
	if left := s.hold.left(); err == nil && left != nil && left.ID == s.in.ID && !st.unchanged(left) {
		why = ContentChanged
	}
	if err == nil && why == "" {
		s.fd, s.was = fd, st
		return nil
	}
	k.close(fd) //nolint:errcheck // nothing was written through it
	if err != nil {
		return p.failed("compare", err)
	}
	return p.conflict(TempSwapped)
}

func (s *swap) rename() error {
	k := s.p.fs.kernel
	switch {
	case s.in.nothing():
		return k.renameNew(s.dir, s.p.base, s.other, s.hold.base)
	case s.out.nothing():
		return k.renameNew(s.other, s.hold.base, s.dir, s.p.base)
	}
	return s.exchange()
}

func (s *swap) isAt(dir int, name string, id Identity) bool {
	st, err := s.p.fs.kernel.lstat(dir, name)
	return err == nil && st.info.ID == id
}

// took reports whether a rename that failed took effect: remote file systems tell that of some.
func (s *swap) took() bool {
	if !s.in.nothing() {
		return s.isAt(s.dir, s.p.base, s.in.ID)
	}
	held, err := s.p.fs.kernel.stat(s.held) // a copy up may have made another identity of it
	return err == nil && s.isAt(s.other, s.hold.base, held.info.ID)
}

// renameNew is a rename that replaces nothing. Where the file system knows no such thing it is done
// by link, and where there is none of that either by a look and a rename.
func (k *kernel) renameNew(a int, x string, b int, y string) error {
	err := k.rename2(a, x, b, y, unix.RENAME_NOREPLACE)
	if !noFlags(err) {
		return err
	}
	err = k.do("link", func() error { return k.calls.Linkat(a, x, b, y) })
	if err == nil {
		if err = k.unlink(a, x, 0); err != nil {
			k.unlink(b, y, 0) //nolint:errcheck // the first error is the one that counts
		}
		return err
	}
	if err != unix.EEXIST {
		if _, err = k.lstat(b, y); err == nil {
			err = unix.EEXIST
		} else if err == unix.ENOENT {
			err = k.rename2(a, x, b, y, 0)
		}
	}
	return err
}

// exchange lets the names trade, whichever has what.
func (s *swap) exchange() error {
	k := s.p.fs.kernel
	err := k.rename2(s.other, s.hold.base, s.dir, s.p.base, unix.RENAME_EXCHANGE)
	if !noFlags(err) {
		return err
	}
	s.steps = true
	if s.again {
		return k.rename2(s.other, s.hold.base, s.dir, s.p.base, 0)
	}
	return s.replace()
}

// replace is exchange for file systems that know none. The file at p gets another name as well, so that p always has something, and
// the new one is renamed over it. That other name is the one of the hold then.
func (s *swap) replace() error {
	p, h, k := s.p, s.hold, s.p.fs.kernel
	old := OldName(h.base)
	linked := k.do("link", func() error { return k.calls.Linkat(s.dir, p.base, s.other, old) }) == nil
	var at status
	var err error
	if linked {
		if at, err = k.lstat(s.other, old); err == nil && !s.isAt(s.dir, p.base, at.info.ID) {
			err = unix.ENOENT // replaced, or removed, just now
		}
	} else { // then it is away for a moment
		err = k.renameNew(s.dir, p.base, s.other, old)
	}
	if err == nil {
		if err = k.rename2(s.other, h.base, s.dir, p.base, 0); err == nil || s.took() {
			h.base, h.object.True = old, join(h.dir.True, old)
			return nil
		}
		if !linked {
			k.renameNew(s.other, old, s.dir, p.base) //nolint:errcheck // the first error is the one that counts
		}
	}
	if linked {
		k.removeOwn(s.other, old, at.info.ID) //nolint:errcheck // see above
	}
	return err
}

// settle looks at what came out, and at where the directories are, and either finishes the swap or undoes it.
func (s *swap) settle(pub *Published) error {
	p, k := s.p, s.p.fs.kernel
	var why Interference
	var name string
	var err error
	if !s.out.nothing() && !(s.again && s.steps) {
		why, s.gone, err = k.differs(s.other, s.hold.base, s.out, s.held)
		if err == unix.ENOENT {
			why, err = "what it replaced was taken from under its temporary name", nil
		}
	}
	if err == nil && why == "" && !s.in.nothing() {
		// Who swapped the temporary name for another has published that; who replaced the file just now was
		// a moment later than we. It looks the same, and the pre-image is kept.
		now, lerr := k.lstat(s.dir, p.base)
		switch {
		case lerr != nil:
		case now.info.ID == s.in.ID:
			pub.Info = now.info
		case s.out.nothing():
			why = PublishedOrSwap
		default:
			why = PublishedToo
		}
	}
	if err == nil && why == "" {
		name, why = p.moved()
	}
	if err == nil && why == "" && s.other != s.dir {
		_, why = s.hold.moved()
	}
	if err == nil && why == "" {
		pub.True = name
		if pub.Displaced.ID = s.gone.info.ID; s.gone.info.Kind == KindFile {
			pub.LinksBroken = max(int(s.gone.info.Links)-1, 0)
		}
		return nil
	}
	left := s.back()
	if err != nil {
		return p.failed("compare", err)
	}
	return &ConflictError{Path: p.object.Spelled, Why: why, Left: left}
}

// back renames back, once, as long as what came in is where it came to; that loses nothing. Whatever is at the two names then, the caller undoes by
// what stands there. left is the name of what can't go back and has no temporary name.
func (s *swap) back() (left string) {
	k := s.p.fs.kernel
	switch here := s.in.nothing() || s.isAt(s.dir, s.p.base, s.in.ID); {
	case s.in.nothing():
		if k.renameNew(s.other, s.hold.base, s.dir, s.p.base) == unix.EEXIST && s.hold.hold == nil {
			left = s.hold.object.True
		}
	case !here || s.steps:
	case s.out.nothing():
		k.renameNew(s.dir, s.p.base, s.other, s.hold.base) //nolint:errcheck // see above
	case s.exchange() == nil && !s.isAt(s.other, s.hold.base, s.in.ID):
		s.exchange() //nolint:errcheck // something newer came before it: turn that round
	}
	return left
}

// DropLink removes the name hold if it is a link to the very file at p: a process died within a
// rename that is a link and a removal.
func (p *Entry) DropLink(hold *Entry) error {
	dir, err := p.fd.use()
	if err != nil {
		return p.failed("publish", err)
	}
	defer p.fd.done() //nolint:errcheck // Close reports it
	other, err := hold.fd.use()
	if err != nil {
		return p.failed("publish", err)
	}
	defer hold.fd.done() //nolint:errcheck // Close reports it
	k := p.fs.kernel
	is, err := k.lstat(dir, p.base)
	held, herr := k.lstat(other, hold.base)
	if err != nil || herr != nil || is.info.ID != held.info.ID {
		return nil
	}
	if err := k.unlink(other, hold.base, 0); err != nil {
		return p.failed("publish", err)
	}
	return nil
}

// overlayMagic is OVERLAYFS_SUPER_MAGIC of linux/magic.h.
const overlayMagic = 0x794c7630

// hold looks at what has the name before it is changed. When it is what the caller saw (why is ""), held is a handle on it that the caller
// gives back; it is -1 otherwise.
func (k *kernel) hold(dir int, name string, want Precondition) (held int, why Interference, err error) {
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

// differs compares what has the name, once it was changed, with what the caller saw; held is what hold gave, or -1. Nothing there is ENOENT.
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
	case quick && st.unchanged(was):
		return "", nil
	case st.info.Kind == KindSymlink:
		target, err := k.target(fd)
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
