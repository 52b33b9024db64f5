package match

import (
	"bytes"
	"time"
	"unicode/utf8"
)

// Scanner is one goroutine's state for a Matcher: automata in the making and scratch.
type Scanner struct {
	m     *Matcher
	early *dfa // says whether, and in which line
	end   *dfa // leftmost-first: where a match ends
	begin *dfa // reversed: where it begins
	long  *dfa // early's like, of LongLine, which holds one of its states between two calls
	slow  *pike
	cache int // bytes that each of the automata may take
	back  *backtrackRun
	until time.Time // Bound
	meter meter

	// How well the finder does: candidates that came to nothing, and the bytes that were passed meanwhile.
	misses, passed int
	rest           int // bytes to search without the finder before it is tried again

	// Where one of the literals that are the pattern was found, so that no byte is looked at twice: at is its first place in the line that NextLine gave
	// last, ahead its first one behind that line, len of the buffer when there is none. ahead holds for the next NextLine only, from
	// the line on that begins at then, in the buffer whose last byte is in.
	at, ahead, then int
	in              *byte

	near nearLine

	words cursor // of Matcher.words, as long as ahead holds
	first int    // the first word in the line that NextLine gave last, -1 for unknown
}

func newScanner(m *Matcher) *Scanner {
	return &Scanner{m: m}
}

// renew makes s fit for a new borrower.
func (s *Scanner) renew(cache int) {
	s.cache, s.until, s.meter = cache, time.Time{}, meter{}
	s.misses, s.passed, s.rest, s.in, s.near = 0, 0, 0, nil, nearLine{}
	for _, d := range []*dfa{s.early, s.end, s.begin} {
		if d == nil {
			continue
		}
		if d.limit = cache; d.gaveUp {
			d.gaveUp, d.flushes = false, 0
			d.reset()
		}
	}
	if s.back != nil {
		s.back.renew()
		s.back.until = s.until
	}
}

// Bound has every engine ask stop after each some thousand steps, and give up once it is true: Err is
// ErrStopped then. The backtracking engine can ask between two matches only; it gives up at until as well,
// with context.DeadlineExceeded. Both hold until the scanner is put back.
func (s *Scanner) Bound(until time.Time, stop func() bool) {
	s.until, s.meter = until, meter{stop: stop}
	if s.back != nil {
		s.back.until = until
	}
}

// Err is non-nil once the scanner was stopped, or the backtracking engine has used up Options.FallbackTime, its time of Bound, or
// failed otherwise. From then on the scanner finds nothing; what it found before is right.
func (s *Scanner) Err() error {
	switch {
	case s.back != nil && s.back.err != nil:
		return s.back.err
	case s.meter.over:
		return ErrStopped
	}
	return nil
}

func (s *Scanner) earliest() *dfa {
	if s.early == nil {
		s.early = s.newDFA(s.m.prog, dfaEarliest, false)
	}
	return s.early
}

func (s *Scanner) newDFA(p *program, mode dfaMode, anchored bool) *dfa {
	return newDFA(p, mode, anchored, s.cache, &s.meter)
}

func (s *Scanner) simulation() *pike {
	if s.slow == nil {
		s.slow = newPike(s.m.prog, &s.meter)
	}
	return s.slow
}

// NextLine finds the first matching line at or after pos, which is the start of a line in buf; buf begins at a line start and
// ends at a line end or at the end of the text. start and end exclude the terminator ("\n", and with CRLF a "\r" before it).
// A "\n" at the end of buf begins no further line. Under Multiline it gives the line in which the next match begins.
func (s *Scanner) NextLine(buf []byte, pos int) (start, end int, ok bool) {
	if s.m.o.Multiline && !s.m.byLine {
		begin, _, ok := s.NextMatch(buf, pos)
		if !ok {
			return 0, 0, false
		}
		start, end = lineAround(buf, 0, begin)
		return start, s.trim(buf, start, end), true
	}
	if s.m.backward != nil {
		return s.nextLineBacktracking(buf, pos)
	}
	return s.nextLine(buf, pos)
}

