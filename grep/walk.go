package grep

import (
	"context"
	"errors"
	"io/fs"
	"runtime"
	"sync/atomic"
	"time"

	"moltisfs/grep/ignore"
	"moltisfs/grep/tree"
)

// Walk says which tree is searched and how. Exactly one of Dir and File is set. The caller keeps
// owning it.
type Walk struct {
	Dir  Dir
	File File   // a single file: searched whatever ignore rules and filters say
	Name string // canonical path of File

	// Spelled is how the caller calls Dir, if not by its canonical name. An absolute glob may begin
	// with either.
	Spelled string

	// Encodings maps the path of a file from the root to the encoding by which the session read it; the path "" is File.
	Encodings map[string]string

	NoIgnore    bool // no ignore rule of any kind holds
	CrossMounts bool // enter directories on other mounts
	MaxDepth    int  // directories below the root that are entered; 0: no limit
	Workers     int  // 0: GOMAXPROCS, at most 16

	Excludes   []byte // content of the user's core.excludesFile, which lies outside the tree
	IgnoreCase *bool  // core.ignorecase; nil: as .git/config says
	vcs        bool   // directories of version control are entered too
	Home       string // where "~/" leads in a repository's git configuration; "": nowhere

	Come *atomic.Int64 // grows by each file that the walk comes to; nil: nobody looks

	// Documents, if set, makes text of documents for Search, whose text is searched then and not their bytes.
	Documents Documents

	// Elsewhere, if set, searches where the tree is, with the same answers; Dir and File only name
	// the tree or file.
	Elsewhere Elsewhere
}

// Elsewhere is another process that searches. The queries that it is given were found to be good.
type Elsewhere interface {
	Search(ctx context.Context, w Walk, q Query) (*Result, error)
	Files(ctx context.Context, w Walk, q GlobQuery) (*FilesResult, error)
}

const (
	maxWorkers = 16  // 16 buffers of 256 KiB are a small part of the memory of a search
	maxHeld    = 384 // handles held for waiting subdirectories; more are reopened from the root
	splitFiles = 192 // a directory with more files than this is shared between workers,
	batchFiles = 128 // in batches of this many
)

// visitor takes the directories and files that a walk finds. Its methods are called by many workers at once.
// rel is the path of a directory from the root, "" or with a slash at the end.
type visitor interface {
	descend(rel string) bool // may anything below rel be wanted?
	leads(rel string) bool   // does a glob name rel as a directory to pass through?
	wants(rel, name string, w *worker) bool
	file(w *worker, n *node, name string)
	picks() bool // is only a part of the files wanted?
}

// walker runs one walk.
type walker struct {
	Walk
	visitor
	sched
	opts ignore.Options
	base string // path of the root from the base of the ignore rules, "" or with a trailing slash
	root *node
	held atomic.Int32
	stop atomic.Bool
	err  error // of the root: there is no such directory
}

// node is an open directory. It stays open while jobs refer to it.
type node struct {
	dir   Dir // nil when it was closed to save handles; handle reopens it
	refs  atomic.Int32
	full  string // base + path from the root, "" or with a trailing slash
	cut   int    // len(base)
	depth int
	way   bool // Entry.Way: nothing in it is counted except matches
}

func (n *node) rel() string { return n.full[n.cut:] }

// worker is one goroutine's state.
type worker struct {
	id      int
	walk    *walker
	skipped Skipped
	seen    int // files listed, wanted or not
	entries []Entry
	scratch ignore.Scratch
	asked   uint      // calls of stopped
	yielded time.Time // when stopped last yielded
}

// yieldInterval is how often a worker yields to Go's scheduler. After 10 ms Go's monitor takes the
// processor from a goroutine that it finds in a system call. A search nearly always is in one, and
// each such case keeps the monitor awake every 20 µs. On two processors that costs a fifth of the
// search. Yielding earlier avoids it.
const yieldInterval = 4 * time.Millisecond

// stopped says whether the walk must end. It is asked between any two files, and between the pieces
// of a file.
func (p *worker) stopped() bool {
	if p.asked++; p.asked%4 == 0 {
		if now := time.Now(); now.Sub(p.yielded) > yieldInterval {
			runtime.Gosched()
			p.yielded = now
		}
	}
	return p.walk.stop.Load()
}

// job is work that any worker may take. It is one of three: the waiting subdirectories of a node, a
// batch of its files, or run.
type job struct {
	node  *node
	rules *ignore.Set // in force in node
	dirs  []string
	way   bool // of dirs: Entry.Way
	files []string
	run   func(*worker)
}

// roots are the names of Dir that an absolute glob may begin with.
func (w *Walk) roots() []string {
	if w.Dir == nil {
		return nil
	}
	return []string{w.Dir.True(), w.Spelled}
}

// workers is the number of goroutines that w uses.
func (w *Walk) workers() int {
	if w.Workers > 0 {
		return min(w.Workers, maxWorkers)
	}
	return min(runtime.GOMAXPROCS(0), maxWorkers)
}

