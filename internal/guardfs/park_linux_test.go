//go:build !rooted

package guardfs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

// A tree that is moved is the one that is meant, and goes over nothing; what is reserved is neither listed nor entered, also where no rule says
// anything about the directory.
func TestMoveTree(t *testing.T) {
	dir := t.TempDir()
	for _, d := range []string{"/a/tree/sub", "/b", "/a/.moltis-trash-7/files"} {
		must(t, os.MkdirAll(dir+d, 0o700))
	}
	f := open(t, everything{})
	place := func(name string) *Entry {
		t.Helper()
		p, err := f.EntryLink(dir + name)
		must(t, err)
		t.Cleanup(func() { p.Close() })
		return p
	}
	from, to := place("/a/tree"), place("/b/tree")
	own := Precondition{ID: from.Object().Info.ID}
	if same, err := from.SameMount(to); err != nil || !same {
		t.Errorf("on one mount: %v %v", same, err)
	}
	var conflict *ConflictError
	move := func(what Precondition) error {
		_, err := from.Publish(context.Background(), to, what, Precondition{})
		return err
	}
	if err := move(Precondition{ID: Identity{Dev: 1, Ino: 1}}); !errors.As(err, &conflict) {
		t.Errorf("another identity: %v", err)
	}
	must(t, os.Mkdir(dir+"/b/tree", 0o700))
	if err := move(own); !errors.As(err, &conflict) {
		t.Errorf("over an empty directory: %v", err)
	}
	must(t, os.Remove(dir+"/b/tree"))
	must(t, os.Rename(dir+"/a", dir+"/c"))
	if err := move(own); !errors.As(err, &conflict) {
		t.Errorf("out of a directory that is elsewhere now: %v", err)
	}
	must(t, os.Rename(dir+"/c", dir+"/a"))
	if err := move(own); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(dir + "/b/tree/sub"); err != nil {
		t.Error(err)
	}
	if err := place("/b/tree").RemoveTree(context.Background(), "1:1"); !errors.As(err, &conflict) {
		t.Errorf("another tree removed: %v", err)
	}

	d := dirOf(t, f, dir+"/a")
	entries, denied, err := d.List(nil)
	if err != nil || len(entries) != 0 || denied != 1 {
		t.Errorf("listed %v, %d denied, %v", entries, denied, err)
	}
	if sub, err := d.OpenDir(".moltis-trash-7", false); err == nil {
		sub.Close()
		t.Error("the trash was entered")
	}
}

// RemoveTree leaves another file system that is mounted in the tree as it is.
func TestRemoveTreeStaysOnItsMount(t *testing.T) {
	dir := t.TempDir()
	at := dir + "/tree/sub/mounted"
	must(t, os.MkdirAll(at, 0o700))
	if err := unix.Mount("tmpfs", at, "tmpfs", 0, "size=64k"); err != nil {
		t.Skip("SKIPPED: nothing can be mounted here: ", err)
	}
	t.Cleanup(func() { unix.Unmount(at, 0) })
	must(t, os.WriteFile(at+"/f", []byte("theirs"), 0o600))
	f := open(t, everything{})
	p, err := f.EntryLink(dir + "/tree")
	must(t, err)
	defer p.Close()
	if err := p.RemoveTree(t.Context(), p.Object().Info.ID.Lasting()); !errors.Is(err, ErrMount) {
		t.Errorf("removed across a mount: %v", err)
	}
	if b, err := os.ReadFile(at + "/f"); string(b) != "theirs" {
		t.Errorf("what is mounted there was emptied: %v", err)
	}
}

// asked is a Judge that keeps what it was asked for.
type asked struct {
	everything
	access []Access
}

func (a *asked) Judge(_ Object, access Access) error {
	a.access = append(a.access, access)
	return nil
}

// A Judge is asked for what is about to happen: to make what is not there, to change what is.
func TestPlaceAsksForWhatItWillDo(t *testing.T) {
	dir, j := t.TempDir(), &asked{}
	must(t, os.WriteFile(dir+"/there", nil, 0o600))
	f := open(t, j)
	for name, want := range map[string]Access{"/there": Modify, "/new": Create} {
		j.access = nil
		p, err := f.Entry(dir + name)
		must(t, err)
		p.Close()
		if len(j.access) == 0 || slices.ContainsFunc(j.access, func(a Access) bool { return a != want }) {
			t.Errorf("%s: asked for %v, want %v", name, j.access, want)
		}
	}
}

