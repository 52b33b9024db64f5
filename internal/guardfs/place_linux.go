//go:build !rooted

package guardfs

import (
	"golang.org/x/sys/unix"
)

// Place is one name in one pinned directory: where something is to be changed. The last component is never
// followed.
type Place struct {
	fs     *FS
	fd     descriptor // O_PATH on the directory
	pin    *pin       // what fd is of
	dir    Object     // the directory
	base   string
	object Object // the occupant when last looked at
	links  bool   // a symbolic link there may itself be loaded; see PlaceLink
	hold   *hold  // of a temporary name; nil for others
}

// pinTo gives p the directory that t came to.
func (p *Place) pinTo(t *trail) {
	p.pin = p.fs.pins.take(t.kernel, &p.fd, t.fd, &t.st, p.dir.True)
	t.fd = -1
}

func (p *Place) refusePseudo() error { return p.fs.kernel.refusePseudo(p.fd.fd) }

// lstat looks at the occupant.
func (p *Place) lstat() (Info, error) {
	dir, err := p.fd.use()
	if err != nil {
		return Info{}, err
	}
	defer p.fd.done() //nolint:errcheck // Close reports it
	st, err := p.fs.kernel.lstat(dir, p.base)
	return st.info, err
}

// Close gives the directory back, and what is new and open in a hold.
func (p *Place) Close() (err error) {
	if p.hold != nil && p.hold.staged != nil {
		err = p.hold.staged.discard()
	}
	if cerr := p.fd.close(); err == nil {
		err = cerr
	}
	return err
}

// SyncNames puts the names in the place's directory on stable storage.
func (p *Place) SyncNames() error {
	dir, err := p.fd.use()
	if err != nil {
		return p.failed("sync directory of", err)
	}
	defer p.fd.done() //nolint:errcheck // Close reports it
	switch err := p.fs.kernel.syncDir(dir); err {
	case nil, unix.EINVAL, unix.EROFS, unix.EACCES: // the last three: cannot be synced there, by nobody
		return nil
	default:
		return p.failed("sync directory of", err)
	}
}

// still reports a *ConflictError when the pinned directory is no longer where it was judged.
func (p *Place) still() error {
	name, gone, err := p.where()
	switch {
	case err != nil:
		return p.failed("naming directory of", err)
	case gone:
		return p.conflict(DirRemoved)
	case name != p.dir.True:
		return p.conflict(DirMoved)
	}
	return nil
}

func (p *Place) where() (name string, gone bool, err error) {
	dir, err := p.fd.use()
	if err != nil {
		return "", false, err
	}
	defer p.fd.done() //nolint:errcheck // Close reports it
	st, err := p.fs.kernel.stat(dir)
	if err != nil {
		return "", false, err
	}
	return p.fs.kernel.trueName(dir, &st)
}

// occupant opens a handle on what stands there now. Nothing there is fd -1 and KindAbsent.
func (k *kernel) occupant(dir int, base string) (fd int, st status, err error) {
	fd, err = k.openat(dir, base, unix.O_PATH|unix.O_NOFOLLOW, 0)
	if err == unix.ENOENT {
		return -1, status{}, nil
	}
	if err != nil {
		return -1, status{}, err
	}
	if st, err = k.stat(fd); err != nil {
		k.close(fd)
		return -1, status{}, err
	}
	return fd, st, nil
}

// readTarget reads the text of the link that stands there.
func (p *Place) readTarget() (string, error) {
	dir, err := p.fd.use()
	if err != nil {
		return "", err
	}
	defer p.fd.done() //nolint:errcheck // Close reports it
	fd, st, err := p.fs.kernel.occupant(dir, p.base)
	if err != nil {
		return "", err
	}
	defer p.fs.kernel.discard(fd)
	if st.info.Kind != KindSymlink {
		return "", unix.EINVAL
	}
	return p.fs.kernel.target(fd)
}

// Reload is Load for a caller who has what Load gave him before: when nothing about the
// occupant has changed since, times included, before is the answer and nothing is read. What a clock's
// tick may hide Swap finds.
func (p *Place) Reload(before *Before, max int64) (*Before, error) {
	return p.read(before, max, refuseLarger)
}