// nextLine is NextLine for the program in line mode.
func (s *Scanner) nextLine(buf []byte, pos int) (start, end int, ok bool) {
	for pos < len(buf) {
		if s.m.find == nil {
			start, end, ok = s.lineByDFA(buf, pos)
			return start, s.trim(buf, start, end), ok
		}
		if s.rest > 0 { // the finder did badly here
			stop := len(buf)
			if stop-pos > s.rest {
				stop = afterLine(buf, pos+s.rest)
			}
			if start, end, ok = s.lineByDFA(buf[:stop], pos); ok {
				s.rest -= end - pos
				return start, s.trim(buf, start, end), true
			}
			s.rest -= stop - pos
			pos = stop
			continue
		}
		if s.m.near {
			if start, end, pos, ok = s.lineNear(buf, pos); ok || pos == len(buf) {
				return start, s.trim(buf, start, end), ok
			}
			continue
		}
		k := s.findFrom(buf, pos)
		if k < 0 {
			s.passed += len(buf) - pos
			return 0, 0, false
		}
		start, end = lineAround(buf, pos, k)
		if s.m.exact || s.confirm(buf[start:end]) {
			s.passed += end - pos
			return start, s.trim(buf, start, end), true
		}
		if s.meter.over {
			return 0, 0, false
		}
		s.misses++
		s.passed += end + 1 - pos
		pos = end + 1
		if s.misses >= 32 {
			// A DFA takes a byte in less than a nanosecond, a wrong candidate costs as much as a hundred bytes and its line.
			if s.passed < 128*s.misses {
				s.rest = 256 << 10
			}
			s.misses, s.passed = 0, 0
		}
	}
	return 0, 0, false
}

// findFrom is the finder's next, but for a place that Count came across.
func (s *Scanner) findFrom(buf []byte, pos int) int {
	k := s.ahead
	switch {
	case s.in != &buf[len(buf)-1] || s.then != pos || k < pos:
		k = s.m.find.next(buf, pos, &s.meter)
		s.first = -1
		s.words.at, s.words.n, s.words.room = 0, 0, 0
	case k == len(buf):
		k = -1
	default:
		s.first = k
	}
	s.at, s.in = k, nil
	return k
}

// Count gives the number of matches in the line buf[start:end] that NextLine just gave. What follows must be NextLine for the line
// behind it, with buf as it is, unless that line was the last of buf.
func (s *Scanner) Count(buf []byte, start, end int) int {
	if s.m.words != nil && !s.m.o.Multiline {
		n, k := s.m.words.count(buf, start, end, s.first, &s.words, &s.meter)
		s.lookAhead(buf, end, k)
		return n
	}
	if !s.m.single || s.m.o.Multiline || s.at < start || s.at >= end {
		var spans [8][2]int
		return len(s.Spans(spans[:0], buf, start, end))
	}
	size := len(s.m.find.(*pairFinder).bytes)
	n := 0
	for k := s.at; ; n++ {
		if k < 0 || k+size > end {
			s.lookAhead(buf, end, k)
			return n
		}
		k = s.m.find.next(buf, k+size, &s.meter)
	}
}

// lookAhead keeps what the finder found behind the line that ends at end, for the NextLine that follows.
func (s *Scanner) lookAhead(buf []byte, end, k int) {
	if s.ahead = k; k < 0 {
		s.ahead = len(buf)
	}
	s.then = afterLine(buf, end)
	s.in = &buf[len(buf)-1]
}

