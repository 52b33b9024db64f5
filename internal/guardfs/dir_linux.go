//go:build !rooted

package guardfs

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"

	"golang.org/x/sys/unix"
)

// Dir is a directory open for listing and walking. Everything below it is reached through its descriptor, one
// name at a time, and never through a link. All but List may be called from several goroutines at once.
type Dir struct {
	fs      *FS
	fd      descriptor
	name    string // true name
	st      status
	verdict DirVerdict
	mounts  *mounts // when it was opened, or what it was reached through
	listed  bool    // the descriptor has been read from
}

// newDir takes over fd, or closes it. The verdict is asked for at once, so that a Dir may serve several goroutines.
func newDir(f *FS, fd int, name string, st status) (*Dir, error) {
	m, err := f.kernel.mounts()
	if err != nil {
		f.kernel.close(fd) //nolint:errcheck // nothing was written through it
		return nil, &PathError{Op: "look up the mounts of", Path: name, Err: err}
	}
	return newDirUnder(f, fd, name, st, m, f.rules.Dir(name, m.others(name)...)), nil
}

func newDirUnder(f *FS, fd int, name string, st status, m *mounts, v DirVerdict) *Dir {
	d := &Dir{fs: f, name: name, st: st, mounts: m, verdict: v}
	d.fd.open(fd, f.kernel.calls)
	return d
}

// Info is the directory as it was when it was opened.
func (d *Dir) Info() Info { return d.st.info }

// Close gives the directory back.
func (d *Dir) Close() error { return d.fd.close() }

// allow asks the Judge about one named entry.
func (d *Dir) allow(name string, st *status, a Access) error {
	return d.ask(name, st, a, d.verdict.allows(name, st.info.Kind))
}

// ask is allow where it is known whether the verdict lets the name be seen. Objects with several names are always asked
// about: one of the other names may be refused, and the Judge knows them by identity, or by what is mounted now.
func (d *Dir) ask(name string, st *status, a Access, seen bool) error {
	info := &st.info
	mounted := info.Kind != KindAbsent && st.mount != d.st.mount || d.mounts.point(d.name, name)
	if seen && !mounted && (d.verdict.All && info.Kind != KindFile || info.Kind == KindFile && info.Links <= 1 && !d.verdict.held(info)) {
		return nil
	}
	full := join(d.name, name)
	o := Object{Spelled: full, True: full, Info: *info}
	if mounted {
		return d.fs.judge.Judge(o, a)
	}
	d.mounts.tell(&o)
	return d.fs.rules.Judge(o, a)
}

// shows applies the verdict to one entry.
func (d *Dir) shows(name string, k Kind) bool {
	if d.mounts.point(d.name, name) {
		return d.allow(name, &status{info: Info{Kind: k}}, Look) == nil
	}
	return d.verdict.allows(name, k)
}

// leads says of an entry that is not shown whether it may be entered.
func (d *Dir) leads(name string, k Kind) bool {
	return d.verdict.leads(name, k) && (!d.mounts.point(d.name, name) || d.allow(name, &status{info: Info{Kind: k}}, Walk) == nil)
}

// look stats one entry and asks the Judge, also about an entry that is missing or cannot be seen.
func (d *Dir) look(dir int, name string, a Access) (status, error) {
	st, err := d.fs.kernel.lstat(dir, name)
	if err != nil {
		st = status{}
	}
	if err := d.allow(name, &st, a); err != nil {
		return status{}, err
	}
	if err != nil {
		return status{}, d.failed("stat", name, err)
	}
	return st, nil
}

// Shut says that the call may see neither the entry name, of the kind k, nor what is below it. It may be asked after Close.
func (d *Dir) Shut(name string, k Kind) bool { return !d.shows(name, k) && !d.leads(name, k) }

// Stat looks at one entry, not following a link.
func (d *Dir) Stat(name string) (Info, error) {
	dir, err := d.enter(name)
	if err != nil {
		return Info{}, err
	}
	defer d.fd.done() //nolint:errcheck // Close reports it
	st, err := d.look(dir, name, Look)
	return st.info, err
}

