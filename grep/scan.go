package grep

import (
	"bytes"
	"unicode/utf8"

	"moltisfs/grep/match"
	"moltisfs/internal/text"
)

// scan is what is known about one file while its chunks go by. It counts everything and gathers rows until it has
// as many as are wanted. All positions are offsets in the file, so that a chunk may come from anywhere.
type scan struct {
	q    *Query
	size *sizes
	sc   *match.Scanner
	want int // rows wanted: -1 all

	lines, matches, rows int
	out                  []Row
	binary               bool // a NUL byte came by
	long                 bool // a line was searched in pieces
	raw                  bool // NUL bytes are like others

	asIs    bool           // the text is in UTF-8 as far as that can be had
	guessed bool           // what the file is in, by its matching lines; but for escapes, which may still come
	utf8    int            // matching lines in UTF-8 and not in ASCII
	plainTo int64          // matching lines up to here, from the last one on that was looked at, are plain ASCII
	cleared int64          // multiline: matching lines before this were looked at for their encoding
	foreign *text.Encoding // the text has to be decoded: its characters end in bytes that look like ASCII

	mark    int64 // start of line number `line`
	line    int
	covered int   // last line that became a row
	emitted int64 // where line covered+1 starts, while after > 0
	after   int   // context lines still due
	fresh   int64 // multiline: lines from here on did not match yet

	lineFrom, lineTo, lineAt int64 // multiline: the line of the last match, as the chunk at lineAt shows it

	torn     int64 // multiline: start of the line that the window begins in
	open     int   // 1 + the first row of a line that ends behind the window,
	openLine int64 // and where it starts

	single bool // the one chunk is the whole file
	spans  [][2]int
	part   longPart
}

// longPart is a line that comes in pieces.
type longPart struct {
	start   int64
	seen    int64 // matches before this were counted
	matches int
	text    Row // around the first match
	rows    int // of s.out before the line
	whole   match.LongLine
	taken   int64 // how far whole has come
	matched bool  // whole says so, and text shows where the match ends
	escaped bool  // it is in ISO-2022-JP
}

// reset makes s ready for a file.
func (s *scan) reset(want int) {
	*s = scan{q: s.q, size: s.size, sc: s.sc, raw: s.raw, want: want, line: 1, spans: s.spans[:0]}
}

// chunk takes the next lines; false when the file is decided.
func (s *scan) chunk(c chunk) bool {
	if c.piece != pieceNone {
		return s.piece(c)
	}
	b := c.b
	if s.q.Mode == FilesWithMatches {
		if s.lines == 0 && s.sc.Any(b[c.from:]) {
			if s.strange(b[c.from:], b[c.from:]) {
				return false
			}
			s.lines = 1
		}
		return s.text(b[c.from:])
	}
	for pos := c.from; pos < len(b); {
		start, end, ok := s.sc.NextLine(b, pos)
		if !ok {
			break
		}
		pos = lineAfter(b, end)
		if !s.plainLine(b, c.at, start, end) && s.strange(b[start:end], b[c.from:]) {
			return false
		}
		s.hit(b, c.at, start, end, pos)
	}
	if !s.text(b[c.from:]) {
		return false
	}
	if s.sc.Err() != nil {
		if s.q.Mode == Content {
			s.trail(b, c.at)
		}
		return false
	}
	if s.q.Mode == Content && (s.lines > 0 || !c.last) {
		s.trail(b, c.at)
		if !c.last {
			s.line += bytes.Count(b[s.mark-c.at:], newline)
			s.mark = c.at + int64(len(b))
		}
	}
	return true
}

var newline = []byte{'\n'}

// text looks for NUL bytes wherever that can matter: matches of a file that has one anywhere are withheld. A file that
// fits one chunk and does not match needs no look.
func (s *scan) text(b []byte) bool {
	if s.raw || s.single && s.lines == 0 {
		return true
	}
	if bytes.IndexByte(b, 0) >= 0 {
		s.binary = true
	}
	return !s.binary
}

func lineAfter(b []byte, end int) int {
	if i := bytes.IndexByte(b[end:], '\n'); i >= 0 {
		return end + i + 1
	}
	return len(b)
}

