package match

import "bytes"

// NextMatch finds the leftmost-first match in buf that begins at or after pos. All of buf is context: "^" and \b look at what
// stands before pos. It is made for Multiline, where buf is the whole text; before the same buffer comes with another text, call Forget.
func (s *Scanner) NextMatch(buf []byte, pos int) (start, end int, ok bool) {
	if pos > len(buf) {
		return 0, 0, false
	}
	if s.m.backward != nil || s.m.single {
		return s.match(buf, pos)
	}
	if !s.m.o.Multiline || s.m.byLine {
		return s.matchByLine(buf, pos)
	}
	if s.m.find == nil {
		return s.matchFrom(buf, pos)
	}
	for pos >= 0 {
		from, k := s.skip(buf, pos)
		if k < 0 {
			return 0, 0, false
		}
		if start, end, pos, ok = s.matchUntil(buf, from, k); ok {
			return start, end, true
		}
	}
	return 0, 0, false
}

// skip gives the next place k of what the finder looks for, negative when there is none, and a place from which on to search:
// no match begins between pos and that.
func (s *Scanner) skip(buf []byte, pos int) (from, k int) {
	k = s.m.find.next(buf, pos, &s.meter)
	if k < 0 {
		return pos, k
	}
	switch l := s.m.lead; {
	case l.max >= 0 && (l.max < 64 || l.lines):
		return max(pos, k-l.max), k
	case !l.lines:
		return max(pos, bytes.LastIndexByte(buf[pos:k], '\n')+1+pos), k
	}
	return pos, k
}

// nearLine is the line of the last match by line: it may be long, and hold many.
type nearLine struct {
	in       *byte // the first byte of the buffer,
	size     int   // and its length
	from, to int
}

// lineOf is lineAround for one match after the other.
func (s *Scanner) lineOf(buf []byte, pos int) (start, end int) {
	if len(buf) == 0 {
		return 0, 0
	}
	n := &s.near
	if n.in != &buf[0] || n.size != len(buf) || pos < n.from || pos > n.to {
		n.in, n.size = &buf[0], len(buf)
		n.from, n.to = lineAround(buf, 0, pos)
	}
	return n.from, n.to
}

// matchByLine is NextMatch where no match can leave its line.
func (s *Scanner) matchByLine(buf []byte, pos int) (begin, end int, ok bool) {
	start, stop := s.lineOf(buf, pos)
	if start < pos { // the rest of a line
		if begin, end, ok = s.matchFrom(buf[start:s.trim(buf, start, stop)], pos-start); ok {
			return begin + start, end + start, true
		}
		start = stop + 1
	}
	start, stop, ok = s.nextLine(buf, min(start, len(buf)))
	if !ok {
		return 0, 0, false
	}
	begin, end, ok = s.matchFrom(buf[start:stop], 0)
	return begin + start, end + start, ok
}

// spansByLine is Spans where no match can leave its line.
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

// anyText says whether a match lies in buf, where it may span lines.
func (s *Scanner) anyText(buf []byte) bool {
	if s.m.backward != nil || s.m.exact {
		_, _, ok := s.NextMatch(buf, 0)
		return ok
	}
	d := s.earliest()
	pos := 0
	state := d.textGo
	for {
		// Between lines, with nothing begun: let the finder jump.
		if s.m.find != nil {
			from, k := s.skip(buf, pos)
			if k < 0 {
				return false
			}
			if from > pos {
				if from = pos + bytes.LastIndexByte(buf[pos:from], '\n') + 1; from > pos {
					pos, state = from, d.lineGo
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
				_, _, ok := s.simulation().find(buf, 0, true)
				return ok
			}
			if state == d.lineGo && s.m.find != nil {
				break
			}
		}
	}
}

// anyInStreams cuts buf into four parts at line starts and scans them side by side. A match that crosses a cut is found by
// letting each stream run on into the next part until nothing that it has begun is alive.
func (s *Scanner) anyInStreams(buf []byte) (found, sure bool) {
	d := s.earliest()
	if d.textGo < d.row(rowCount) || d.lineGo < d.row(rowCount) {
		return false, false
	}
	var cut [5]int
	cut[4] = len(buf)
	shared := len(buf)
	for k := 1; k < 4; k++ {
		cut[k] = afterLine(buf, max(cut[k-1], len(buf)*k/4))
	}
	for k := range 4 {
		shared = min(shared, cut[k+1]-cut[k])
	}
	if shared == 0 { // lines too long to part
		return false, false
	}
	states := [4]uint32{d.textGo, d.lineGo, d.lineGo, d.lineGo}
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
				if state == d.lineGo {
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