// lineAround gives the line that holds k, knowing that it begins at or after from. The end is that of the terminator's "\n".
func lineAround(buf []byte, from, k int) (start, end int) {
	start = from + bytes.LastIndexByte(buf[from:k], '\n') + 1
	end = len(buf)
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

// trim takes the "\r" of a CRLF from a line.
func (s *Scanner) trim(buf []byte, start, end int) int {
	if s.m.strip && end > start && buf[end-1] == '\r' {
		return end - 1
	}
	return end
}

// confirm says whether line, without its "\n", matches.
func (s *Scanner) confirm(line []byte) bool {
	d := s.earliest()
	_, to := d.scan(line, d.lineGo)
	if to = d.finish(to); to == d.row(rowQuit) {
		return s.confirmSlowly(line)
	}
	return to == d.row(rowMatch)
}

func (s *Scanner) confirmSlowly(line []byte) bool {
	_, _, ok := s.simulation().find(line[:s.trim(line, 0, len(line))], 0, true)
	return ok
}

// lineByDFA looks at every byte from pos on, a line start.
func (s *Scanner) lineByDFA(buf []byte, pos int) (start, end int, ok bool) {
	d := s.earliest()
	// Matches are often close together: begin small, so that little is scanned in vain by the later streams.
	for size := 256; pos < len(buf); size = min(size*4, 256<<10) {
		stop := len(buf)
		if stop-pos > size {
			stop = afterLine(buf, pos+size)
		}
		at, to := d.scanLines(buf[pos:stop])
		if stop == len(buf) && pos+at == stop && buf[stop-1] != '\n' {
			if to = d.finish(to); to < d.row(rowCount) {
				at-- // in the last line, which may be of one byte only
			}
		}
		switch to {
		case d.row(rowMatch):
			start, end = lineAround(buf, pos, pos+at)
			return start, end, true
		case d.row(rowQuit):
			start, end = lineAround(buf, pos, pos+at)
			if s.confirmSlowly(buf[start:end]) {
				return start, end, true
			}
			pos = end + 1
			if s.meter.over {
				return 0, 0, false
			} else if !d.gaveUp {
				size = 64
			} else if start, end, ok = s.lineSlowly(buf, pos); ok || pos >= len(buf) {
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

// lineSlowly goes line by line, for programs whose DFA gave up.
func (s *Scanner) lineSlowly(buf []byte, pos int) (start, end int, ok bool) {
	for pos < len(buf) && !s.meter.over {
		start, end = lineAround(buf, pos, pos)
		if s.confirmSlowly(buf[start:end]) {
			return start, end, true
		}
		pos = end + 1
	}
	return 0, 0, false
}

// Any says whether buf holds a match.
func (s *Scanner) Any(buf []byte) bool {
	s.Forget()
	if s.m.o.Multiline && !s.m.byLine {
		return s.anyText(buf)
	}
	_, _, ok := s.NextLine(buf, 0)
	return ok
}

// Spans appends the matches within buf[start:end] to dst, as offsets into buf: leftmost-first and without overlap, an empty
// one not directly behind another, as Go's FindAllIndex has it. In line mode start and end are a line as NextLine gives it,
// and nothing outside is looked at. Under Multiline all of buf is looked at, and the matches that begin in start..end come.
func (s *Scanner) Spans(dst [][2]int, buf []byte, start, end int) [][2]int {
	text, shift := buf[start:end], start
	at, limit := 0, end-start
	if s.m.o.Multiline {
		text, shift, at, limit = buf, 0, start, end
		if s.m.byLine {
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
		if stop == at { // empty, and just here
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

// EachMatch calls fn for the matches in the line buf[start:end] that begin at or after from, as Spans would list them, until fn is
// false. Before from it looks for nothing but what "^" and \b ask for. It is not for Multiline.
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
		if stop == at { // empty, and just here
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
	if s.m.backward != nil {
		return s.matchBacktracking(text, at)
	}
	if s.m.single {
		if s.meter.spend(1) {
			return 0, 0, false
		}
		if begin = s.m.find.next(text, at, &s.meter); begin < 0 {
			return 0, 0, false
		}
		return begin, begin + len(s.m.find.(*pairFinder).bytes), true
	}
	return s.matchFrom(text, at)
}

// matchFrom is match by the automata.
func (s *Scanner) matchFrom(text []byte, at int) (begin, end int, ok bool) {
	begin, end, _, ok = s.matchUntil(text, at, len(text))
	return begin, end, ok
}

// matchUntil is matchFrom, but when nothing has begun that could become a match once place idle is passed, it returns with
// resume, where the search may go on; resume is -1 when the answer is final.
func (s *Scanner) matchUntil(text []byte, at, idle int) (begin, end, resume int, ok bool) {
	if s.meter.spend(1) {
		return 0, 0, -1, false
	}
	if s.end == nil {
		s.end = s.newDFA(s.m.prog, dfaFirst, false)
		s.begin = s.newDFA(s.m.rev, dfaLongest, true)
	}
	state, sure := s.end.textGo, true
	if at > 0 {
		state, sure = s.end.enterAfter(text[at-1])
	}
	if sure {
		if end, resume, ok, sure = s.end.last(text, at, state, idle); sure && ok {
			if begin, sure = s.begin.first(text, at, end); sure {
				return begin, end, -1, true
			}
		} else if sure {
			return 0, 0, resume, false
		}
	}
	begin, end, ok = s.simulation().find(text, at, false)
	return begin, end, -1, ok
}
