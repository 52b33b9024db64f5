package grep

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
)

// GlobQuery asks for files by name.
type GlobQuery struct {
	// Pattern is a glob relative to the root, or absolute below it; without a slash it speaks of
	// names at any depth; "" is every file; with "!" before it, every file that it does not match.
	// Commas outside braces make a list of globs, as in Query.Glob; blanks don't.
	Pattern string
	Limit   int // files to return; 0: all
	Offset  int // of the newest, files to skip

	NoHidden bool // leave out names that begin with a dot, and all below such directories
	All      bool // no ignore rule counts, and directories of version control are entered
	Dirs     bool // directories that match are found too
}

// Files finds files by name, newest first, ties by path. It walks only where the pattern can match,
// and holds only Offset+Limit files. A context at its deadline makes the result Partial; its
// cancellation is an error. Other errors: *GlobError, and the error of the root directory.
func Files(ctx context.Context, w Walk, q GlobQuery) (*FilesResult, error) {
	if w.Dir == nil {
		return nil, errors.New("grep: Files needs Walk.Dir")
	}
	w.NoIgnore, w.vcs = w.NoIgnore || q.All, q.All
	root := w.Dir.True()
	f, err := newGlobFilter(q.Pattern, w.roots())
	if err != nil {
		return nil, err
	}
	if w.Elsewhere != nil {
		return w.Elsewhere.Files(ctx, w, q)
	}
	l := &lister{filter: f, noHidden: q.NoHidden, dirs: q.Dirs, found: make([]workerFiles, w.workers())}
	for i := range l.found {
		l.found[i].newest.limit = window(q.Offset, q.Limit)
	}
	skipped, err := walk(ctx, w, l, nil)
	if err != nil {
		return nil, err
	}
	res := &FilesResult{Root: root, Skipped: skipped}
	if res.Partial, err = ended(ctx, skipped); err != nil {
		return nil, err
	}
	all := &l.found[0].newest
	for i := range l.found {
		res.Total += l.found[i].total
		res.Link = first(res.Link, l.found[i].link)
		if i > 0 {
			all.files = append(all.files, l.found[i].newest.files...)
		}
	}
	res.Files = all.page(root, q.Offset, q.Limit)
	res.Truncated = len(res.Files) < res.Total
	return res, nil
}

// Any reports whether w leads to a file at all, ignore rules aside. It stops at the first one. When
// ctx ends before that, the answer is no.
func Any(ctx context.Context, w Walk) bool {
	w.NoIgnore = true
	var first firstFile
	walk(ctx, w, &first, nil)
	return first.found.Load()
}

// firstFile is the visitor of Any.
type firstFile struct {
	filter // without globs: all is wanted
	found  atomic.Bool
}

func (f *firstFile) file(w *worker, n *node, name string) {
	if i, err := n.dir.Stat(name); err == nil && i.Kind == KindFile {
		f.found.Store(true)
		w.walk.stop.Store(true)
	}
}

// ended tells a deadline from a cancellation. A deadline leaves a partial result where something
// was left undone; a cancellation leaves none.
func ended(ctx context.Context, s Skipped) (partial bool, err error) {
	if err := ctx.Err(); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return false, err
	}
	return s.Deadline+s.LateDocuments > 0, nil
}

// lister is the visitor of Files.
type lister struct {
	*filter
	noHidden bool
	dirs     bool
	found    []workerFiles
}

func (l *lister) descend(rel string) bool {
	return !(l.noHidden && strings.Contains("/"+rel, "/.")) && l.filter.descend(rel)
}

func (l *lister) wants(rel, name string, w *worker) bool {
	return !(l.noHidden && strings.HasPrefix(name, ".")) && l.filter.wants(rel, name, w)
}

// first is the one of two names that comes first; "" is none.
func first(a, b string) string {
	if a == "" || b != "" && b < a {
		return b
	}
	return a
}

// workerFiles holds the files that one worker found.
type workerFiles struct {
	newest newest
	total  int
	link   string // that matches, the first by name
	_      [64]byte
}

func (l *lister) file(w *worker, n *node, name string) { l.hit(w, n, name, KindFile) }

// hit notes the entry name of n, if it is still of that kind.
func (l *lister) hit(w *worker, n *node, name string, k Kind) {
	i, err := n.dir.Stat(name)
	if err != nil {
		w.failed(err)
		return
	}
	if i.Kind != k {
		return // it was replaced since the listing
	}
	f, hit := &l.found[w.id], FileHit{ModTime: i.ModTime, Size: i.Size}
	if k == KindDir {
		hit.Dir, hit.Size = true, 0
	}
	f.total++
	f.newest.add(hit, n.rel(), name)
}
