package grep

import (
	"context"
	"errors"
	"io"
	"path/filepath"
	"slices"
	"sync"

	"moltisfs/grep/match"
	"moltisfs/internal/text"
)

// Search looks through the files of w. The result does not depend on the number of workers or on
// their timing.
//
// A context that reaches its deadline makes the result Partial; its cancellation is an error. Other
// errors come from opening the root, or are *GlobError and *TypeError. Files that could not be searched are
// counted in Result.Skipped.
func Search(ctx context.Context, w Walk, q Query) (*Result, error) {
	return searchSized(ctx, w, q, defaultSizes())
}

// searchSized is Search with other sizes of its memory, for tests.
func searchSized(ctx context.Context, w Walk, q Query, size sizes) (*Result, error) {
	if err := q.check(); err != nil {
		return nil, err
	}
	s := &search{q: q, encodings: w.Encodings, size: size, states: make([]state, w.workers()), big: make(chan []byte, 1)}
	var err error
	if s.filter, err = newFilter(q.Glob, q.Type, w.roots()); err != nil {
		return nil, err
	}
	if w.Elsewhere != nil {
		return w.Elsewhere.Search(ctx, w, q)
	}
	s.nonASCII = q.Matcher.NonASCII() && !q.Matcher.Bytes()
	s.rows.limit = window(q.Offset, q.Limit)
	for i := range s.states {
		s.states[i].newest.limit = s.rows.limit
	}
	s.big <- nil // made when first needed
	s.docs.Documents, s.docs.ctx = w.Documents, ctx
	res := &Result{}
	switch {
	case w.File != nil:
		dir, name := filepath.Split(w.Name)
		res.Root = filepath.Clean(dir)
		if dir == "" {
			res.Root = ""
		}
		s.docs.root = res.Root
		res.Skipped, err = walk(ctx, w, s, func(p *worker) { s.look(p, w.File, "", name, true) })
	case w.Dir != nil:
		res.Root = w.Dir.True()
		s.docs.root = res.Root
		if res.Skipped, err = walk(ctx, w, s, nil); err == nil {
			var left Skipped
			left, err = s.searchDocuments(w)
			res.Skipped.add(&left)
		}
	default:
		return nil, errors.New("grep: Walk needs a Dir or a File")
	}
	if err == nil {
		res.Partial, err = ended(ctx, res.Skipped)
	}
	if err != nil {
		return nil, err
	}
	s.report(res)
	res.why = s.docs.why
	return res, nil
}

// buffers keeps the buffers of finished workers for the next search. In a small tree making them costs
// more than the search.
var buffers sync.Pool // of *[]byte

func takeBuffer(size int) *[]byte {
	if b, ok := buffers.Get().(*[]byte); ok && len(*b) == size {
		return b
	}
	b := make([]byte, size)
	return &b
}

// search is the visitor of Search.
type search struct {
	*filter
	q      Query
	states []state
	rows   rowKeeper
	big    chan []byte
	size   sizes
	docs   documents

	// nonASCII says that the pattern names characters outside ASCII. Then a file that is not UTF-8 must be
	// decoded.
	nonASCII  bool
	encodings map[string]string
}

// state is one worker's.
type state struct {
	buf    []byte
	pooled *[]byte // buf, if it goes back to buffers
	scan   scan
	target target // the file that look is at
	newest newest
	totals Totals
	binary []string // files that match and are not shown
	_      [64]byte
}

// report puts the workers' results together.
func (s *search) report(res *Result) {
	all := &s.states[0].newest
	for i := range s.states {
		st := &s.states[i]
		t := &res.Totals
		t.Files += st.totals.Files
		t.Lines += st.totals.Lines
		t.Matches += st.totals.Matches
		t.Rows += st.totals.Rows
		t.Scanned += st.totals.Scanned
		for _, name := range st.binary {
			res.Binary = append(res.Binary, joinRoot(res.Root, name))
		}
		if i > 0 {
			all.files = append(all.files, st.newest.files...)
		}
		if st.scan.sc != nil {
			s.q.Matcher.Put(st.scan.sc)
		}
		if st.pooled != nil {
			buffers.Put(st.pooled)
		}
	}
	slices.SortFunc(res.Binary, comparePaths)
	if s.q.Mode == Content {
		if s.q.Found == nil {
			res.Rows = s.rows.page(res.Root, s.q.Offset, s.q.Limit)
			res.Truncated = len(res.Rows) < res.Totals.Rows
		}
		return
	}
	res.Files = all.page(res.Root, s.q.Offset, s.q.Limit)
	res.Truncated = len(res.Files) < res.Totals.Files
}