// enter checks name and takes hold of the descriptor.
func (d *Dir) enter(name string) (int, error) {
	if err := checkName(name); err != nil {
		return -1, err
	}
	dir, err := d.fd.use()
	if err != nil {
		return -1, d.failed("open", name, err)
	}
	return dir, nil
}

// OpenDir opens the directory name below d. A link is ENOTDIR or ELOOP. A directory on another mount is ErrMount unless
// crossMounts is set, and then, on a kernel interface, ErrPseudo; with crossMounts unset no automount is triggered.
func (d *Dir) OpenDir(name string, crossMounts bool) (*Dir, error) {
	dir, err := d.enter(name)
	if err != nil {
		return nil, err
	}
	defer d.fd.done() //nolint:errcheck // Close reports it
	if !d.shows(name, KindDir) && !d.leads(name, KindDir) {
		if err := d.allow(name, &status{info: Info{Kind: KindDir}}, Look); err != nil {
			return nil, err
		}
		return nil, d.failed("open", name, unix.EACCES)
	}
	k := d.fs.kernel
	fd, err := k.openBelow(dir, name, crossMounts)
	if err != nil {
		if err == unix.EXDEV {
			err = ErrMount
		}
		return nil, d.failed("open", name, err)
	}
	st, err := k.stat(fd)
	crossed := st.mount != d.st.mount
	if err == nil && crossed {
		if err := d.allow(name, &st, Walk); err != nil {
			k.close(fd)
			return nil, err
		}
		if !crossMounts {
			err = ErrMount
		} else {
			err = k.refusePseudo(fd)
		}
	}
	if err != nil {
		k.close(fd)
		return nil, d.failed("open", name, err)
	}
	full := join(d.name, name)
	switch {
	case crossed:
		return newDir(d.fs, fd, full, st)
	case d.verdict.all() && d.mounts == nil: // by its definition it holds for everything below as well
		return newDirUnder(d.fs, fd, full, st, nil, d.verdict), nil
	}
	return newDirUnder(d.fs, fd, full, st, d.mounts, d.verdict.inside(d.fs.rules, name, full, d.mounts.others(full)...)), nil
}

// openBelow opens a directory for listing, or for passing through where listing is not allowed.
func (k *kernel) openBelow(dir int, name string, crossMounts bool) (fd int, err error) {
	const flags = unix.O_DIRECTORY | unix.O_NOFOLLOW
	for _, mode := range [...]int{unix.O_RDONLY | unix.O_NONBLOCK, unix.O_PATH} {
		if k.walk || crossMounts {
			fd, err = k.openat(dir, name, mode|flags, 0)
		} else {
			fd, err = k.openat2(dir, name, uint64(mode|flags), unix.RESOLVE_NO_XDEV|unix.RESOLVE_NO_SYMLINKS)
		}
		if err != unix.EACCES {
			break
		}
	}
	return fd, err
}

// OpenFile opens the regular file name below d for reading. A link or any other thing is a *NotRegularError, and is
// not opened to find that out.
func (d *Dir) OpenFile(name string) (*File, error) {
	dir, err := d.enter(name)
	if err != nil {
		return nil, err
	}
	defer d.fd.done() //nolint:errcheck // Close reports it
	k := d.fs.kernel
	for try := 0; ; try++ {
		st, err := d.look(dir, name, Read)
		if err != nil {
			return nil, err
		}
		full := join(d.name, name)
		if st.info.Kind != KindFile {
			return nil, &NotRegularError{Path: full, Kind: st.info.word()}
		}
		fd, err := k.openat(dir, name, ReadFlags|unix.O_NOFOLLOW, 0)
		if err == unix.ELOOP && try < retries { // a link took its place
			continue
		}
		if err != nil {
			return nil, d.failed("open", name, err)
		}
		f, err := newFile(k, fd, full)
		var odd *NotRegularError
		switch {
		case err == nil && f.info.ID == st.info.ID:
			if err := d.sameMount(fd, st); err != nil {
				f.Close() //nolint:errcheck // nothing was written through it
				return nil, err
			}
			return f, nil
		case err != nil && !errors.As(err, &odd):
			return nil, err
		case err == nil:
			f.Close() //nolint:errcheck // nothing was written through it
		}
		if try >= retries {
			return nil, &ConflictError{Path: full, Why: OpenedInTurns}
		}
	}
}

