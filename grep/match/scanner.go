package match

import (
	"bytes"
	"unicode/utf8"
)

// Scanner is one goroutine's state for a Matcher: automata under construction, and scratch memory.
type Scanner struct {
	m *Matcher
	automata
	meter meter
	prefilterStats
	lookahead
	line lineBounds
}

// automata are the machines that a Scanner runs. Each is built when it is first needed.
type automata struct {
	earliestDFA *dfa // whether there is a match, and in which line
	endDFA      *dfa // leftmost-first: where the match ends
	beginDFA    *dfa // on the reversed program: where the match begins
	longLineDFA *dfa // a second earliestDFA: LongLine holds a state of it between two calls
	pike        *pikeVM
	dfaMemory   int // bytes that each DFA may use
}

// prefilterStats say whether the prefilter is worth its cost on this text. On text where it stops
// at every other byte, the DFA alone is faster.
type prefilterStats struct {
	misses, passed int // false candidates, and the bytes passed between them
	prefilterOff   int // bytes to search without the prefilter before it gets another chance
}

// lookahead is how far the prefilter has come in this buffer. Count hands it on to the next NextLine, so that no byte is
// searched twice. It is valid for that one call only: for the line that begins at nextLineAt, in
// the buffer whose last byte is bufEnd. Any other call searches afresh.
type lookahead struct {
	hit        int // the first candidate in the line that NextLine gave last, -1: it was found without
	nextHit    int // the candidate found last, or the length of the buffer: there is none between the place that was asked for and this
	nextLineAt int
	bufEnd     *byte
	cursor     teddyCursor
	teddy      *teddy // the one of the Matcher, or what it has learned
	patience   int    // hits in vain before it learns again
}

func newScanner(m *Matcher) *Scanner {
	return &Scanner{m: m}
}

// reset makes s fit for its next borrower.
func (s *Scanner) reset(cache int) {
	s.dfaMemory, s.meter = cache, meter{}
	s.misses, s.passed, s.prefilterOff, s.bufEnd, s.teddy, s.line = 0, 0, 0, nil, nil, lineBounds{}
	for _, d := range []*dfa{s.earliestDFA, s.endDFA, s.beginDFA, s.longLineDFA} {
		if d == nil {
			continue
		}
		if d.limit = cache; d.gaveUp {
			d.gaveUp, d.flushes = false, 0
			d.reset()
		}
	}
}

// Bound lets a search be stopped. Every engine calls stop after some thousand steps and gives up
// once it is true; Stopped is then true. It holds until the scanner is put back.
func (s *Scanner) Bound(stop func() bool) { s.meter = meter{stop: stop} }

// Stopped says that the scanner was stopped. From then on it finds nothing. Its earlier answers are right.
func (s *Scanner) Stopped() bool { return s.meter.stopped }

// Forget must be called before a buffer that holds another text at the same address comes again.
// Otherwise results for the old text are used for the new one.
func (s *Scanner) Forget() { s.line = lineBounds{} }

func (s *Scanner) earliest() *dfa {
	if s.earliestDFA == nil {
		s.earliestDFA = s.newDFA(s.m.prog, dfaEarliest, false)
	}
	return s.earliestDFA
}

func (s *Scanner) newDFA(p *program, mode dfaMode, anchored bool) *dfa {
	return newDFA(p, mode, anchored, s.dfaMemory, &s.meter)
}

func (s *Scanner) pikeVM() *pikeVM {
	if s.pike == nil {
		s.pike = newPikeVM(s.m.prog, &s.meter)
	}
	return s.pike
}

// NextLine finds the first matching line at or after pos.
//
// buf begins at a line start, and ends at a line end or at the end of the text. pos is the start of
// a line. start and end exclude the terminator: "\n", and with CRLF a "\r" before it. A "\n" at the
// end of buf begins no further line. Under Multiline NextLine gives the line in which the next
// match begins.
func (s *Scanner) NextLine(buf []byte, pos int) (start, end int, ok bool) {
	if s.m.o.Multiline && !s.m.lineByLine {
		begin, _, ok := s.NextMatch(buf, pos)
		if !ok {
			return 0, 0, false
		}
		start, end = lineAround(buf, 0, begin)
		return start, s.trim(buf, start, end), true
	}
	return s.nextLine(buf, pos)
}

