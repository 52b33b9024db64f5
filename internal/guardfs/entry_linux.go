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
	dir    *Object    // the directory; a temporary name has that of the entry that it is beside
	base   string
	object Object // the occupant when last looked at
	links  bool   // a symbolic link there may itself be loaded; see EntryLink
	temp   *temp  // of a temporary name; nil for others
}

// pinTo gives p the directory that t came to.
func (p *Entry) pinTo(t *trail) {
	p.pin = p.fs.pins.take(t.kernel, &p.fd, t.fd, &t.st, p.dir.True)
	t.fd = -1
}

// at calls f with the descriptor of p's directory. An errno of f comes back as the failure of op.
func (p *Entry) at(op string, f func(dir int) error) error { return p.failed(op, p.inside(f)) }

// inside is at with the error of f as it is.
func (p *Entry) inside(f func(dir int) error) error {
	dir, err := p.fd.use()
	if err == nil {
		defer p.fd.done() //nolint:errcheck // Close reports it
		err = f(dir)
	}
	return err
}

// occupied is at with a handle on what stands there, O_PATH; nothing there is fd -1 and KindAbsent.
func (p *Entry) occupied(op string, f func(dir, fd int, st status) error) error {
	return p.at(op, func(dir int) error {
		fd, st, err := p.fs.kernel.occupant(dir, p.base)
		if err != nil {
			return err
		}
		defer p.fs.kernel.discard(fd)
		return f(dir, fd, st)
	})
}

// occupant opens a handle on what stands at base. Nothing there is fd -1 and KindAbsent.
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

func (p *Entry) refusePseudo() error { return p.fs.kernel.refusePseudo(p.fd.fd) }

// lstat looks at the occupant.
func (p *Entry) lstat() (info Info, err error) {
	err = p.at("stat", func(dir int) error {
		st, err := p.fs.kernel.lstat(dir, p.base)
		info = st.info
		return err
	})
	return info, err
}

// Close gives the directory back, and the new file of a temporary name that is open.
func (p *Entry) Close() (err error) {
	if p.temp != nil && p.temp.file != nil {
		err = p.discard()
	}
	if cerr := p.fd.close(); err == nil {
		err = cerr
	}
	return err
}

// SyncNames puts the names in the entry's directory on stable storage.
func (p *Entry) SyncNames() error {
	return p.at("sync directory of", func(dir int) error {
		switch err := p.fs.kernel.syncDir(dir); err {
		case unix.EINVAL, unix.EROFS, unix.EACCES: // they cannot be synced there, by nobody
			return nil
		default:
			return err
		}
	})
}

// still reports a *ConflictError when the pinned directory is no longer where it was judged.
func (p *Entry) still() error {
	name, gone, err := p.where()
	switch {
	case err != nil:
		return err
	case gone:
		return p.conflict(DirRemoved)
	case name != p.dir.True:
		return p.conflict(DirMoved)
	}
	return nil
}

// where is the true name of the pinned directory now.
func (p *Entry) where() (name string, gone bool, err error) {
	err = p.at("name directory of", func(dir int) error {
		st, err := p.fs.kernel.stat(dir)
		if err == nil {
			name, gone, err = p.fs.kernel.trueName(dir, &st)
		}
		return err
	})
	return name, gone, err
}

// readTarget reads the text of the link that stands there.
func (p *Entry) readTarget() (text string, err error) {
	err = p.at("read link", func(dir int) (err error) {
		text, err = p.fs.kernel.target(dir, p.base)
		return err
	})
	return text, err
}

func (p *Entry) read(before *Before, max int64, how loading) (b *Before, err error) {
	k := p.fs.kernel
	if before != nil && before.Exists && before.Info.Kind == KindFile {
		if now, err := p.lstat(); err == nil && now.unchanged(&before.Info) && now.ID == p.object.Info.ID {
			return before, nil
		}
	}
	var denied error
	err = p.occupied("open", func(_, fd int, st status) (err error) {
		// An object that was judged is not judged again: a temporary name of a dead process would be denied.
		seen := p.object.Info
		p.object.Info = st.info
		if seen.ID != st.info.ID || seen.Kind != st.info.Kind {
			a := Modify
			if fd < 0 {
				a = Create
			}
			if denied = p.fs.judge.Judge(p.object, a); denied != nil {
				return nil
			}
		}
		if b = (&Before{}); fd >= 0 {
			b, err = k.load(fd, &st, p.object.Spelled, max, how)
		}
		return err
	})
	switch {
	case denied != nil:
		return nil, denied
	case err == nil && b.Info.Kind == KindSymlink && !p.links:
		return nil, &SymlinkError{Path: p.object.Spelled, Target: string(b.Content)}
	}
	return b, err
}

