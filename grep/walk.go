package grep

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"runtime"
	"strings"
	"sync/atomic"
	"time"

	"moltisfs/grep/ignore"
)

// Walk says which tree is looked at and how. Exactly one of Dir and File is set; the caller keeps owning it.
type Walk struct {
	Dir  Dir
	File File   // a single file: searched whatever ignore rules and filters say
	Name string // canonical path of File

	// Spelled is what the caller calls Dir, should that not be its canonical name; an absolute glob may begin with either.
	Spelled string

	NoIgnore    bool // no ignore rule of any kind holds
	CrossMounts bool // enter directories on other mounts
	MaxDepth    int  // directories below the root that are entered; 0: no limit
	Workers     int  // 0: GOMAXPROCS, at most 16

	Excludes   []byte // content of the user's core.excludesFile, which lies outside the tree
	IgnoreCase *bool  // core.ignorecase; nil: as .git/config says
	Home       string // where "~/" leads in a repository's git configuration; "": nowhere
}

const (
	maxWorkers = 16  // 16 buffers of 256 KiB stay well within the memory that a search may take
	maxHeld    = 384 // directory handles held for subdirectories that wait; beyond it they are reopened from the root
	splitFiles = 192 // a directory with more files than this is shared between workers,
	batchFiles = 128 // in batches of this many
)

// visitor is what is done with what the walk finds. Its methods are called by many workers at once.
// rel is a directory's path from the root, "" or ending in a slash.
type visitor interface {
	descend(rel string) bool // may anything below rel be wanted?
	leads(rel string) bool   // is rel named as a directory to go through?
	wants(rel, name string, w *worker) bool
	file(w *worker, n *node, name string)
	picks() bool // not everything is wanted
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
}

// node is an open directory, kept while jobs need it.
type node struct {
	dir   Dir // nil when it was closed to save handles: reopened by rel
	refs  atomic.Int32
	full  string // base + path from the root, "" or with a trailing slash
	cut   int    // len(base)
	depth int
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
	asked   uint      // calls of stopped,
	yielded time.Time // and when one of them last let the scheduler in
}

// A worker lets the scheduler in every slice, well below the 10 ms after which Go's monitor takes a processor from a goroutine
// that it meets in a system call. A search is always in one, and each such theft keeps the monitor awake every 20 µs, at the cost
// of a fifth of the search on two processors.
const slice = 4 * time.Millisecond

// stopped says whether the walk is to end. It is asked between any two files or pieces of a file.
func (p *worker) stopped() bool {
	if p.asked++; p.asked%4 == 0 {
		if now := time.Now(); now.Sub(p.yielded) > slice {
			runtime.Gosched()
			p.yielded = now
		}
	}
	return p.walk.stop.Load()
}

// job is work that any worker may take: the waiting subdirectories of a node, a batch of its files, or run.
type job struct {
	node  *node
	rules *ignore.Set // in force in node
	dirs  []string
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

// walk visits everything, or what it can before ctx ends. start replaces the walk by a single job when set. files is the number
// of files in the directories that were listed, wanted or not.
func walk(ctx context.Context, o Walk, v visitor, start func(*worker)) (skipped Skipped, files int) {
	w := &walker{Walk: o, visitor: v, root: &node{dir: o.Dir}}
	w.opts = o.rules()
	defer context.AfterFunc(ctx, func() { w.stop.Store(true) })()
	if ctx.Err() != nil {
		w.stop.Store(true)
	}
	if start == nil {
		start = w.begin(&skipped)
	}
	n := o.workers()
	w.sched.init(n)
	w.push(0, job{run: start})
	workers := make([]worker, n)
	w.sched.run(func(id int) {
		p := &workers[id]
		p.id, p.walk = id, w
		for {
			j, ok := w.next(id)
			if !ok {
				return
			}
			w.do(p, j)
			w.done()
		}
	})
	for i := range workers {
		skipped.add(&workers[i].skipped)
		files += workers[i].seen
	}
	return skipped, files
}

// begin loads the rules from above the root and gives the job that lists it.
func (w *walker) begin(skipped *Skipped) func(*worker) {
	rules := new(ignore.Set)
	if !w.NoIgnore {
		var unread int
		rules, w.base, unread = ignore.Load(ruleDir{w.Dir}, w.opts)
		skipped.Rules += unread
	}
	w.root = &node{dir: w.Dir, full: w.base, cut: len(w.base)}
	w.root.refs.Store(2) // one is never given back: the caller owns the root
	return func(p *worker) { w.list(p, w.root, rules) }
}

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

// batch visits files of a shared directory.
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
		p.failed(err)
		return
	}
	w.held.Add(1)
	n := &node{dir: d, full: j.node.full + j.dirs[0] + "/", cut: j.node.cut, depth: j.node.depth + 1}
	n.refs.Store(1)
	w.list(p, n, j.rules)
}