// file opens a file that the walk found, and searches it.
func (s *search) file(w *worker, n *node, name string) {
	if s.q.Named != nil {
		s.q.Named(n.rel() + name)
	}
	f, err := n.dir.OpenFile(name)
	if err != nil {
		w.failed(err)
		return
	}
	s.look(w, f, n.rel(), name, false)
}

// ready gives the worker's state with its buffer and scanner.
func (s *search) ready(w *worker) *state {
	st := &s.states[w.id]
	if st.buf == nil {
		st.pooled = takeBuffer(s.size.buffer)
		st.buf = *st.pooled
		st.scan.q, st.scan.size = &s.q, &s.size
	}
	if st.scan.sc == nil {
		st.scan.sc = s.scanner(w)
	}
	return st
}

// scanner takes its share of the memory that the automata of all workers may use.
func (s *search) scanner(w *worker) *match.Scanner {
	sc := s.q.Matcher.ScannerWithin(max(s.size.automata/len(s.states), 192<<10))
	sc.Bound(w.stopped)
	return sc
}

// look searches one open file and closes it. It keeps one that belongs to the caller open.
func (s *search) look(w *worker, f File, rel, name string, keep bool) {
	st := s.ready(w)
	t := &st.target
	*t = target{search: s, file: f, info: f.Info(), rel: rel, name: name, keep: keep}
	if s.q.MaxFileBytes > 0 && t.info.Size > s.q.MaxFileBytes && !keep {
		w.skipped.TooLarge++
		t.close()
		return
	}
	n, eof, kind, err := readText(f, t.info.Size, st.buf)
	named := s.named(rel+name, keep)
	if named == text.UTF8 {
		kind = text.Plain
	}
	switch {
	case err != nil:
		w.skipped.Unreadable++
		t.close()
		return
	case n == 0:
		t.close()
		return
	}
	if s.docs.Documents != nil && kind.Wide == nil && s.docs.Is(f, st.buf[:n], kind == text.Binary) {
		if !keep && !s.docs.now {
			s.docs.later(rel, name)
			t.close()
			return
		}
		if t.document(w, st) {
			st.totals.Scanned++
			t.close()
			return
		}
	}
	st.totals.Scanned++
	st.scan.reset(s.rowsWanted(rel, name))
	st.scan.asIs = kind != text.Plain || named != nil
	if t.binary = kind == text.Binary && named == nil; t.binary {
		t.bytes, st.scan.want = true, 0
		t.cut = !eof && !keep // of one in a tree the beginning is enough
		eof = eof || t.cut
	}
	b := st.buf[:n]
	switch {
	case named != nil && named != text.UTF8:
		t.decoded(w, st, named)
	case kind.Wide != nil:
		t.decoded(w, st, kind.Wide)
	case s.q.Multiline:
		t.multiline(w, st, f, n, eof)
	case eof:
		c := chunk{b: b[bomLen(b):], last: true, at: int64(bomLen(b))}
		if e, foreign := t.encoding(&st.scan, c); foreign {
			t.decide(w, st, e, true, nil)
			break
		}
		st.scan.chunk(c)
		t.decide(w, st, nil, false, nil)
	case t.info.Size >= s.size.split && len(s.states) > 1:
		t.split(w, st)
		return // the worker that finishes it closes it
	default:
		t.stream(w, st, f, n)
	}
	t.close()
}

// named is the encoding that the caller has named for the file at path, which keep says is the whole of the walk; nil for none.
func (s *search) named(path string, keep bool) *text.Encoding {
	if keep {
		if s.q.Encoding != "" {
			return text.Lookup(s.q.Encoding)
		}
		path = ""
	}
	if len(s.encodings) == 0 {
		return nil
	}
	return text.Lookup(s.encodings[path])
}

// readText reads as much of a file as buf can hold. It stops early when the beginning says that it is text
// that must be decoded.
func readText(f File, size int64, buf []byte) (n int, eof bool, kind text.Content, err error) {
	n, eof, err = readAll(f, size, buf[:min(len(buf), headLen)])
	if kind = text.Sniff(buf[:n]); err == nil && !eof && kind.Wide == nil {
		var k int
		k, eof, err = readAll(f, size-int64(n), buf[n:])
		n += k
	}
	return n, eof, kind, err
}

