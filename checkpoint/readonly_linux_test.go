package checkpoint_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"moltisfs/checkpoint"
)

// A store on a read-only file system can be looked at, also with the log of somebody who was killed, and is not changed.
func TestReadOnlyFileSystem(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=32m,mode=0700"); err != nil {
		t.Skip("SKIPPED: no tmpfs can be mounted here:", err)
	}
	defer unix.Unmount(dir, 0)
	remount := func(flags uintptr) {
		t.Helper()
		if err := unix.Mount("", dir, "", unix.MS_REMOUNT|flags, ""); err != nil {
			t.Fatal(err)
		}
	}
	store := filepath.Join(dir, "store")
	content := randomText(600<<10, 1)
	d, err := checkpoint.Open(store, checkpoint.Options{})
	if err != nil {
		t.Fatal(err)
	}
	id := save(t, d, op(edit("/w/a", content, []byte("2"))))
	look := func(log string) {
		t.Helper()
		d, err := checkpoint.Open(store, checkpoint.Options{})
		if err != nil {
			t.Fatalf("%s: %v", log, err)
		}
		if got, err := d.Content(ctx, sum(content)); err != nil || string(got) != string(content) {
			t.Errorf("%s: %v", log, err)
		}
		if p, err := d.List(ctx, checkpoint.Filter{AllSessions: true}); err != nil || len(p.Checkpoints) != 1 {
			t.Errorf("%s: %+v %v", log, p, err)
		}
		sound(t, d)
		if p, err := d.Purge(ctx, checkpoint.Purge{Hash: sum(content), DryRun: true}); err != nil || p.Contents != 1 || p.Checkpoints != 1 {
			t.Errorf("%s: what a purge would remove: %+v %v", log, p, err)
		}
		_, err1 := d.Save(ctx, op(edit("/w/a", nil, []byte("3"))))
		_, err2 := d.GC(ctx, false)
		for _, err := range []error{err1, err2, d.Pin(ctx, id, ann)} {
			if !errors.Is(err, checkpoint.ErrReadOnly) {
				t.Errorf("%s: what writes is ErrReadOnly, not %v", log, err)
			}
		}
		if err := d.Close(); err != nil {
			t.Errorf("%s: %v", log, err)
		}
	}
	// As a kill leaves it: a copy while it is open.
	killed := filepath.Join(dir, "killed")
	if err := os.CopyFS(killed, os.DirFS(store)); err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	remount(unix.MS_RDONLY)
	look("no log")
	store = killed
	look("a log")
	remount(0)
	if err := os.Remove(filepath.Join(store, "checkpoints.db-shm")); err != nil {
		t.Fatal(err)
	}
	remount(unix.MS_RDONLY)
	if d, err := checkpoint.Open(store, checkpoint.Options{}); !errors.Is(err, checkpoint.ErrReadOnly) {
		if err == nil {
			d.Close()
		}
		t.Errorf("a log that can't be read must not be passed by: %v", err)
	}
}
