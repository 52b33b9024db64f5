package match

import (
	"context"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/dlclark/regexp2"
)

// The backtracking engine wants its text as code points, and pushes several words for each code
// point it may come back to. So it sees a window of the text at a time. A match that begins in the
// last backOverlap of a window is left to the next window, which shows more of the text behind it.
const (
	backWindow  = 384 << 10 // bytes; a long line comes in shorter parts anyway
	backOverlap = 64 << 10
	backContext = 16 << 10 // text before the place of a search, for look-behind
	backStride  = 256      // code points between two entries of backtrackRun.marks
)

// backtrackRun is one scanner's use of the engine. It keeps the window of the last call: matches
// are asked for one by one, and turning a window into code points costs more than finding one.
type backtrackRun struct {
	pattern *backtrack
	re      *regexp2.Regexp
	left    time.Duration
	until   time.Time // zero: no deadline
	meter   *meter
	err     error
	cut     bool // a text did not fit a window

	text   []byte // of the last call, nil for none; compared by address and length only: see Forget
	lo, hi int    // the window
	runes  []rune
	marks  []int32 // offset from lo of every backStride-th code point
}

func (s *Scanner) backtracking() *backtrackRun {
	if s.fallback == nil {
		b := s.m.fallback
		re, err := regexp2.Compile(b.text, regexp2.None)
		s.fallback = &backtrackRun{pattern: b, re: re, left: b.limit, err: err}
		s.fallback.until, s.fallback.meter = s.until, &s.meter
	}
	return s.fallback
}

func (r *backtrackRun) reset() { r.left, r.err, r.cut, r.text = r.pattern.limit, nil, false, nil }

// show moves the window so that it holds at, and backOverlap behind it or all there is.
func (r *backtrackRun) show(text []byte, at int) {
	same := r.text != nil && len(r.text) == len(text) && (len(text) == 0 || &r.text[0] == &text[0])
	enoughBehind := at < r.hi-backOverlap || r.hi == len(text)
	if same && r.lo <= at && enoughBehind && (r.lo == 0 || r.lo < at) {
		return
	}
	r.text, r.lo, r.hi = text, 0, len(text)
	if len(text) > backWindow {
		r.cut = true
		if r.lo = runeStart(text, max(0, at-backContext)); len(text)-r.lo > backWindow {
			r.hi = runeStart(text, r.lo+backWindow)
		}
	}
	r.runes, r.marks = r.runes[:0], r.marks[:0]
	if cap(r.runes) < r.hi-r.lo {
		r.runes = make([]rune, 0, min(max(r.hi-r.lo, 2*cap(r.runes)), backWindow))
	}
	for i := r.lo; i < r.hi; {
		if len(r.runes)%backStride == 0 {
			r.marks = append(r.marks, int32(i-r.lo))
		}
		c, n := utf8.DecodeRune(text[i:r.hi]) // a byte that is not UTF-8 becomes U+FFFD
		r.runes = append(r.runes, c)
		i += n
	}
}

// runeStart gives the start of the character that at is in, or at itself.
func runeStart(text []byte, at int) int {
	for k := at; k > 0 && k > at-utf8.UTFMax && k < len(text); k-- {
		if utf8.RuneStart(text[k]) {
			return k
		}
	}
	return at
}

// index is the number of the first code point of the window at or after byte at of the text.
func (r *backtrackRun) index(at int) int {
	low, high := 0, len(r.marks) // the last mark at or before at
	for high-low > 1 {
		if mid := (low + high) / 2; r.lo+int(r.marks[mid]) <= at {
			low = mid
		} else {
			high = mid
		}
	}
	if len(r.marks) == 0 {
		return 0
	}
	n := low * backStride
	for i := r.lo + int(r.marks[low]); i < at && i < r.hi; n++ {
		_, size := utf8.DecodeRune(r.text[i:r.hi])
		i += size
	}
	return n
}

// offset is the byte of the text at which code point n of the window begins.
func (r *backtrackRun) offset(n int) int {
	if n >= len(r.runes) {
		return r.hi
	}
	i := r.lo + int(r.marks[n/backStride])
	for range n % backStride {
		_, size := utf8.DecodeRune(r.text[i:r.hi])
		i += size
	}
	return i
}

// find gives the first match in text at or after at. A text at the address of the last one, and as
// long, is taken for the same text.
func (r *backtrackRun) find(text []byte, at int) (begin, end int, ok bool) {
	for r.err == nil {
		r.show(text, at)
		m := r.run(r.index(at))
		safe := r.hi - backOverlap // a match from here on may be longer than shown
		if r.hi == len(text) {
			safe = len(text) + 1
		}
		if m != nil {
			begin, end = r.offset(m.Index), r.offset(m.Index+m.Length)
		}
		switch {
		case r.err != nil || m == nil && safe > len(text):
			return 0, 0, false
		case m == nil || begin >= safe:
			at = max(at+1, safe)
		case end == r.hi && safe <= len(text) && begin-backContext > r.lo+backContext:
			at = begin // the next window shows more of it
			r.text = nil
		default:
			return begin, end, true
		}
	}
	return 0, 0, false
}

// run calls the engine with the time that is left.
func (r *backtrackRun) run(from int) *regexp2.Match {
	began := time.Now()
	limit, late := r.left, error(ErrFallbackTime)
	if !r.until.IsZero() && r.until.Sub(began) < limit {
		limit, late = r.until.Sub(began), context.DeadlineExceeded
	}
	switch {
	case limit <= 0:
		r.err = fmt.Errorf("matching: %w", late)
		return nil
	case r.meter.spend(256):
		r.err = ErrStopped
		return nil
	}
	r.re.MatchTimeout = limit
	m, err := r.re.FindRunesMatchStartingAt(r.runes, from)
	r.left -= time.Since(began)
	if err != nil {
		r.err = fmt.Errorf("matching: %w: %v", late, err)
		return nil
	}
	return m
}

// Cut says that the backtracking engine saw a text in parts: a line, or with Multiline a text, of
// more than 384 KiB. It may have missed a match of more than 64 KiB, or found too little of it. It
// looked around a match no further than that.
func (s *Scanner) Cut() bool { return s.fallback != nil && s.fallback.cut }

// Forget must be called before a buffer that holds another text at the same address comes again.
// Otherwise results for the old text are used for the new one.
func (s *Scanner) Forget() {
	s.line = lineBounds{}
	if s.fallback != nil {
		s.fallback.text = nil
	}
}

func (s *Scanner) nextLineBacktracking(buf []byte, pos int) (start, end int, ok bool) {
	for pos < len(buf) {
		if start, end, ok = s.nextLine(buf, pos); !ok {
			return 0, 0, false
		}
		r := s.backtracking()
		s.Forget()
		if _, _, ok = r.find(buf[start:end], 0); ok {
			return start, end, true
		}
		if r.err != nil {
			return 0, 0, false
		}
		pos = afterLine(buf, end)
	}
	return 0, 0, false
}

// matchBacktracking is match by the backtracking engine. Under Multiline the prefilter may show
// where no match begins.
func (s *Scanner) matchBacktracking(text []byte, at int) (begin, end int, ok bool) {
	if s.m.o.Multiline && s.m.prefilter != nil {
		from, k := s.skipToCandidate(text, at)
		if k < 0 {
			return 0, 0, false
		}
		at = from
	}
	return s.backtracking().find(text, at)
}