// nextLine is NextLine for the program in line mode. It takes the cheapest road that this text
// allows: prefilter and confirmation in place, prefilter and confirmation of the line, or the DFA
// over every byte.
func (s *Scanner) nextLine(buf []byte, pos int) (start, end int, ok bool) {
	if s.bufEnd == nil || s.nextLineAt != pos || s.bufEnd != &buf[len(buf)-1] {
		s.nextHit, s.cursor.at, s.cursor.n, s.cursor.batch = -1, 0, 0, 0
	}
	s.bufEnd = nil
	for pos < len(buf) {
		s.hit = -1
		if s.m.prefilter == nil {
			start, end, ok = s.nextLineByDFA(buf, pos)
			return start, s.trim(buf, start, end), ok
		}
		if s.prefilterOff > 0 { // the prefilter did badly here
			stop := len(buf)
			if stop-pos > s.prefilterOff {
				stop = afterLine(buf, pos+s.prefilterOff)
			}
			if start, end, ok = s.nextLineByDFA(buf[:stop], pos); ok {
				s.prefilterOff -= end - pos
				return start, s.trim(buf, start, end), true
			}
			s.prefilterOff -= stop - pos
			pos = stop
			continue
		}
		if s.m.inPlace {
			if start, end, pos, ok = s.nextLineInPlace(buf, pos); ok || pos == len(buf) {
				return start, s.trim(buf, start, end), ok
			}
			continue
		}
		k := s.find(buf, pos)
		if k < 0 {
			s.passed += len(buf) - pos
			return 0, 0, false
		}
		start, end = lineAround(buf, pos, k)
		if next := s.skip(buf, start, end); next > start {
			s.passed += next - pos
			pos = next
			continue
		}
		if s.m.exact || s.confirm(buf[start:end]) {
			s.passed += end - pos
			return start, s.trim(buf, start, end), true
		}
		if s.meter.stopped {
			return 0, 0, false
		}
		s.misses++
		s.passed += end + 1 - pos
		pos = end + 1
		if s.misses >= 32 {
			// The DFA takes a byte in less than a nanosecond. A false candidate costs as much as
			// a hundred bytes and its line.
			if s.passed < 128*s.misses {
				s.prefilterOff = 256 << 10
			}
			s.misses, s.passed = 0, 0
		}
	}
	return 0, 0, false
}

// find gives the first candidate at or after pos, or -1. Within one buffer it may be asked for later and later places only.
func (s *Scanner) find(buf []byte, pos int) int {
	if s.nextHit < pos {
		if f, ok := s.m.prefilter.(*teddy); ok {
			s.nextHit = s.learned(f, buf[pos:]).nextWith(buf, pos, &s.cursor, &s.meter)
		} else {
			s.nextHit = s.m.prefilter.next(buf, pos, &s.meter)
		}
		if s.nextHit < 0 {
			s.nextHit = len(buf)
		}
	}
	if s.hit = s.nextHit; s.hit == len(buf) {
		s.hit = -1
	}
	return s.hit
}

// skip is start if the line buf[start:end] holds Matcher.other; else the start of a later line, before which no line does. So two
// literals are as rare as the rarer, whichever that is here.
func (s *Scanner) skip(buf []byte, start, end int) int {
	const ahead = 4 << 10 // looking so far costs about as much as a line
	if s.m.other == nil {
		return start
	}
	text := buf[start:min(len(buf), end+ahead)]
	k := s.m.other.next(text, 0, &s.meter)
	switch {
	case k >= 0:
		text = text[:k]
	case start+len(text) == len(buf):
		return len(buf)
	}
	return start + bytes.LastIndexByte(text, '\n') + 1
}

// learned is f, or what it has learned from the text where it stopped in vain too often.
func (s *Scanner) learned(f *teddy, text []byte) *teddy {
	const sample, rare = 4 << 10, 1 << 10 // bytes; a stop in so many costs little
	if s.teddy == nil {
		s.teddy, s.patience = f, 256
	}
	if c := &s.cursor; c.misses > s.patience && c.misses*rare > c.scanned {
		s.teddy = f.learn(text[:min(len(text), sample)])
		s.patience *= 8
		c.misses, c.scanned = 0, 0
	}
	return s.teddy
}