// hit counts the matching line b[start:end]; next is where the line after it starts.
func (s *scan) hit(b []byte, at int64, start, end, next int) {
	s.lines++
	switch {
	case s.q.Mode == Count && end-start <= s.size.longLine:
		s.matches += s.sc.Count(b, start, end)
	case s.q.Mode == Count || s.q.OnlyMatching:
		s.each(b, start, end, func(from, to int) bool {
			s.matches++
			if s.q.OnlyMatching && s.q.Mode == Content {
				s.number(b, at, start)
				s.only(b, start, end, from, to)
			}
			return true
		})
	}
	if s.q.Mode == Content && !s.q.OnlyMatching {
		s.number(b, at, start)
		s.lead(b, at, start)
		s.matched(b, start, end)
		s.covered, s.emitted, s.after = s.line, at+int64(next), s.q.After
	}
}

// each calls fn for every match in the line b[start:end] until fn is false.
func (s *scan) each(b []byte, start, end int, fn func(from, to int) bool) {
	if end-start <= s.size.longLine {
		s.spans = s.sc.Spans(s.spans[:0], b, start, end)
		for _, x := range s.spans {
			if !fn(x[0], x[1]) {
				return
			}
		}
		return
	}
	s.sc.EachMatch(b, start, end, start, fn)
}

// number brings s.line up to the line that starts at b[start].
func (s *scan) number(b []byte, at int64, start int) {
	from := int(s.mark - at)
	if from < start {
		s.line += bytes.Count(b[max(from, 0):start], newline)
		s.mark = at + int64(start)
	}
}

// lead puts out what is due between the last row and a match at b[start]: context after the former, context before the latter.
func (s *scan) lead(b []byte, at int64, start int) {
	gap := s.line - 1 - s.covered
	if gap > 0 && s.after > 0 {
		gap -= s.follow(b, at, min(s.after, gap))
	}
	k := min(gap, s.q.Before)
	if k <= 0 {
		return
	}
	from, have := start, 0
	for have < k && from > 0 {
		from = bytes.LastIndexByte(b[:from-1], '\n') + 1
		have++
	}
	for i := have; i > 0; i-- {
		next := lineAfter(b, from)
		s.context(b[from:next], s.line-i)
		from = next
	}
}

// follow puts out up to k lines of context from s.emitted on and says how many there were.
func (s *scan) follow(b []byte, at int64, k int) int {
	from, n := int(s.emitted-at), 0
	if from < 0 {
		s.after = 0
		return 0
	}
	for ; n < k && from < len(b); n++ {
		next := lineAfter(b, from)
		s.covered++
		s.context(b[from:next], s.covered)
		from = next
	}
	s.emitted = at + int64(from)
	s.after -= n
	return n
}

// trail puts out the context after the last match as far as the chunk reaches.
func (s *scan) trail(b []byte, at int64) {
	if s.after > 0 {
		s.follow(b, at, s.after)
	}
}

// full: no more rows are wanted, only counts.
func (s *scan) full() bool { return s.want >= 0 && len(s.out) >= s.want }

func (s *scan) context(line []byte, number int) {
	s.rows++
	if s.full() {
		return
	}
	line = trimEnd(line)
	text, from, cut := cutText(line, 0, s.q.columns())
	s.out = append(s.out, Row{Line: number, Text: text, Context: true, Cut: cut, From: from, Bytes: len(line)})
}

func (s *scan) matched(b []byte, start, end int) {
	s.rows++
	if s.full() {
		return
	}
	at := -1
	s.first(b, start, end, &at)
	line := b[start:end]
	text, from, cut := cutText(trimEnd(line), max(at, 0), s.q.columns())
	s.out = append(s.out, Row{Line: s.line, Text: text, Column: max(at, 0) + 1, Cut: cut, From: from, Bytes: len(line)})
}

// first finds where the first match of a line begins, relative to the line.
func (s *scan) first(b []byte, start, end int, at *int) {
	s.each(b, start, end, func(from, _ int) bool {
		*at = from - start
		return false
	})
}

// only makes a row of a match alone; false when no more rows are wanted.
func (s *scan) only(b []byte, start, end, from, to int) bool {
	s.rows++
	if s.full() {
		return false
	}
	text, cutFrom, cut := cutText(b[from:to], 0, s.q.columns())
	s.out = append(s.out, Row{Line: s.line, Text: text, Column: from - start + 1, Cut: cut, From: from - start + cutFrom, Bytes: end - start})
	return true
}

// trimEnd drops the line end.
func trimEnd(line []byte) []byte {
	line = bytes.TrimSuffix(line, newline)
	return bytes.TrimSuffix(line, []byte{'\r'})
}

