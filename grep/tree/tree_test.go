package tree

import (
	"errors"
	"io"
	"io/fs"
	"slices"
	"testing"
	"testing/fstest"
	"time"
)

func testTree() Dir {
	return FS(fstest.MapFS{
		"a.txt":       {Data: []byte("0123456789"), ModTime: time.Unix(7, 0)},
		"sub/b.txt":   {Data: []byte("b")},
		"sub/c/d.txt": {Data: []byte("d")},
		"link":        {Data: []byte("sub"), Mode: fs.ModeSymlink},
		"fifo":        {Mode: fs.ModeNamedPipe},
	})
}

func TestEntries(t *testing.T) {
	t.Parallel()
	d := testTree()
	want := []Entry{{Name: "a.txt", Kind: KindFile}, {Name: "fifo", Kind: KindOther}, {Name: "link", Kind: KindLink}, {Name: "sub", Kind: KindDir}}
	got, denied, err := d.List([]Entry{{Name: "of before"}})
	if err != nil || denied != 0 || !slices.Equal(got, want) {
		t.Errorf("%+v, %d denied, %v", got, denied, err)
	}
	for _, e := range want {
		i, err := d.Stat(e.Name)
		if err != nil || i.Kind != e.Kind {
			t.Errorf("%s: %+v, %v", e.Name, i, err)
		}
		sub, err := d.OpenDir(e.Name, true)
		if (err == nil) != (e.Kind == KindDir) || err == nil && sub.True() != e.Name {
			t.Errorf("%s opened as a directory: %v", e.Name, err)
		}
		f, err := d.OpenFile(e.Name)
		if (err == nil) != (e.Kind == KindFile) {
			t.Errorf("%s opened as a file: %v", e.Name, err)
		} else if err == nil {
			if f.Info().Size != 10 || !f.Info().ModTime.Equal(time.Unix(7, 0)) {
				t.Errorf("%+v", f.Info())
			}
			f.Close()
		}
	}
	if _, err := d.Stat("none"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what is not there: %v", err)
	}
}

func TestParents(t *testing.T) {
	t.Parallel()
	root := testTree()
	d, err := OpenBelow(root, "sub/c/", true)
	if err != nil || d.True() != "sub/c" {
		t.Fatalf("%v %v", d, err)
	}
	var names []string
	for ; err == nil; d, err = d.Parent() {
		names = append(names, d.True())
	}
	if err != io.EOF || !slices.Equal(names, []string{"sub/c", "sub", ""}) {
		t.Errorf("%q, then %v", names, err)
	}
}

func TestReadSmall(t *testing.T) {
	t.Parallel()
	for max, fits := range map[int64]bool{9: false, 10: true, 11: true} {
		if b, err := testTree().ReadSmall("a.txt", max); (err == nil) != fits || fits && string(b) != "0123456789" {
			t.Errorf("at most %d: %q, %v", max, b, err)
		}
	}
	if _, err := testTree().ReadSmall("link", 99); err == nil {
		t.Error("a link is followed")
	}
}

// plainFS has files without ReadAt.
type plainFS struct{ fstest.MapFS }

func (p plainFS) Open(name string) (fs.File, error) {
	f, err := p.MapFS.Open(name)
	return struct{ fs.File }{f}, err
}

func TestReadAt(t *testing.T) {
	t.Parallel()
	files := fstest.MapFS{"f": {Data: []byte("0123456789")}}
	for want, fsys := range map[string]fs.FS{"89": files, "": plainFS{files}} {
		f, err := FS(fsys).OpenFile("f")
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		b := make([]byte, 4)
		if n, err := f.ReadAt(b, 8); string(b[:n]) != want || (err == io.EOF) != (want != "") {
			t.Errorf("%q, %v", b[:n], err)
		}
	}
}

// counting counts the handles that are open.
type counting struct {
	Dir
	open *int
}

func (c counting) OpenDir(name string, cross bool) (Dir, error) {
	d, err := c.Dir.OpenDir(name, cross)
	if err != nil {
		return nil, err
	}
	*c.open++
	return counting{d, c.open}, nil
}

func (c counting) Close() error {
	*c.open--
	return c.Dir.Close()
}

// Of all handles on the way only the last stays open, and none after a failure. The root is the caller's.
func TestOpenBelow(t *testing.T) {
	t.Parallel()
	for rel, ok := range map[string]bool{"sub/": true, "sub/c/": true, "sub/none/": false, "sub/c/none/": false, "link/": false, "link/c/": false, "a.txt/": false} {
		open := 0
		d, err := OpenBelow(counting{testTree(), &open}, rel, true)
		if (err == nil) != ok {
			t.Errorf("%s: %v", rel, err)
		}
		if d != nil {
			d.Close()
		}
		if open != 0 {
			t.Errorf("%s: %d handles are left open", rel, open)
		}
	}
}
