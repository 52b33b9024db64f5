package match

import "bytes"

// lineNear is nextLine for a pattern whose matches begin at what the finder finds, or shortly before: the automaton starts there, and
// stops as soon as nothing is alive that could become a match. Without a match resume is where to go on, a line start: the end of
// buf, or where the finder began to do badly.
func (s *Scanner) lineNear(buf []byte, pos int) (start, end, resume int, ok bool) {
	d := s.earliest()
	for at := pos; ; {
		k := s.m.find.next(buf, at, &s.meter)
		if k < 0 {
			s.passed += len(buf) - at
			return 0, 0, len(buf), false
		}
		from := max(at, k-s.m.lead.max)
		if nl := bytes.LastIndexByte(buf[from:k], '\n'); nl >= 0 {
			from += nl + 1
		}
		state, sure := d.lineGo, true
		if from > 0 {
			state, sure = d.enterAfter(buf[from-1])
		}
		i, row := k, d.row(rowQuit)
		if sure {
			i, row = d.near(buf, from, k, state)
		}
		switch row {
		case d.row(rowMatch):
			start, end = lineAround(buf, pos, min(i, len(buf)-1))
			s.passed += end - at
			return start, end, end, true
		case d.row(rowQuit):
			start, end = lineAround(buf, pos, k)
			if s.confirmSlowly(buf[start:end]) {
				return start, end, end, true
			}
			i = end
		}
		if s.meter.over {
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
				s.rest = 256 << 10
				start, _ = lineAround(buf, pos, at)
				return 0, 0, start, false
			}
		}
	}
}

// near runs an earliest DFA in line mode over b[at:] from state s until it enters a special row, which it gives with the index of the
// byte, or until behind place idle nothing is alive that could become a match: then it gives the last byte taken and a row that is
// not special.
func (d *dfa) near(b []byte, at, idle int, s uint32) (int, uint32) {
	limit := d.row(rowCount)
	if s < limit {
		return at, s
	}
	for i := at; i < len(b); i++ {
		x := d.table[(s+d.classes[b[i]])>>2]
		if x == rowUnknown {
			x = d.compute(s, int(b[i]))
		}
		if s = x; s < limit || i >= idle && (s == d.elseGo || s == d.wordGo || s == d.lineGo) {
			d.scanned += i - at
			return i, s
		}
	}
	d.scanned += len(b) - at
	return len(b), d.finish(s)
}
