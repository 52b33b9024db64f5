package grep

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"moltisfs/grep/ignore"
)

// indexTree is one tree as it was listed, with the filters of its files. Ignored and hidden entries are in it too, so that what
// is skipped can be counted as the walk counts it.
type indexTree struct {
	index *Index
	key   treeKey
	bytes atomic.Int64

	marked []*indexDir // with changes reported; Index.mu guards it
	broken bool        // a rule file changed, or the root went; Index.mu guards it

	mu       sync.Mutex // guards what follows, and all directories
	retired  bool       // another tree takes over
	identity string
	root     *indexDir
	rules    *ignore.Set // from above the root
	unread   int         // rule files above the root that could not be read
	sum      ruleSum     // of what rules were read from
	repos    []*indexDir // with a ".git" in them
	odd      []*indexDir // that could not be listed: looked at again before each use
	lost     int         // Index.lost when the build began
	swept    time.Time
	filling  bool
}

// indexDir is a directory that the walk enters.
type indexDir struct {
	tree  *indexTree
	watch int    // 0: none
	rel   string // path from the root, "" or with a trailing slash
	full  string // path from the base of the rules
	depth int
	way   bool        // Entry.Way
	above *ignore.Set // in force in the directory above
	rules *ignore.Set // in force within
	found ignore.Found
	sum   ruleSum // with found.HasGit: of what its rules were read from
	id    string  // Located.Identity
	stamp stamp

	files  []indexFile // everything but directories
	dirs   []indexSub
	denied int
	unread int
	err    error // opening or listing failed
	dead   bool  // not in the tree any more

	// Index.mu guards what was reported since the last use.
	marks  bool
	relist bool
	names  map[string]bool // entries with changes; true: the name may mean another object
}

// indexSub is a directory within another.
type indexSub struct {
	name    string
	ignored bool
	way     bool      // Entry.Way
	dir     *indexDir // nil when it is not entered
}

// indexFile is an entry that is no directory.
type indexFile struct {
	name    string
	filter  trigrams // nil with known: empty, binary, or to be searched always
	stamp   stamp    // when it was read
	seq     uint32   // counts changes
	kind    Kind
	ignored bool
	known   bool // what follows holds until a change is reported
	empty   bool
	binary  bool
	plain   bool // as plain says of text: a pattern outside ASCII can be looked for in its bytes
	verify  bool // may change without a report: stat it before use
	settled bool // its times were old when it was read: another content would have others
}

// stamp is what changes with the content of a file.
type stamp struct {
	size, mod, change int64
	ino               uint64
}

func stampOf(i Info) stamp {
	return stamp{i.Size, i.ModTime.UnixNano(), i.ChangeTime.UnixNano(), i.Ino}
}

// cost is the memory of a filter.
func (f *indexFile) cost() int64 { return int64(len(f.filter)) * 8 }

// open opens d by handles from the root.
func (t *indexTree) open(root Dir, d *indexDir) (Dir, error) {
	if d.rel == "" {
		return root, nil
	}
	return openBelow(root, d.rel, false)
}

// watch begins to watch d. A directory that may be passed through but not read cannot be watched,
// and needs no watch: it cannot be listed either, and is tried again before each use.
func (t *indexTree) watch(d *indexDir, h Dir) (bool, error) {
	err := t.index.watch(d, h)
	if err == nil {
		return true, nil
	}
	if _, _, unlisted := h.List(nil); unlisted != nil {
		t.failed(d, unlisted)
		return false, nil
	}
	return false, err
}

// failed notes that d could not be opened or listed.
func (t *indexTree) failed(d *indexDir, err error) {
	for i := range d.dirs {
		t.forget(d.dirs[i].dir)
	}
	t.bytes.Add(-d.cost())
	d.files, d.dirs, d.denied, d.unread, d.err = nil, nil, 0, 0, err
	t.index.unwatch(d)
	t.odd = append(t.odd, d)
}

// forget takes a directory and everything below out of the tree.
func (t *indexTree) forget(d *indexDir) {
	if d == nil || d.dead {
		return
	}
	d.dead = true
	t.bytes.Add(-d.cost())
	t.index.unwatch(d)
	for i := range d.dirs {
		t.forget(d.dirs[i].dir)
	}
	t.noRepository(d)
}

func (t *indexTree) noRepository(d *indexDir) {
	if d.found.HasGit {
		t.repos = slices.DeleteFunc(t.repos, func(r *indexDir) bool { return r == d })
	}
}

// cost is the memory of a directory, about.
func (d *indexDir) cost() int64 {
	n := costOfEntry * int64(len(d.files)+len(d.dirs))
	for i := range d.files {
		n += d.files[i].cost()
	}
	return n
}

// each calls fn for every directory that is in the tree.
func (t *indexTree) each(fn func(d *indexDir)) {
	var visit func(d *indexDir)
	visit = func(d *indexDir) {
		fn(d)
		for i := range d.dirs {
			if d.dirs[i].dir != nil {
				visit(d.dirs[i].dir)
			}
		}
	}
	visit(t.root)
}

// inParallel calls fn for all dirs, by n goroutines.
func inParallel(n int, dirs []*indexDir, fn func(d *indexDir)) {
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(n, len(dirs)) {
		wg.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= len(dirs) {
					return
				}
				fn(dirs[i])
			}
		})
	}
	wg.Wait()
}
