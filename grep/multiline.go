package grep

import (
	"bytes"
	"io"

	"moltisfs/internal/text"
)

// multiline searches for matches that may span lines. n bytes of r are in the buffer already.
//
// A file up to sizes.big is searched as one text. A larger one goes through windows of that size. A
// match that begins in the last sizes.multiLap of a window is left to the next window; one longer
// than that may be missed.
func (t *target) multiline(w *worker, st *state, r io.Reader, n int, eof bool) {
	s := &st.scan
	buf := st.buf
	giveBack := func() {}
	if !eof {
		big := <-t.big
		if big == nil {
			big = make([]byte, t.size.big)
		}
		giveBack = func() { t.big <- big }
		copy(big, buf[:n])
		buf = big
	}
	x := stream{r: r, buf: buf, n: n, size: &t.size, lines: t.q.Before, stop: w.stopped}
	from := bomLen(buf[:n])
	var e *text.Encoding
	foreign := false
	err := func() error {
		next := int64(from) // matches before this were found
		for {
			if x.stop() {
				return errStopped
			}
			if !eof {
				var err error
				if eof, err = x.fill(); err != nil {
					return err
				}
			}
			b := x.buf[:x.n]
			s.sc.Forget()
			if t.nonASCII && !s.asIs {
				if e, foreign = encodingOf(b, x.at > 0, eof); foreign {
					e = t.says(e)
					return nil
				}
			}
			end := len(b)
			if !eof {
				end -= t.size.multiLap
				s.long = true
			}
			s.finishOpenRows(b, x.at, eof)
			next = s.blocks(b, x.at, int(max(next-x.at, int64(from))), end, eof)
			if eof || s.sc.Stopped() || s.foreign != nil {
				return nil
			}
			// The next window begins with the lines of context that it still needs.
			cut := min(int(next-x.at), len(b))
			cut = bytes.LastIndexByte(b[:cut], '\n') + 1
			keep, _ := contextStart(b[:cut], t.q.Before, t.size.big/4)
			s.number(b, x.at, cut)
			if keep == 0 {
				keep = end // one line fills the window
			}
			if k := bytes.LastIndexByte(b[:keep], '\n') + 1; k > 0 {
				s.lineStart = x.at + int64(k)
			}
			x.shift(keep)
			from = 0
		}
	}()
	giveBack() // legacy may want it
	t.decide(w, st, e, foreign, err)
}

// blocks counts the matches that start in b[from:end], makes rows of their lines, and says where to
// go on.
func (s *scan) blocks(b []byte, at int64, from, end int, eof bool) int64 {
	if s.q.Mode == FilesWithMatches {
		if s.lines == 0 && from < len(b) && s.sc.Any(b[from:]) &&
			s.startsInside(b, from, end, eof) && !s.mustDecode(b[from:], b[from:]) {
			s.lines = 1
		}
		return at + int64(end)
	}
	pos := from
	for pos <= end {
		start, stop, ok := s.sc.NextMatch(b, pos)
		if !ok || start > end || start == end && !eof {
			pos = end
			break
		}
		if start >= len(b) && (len(b) == 0 || b[len(b)-1] == '\n') {
			break // after the last line end there is no line
		}
		if line, next := s.lineOfMatch(b, at, start); at+int64(max(next, stop)) > s.cleared {
			if s.mustDecode(b[line:max(next, stop)], b[line:]) {
				break
			}
			s.cleared = at + int64(max(next, stop))
		}
		s.matches++
		if s.q.OnlyMatching && s.q.Mode == Content {
			line, next := s.lineOfMatch(b, at, start)
			s.number(b, at, line)
			if s.only(b, line, max(stop, line+len(trimEnd(b[line:next]))), start, stop) {
				s.fixLongLine(b, at, line, next)
			}
		}
		s.cover(b, at, start, stop)
		pos = max(stop, start+1)
	}
	if s.q.Mode == Content && s.lines > 0 {
		s.trailingContext(b, at)
	}
	return at + int64(pos)
}

// startsInside says whether one of the matches in b[from:] counts; there is at least one. It must
// begin before end, and not after the last line end, where "\z" matches and there is no line.
func (s *scan) startsInside(b []byte, from, end int, eof bool) bool {
	if eof && (b[len(b)-1] != '\n' || !s.sc.Any(nil)) {
		return true // no match there could be empty
	}
	start, _, ok := s.sc.NextMatch(b, from)
	return ok && (start < end || eof && start < len(b))
}

// lineOfMatch gives the line in b that holds place k. It remembers the last one: a line may be long
// and hold many matches.
func (s *scan) lineOfMatch(b []byte, at int64, k int) (line, next int) {
	if abs := at + int64(k); abs < s.lineFrom || abs >= s.lineTo || s.lineAt != at {
		s.lineAt, s.lineFrom = at, at+int64(bytes.LastIndexByte(b[:k], '\n')+1)
		s.lineTo = at + int64(lineAfter(b, k))
	}
	return int(s.lineFrom - at), int(s.lineTo - at)
}

// cover makes rows of the lines that a match touches and the match before it did not.
func (s *scan) cover(b []byte, at int64, start, stop int) {
	line, next := s.lineOfMatch(b, at, start)
	for ; ; next = lineAfter(b, line) {
		if s.startOf(at, line) >= s.fresh {
			s.fresh = at + int64(next)
			s.lines++
			if s.q.Mode == Content && !s.q.OnlyMatching {
				s.number(b, at, line)
				s.leadingContext(b, at, line)
				s.row(b, at, line, next, start)
				s.covered, s.emitted, s.after = s.line, at+int64(next), s.q.After
			}
		}
		if next >= stop || next >= len(b) {
			return
		}
		line = next
	}
}

// row makes a row of one line of a multiline match.
func (s *scan) row(b []byte, at int64, line, next, start int) {
	s.rows++
	if s.enoughRows() {
		return
	}
	text := trimEnd(b[line:next])
	col := max(start-line, 0)
	show, from, cut := cutText(text, col, s.q.columns())
	r := Row{Line: s.line, Text: show, Column: col + 1, Cut: cut, From: from, Bytes: len(text)}
	s.out = append(s.out, r)
	s.fixLongLine(b, at, line, next)
}

// startOf is where in the file the line at place line of the window begins.
func (s *scan) startOf(at int64, line int) int64 {
	if line == 0 {
		return s.lineStart
	}
	return at + int64(line)
}

// fixLongLine makes the last row speak of its line as a whole, not of the part that the window
// holds.
func (s *scan) fixLongLine(b []byte, at int64, line, next int) {
	r := &s.out[len(s.out)-1]
	if before := int(at + int64(line) - s.startOf(at, line)); before > 0 {
		r.Column += before
		r.From += before
		r.Bytes += before
		r.Cut = r.Cut || !s.q.OnlyMatching
	}
	if b[next-1] != '\n' && s.open == 0 {
		s.open, s.openLine = len(s.out), s.startOf(at, line)
	}
}

// finishOpenRows completes the rows of a line that went on behind the last window, once its end is
// seen.
func (s *scan) finishOpenRows(b []byte, at int64, eof bool) {
	if s.open == 0 {
		return
	}
	next := lineAfter(b, int(max(s.openLine-at, 0)))
	if b[next-1] != '\n' && !eof {
		return
	}
	for i := range s.out[s.open-1:] {
		r := &s.out[s.open-1+i]
		r.Bytes = int(at + int64(len(trimEnd(b[:next]))) - s.openLine)
		r.Cut = r.Cut || !s.q.OnlyMatching && len(r.Text) < r.Bytes
	}
	s.open = 0
}
