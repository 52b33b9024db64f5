//go:build !rooted

package guardfs

import (
	"strings"

	"golang.org/x/sys/unix"
)

// trail is what the component walk found: a handle on the object, or how far it came and why not further.
type trail struct {
	fd   int // O_PATH on the object, or with err on the deepest directory reached; -1 when there is not even that
	st   status
	at   string   // with err: true name of the deepest directory reached
	rest []string // with err: the components that were left, the one that failed first
	hops []Hop
	err  error // an errno, or ErrPseudo at a link of a kernel interface
	// linked: what is missing was named by a link (link, whose text is target), not by the caller.
	linked       bool
	link, target string // the last that was followed

	links int  // how many were
	own   int  // how many of rest, from the end, the caller spelled
	up    bool // that the directory is there is no news: the walk came up to it, or followed a link in it, or it is the root
}

const maxLinks = 40 // as in the kernel

// walkPath resolves path one component at a time, with the meaning that the kernel gives to links and "..", and
// keeps account of the links. It needs nothing newer than Linux 3.6.
func (k *kernel) walkPath(path string) (t trail) {
	t.rest = strings.Split(path[1:], "/")
	t.own, t.up = len(t.rest), true
	if _, t.err = k.proc.use(); t.err != nil { // closed: nothing could be named
		t.fd = -1
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
			t.follow(k, next)
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

// step marks the first component as done.
func (t *trail) step() {
	t.rest = t.rest[1:]
	t.own = min(t.own, len(t.rest))
}

// follow puts the text of the link behind fd in the place of the component that named it.
func (t *trail) follow(k *kernel, fd int) {
	if t.links++; t.links > maxLinks {
		t.err = unix.ELOOP
		return
	}
	var magic uint32
	if magic, t.err = k.magic(fd); t.err != nil {
		return
	}
	if pseudo(magic) { // a magic link leads to an object, not to its name; and nothing there is a file anyway
		t.err = ErrPseudo
		return
	}
	if t.link, t.err = k.name(fd); t.err != nil {
		return
	}
	if t.target, t.err = k.target(fd); t.err != nil {
		return
	}
	if t.target == "" {
		t.err = unix.ENOENT
		return
	}
	t.hops, t.up = append(t.hops, Hop{Name: t.link, Left: upNext(t.rest[1:])}), true
	if t.target[0] == '/' {
		var root int
		if root, t.err = k.openat(unix.AT_FDCWD, "/", unix.O_PATH|unix.O_DIRECTORY, 0); t.err != nil {
			return
		}
		k.close(t.fd)
		t.fd = root
		if t.st, t.err = k.stat(root); t.err != nil {
			return
		}
	}
	t.step()
	t.rest = append(strings.Split(t.target, "/"), t.rest...)
}
