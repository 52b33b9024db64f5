package match

import (
	"context"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/dlclark/regexp2"
)

// The backtracking engine wants its text as code points, and pushes several words for each that it may come back to. What it is
// shown at a time is therefore a window of the text. A match that begins in the last backLap of a window is left to the next one.
const (
	backWindow = 384 << 10 // bytes; a long line comes in shorter parts anyway
	backLap    = 64 << 10
	backBehind = 16 << 10 // what of the text before the place of a search is shown as well
	backStride = 256      // code points between two that backtrackRun.marks has the place of
)

// backtrackRun is one scanner's use of the engine. It remembers the window of the last call: matches are asked for one by one.
type backtrackRun struct {
	b     *backtrack
	re    *regexp2.Regexp
	left  time.Duration
	until time.Time // zero: no deadline
	meter *meter
	err   error
	cut   bool // a text did not fit a window

	text   []byte // of the last call, nil for none: for its place in memory and its length, its content is not compared
	lo, hi int    // the window
	runes  []rune
	marks  []int32 // offset from lo of every backStride-th code point
}

func (s *Scanner) backtracking() *backtrackRun {
	if s.back == nil {
		b := s.m.backward
		re, err := regexp2.Compile(b.text, regexp2.None)
		s.back = &backtrackRun{b: b, re: re, left: b.limit, err: err, until: s.until, meter: &s.meter}
	}
	return s.back
}

func (r *backtrackRun) renew() { r.left, r.err, r.cut, r.text = r.b.limit, nil, false, nil }

// show makes the window hold at, with backLap behind it or all there is.
func (r *backtrackRun) show(text []byte, at int) {
	same := r.text != nil && len(r.text) == len(text) && (len(text) == 0 || &r.text[0] == &text[0])
	if same && r.lo <= at && (at < r.hi-backLap || r.hi == len(text)) && (r.lo == 0 || r.lo < at) {
		return
	}
	r.text, r.lo, r.hi = text, 0, len(text)
	if len(text) > backWindow {
		r.cut = true
		if r.lo = runeStart(text, max(0, at-backBehind)); len(text)-r.lo > backWindow {
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

// runeStart is at, or the start of the character that at is in.
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

// find gives the first match in text at or after at. The text is taken for that of the last call when it lies in the same place.
func (r *backtrackRun) find(text []byte, at int) (begin, end int, ok bool) {
	for r.err == nil {
		r.show(text, at)
		m := r.run(r.index(at))
		safe := r.hi - backLap // a match that begins from here on may be longer than the window shows
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
		case end == r.hi && safe <= len(text) && begin-backBehind > r.lo+backBehind:
			at = begin // there is more room for it
			r.text = nil
		default:
			return begin, end, true
		}
	}
	return 0, 0, false
}

// run is the engine, under what is left of the time.
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

// Cut says that the backtracking engine saw a line, or with Multiline a text, of more than 384 KiB in parts: it may have missed
// a match of more than 64 KiB or found too little of it, and looked around it no further than that.
func (s *Scanner) Cut() bool { return s.back != nil && s.back.cut }

// Forget must be called before NextMatch is called with a buffer that holds another text in the place of the last one.
func (s *Scanner) Forget() {
	s.near = nearLine{}
	if s.back != nil {
		s.back.text = nil
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

// matchBacktracking is match by the backtracking engine; under Multiline the program may show where none begins.
func (s *Scanner) matchBacktracking(text []byte, at int) (begin, end int, ok bool) {
	if s.m.o.Multiline && s.m.find != nil {
		from, k := s.skip(text, at)
		if k < 0 {
			return 0, 0, false
		}
		at = from
	}
	return s.backtracking().find(text, at)
}
