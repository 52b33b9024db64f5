// Package match finds the lines of a buffer that a pattern matches, or with Multiline the spans.
//
// # Syntax
//
// Patterns are written as for ripgrep or Go's regexp. \d \w \s \b and (?i) go by Unicode,
// [[:alpha:]] by ASCII; (?-u) makes all of them ASCII. "^" and "$" stand at lines always; \A and \z
// at the text, which in line mode is the line. A brace that counts nothing is itself: "${x}", "a{",
// "interface{}". In line mode no class holds "\n", and a pattern that asks for one is refused with
// a hint. A class matches encoded code points: as in ripgrep, only (?-u) matches bytes that are not
// UTF-8.
//
// Look-around, back-references and atomic groups are refused. The next match is found in time linear in
// the text times the size of the pattern, which Compile bounds. That may still be minutes:
// Scanner.Bound ends every engine.
//
// # How it searches
//
// A prefilter jumps to candidates: it looks for something that every match must hold. For
// "err(or)?\b" that is "err". It is a literal, one of up to 64 literals, or a window of byte
// classes, and runs on vector instructions where the machine has them. Estimates choose it, and the text corrects them: several
// literals are looked for by the bytes in which they differ from this text, and a candidate's line without another literal of the
// pattern is skipped, with all lines up to the next one that has it. A lazy DFA then confirms the
// candidate's line. Without a prefilter, or where it finds too much, the DFA runs over the whole
// buffer as four interleaved streams. Where the DFA cannot decide (a Unicode word boundary beside
// non-ASCII text) or its cache thrashes, a Pike VM does.
//
// A prefilter may pass too much; it must never pass over a match. The confirming engines must agree
// on every text. The tests hold both against package regexp and ripgrep.
//
// The ideas come from RE2 (lazy DFA, reversed program, byte classes) and from ripgrep's crates
// (prefilters by rare bytes, Teddy, the order of strategies).
//
// # Concurrency and memory
//
// A Matcher is safe for concurrent use. A Scanner belongs to one goroutine at a time. Its caches
// are bounded: at most three DFAs of about 1 MiB each. Once the caches are warm searching allocates nothing.
package match

import (
	"sync"

	"moltisfs/grep/match/syntax"
)

// MaxPattern is the longest pattern in bytes that Compile takes.
const MaxPattern = syntax.MaxPattern

// PatternError names the fault of a Pattern: its byte Offset, Why, and a pattern to write
// instead (Suggest; with Multiline it is accepted with [Options].Multiline only).
type PatternError = syntax.PatternError

// Options say how a pattern is read. The zero value searches line by line, case-sensitively.
//
// With CRLF "$" matches before "\r\n". In line mode the "\r" is then no part of the line, unless
// the pattern names it.
type Options struct {
	IgnoreCase bool
	Multiline  bool // (?ms): a match may span lines and "." matches "\n"
	Literal    bool // the pattern is a plain string
	CRLF       bool // "\r\n" ends a line
}

// Matcher is a compiled pattern.
type Matcher struct {
	o    Options
	text string
	prog *program // forwards
	rev  *program // reversed: it finds where a match begins
	strategy
	stripCR  bool // CRLF, and the pattern does not name "\r": lines end before "\r\n"
	nonASCII bool
	rawBytes bool

	dfaMemory int // bytes that one DFA may use
	pool      sync.Pool
}

// Compile reads a pattern. Every error is a *PatternError.
func Compile(pattern string, o Options) (*Matcher, error) {
	return compileAt(pattern, o, vectors())
}

// compileAt is Compile with the vector instructions of this level.
func compileAt(pattern string, o Options, v level) (*Matcher, error) {
	t, bad := syntax.Parse(pattern, syntax.Options{
		IgnoreCase: o.IgnoreCase, Multiline: o.Multiline, Literal: o.Literal,
	})
	if bad != nil {
		return nil, bad
	}
	m := &Matcher{o: o, text: pattern, dfaMemory: dfaBytes, rawBytes: t.Root.HasBytes()}
	m.nonASCII = syntax.NamesNonASCII(pattern, o.Literal)
	if !m.chooseStrategy(t, v) {
		why := "pattern is too large when its repetitions are written out; use smaller counts"
		return nil, &PatternError{Pattern: pattern, Why: why}
	}
	m.pool.New = func() any { return newScanner(m) }
	return m, nil
}

// Source is the pattern that Compile was given.
func (m *Matcher) Source() (pattern string, o Options) { return m.text, m.o }

// NonASCII says that the pattern names characters outside ASCII: literally, escaped, or by a
// property. Only text in UTF-8 can be searched for them.
//
// (?i) adds the long s to s and the Kelvin sign to k. They do not count: no legacy text spells a
// word with them.
func (m *Matcher) NonASCII() bool { return m.nonASCII }

// Bytes says that the pattern asks for bytes, as "(?-u)\xff" does, and not only for characters. The
// encoding of a file means nothing to such a pattern.
func (m *Matcher) Bytes() bool { return m.rawBytes }

// Scanner gives a scanner for one goroutine. Give it back with Put.
func (m *Matcher) Scanner() *Scanner { return m.ScannerWithin(3 * m.dfaMemory) }

// ScannerWithin is Scanner with a bound in bytes on its caches, for many scanners at a time. Below
// some 100 KiB, patterns with many states become slow.
func (m *Matcher) ScannerWithin(bytes int) *Scanner {
	s := m.pool.Get().(*Scanner)
	s.reset(min(bytes/3, m.dfaMemory))
	return s
}

// Put takes s back for reuse. s must not be used afterwards.
func (m *Matcher) Put(s *Scanner) { m.pool.Put(s) }
