package checkpoint

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// Once the reserve has been given back nothing is saved until it can be made again, and then the store is as before.
func TestNothingIsSavedOnTheReserve(t *testing.T) {
	d, err := Open(t.TempDir(), Options{Durability: Relaxed})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	name := filepath.Join(d.dir, reserveName)
	save := func() error {
		_, err := d.Save(context.Background(), Op{Tool: "Edit", Kind: KindEdit, Principal: "p", Session: "s", Changes: []Change{
			{Path: "/w/a", Role: "target", After: State{Kind: File, Size: 1}, AfterContent: []byte("1")}}})
		return err
	}
	rows := (&collector{d: d}).rows()
	tries := 0
	if err := d.withReserve(func() error {
		if tries++; tries == 1 {
			return syscall.ENOSPC
		}
		_, err := os.Lstat(name)
		return err
	}); !errors.Is(err, os.ErrNotExist) || tries != 2 {
		t.Fatalf("a full disk gets the reserve, once: %d tries, %v", tries, err)
	}
	if n := (&collector{d: d}).rows(); n != tightRows || n >= rows {
		t.Errorf("transactions of %d rows on the reserve, of %d otherwise", n, rows)
	}
	if err := os.MkdirAll(filepath.Join(name, "in the way"), 0o700); err != nil { // there is no room for the reserve
		t.Fatal(err)
	}
	var full *DiskFullError
	for range 2 {
		if err := save(); !errors.As(err, &full) {
			t.Errorf("saved on the reserve: %v", err)
		}
	}
	if err := os.RemoveAll(name); err != nil {
		t.Fatal(err)
	}
	if err := save(); err != nil {
		t.Error("there is room again, and yet:", err)
	}
	if fi, err := os.Lstat(name); err != nil || fi.Size() != reserveBytes {
		t.Errorf("saved without a reserve for the next time: %v", err)
	}
	if n := (&collector{d: d}).rows(); n != rows {
		t.Errorf("transactions of %d rows as if the disk were full", n)
	}
	tries = 0
	if err := d.withReserve(func() error { tries++; return os.ErrClosed }); err != os.ErrClosed || tries != 1 {
		t.Errorf("what is no want of room took the reserve: %d tries, %v", tries, err)
	}
	if _, err := os.Lstat(name); err != nil {
		t.Error(err)
	}
}