// load reads the object behind an O_PATH handle; a file is only described, or only hashed, where how says so. When it changes under the reading it is read again, a few times;
// a mixture does no harm, because its hash matches no content and the Publish is refused.
func (k *kernel) load(fd int, st *status, name string, max int64, how loading) (*Before, error) {
	failed := func(op string, err error) (*Before, error) {
		return nil, &PathError{Op: op, Path: name, Err: err}
	}
	switch st.info.Kind {
	case KindSymlink:
		target, err := k.target(fd, "")
		if err != nil {
			return failed("read link", err)
		}
		return newBefore(st.info, []byte(target), hashOf([]byte(target)), nil), nil
	case KindFile:
	default:
		return nil, &NotRegularError{Path: name, Kind: st.info.word()}
	}
	n, err := k.reopen(fd, ReadFlags)
	if err != nil {
		return failed("open", err)
	}
	defer k.close(n)
	for from, try := *st, 0; ; try++ {
		var content []byte
		var hash string
		switch {
		case how == onlyHash:
			if hash, err = k.hash(n); err != nil {
				return failed("read", err)
			}
		case !how.unread(from.info.Size, max):
			if content, err = k.slurp(n, name, from.info.Size, max); err != nil {
				return nil, err
			}
			hash = hashOf(content)
		}
		xattrs, err := k.xattrs(n)
		if err != nil {
			return failed("read attributes of", err)
		}
		to, err := k.stat(n)
		if err != nil {
			return failed("stat", err)
		}
		if to.info.unchanged(&from.info) || try >= 3 {
			return newBefore(to.info, content, hash, xattrs), nil
		}
		from = to
	}
}

