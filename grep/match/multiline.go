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

// spansByLine is Spans for patterns whose matches cannot leave their line.
func (s *Scanner) spansByLine(dst [][2]int, buf []byte, start, end int) [][2]int {
	for at := start; at <= end; {
		b, e, ok := s.matchByLine(buf, at)
		if !ok || b > end {
			break
		}
		dst = append(dst, [2]int{b, e})
		at = e // never empty
	}
	return dst
}

// anyText says whether buf holds a match, which may span lines.
func (s *Scanner) anyText(buf []byte) bool {
	if s.m.exact {
		_, _, ok := s.NextMatch(buf, 0)
		return ok
	}
	d := s.earliest()
	pos := 0
	state := d.startText
	for {
		// Between two lines, no match started: the prefilter may jump.
		if s.m.prefilter != nil {
			from, k := s.skipToCandidate(buf, pos)
			if k < 0 {
				return false
			}
			if from > pos {
				if from = pos + bytes.LastIndexByte(buf[pos:from], '\n') + 1; from > pos {
					pos, state = from, d.startLine
				}
			}
		} else if pos == 0 && len(buf) > 16<<10 {
			found, sure := s.anyInStreams(buf)
			if sure {
				return found
			}
		}
		for {
			stop := afterLine(buf, min(pos, len(buf)))
			var at int
			at, state = d.scan(buf[pos:stop], state)
			if pos += at; state == d.row(rowMatch) {
				return true
			}
			if pos == len(buf) && state != d.row(rowQuit) {
				state = d.finish(state)
				if state != d.row(rowQuit) {
					return state == d.row(rowMatch)
				}
			}
			if state == d.row(rowQuit) {
				_, _, ok := s.pikeVM().find(buf, 0, true)
				return ok
			}
			if state == d.startLine && s.m.prefilter != nil {
				break
			}
		}
	}
}

// anyInStreams cuts buf into four parts at line starts and scans them side by side. A match may
// cross a cut: so each stream runs on into the next part until nothing that it has started is
// alive. Only then the streams together have done the work of one.
func (s *Scanner) anyInStreams(buf []byte) (found, sure bool) {
	d := s.earliest()
	if d.startText < d.row(rowCount) || d.startLine < d.row(rowCount) {
		return false, false
	}
	cut, shared := quarters(buf)
	if shared == 0 { // the lines are too long to cut
		return false, false
	}
	states := [4]uint32{d.startText, d.startLine, d.startLine, d.startLine}
	flushes := d.flushes
	done, hit, row := d.lockstep(buf, cut[:], shared, &states)
	if d.flushes != flushes {
		return false, false
	}
	if hit < 4 {
		return row == d.row(rowMatch), row == d.row(rowMatch)
	}
	for k := range 4 {
		at, state := cut[k]+done, states[k]
		for at < len(buf) {
			stop := cut[k+1]
			if at >= stop {
				if state == d.startLine {
					break
				}
				stop = afterLine(buf, at)
			}
			i, to := d.scan(buf[at:stop], state)
			if at, state = at+i, to; d.flushes != flushes || to == d.row(rowQuit) {
				return false, false
			}
			if to == d.row(rowMatch) {
				return true, true
			}
		}
		if at == len(buf) {
			if to := d.finish(state); to == d.row(rowMatch) {
				return true, true
			} else if to == d.row(rowQuit) || d.flushes != flushes {
				return false, false
			}
		}
	}
	return false, true
}
