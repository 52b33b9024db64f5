package grep

import (
	"bytes"
	"context"
	"slices"
	"sync"

	"moltisfs/grep/tree"
)

// Documents makes text of files whose bytes do not have it, such as PDFs. It is safe for concurrent use.
type Documents interface {
	// Is says by the first bytes of f whether it is a document. binary says that there is a NUL among them.
	Is(f File, head []byte, binary bool) bool
	// Text gives the text of the document f, whose canonical path is name.
	Text(ctx context.Context, name string, f File) (*DocumentText, error)
}

// DocumentText is the text of a document, in UTF-8.
type DocumentText struct {
	Content []byte
	Place   func(line int) Place // where a line of Content stands, from 1
	Cut     bool                 // there is more
	Denied  int                  // parts that policy hides
}

// Place is where a line of a document stands. A Read with Pages and Offset shows it.
type Place struct {
	Name   string // "page 3", "a/b.txt, line 7"; "" where the number of the line says it
	Pages  string
	Offset int
}

// documents lists the documents that a walk has found. They are searched after all other files, since their text takes long to make.
type documents struct {
	Documents
	ctx  context.Context
	root string
	now  bool // it is their turn

	mu    sync.Mutex
	found [][2]string // path of the directory, and name
	why   error       // of Walk.File
}

// later leaves a document for searchDocuments.
func (d *documents) later(rel, name string) {
	d.mu.Lock()
	d.found = append(d.found, [2]string{rel, name})
	d.mu.Unlock()
}

// searchDocuments searches the documents that the walk has found, in the order of their paths, until the time is over.
func (s *search) searchDocuments(w Walk) (Skipped, error) {
	d := &s.docs
	if len(d.found) == 0 {
		return Skipped{}, nil
	}
	d.now = true
	slices.SortFunc(d.found, func(a, b [2]string) int { return comparePaths(b[0]+b[1], a[0]+a[1]) }) // the last job is taken first
	return walk(d.ctx, w, s, func(p *worker) {
		jobs := make([]job, len(d.found))
		for i, at := range d.found {
			jobs[i].run = func(p *worker) { s.openDocument(p, w, at[0], at[1]) }
		}
		p.walk.push(jobs...)
	})
}

func (s *search) openDocument(p *worker, w Walk, rel, name string) {
	if p.stopped() {
		p.skipped.LateDocuments++
		return
	}
	dir, err := w.Dir, error(nil)
	if rel != "" {
		if dir, err = tree.OpenBelow(dir, rel, w.CrossMounts); err == nil {
			defer dir.Close()
		}
	}
	var f File
	if err == nil {
		f, err = dir.OpenFile(name)
	}
	if err != nil {
		p.failed(err)
		return
	}
	s.look(p, f, rel, name, false)
}

// document searches the text of a document. It is false for one whose bytes are to be searched, because there is no text of it.
func (t *target) document(w *worker, st *state) bool {
	text, err := t.docs.Text(t.docs.ctx, joinRoot(t.docs.root, t.rel+t.name), t.file)
	switch {
	case err != nil && t.docs.ctx.Err() != nil:
		w.skipped.LateDocuments++
		return true
	case err != nil:
		if w.skipped.Documents++; t.keep {
			t.docs.why = err
		}
		return false
	case text.Cut:
		w.skipped.Documents++
	}
	w.skipped.Denied += text.Denied
	t.place = text.Place
	st.scan.reset(t.rowsWanted(t.rel, t.name))
	t.read(w, st, bytes.NewReader(text.Content))
	return true
}
