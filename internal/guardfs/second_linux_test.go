//go:build !rooted

package guardfs

import (
	"errors"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// A tree that goes to a directory which others move out of reach in the moment of the rename is where it was, and that is told.
func TestMovedIntoWhatGoesOutOfReach(t *testing.T) {
	dir := ramdisk(t)
	lay(t, dir, "in/a/tree/f = text", "in/b/", "out/")
	armed := false
	f, err := New(Options{Judge: &fence{root: dir + "/in"}, Fault: func(op string) *Fault {
		if armed && op == "rename" {
			armed = false
			must(t, os.Rename(dir+"/in/b", dir+"/out/b"))
		}
		return nil
	}})
	must(t, err)
	defer f.Close()
	from, err := f.EntryLink(dir + "/in/a/tree")
	must(t, err)
	defer from.Close()
	to, err := f.EntryLink(dir + "/in/b/tree")
	must(t, err)
	defer to.Close()
	armed = true
	_, err = from.Publish(t.Context(), to, Precondition{ID: from.Object().Info.ID}, Precondition{})
	if c, ok := errors.AsType[*ConflictError](err); armed || !ok || c.Why != DirRefused {
		t.Errorf("%v: %v", armed, err)
	}
	if got := content(dir + "/in/a/tree/f"); got != "text" {
		t.Errorf("the tree is not where it was: %q", got)
	}
}

// closeFails has the first close fail of a file that is open for writing.
type closeFails struct {
	Calls
	fd int
}

func (c *closeFails) Reopen(fd, flags int) (int, error) {
	n, err := c.Calls.Reopen(fd, flags)
	if err == nil && flags&unix.O_ACCMODE != unix.O_RDONLY && flags&unix.O_PATH == 0 {
		c.fd = n
	}
	return n, err
}

func (c *closeFails) Close(fd int) error {
	err := c.Calls.Close(fd)
	if fd == c.fd {
		c.fd, err = -1, unix.EIO
	}
	return err
}

// What a file system tells only when a file is closed is the outcome of a writing in place.
func TestClosedInPlace(t *testing.T) {
	for verb, write := range map[string]func(p *Entry, b *Before) error{
		"append":    func(p *Entry, b *Before) error { _, err := p.Append(b.Info.ID, []byte(" and new")); return err },
		"overwrite": func(p *Entry, b *Before) error { _, _, err := p.Overwrite(Found(b), []byte("new")); return err },
	} {
		dir := ramdisk(t)
		lay(t, dir, "f = old")
		system, err := LocalCalls()
		must(t, err)
		f, err := New(Options{Judge: &fence{root: dir}, Calls: &closeFails{system, -1}})
		must(t, err)
		p, err := f.Entry(dir + "/f")
		must(t, err)
		b, err := p.Load(-1)
		must(t, err)
		if err := write(p, b); !errors.Is(err, unix.EIO) {
			t.Errorf("%s: %v", verb, err)
		}
		must(t, errors.Join(p.Close(), f.Close()))
	}
}