// piece takes a part of a line that no buffer holds. Of a match longer than the overlap of the pieces only the end may be shown. Ends of
// pieces are not taken for ends of the line: a match is looked for behind the first character of a piece, so that "^" and "\b" see what
// stands before, and one that reaches the end, or begins in the overlap, is left to the next piece.
func (s *scan) piece(c chunk) bool {
	b := c.b
	p := &s.part
	if c.piece == pieceFirst {
		*p = longPart{start: c.at + int64(c.from), rows: len(s.out), whole: s.sc.LongLine(), taken: c.at + int64(c.from)}
	}
	end := len(b)
	if c.piece == pieceLast {
		end = c.from + len(trimEnd(b[c.from:]))
	}
	p.escaped = p.escaped || !s.asIs && !s.q.Matcher.Bytes() && text.Escaped(b[c.from:end])
	looked := false
	start := c.from
	if c.piece != pieceFirst {
		_, n := utf8.DecodeRune(b[start:end])
		start = max(start+n, int(p.seen-c.at))
	}
	// What begins where the next piece looks is left to it: here it may lack what makes it longer, or no match.
	left := end
	if lap := end - s.size.pieceLap; c.piece != pieceLast && lap > start {
		_, n := utf8.DecodeRune(b[lap:end])
		left = lap + n
	}
	s.sc.EachMatch(b, c.from, end, start, func(from, to int) bool {
		if c.piece != pieceLast && (to == end || from >= left) {
			return false
		}
		if !looked {
			if looked = true; s.strangePiece(c, end) {
				return false
			}
		}
		p.seen = c.at + int64(to)
		if s.q.OnlyMatching && s.q.Mode == Content {
			s.rows++
			if !s.full() {
				text, cutFrom, cut := cutText(b[from:to], 0, s.q.columns())
				offset := int(c.at + int64(from) - p.start)
				s.out = append(s.out, Row{Line: s.line, Text: text, Column: offset + 1, Cut: cut, From: offset + cutFrom})
			}
		} else if p.matches == 0 {
			text, cutFrom, _ := cutText(b[c.from:end], from-c.from, s.q.columns())
			offset := int(c.at+int64(c.from)-p.start) + cutFrom
			p.text = Row{Text: text, Column: int(c.at+int64(from)-p.start) + 1, Cut: true, From: offset}
		}
		p.matches++
		return true
	})
	if s.takeWhole(c, end); s.foreign != nil {
		return false
	}
	if c.piece != pieceLast {
		return s.text(b[c.from:])
	}
	if p.matches > 0 || p.matched {
		s.lines++
		if s.q.Mode == Count || s.q.OnlyMatching {
			s.matches += max(p.matches, 1)
		}
		length := int(c.at + int64(end) - p.start)
		switch {
		case s.q.Mode != Content:
		case s.q.OnlyMatching && p.matches > 0:
			for i := range s.out[p.rows:] {
				s.out[p.rows+i].Bytes = length
			}
		default:
			s.rows++
			if !s.full() {
				p.text.Line, p.text.Bytes = s.line, length
				s.out = append(s.out, p.text)
			}
			s.covered, s.emitted, s.after = s.line, c.at+int64(len(b)), s.q.After
		}
	}
	s.line++
	s.mark = c.at + int64(len(b))
	return s.text(b[c.from:])
}

// takeWhole has the line decided as a whole as long as no piece shows a match: one may begin in one piece and end in another. Where a match
// ends that began nobody knows where, the text before its end is shown.
func (s *scan) takeWhole(c chunk, end int) {
	p := &s.part
	if p.matches == 0 && !p.matched {
		from := int(p.taken - c.at)
		at, matched := p.whole.Take(c.b[from:])
		p.taken, at = c.at+int64(len(c.b)), from+at
		sure := true
		if c.piece == pieceLast && !matched {
			matched, sure = p.whole.End()
			at = end
		}
		if p.matched = matched; matched && !s.strangePiece(c, end) {
			text, cut, _ := cutText(c.b[c.from:end], max(min(at, end)-c.from-s.q.columns()/2, 0), s.q.columns())
			offset := int(c.at+int64(c.from)-p.start) + cut
			p.text = Row{Text: text, Column: offset + 1, Cut: true, From: offset}
		}
		s.long = s.long || !sure
	}
	// Which lines match is known in any case; how often, and where, is what pieces may not show.
	s.long = s.long || s.q.Mode != FilesWithMatches
}
