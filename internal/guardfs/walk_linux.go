//go:build !rooted

package guardfs

import (
	"errors"
	"fmt"
	"path"
	"strings"

	"golang.org/x/sys/unix"
)

// FS resolves paths under one Judge. Safe for concurrent use.
type FS struct {
	kernel *kernel
	rules  Judge // as given: it has to be told all names
	pins   *pins
	judge  interface { // rules, told the names by the mounts of the moment
		Judge(o Object, a Access) error
	}

	journal  *Journal
	underway func(tag string) bool
}

// New opens the file system of this process for guarded use.
func New(o Options) (*FS, error) {
	if o.Judge == nil {
		return nil, errors.New("guardfs: a Judge is required")
	}
	k, err := openKernel(o.Calls, o.walk, o.Fault)
	if err != nil {
		return nil, err
	}
	if _, err := k.mounts(); err != nil {
		k.proc.close() //nolint:errcheck // nothing was written through it
		return nil, fmt.Errorf("reading /proc/self/mountinfo: %w", err)
	}
	k.hook = o.Fault
	f := &FS{kernel: k, judge: allNames{o.Judge, k}, rules: o.Judge, journal: o.Journal, underway: o.Underway}
	f.pins = &pins{dirs: map[pinKey]*pin{}}
	return f, nil
}

// With is f under another Judge. The files that New opened are shared, and Close of f gives them back.
func (f *FS) With(j Judge) *FS {
	other := *f
	other.judge, other.rules = allNames{j, f.kernel}, j
	return &other
}

// Close gives back the files that New opened, when the last call that uses them is over. Closing again does nothing. A call that would need them
// from then on, of handles that are still open too, answers fs.ErrClosed.
func (f *FS) Close() error {
	return f.kernel.proc.close()
}

// Containment says how paths are resolved: "kernel" (openat2), "walk" (component by component) or, on systems
// other than Linux, "best_effort".
func (f *FS) Containment() string {
	if f.kernel.walk {
		return "walk"
	}
	return "kernel"
}

// A trail is a walked with an O_PATH handle: on the object, or with err on the deepest directory reached.
type trail struct {
	walked
	kernel *kernel
	fd     int // -1: none
	st     status
}

// close gives the handle back, unless it was taken.
func (t *trail) close() {
	t.kernel.discard(t.fd)
	t.fd = -1
}

// walk resolves a path that splitVolume took. On an error the object is an absent one.
func (f *FS) walk(path string) *trail { return f.kernel.resolve(path) }

// splitVolume checks a path, which has no volume here.
func splitVolume(p string) (volume, rest string, err error) { return "", p, checkPath(p) }

// resolve is walk. An object that lost its name to another one while it was looked at is not the path's: then the path is
// resolved again.
func (k *kernel) resolve(path string) *trail {
	for try := 0; ; try++ {
		t, lost := k.resolveOnce(path)
		if !lost || try >= retries {
			return t
		}
		t.close()
	}
}

func (k *kernel) resolveOnce(path string) (t *trail, lost bool) {
	if !k.walk && plain(path) {
		// The short way, for names that turn out to be true names. All others, and all errors, go
		// the long way, which knows the links.
		if fd, err := k.openPath(path); err == nil {
			t = &trail{kernel: k, fd: fd}
			var gone bool
			if t.st, err = k.stat(fd); err == nil {
				t.at, gone, err = k.trueName(fd, &t.st)
			}
			if err == nil && !gone && t.at == path {
				t.object = Object{Spelled: path, True: path, Info: t.st.info}
				return t, false
			}
			t.close()
		}
	}
	t = k.walkPath(path)
	t.object = Object{Spelled: path, Hops: t.hops}
	if t.err != nil {
		at := t.at
		if at == "" {
			t.rest, t.up, at = strings.Split(path, "/"), true, "/"
		}
		t.object.True, t.object.Hops = climb(at, t.up, t.rest, t.hops)
		if t.fd >= 0 { // what is missing on a kernel interface is no file either
			if k.refusePseudo(t.fd) == ErrPseudo {
				t.err = ErrPseudo
			}
		}
		t.close()
		return t, false
	}
	name, gone, err := k.trueName(t.fd, &t.st)
	if t.object.True, t.err = name, err; err == nil && gone {
		lost, t.err = true, unix.ENOENT
	}
	if t.err != nil {
		if name == "" {
			t.object.True = lexical(path)
		}
		t.close()
		return t, lost
	}
	t.object.Info = t.st.info
	return t, displaced(name, path)
}

// displaced: a file that is exchanged for its successor has the temporary name of that for a moment.
func displaced(name, spelled string) bool {
	base := name[strings.LastIndexByte(name, '/')+1:]
	return strings.HasPrefix(base, tempPrefix) && Temporary(base) && !strings.HasSuffix(spelled, base)
}