func (p *Place) read(before *Before, max int64, how loading) (*Before, error) {
	dir, err := p.fd.use()
	if err != nil {
		return nil, p.failed("open", err)
	}
	defer p.fd.done() //nolint:errcheck // Close reports it
	k := p.fs.kernel
	if before != nil && before.Exists && before.Info.Kind == KindFile {
		st, err := k.lstat(dir, p.base)
		if err == nil && st.unchanged(&before.Info) && st.info.ID == p.object.Info.ID {
			return before, nil
		}
	}
	fd, st, err := k.occupant(dir, p.base)
	if err != nil {
		return nil, p.failed("open", err)
	}
	defer k.discard(fd)
	// What was judged is not judged again: a hold of a dead process would be denied.
	seen := p.object.Info
	p.object.Info = st.info
	if seen.ID != st.info.ID || seen.Kind != st.info.Kind {
		a := Modify
		if fd < 0 {
			a = Create
		}
		if err := p.fs.judge.Judge(p.object, a); err != nil {
			return nil, err
		}
	}
	if fd < 0 {
		return &Before{}, nil
	}
	if st.info.Kind == KindFile && how.unread(st.info.Size, max) {
		return p.sum(fd, &st, how == onlyHash)
	}
	b, err := k.load(fd, &st, p.object.Spelled, max)
	if err == nil && b.Info.Kind == KindSymlink && !p.links {
		return nil, &SymlinkError{Path: p.object.Spelled, Target: string(b.Content)}
	}
	return b, err
}

// sum describes the file behind fd without its content.
func (p *Place) sum(fd int, st *status, hashed bool) (*Before, error) {
	k := p.fs.kernel
	n, err := k.reopen(fd, ReadFlags)
	if err != nil {
		return nil, p.failed("open", err)
	}
	defer k.close(n) //nolint:errcheck // nothing was written through it
	xattrs, err := k.xattrs(n)
	if err != nil {
		return nil, p.failed("read attributes of", err)
	}
	b := newBefore(st.info, nil, xattrs)
	if b.Hash = ""; hashed {
		if b.Hash, err = k.hash(n); err != nil {
			return nil, p.failed("read", err)
		}
	}
	return b, nil
}

// load reads the object behind an O_PATH handle. When it changes under the reading it is read again, a few times;
// a mixture does no harm, because its hash matches no content and the Swap is refused.
func (k *kernel) load(fd int, st *status, name string, max int64) (*Before, error) {
	failed := func(op string, err error) (*Before, error) {
		return nil, &PathError{Op: op, Path: name, Err: err}
	}
	switch st.info.Kind {
	case KindSymlink:
		target, err := k.target(fd)
		if err != nil {
			return failed("read link", err)
		}
		return newBefore(st.info, []byte(target), nil), nil
	case KindFile:
	default:
		return nil, &NotRegularError{Path: name, Kind: k.special(fd, &st.info)}
	}
	n, err := k.reopen(fd, ReadFlags)
	if err != nil {
		return failed("open", err)
	}
	defer k.close(n)
	for from, try := *st, 0; ; try++ {
		content, err := k.slurp(n, name, from.info.Size, max)
		if err != nil {
			return nil, err
		}
		xattrs, err := k.xattrs(n)
		if err != nil {
			return failed("read attributes of", err)
		}
		to, err := k.stat(n)
		if err != nil {
			return failed("stat", err)
		}
		if to.unchanged(&from.info) || try >= 3 {
			return newBefore(to.info, content, xattrs), nil
		}
		from = to
	}
}

// Allowed asks the system whether this process may make and remove names in the place's directory: a *PathError when not. That it may promises
// nothing, it only tells early what would fail.
func (p *Place) Allowed() error {
	dir, err := p.fd.use()
	if err != nil {
		return p.failed("change", err)
	}
	defer p.fd.done() //nolint:errcheck // Close reports it
	switch err := p.fs.kernel.calls.Faccessat(dir, ".", unix.W_OK|unix.X_OK); err {
	case unix.EACCES, unix.EPERM, unix.EROFS:
		return p.failed("change", err)
	}
	return nil
}
