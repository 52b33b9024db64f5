// Package match finds the lines of a buffer that a pattern matches.
package match

import (
	"errors"
	"regexp"
	"regexp/syntax"
	"strings"
	"time"
)

// MaxPattern is the longest pattern in bytes that Compile takes.
const MaxPattern = 4 << 10

// Options say how a pattern is read. The zero value searches line by line, case-sensitively.
type Options struct {
	IgnoreCase   bool
	Multiline    bool          // (?ms): a match may span lines, "." matches "\n"
	Literal      bool          // the pattern is a plain string
	CRLF         bool          // "\r\n" ends a line as "\n" does: "$" matches before it
	NoFallback   bool          // refuse look-around and back-references instead of running them on the backtracking engine
	FallbackTime time.Duration // limit of one call on the backtracking engine; 0 means 2 s
}

// PatternError says what is wrong with a pattern, where, and what to write instead.
type PatternError struct {
	Pattern string
	Offset  int    // byte offset into Pattern
	Why     string // one clause, no final period
	Suggest string // a pattern that is accepted, "" when none is known
}

func (e *PatternError) Error() string {
	s := "bad pattern: " + e.Why
	if e.Suggest != "" {
		s += "; try " + e.Suggest
	}
	return s
}

// Clause is one condition of RequiredLiterals: at least one of Any occurs in every match.
type Clause struct {
	Any  []string // raw bytes; lower-cased in A-Z when Fold is set
	Fold bool     // ASCII letters are to be compared without case, all other bytes exactly
}

// Matcher is a compiled pattern. It may be used by many goroutines at once.
type Matcher struct {
	re        *regexp.Regexp
	multiline bool
	crlf      bool
}

// Compile reads a pattern. Every error is a *PatternError.
func Compile(pattern string, o Options) (*Matcher, error) {
	if len(pattern) > MaxPattern {
		return nil, &PatternError{Pattern: pattern, Offset: MaxPattern, Why: "pattern is longer than 4 KiB"}
	}
	p := pattern
	if o.Literal {
		p = regexp.QuoteMeta(p)
	}
	fl := "(?m)"
	if o.Multiline {
		fl = "(?ms)"
	}
	if o.IgnoreCase {
		fl += "(?i)"
	}
	re, err := regexp.Compile(fl + p)
	if err != nil {
		e := &PatternError{Pattern: pattern, Why: err.Error(), Suggest: regexp.QuoteMeta(pattern)}
		var se *syntax.Error
		if errors.As(err, &se) {
			e.Why = se.Code.String()
			e.Offset = max(0, strings.Index(pattern, se.Expr))
		}
		return nil, e
	}
	return &Matcher{re: re, multiline: o.Multiline, crlf: o.CRLF}, nil
}

// Engine is "linear" or "backtracking".
func (m *Matcher) Engine() string { return "linear" }

// RequiredLiterals says what every match contains: each clause must hold. Nil when nothing is known.
func (m *Matcher) RequiredLiterals() []Clause { return nil }

// Scanner is one goroutine's state for a Matcher.
type Scanner struct{ m *Matcher }

// Scanner gives a scanner; give it back with Put.
func (m *Matcher) Scanner() *Scanner { return &Scanner{m} }

// Put returns s for reuse. s must not be used afterwards.
func (m *Matcher) Put(s *Scanner) {}

// Err is non-nil once the backtracking engine ran into its time limit; answers since then may be incomplete.
func (s *Scanner) Err() error { return nil }

// NextLine finds the first matching line at or after pos, which is a line start.
func (s *Scanner) NextLine(buf []byte, pos int) (start, end int, ok bool) {
	for pos < len(buf) {
		next := len(buf)
		for i := pos; i < len(buf); i++ {
			if buf[i] == '\n' {
				next = i + 1
				break
			}
		}
		end := next
		if end > pos && buf[end-1] == '\n' {
			end--
		}
		if s.m.crlf && end > pos && buf[end-1] == '\r' {
			end--
		}
		if s.m.re.Match(buf[pos:end]) {
			return pos, end, true
		}
		pos = next
	}
	return 0, 0, false
}

// Any says whether buf holds a match.
func (s *Scanner) Any(buf []byte) bool {
	if s.m.multiline {
		return s.m.re.Match(buf)
	}
	_, _, ok := s.NextLine(buf, 0)
	return ok
}

// Spans appends the matches within buf[start:end], one line, to dst; offsets are relative to buf.
func (s *Scanner) Spans(dst [][2]int, buf []byte, start, end int) [][2]int {
	for _, x := range s.m.re.FindAllIndex(buf[start:end], -1) {
		dst = append(dst, [2]int{x[0] + start, x[1] + start})
	}
	return dst
}

// NextMatch finds the leftmost match that starts at or after pos; for a multiline matcher.
func (s *Scanner) NextMatch(buf []byte, pos int) (start, end int, ok bool) {
	for _, x := range s.m.re.FindAllIndex(buf, -1) {
		if x[0] >= pos {
			return x[0], x[1], true
		}
	}
	return 0, 0, false
}
