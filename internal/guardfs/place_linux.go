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

// Place pins the directory of path and looks at what stands there, if anything. The Judge is asked for Create
// where nothing does and for Modify otherwise. A symlink there is a *SymlinkError, a missing directory on the way a
// *MissingParentError. A directory or a special file is an occupant like any other; Load refuses it.
func (f *FS) Place(path string) (*Place, error) {
	for try := 0; ; try++ {
		p, err := f.PlaceLink(path)
		if err != nil || p.object.Info.Kind != KindSymlink {
			if err == nil {
				p.links = false
			}
			return p, err
		}
		target, err := p.readTarget()
		p.Close() //nolint:errcheck // nothing was written through it
		switch {
		case err == nil:
			return nil, &SymlinkError{Path: path, Target: target}
		case err != unix.EINVAL: // it is another thing by now: look again
			return nil, p.failed("read link", err)
		case try >= retries:
			return nil, p.conflict(LinkInTurns)
		}
	}
}

// placeFor is PlaceLink for whoever is about to do a.
func (f *FS) placeFor(path string, a Access) (*Place, error) {
	dir, base, err := splitPlace(path)
	if err != nil {
		return nil, err
	}
	k := f.kernel
	fd, st, parent, err := k.resolve(dir)
	p := &Place{fs: f, dir: parent, base: base, links: true}
	p.object = Object{Spelled: path, True: join(parent.True, base), Hops: parent.Hops}
	if err != nil || parent.Info.Kind != KindDir {
		if err := f.judge.Judge(p.object, absent(a)); err != nil {
			k.discard(fd)
			return nil, err
		}
		k.discard(fd)
		switch err {
		case nil:
			err = unix.ENOTDIR
		case unix.ENOENT:
			return nil, &MissingParentError{Path: path, Missing: k.firstMissing(dir), True: p.object.True}
		}
		return nil, &PathError{Op: "open directory of", Path: path, Err: err}
	}
	p.pin = f.pins.take(k, &p.fd, fd, &st, parent.True)
	fd = p.fd.fd
	if err := p.look(fd, a); err != nil {
		p.Close() //nolint:errcheck // nothing was written through it
		return nil, err
	}
	if err := k.refusePseudo(fd); err != nil {
		p.Close() //nolint:errcheck // nothing was written through it
		return nil, &PathError{Op: "open directory of", Path: path, Err: err}
	}
	return p, nil
}

// firstMissing is the topmost part of the path name that does not exist. All of it was judged
// before.
func (k *kernel) firstMissing(name string) string {
	t := k.walkPath(name)
	k.discard(t.fd)
	if t.err == nil || len(t.rest) == 0 || t.at == "" {
		return name
	}
	return join(t.at, t.rest[0])
}

// look brings the account of the occupant up to date and asks the Judge: for a if there is one,
// else for Create where a would change it.
func (p *Place) look(dir int, a Access) error {
	st, err := p.fs.kernel.lstat(dir, p.base)
	if err != nil {
		st, a = status{}, absent(a)
	}
	p.object.Info = st.info
	if err := p.fs.judge.Judge(p.object, a); err != nil {
		return err
	}
	if err != nil && err != unix.ENOENT {
		return p.failed("stat", err)
	}
	return nil
}

func (p *Place) failed(op string, err error) error {
	return &PathError{Op: op, Path: p.object.Spelled, Err: err}
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
func (p *Place) still(dir int) error {
	name, gone, err := p.where(dir)
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

func (p *Place) where(dir int) (name string, gone bool, err error) {
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
