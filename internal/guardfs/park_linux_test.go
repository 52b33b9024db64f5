//go:build !rooted

package guardfs_test

import (
	"context"
	"errors"
	"os"
	"testing"

	"moltisfs/internal/guardfs"
)

// MoveTo takes nothing that is not meant and puts nothing over anything; what is reserved is neither listed nor entered, also where no rule says
// anything about the directory.
func TestMoveTo(t *testing.T) {
	dir := t.TempDir()
	for _, d := range []string{"/a/tree/sub", "/b", "/a/.moltis-trash-7/files"} {
		if err := os.MkdirAll(dir+d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	f, err := guardfs.New(guardfs.Options{Judge: everything{}})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	place := func(name string) *guardfs.Place {
		t.Helper()
		p, err := f.PlaceLink(dir + name)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { p.Close() })
		return p
	}
	from, to := place("/a/tree"), place("/b/tree")
	own := from.Object().Info.ID.Lasting()
	if same, err := from.SameMount(to); err != nil || !same {
		t.Errorf("on one mount: %v %v", same, err)
	}
	var conflict *guardfs.ConflictError
	if moved, err := from.MoveTo(context.Background(), to, "1:1", true); moved || !errors.As(err, &conflict) {
		t.Errorf("another identity: %v %v", moved, err)
	}
	if err := os.Mkdir(dir+"/b/tree", 0o700); err != nil {
		t.Fatal(err)
	}
	if moved, err := from.MoveTo(context.Background(), to, own, true); moved || !errors.As(err, &conflict) {
		t.Errorf("over an empty directory: %v %v", moved, err)
	}
	if err := os.Remove(dir + "/b/tree"); err != nil {
		t.Fatal(err)
	}
	if moved, err := from.MoveTo(context.Background(), to, own, true); !moved || err != nil {
		t.Errorf("moved: %v %v", moved, err)
	}
	if _, err := os.Stat(dir + "/b/tree/sub"); err != nil {
		t.Error(err)
	}
	if err := place("/b/tree").RemoveTree(context.Background(), "1:1"); !errors.As(err, &conflict) {
		t.Errorf("another tree removed: %v", err)
	}

	h, err := f.Resolve(dir+"/a", guardfs.Look)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	d, err := h.Dir()
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	entries, denied, err := d.List(nil)
	if err != nil || len(entries) != 0 || denied != 1 {
		t.Errorf("listed %v, %d denied, %v", entries, denied, err)
	}
	if sub, err := d.OpenDir(".moltis-trash-7", false); err == nil {
		sub.Close()
		t.Error("the trash was entered")
	}
}

// everything is a Judge without a rule.
type everything struct{}

func (everything) Judge(guardfs.Object, guardfs.Access) error { return nil }
func (everything) Dir(string) guardfs.DirVerdict              { return guardfs.DirVerdict{All: true} }