// sameMount refuses a file that is itself a mount point for something of a kernel interface.
func (d *Dir) sameMount(fd int, st status) error {
	if st.mount == d.st.mount {
		return nil
	}
	return d.fs.kernel.refusePseudo(fd)
}

// slurp reads the whole file. See kernel.slurp.
func (f *File) slurp(max int64) ([]byte, error) {
	return f.kernel.slurp(f.fd.fd, f.path(), f.info.Size, max)
}

// slurp reads a whole file. size is that of stat; the file may have grown since, or lie (FUSE). max < 0: no limit.
func (k *kernel) slurp(fd int, name string, size, max int64) ([]byte, error) {
	if max >= 0 && size > max {
		return nil, &TooLargeError{Path: name, Size: size, Max: max}
	}
	buf := make([]byte, size+1)
	for n := 0; ; {
		m, err := k.preadFull(fd, buf[n:], int64(n))
		n += m
		switch {
		case err != nil && err != io.EOF:
			return nil, &PathError{Op: "read", Path: name, Err: err}
		case max >= 0 && int64(n) > max:
			return nil, &TooLargeError{Path: name, Size: int64(n), Max: max}
		case err == io.EOF:
			return buf[:n:n], nil
		}
		buf = append(buf, make([]byte, len(buf))...)
	}
}

// Readlink reads the text of the link name below d. Anything else is EINVAL.
func (d *Dir) Readlink(name string) (string, error) {
	dir, err := d.enter(name)
	if err != nil {
		return "", err
	}
	defer d.fd.done() //nolint:errcheck // Close reports it
	if _, err := d.look(dir, name, Look); err != nil {
		return "", err
	}
	target, err := d.fs.kernel.target(dir, name)
	return target, d.failed("read link", name, err)
}

// Parent opens the directory above d, whatever it is called by now, if the Judge lets it be looked at. At "/" it
// answers io.EOF.
func (d *Dir) Parent() (*Dir, error) {
	dir, err := d.enter("parent")
	if err != nil {
		return nil, err
	}
	defer d.fd.done() //nolint:errcheck // Close reports it
	k := d.fs.kernel
	fd, err := k.openat(dir, "..", unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, &PathError{Op: "open parent of", Path: d.name, Err: err}
	}
	defer k.close(fd)
	st, err := k.stat(fd)
	var name string
	var gone bool
	if err == nil {
		name, gone, err = k.trueName(fd, &st)
	}
	switch {
	case err != nil:
	case gone:
		err = unix.ENOENT
	case name == "/" && st.info.ID == d.st.info.ID && st.mount == d.st.mount:
		return nil, io.EOF
	default:
		if err := d.fs.judge.Judge(Object{Spelled: name, True: name, Info: st.info}, Look); err != nil {
			return nil, err
		}
		var n int
		if n, err = k.reopenDir(fd); err == nil {
			return newDir(d.fs, n, name, st)
		}
	}
	return nil, &PathError{Op: "open parent of", Path: d.name, Err: err}
}

// batch is the size of the buffer of one getdents64, in bytes. The kernel returns early under a signal, so that a short answer is not
// the end; only an empty one is.
const batch = 64 << 10

