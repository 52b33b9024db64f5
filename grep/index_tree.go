package grep

import (
	"cmp"
	"crypto/sha256"
	"hash"
	"io/fs"
	"runtime"
	"slices"
	"strconv"
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
	utf8    bool
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

// isRules: the entry has a say in what is ignored.
func isRules(name string) bool { return name == ".gitignore" || name == ".ignore" || name == ".git" }

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
		if err := t.index.watch(c.dir, h); err != nil {
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

// cost is the memory of a filter.
func (f *indexFile) cost() int64 { return int64(len(f.filter)) * 8 }

// open opens d by handles from the root.
func (t *indexTree) open(root Dir, d *indexDir) (Dir, error) {
	if d.rel == "" {
		return root, nil
	}
	return openBelow(root, d.rel, false)
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

// ruleSum stands for everything that rules were read from.
type ruleSum [sha256.Size]byte

// recorder sums up all that the loader of rules sees.
type recorder struct {
	ignore.Dir
	sum hash.Hash
}

func record(d Dir) recorder { return recorder{ruleDir{d}, sha256.New()} }

func (r recorder) result() (s ruleSum) {
	r.sum.Sum(s[:0])
	return s
}

func (r recorder) note(what, name string, err error, data []byte) {
	said := ""
	if err != nil {
		said = err.Error()
	}
	for _, s := range []string{what, name, said, string(data)} {
		r.sum.Write([]byte(strconv.Itoa(len(s)) + ":" + s)) //nolint:errcheck // a hash does not fail
	}
}

func (r recorder) Stat(name string) (fs.FileMode, error) {
	m, err := r.Dir.Stat(name)
	r.note("stat", name, err, []byte(m.String()))
	return m, err
}

func (r recorder) ReadSmall(name string, max int64) ([]byte, error) {
	b, err := r.Dir.ReadSmall(name, max)
	r.note("read", name, err, b)
	return b, err
}

func (r recorder) OpenDir(name string) (ignore.Dir, error) {
	d, err := r.Dir.OpenDir(name)
	r.note("open", name, err, nil)
	return r.with(d, err)
}

func (r recorder) Parent() (ignore.Dir, error) {
	d, err := r.Dir.Parent()
	r.note("parent", "", err, nil)
	return r.with(d, err)
}

func (r recorder) with(d ignore.Dir, err error) (ignore.Dir, error) {
	if err != nil {
		return nil, err
	}
	r.note("at", d.True(), nil, nil)
	return recorder{d, r.sum}, nil
}

// sameRules reads again what rules come from that is not watched: the directories above the root, and repositories' own.
func (t *indexTree) sameRules(root Dir) bool {
	if t.key.noIgnore {
		return true
	}
	w := t.key.walk(root)
	r := record(root)
	ignore.Load(r, w.rules())
	if r.result() != t.sum {
		return false
	}
	for _, d := range t.repos {
		h, err := t.open(root, d)
		if err != nil {
			return false
		}
		r := record(h)
		t.rules.Enter(r, d.full, d.found)
		if h != root {
			h.Close()
		}
		if r.result() != d.sum {
			return false
		}
	}
	return true
}
