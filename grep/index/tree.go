package index

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"moltisfs/grep/ignore"
	"moltisfs/grep/index/rulefiles"
	"moltisfs/grep/tree"
)

// Tree is one tree as it was listed, with the filters of its files. Ignored and hidden entries are
// in it too, so that what is skipped can be counted as the walk counts it.
type Tree struct {
	index *Index
	key   Key
	bytes atomic.Int64

	marked []*Dir // with changes reported; Index.mu guards it
	broken bool   // a rule file changed, or the root went; Index.mu guards it

	mu       sync.Mutex // guards what follows, and all directories
	retired  bool       // another tree takes over
	identity string
	Root     *Dir
	rules    *ignore.Set   // from above the root
	Unread   int           // rule files above the root that could not be read
	sum      rulefiles.Sum // of what rules were read from
	repos    []*Dir        // with a ".git" in them
	odd      []*Dir        // that could not be listed: looked at again before each use
	lost     int           // Index.lost when the build began
	swept    time.Time
	filling  bool
}

// Dir is a directory that the walk enters.
type Dir struct {
	tree  *Tree
	watch int    // 0: none
	Rel   string // path from the root, "" or with a trailing slash
	full  string // path from the base of the rules
	Depth int
	Way   bool        // Entry.Way
	above *ignore.Set // in force in the directory above
	rules *ignore.Set // in force within
	found ignore.Found
	sum   rulefiles.Sum // with found.HasGit: of what its rules were read from
	id    string        // Located.Identity
	stamp stamp

	Files  []File // everything but directories
	Dirs   []Sub
	Denied int
	Unread int
	Err    error // opening or listing failed
	dead   bool  // not in the tree any more

	// Index.mu guards what was reported since the last use.
	marks  bool
	relist bool
	names  map[string]bool // entries with changes; true: the name may mean another object
}

// Sub is a directory within another.
type Sub struct {
	Name    string
	Ignored bool
	Way     bool // Entry.Way
	Dir     *Dir // nil when it is not entered
}

// File is an entry that is no directory.
type File struct {
	Name    string
	filter  trigrams // nil with known: empty, binary, or to be searched always
	stamp   stamp    // when it was read
	seq     uint32   // counts changes
	Kind    tree.Kind
	Ignored bool
	known   bool // what follows holds until a change is reported
	Empty   bool
	Binary  bool
	plain   bool // as plain says of text: a pattern outside ASCII can be looked for in its bytes
	Verify  bool // may change without a report: stat it before use
	settled bool // its times were old when it was read: another content would have others
}

// stamp is what changes with the content of a file.
type stamp struct {
	size, mod, change int64
	ino               uint64
}

func stampOf(i tree.Info) stamp {
	return stamp{i.Size, i.ModTime.UnixNano(), i.ChangeTime.UnixNano(), i.Ino}
}

// Changed: the file is not what it was when it was read.
func (f *File) Changed(now tree.Info) bool { return stampOf(now) != f.stamp }

// Size is the length of the file when it was read.
func (f *File) Size() int64 { return f.stamp.size }

// cost is the memory of a filter.
func (f *File) cost() int64 { return int64(len(f.filter)) * 8 }

// open opens d by handles from the root.
func (t *Tree) open(root tree.Dir, d *Dir) (tree.Dir, error) {
	if d.Rel == "" {
		return root, nil
	}
	return tree.OpenBelow(root, d.Rel, false)
}

// watch begins to watch d. A directory that may be passed through but not read cannot be watched,
// and needs no watch: it cannot be listed either, and is tried again before each use.
func (t *Tree) watch(d *Dir, h tree.Dir) (bool, error) {
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
func (t *Tree) failed(d *Dir, err error) {
	for i := range d.Dirs {
		t.forget(d.Dirs[i].Dir)
	}
	t.bytes.Add(-d.cost())
	d.Files, d.Dirs, d.Denied, d.Unread, d.Err = nil, nil, 0, 0, err
	t.index.unwatch(d)
	t.odd = append(t.odd, d)
}

// forget takes a directory and everything below out of the tree.
func (t *Tree) forget(d *Dir) {
	if d == nil || d.dead {
		return
	}
	d.dead = true
	t.bytes.Add(-d.cost())
	t.index.unwatch(d)
	for i := range d.Dirs {
		t.forget(d.Dirs[i].Dir)
	}
	t.noRepository(d)
}

func (t *Tree) noRepository(d *Dir) {
	if d.found.HasGit {
		t.repos = slices.DeleteFunc(t.repos, func(r *Dir) bool { return r == d })
	}
}

// cost is the memory of a directory, about.
func (d *Dir) cost() int64 {
	n := costOfEntry * int64(len(d.Files)+len(d.Dirs))
	for i := range d.Files {
		n += d.Files[i].cost()
	}
	return n
}

// each calls fn for every directory that is in the tree.
func (t *Tree) each(fn func(d *Dir)) {
	var visit func(d *Dir)
	visit = func(d *Dir) {
		fn(d)
		for i := range d.Dirs {
			if d.Dirs[i].Dir != nil {
				visit(d.Dirs[i].Dir)
			}
		}
	}
	visit(t.Root)
}

// inParallel calls fn for all dirs, by n goroutines.
func inParallel(n int, dirs []*Dir, fn func(d *Dir)) {
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

// sameRules reads again what rules come from that is not watched: the directories above the root,
// and repositories' own.
func (t *Tree) sameRules(root tree.Dir) bool {
	if t.key.NoIgnore {
		return true
	}
	r := rulefiles.NewRecord(root)
	ignore.Load(r, t.key.Rules())
	if r.Sum() != t.sum {
		return false
	}
	for _, d := range t.repos {
		h, err := t.open(root, d)
		if err != nil {
			return false
		}
		r := rulefiles.NewRecord(h)
		t.rules.Enter(r, d.full, d.found)
		if h != root {
			h.Close()
		}
		if r.Sum() != d.sum {
			return false
		}
	}
	return true
}

// Release ends the use of t and has what changed read again. missing is how many files were found
// Missing.
func (t *Tree) Release(missing int64) {
	x := t.index
	if missing > 0 && !t.filling {
		x.mu.Lock()
		if !x.closed {
			t.filling = true
			x.wg.Go(t.refill)
		}
		x.mu.Unlock()
	}
	t.mu.Unlock()
}
