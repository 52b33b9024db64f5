//go:build !linux || rooted

package guardfs

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// A change in a watched directory is told in time, by the means of the system.
func TestWatcherByNames(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	f := open(t, everything{})
	w, err := f.NewWatcher()
	if err != nil {
		t.Skip("SKIPPED: nothing can be watched here: ", err)
	}
	watch := func(name string) int {
		h, err := f.Resolve(name, Walk)
		must(t, err)
		defer h.Close()
		d, err := h.Dir()
		must(t, err)
		defer d.Close()
		id, err := w.Watch(d)
		must(t, err)
		return id
	}
	must(t, os.MkdirAll(root+"/d/e", 0o700))
	top, d := watch(root), watch(root+"/d")
	if again := watch(root); again != top || d == top {
		t.Errorf("numbers %d, %d, %d", top, again, d)
	}
	heard := map[Event]bool{}
	hears := func(want Event) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		for !heard[want] {
			must(t, w.Events(func(e Event) { e.Cookie = 0; heard[e] = true }))
			if !heard[want] {
				if err := w.Wait(ctx); err != nil {
					t.Fatalf("no %+v: %v; %v", want, err, heard)
				}
			}
		}
		clear(heard)
	}
	must(t, os.WriteFile(root+"/a", []byte("x"), 0o600))
	hears(Event{What: Created, Watch: top, Name: "a"})
	must(t, os.WriteFile(root+"/d/b", []byte("x"), 0o600))
	hears(Event{What: Created, Watch: d, Name: "b"})
	must(t, os.WriteFile(root+"/d/b", []byte("xy"), 0o600))
	hears(Event{What: Modified, Watch: d, Name: "b"})
	must(t, os.Rename(root+"/a", root+"/c"))
	hears(Event{What: Created, Watch: top, Name: "c"})
	must(t, os.Remove(root+"/c"))
	hears(Event{What: Removed, Watch: top, Name: "c"})
	must(t, os.Mkdir(root+"/n", 0o700))
	hears(Event{What: Created, Watch: top, Name: "n", Dir: true})
	must(t, os.Rename(root+"/d", root+"/moved"))
	hears(Event{Watch: d, Dir: true, Ended: true})
	if now := watch(root + "/moved"); now == d {
		t.Error("the directory that moved has its old number")
	}
	waits := make(chan error)
	go func() { waits <- w.Wait(t.Context()) }()
	must(t, w.Close())
	if err := <-waits; err != nil && !errors.Is(err, fs.ErrClosed) {
		t.Errorf("closed: %v", err)
	}
	if err := w.Events(func(Event) {}); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}
