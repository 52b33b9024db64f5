//go:build !linux || rooted

package guardfs

import (
	"cmp"
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

// Close has nothing to give back here. A call that resolves a path from then on answers fs.ErrClosed.
func (f *FS) Close() error {
	f.closed.Store(true)
	return nil
}

// Containment is "best_effort" here.
func (f *FS) Containment() string { return "best_effort" }

// MayHang says whether something is mounted that may leave a call without an answer. Here that can't
// be told, so it may.
func (f *FS) MayHang() bool { return true }

// A trail is a walked with the directories that it went through, open: it ended at the top of the pile, or at one entry of that.
type trail struct {
	walked
	volume string
	pile   []*os.Root  // "/" and the directories below it, each opened in the one before
	names  []string    // of all of the pile but the first
	leaf   string      // an entry of the top that is no directory
	fi     fs.FileInfo // of the leaf, or of the top where there is none
}

const retries = 16

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

// walk resolves a path that splitVolume took, one component at a time. On an error the object is an absent one.
func (f *FS) walk(path string) *trail {
	volume, rest, _ := splitVolume(path) //nolint:errcheck // see above
	t := &trail{volume: volume}
	t.begin(rest)
	if t.err = fs.ErrClosed; !f.closed.Load() {
		t.err = t.restart()
	}
	for len(t.rest) > 0 && t.err == nil {
		c := t.rest[0]
		switch {
		case t.leaf != "":
			t.err = syscall.ENOTDIR
			t.unstep(t.leaf)
			continue
		case c == "" || c == ".":
		case c == "..":
			if n := len(t.names); n > 0 {
				if !t.up {
					t.hops = append(t.hops, Hop{Name: t.name(), Left: true})
				}
				t.up = true
				t.top().Close() //nolint:errcheck // nothing was written through it
				t.pile, t.names = t.pile[:n], t.names[:n-1]
				t.fi, t.err = t.top().Stat(".")
			}
		default:
			if !t.enter(c) {
				continue
			}
		}
		t.step()
	}
	t.err = cause(t.err)
	t.object = Object{Spelled: path, Hops: t.hops}
	at := "/" + strings.Join(t.names, "/")
	if t.leaf != "" {
		at = join(at, t.leaf)
	}
	if t.err == nil {
		t.object.Info = infoOf(t.top(), cmp.Or(t.leaf, "."), t.fi)
	} else {
		t.at, t.linked = t.name(), len(t.rest) > t.own
		at, t.object.Hops = climb(at, t.up, t.rest, t.hops)
	}
	t.object.True = t.volume + at
	return t
}

// unstep puts a leaf that turned out to be no directory back in front of the rest.
func (t *trail) unstep(leaf string) {
	t.rest = append([]string{leaf}, t.rest...)
	t.leaf = ""
}

// restart goes back to the root of the volume.
func (t *trail) restart() error {
	t.close()
	root, err := os.OpenRoot(t.volume + "/")
	if err != nil {
		return err
	}
	t.pile, t.names, t.leaf, t.up = []*os.Root{root}, nil, "", true
	t.fi, err = root.Stat(".")
	return err
}

// enter goes to entry c of the top. false: the component was replaced by a link's text, or there is an error.
func (t *trail) enter(c string) bool {
	for range retries {
		fi, err := t.top().Lstat(c)
		if err != nil {
			t.err = err
			return false
		}
		switch {
		case fi.Mode()&fs.ModeSymlink != 0:
			t.followEntry(c)
			return false
		case !fi.IsDir():
			t.leaf, t.fi = c, fi
			return true
		}
		sub, now, err := openSame(t.top(), c, fi)
		if err == nil {
			t.pile, t.names, t.fi, t.up = append(t.pile, sub), append(t.names, c), now, false
			return true
		}
		if !errors.Is(err, errSwapped) {
			t.err = err
			return false
		}
	}
	t.err = syscall.EAGAIN
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

// followEntry follows the link c.
func (t *trail) followEntry(c string) {
	if t.links++; t.links > maxLinks {
		t.err = syscall.ELOOP
		return
	}
	target, err := t.top().Readlink(c)
	if err != nil {
		t.err = err
		return
	}
	link := join(t.name(), c)
	slashed := filepath.ToSlash(target)
	if v := filepath.VolumeName(target); v != "" {
		t.volume, slashed = strings.ToUpper(v), slashed[len(v):]
	}
	t.follow(link, slashed)
	if t.target = target; t.err == nil && slashed[0] == '/' {
		t.err = t.restart()
	}
}

func (t *trail) top() *os.Root { return t.pile[len(t.pile)-1] }

// name is the true name of the top.
func (t *trail) name() string { return t.volume + "/" + strings.Join(t.names, "/") }

// take hands over the top, which close then leaves open.
func (t *trail) take() *os.Root {
	top := t.top()
	t.pile = t.pile[:len(t.pile)-1]
	return top
}

func (t *trail) close() {
	for _, r := range t.pile {
		r.Close() //nolint:errcheck // nothing was written through it
	}
	t.pile = nil
}

// describe is FS.describe without an FS.
func describe(path string) Object { return (&FS{closed: new(atomic.Bool)}).describe(path) }

// refusePseudo refuses an object of a trail on kernel interfaces.
func (f *FS) refusePseudo(t *trail) error {
	if pseudo(t.top()) {
		return ErrPseudo
	}
	return nil
}

// Nothing is not certain here.
func (f *FS) Nothing(string) bool { return false }

// basicInfo is the part of an Info that every system tells.
func basicInfo(fi fs.FileInfo) Info {
	const bits = fs.ModePerm | fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky
	i := Info{
		Kind: kindOf(fi.Mode()), Size: fi.Size(), Mode: fi.Mode() & bits,
		ModTime: fi.ModTime(), ChangeTime: fi.ModTime(), Links: 1,
	}
	if i.Kind == KindOther {
		i.special = "device"
		switch m := fi.Mode(); {
		case m&fs.ModeNamedPipe != 0:
			i.special = "fifo"
		case m&fs.ModeSocket != 0:
			i.special = "socket"
		}
	}
	return i
}

func kindOf(m fs.FileMode) Kind {
	switch {
	case m.IsRegular():
		return KindFile
	case m.IsDir():
		return KindDir
	case m&fs.ModeSymlink != 0:
		return KindSymlink
	}
	return KindOther
}

// Calls are the system calls on the tree, where they can be chosen: on Linux.
type Calls interface{ linuxOnly() }

func (*FS) user() int { return os.Getuid() }