// readAll is readFull for a file of known size: having read that much, it does not ask for more.
func readAll(f File, size int64, buf []byte) (n int, eof bool, err error) {
	if size <= 0 || size >= int64(len(buf)) {
		return readFull(f, buf)
	}
	n, err = f.Read(buf)
	switch {
	case err == io.EOF || err == nil && int64(n) == size:
		return n, true, nil
	case err != nil:
		return n, false, err
	}
	k, eof, err := readFull(f, buf[n:])
	return n + k, eof, err
}

// readFull reads until buf is full or f ends. eof says that it ended.
func readFull(f io.Reader, buf []byte) (n int, eof bool, err error) {
	for n < len(buf) {
		k, err := f.Read(buf[n:])
		n += k
		if err == io.EOF {
			return n, true, nil
		}
		if err != nil {
			return n, false, err
		}
	}
	return n, false, nil
}

// target is the file being searched.
type target struct {
	*search
	file      File
	info      Info
	rel, name string
	keep      bool
	bytes     bool // searched as it is, whatever its encoding
	binary    bool
	cut       bool                 // only its beginning is searched
	place     func(line int) Place // of a document's text
}

func (t *target) close() {
	if !t.keep {
		t.file.Close()
	}
}

// rowsWanted is how many rows of a file can be used.
func (s *search) rowsWanted(rel, name string) int {
	switch {
	case s.q.Mode != Content:
		return 0
	case s.q.Found != nil && s.q.Limit > 0:
		return s.q.Limit
	}
	return s.rows.wants(rel, name)
}

// stream searches r in chunks. n bytes of it are in the buffer already.
func (t *target) stream(w *worker, st *state, r io.Reader, n int) {
	x := stream{r: r, buf: st.buf, n: n, big: t.big, size: &t.size, stop: w.stopped}
	x.lines = t.q.Before
	var e *text.Encoding
	foreign := false
	err := x.run(func(c chunk) bool {
		c.skipMark()
		if e, foreign = t.encoding(&st.scan, c); foreign {
			return false
		}
		return st.scan.chunk(c)
	})
	t.decide(w, st, e, foreign, err)
}

// decide finishes the file, or searches it again if its bytes can't be searched as they are: foreign says so before the
// search, with its encoding e; scan.foreign says so for a line that matches.
func (t *target) decide(w *worker, st *state, e *text.Encoding, foreign bool, err error) {
	switch {
	case foreign:
		t.legacy(w, st, e)
	case st.scan.foreign != nil:
		t.decoded(w, st, st.scan.foreign)
	default:
		t.finish(w, &st.scan, err)
	}
}

// finish adds the results of the scan of a file. A scan that the deadline stopped counts as far as it
// came.
func (t *target) finish(w *worker, c *scan, err error) {
	st := &t.states[w.id]
	if err != nil && !errors.Is(err, errStopped) {
		w.skipped.Unreadable++
		return
	}
	if err != nil || c.sc.Stopped() {
		w.skipped.Deadline++
	}
	if t.binary && (!t.keep || t.q.Mode == Content) {
		if c.lines > 0 {
			st.binary = append(st.binary, t.rel+t.name)
		} else if t.cut {
			w.skipped.Binary++
		}
		return
	}
	if c.long {
		w.skipped.LongLines++
	}
	if c.lines == 0 {
		return
	}
	st.totals.Files++
	st.totals.Rows += c.rows
	if t.q.Mode != FilesWithMatches {
		st.totals.Lines += c.lines
	}
	st.totals.Matches += c.matches
	if t.q.Mode == Content {
		t.rowsToUTF8(c.out)
		for i := range c.out {
			if t.place != nil {
				at := t.place(c.out[i].Line)
				c.out[i].Place = &at
			}
		}
		if h := (FileHit{ModTime: t.info.ModTime, Size: t.info.Size, Lines: c.lines}); t.q.Found != nil {
			h.Path = t.rel + t.name
			t.q.Found(h, c.out)
			return
		}
		t.search.rows.add(t.rel+t.name, c.out)
		return
	}
	h := FileHit{ModTime: t.info.ModTime, Size: t.info.Size, Matches: c.matches}
	if t.q.Mode == Count {
		h.Lines = c.lines
	}
	st.newest.add(h, t.rel, t.name)
}
