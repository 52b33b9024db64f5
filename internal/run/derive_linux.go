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

// Derived is what a run has come to. Close gives directories of the upper layer, that were opened up to be read, their modes back.
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

// Derive compares the upper layer u of a run, of which no program is running any more, with what is in the root.
//
// A whiteout is a name that is gone. A directory in both is gone into. In an opaque one all is gone that has no name above. A file that was
// copied up and is as it was is no change; that its content is the same only the caller can say.
func Derive(u Upper, lower Lower) (*Derived, error) {
	up, err := unix.Open(u.Dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: u.Dir, Err: err}
	}
	d := &Derived{up: up}
	w := &deriving{d: d, u: u, lower: lower, marks: "trusted.overlay.", laid: map[string]bool{}}
	if u.User {
		w.marks = "user.overlay."
	}
	for _, name := range u.Laid {
		w.laid[name] = true
	}
	before, err := lower.Look("")
	var after State
	if err == nil {
		after, _, err = w.look(up, ".")
	}
	if after.Xattrs = before.Xattrs; err == nil && !after.SameMeta(&before) { // the upper one was made by us, without attributes
		w.add(Change{Before: before, After: after})
	}
	if err == nil {
		err = w.dir(up, "", at{there: true, show: true})
	}
	if err != nil {
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
	fd, err := unix.Openat2(d.up, c.From, &how)
	if err == unix.EACCES { // a file of ours that its mode closes to us
		if err = unix.Fchmodat(d.up, c.From, uint32(c.After.Mode.Perm())|0o400, 0); err == nil {
			fd, err = unix.Openat2(d.up, c.From, &how)
			unix.Fchmodat(d.up, c.From, uint32(c.After.Mode.Perm()), 0) //nolint:errcheck // it is put with the mode of After
		}
	}
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: c.Path, Err: err}
	}
	return os.NewFile(uintptr(fd), c.From), nil
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
		if !c.marked || c.From == "" {
			continue
		}
		how := unix.OpenHow{Flags: unix.O_PATH | unix.O_NOFOLLOW | unix.O_CLOEXEC, Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS}
		fd, err := unix.Openat2(d.up, c.From, &how)
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
		leave[changes[i].From] = true
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
	lower Lower
	marks string // how the kernel's attributes begin
	laid  map[string]bool
}

// at is how a directory of the upper layer stands to the lower one.
type at struct {
	there bool   // the root has a directory of this very name
	show  bool   // the lower directory shows through
	lower string // that directory: another one than there after a rename by a mark
	moved bool   // by such a rename
	doubt Doubt  // of all below
}

// marked are the kernel's marks on one name of the upper layer.
type marked struct {
	any                             bool
	whiteout, opaque, copied, other bool
	redirect                        string
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
	case !utf8.ValidString(c.Path):
		return WhyName
	case len(w.u.Dir)+1+len(c.From) > maxPath || len(w.u.Root)+1+len(c.Path) > maxPath:
		return WhyLong
	case c.After.Exists && t != 0 && t != fs.ModeDir && t != fs.ModeSymlink:
		return WhySpecial
	case c.After.IsFile() && (c.After.Mode&(fs.ModeSetuid|fs.ModeSetgid) != 0 || c.After.Xattrs["security.capability"] != nil):
		return WhySetID
	case slices.Contains(w.u.Mounts, c.Path):
		return WhyMount
	}
	return ""
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
	have := names
	if in.moved && in.show {
		err = w.missing(in.lower, names, func(name string) error {
			have = append(have, name)
			return w.came(path.Join(rel, name), path.Join(in.lower, name), in)
		})
	}
	if err == nil && in.there && (in.moved || !in.show) { // all is gone that had the name before, and has none above
		err = w.missing(rel, have, func(name string) error { return w.gone(path.Join(rel, name), State{}, in.doubt) })
	}
	return err
}

// missing hands over the names in a directory of the lower layer that are not among those above.
func (w *deriving) missing(dir string, above []string, use func(name string) error) error {
	names, err := w.lower.List(dir)
	for _, name := range names {
		if err == nil && !slices.Contains(above, name) && !w.laid[path.Join(dir, name)] {
			err = use(name)
		}
	}
	return err
}

// came adds what has come to rel with a directory that was renamed by a mark: it is at from in the lower layer.
func (w *deriving) came(rel, from string, in at) error {
	c := Change{Path: rel, Lower: from, Doubt: in.doubt}
	var err error
	if c.After, err = w.lower.Look(from); err == nil && in.there {
		c.Before, err = w.lower.Look(rel)
	}
	if err != nil {
		return err
	}
	c.After.Links, c.After.Ino = 1, 0 // each of its names comes by itself
	if c.Doubt = max(c.Doubt, w.doubt(&c.After), w.doubt(&c.Before)); !c.After.IsDir() {
		return w.leaf(c)
	}
	if !c.Before.IsDir() || !c.After.SameMeta(&c.Before) {
		w.add(c)
	}
	in.there = c.Before.IsDir()
	var have []string
	err = w.missing(from, nil, func(name string) error {
		have = append(have, name)
		return w.came(path.Join(rel, name), path.Join(from, name), in)
	})
	if err == nil && in.there {
		err = w.missing(rel, have, func(name string) error { return w.gone(path.Join(rel, name), State{}, in.doubt) })
	}
	return err
}

