//go:build !rooted

package sandbox

import (
	"fmt"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"moltisfs/internal/guardfs"
)

// A worker opens nothing outside of its root, and changes nothing there, whatever it is asked.
func TestWorkerKeepsToItsRoot(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	plant(t, dir, map[string]string{"out/secret": "x", "w/f": "y", "w/d/g": "z"})
	must(t, os.Symlink("../out/secret", dir+"/w/l"))
	s := begin(t, dir+"/w")
	c := s.Calls()
	opened := func(at int, name string, flags int) int {
		t.Helper()
		fd, err := c.Openat(at, name, flags, 0o600)
		if err != nil {
			t.Fatal(name, err)
		}
		return fd
	}
	const handle = unix.O_PATH | unix.O_NOFOLLOW
	out, in := opened(unix.AT_FDCWD, dir+"/out", handle), opened(unix.AT_FDCWD, dir+"/w", handle)
	link, file := opened(in, "l", handle), opened(in, "f", unix.O_RDONLY|unix.O_NOFOLLOW)
	moved := opened(in, "d", handle)
	ends := func(what string, err error, want ...error) {
		t.Helper()
		for _, w := range want {
			if err == w {
				return
			}
		}
		t.Errorf("%s: %v, want one of %v", what, err, want)
	}
	try := func(what string, at int, name string, flags int, want ...error) {
		t.Helper()
		_, err := c.Openat(at, name, flags, 0o600)
		ends(what, err, want...)
	}
	try("a file outside", unix.AT_FDCWD, dir+"/out/secret", unix.O_RDONLY, unix.EACCES)
	try("a handle on it", unix.AT_FDCWD, dir+"/out/secret", handle, unix.EACCES)
	try("below a handle outside", out, "secret", unix.O_RDONLY|unix.O_NOFOLLOW, unix.EACCES)
	try("listing outside", out, ".", unix.O_RDONLY|unix.O_DIRECTORY, unix.EACCES)
	try("a link that leads out", in, "l", unix.O_RDONLY, unix.EINVAL)
	try("a path", in, "d/g", unix.O_RDONLY|unix.O_NOFOLLOW, unix.EINVAL)
	try("up and down", in, "../out/secret", handle, unix.EINVAL)
	try("a new file outside", out, "new", unix.O_CREAT|unix.O_RDWR|unix.O_NOFOLLOW, unix.EACCES)
	try("emptying", in, "f", unix.O_RDWR|unix.O_TRUNC|unix.O_NOFOLLOW, unix.EINVAL)
	try("a directory outside, by number", link, ".", unix.O_RDONLY, unix.EACCES, unix.ENOTDIR, unix.ELOOP)
	_, err := c.Openat2(unix.AT_FDCWD, dir+"/out/secret", unix.O_RDWR, 0)
	ends("openat2", err, unix.EACCES)
	_, err = c.Reopen(out, unix.O_RDONLY)
	ends("reopening what is outside", err, unix.EACCES)
	_, err = c.Statx(out, "secret", unix.AT_SYMLINK_NOFOLLOW)
	ends("stat outside", err, unix.EACCES)
	above := opened(unix.AT_FDCWD, dir, handle)
	if x, err := c.Statx(above, "w", unix.AT_SYMLINK_NOFOLLOW); err != nil || x.Mode&unix.S_IFMT != unix.S_IFDIR {
		t.Error("the root by its name:", err)
	}
	list := make([]byte, 4096)
	try("above the root, to be read", above, ".", unix.O_RDONLY|unix.O_DIRECTORY, unix.EACCES)
	try("beside the root", above, "out", unix.O_RDONLY|unix.O_NOFOLLOW, unix.EACCES)
	try("a new root", above, "w", unix.O_RDWR|unix.O_CREAT|unix.O_NOFOLLOW, unix.EACCES)
	opened(above, "w", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW)
	_, err = c.Pread(above, list, 0)
	ends("reading what is above", err, unix.EACCES)
	_, err = c.Getdents(out, list)
	ends("listing what is beside", err, unix.EACCES)
	for at, want := range map[int]error{above: unix.EAGAIN, in: nil} { // a watch tells no names from above
		q, err := c.Inotify()
		if err == nil {
			_, err = q.Add(at, unix.IN_CREATE)
		}
		must(t, err)
		name := fmt.Sprint("new", at)
		plant(t, dir, map[string]string{name: "x", "w/" + name: "x"})
		_, err = q.Read(list)
		ends("a watch", err, want)
		q.Close()
	}
	_, err = c.Statx(in, "../out/secret", 0)
	ends("stat of a path", err, unix.EINVAL)
	for fd := range 12 { // its own: standard input, the list of mounts, the directory of descriptors
		if _, err = c.Pread(s.now.turn<<fdBits|fd, make([]byte, 10), 0); err == nil && fd != file&0xff {
			t.Errorf("descriptor %d, which nobody was given, reads", fd)
		}
	}
	ends("rename out", c.Renameat2(in, "f", out, "f", 0), unix.EACCES)
	ends("rename in", c.Renameat2(out, "secret", in, "s", 0), unix.EACCES)
	ends("link in", c.Linkat(out, "secret", in, "s"), unix.EACCES)
	ends("remove", c.Unlinkat(out, "secret", 0), unix.EACCES)
	ends("mkdir", c.Mkdirat(out, "d", 0o700), unix.EACCES)
	ends("symlink", c.Symlinkat("x", out, "d"), unix.EACCES)
	ends("a path of names", c.Unlinkat(in, "d/g", 0), unix.EINVAL)
	ends("up", c.Unlinkat(in, "..", unix.AT_REMOVEDIR), unix.EINVAL)
	ends("mode outside", c.ChmodPath(out, 0o777), unix.EACCES)
	must(t, os.Rename(dir+"/w/d", dir+"/out/d"))
	ends("what was moved out meanwhile", c.Unlinkat(moved, "g", 0), unix.EACCES)
	if err := c.Symlinkat("../out/secret", in, "m"); err != nil {
		t.Error("a link to be made may lead anywhere:", err)
	}
}

// A directory above the root shows what leads there, and a walk comes to it, as on this machine
// under an allow list.
func TestAboveTheRoot(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	plant(t, dir, map[string]string{"a/w/f": "x", "a/other": "y", "b": "z"})
	f := over(t, begin(t, dir+"/a/w"))
	h, err := f.Resolve(dir, guardfs.Walk)
	must(t, err)
	defer h.Close()
	d, err := h.Dir()
	must(t, err)
	for _, want := range []string{"a", "w", "f"} {
		for range 2 { // it can be listed again
			entries, _, err := d.List(nil)
			if err != nil || len(entries) != 1 || entries[0].Name != want {
				t.Fatalf("%v, %v; want %s", entries, err, want)
			}
		}
		if want == "f" {
			break
		}
		next, err := d.OpenDir(want, false)
		d.Close()
		if d = next; err != nil {
			t.Fatal(want, err)
		}
	}
	d.Close()
	for dir, want := range map[string]string{"/": "a", "/a": "b", "/a/": "b", "/a/b": "", "/a/b/c": "", "/x": "", "/a/bc": ""} {
		if got := leads(dir, "/a/b"); got != want {
			t.Errorf("%s leads by %q, want %q", dir, got, want)
		}
	}
	if got := leads("/", "/"); got != "" {
		t.Errorf("the root leads to itself by %q", got)
	}
}
