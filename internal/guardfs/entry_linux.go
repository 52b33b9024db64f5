//go:build !rooted

package guardfs

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"sync"

	"golang.org/x/sys/unix"
)

// Entry is one name in one pinned directory: where something is to be changed. The last component is never
// followed.
type Entry struct {
	fs     *FS
	fd     descriptor // O_PATH on the directory
	pin    *pin       // what fd is of
	dir    Object     // the directory
	base   string
	object Object // the occupant when last looked at
	links  bool   // a symbolic link there may itself be loaded; see EntryLink
	hold   *hold  // of a temporary name; nil for others
}

// pinTo gives p the directory that t came to.
func (p *Entry) pinTo(t *trail) {
	p.pin = p.fs.pins.take(t.kernel, &p.fd, t.fd, &t.st, p.dir.True)
	t.fd = -1
}

func (p *Entry) refusePseudo() error { return p.fs.kernel.refusePseudo(p.fd.fd) }

// lstat looks at the occupant.
func (p *Entry) lstat() (Info, error) {
	dir, err := p.fd.use()
	if err != nil {
		return Info{}, err
	}
	defer p.fd.done() //nolint:errcheck // Close reports it
	st, err := p.fs.kernel.lstat(dir, p.base)
	return st.info, err
}

// Close gives the directory back, and what is new and open in a hold.
func (p *Entry) Close() (err error) {
	if p.hold != nil && p.hold.staged != nil {
		err = p.hold.staged.discard()
	}
	if cerr := p.fd.close(); err == nil {
		err = cerr
	}
	return err
}

