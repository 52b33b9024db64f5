package blob

import (
	"container/list"
	"sync"
)

// Version is a content in memory whose row is in the store, unless that was removed since: the base
// of the next delta of its path. Depth and Key are those of the row when it was seen; what is
// written goes by the row.
type Version struct {
	Path    string
	Hash    Hash
	Depth   int
	Key     int64 // seal of its row; 0: it is in clear
	Content []byte
}

// suits says whether content may become a delta against v (nil: none).
func (v *Version) suits(content []byte) bool {
	return v != nil && v.Depth < MaxDepth &&
		len(v.Content) <= MaxDelta && len(content) <= MaxDelta && len(content) > 0
}

// Versions keeps the last content of each path, up to Max bytes in all.
type Versions struct {
	Max int

	mu    sync.Mutex
	bytes int
	by    map[string]*list.Element
	order list.List // newest first
}

// Forget forgets everything.
func (v *Versions) Forget() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.bytes, v.by = 0, nil
	v.order.Init()
}

// Find is the last content of path; nil when it is not here.
func (v *Versions) Find(path string) *Version {
	v.mu.Lock()
	defer v.mu.Unlock()
	e := v.by[path]
	if e == nil {
		return nil
	}
	v.order.MoveToFront(e)
	return e.Value.(*Version)
}

// Add makes n the last content of its path, and drops those that were asked for longest ago where
// it gets too much.
func (v *Versions) Add(n *Version) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(n.Content) > v.Max/4 {
		return
	}
	if v.by == nil {
		v.by = map[string]*list.Element{}
	}
	if e := v.by[n.Path]; e != nil {
		v.bytes -= len(e.Value.(*Version).Content) + 256
		v.order.Remove(e)
	}
	v.by[n.Path] = v.order.PushFront(n)
	v.bytes += len(n.Content) + 256
	for v.bytes > v.Max {
		e := v.order.Back()
		old := v.order.Remove(e).(*Version)
		delete(v.by, old.Path)
		v.bytes -= len(old.Content) + 256
	}
}
