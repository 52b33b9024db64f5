package match

import "bytes"

// nextLineInPlace is nextLine for a pattern whose matches begin at a candidate or shortly before
// it. For "[a-z]{2}foo" the DFA starts two bytes before "foo", not at the start of the line, and
// stops as soon as no started match is alive.
//
// Without a match resume is where to go on: the end of buf, or a line start where the prefilter
// began to do badly.
func (s *Scanner) nextLineInPlace(buf []byte, pos int) (start, end, resume int, ok bool) {
	d := s.earliest()
	for at, open := pos, 0; ; { // the line that ends at open was not skipped
		k := s.find(buf, at)
		if k < 0 {
			s.passed += len(buf) - at
			return 0, 0, len(buf), false
		}
		if s.m.other != nil && k >= open {
			start, open = lineAround(buf, pos, k)
			if pos = s.skip(buf, start, open); pos > start {
				s.passed += pos - at
				at = pos
				continue
			}
		}
		from := max(at, k-s.m.prefix.maxBytes)
		if nl := bytes.LastIndexByte(buf[from:k], '\n'); nl >= 0 {
			from += nl + 1
		}
		state, sure := d.startLine, true
		if from > 0 {
			state, sure = d.enterAfter(buf[from-1])
		}
		i, row := k, d.row(rowQuit)
		if sure {
			i, row = d.scanInPlace(buf, from, k, state)
		}
		switch row {
		case d.row(rowMatch):
			start, end = lineAround(buf, pos, min(i, len(buf)-1))
			s.passed += end - at
			return start, end, end, true
		case d.row(rowQuit):
			start, end = lineAround(buf, pos, k)
			if s.confirmByPike(buf[start:end]) {
				return start, end, end, true
			}
			i = end
		}
		if s.meter.stopped {
			return 0, 0, len(buf), false
		}
		s.misses++
		s.passed += i + 1 - at
		if at = i + 1; at >= len(buf) {
			return 0, 0, len(buf), false
		}
		if s.misses >= 32 {
			bad := s.passed < 48*s.misses
			if s.misses, s.passed = 0, 0; bad {
				s.prefilterOff = 256 << 10
				start, _ = lineAround(buf, pos, at)
				return 0, 0, start, false
			}
		}
	}
}

// scanInPlace runs an earliest DFA in line mode over b[at:] from state s. It stops where the DFA
// enters a special row, and gives that row with the index of the byte. It also stops behind place
// idle once no started match is alive, and then gives the last byte taken and a row that is not
// special.
//
// "No started match is alive" can be read off the state: it is one of the states that enterAfter gives,
// which hold nothing but the beginning of the pattern.
func (d *dfa) scanInPlace(b []byte, at, idle int, s uint32) (int, uint32) {
	limit := d.row(rowCount)
	if s < limit {
		return at, s
	}
	for i := at; i < len(b); i++ {
		x := d.table[(s+d.classes[b[i]])>>2]
		if x == rowUnknown {
			x = d.compute(s, int(b[i]))
		}
		s = x
		if s < limit || i >= idle && (s == d.startOther || s == d.startWord || s == d.startLine) {
			d.scanned += i - at
			return i, s
		}
	}
	d.scanned += len(b) - at
	return len(b), d.finish(s)
}