// walk visits everything, or as much as it can before ctx ends. start, if set, replaces the walk by a
// single job. err says that the root can't be listed, for another reason than its permissions.
func walk(
	ctx context.Context, o Walk, v visitor, start func(*worker),
) (skipped Skipped, err error) {
	w := &walker{Walk: o, visitor: v, root: &node{dir: o.Dir}}
	w.opts = ignore.Options{Excludes: o.Excludes, IgnoreCase: o.IgnoreCase, Home: o.Home}
	defer context.AfterFunc(ctx, func() { w.stop.Store(true) })()
	if ctx.Err() != nil {
		w.stop.Store(true)
	}
	if start == nil {
		start = w.begin(&skipped)
	}
	w.push(job{run: start})
	workers := make([]worker, o.workers())
	w.sched.run(len(workers), func(id int, j job) {
		p := &workers[id]
		p.id, p.walk = id, w
		w.do(p, j)
	})
	for i := range workers {
		skipped.add(&workers[i].skipped)
	}
	return skipped, w.err
}

// begin loads the rules from above the root, and gives the job that lists the root.
func (w *walker) begin(skipped *Skipped) func(*worker) {
	rules := new(ignore.Set)
	if !w.NoIgnore {
		var unread int
		rules, w.base, unread = ignore.Load(w.Dir, w.opts)
		skipped.Rules += unread
	}
	w.root = &node{dir: w.Dir, full: w.base, cut: len(w.base)}
	w.root.refs.Store(2) // one is never released: the caller owns the root
	return func(p *worker) { w.list(p, w.root, rules) }
}

// do runs a job.
func (w *walker) do(p *worker, j job) {
	switch {
	case j.run != nil:
		j.run(p)
	case j.files != nil:
		w.batch(p, j)
	default:
		w.enter(p, j)
	}
}

// batch visits some files of a directory that several workers share.
func (w *walker) batch(p *worker, j job) {
	for i, name := range j.files {
		if p.stopped() {
			p.skipped.Deadline += len(j.files) - i
			break
		}
		w.file(p, j.node, name)
	}
	w.release(j.node)
}

// enter opens the one subdirectory in j and lists it.
func (w *walker) enter(p *worker, j job) {
	defer w.release(j.node)
	if p.stopped() {
		p.skipped.Deadline++
		return
	}
	parent, err := w.handle(j.node)
	var d Dir
	if err == nil {
		d, err = parent.OpenDir(j.dirs[0], w.CrossMounts)
		if j.node.dir == nil {
			parent.Close()
		}
	}
	if err != nil {
		if !j.way {
			p.failed(err)
		}
		return
	}
	w.held.Add(1)
	n := &node{dir: d, full: j.node.full + j.dirs[0] + "/", cut: j.node.cut, way: j.way}
	n.depth = j.node.depth + 1
	n.refs.Store(1)
	w.list(p, n, j.rules)
}

// handle gives the directory of a node. A closed one is opened again from the root, by handles. The
// caller closes it when n.dir is nil.
func (w *walker) handle(n *node) (Dir, error) {
	if n.dir != nil {
		return n.dir, nil
	}
	return tree.OpenBelow(w.root.dir, n.rel(), w.CrossMounts)
}

// release gives up a reference to n, and closes it with the last one.
func (w *walker) release(n *node) {
	if n.refs.Add(-1) == 0 && n.dir != nil {
		n.dir.Close()
		w.held.Add(-1)
	}
}

// list reads a directory, gives its subdirectories to any free worker, and visits its files.
func (w *walker) list(p *worker, n *node, rules *ignore.Set) {
	entries, denied, err := n.dir.List(p.entries)
	if n == w.root && len(entries) == 0 && err != nil && !errors.Is(err, ErrDenied) &&
		!errors.Is(err, fs.ErrPermission) {
		w.err = err
	}
	if !n.way {
		p.skipped.Denied += denied
		p.skipped.failed(err)
	}
	if !w.NoIgnore {
		var f ignore.Found
		for i := range entries {
			if e := &entries[i]; e.Name[0] == '.' && !e.Way {
				f.Add(e.Name, e.Kind)
			}
		}
		if f.Any() {
			var unread int
			rules, unread = rules.Enter(n.dir, n.full, f)
			p.skipped.Rules += unread
		}
	}
	files, dirs, ways := w.sift(p, n, entries, rules)
	var jobs []job
	if len(dirs) > 0 {
		jobs = append(jobs, job{node: n, rules: rules, dirs: dirs})
	}
	if len(ways) > 0 {
		jobs = append(jobs, job{node: n, rules: rules, dirs: ways, way: true})
	}
	for len(files) > splitFiles {
		cut := len(files) - batchFiles
		batch := make([]string, batchFiles)
		for i := range batch {
			batch[i] = files[cut+i].Name
		}
		files = files[:cut]
		jobs = append(jobs, job{node: n, files: batch})
	}
	hold := w.held.Load() < maxHeld || n == w.root
	for i := range jobs {
		if hold || jobs[i].dirs == nil {
			break
		}
		// The subdirectories wait without the handle: no tree may use up the file descriptors.
		closed := &node{full: n.full, cut: n.cut, depth: n.depth}
		closed.refs.Store(1)
		jobs[i].node = closed
		n.refs.Add(-1)
	}
	n.refs.Add(int32(len(jobs)))
	if len(jobs) > 0 {
		w.push(jobs...)
	}
	for i := range files {
		if p.stopped() {
			p.skipped.Deadline += len(files) - i
			break
		}
		w.file(p, n, files[i].Name)
	}
	clear(entries)
	p.entries = entries[:0]
	if cap(p.entries) > 1<<16 {
		p.entries = nil
	}
	w.release(n)
}
