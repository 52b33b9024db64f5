// Package index remembers which three-byte sequences stand in each file of the trees that are
// searched again and again. So a search for a pattern with a literal in it need not open the files
// that can't hold it.
//
// An Index watches the trees that it knows. It answers for a tree only when it has looked again at
// all that was reported since the last time; else the search walks as if there were no index. The
// search itself is the caller's: Use gives the tree as it is listed, and the caller asks each file
// MayMatch. The package opens directories and files through package tree and writes nothing.
package index

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"time"

	"moltisfs/grep/ignore"
	"moltisfs/grep/tree"
)

// Options say how an Index sees the trees that it remembers. Open and Watch are required; without
// them, or where Watch fails, nothing is ever indexed and every search is a plain one.
type Options struct {
	// Open opens a directory by its canonical name, under the policy that the searches are made under:
	// an Index serves one policy. What it gives must be Located.
	Open  func(root string) (tree.Dir, error)
	Watch func() (Watcher, error)

	MinFiles int           // trees with fewer files are not indexed; 0: 10,000
	MaxBytes int64         // of memory for all trees; 0: 256 MiB
	Sweep    time.Duration // how long a tree is trusted before it is verified by stat again; 0: 5 s
}

// Located is a Dir that can be told from another one of the same name.
type Located interface {
	tree.Dir
	Identity() string // of the directory, as long as it lives
	Info() tree.Info  // when it was opened
}

const (
	defaultMinFiles   = 10_000
	defaultIndexBytes = 256 << 20
	defaultSweep      = 5 * time.Second // a large tree takes about a tenth of a second
	searchesBefore    = 2               // a tree is indexed once it has been searched so often
)

// Index remembers which three-byte sequences stand in each file of the trees that are searched
// again and again, and so which files a pattern with a literal in it need not be looked for in.
// Results are those of a search without it.
//
// A tree is indexed in the background, by half of the processors, once it was searched twice and
// holds MinFiles files. Before it is used, everything that a Watcher has reported is looked at
// again, rule files above the tree are read again, and where the last look is older than Sweep
// every file and directory is verified by stat. Files with a second name, and files that were
// written to since, are verified by stat each time: their content can change without a report. What
// remains is found by the sweep only, so up to Sweep late: a write through a second name that was
// given to a file after it was read and lies in no indexed tree, which no kernel event tells, and a
// store through a memory mapping that was made before.
//
// An Index is safe for concurrent use. Close it when it is not needed any more.
type Index struct {
	o      Options
	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup // builds

	mu      sync.Mutex
	slots   map[Key]*slot
	clock   int64 // counts uses
	watcher Watcher
	watches map[int][]*Dir
	closed  bool
	off     bool // no watcher to be had
	lost    int  // counts the times that events were dropped
}

// Key is what the shape of a tree depends on.
type Key struct {
	Root     string // canonical name
	NoIgnore bool   // the rest has no say then
	Excludes string // content of the user's core.excludesFile
	Home     string // where "~/" leads in a repository's git configuration
	Fold     int8   // core.ignorecase; -1: as .git/config says
}

type treeState uint8

const (
	treeSeen     treeState = iota // searched, not indexed
	treeBuilding                  // by a goroutine, to which it belongs
	treeReady
	treeRefused // too large, or it cannot be watched
)

// slot is what is known of a tree by its key. Index.mu guards it.
type slot struct {
	key      Key
	state    treeState
	searches int
	used     int64 // Index.clock
	tree     *Tree
}

// New makes an empty index.
func New(o Options) *Index {
	if o.MinFiles <= 0 {
		o.MinFiles = defaultMinFiles
	}
	if o.MaxBytes <= 0 {
		o.MaxBytes = defaultIndexBytes
	}
	if o.Sweep <= 0 {
		o.Sweep = defaultSweep
	}
	x := &Index{o: o, slots: map[Key]*slot{}, watches: map[int][]*Dir{}, off: o.Open == nil || o.Watch == nil}
	x.ctx, x.cancel = context.WithCancel(context.Background())
	return x
}

// Close forgets everything and ends the builds that are under way. A search that still uses x goes
// on as a plain one.
func (x *Index) Close() error {
	x.mu.Lock()
	x.closed = true
	x.mu.Unlock()
	x.cancel()
	x.wg.Wait()
	x.mu.Lock()
	defer x.mu.Unlock()
	x.slots, x.watches = nil, nil
	w := x.watcher
	if x.watcher = nil; w == nil {
		return nil
	}
	return w.Close()
}

