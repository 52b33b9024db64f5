package match

// LongLine says whether the pattern matches in one line that comes part by part, in constant memory. It is for patterns in line mode;
// a matcher has one of its own beside what else its Scanner does.
type LongLine struct {
	d     *dfa // nil: this line can't be decided so
	state uint32
	open  bool // the last byte taken ended no line
}

// LongLine begins a line. What an earlier one of the same Scanner knew is lost.
func (s *Scanner) LongLine() LongLine {
	if s.m.backward != nil || s.m.o.Multiline {
		return LongLine{}
	}
	if s.long == nil || s.long.gaveUp {
		s.long = s.newDFA(s.m.prog, dfaEarliest, false)
	}
	return LongLine{d: s.long, state: s.long.lineGo, open: true}
}

// Take takes the next part, the line end included. matched says that a match ended at or just before part[at].
func (l *LongLine) Take(part []byte) (at int, matched bool) {
	if l.d == nil || len(part) == 0 {
		return 0, false
	}
	at, l.state = l.d.scan(part, l.state)
	if l.state == l.d.row(rowQuit) {
		l.d = nil
		return 0, false
	}
	l.open = part[len(part)-1] != '\n'
	return at, l.state == l.d.row(rowMatch)
}

// End says whether the line matches at its end; sure, that it is known whether it matches at all.
func (l *LongLine) End() (matched, sure bool) {
	if l.d == nil {
		return false, false
	}
	if l.open {
		l.state = l.d.finish(l.state)
	}
	return l.state == l.d.row(rowMatch), l.state != l.d.row(rowQuit)
}
