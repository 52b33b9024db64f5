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
	rules  Judge // as given: who asks it says all names
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
	k, err := openKernel(o.Calls, o.Walk, o.Fault)
	if err != nil {
		return nil, err
	}
	if err := k.openMounts(); err != nil {
		k.proc.close() //nolint:errcheck // nothing was written through it
		return nil, fmt.Errorf("reading /proc/self/mountinfo: %w", err)
	}
	k.hook = o.Fault
	f := &FS{kernel: k, judge: allNames{o.Judge, k}, rules: o.Judge, journal: o.Journal, underway: o.Underway}
	f.pins = &pins{dirs: map[pinKey]*pin{}}
	return f, nil
}

// With is f under another Judge. What New opened is shared, and Close of f gives it back.
func (f *FS) With(j Judge) *FS {
	other := *f
	other.judge, other.rules = allNames{j, f.kernel}, j
	return &other
}

// Close gives back what New opened, when the last call that uses it is over. Closing again does nothing. What would need it
// from then on, of handles that are still open too, answers fs.ErrClosed.
func (f *FS) Close() error {
	return errors.Join(f.kernel.table.file.close(), f.kernel.proc.close())
}

// Containment says how paths are resolved: "kernel" (openat2), "walk" (component by component) or, on systems
// other than Linux, "best_effort".
func (f *FS) Containment() string {
	if f.kernel.walk {
		return "walk"
	}
	return "kernel"
}

// Resolve finds the object that path names, following links, and asks the Judge whether it may be accessed.
// The errors are *BadPathError, the Judge's own, ErrPseudo in a *PathError, and the errno in a *PathError. Whatever
// keeps the path from being resolved (missing, not a directory, no permission, a loop of links), the
// Judge is asked first, about an absent object.
func (f *FS) Resolve(path string, a Access) (*Handle, error) {
	if err := checkPath(path); err != nil {
		return nil, err
	}
	fd, st, o, err := f.kernel.resolve(path)
	if err := f.judge.Judge(o, a); err != nil {
		f.kernel.discard(fd)
		return nil, err
	}
	if err == nil {
		err = f.kernel.refusePseudo(fd)
	}
	if err != nil {
		f.kernel.discard(fd)
		return nil, &PathError{Op: a.String(), Path: path, Err: err}
	}
	h := &Handle{fs: f, object: o, mount: st.mount, access: a}
	h.fd.open(fd, f.kernel.calls)
	return h, nil
}

// resolve turns a path that passed checkPath into a handle on an object and the object's description. On an error
// (an errno or ErrPseudo) the description is that of an absent object, and fd is -1. An object that lost its name to
// another one while it was looked at is not what the path names: then the path is resolved again.
func (k *kernel) resolve(path string) (fd int, st status, o Object, err error) {
	for try := 0; ; try++ {
		var lost bool
		fd, st, o, lost, err = k.resolveOnce(path)
		if !lost || try >= retries {
			return fd, st, o, err
		}
		k.discard(fd)
	}
}

func (k *kernel) resolveOnce(path string) (fd int, st status, o Object, lost bool, err error) {
	if !k.walk && plain(path) {
		// The short way, for names that turn out to be true names. All others, and all errors, go
		// the long way, which knows the links.
		if fd, err = k.openPath(path); err == nil {
			var name string
			var gone bool
			if st, err = k.stat(fd); err == nil {
				name, gone, err = k.trueName(fd, &st)
			}
			if err == nil && !gone && name == path {
				return fd, st, Object{Spelled: path, True: name, Info: st.info}, false, nil
			}
			k.close(fd)
		}
	}
	t := k.walkPath(path)
	o = Object{Spelled: path, Hops: t.hops}
	if t.err != nil {
		o.True, o.Hops = t.absent(path)
		if t.fd >= 0 { // what is missing on a kernel interface is no file either
			if magic, err := k.magic(t.fd); err == nil && pseudo(magic) {
				t.err = ErrPseudo
			}
			k.close(t.fd)
		}
		return -1, status{}, o, false, t.err
	}
	name, gone, err := k.trueName(t.fd, &t.st)
	if err == nil && gone {
		lost, err = true, unix.ENOENT
	}
	o.True = name
	if err != nil {
		if name == "" {
			o.True = lexical(path)
		}
		k.close(t.fd)
		return -1, status{}, o, lost, err
	}
	o.Info = t.st.info
	return t.fd, t.st, o, displaced(name, path), nil
}

// displaced: a file that trades places with its successor has the temporary name of that for a moment.
func displaced(name, spelled string) bool {
	base := name[strings.LastIndexByte(name, '/')+1:]
	return strings.HasPrefix(base, tempPrefix) && Temporary(base) && !strings.HasSuffix(spelled, base)
}

// absent is the true name that the object of an unfinished trail would have, and the hops on the
// way there.
func (t *trail) absent(spelled string) (string, []Hop) {
	if t.at == "" {
		return climb("/", true, strings.Split(spelled, "/"), t.hops)
	}
	return climb(t.at, t.up, t.rest, t.hops)
}

// lexical is the name of last resort, when the kernel gives none.
func lexical(p string) string { return path.Clean(p) }

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

// describe is the object that path names, judged by nobody. It never fails; what cannot be resolved is cleaned as text.
func describe(path string) Object {
	k, err := openKernel(nil, false, nil)
	if err != nil {
		return Object{True: lexical(path)}
	}
	defer k.proc.close() //nolint:errcheck // nothing was written through it
	return k.describe(path)
}

func (k *kernel) describe(path string) Object {
	if checkPath(path) != nil {
		return Object{True: lexical(path)}
	}
	fd, _, o, _ := k.resolve(path)
	k.discard(fd)
	return o
}

// Canonical is the function of that name for those who ask often.
func (f *FS) Canonical(path string) string { return f.kernel.describe(path).True }

// Nothing says, for who looks in many places, that path names nothing: no judge is asked. false
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
