package run

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

// Derived lists the changes of a run. Close gives directories of the upper layer, that were opened up to be read, their modes back.
type Derived struct {
	Changes []Change

	up     int // the upper directory
	opened []opened
	synced bool
}

type opened struct {
	path string
	mode uint32
}

// maxPath is the length of the longest path that any program can use.
const maxPath = 4095

// Derive compares the upper layer u of a run, of which no program is running any more, with what is in the root. Of the root it reads names and
// states, and no contents.
//
// A whiteout is a name that is gone. A directory in both is gone into. In an opaque one all is gone that has no name above. A file that was
// copied up and is as it was is no change; that its content is the same only the caller can say.
func Derive(u Upper) (*Derived, error) {
	if u.Root == "" {
		return nil, errDamaged
	}
	up, err := unix.Open(u.Dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: u.Dir, Err: err}
	}
	d := &Derived{up: up}
	w := &deriving{d: d, u: u, marks: "trusted.overlay.", laid: map[string]bool{}}
	if u.User {
		w.marks = "user.overlay."
	}
	for _, name := range u.Laid {
		w.laid[name] = true
	}
	if err := w.root(); err != nil {
		d.Close()
		return nil, err
	}
	return d, nil
}

// Close ends the use of the upper layer.
func (d *Derived) Close() {
	for _, o := range slices.Backward(d.opened) {
		unix.Fchmodat(d.up, o.path, o.mode, 0) //nolint:errcheck // a run that is kept has a directory that is more open than it was
	}
	unix.Close(d.up) //nolint:errcheck // nothing was written through it
}

// Open opens the content that c brings from the upper layer.
func (d *Derived) Open(c *Change) (*os.File, error) {
	how := unix.OpenHow{Flags: unix.O_RDONLY | unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS}
	fd, err := unix.Openat2(d.up, c.Path, &how)
	if err == unix.EACCES { // a file of ours that its mode closes to us
		if err = unix.Fchmodat(d.up, c.Path, uint32(c.After.Mode.Perm())|0o400, 0); err == nil {
			fd, err = unix.Openat2(d.up, c.Path, &how)
			unix.Fchmodat(d.up, c.Path, uint32(c.After.Mode.Perm()), 0) //nolint:errcheck // it is put with the mode of After
		}
	}
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: c.Path, Err: err}
	}
	return os.NewFile(uintptr(fd), c.Path), nil
}

// Ready makes the objects of changes, which are about to leave the upper layer, fit to be in the workspace: it takes the kernel's marks off them, which
// would mislead the next run, and gives directories that were opened up their modes back. sync has their contents on the disk, with all else that
// waits for it there.
func (d *Derived) Ready(changes []Change, sync bool) error {
	if sync && !d.synced {
		if err := unix.Syncfs(d.up); err != nil {
			return &fs.PathError{Op: "sync", Path: changes[0].Path, Err: err}
		}
		d.synced = true
	}
	for i := range changes {
		c := &changes[i]
		if !c.marked || !c.After.Exists {
			continue
		}
		how := unix.OpenHow{Flags: unix.O_PATH | unix.O_NOFOLLOW | unix.O_CLOEXEC, Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS}
		fd, err := unix.Openat2(d.up, c.Path, &how)
		if err == nil {
			err = strip("/proc/self/fd/"+strconv.Itoa(fd), c.After.Mode)
			unix.Close(fd) //nolint:errcheck // nothing was written through it
		}
		if err != nil {
			return &fs.PathError{Op: "strip", Path: c.Path, Err: err}
		}
	}
	leave := map[string]bool{}
	for i := range changes {
		leave[changes[i].Path] = true
	}
	var err error
	for i := len(d.opened) - 1; i >= 0; i-- { // once they have left, Close would not find them
		if o := d.opened[i]; leave[o.path] {
			err = errors.Join(err, unix.Fchmodat(d.up, o.path, o.mode, 0))
			d.opened = slices.Delete(d.opened, i, i+1)
		}
	}
	return err
}

func strip(by string, mode fs.FileMode) error {
	names, err := grown(func(p []byte) (int, error) { return unix.Listxattr(by, p) })
	for key := range strings.SplitSeq(string(names), "\x00") {
		if err != nil || !IsMark(key) {
			continue
		}
		if err = unix.Removexattr(by, key); err == unix.EACCES { // attributes of users ask for the right to write
			if err = os.Chmod(by, mode|0o200); err == nil {
				err = errors.Join(unix.Removexattr(by, key), os.Chmod(by, mode))
			}
		}
	}
	return err
}