// Rules are the options that stand in the key, for the loader of ignore rules.
func (k *Key) Rules() ignore.Options {
	o := ignore.Options{Excludes: []byte(k.Excludes), Home: k.Home}
	if k.Fold >= 0 {
		fold := k.Fold == 1
		o.IgnoreCase = &fold
	}
	return o
}

// Searched learns that the tree d was searched without the index and showed so many files.
func (x *Index) Searched(key Key, d tree.Dir, files int) {
	if _, ok := d.(Located); !ok || files < x.o.MinFiles {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.closed || x.off {
		return
	}
	t := x.slots[key]
	if t == nil {
		t = &slot{key: key}
		x.slots[key] = t
		x.forgetSeen()
	}
	x.clock++
	t.used = x.clock
	if t.searches++; t.state == treeSeen && t.searches >= searchesBefore {
		x.start(t)
	}
}

// forgetSeen keeps the list of trees that are only counted short.
func (x *Index) forgetSeen() {
	const most = 256
	if len(x.slots) <= most {
		return
	}
	var oldest *slot
	for _, t := range x.slots {
		if (t.state == treeSeen || t.state == treeRefused) && (oldest == nil || t.used < oldest.used) {
			oldest = t
		}
	}
	if oldest != nil {
		delete(x.slots, oldest.key)
	}
}

// start builds the tree of t in the background, with what its last one knows of files that did not
// change. x.mu is held.
func (x *Index) start(t *slot) {
	if x.closed {
		return
	}
	if x.watcher == nil {
		w, err := x.o.Watch()
		if err != nil {
			x.off = true
			return
		}
		x.watcher = w
	}
	t.state = treeBuilding
	old := t.tree
	x.wg.Go(func() {
		built, err := x.build(t.key, old)
		x.mu.Lock()
		defer x.mu.Unlock()
		if x.closed || x.slots[t.key] != t {
			return
		}
		if old != nil {
			x.unwatchTree(old)
		}
		switch {
		case err == nil:
			t.tree, t.state = built, treeReady
			x.makeRoom(t)
		case errors.Is(err, errVanished):
			delete(x.slots, t.key)
			x.unwatchTree(built)
		default:
			t.tree, t.state = nil, treeRefused
			x.unwatchTree(built)
		}
	})
}

// again builds the tree of t anew: too much is unknown, or its rules changed.
func (x *Index) again(t *Tree) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if s := x.slots[t.key]; s != nil && s.tree == t && s.state == treeReady {
		x.start(s)
	}
}

// drop forgets a tree that is not what it was.
func (x *Index) drop(t *Tree) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if s := x.slots[t.key]; s != nil && s.tree == t {
		delete(x.slots, t.key)
		x.unwatchTree(t)
	}
}

// makeRoom forgets the trees that were used least recently until all fit.
func (x *Index) makeRoom(keep *slot) {
	for {
		var sum int64
		var oldest *slot
		for _, t := range x.slots {
			if t.state != treeReady {
				continue
			}
			sum += t.tree.bytes.Load()
			if t != keep && (oldest == nil || t.used < oldest.used) {
				oldest = t
			}
		}
		if sum <= x.o.MaxBytes || oldest == nil {
			return
		}
		delete(x.slots, oldest.key)
		x.unwatchTree(oldest.tree)
	}
}

// Use gives the tree d when there is an index of it that is up to date. It is the caller's until
// Release.
func (x *Index) Use(key Key, d tree.Dir) *Tree {
	root, ok := d.(Located)
	if !ok {
		return nil
	}
	t := x.ready(key)
	if t == nil {
		return nil
	}
	t.mu.Lock()
	if !t.fresh(root) {
		t.mu.Unlock()
		return nil
	}
	return t
}

// ready gives the tree of a key when it can be used.
func (x *Index) ready(k Key) *Tree {
	x.mu.Lock()
	defer x.mu.Unlock()
	t := x.slots[k]
	if t == nil || t.state != treeReady || x.closed {
		return nil
	}
	x.clock++
	t.used = x.clock
	return t.tree
}

// errVanished: the tree is not there any more, or the index is closed.
var errVanished = errors.New("the tree vanished")

// errRules: other rules hold now than those that the tree was listed by.
var errRules = errors.New("the ignore rules changed")

// errTooLarge: the index of the tree would not fit.
var errTooLarge = errors.New("the index would be too large")

// builders is how many goroutines read files for an index.
func builders() int { return min(max(1, runtime.GOMAXPROCS(0)/2), 8) }

// Bytes is the memory that the trees take, about.
func (x *Index) Bytes() int64 {
	x.mu.Lock()
	defer x.mu.Unlock()
	var sum int64
	for _, t := range x.slots {
		if t.tree != nil {
			sum += t.tree.bytes.Load()
		}
	}
	return sum
}
