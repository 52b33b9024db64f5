//go:build !linux || rooted

package guardfs

import (
	"cmp"
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/fsnotify/fsnotify"
)

// Watcher tells the changes in directories, as fsnotify does on this system. It goes by names
// and not by handles, as everything here does at best, and it may tell late: a change
// that was made before Events is called need not be among those that it gives. Of a rename the two names are told
// apart. It is safe for concurrent use.
type Watcher struct {
	system *fsnotify.Watcher
	ready  chan struct{} // holds one when there is something to tell
	ended  chan struct{} // closed when nothing comes any more

	mu    sync.Mutex
	ids   map[string]int // by name, as the system spells it
	next  int
	moves uint32

	// The events of the system. The goroutine that takes them must do nothing else: some systems answer no
	// other question before their events are taken.
	heard sync.Mutex
	queue []fsnotify.Event
	lost  bool
}

const maxHeard = 1 << 16 // events that wait; more are lost

// NewWatcher gives a watcher of nothing.
func (f *FS) NewWatcher() (*Watcher, error) {
	system, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, &PathError{Op: "watch", Path: "/", Err: cause(err)}
	}
	w := &Watcher{system: system, ids: map[string]int{}, ready: make(chan struct{}, 1),
		ended: make(chan struct{})}
	go w.listen()
	return w, nil
}

// Close gives the watcher back, with all watches.
func (w *Watcher) Close() error {
	err := w.system.Close()
	<-w.ended
	return err
}

// Watch begins to watch the entries of d. The directory that has its name by then must be d.
func (w *Watcher) Watch(d *Dir) (id int, err error) {
	name := filepath.FromSlash(d.name)
	w.mu.Lock()
	defer w.mu.Unlock()
	if id, known := w.ids[name]; known {
		return id, nil
	}
	err = w.system.Add(name)
	if err == nil {
		var fi fs.FileInfo
		if fi, err = os.Lstat(name); err == nil && !os.SameFile(fi, d.fi) {
			err = fs.ErrNotExist
		}
		if err != nil {
			w.system.Remove(name) //nolint:errcheck // it is not watched, and the error says so
		}
	}
	if err != nil {
		return 0, &PathError{Op: "watch", Path: d.name, Err: cause(err)}
	}
	w.next++
	w.ids[name] = w.next
	return w.next, nil
}

// Unwatch ends a watch. Events of it that are queued still come.
func (w *Watcher) Unwatch(id int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for name, other := range w.ids {
		if other == id {
			w.forget(name)
		}
	}
}

func (w *Watcher) forget(name string) {
	delete(w.ids, name)
	w.system.Remove(name) //nolint:errcheck // it is gone when the directory is
}

// Events calls fn for all that is queued, without waiting. An Event with Lost set says that some
// were dropped: nothing is known any more.
func (w *Watcher) Events(fn func(Event)) error {
	w.heard.Lock()
	queue, lost := w.queue, w.lost
	w.queue, w.lost = nil, false
	w.heard.Unlock()
	for _, e := range queue {
		for _, own := range w.meaning(e) { // fn may watch what has come
			fn(own)
		}
	}
	if lost {
		fn(Event{Lost: true})
	}
	select {
	case <-w.ended:
		return &PathError{Op: "watch", Path: "/", Err: fs.ErrClosed}
	default:
		return nil
	}
}

// Wait returns when there is something to tell, or ctx ends.
func (w *Watcher) Wait(ctx context.Context) error {
	failed := fs.ErrClosed
	select {
	case <-w.ready:
		return nil
	case <-w.ended:
	case <-ctx.Done():
		failed = ctx.Err()
	}
	return &PathError{Op: "watch", Path: "/", Err: cmp.Or(ctx.Err(), failed)}
}

// listen queues what the system tells, until the watcher is closed. An event that is not understood counts as
// lost, as an overflow does.
func (w *Watcher) listen() {
	defer close(w.ended)
	for {
		var e fsnotify.Event
		var ok, lost bool
		select {
		case e, ok = <-w.system.Events:
		case _, lost = <-w.system.Errors:
		}
		if !ok && !lost {
			return
		}
		w.heard.Lock()
		if lost = lost || len(w.queue) >= maxHeard; lost {
			w.lost = true
		} else {
			w.queue = append(w.queue, e)
		}
		w.heard.Unlock()
		select {
		case w.ready <- struct{}{}:
		default:
		}
	}
}

// meaning makes our events of one of the system's.
func (w *Watcher) meaning(e fsnotify.Event) (all []Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	dir := false
	if e.Has(fsnotify.Create) {
		fi, err := os.Lstat(e.Name)
		dir = err == nil && fi.IsDir()
	}
	if id, watched := w.ids[e.Name]; watched {
		dir = true
		if e.Has(fsnotify.Remove) || e.Has(fsnotify.Rename) {
			for name := range w.ids { // what is below has another name now
				if name == e.Name || strings.HasPrefix(name, e.Name+string(filepath.Separator)) {
					w.forget(name)
				}
			}
			all = append(all, Event{Watch: id, Dir: true, Ended: true})
		}
	}
	id, watched := w.ids[filepath.Dir(e.Name)]
	if !watched {
		return all
	}
	out := Event{Watch: id, Name: filepath.Base(e.Name), Dir: dir}
	for _, kind := range []struct {
		op   fsnotify.Op
		what Happening
	}{{fsnotify.Create, Created}, {fsnotify.Write | fsnotify.Chmod, Modified}, {fsnotify.Remove, Removed}, {fsnotify.Rename, MovedFrom}} {
		if e.Op&kind.op == 0 {
			continue
		}
		if out.What = kind.what; out.What == MovedFrom { // its other name comes as one that is new
			w.moves++
			out.Cookie = w.moves
		}
		all = append(all, out)
	}
	return all
}
