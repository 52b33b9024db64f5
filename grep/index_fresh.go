package grep

import (
	"cmp"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// maxMarked is how many directories may have changed until the tree is listed anew in the background.
const maxMarked = 4096

// mark notes what was reported about d. Index.mu is held.
func (d *indexDir) mark(e Event) {
	switch {
	case e.Gone && d.rel == "":
		d.tree.broken = true
	case !d.tree.key.noIgnore && isRules(e.Name):
		d.tree.broken = true
	}
	if !d.marks {
		d.marks, d.names = true, map[string]bool{}
		d.tree.marked = append(d.tree.marked, d)
	}
	if e.Name == "" || e.Names || e.Gone {
		d.relist = true
	}
	if e.Name != "" {
		d.names[e.Name] = d.names[e.Name] || e.Names
	}
}

// change is what was reported about one directory.
type change struct {
	dir    *indexDir
	relist bool
	names  map[string]bool
}

// fresh brings t up to date with the tree under root, all but the filters of what changed. It is false when that takes
// longer than a search: then it is done in the background. t.mu is held.
func (t *indexTree) fresh(root Located) bool {
	x := t.index
	if t.retired {
		return false
	}
	if root.Identity() != t.identity || x.drain() != nil {
		t.retired = true
		x.drop(t)
		return false
	}
	changes, lost := x.changes(t)
	if lost || !t.sameRules(root) {
		t.retired = true
		x.again(t)
		return false
	}
	if time.Since(t.swept) > x.o.Sweep {
		t.swept = time.Now()
		more, rules := t.sweep(root)
		if rules {
			t.retired = true
			x.again(t)
			return false
		}
		changes = append(changes, more...)
	}
	for _, d := range t.odd {
		changes = append(changes, change{dir: d, relist: true})
	}
	t.odd = t.odd[:0]
	slices.SortStableFunc(changes, func(a, b change) int { return cmp.Compare(a.dir.depth, b.dir.depth) })
	for _, c := range changes {
		if c.dir.dead {
			continue
		}
		if err := t.apply(root, c); err != nil {
			t.retired = true
			x.again(t)
			return false
		}
	}
	return true
}

// changes takes what was reported about t. lost: not all was, or too much.
func (x *Index) changes(t *indexTree) (out []change, lost bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	lost = t.broken || t.lost != x.lost || len(t.marked) > maxMarked
	for _, d := range t.marked {
		out = append(out, change{d, d.relist, d.names})
		d.marks, d.relist, d.names = false, false, nil
	}
	t.marked = t.marked[:0]
	return out, lost
}

// apply looks again at what changed in one directory.
func (t *indexTree) apply(root Dir, c change) error {
	for i := range c.dir.files {
		f := &c.dir.files[i]
		if _, ok := c.names[f.name]; ok {
			t.changed(f)
		}
	}
	if !c.relist {
		return nil
	}
	h, err := t.open(root, c.dir)
	if err != nil {
		t.failed(c.dir, err)
		return nil
	}
	if h != root {
		defer h.Close()
	}
	if c.dir.watch == 0 {
		if ok, err := t.watch(c.dir, h); !ok {
			return err
		}
	}
	return t.list(c.dir, h, c.names)
}

// changed forgets what was known of f.
func (t *indexTree) changed(f *indexFile) {
	t.bytes.Add(-f.cost())
	f.seq++
	f.known, f.filter = false, nil
	f.verify = true // whoever wrote to it may do so again, through a mapping
}

// sweep verifies everything by stat and gives what differs without having been reported; rules says that a rule file is among it.
func (t *indexTree) sweep(root Dir) (out []change, rules bool) {
	var dirs []*indexDir
	t.each(func(d *indexDir) { dirs = append(dirs, d) })
	var mu sync.Mutex
	var ruled atomic.Bool
	add := func(c change) {
		mu.Lock()
		out = append(out, c)
		mu.Unlock()
	}
	inParallel(runtime.GOMAXPROCS(0), dirs, func(d *indexDir) {
		if d.err != nil {
			return // looked at again anyway
		}
		h, err := t.open(root, d)
		if err != nil {
			add(change{dir: d, relist: true})
			return
		}
		if h != root {
			defer h.Close()
		}
		if l, ok := h.(Located); !ok || l.Identity() != d.id {
			// Another directory of the same name. All of its entries are new to us.
			names := map[string]bool{}
			for i := range d.files {
				names[d.files[i].name] = true
			}
			for i := range d.dirs {
				names[d.dirs[i].name] = true
			}
			t.index.unwatch(d)
			add(change{d, true, names})
			return
		} else if stampOf(l.Info()) != d.stamp {
			add(change{dir: d, relist: true})
		}
		for i := range d.files {
			f := &d.files[i]
			if !f.known {
				continue
			}
			if i, err := h.Stat(f.name); err != nil || stampOf(i) != f.stamp {
				t.changed(f)
				if isRules(f.name) {
					ruled.Store(true)
				}
			}
		}
	})
	return out, ruled.Load() && !t.key.noIgnore
}