func (d *Dir) list(buf []DirEntry, ways bool) (entries []DirEntry, denied int, err error) {
	entries = buf[:0]
	fd, err := d.fd.use()
	if err != nil {
		return entries, 0, &PathError{Op: "list", Path: d.name, Err: err}
	}
	defer d.fd.done() //nolint:errcheck // Close reports it
	k := d.fs.kernel
	if d.listed {
		if _, err := k.calls.Seek(fd, 0, io.SeekStart); err != nil {
			return entries, 0, &PathError{Op: "list", Path: d.name, Err: err}
		}
	}
	d.listed = true
	raw := k.batches.Get().(*[batch]byte)
	defer k.batches.Put(raw)
	for {
		n, err := k.getdents(fd, raw[:])
		if err == unix.EBADF { // the handle is for passing through only
			err = unix.EACCES
		}
		if err != nil {
			return entries, denied, &PathError{Op: "list", Path: d.name, Err: err}
		}
		if n == 0 {
			return entries, denied, nil
		}
		var hidden int
		if entries, hidden, err = d.parse(fd, raw[:n], entries, ways); err != nil {
			return entries, denied, &PathError{Op: "list", Path: d.name, Err: err}
		}
		denied += hidden
	}
}

// parse reads struct linux_dirent64: ino 8, offset 8, length 2, type 1, name up to a NUL. All names of a batch share
// one string.
func (d *Dir) parse(fd int, raw []byte, entries []DirEntry, ways bool) (_ []DirEntry, denied int, err error) {
	const header = 19
	names := string(raw)
	for at := 0; at < len(raw); {
		if len(raw)-at < header {
			return entries, denied, unix.EIO
		}
		length := int(binary.NativeEndian.Uint16(raw[at+16:]))
		if length < header || length > len(raw)-at {
			return entries, denied, unix.EIO
		}
		from, to := at+header, at+length
		if i := bytes.IndexByte(raw[from:to], 0); i >= 0 {
			to = from + i
		}
		e := DirEntry{Name: names[from:to], Ino: binary.NativeEndian.Uint64(raw[at:]), Kind: kindOfType(raw[at+18])}
		at += length
		if e.Name == "." || e.Name == ".." {
			continue
		}
		if e.Kind == KindAbsent { // the file system does not say
			st, err := d.fs.kernel.lstat(fd, e.Name)
			if err == unix.ENOENT {
				continue
			}
			if err != nil {
				e.Kind = KindOther
			} else {
				e.Kind = st.info.Kind
			}
		}
		if !d.shows(e.Name, e.Kind) {
			if d.fs.ours(e.Name) {
				continue // ours for a moment: no file of the tree
			}
			denied++
			if e.Way = ways && d.leads(e.Name, e.Kind); !e.Way {
				continue
			}
		}
		entries = append(entries, e)
	}
	return entries, denied, nil
}

func kindOfType(t byte) Kind {
	switch t {
	case unix.DT_REG:
		return KindFile
	case unix.DT_DIR:
		return KindDir
	case unix.DT_LNK:
		return KindSymlink
	case unix.DT_UNKNOWN:
		return KindAbsent
	}
	return KindOther
}

// OpenListed is OpenFile for a name that List gave as KindFile, without the look before: a walk that opens every file
// pays for one stat less, a sixth of a search. Another object that took the name meanwhile is opened without blocking
// and without following, found not to be a regular file, and closed unread. The Judge is asked about what was opened.
func (d *Dir) OpenListed(name string) (*File, error) {
	dir, err := d.enter(name)
	if err != nil {
		return nil, err
	}
	defer d.fd.done() //nolint:errcheck // Close reports it
	if !d.shows(name, KindFile) {
		return d.OpenFile(name) // the verdict is a quick one; the Judge has the last word
	}
	k := d.fs.kernel
	fd, err := k.openat(dir, name, ReadFlags|unix.O_NOFOLLOW, 0)
	if err != nil {
		return d.OpenFile(name) // for its errors, which do not tell a denied file from a missing one
	}
	st, err := k.stat(fd)
	if err == nil && st.info.Kind == KindFile && st.mount == d.st.mount {
		if err := d.ask(name, &st, Read, true); err != nil {
			k.close(fd)
			return nil, err
		}
		f := &File{kernel: k, dir: d.name, name: name, info: st.info}
		f.fd.open(fd, k.calls)
		return f, nil
	}
	k.close(fd)
	return d.OpenFile(name)
}
