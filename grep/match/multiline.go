package match

import "bytes"

// NextMatch finds the leftmost-first match in buf that begins at or after pos. All of buf is
// context: "^" and \b look at the text before pos. It is made for Multiline, where buf is the
// whole text. Call Forget before the same buffer comes with another text.
func (s *Scanner) NextMatch(buf []byte, pos int) (start, end int, ok bool) {
	if pos > len(buf) {
		return 0, 0, false
	}
	if s.m.singleLiteral {
		return s.match(buf, pos)
	}
	if !s.m.o.Multiline || s.m.lineByLine {
		return s.matchByLine(buf, pos)
	}
	if s.m.prefilter == nil {
		return s.matchByDFA(buf, pos)
	}
	for pos >= 0 {
		from, k := s.skipToCandidate(buf, pos)
		if k < 0 {
			return 0, 0, false
		}
		if start, end, pos, ok = s.matchUntil(buf, from, k); ok {
			return start, end, true
		}
	}
	return 0, 0, false
}

// skipToCandidate gives the next candidate k, negative when there is none, and the place from on
// which a match with this candidate could begin. No match begins between pos and from.
func (s *Scanner) skipToCandidate(buf []byte, pos int) (from, k int) {
	k = s.m.prefilter.next(buf, pos, &s.meter)
	if k < 0 {
		return pos, k
	}
	switch l := s.m.prefix; {
	case l.maxBytes >= 0 && (l.maxBytes < 64 || l.newlines):
		return max(pos, k-l.maxBytes), k
	case !l.newlines:
		return max(pos, bytes.LastIndexByte(buf[pos:k], '\n')+1+pos), k
	}
	return pos, k
}

// lineBounds remembers the line of the last match. Lines may be long and hold many matches: looking
// for the line's ends at every match would take quadratic time.
type lineBounds struct {
	buf      *byte // the first byte of the buffer
	size     int   // the length of the buffer
	from, to int
}

// boundsOfLine is lineAround for one match after the other.
func (s *Scanner) boundsOfLine(buf []byte, pos int) (start, end int) {
	if len(buf) == 0 {
		return 0, 0
	}
	n := &s.line
	if n.buf != &buf[0] || n.size != len(buf) || pos < n.from || pos > n.to {
		n.buf, n.size = &buf[0], len(buf)
		n.from, n.to = lineAround(buf, 0, pos)
	}
	return n.from, n.to
}

// matchByLine is NextMatch for patterns whose matches cannot leave their line.
func (s *Scanner) matchByLine(buf []byte, pos int) (begin, end int, ok bool) {
	start, stop := s.boundsOfLine(buf, pos)
	if start < pos { // the rest of a line
		if begin, end, ok = s.matchByDFA(buf[start:s.trim(buf, start, stop)], pos-start); ok {
			return begin + start, end + start, true
		}
		start = stop + 1
	}
	start, stop, ok = s.nextLine(buf, min(start, len(buf)))
	if !ok {
		return 0, 0, false
	}
	begin, end, ok = s.matchByDFA(buf[start:stop], 0)
	return begin + start, end + start, ok
}

// eachByLine is each for patterns whose matches cannot leave their line.
func (s *Scanner) eachByLine(buf []byte, at, limit int, fn func(begin, end int) bool) {
	for at <= limit {
		b, e, ok := s.matchByLine(buf, at)
		if !ok || b > limit || !fn(b, e) {
			return
		}
		at = e // never empty
	}
}
