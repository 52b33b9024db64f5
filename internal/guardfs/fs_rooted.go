//go:build !linux || rooted

package guardfs

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
)

// FS resolves paths under one Judge. Safe for concurrent use.
type FS struct {
	judge  Judge
	closed *atomic.Bool

	journal  *Journal
	underway func(tag string) bool
	hook     func(op string) *Fault
}

// New opens the file system of this process for guarded use.
func New(o Options) (*FS, error) {
	if o.Judge == nil {
		return nil, errors.New("guardfs: a Judge is required")
	}
	f := &FS{judge: o.Judge, closed: new(atomic.Bool), journal: o.Journal, underway: o.Underway}
	f.hook = o.Fault
	return f, nil
}

// With is f under another Judge, closed with f.
func (f *FS) With(j Judge) *FS {
	other := *f
	other.judge = j
	return &other
}

// Close has nothing to give back here. What resolves a path from then on answers fs.ErrClosed.
func (f *FS) Close() error {
	f.closed.Store(true)
	return nil
}

// Containment is "best_effort" here.
func (f *FS) Containment() string { return "best_effort" }

// MayHang says whether something is mounted that may leave a call without an answer. Here that can't
// be told, so it may.
func (f *FS) MayHang() bool { return true }

// spot is where a walk ended: at the directory on top of the pile, or at one entry of it, or, with err, at an entry
// that could not be passed.
type spot struct {
	volume string
	pile   []*os.Root  // "/" and the directories below it, each opened in the one before
	names  []string    // of all of the pile but the first
	leaf   string      // an entry of the top that is no directory
	fi     fs.FileInfo // of the leaf, or of the top where there is none
	rest   []string    // with err: what was left, the one that failed first
	hops   []Hop
	err    error
	linked bool // what is missing was named by a link
	link   string
	target string // of link, the last that was followed
	links  int    // how many were
	own    int    // how many of rest, from the end, the caller spelled
	up     bool   // that the top is there is no news; see the Linux twin
}

const (
	maxLinks = 40
	retries  = 16
)

// splitVolume takes the volume off a path and brings the rest into the form that checkPath knows.
func splitVolume(p string) (volume, rest string, err error) {
	rest = p
	if runtime.GOOS == "windows" {
		if len(p) < 3 || p[1] != ':' || p[2] != '\\' && p[2] != '/' {
			return "", "", &BadPathError{Path: p, Why: "not absolute, such as C:\\dir\\file"}
		}
		volume, rest = strings.ToUpper(p[:2]), filepath.ToSlash(p[2:])
		for _, c := range strings.Split(rest, "/") {
			switch {
			case c == "" || c == "." || c == "..":
			case strings.ContainsRune(c, ':'):
				return "", "", &BadPathError{Path: p, Why: "names an alternate data stream"}
			case !filepath.IsLocal(c):
				return "", "", &BadPathError{Path: p, Why: "holds a reserved name"}
			case strings.TrimRight(c, ". ") != c:
				return "", "", &BadPathError{Path: p, Why: "a component ends in a dot or a blank"}
			}
		}
	}
	return volume, rest, checkPath(rest)
}

// walk resolves an absolute path with slashes, one component at a time.
func walk(volume, p string) (s *spot) {
	s = &spot{volume: volume, rest: strings.Split(p[1:], "/")}
	s.own = len(s.rest)
	if s.err = s.restart(); s.err != nil {
		return s
	}
	for len(s.rest) > 0 && s.err == nil {
		c := s.rest[0]
		switch {
		case s.leaf != "":
			s.err = syscall.ENOTDIR
			s.unstep(s.leaf)
			continue
		case c == "" || c == ".":
		case c == "..":
			if n := len(s.names); n > 0 {
				if !s.up {
					s.hops = append(s.hops, Hop{Name: s.name(), Left: true})
				}
				s.up = true
				s.top().Close() //nolint:errcheck // nothing was written through it
				s.pile, s.names = s.pile[:n], s.names[:n-1]
				s.fi, s.err = s.top().Stat(".")
			}
		default:
			if !s.enter(c) {
				continue
			}
		}
		s.step()
	}
	s.err = cause(s.err)
	s.linked = s.err != nil && len(s.rest) > s.own
	return s
}

func (s *spot) step() {
	s.rest = s.rest[1:]
	s.own = min(s.own, len(s.rest))
}

// unstep puts a leaf that turned out to be no directory back in front of the rest.
func (s *spot) unstep(leaf string) {
	s.rest = append([]string{leaf}, s.rest...)
	s.leaf = ""
}

// restart goes back to the root of the volume.
func (s *spot) restart() error {
	s.close()
	root, err := os.OpenRoot(s.volume + "/")
	if err != nil {
		return err
	}
	s.pile, s.names, s.leaf, s.up = []*os.Root{root}, nil, "", true
	s.fi, err = root.Stat(".")
	return err
}