// Count gives the number of matches in the line buf[start:end] that NextLine just gave. The next
// call must be NextLine for the line behind it, with buf unchanged, unless that line was the last
// of buf.
//
// Where a match ends is enough, if it can't be empty: then the next one begins there or further on.
func (s *Scanner) Count(buf []byte, start, end int) int {
	if s.m.o.Multiline || !s.m.neverEmpty {
		var spans [8][2]int
		return len(s.Spans(spans[:0], buf, start, end))
	}
	s.nextLineAt, s.bufEnd = afterLine(buf, end), &buf[len(buf)-1]
	n, line, byDFA := 0, buf[start:end], s.hit < 0
	for at := start; at < end; {
		from, idle := at, end
		if !byDFA {
			k := s.find(buf, at)
			if k < 0 || k >= end {
				break
			}
			if s.m.exact {
				n++
				at = k + s.size()
				continue
			}
			if s.m.inPlace {
				from, idle = max(at, k-s.m.prefix.maxBytes), k
			}
		}
		to, resume, ok, sure := s.matchEnd(line, from-start, idle-start)
		if !sure {
			_, to, ok = s.pikeVM().find(line, from-start, false)
		}
		switch {
		case ok:
			n++
			at = start + to
		case resume < 0:
			return n
		default:
			at = start + resume
		}
	}
	return n
}

// size is the length of the candidate that the prefilter has found last, if that is a match.
func (s *Scanner) size() int {
	if s.m.singleLiteral {
		return len(s.m.prefilter.(*pairPrefilter).Bytes)
	}
	return s.cursor.size
}

// lineAround gives the line that holds k. The caller knows that the line begins at or after from.
// end is the place of its "\n", or the end of buf.
func lineAround(buf []byte, from, k int) (start, end int) {
	if start, end = from, len(buf); k-from > 512 {
		start += bytes.LastIndexByte(buf[from:k], '\n') + 1
	}
	for { // forwards is faster, where it is not far
		nl := bytes.IndexByte(buf[start:k], '\n')
		if nl < 0 {
			break
		}
		start += nl + 1
	}
	if nl := bytes.IndexByte(buf[k:], '\n'); nl >= 0 {
		end = k + nl
	}
	return start, end
}

// afterLine gives the start of the line after the one that holds at.
func afterLine(buf []byte, at int) int {
	if nl := bytes.IndexByte(buf[at:], '\n'); nl >= 0 {
		return at + nl + 1
	}
	return len(buf)
}

// trim leaves the "\r" of a CRLF out of the line.
func (s *Scanner) trim(buf []byte, start, end int) int {
	if s.m.stripCR && end > start && buf[end-1] == '\r' {
		return end - 1
	}
	return end
}

// confirm says whether line, given without its "\n", matches.
func (s *Scanner) confirm(line []byte) bool {
	d := s.earliest()
	_, to := d.scan(line, d.startLine)
	if to = d.finish(to); to == d.row(rowQuit) {
		return s.confirmByPike(line)
	}
	return to == d.row(rowMatch)
}

// confirmByPike asks the Pike VM, which can answer where the DFA can't.
func (s *Scanner) confirmByPike(line []byte) bool {
	_, _, ok := s.pikeVM().find(line[:s.trim(line, 0, len(line))], 0, true)
	return ok
}

// nextLineByDFA runs the DFA over every byte from pos on, which is a line start.
func (s *Scanner) nextLineByDFA(buf []byte, pos int) (start, end int, ok bool) {
	d := s.earliest()
	// Matches are often close together. scanLines cuts its block into four streams, and a match in
	// the first makes the work of the other three useless: so begin with a small block.
	for size := 256; pos < len(buf); size = min(size*4, 256<<10) {
		stop := len(buf)
		if stop-pos > size {
			stop = afterLine(buf, pos+size)
		}
		at, to := d.scanLines(buf[pos:stop])
		if stop == len(buf) && pos+at == stop && buf[stop-1] != '\n' {
			if to = d.finish(to); to < d.row(rowCount) {
				at-- // lineAround must find the last line, which may be one byte long
			}
		}
		switch to {
		case d.row(rowMatch):
			start, end = lineAround(buf, pos, pos+at)
			return start, end, true
		case d.row(rowQuit):
			start, end = lineAround(buf, pos, pos+at)
			if s.confirmByPike(buf[start:end]) {
				return start, end, true
			}
			pos = end + 1
			if s.meter.stopped {
				return 0, 0, false
			} else if !d.gaveUp {
				size = 64
			} else if start, end, ok = s.nextLineByPike(buf, pos); ok || pos >= len(buf) {
				return start, end, ok
			} else {
				return 0, 0, false
			}
		default:
			pos = stop
		}
	}
	return 0, 0, false
}

// nextLineByPike goes line by line. It is for programs whose DFA gave up.
func (s *Scanner) nextLineByPike(buf []byte, pos int) (start, end int, ok bool) {
	for pos < len(buf) && !s.meter.stopped {
		start, end = lineAround(buf, pos, pos)
		if s.confirmByPike(buf[start:end]) {
			return start, end, true
		}
		pos = end + 1
	}
	return 0, 0, false
}