// but is a Judge that refuses one access to one name.
type but struct {
	everything
	name   string
	access Access
}

func (b but) Judge(o Object, a Access) error {
	if o.True == b.name && a == b.access {
		return fs.ErrPermission
	}
	return nil
}

// Each directory that is to be made is judged before the list is given, and the list changes nothing.
func TestMissingAsksForEach(t *testing.T) {
	dir := Canonical(t.TempDir())
	for _, refused := range []string{"/a", "/a/b", "/a/b/c", "/a/b/c/f", "/other"} {
		f, err := New(Options{Judge: but{name: dir + refused, access: Create}})
		must(t, err)
		defer f.Close()
		dirs, name, err := f.Missing(dir + "/a/b/c/f")
		if refused != "/other" && (!errors.Is(err, fs.ErrPermission) || dirs != nil || name != "") {
			t.Errorf("%s refused: %v %s, %v", refused, dirs, name, err)
		}
		want := []string{dir + "/a", dir + "/a/b", dir + "/a/b/c"}
		if refused == "/other" && (err != nil || !slices.Equal(dirs, want) || name != dir+"/a/b/c/f") {
			t.Errorf("%v %s, %v", dirs, name, err)
		}
		if _, err := os.Lstat(dir + "/a"); err == nil {
			t.Fatal("a list made a directory")
		}
	}
}

// A new file and a new directory have the foretold metadata, in a directory with a group and a default ACL of its own too.
func TestFresh(t *testing.T) {
	top := Canonical(t.TempDir())
	f := open(t, everything{})
	for _, name := range []string{"/plain", "/group", "/acl"} {
		dir := top + name
		err := os.Mkdir(dir, 0o755)
		switch name {
		case "/group":
			if gid := os.Getgid() + 7; os.Geteuid() == 0 {
				err = errors.Join(err, os.Chown(dir, -1, gid))
			}
			err = errors.Join(err, os.Chmod(dir, 0o775|fs.ModeSetgid))
		case "/acl":
			// default: user::rwx user:12:rw- group::r-- mask::rw- other::---
			acl := []byte{2, 0, 0, 0, 1, 0, 7, 0, 255, 255, 255, 255, 2, 0, 6, 0, 12, 0, 0, 0, 4, 0, 4, 0, 255, 255, 255, 255,
				16, 0, 6, 0, 255, 255, 255, 255, 32, 0, 0, 0, 255, 255, 255, 255}
			if aerr := unix.Setxattr(dir, "system.posix_acl_default", acl, 0); aerr == unix.EOPNOTSUPP {
				t.Log("SKIPPED in part: no ACLs on this file system")
				continue
			} else {
				err = errors.Join(err, aerr)
			}
		}
		must(t, err)
		before, _ := os.ReadDir(dir)
		place := func(path string) *Entry {
			p, err := f.EntryLink(path)
			must(t, err)
			t.Cleanup(func() { p.Close() })
			return p
		}
		for _, mode := range []fs.FileMode{0o777, 0o711, 0o700} {
			p := place(dir + "/d")
			must(t, p.Mkdir(mode))
			file, err := place(dir + "/none").Fresh(0o666)
			must(t, err)
			h, made, err := place(dir+"/d/f").Stage(t.Context(), TempName("0123456789abcdef", 1), NewObject{Kind: KindFile})
			must(t, err)
			got := made.Meta
			must(t, errors.Join(h.Drop(made.Precondition()), h.Close()))
			if fmt.Sprint(got) != fmt.Sprint(file) {
				t.Errorf("%s: a file below has %+v, foretold %+v", name, got, file)
			}
			must(t, p.RemoveEmptyDir())
		}
		if after, _ := os.ReadDir(dir); len(after) != len(before) {
			t.Errorf("%s: left %v", name, after)
		}
	}
}