// SyncNames puts the names in the place's directory on stable storage.
func (p *Entry) SyncNames() error {
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
func (p *Entry) still() error {
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

func (p *Entry) where() (name string, gone bool, err error) {
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
func (p *Entry) readTarget() (string, error) {
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
// tick may hide Publish finds.
func (p *Entry) Reload(before *Before, max int64) (*Before, error) {
	return p.read(before, max, refuseLarger)
}

func (p *Entry) read(before *Before, max int64, how loading) (*Before, error) {
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
func (p *Entry) sum(fd int, st *status, hashed bool) (*Before, error) {
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
// a mixture does no harm, because its hash matches no content and the Publish is refused.
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

// Mkdir makes a directory there; the umask and the parent's default ACL apply. A name that exists is fs.ErrExist. Object tells of the new
// directory then. After any other error nothing stays behind, unless the system does not let it be taken away either. The
// name is not on stable storage before SyncNames.
func (p *Entry) Mkdir(mode fs.FileMode) error {
	dir, err := p.fd.use()
	if err != nil {
		return p.failed("mkdir", err)
	}
	defer p.fd.done() //nolint:errcheck // Close reports it
	if err := p.look(Create); err != nil {
		return err
	}
	if err := p.still(); err != nil {
		return err
	}
	k := p.fs.kernel
	err = k.do("mkdir", func() error { return k.calls.Mkdirat(dir, p.base, bitsOf(mode)) })
	if err == unix.EEXIST || err != nil && p.object.Info.Kind != KindAbsent {
		return p.failed("mkdir", err)
	}
	// The pinned directory may have been moved: what counts is where the new one really is. And some file systems report
	// failures of calls that took effect: nothing was there a moment ago.
	st, name, lerr := k.subdirectory(dir, p.base)
	switch {
	case err == nil && lerr == nil && name == join(p.dir.True, p.base):
		p.object.Info = st.info
		return nil
	case err != nil && lerr == unix.ENOENT:
		return p.failed("mkdir", err)
	case err != nil:
		err = p.failed("mkdir", err)
	case lerr != nil:
		err = p.failed("mkdir", lerr)
	default:
		err = p.conflict(DirMoved)
	}
	k.unlink(dir, p.base, unix.AT_REMOVEDIR) //nolint:errcheck // the first error is the one that counts
	return err
}

// rmdir removes the empty directory there.
func (p *Entry) rmdir() error {
	dir, err := p.fd.use()
	if err != nil {
		return err
	}
	defer p.fd.done() //nolint:errcheck // Close reports it
	return p.fs.kernel.do("rmdir", func() error { return p.fs.kernel.calls.Unlinkat(dir, p.base, unix.AT_REMOVEDIR) })
}

// empty reports whether nothing is in the directory behind a descriptor that was not read from yet.
func (k *kernel) empty(fd int) (bool, error) {
	var list [4096]byte
	n, err := k.getdents(fd, list[:])
	if err != nil {
		return false, err
	}
	_, n, _ = unix.ParseDirent(list[:n], -1, nil)
	return n == 0, nil
}

// carryDir is carry for a directory. With m.Xattrs nil an inherited ACL stays.
func (k *kernel) carryDir(fd int, m Metadata) (dropped []string, err error) {
	if m.Xattrs == nil {
		inherited, err := k.xattrs(fd)
		if err != nil {
			return nil, err
		}
		if acl, ok := inherited[aclName]; ok {
			m.Xattrs = map[string][]byte{aclName: acl}
		}
	}
	now, err := k.stat(fd)
	if err != nil {
		return nil, err
	}
	return k.carry(fd, &now, &m, true)
}

// DirMetadata is the metadata of the directory there, without its time; of one that this process may not read, without its attributes.
func (p *Entry) DirMetadata() (Metadata, error) {
	i := p.object.Info
	m := Metadata{Mode: i.Mode, UID: i.UID, GID: i.GID}
	err := p.withDir("read attributes of", func(fd int) (err error) {
		m.Xattrs, err = p.fs.kernel.xattrs(fd)
		return err
	})
	if errors.Is(err, unix.EACCES) {
		err = nil
	}
	return m, err
}

// withDir opens the directory there, if it still is the object that was looked at last.
func (p *Entry) withDir(op string, call func(fd int) error) error {
	dir, err := p.fd.use()
	if err != nil {
		return p.failed(op, err)
	}
	defer p.fd.done() //nolint:errcheck // Close reports it
	k := p.fs.kernel
	fd, err := k.openat(dir, p.base, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return p.failed(op, err)
	}
	defer k.close(fd)
	st, err := k.stat(fd)
	if err == nil && st.info.ID != p.object.Info.ID {
		return p.conflict(Replaced)
	}
	if err == nil {
		err = call(fd)
	}
	if err != nil {
		return p.failed(op, err)
	}
	return nil
}

// subdirectory looks at the directory name below dir, and at where it is.
func (k *kernel) subdirectory(dir int, name string) (status, string, error) {
	fd, err := k.openat(dir, name, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return status{}, "", err
	}
	defer k.close(fd)
	st, err := k.stat(fd)
	if err != nil {
		return status{}, "", err
	}
	at, gone, err := k.trueName(fd, &st)
	if err == nil && gone {
		err = unix.ENOENT
	}
	return st, at, err
}

// Fresh is the metadata that a new file, or with dir a new directory, made there with mode gets from the system: the umask, the
// directory's default ACL and its group have a say. What is made in a new directory gets the same as beside it. Nothing stays behind.
func (p *Entry) Fresh(mode fs.FileMode, dir bool) (m Metadata, err error) {
	at, err := p.fd.use()
	if err != nil {
		return m, p.failed("stage", err)
	}
	defer p.fd.done() //nolint:errcheck // Close reports it
	tag := NewTag()
	s := &staged{place: p, name: TempName(tag, 0)}
	if err = s.create(at, bitsOf(mode)); err == nil {
		m, err = s.fresh()
		if derr := s.discard(); err == nil {
			err = derr
		}
	}
	p.fs.journal.Forget(tag)
	if err != nil {
		return m, p.failed("stage", err)
	}
	if dir {
		m.Mode |= p.dir.Info.Mode & fs.ModeSetgid
	}
	return m, nil
}

// syncDir puts the names in the directory behind an O_PATH handle on stable storage.
func (k *kernel) syncDir(dir int) error {
	fd, err := k.reopen(dir, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return err
	}
	err = k.fsync(fd)
	k.close(fd)
	return err
}

// SameMount reports whether p and q are on one mount, so that a thing can be renamed from one to the other.
func (p *Entry) SameMount(q *Entry) (bool, error) {
	var mounts [2]uint64
	for i, place := range []*Entry{p, q} {
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
// lower layer up, which makes another identity of it; so it is copied up before, by asking for its own mode or for writing, or by a second
// name for a moment, and stays as it is. What can't be is left to the move.
func (p *Entry) CopyUp() (Info, error) {
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
	if magic, err := k.magic(fd); err != nil || magic != overlayMagic {
		return st.info, nil
	}
	switch st.info.Kind {
	case KindFile:
		n, err := k.reopen(fd, unix.O_WRONLY|unix.O_NONBLOCK|unix.O_NOCTTY)
		if err == nil {
			k.close(n) //nolint:errcheck // nothing was written through it
		}
	case KindDir:
		k.chmod(fd, st.info.Mode) //nolint:errcheck // see above
	case KindSymlink: // it has no mode and can't be opened; a second name does it
		name := TempName(NewTag(), 0)
		if k.calls.Linkat(dir, p.base, dir, name) == nil {
			k.unlink(dir, name, 0) //nolint:errcheck // see above
		}
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
func (p *Entry) removeAll(ctx context.Context) error {
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

// pins are the directories that places are in, each held by one descriptor, however many places there are: a restore of thousands of files in a
// few directories does with few. Every place finds its directory by its own path; only then, if that is the very object that another place
// holds, on the same mount and still under the same name, it shares the other's descriptor. Safe for concurrent use.
type pins struct {
	mu   sync.Mutex
	dirs map[pinKey]*pin
}

type pinKey struct {
	id    Identity // its number can't be another's while the descriptor is open
	mount uint64
	name  string
}

type pin struct {
	pins   *pins
	calls  Calls
	key    pinKey
	fd     int
	places int
}

// take makes d an owner of the directory called name that fd is a handle on: of fd itself, or, with fd closed, of the one that others hold.
func (ps *pins) take(k *kernel, d *descriptor, fd int, st *status, name string) *pin {
	key := pinKey{st.info.ID, st.mount, name}
	ps.mu.Lock()
	held := ps.dirs[key]
	if held == nil {
		held = &pin{pins: ps, calls: k.calls, key: key, fd: fd}
		ps.dirs[key] = held
	}
	held.places++
	ps.mu.Unlock()
	if held.fd != fd {
		// Where the server of a file system has forgotten the name, an old handle may have none any more, though its object has.
		if now, err := k.name(held.fd); err != nil || now != name {
			ps.release(held) //nolint:errcheck // nothing was written through it
			held = &pin{pins: ps, calls: k.calls, key: key, fd: fd, places: 1}
		} else {
			k.close(fd) //nolint:errcheck // nothing was written through it
		}
	}
	d.fd, d.owner = held.fd, held
	return held
}

// share makes d one more owner of what held holds, while another one is.
func (ps *pins) share(d *descriptor, held *pin) {
	ps.mu.Lock()
	held.places++
	ps.mu.Unlock()
	d.fd, d.owner = held.fd, held
}

// Close ends one place's use of it.
func (p *pin) Close(int) error { return p.pins.release(p) }

func (ps *pins) release(held *pin) error {
	ps.mu.Lock()
	held.places--
	last := held.places == 0
	if last && ps.dirs[held.key] == held {
		delete(ps.dirs, held.key)
	}
	ps.mu.Unlock()
	if !last {
		return nil
	}
	return held.calls.Close(held.fd)
}

// EntriesOpen is how many files are open at most for places of these true names, all at once.
func EntriesOpen(names []string) int {
	dirs := map[string]bool{}
	for _, name := range names {
		dirs[path.Dir(name)] = true
	}
	return len(dirs)
}

// SharedDirs says that EntriesOpen counts directories, not names.
const SharedDirs = true