// name looks at one name of the upper layer.
func (w *deriving) name(dir int, name, rel string, in at) error {
	after, m, err := w.look(dir, name)
	if err != nil {
		return &fs.PathError{Op: "look at", Path: path.Join(w.u.Dir, rel), Err: err}
	}
	c := Change{Path: rel, After: after, From: rel, Doubt: in.doubt}
	if in.there { // else what is there is below a link, or below what is no directory
		if c.Before, err = w.lower.Look(rel); err != nil {
			return err
		}
	}
	if m.whiteout {
		if w.laid[rel] || !c.Before.Exists {
			return nil
		}
		return w.gone(rel, c.Before, in.doubt)
	}
	c.marked, c.Doubt = m.any, max(c.Doubt, w.doubt(&c.Before))
	if m.copied && !c.Before.Exists && in.there { // it was removed meanwhile, or is another one that was renamed
		above, err := w.lower.Look(strings.TrimPrefix(path.Dir("/"+rel), "/"))
		if err != nil {
			return err
		}
		if w.since(&above) {
			c.Doubt = max(c.Doubt, Perhaps)
		}
	}
	switch {
	case m.other || m.redirect != "" && !w.u.Redirect:
		c.Why = WhyUnknown
	case w.laid[rel] && c.Before.Exists:
		c.Why = WhyHidden
	}
	if !after.IsDir() {
		return w.leaf(c)
	}
	if c.Why = cmp.Or(c.Why, w.why(&c)); !c.Before.IsDir() || !after.SameMeta(&c.Before) || c.Why != "" {
		w.add(c)
	}
	if c.Why != "" {
		return nil
	}
	fd, err := w.open(dir, name, rel)
	if err != nil {
		return &fs.PathError{Op: "open", Path: path.Join(w.u.Dir, rel), Err: err}
	}
	defer unix.Close(fd) //nolint:errcheck // nothing was written through it
	below := at{there: c.Before.IsDir(), lower: path.Join(in.lower, name), moved: in.moved, doubt: c.Doubt}
	below.show = !m.opaque && in.show && (below.there || in.moved)
	if m.redirect != "" {
		below.lower, below.moved, below.show = path.Join(in.lower, m.redirect), true, true
		if top, is := strings.CutPrefix(m.redirect, "/"); is {
			below.lower = top
		}
		below.moved = below.lower != rel
	}
	return w.dir(fd, rel, below)
}

// leaf adds the change of a file, link or special file, if it is one. A file that was copied up stays in the list even where nothing else
// differs, since nobody has compared the contents; and so does a name whose file has others.
func (w *deriving) leaf(c Change) error {
	if c.After.Is(fs.ModeSymlink) && c.Before.Exists && c.Why == "" && c.After.Links <= 1 && c.Before.Links <= 1 &&
		c.After.SameMeta(&c.Before) && c.After.Target == c.Before.Target {
		return nil
	}
	if c.Before.IsDir() {
		n := len(w.d.Changes)
		if err := w.gone(c.Path, c.Before, c.Doubt); err != nil { // for its doubts
			return err
		}
		gone := w.d.Changes[n]
		w.d.Changes = w.d.Changes[:n]
		c.Doubt, c.Why = max(c.Doubt, gone.Doubt), cmp.Or(c.Why, gone.Why)
	}
	w.add(c)
	return nil
}

// gone adds that what was at rel is gone, a directory with all in it. The zero before is one that was not looked at.
func (w *deriving) gone(rel string, before State, doubt Doubt) (err error) {
	if !before.Exists {
		if before, err = w.lower.Look(rel); err != nil || !before.Exists {
			return err
		}
	}
	c := Change{Path: rel, Before: before, Doubt: max(doubt, w.doubt(&before))}
	if before.IsDir() {
		if err := w.inside(rel, &c); err != nil {
			return err
		}
	}
	w.add(c)
	return nil
}

// inside looks for what others changed meanwhile, and what the program could not see, in a directory that is gone.
func (w *deriving) inside(dir string, c *Change) error {
	names, err := w.lower.List(dir)
	for _, name := range names {
		rel := path.Join(dir, name)
		if w.laid[rel] {
			c.Why = WhyHidden
		}
		if slices.Contains(w.u.Mounts, rel) {
			c.Why = WhyMount
			continue
		}
		var s State
		if s, err = w.lower.Look(rel); err != nil {
			break
		}
		if c.Doubt = max(c.Doubt, w.doubt(&s)); s.IsDir() {
			if err = w.inside(rel, c); err != nil {
				break
			}
		}
	}
	return err
}

// since says that something happened to what is there after the run had begun.
func (w *deriving) since(s *State) bool {
	return s.Exists && !s.ChangeTime.Before(w.u.Stamp) && !w.u.Put[s.Ino].Equal(s.ChangeTime)
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

// look is the state of one name of the upper layer, and the kernel's marks on it.
func (w *deriving) look(dir int, name string) (s State, m marked, err error) {
	var st unix.Stat_t
	if err = unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
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
		mark, ours := strings.CutPrefix(key, w.marks)
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
		case mark == "redirect":
			m.redirect = string(value)
		case mark == "metacopy":
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

// modeOf is the mode of stat as package fs has it.
func modeOf(m uint32) fs.FileMode {
	mode := fs.FileMode(m & 0o777)
	switch m & unix.S_IFMT {
	case unix.S_IFDIR:
		mode |= fs.ModeDir
	case unix.S_IFLNK:
		mode |= fs.ModeSymlink
	case unix.S_IFIFO:
		mode |= fs.ModeNamedPipe
	case unix.S_IFSOCK:
		mode |= fs.ModeSocket
	case unix.S_IFCHR:
		mode |= fs.ModeDevice | fs.ModeCharDevice
	case unix.S_IFBLK:
		mode |= fs.ModeDevice
	}
	for bit, to := range map[uint32]fs.FileMode{unix.S_ISUID: fs.ModeSetuid, unix.S_ISGID: fs.ModeSetgid, unix.S_ISVTX: fs.ModeSticky} {
		if m&bit != 0 {
			mode |= to
		}
	}
	return mode
}
