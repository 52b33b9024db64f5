package grep

import (
	"bytes"
	"unicode/utf8"

	"moltisfs/grep/match"
	"moltisfs/internal/text"
)

// scan is the state of the search in one file, while its chunks go by. It counts everything, and gathers
// rows until it has as many as are wanted.
//
// All positions are offsets in the file, not in a chunk: the same line may be seen in two chunks,
// at two places.
type scan struct {
	q    *Query
	size *sizes
	sc   *match.Scanner
	want int // rows wanted; -1: all

	tally
	encodingCheck
	rowPosition
	windowPosition

	spans [][2]int
	part  longPart
}

// tally counts the lines, matches and rows found so far.
type tally struct {
	lines, matches, rows int
	out                  []Row
	long                 bool // a line was searched in pieces
}

// encodingCheck says whether the bytes can be searched as they are. In some encodings the second
// byte of a character looks like ASCII; a match there would be wrong.
type encodingCheck struct {
	asIs    bool           // nothing more to find out: search the bytes
	guessed bool           // the encoding was guessed from matching lines; escapes may still come
	utf8    int            // matching lines in UTF-8 that are not ASCII
	plainTo int64          // matching lines up to here are known to be ASCII
	cleared int64          // multiline: lines before this were checked
	foreign *text.Encoding // the text must be decoded from this
}

// rowPosition is where the rows stand in the file.
type rowPosition struct {
	mark    int64 // start of line number line
	line    int
	covered int   // last line that became a row
	emitted int64 // where line covered+1 starts, while after > 0
	after   int   // context lines still due
}

// windowPosition is the state of a multiline search about lines that its window cuts.
type windowPosition struct {
	fresh                    int64 // lines from here on did not match yet
	lineFrom, lineTo, lineAt int64 // the line of the last match, as the chunk at lineAt shows it
	lineStart                int64 // start of the line in which the window begins
	open                     int   // 1 + the first row of a line that ends behind the window
	openLine                 int64 // where that line starts
}

// longPart is a line that comes in pieces.
type longPart struct {
	start   int64
	seen    int64 // matches before this were counted
	matches int
	text    Row // around the first match
	rows    int // of s.out before the line
	whole   match.LongLine
	taken   int64 // where whole has come to
	matched bool  // whole found a match, and text shows where it ends
	escaped bool  // it is in ISO-2022-JP
}

// reset makes s ready for a file.
func (s *scan) reset(want int) {
	*s = scan{q: s.q, size: s.size, sc: s.sc, want: want, spans: s.spans[:0]}
	s.line = 1
}

// chunk takes the next lines. It returns false once the file is decided.
func (s *scan) chunk(c chunk) bool {
	if c.piece != pieceNone {
		return s.piece(c)
	}
	b := c.b
	if s.q.Mode == FilesWithMatches {
		if s.lines == 0 && s.sc.Any(b[c.from:]) {
			if s.mustDecode(b[c.from:], b[c.from:]) {
				return false
			}
			s.lines = 1
		}
		return true
	}
	for pos := c.from; pos < len(b); {
		start, end, ok := s.sc.NextLine(b, pos)
		if !ok {
			break
		}
		pos = lineAfter(b, end)
		if !s.isASCIILine(b, c.at, start, end) && s.mustDecode(b[start:end], b[c.from:]) {
			return false
		}
		s.countLine(b, c.at, start, end, pos)
	}
	if s.sc.Stopped() {
		if s.q.Mode == Content {
			s.trailingContext(b, c.at)
		}
		return false
	}
	if s.q.Mode == Content && (s.lines > 0 || !c.last) {
		s.trailingContext(b, c.at)
		if !c.last {
			s.line += bytes.Count(b[s.mark-c.at:], newline)
			s.mark = c.at + int64(len(b))
		}
	}
	return true
}

var newline = []byte{'\n'}

// lineAfter gives the start of the line after the one that ends at end, or the length of b.
func lineAfter(b []byte, end int) int {
	if i := bytes.IndexByte(b[end:], '\n'); i >= 0 {
		return end + i + 1
	}
	return len(b)
}