// handle gives a node's directory; one that was closed is opened again from the root, by handles. The caller
// closes it when n.dir is nil.
func (w *walker) handle(n *node) (Dir, error) {
	if n.dir != nil {
		return n.dir, nil
	}
	return openBelow(w.root.dir, n.rel(), w.CrossMounts)
}

// openBelow opens the directory rel, not "" and with a trailing slash, by handles from root.
func openBelow(root Dir, rel string, crossMounts bool) (Dir, error) {
	cur := root
	for part := range strings.SplitSeq(strings.TrimSuffix(rel, "/"), "/") {
		next, err := cur.OpenDir(part, crossMounts)
		if cur != root {
			cur.Close()
		}
		if err != nil {
			return nil, err
		}
		cur = next
	}
	return cur, nil
}

func (w *walker) release(n *node) {
	if n.refs.Add(-1) == 0 && n.dir != nil {
		n.dir.Close()
		w.held.Add(-1)
	}
}

// list reads a directory, gives its subdirectories to whoever is free, and visits its files.
func (w *walker) list(p *worker, n *node, rules *ignore.Set) {
	entries, denied, err := n.dir.List(p.entries)
	p.skipped.Denied += denied
	if err != nil {
		p.skipped.failed(err)
	}
	if !w.NoIgnore {
		if f := found(entries); f.Any() {
			var unread int
			rules, unread = rules.Enter(ruleDir{n.dir}, n.full, f)
			p.skipped.Rules += unread
		}
	}
	files, dirs := w.sift(p, n, entries, rules)
	var jobs []job
	if len(dirs) > 0 {
		jobs = append(jobs, job{node: n, rules: rules, dirs: dirs})
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
	if !hold && len(jobs) > 0 && jobs[0].dirs != nil {
		// The subdirectories wait without the handle, so that no tree can use up the descriptors.
		closed := &node{full: n.full, cut: n.cut, depth: n.depth}
		closed.refs.Store(1)
		jobs[0].node = closed
		n.refs.Add(-1)
	}
	n.refs.Add(int32(len(jobs)))
	w.push(p.id, jobs...)
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

// found looks for the entries that carry rules.
func found(entries []Entry) (f ignore.Found) {
	for i := range entries {
		switch e := &entries[i]; {
		case e.Name[0] != '.':
		case e.Name == ".gitignore":
			f.Gitignore = e.Kind == KindFile
		case e.Name == ".ignore":
			f.Ignore = e.Kind == KindFile
		case e.Name == ".git" && e.Kind == KindDir:
			f.Git, f.HasGit = fs.ModeDir, true
		case e.Name == ".git" && e.Kind == KindFile:
			f.Git, f.HasGit = 0, true
		case e.Name == ".git" && e.Kind == KindLink:
			f.Git, f.HasGit = fs.ModeSymlink, true
		}
	}
	return f
}

// sift keeps, at the front of entries, the files that are wanted, and gives the names of the directories to enter.
func (w *walker) sift(p *worker, n *node, entries []Entry, rules *ignore.Set) (files []Entry, dirs []string) {
	idle, rel := rules.Idle(), n.rel()
	k := 0
	for i := range entries {
		e := &entries[i]
		isDir := e.Kind == KindDir
		if isDir && !w.enters(p, rel, e.Name, n.depth) || !isDir && !w.searches(p, rel, e) {
			continue
		}
		if !idle && rules.Ignored(n.full, e.Name, isDir, &p.scratch) {
			p.skipped.Ignored++
			continue
		}
		if isDir {
			dirs = append(dirs, e.Name)
			continue
		}
		entries[k] = *e
		k++
	}
	return entries[:k], dirs
}

// searches says whether an entry that is no directory is a file to search, ignore rules apart. What it will not search it counts.
func (w *walker) searches(p *worker, rel string, e *Entry) bool {
	if e.Kind == KindFile {
		p.seen++
	}
	switch {
	case e.Name == ".git": // of a worktree or a submodule
		if w.wants(rel, e.Name, p) {
			p.skipped.VCS++
		}
		return false
	case e.Kind == KindLink:
		if w.wants(rel, e.Name, p) || w.leads(rel+e.Name+"/") {
			p.skipped.Links++
		}
		return false
	case !w.wants(rel, e.Name, p):
		return false
	case e.Kind != KindFile:
		p.skipped.Special++
	}
	return e.Kind == KindFile
}

// enters says whether a directory is to be entered, ignore rules apart. What it will not enter it counts.
func (w *walker) enters(p *worker, rel, name string, depth int) bool {
	switch {
	case !w.descend(rel + name + "/"):
	case isVCS(name):
		p.skipped.VCS++
	case w.MaxDepth > 0 && depth >= w.MaxDepth:
		p.skipped.Deep++
	default:
		return true
	}
	return false
}

// isVCS: the directories of version control systems hold no files of the project.
func isVCS(name string) bool {
	switch name {
	case ".git", ".svn", ".hg", ".bzr", ".jj", ".sl":
		return true
	}
	return false
}

// failed counts an object that could not be opened or read. One whose name is allowed and that is denied for what it is, a second
// name of a hidden file, counts only where everything is asked for: what a glob does to the count would tell which name it is.
func (p *worker) failed(err error) {
	if p.walk.picks() && errors.Is(err, ErrDenied) {
		return
	}
	p.skipped.failed(err)
}

// failed counts an object that could not be opened or read. One that vanished meanwhile was never there.
func (s *Skipped) failed(err error) {
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case errors.Is(err, ErrMount):
		s.Mounts++
	case errors.Is(err, ErrDenied):
		s.Denied++
	default:
		s.Unreadable++
	}
}

// ruleDir shows a Dir to the loader of ignore rules. What policy hides is not there for it either: a directory above the
// root that may not be looked at is where the climb ends, and nothing that was skipped.
type ruleDir struct{ d Dir }

func (r ruleDir) True() string { return r.d.True() }
func (r ruleDir) Close() error { return r.d.Close() }
func (r ruleDir) ReadSmall(name string, max int64) ([]byte, error) {
	b, err := r.d.ReadSmall(name, max)
	return b, hidden(err, fs.ErrNotExist)
}

func hidden(err, as error) error {
	if errors.Is(err, ErrDenied) {
		return as
	}
	return err
}

func (r ruleDir) Stat(name string) (fs.FileMode, error) {
	i, err := r.d.Stat(name)
	err = hidden(err, fs.ErrNotExist)
	switch i.Kind {
	case KindFile:
		return 0, err
	case KindDir:
		return fs.ModeDir, err
	case KindLink:
		return fs.ModeSymlink, err
	}
	return fs.ModeIrregular, err
}

func (r ruleDir) OpenDir(name string) (ignore.Dir, error) {
	d, err := r.d.OpenDir(name, true)
	if err != nil {
		return nil, hidden(err, fs.ErrNotExist)
	}
	return ruleDir{d}, nil
}

func (r ruleDir) Parent() (ignore.Dir, error) {
	d, err := r.d.Parent()
	if err != nil {
		return nil, hidden(err, io.EOF)
	}
	return ruleDir{d}, nil
}
