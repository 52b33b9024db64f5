package index

import (
	"cmp"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"moltisfs/grep/index/rulefiles"
	"moltisfs/grep/tree"
)

// maxMarked is how many directories may have changed until the tree is listed anew in the
// background.
const maxMarked = 4096

// mark notes what was reported about d. Index.mu is held.
func (d *Dir) mark(e Event) {
	switch {
	case e.Gone && d.Rel == "":
		d.tree.broken = true
	case !d.tree.key.NoIgnore && rulefiles.Is(e.Name):
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
	dir    *Dir
	relist bool
	names  map[string]bool
}

// fresh brings t up to date with the tree under root, all but the filters of what changed. It is
// false when that takes longer than a search: then it is done in the background. t.mu is held.
func (t *Tree) fresh(root Located) bool {
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
		more, ruled := t.sweep(root)
		if ruled {
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
	slices.SortStableFunc(changes, func(a, b change) int { return cmp.Compare(a.dir.Depth, b.dir.Depth) })
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
func (x *Index) changes(t *Tree) (out []change, lost bool) {
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
func (t *Tree) apply(root tree.Dir, c change) error {
	for i := range c.dir.Files {
		f := &c.dir.Files[i]
		if _, ok := c.names[f.Name]; ok {
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
func (t *Tree) changed(f *File) {
	t.bytes.Add(-f.cost())
	f.seq++
	f.known, f.filter = false, nil
	f.Verify = true // whoever wrote to it may do so again, through a mapping
}

// sweep verifies everything by stat and gives what differs without having been reported; ruled says
// that a rule file is among it.
func (t *Tree) sweep(root tree.Dir) (out []change, ruled bool) {
	var dirs []*Dir
	t.each(func(d *Dir) { dirs = append(dirs, d) })
	var mu sync.Mutex
	var rule atomic.Bool
	add := func(c change) {
		mu.Lock()
		out = append(out, c)
		mu.Unlock()
	}
	inParallel(runtime.GOMAXPROCS(0), dirs, func(d *Dir) {
		if d.Err != nil {
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
			for i := range d.Files {
				names[d.Files[i].Name] = true
			}
			for i := range d.Dirs {
				names[d.Dirs[i].Name] = true
			}
			t.index.unwatch(d)
			add(change{d, true, names})
			return
		} else if stampOf(l.Info()) != d.stamp {
			add(change{dir: d, relist: true})
		}
		for i := range d.Files {
			f := &d.Files[i]
			if !f.known {
				continue
			}
			if i, err := h.Stat(f.Name); err != nil || stampOf(i) != f.stamp {
				t.changed(f)
				if rulefiles.Is(f.Name) {
					rule.Store(true)
				}
			}
		}
	})
	return out, rule.Load() && !t.key.NoIgnore
}
