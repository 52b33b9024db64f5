package match

// LongLine says whether the pattern matches in one line that comes in parts, in constant memory. It
// is for line mode. It has a DFA of its own, so the Scanner may be used meanwhile.
type LongLine struct {
	d     *dfa // nil: this line can't be decided so
	state uint32
	open  bool // the last byte taken ended no line
}

// LongLine begins a line. An earlier LongLine of the same Scanner becomes void.
func (s *Scanner) LongLine() LongLine {
	if s.m.o.Multiline {
		return LongLine{}
	}
	if s.longLineDFA == nil || s.longLineDFA.gaveUp {
		s.longLineDFA = s.newDFA(s.m.prog, dfaEarliest, false)
	}
	return LongLine{d: s.longLineDFA, state: s.longLineDFA.startLine, open: true}
}

// Take takes the next part, the line end included. matched says that a match ended at part[at] or
// just before.
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

// End says whether the line matches at its end. sure says that the answer is known at all.
func (l *LongLine) End() (matched, sure bool) {
	if l.d == nil {
		return false, false
	}
	if l.open {
		l.state = l.d.finish(l.state)
	}
	return l.state == l.d.row(rowMatch), l.state != l.d.row(rowQuit)
}