// deriving is one derivation on its way.
type deriving struct {
	d     *Derived
	u     Upper
	marks string // how the kernel's attributes begin
	laid  map[string]bool
}

// at is how a directory of the upper layer stands to the lower one.
type at struct {
	lower int   // the directory of this very name in the root; -1: there is none
	show  bool  // it shows through
	since bool  // it was changed after the run had begun
	doubt Doubt // of all below
}

// marked are the kernel's marks on one name of the upper layer.
type marked struct {
	any, whiteout, opaque, copied, other bool
}

func (w *deriving) add(c Change) {
	if c.Why == "" {
		c.Why = w.why(&c)
	}
	w.d.Changes = append(w.d.Changes, c)
}

// why says why a change can't be made, whatever policy says.
func (w *deriving) why(c *Change) Why {
	switch t := c.After.Mode.Type(); {
	case !utf8.ValidString(c.Path), max(len(w.u.Dir), len(w.u.Root))+1+len(c.Path) > maxPath:
		return WhyName
	case c.After.Exists && t != 0 && t != fs.ModeDir && t != fs.ModeSymlink:
		return WhySpecial
	case c.After.IsFile() && (c.After.Mode&(fs.ModeSetuid|fs.ModeSetgid) != 0 || c.After.Xattrs["security.capability"] != nil):
		return WhySetID
	}
	return ""
}

// root begins with the directories themselves. The upper one was made by us, without attributes.
func (w *deriving) root() error {
	lower, err := openPath(unix.AT_FDCWD, w.u.Root)
	if err != nil {
		return &fs.PathError{Op: "open", Path: w.u.Root, Err: err}
	}
	defer unix.Close(lower) //nolint:errcheck // it is O_PATH
	before, _, err := look(lower, "", w.marks)
	if err != nil {
		return &fs.PathError{Op: "look at", Path: w.u.Root, Err: err}
	}
	after, _, err := look(w.d.up, "", w.marks)
	if err != nil {
		return &fs.PathError{Op: "look at", Path: w.u.Dir, Err: err}
	}
	if after.Xattrs = before.Xattrs; !after.SameMeta(&before) {
		w.add(Change{Before: before, After: after})
	}
	return w.dir(w.d.up, "", at{lower: lower, show: true, since: w.since(&before)})
}

// dir walks the directory of the upper layer behind fd, whose path from the root is rel.
func (w *deriving) dir(fd int, rel string, in at) error {
	names, err := list(fd)
	if err != nil {
		return &fs.PathError{Op: "list", Path: path.Join(w.u.Dir, rel), Err: err}
	}
	slices.Sort(names)
	for _, name := range names {
		if err := w.name(fd, name, path.Join(rel, name), in); err != nil {
			return err
		}
	}
	if in.lower < 0 || in.show {
		return nil
	}
	return w.each(in.lower, rel, func(name, rel string, before State) error { // all is gone that has no name above
		if _, above := slices.BinarySearch(names, name); above || w.laid[rel] {
			return nil
		}
		c := Change{Path: rel, Before: before, Doubt: in.doubt}
		err := w.goes(in.lower, name, &c)
		w.add(c)
		return err
	})
}