// Any says whether buf holds a match.
func (s *Scanner) Any(buf []byte) bool {
	s.Forget()
	if s.m.o.Multiline && !s.m.lineByLine {
		return s.anyText(buf)
	}
	_, _, ok := s.NextLine(buf, 0)
	return ok
}

// Spans appends the matches within buf[start:end] to dst, as offsets into buf. They are
// leftmost-first and do not overlap; an empty match directly behind another is left out. Go's
// FindAllIndex does the same.
//
// In line mode start and end are a line as NextLine gives it, and nothing outside is looked at.
// Under Multiline all of buf is context, and the matches that begin in start..end are given.
func (s *Scanner) Spans(dst [][2]int, buf []byte, start, end int) [][2]int {
	text, shift := buf[start:end], start
	at, limit := 0, end-start
	if s.m.o.Multiline {
		text, shift, at, limit = buf, 0, start, end
		if s.m.lineByLine {
			return s.spansByLine(dst, buf, start, end)
		}
	}
	s.Forget()
	previous := -1
	for at <= limit {
		begin, stop, ok := s.match(text, at)
		if !ok || begin > limit {
			break
		}
		accept := true
		if stop == at { // empty, and right here
			accept = begin != previous
			_, n := utf8.DecodeRune(text[at:])
			at += max(n, 1)
		} else {
			at = stop
		}
		previous = stop
		if accept {
			dst = append(dst, [2]int{begin + shift, stop + shift})
		}
	}
	return dst
}

// EachMatch calls fn for the matches in the line buf[start:end] that begin at or after from, as
// Spans would list them, until fn returns false. Before from it looks only at the text that
// "^" and \b ask for. It is not for Multiline.
func (s *Scanner) EachMatch(buf []byte, start, end, from int, fn func(begin, end int) bool) {
	s.Forget()
	text := buf[start:end]
	previous := -1
	for at := max(from-start, 0); at <= len(text); {
		begin, stop, ok := s.match(text, at)
		if !ok {
			return
		}
		accept := true
		if stop == at { // empty, and right here
			accept = begin != previous
			_, n := utf8.DecodeRune(text[at:])
			at += max(n, 1)
		} else {
			at = stop
		}
		if previous = stop; accept && !fn(begin+start, stop+start) {
			return
		}
	}
}

// match finds the leftmost-first match in text at or after at.
func (s *Scanner) match(text []byte, at int) (begin, end int, ok bool) {
	if s.m.singleLiteral {
		if s.meter.spend(1) {
			return 0, 0, false
		}
		if begin = s.m.prefilter.next(text, at, &s.meter); begin < 0 {
			return 0, 0, false
		}
		return begin, begin + len(s.m.prefilter.(*pairPrefilter).Bytes), true
	}
	return s.matchByDFA(text, at)
}

// matchByDFA is match without literals.
func (s *Scanner) matchByDFA(text []byte, at int) (begin, end int, ok bool) {
	begin, end, _, ok = s.matchUntil(text, at, len(text))
	return begin, end, ok
}

// matchUntil is matchByDFA that may return early. Once place idle is passed and no started match is
// alive, it returns with resume, where the search may go on. resume is -1 when the answer is final.
//
// It takes two automata, as RE2 does. The first runs forwards and finds where the leftmost-first
// match ends. The second runs the reversed program backwards from there and finds where it begins.
func (s *Scanner) matchUntil(text []byte, at, idle int) (begin, end, resume int, ok bool) {
	end, resume, ok, sure := s.matchEnd(text, at, idle)
	if sure && ok {
		if begin, sure = s.beginDFA.matchStart(text, at, end); sure {
			return begin, end, -1, true
		}
	} else if sure {
		return 0, 0, resume, false
	}
	begin, end, ok = s.pikeVM().find(text, at, false)
	return begin, end, -1, ok
}

// matchEnd is the first half of matchUntil. sure is false when the Pike VM must answer.
func (s *Scanner) matchEnd(text []byte, at, idle int) (end, resume int, ok, sure bool) {
	if s.meter.spend(1) {
		return 0, -1, false, true
	}
	if s.endDFA == nil {
		s.endDFA = s.newDFA(s.m.prog, dfaFirst, false)
		s.beginDFA = s.newDFA(s.m.rev, dfaLongest, true)
	}
	state := s.endDFA.startText
	if sure = true; at > 0 {
		state, sure = s.endDFA.enterAfter(text[at-1])
	}
	if !sure {
		return 0, -1, false, false
	}
	return s.endDFA.matchEnd(text, at, state, idle)
}
