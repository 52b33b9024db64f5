package checkpoint

import (
	"container/list"
	"sync"
)

// version is a content in memory whose row is in the store, unless that was removed since: the base of the next delta of
// its path. depth and key are those of the row when it was seen; what is written goes by the row.
type version struct {
	path    string
	h       hash
	depth   int
	key     int64 // seal of its row; 0: it is in clear
	content []byte
}

// versions keeps the last content of each path, up to max bytes in all.
type versions struct {
	mu    sync.Mutex
	max   int
	bytes int
	by    map[string]*list.Element
	order list.List // newest first
}

// forget forgets everything.
func (v *versions) forget() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.bytes, v.by = 0, nil
	v.order.Init()
}

func (v *versions) find(path string) *version {
	v.mu.Lock()
	defer v.mu.Unlock()
	e := v.by[path]
	if e == nil {
		return nil
	}
	v.order.MoveToFront(e)
	return e.Value.(*version)
}

func (v *versions) add(n *version) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(n.content) > v.max/4 {
		return
	}
	if v.by == nil {
		v.by = map[string]*list.Element{}
	}
	if e := v.by[n.path]; e != nil {
		v.bytes -= len(e.Value.(*version).content) + 256
		v.order.Remove(e)
	}
	v.by[n.path] = v.order.PushFront(n)
	v.bytes += len(n.content) + 256
	for v.bytes > v.max {
		e := v.order.Back()
		old := v.order.Remove(e).(*version)
		delete(v.by, old.path)
		v.bytes -= len(old.content) + 256
	}
}