// countLine counts the matching line b[start:end]. next is where the line after it starts.
func (s *scan) countLine(b []byte, at int64, start, end, next int) {
	s.lines++
	switch {
	case s.q.Mode == Count && end-start <= s.size.longLine:
		s.matches += s.sc.Count(b, start, end)
	case s.q.Mode == Count || s.q.OnlyMatching:
		s.eachMatch(b, start, end, func(from, to int) bool {
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
		s.leadingContext(b, at, start)
		s.matched(b, start, end)
		s.covered, s.emitted, s.after = s.line, at+int64(next), s.q.After
	}
}

// eachMatch calls fn for every match in the line b[start:end] until fn returns false.
func (s *scan) eachMatch(b []byte, start, end int, fn func(from, to int) bool) {
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

// leadingContext emits the rows due between the last row and a match at b[start]: first the context
// after that row, then the context before the match.
func (s *scan) leadingContext(b []byte, at int64, start int) {
	gap := s.line - 1 - s.covered
	if gap > 0 && s.after > 0 {
		gap -= s.contextAfter(b, at, min(s.after, gap))
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

// contextAfter emits up to k lines of context from s.emitted on, and says how many there were.
func (s *scan) contextAfter(b []byte, at int64, k int) int {
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

// trailingContext emits the context after the last match as far as the chunk reaches.
func (s *scan) trailingContext(b []byte, at int64) {
	if s.after > 0 {
		s.contextAfter(b, at, s.after)
	}
}

// enoughRows says that no more rows are wanted, only counts.
func (s *scan) enoughRows() bool { return s.want >= 0 && len(s.out) >= s.want }

// context makes a row of a line around a match.
func (s *scan) context(line []byte, number int) {
	s.rows++
	if s.enoughRows() {
		return
	}
	line = trimEnd(line)
	text, from, cut := cutText(line, 0, s.q.columns())
	r := Row{Line: number, Text: text, Context: true, Cut: cut, From: from, Bytes: len(line)}
	s.out = append(s.out, r)
}

// matched makes a row of the matching line b[start:end].
func (s *scan) matched(b []byte, start, end int) {
	s.rows++
	if s.enoughRows() {
		return
	}
	at := 0 // where the first match begins
	s.eachMatch(b, start, end, func(from, _ int) bool {
		at = from - start
		return false
	})
	text, from, cut := cutText(trimEnd(b[start:end]), at, s.q.columns())
	r := Row{Line: s.line, Text: text, Column: at + 1, Cut: cut, From: from, Bytes: end - start}
	s.out = append(s.out, r)
}

// only makes a row of the match alone. It returns false when no more rows are wanted.
func (s *scan) only(b []byte, start, end, from, to int) bool {
	s.rows++
	if s.enoughRows() {
		return false
	}
	text, cutFrom, cut := cutText(b[from:to], 0, s.q.columns())
	r := Row{Line: s.line, Text: text, Column: from - start + 1, Cut: cut, Bytes: end - start}
	r.From = from - start + cutFrom
	s.out = append(s.out, r)
	return true
}

// trimEnd drops the line end.
func trimEnd(line []byte) []byte {
	line = bytes.TrimSuffix(line, newline)
	return bytes.TrimSuffix(line, []byte{'\r'})
}

// piece takes a part of a line that no buffer can hold. Pieces overlap by pieceLap.
//
// The end of a piece is not the end of the line. So a match that reaches the end of a piece, or
// begins in the overlap, is left to the next piece, which shows more of it. A search begins behind
// the first character of a piece, so that "^" and \b see the one before. Of a match longer than
// the overlap only the end may be shown.
func (s *scan) piece(c chunk) bool {
	b := c.b
	p := &s.part
	if c.piece == pieceFirst {
		start := c.at + int64(c.from)
		*p = longPart{start: start, rows: len(s.out), whole: s.sc.LongLine(), taken: start}
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
	// A match that begins in the overlap is left to the next piece: here its end may be missing.
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
			if looked = true; s.mustDecodePiece(c, end) {
				return false
			}
		}
		p.seen = c.at + int64(to)
		if s.q.OnlyMatching && s.q.Mode == Content {
			s.rows++
			if !s.enoughRows() {
				text, cutFrom, cut := cutText(b[from:to], 0, s.q.columns())
				offset := int(c.at + int64(from) - p.start)
				r := Row{Line: s.line, Text: text, Column: offset + 1, Cut: cut}
				r.From = offset + cutFrom
				s.out = append(s.out, r)
			}
		} else if p.matches == 0 {
			text, cutFrom, _ := cutText(b[c.from:end], from-c.from, s.q.columns())
			offset := int(c.at+int64(c.from)-p.start) + cutFrom
			column := int(c.at+int64(from)-p.start) + 1
			p.text = Row{Text: text, Column: column, Cut: true, From: offset}
		}
		p.matches++
		return true
	})
	if s.takeWhole(c, end); s.foreign != nil {
		return false
	}
	if c.piece != pieceLast {
		return true
	}
	if p.matches > 0 || p.matched {
		s.countPieces(c, end)
	}
	s.line++
	s.mark = c.at + int64(len(b))
	return true
}

// countPieces counts a matching line that came in pieces; c is the last one.
func (s *scan) countPieces(c chunk, end int) {
	p := &s.part
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
		if !s.enoughRows() {
			p.text.Line, p.text.Bytes = s.line, length
			s.out = append(s.out, p.text)
		}
		s.covered, s.emitted, s.after = s.line, c.at+int64(len(c.b)), s.q.After
	}
}

// takeWhole has the line decided as a whole by LongLine, as long as no piece shows a match: one may
// begin in one piece and end in another. LongLine knows where such a match ends but not where it
// begins; then the text before its end is shown.
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
		if p.matched = matched; matched && !s.mustDecodePiece(c, end) {
			middle := max(min(at, end)-c.from-s.q.columns()/2, 0)
			text, cut, _ := cutText(c.b[c.from:end], middle, s.q.columns())
			offset := int(c.at+int64(c.from)-p.start) + cut
			p.text = Row{Text: text, Column: offset + 1, Cut: true, From: offset}
		}
		s.long = s.long || !sure
	}
	// It is always known which lines match. How often, and where, pieces may not show.
	s.long = s.long || s.q.Mode != FilesWithMatches
}
