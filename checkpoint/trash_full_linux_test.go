package checkpoint_test

import (
	"errors"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"moltisfs/checkpoint"
)

// On a full disk an entry of the trash stays or goes, as the answer says; with a little room it can be let go.
func TestFullDiskTrashCanBeEmptied(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=16m,mode=0700"); err != nil {
		t.Skip("SKIPPED: a small file system can only be mounted by root:", err)
	}
	defer unix.Unmount(dir, unix.MNT_DETACH)
	d := open(t, dir+"/store", checkpoint.Options{})
	c := edit("/w/a", randomText(60<<10, 1), nil)
	c.Trash = &checkpoint.Trashed{Parked: "/w/.trash/1"}
	s, err := d.Save(ctx, op(c))
	if err != nil {
		t.Fatal(err)
	}
	entry := s.Trashed[0]
	f, err := os.Create(dir + "/fill")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for b := make([]byte, 4096); err == nil; {
		_, err = f.Write(b)
	}
	var full *checkpoint.DiskFullError
	if err := d.TrashSettle(ctx, entry.ID, true); err != nil && !errors.As(err, &full) {
		t.Error(err)
	}
	if err := f.Truncate(8 << 20); err != nil {
		t.Fatal(err)
	}
	if err := d.TrashDrop(ctx, entry.ID); err != nil {
		t.Error(err)
	}
	page, err := d.TrashList(ctx, checkpoint.TrashFilter{AllPrincipals: true})
	if err != nil || len(page.Entries) != 0 {
		t.Errorf("%+v %v", page, err)
	}
}