// walkPath resolves path one component at a time, with the meaning that the kernel gives to links and "..", and
// keeps account of the links. It does without openat2.
func (k *kernel) walkPath(path string) *trail {
	t := &trail{kernel: k, fd: -1}
	t.begin(path)
	if _, t.err = k.proc.use(); t.err != nil { // closed: nothing could be named
		return t
	}
	defer k.proc.done() //nolint:errcheck // Close reports it
	t.fd, t.err = k.openat(unix.AT_FDCWD, "/", unix.O_PATH|unix.O_DIRECTORY, 0)
	if t.err == nil {
		t.st, t.err = k.stat(t.fd)
	}
	for t.err == nil && len(t.rest) > 0 {
		if t.st.info.Kind != KindDir {
			t.err = unix.ENOTDIR
			break
		}
		c := t.rest[0]
		if c == "" || c == "." {
			t.step()
			continue
		}
		if c == ".." && !t.up {
			var left string
			if left, _, t.err = k.trueName(t.fd, &t.st); t.err != nil {
				break
			}
			t.hops = append(t.hops, Hop{Name: left, Left: true})
		}
		var next int
		if next, t.err = k.openat(t.fd, c, unix.O_PATH|unix.O_NOFOLLOW, 0); t.err != nil {
			break
		}
		var st status
		if st, t.err = k.stat(next); t.err != nil {
			k.close(next)
			break
		}
		if st.info.Kind == KindSymlink {
			t.followHandle(next)
			k.close(next)
			continue
		}
		if st.info.Kind != KindDir && len(t.rest) > 1 {
			k.close(next)
			t.err = unix.ENOTDIR
			break
		}
		k.close(t.fd)
		t.fd, t.st, t.up = next, st, c == ".."
		t.step()
	}
	if t.err == nil {
		return t
	}
	t.linked = len(t.rest) > t.own
	if t.fd >= 0 {
		name, _, err := k.trueName(t.fd, &t.st)
		if err != nil { // the directory has no name that could be judged: give nothing
			k.close(t.fd)
			t.fd = -1
		}
		t.at = name
	}
	return t
}

// followHandle follows the link behind fd.
func (t *trail) followHandle(fd int) {
	k := t.kernel
	if t.links++; t.links > maxLinks {
		t.err = unix.ELOOP
		return
	}
	var link, target string
	// A magic link leads to an object, not to its name; and nothing there is a file anyway.
	if t.err = k.refusePseudo(fd); t.err == nil {
		link, t.err = k.name(fd)
	}
	if t.err == nil {
		target, t.err = k.target(fd, "")
	}
	if t.err == nil && strings.HasPrefix(target, "/") {
		var root int
		if root, t.err = k.openat(unix.AT_FDCWD, "/", unix.O_PATH|unix.O_DIRECTORY, 0); t.err == nil {
			k.close(t.fd)
			t.fd = root
			t.st, t.err = k.stat(root)
		}
	}
	if t.err == nil {
		t.follow(link, target)
	}
}

// trueName is the kernel's name for the object behind fd. gone: the object has no name any more; name is the last
// one it had. The kernel marks those with a suffix, which is an ordinary part of a name as well.
func (k *kernel) trueName(fd int, st *status) (name string, gone bool, err error) {
	const mark = " (deleted)"
	name, err = k.name(fd)
	if err != nil {
		return "", false, err
	}
	bare, marked := strings.CutSuffix(name, mark)
	if !marked {
		return name, st.info.Links == 0, nil
	}
	if st.info.Links > 0 {
		if again, err := k.openat(unix.AT_FDCWD, name, unix.O_PATH|unix.O_NOFOLLOW, 0); err == nil {
			other, err := k.stat(again)
			k.close(again)
			if err == nil && other.info.ID == st.info.ID {
				return name, false, nil
			}
		}
	}
	return bare, true, nil
}

// refusePseudo refuses an object of a trail on kernel interfaces.
func (f *FS) refusePseudo(t *trail) error { return f.kernel.refusePseudo(t.fd) }

// refusePseudo refuses objects on kernel interfaces.
func (k *kernel) refusePseudo(fd int) error {
	magic, err := k.magic(fd)
	if err != nil {
		return err
	}
	if pseudo(magic) {
		return ErrPseudo
	}
	return nil
}

// describe is FS.describe by the calls of this machine.
func describe(path string) Object {
	k, err := openKernel(nil, false, nil)
	if err != nil {
		return Object{True: lexical(path)}
	}
	defer k.proc.close() //nolint:errcheck // nothing was written through it
	return (&FS{kernel: k}).describe(path)
}

// Nothing says that path names nothing, for callers who look for many paths: no judge is asked. false
// where that is not certain.
func (f *FS) Nothing(path string) bool {
	if f.kernel.walk || checkPath(path) != nil {
		return false
	}
	fd, err := f.kernel.openPath(path)
	f.kernel.discard(fd)
	return err == unix.ENOENT
}

// plain reports whether p is spelled the way the kernel spells names: then a true name equal to it proves that
// no link was passed on the way.
func plain(p string) bool { return path.Clean(p) == p }
