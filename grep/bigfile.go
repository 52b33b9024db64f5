package grep

import (
	"bytes"
	"errors"
	"io"
	"sync/atomic"
	"time"
)

// bigFile is a file that several workers search, range by range. A line belongs to the range in
// which it starts. The worker that finishes the last range puts the results together.
type bigFile struct {
	target
	want     int
	segment  int64 // bytes of a range
	parts    []part
	next     atomic.Int64
	left     atomic.Int64
	found    atomic.Bool // FilesWithMatches: only the encoding can still change the answer
	failed   atomic.Pointer[error]
	seenLong atomic.Bool
	legacy   atomic.Bool // a range cannot be searched as it is: go through the file in order
}

const maxParts = 1 << 16 // of a file: bounds the memory of their list

type part struct {
	lines, matches, starts int
	done                   bool // searched to its end
}

// rowGrace is how long after the deadline rows may still be gathered for matches found before it.
const rowGrace = 200 * time.Millisecond

// split shares the file with all workers that are free.
func (t *target) split(w *worker, st *state) {
	segment := max(t.size.segment, min(4*t.size.segment, t.info.Size/64), t.info.Size/maxParts)
	n := (t.info.Size + segment - 1) / segment
	f := &bigFile{target: *t, want: st.scan.want, segment: segment, parts: make([]part, n)}
	f.left.Store(n)
	helpers := min(len(t.states), int(n)) - 1
	for range helpers {
		w.walk.push(job{run: f.searchRanges})
	}
	f.searchRanges(w)
}

// searchRanges searches ranges until none is left.
func (f *bigFile) searchRanges(w *worker) {
	st := f.ready(w)
	for {
		i := f.next.Add(1) - 1
		if i >= int64(len(f.parts)) {
			return
		}
		switch {
		case f.legacy.Load() || f.failed.Load() != nil:
		case w.stopped():
			err := errStopped // nothing else notices a stop between two ranges
			f.failed.CompareAndSwap(nil, &err)
		default:
			f.count(w, st, int(i))
		}
		if f.left.Add(-1) == 0 {
			f.assemble(w, st)
			f.close()
		}
	}
}

// count counts the lines and matches of range i.
func (f *bigFile) count(w *worker, st *state, i int) {
	s := &st.scan
	s.reset(0)
	s.asIs = f.bytes
	s.mark = -1
	if f.found.Load() {
		s.lines = 1
	}
	content := f.q.Mode == Content
	starts := 0
	err := f.rangeOf(st, i, i+1, w.stopped, func(c chunk) bool {
		if _, foreign := f.encoding(s, c); foreign {
			f.legacy.Store(true)
			return false
		}
		if content && (c.piece == pieceNone || c.piece == pieceLast) {
			starts += countLines(c.b[c.from:])
		}
		return s.chunk(c)
	})
	if err == nil && s.sc.Stopped() {
		err = errStopped // within a chunk
	}
	switch {
	case err != nil:
		f.failed.CompareAndSwap(nil, &err)
	case s.foreign != nil:
		f.legacy.Store(true)
	case s.lines > 0 && f.q.Mode == FilesWithMatches:
		f.found.Store(true)
	}
	if s.long {
		f.seenLong.Store(true)
	}
	f.parts[i] = part{s.lines, s.matches, starts, err == nil}
}

// rangeOf streams the lines that start in parts i to j.
func (f *bigFile) rangeOf(st *state, i, j int, stop func() bool, fn func(chunk) bool) error {
	off, end := int64(i)*f.segment, int64(j)*f.segment
	if j == len(f.parts) {
		end = 0 // to the end of the file, which may have grown
	}
	x := stream{buf: st.buf, big: f.big, size: &f.size, lines: f.q.Before, limit: end, stop: stop}
	if i > 0 {
		off--
		x.skip = true
	}
	x.at = off
	x.r = io.NewSectionReader(f.file, off, 1<<62-off)
	return x.run(func(c chunk) bool {
		c.skipMark()
		if st.scan.mark < 0 {
			st.scan.mark = c.at + int64(c.from)
		}
		return fn(c)
	})
}

// assemble adds the parts up. For Content it goes back for the rows where there are hits.
func (f *bigFile) assemble(w *worker, st *state) {
	s := &st.scan
	s.reset(f.want)
	s.asIs = f.bytes
	s.long = f.seenLong.Load()
	var err error
	if p := f.failed.Load(); p != nil {
		err = *p
	}
	switch {
	case f.legacy.Load() && err == nil:
		s.reset(f.want)
		f.stream(w, st, io.NewSectionReader(f.file, 0, 1<<62), 0)
		return
	case f.q.Mode != Content:
		for _, p := range f.parts {
			s.lines += p.lines
			s.matches += p.matches
		}
		if f.q.Mode == FilesWithMatches {
			s.lines = min(s.lines, 1)
		}
	case err == nil || errors.Is(err, errStopped):
		if e := f.gatherRows(w, st); err == nil {
			err = e
		}
	}
	f.decide(w, st, nil, false, err)
}

// gatherRows reads the ranges with hits again, in order, for their rows. Without context it stops
// once it has the rows wanted, and takes the rest of the counts from the parts. It also stops at a
// range that was not searched: behind it line numbers are unknown.
func (f *bigFile) gatherRows(w *worker, st *state) error {
	s := &st.scan
	stop := w.stopped
	if stop() {
		end := time.Now().Add(rowGrace)
		stop = func() bool { return time.Now().After(end) }
		s.sc.Bound(stop) // it may be stopped already
	}
	count := func(parts []part) {
		for _, p := range parts {
			s.lines += p.lines
			s.matches += p.matches
			s.rows += p.lines
			if f.q.OnlyMatching {
				s.rows += p.matches - p.lines
			}
		}
	}
	context := f.q.Before > 0 || f.q.After > 0
	line := 1
	need := f.needed()
	for i := 0; i < len(f.parts); {
		p := f.parts[i]
		if !p.done {
			count(f.parts[i:])
			return nil
		}
		if !context && s.enoughRows() {
			count(f.parts[i : i+1])
			i++
			continue
		}
		if !need[i] {
			line += p.starts
			i++
			continue
		}
		j := i + 1
		for context && j < len(f.parts) && need[j] && f.parts[j].done {
			j++
		}
		s.line, s.mark = line, -1
		lines, matches, rows := s.lines, s.matches, s.rows
		if err := f.rangeOf(st, i, j, stop, s.chunk); errors.Is(err, errStopped) {
			s.lines, s.matches, s.rows = lines, matches, rows
			count(f.parts[i:])
			return err
		} else if err != nil {
			return err
		}
		for ; i < j; i++ {
			line += f.parts[i].starts
		}
	}
	return nil
}

// needed marks the ranges with hits, and the ranges that hold context of a hit.
func (f *bigFile) needed() []bool {
	need := make([]bool, len(f.parts))
	mark := func(order func(i int) int, context int) {
		lines := context // since the last range with hits
		for i := range need {
			k := order(i)
			p := f.parts[k]
			need[k] = need[k] || p.lines > 0 || lines < context
			if lines += p.starts; p.lines > 0 {
				lines = 0
			}
		}
	}
	mark(func(i int) int { return i }, f.q.After)
	mark(func(i int) int { return len(need) - 1 - i }, f.q.Before)
	return need
}

// countLines counts the lines of b. The last one may lack its end.
func countLines(b []byte) int {
	n := bytes.Count(b, newline)
	if len(b) > 0 && b[len(b)-1] != '\n' {
		n++
	}
	return n
}