// each calls f with what is in a directory of the root, whose path is rel.
func (w *deriving) each(lower int, rel string, f func(name, rel string, s State) error) error {
	names, err := list(lower)
	if err != nil {
		return &fs.PathError{Op: "list", Path: path.Join(w.u.Root, rel), Err: err}
	}
	for _, name := range names {
		s, _, err := look(lower, name, w.marks)
		if err == unix.ENOENT {
			continue
		}
		if err == nil {
			err = f(name, path.Join(rel, name), s)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// name looks at one name of the upper layer.
func (w *deriving) name(dir int, name, rel string, in at) error {
	after, m, err := look(dir, name, w.marks)
	if err != nil {
		return &fs.PathError{Op: "look at", Path: path.Join(w.u.Dir, rel), Err: err}
	}
	c := Change{Path: rel, After: after, Doubt: in.doubt, marked: m.any}
	if in.lower >= 0 {
		if c.Before, _, err = look(in.lower, name, w.marks); err == unix.ENOENT {
			err = nil
		} else if err != nil {
			return &fs.PathError{Op: "look at", Path: path.Join(w.u.Root, rel), Err: err}
		}
	}
	c.Doubt = max(c.Doubt, w.doubt(&c.Before))
	switch {
	case m.whiteout && (w.laid[rel] || !c.Before.Exists):
		return nil
	case m.whiteout:
		c.After = State{}
	case m.other:
		return &fs.PathError{Op: "look at", Path: path.Join(w.u.Dir, rel), Err: errors.New("it has a mark of an overlay that no run makes")}
	case w.laid[rel] && c.Before.Exists:
		c.Why = WhyHidden
	case m.copied && !c.Before.Exists && in.since: // it was removed meanwhile, or is another one that was renamed
		c.Doubt = max(c.Doubt, Perhaps)
	}
	c.Why = cmp.Or(c.Why, w.why(&c))
	if c.Before.IsDir() && !c.After.IsDir() {
		err = w.goes(in.lower, name, &c)
	}
	same := c.Before.Exists && c.After.SameMeta(&c.Before) // nobody has compared contents of files
	if c.Why != "" || !same || !c.After.IsDir() && (c.After.Links > 1 || c.Before.Links > 1 || c.After.IsFile() || c.After.Target != c.Before.Target) {
		w.add(c)
	}
	if err != nil || c.Why != "" || !c.After.IsDir() {
		return err
	}
	fd, err := w.open(dir, name, rel)
	if err != nil {
		return &fs.PathError{Op: "open", Path: path.Join(w.u.Dir, rel), Err: err}
	}
	defer unix.Close(fd) //nolint:errcheck // nothing was written through it
	below := at{lower: -1, show: !m.opaque && in.show, since: w.since(&c.Before), doubt: c.Doubt}
	if c.Before.IsDir() {
		if below.lower, err = openPath(in.lower, name); err != nil {
			return &fs.PathError{Op: "open", Path: path.Join(w.u.Root, rel), Err: err}
		}
		defer unix.Close(below.lower) //nolint:errcheck // it is O_PATH
	}
	return w.dir(fd, rel, below)
}

// goes looks for what others changed meanwhile, and what the program could not see, in a directory that is gone: the one of that name in the
// directory lower of the root. All else is as it is.
func (w *deriving) goes(lower int, name string, c *Change) error {
	if c.Doubt = max(c.Doubt, w.doubt(&c.Before)); !c.Before.IsDir() {
		return nil
	}
	fd, err := openPath(lower, name)
	if err != nil {
		return &fs.PathError{Op: "open", Path: path.Join(w.u.Root, c.Path), Err: err}
	}
	defer unix.Close(fd) //nolint:errcheck // it is O_PATH
	return w.each(fd, c.Path, func(name, rel string, s State) error {
		if w.laid[rel] {
			c.Why = WhyHidden
		}
		in := Change{Path: rel, Before: s, Doubt: c.Doubt, Why: c.Why}
		err := w.goes(fd, name, &in)
		c.Doubt, c.Why = in.Doubt, in.Why
		return err
	})
}

// since says that something happened to what is there after the run had begun.
func (w *deriving) since(s *State) bool {
	return s.Exists && !s.ChangeTime.Before(w.u.Stamp)
}

// doubt says whether others have changed meanwhile what is there. Of a directory only another place, mode or owner counts, which moves its
// change time and not the other one: each name in it tells for itself.
func (w *deriving) doubt(s *State) Doubt {
	switch {
	case w.u.Stamp.IsZero():
		return Perhaps
	case !w.since(s), s.IsDir() && s.ChangeTime.Equal(s.ModTime):
		return Sure
	case s.IsDir():
		return Perhaps
	}
	return Changed
}

// look is the state of one name in a directory, or of that itself for "", and the kernel's marks on it, which begin with marks.
func look(dir int, name, marks string) (s State, m marked, err error) {
	var st unix.Stat_t
	if err = unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW|unix.AT_EMPTY_PATH); err != nil {
		return s, m, err
	}
	s = State{Exists: true, Mode: modeOf(st.Mode), UID: st.Uid, GID: st.Gid, Links: uint64(st.Nlink), Ino: st.Ino,
		ModTime: time.Unix(st.Mtim.Unix()), ChangeTime: time.Unix(st.Ctim.Unix())}
	switch s.Mode.Type() {
	case fs.ModeSymlink:
		buf := make([]byte, maxPath+1)
		n, err := unix.Readlinkat(dir, name, buf)
		if s.Target = string(buf[:max(n, 0)]); err != nil {
			return s, m, err
		}
	case 0:
		s.Size = st.Size
	case fs.ModeDir:
	default:
		m.whiteout = whiteout00(&st)
		return s, m, nil
	}
	by := "/proc/self/fd/" + strconv.Itoa(dir) + "/" + name
	names, err := grown(func(p []byte) (int, error) { return unix.Llistxattr(by, p) })
	if len(names) == 0 || errors.Is(err, unix.ENOTSUP) {
		return s, m, nil
	}
	for key := range strings.SplitSeq(strings.TrimSuffix(string(names), "\x00"), "\x00") {
		if err != nil {
			break
		}
		var value []byte
		value, err = grown(func(p []byte) (int, error) { return unix.Lgetxattr(by, key, p) })
		if errors.Is(err, unix.ENODATA) || errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM) {
			err = nil // gone, or not for us
			continue
		}
		mark, ours := strings.CutPrefix(key, marks)
		if m.any = m.any || IsMark(key); !IsMark(key) {
			if s.Xattrs == nil {
				s.Xattrs = map[string][]byte{}
			}
			s.Xattrs[key] = value
		}
		switch {
		case !ours:
		case mark == "whiteout":
			m.whiteout = true
		case mark == "opaque":
			m.opaque = string(value) == "y"
		case mark == "redirect" || mark == "metacopy":
			m.other = true
		case mark == "origin":
			m.copied = true
		}
	}
	return s, m, err
}

// whiteout00 says that an object is a whiteout, however many names it has: the kernel gives one object to all. Tests replace it to see what
// happens without.
var whiteout00 = func(st *unix.Stat_t) bool { return st.Mode&unix.S_IFMT == unix.S_IFCHR && st.Rdev == 0 }

// open opens a directory of the upper layer. One of an ordinary user that its mode closes is opened up until Close.
func (w *deriving) open(dir int, name, rel string) (int, error) {
	const how = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC
	var st unix.Stat_t
	err := unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW)
	if err == nil && w.u.User && st.Mode&0o700 != 0o700 {
		w.d.opened = append(w.d.opened, opened{rel, st.Mode & 0o7777})
		err = unix.Fchmodat(dir, name, st.Mode&0o7777|0o700, 0)
	}
	if err != nil {
		return -1, err
	}
	return unix.Openat(dir, name, how, 0)
}

