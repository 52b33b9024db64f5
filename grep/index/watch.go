package index

import (
	"slices"

	"moltisfs/grep/tree"
)

// Watcher tells what changed in directories since it was asked last. It MUST NOT miss a change that
// was complete before Events was called, but for those that the kernel does not report: they are
// found by the next sweep.
type Watcher interface {
	// Watch begins to watch the entries of d. The number is the same for the same directory.
	Watch(d tree.Dir) (id int, err error)
	Unwatch(id int)
	Events(fn func(Event)) error
	Close() error
}

// Event is one change.
type Event struct {
	Watch int
	Name  string // of the entry; "" when it is the directory itself
	Names bool   // a name came, went, or means another object
	Gone  bool   // the directory itself went or was renamed
	Lost  bool   // events were dropped
}

// unwatchTree ends the watches of a tree. x.mu is held.
func (x *Index) unwatchTree(t *Tree) {
	for id, dirs := range x.watches {
		n := len(dirs)
		if dirs = slices.DeleteFunc(dirs, func(d *Dir) bool { return d.tree == t }); len(dirs) < n {
			x.setWatch(id, dirs)
		}
	}
}

// setWatch notes who is to hear of a watch, and ends it when nobody is.
func (x *Index) setWatch(id int, dirs []*Dir) {
	if len(dirs) > 0 {
		x.watches[id] = dirs
		return
	}
	delete(x.watches, id)
	if x.watcher != nil {
		x.watcher.Unwatch(id)
	}
}

// watch begins to watch a directory for d.
func (x *Index) watch(d *Dir, h tree.Dir) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.watcher == nil {
		return errVanished
	}
	id, err := x.watcher.Watch(h)
	if err != nil {
		return err
	}
	d.watch = id
	x.watches[id] = append(x.watches[id], d)
	return nil
}

func (x *Index) unwatch(d *Dir) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if d.watch != 0 && x.watches != nil {
		x.setWatch(d.watch, slices.DeleteFunc(x.watches[d.watch], func(o *Dir) bool { return o == d }))
		d.watch = 0
	}
}

// drain hands what was reported to the directories it concerns.
func (x *Index) drain() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.watcher == nil {
		return errVanished
	}
	return x.watcher.Events(func(e Event) {
		if e.Lost {
			x.lost++
			return
		}
		for _, d := range x.watches[e.Watch] {
			d.mark(e)
		}
	})
}
