//go:build !linux || rooted

package guardfs_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"moltisfs/internal/guardfs"
)

type every struct{}

func (every) Judge(guardfs.Object, guardfs.Access) error { return nil }

func (every) Dir(string, ...string) guardfs.DirVerdict { return guardfs.DirVerdict{All: true} }

// A change in a watched directory is told in time, by whatever the system has for it.
func TestWatcherByNames(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	f, err := guardfs.New(guardfs.Options{Judge: every{}})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w, err := f.NewWatcher()
	if err != nil {
		t.Skip("SKIPPED: nothing can be watched here: ", err)
	}
	watch := func(name string) int {
		h, err := f.Resolve(name, guardfs.Walk)
		if err != nil {
			t.Fatal(err)
		}
		defer h.Close()
		d, err := h.Dir()
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		id, err := w.Watch(d)
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	if err := os.MkdirAll(root+"/d/e", 0o700); err != nil {
		t.Fatal(err)
	}
	top, d := watch(root), watch(root+"/d")
	if again := watch(root); again != top || d == top {
		t.Errorf("numbers %d, %d, %d", top, again, d)
	}
	heard := map[guardfs.Event]bool{}
	hears := func(want guardfs.Event) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		for !heard[want] {
			if err := w.Events(func(e guardfs.Event) { e.Cookie = 0; heard[e] = true }); err != nil {
				t.Fatal(err)
			}
			if !heard[want] {
				if err := w.Wait(ctx); err != nil {
					t.Fatalf("no %+v: %v; %v", want, err, heard)
				}
			}
		}
		clear(heard)
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.WriteFile(root+"/a", []byte("x"), 0o600))
	hears(guardfs.Event{What: guardfs.Created, Watch: top, Name: "a", Names: true})
	must(os.WriteFile(root+"/d/b", []byte("x"), 0o600))
	hears(guardfs.Event{What: guardfs.Created, Watch: d, Name: "b", Names: true})
	must(os.WriteFile(root+"/d/b", []byte("xy"), 0o600))
	hears(guardfs.Event{What: guardfs.Modified, Watch: d, Name: "b"})
	must(os.Rename(root+"/a", root+"/c"))
	hears(guardfs.Event{What: guardfs.Created, Watch: top, Name: "c", Names: true})
	must(os.Remove(root + "/c"))
	hears(guardfs.Event{What: guardfs.Removed, Watch: top, Name: "c", Names: true})
	must(os.Mkdir(root+"/n", 0o700))
	hears(guardfs.Event{What: guardfs.Created, Watch: top, Name: "n", Names: true, Dir: true})
	must(os.Rename(root+"/d", root+"/moved"))
	hears(guardfs.Event{Watch: d, Dir: true, Gone: true, Ended: true})
	if now := watch(root + "/moved"); now == d {
		t.Error("the directory that moved has its old number")
	}
	waits := make(chan error)
	go func() { waits <- w.Wait(t.Context()) }()
	must(w.Close())
	if err := <-waits; err != nil && !errors.Is(err, fs.ErrClosed) {
		t.Errorf("closed: %v", err)
	}
	if err := w.Events(func(guardfs.Event) {}); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}