// list gives all names in a directory.
func list(fd int) (names []string, err error) {
	dup, err := unix.Openat(fd, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(dup), "")
	defer f.Close() //nolint:errcheck // nothing was written through it
	return f.Readdirnames(-1)
}

func openPath(at int, name string) (int, error) {
	return unix.Openat(at, name, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
}

// grown reads something whose size is not known before.
func grown(read func([]byte) (int, error)) ([]byte, error) {
	for size := 256; ; size *= 8 {
		p := make([]byte, size)
		n, err := read(p)
		if err == unix.ERANGE && size < 1<<20 {
			continue
		}
		return p[:max(n, 0)], err
	}
}

// modes are the bits of stat's mode and those of package fs.
var modes = [...]struct {
	mask, is uint32
	mode     fs.FileMode
}{{unix.S_IFMT, unix.S_IFDIR, fs.ModeDir}, {unix.S_IFMT, unix.S_IFLNK, fs.ModeSymlink}, {unix.S_IFMT, unix.S_IFIFO, fs.ModeNamedPipe},
	{unix.S_IFMT, unix.S_IFSOCK, fs.ModeSocket}, {unix.S_IFMT, unix.S_IFCHR, fs.ModeDevice | fs.ModeCharDevice}, {unix.S_IFMT, unix.S_IFBLK, fs.ModeDevice},
	{unix.S_ISUID, unix.S_ISUID, fs.ModeSetuid}, {unix.S_ISGID, unix.S_ISGID, fs.ModeSetgid}, {unix.S_ISVTX, unix.S_ISVTX, fs.ModeSticky}}

// modeOf is the mode of stat as package fs has it.
func modeOf(m uint32) fs.FileMode {
	mode := fs.FileMode(m & 0o777)
	for _, one := range modes {
		if m&one.mask == one.is {
			mode |= one.mode
		}
	}
	return mode
}