// rmdir removes the empty directory there.
func (p *Entry) rmdir() error {
	k := p.fs.kernel
	return p.at("rmdir", func(dir int) error {
		return k.do("rmdir", func() error { return k.calls.Unlinkat(dir, p.base, unix.AT_REMOVEDIR) })
	})
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
	return k.carry(fd, &now, &m)
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

// SetAttributes gives the directory there, if it is the object own, the mode, owner and attributes of m and no others, and syncs that. It is
// not one step: a kill leaves a part.
func (p *Entry) SetAttributes(own Identity, m Metadata) (dropped []string, err error) {
	if err := p.look(Modify); err != nil {
		return nil, err
	}
	if p.object.Info.ID != own {
		return nil, p.conflict(Replaced)
	}
	err = p.withDir("set attributes of", func(fd int) error {
		k := p.fs.kernel
		have, err := k.xattrs(fd)
		for name := range have {
			if _, keep := m.Xattrs[name]; !keep && err == nil {
				if rerr := k.do("removexattr", func() error { return k.calls.Fremovexattr(fd, name) }); rerr != nil && !unkept(rerr) {
					err = rerr
				}
			}
		}
		var now status
		if err == nil {
			now, err = k.stat(fd)
		}
		if err == nil {
			dropped, err = k.carry(fd, &now, &m)
		}
		if err == nil {
			err = k.fsync(fd)
		}
		return err
	})
	return dropped, err
}

// withDir opens the directory there, if it still is the object that was looked at last.
func (p *Entry) withDir(op string, call func(fd int) error) error {
	return p.at(op, func(dir int) error {
		k := p.fs.kernel
		fd, err := k.openat(dir, p.base, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
		if err != nil {
			return err
		}
		defer k.close(fd) //nolint:errcheck // nothing was written through it
		st, err := k.stat(fd)
		if err == nil && st.info.ID != p.object.Info.ID {
			err = p.conflict(Replaced)
		}
		if err == nil {
			err = call(fd)
		}
		return err
	})
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
	for i, entry := range []*Entry{p, q} {
		err := entry.at("stat directory of", func(dir int) error {
			st, err := entry.fs.kernel.stat(dir)
			mounts[i] = st.mount
			return err
		})
		if err != nil {
			return false, err
		}
	}
	return mounts[0] == mounts[1], nil
}

// CopyUp makes sure that what stands at p keeps its identity when it is moved, and says what it is then. On an overlay file system a move copies what is in a
// lower layer up, which makes another identity of it; so it is copied up before, by asking for its own mode or for writing, or by a second
// name for a moment, and stays as it is. An object that can't be copied is left to the move.
func (p *Entry) CopyUp() (Info, error) {
	err := p.occupied("open", func(dir, fd int, st status) error {
		k := p.fs.kernel
		if seen := p.object.Info; seen.ID != st.info.ID || seen.Kind != st.info.Kind {
			return p.conflict(Replaced)
		}
		p.object.Info = st.info
		if magic, err := k.magic(fd); err != nil || magic != overlayMagic {
			return nil
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
		st, err := k.stat(fd)
		if err == nil {
			p.object.Info = st.info
		}
		return err
	})
	if err != nil {
		return Info{}, err
	}
	return p.object.Info, nil
}

// Layered says that what stands at p is on an overlay file system, where a directory of the lower layer can't be renamed.
func (p *Entry) Layered() (is bool, err error) {
	err = p.occupied("open", func(_, fd int, _ status) error {
		if fd < 0 {
			return nil
		}
		magic, err := p.fs.kernel.magic(fd)
		is = magic == overlayMagic
		return err
	})
	return is, err
}

// maxNested is how deep RemoveTree goes down with a descriptor for each level; a deeper directory is brought up into the tree's
// own directory, which is read again until nothing is in it.
const maxNested = 100

// removeAll is RemoveTree of what was looked at.
func (p *Entry) removeAll(ctx context.Context) error {
	return p.at("remove tree", func(dir int) error {
		st, err := p.fs.kernel.stat(dir)
		if err != nil {
			return err
		}
		r := &treeRemoval{ctx: ctx, k: p.fs.kernel, mount: st.mount}
		return r.entry(dir, p.base, 0)
	})
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
		// From the beginning each time: the names that were read before are gone.
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

// pins are the directories of entries, each held by one descriptor, however many entries there are: a restore of thousands of files in a
// few directories does with few. Every entry finds its directory by its own path; only then, if that is the very object that another entry
// has, on the same mount and still under the same name, it shares the other's descriptor. Safe for concurrent use.
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
	pins  *pins
	calls Calls
	key   pinKey
	fd    int
	users int
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
	held.users++
	ps.mu.Unlock()
	if held.fd != fd {
		// Where the server of a file system has forgotten the name, an old handle may have none any more, though its object has.
		if now, err := k.name(held.fd); err != nil || now != name {
			ps.release(held) //nolint:errcheck // nothing was written through it
			held = &pin{pins: ps, calls: k.calls, key: key, fd: fd, users: 1}
		} else {
			k.close(fd) //nolint:errcheck // nothing was written through it
		}
	}
	d.fd, d.owner = held.fd, held
	return held
}

// share makes d one more owner of held, while another one is.
func (ps *pins) share(d *descriptor, held *pin) {
	ps.mu.Lock()
	held.users++
	ps.mu.Unlock()
	d.fd, d.owner = held.fd, held
}

// Close ends one entry's use of it.
func (p *pin) Close(int) error { return p.pins.release(p) }

func (ps *pins) release(held *pin) error {
	ps.mu.Lock()
	held.users--
	last := held.users == 0
	if last && ps.dirs[held.key] == held {
		delete(ps.dirs, held.key)
	}
	ps.mu.Unlock()
	if !last {
		return nil
	}
	return held.calls.Close(held.fd)
}

// EntriesOpen is how many files are open at most for entries of these true names, all at once.
func EntriesOpen(names []string) int {
	dirs := map[string]bool{}
	for _, name := range names {
		dirs[path.Dir(name)] = true
	}
	return len(dirs)
}

// SharedDirs says that EntriesOpen counts directories, not names.
const SharedDirs = true