// enter goes to entry c of the top. false: the component was replaced by a link's text, or there is an error.
func (s *spot) enter(c string) bool {
	for range retries {
		fi, err := s.top().Lstat(c)
		if err != nil {
			s.err = err
			return false
		}
		switch {
		case fi.Mode()&fs.ModeSymlink != 0:
			s.follow(c)
			return false
		case !fi.IsDir():
			s.leaf, s.fi = c, fi
			return true
		}
		sub, now, err := openSame(s.top(), c, fi)
		if err == nil {
			s.pile, s.names, s.fi, s.up = append(s.pile, sub), append(s.names, c), now, false
			return true
		}
		if !errors.Is(err, errSwapped) {
			s.err = err
			return false
		}
	}
	s.err = syscall.EAGAIN
	return false
}

var errSwapped = errors.New("replaced while it was being opened")

// openSame opens directory c of root and makes sure that it is the one that fi tells of: os.Root follows
// links within its root.
func openSame(root *os.Root, c string, fi fs.FileInfo) (*os.Root, fs.FileInfo, error) {
	sub, err := root.OpenRoot(c)
	if err != nil {
		return nil, nil, err
	}
	now, err := sub.Stat(".")
	if err == nil && !os.SameFile(fi, now) {
		err = errSwapped
	}
	if err != nil {
		sub.Close() //nolint:errcheck // nothing was written through it
		return nil, nil, err
	}
	return sub, now, nil
}

// follow puts the text of link c in the place of the component that named it.
func (s *spot) follow(c string) {
	if s.links++; s.links > maxLinks {
		s.err = syscall.ELOOP
		return
	}
	target, err := s.top().Readlink(c)
	if err != nil {
		s.err = err
		return
	}
	s.link, s.target = join(s.name(), c), target
	s.hops, s.up = append(s.hops, Hop{Name: s.link, Left: upNext(s.rest[1:])}), true
	target = filepath.ToSlash(target)
	if v := filepath.VolumeName(target); v != "" {
		s.volume, target = strings.ToUpper(v), target[len(v):]
	}
	if target == "" {
		s.err = syscall.ENOENT
		return
	}
	s.step()
	s.rest = append(strings.Split(target, "/"), s.rest...)
	if target[0] == '/' {
		s.err = s.restart()
	}
}

func (s *spot) top() *os.Root { return s.pile[len(s.pile)-1] }

// name is the true name of the top.
func (s *spot) name() string { return s.volume + "/" + strings.Join(s.names, "/") }

// full is the true name of what was found, or would have been, and the hops on the way there.
func (s *spot) full() (string, []Hop) {
	at, hops := "/"+strings.Join(s.names, "/"), s.hops
	if s.leaf != "" {
		at = join(at, s.leaf)
	}
	if s.err != nil {
		at, hops = climb(at, s.up, s.rest, hops)
	}
	return s.volume + at, hops
}

// take hands over the top, which close then leaves open.
func (s *spot) take() *os.Root {
	t := s.top()
	s.pile = s.pile[:len(s.pile)-1]
	return t
}

func (s *spot) close() {
	for _, r := range s.pile {
		r.Close() //nolint:errcheck // nothing was written through it
	}
	s.pile = nil
}

// cause takes the errno out of what package os wraps it in; the path is told by our own error.
func cause(err error) error {
	var pe *fs.PathError
	var le *os.LinkError
	var se *os.SyscallError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &pe):
		return pe.Err
	case errors.As(err, &le):
		return le.Err
	case errors.As(err, &se):
		return se.Err
	}
	return err
}

// resolve finds the object and describes it. The spot must be closed.
func (f *FS) resolve(spelled string) (*spot, Object, error) {
	volume, rest, err := splitVolume(spelled)
	if err == nil && f.closed.Load() {
		err = fs.ErrClosed
	}
	if err != nil {
		return nil, Object{}, err
	}
	s := walk(volume, rest)
	o := Object{Spelled: spelled}
	o.True, o.Hops = s.full()
	if s.err == nil {
		o.Info = s.info()
	}
	return s, o, nil
}

func (s *spot) info() Info {
	if s.leaf != "" {
		return infoOf(s.top(), s.leaf, s.fi)
	}
	return infoOf(s.top(), ".", s.fi)
}

// Resolve finds the object that path names, following links, and asks the Judge whether it may be accessed. Whatever
// keeps the path from being resolved, the Judge is asked first, about an absent object.
func (f *FS) Resolve(path string, a Access) (*Handle, error) {
	s, o, err := f.resolve(path)
	if err != nil {
		return nil, err
	}
	defer s.close()
	if err := f.judge.Judge(o, a); err != nil {
		return nil, err
	}
	if s.err == nil && pseudo(s.top()) {
		s.err = ErrPseudo
	}
	if s.err != nil {
		return nil, &PathError{Op: a.String(), Path: path, Err: s.err}
	}
	return &Handle{fs: f, dir: s.take(), leaf: s.leaf, fi: s.fi, object: o, access: a}, nil
}

// describe is the object that path names, judged by nobody. It never fails; what cannot be resolved is cleaned as text.
func describe(path string) Object {
	return (&FS{closed: new(atomic.Bool)}).describe(path)
}

// Canonical is the function of that name for those who ask often.
func (f *FS) Canonical(path string) string { return f.describe(path).True }

// Nothing is not certain here.
func (f *FS) Nothing(string) bool { return false }

func (f *FS) describe(path string) Object {
	s, o, err := f.resolve(path)
	if err != nil {
		return Object{True: filepath.ToSlash(filepath.Clean(path))}
	}
	s.close()
	return o
}
