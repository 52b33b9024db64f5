// Package match finds the lines, or with Multiline the stretches, of a buffer that a pattern matches.
//
// # Syntax
//
// Patterns are written as for ripgrep or Go's regexp: \d \w \s \b and (?i) go by Unicode, [[:alpha:]] by ASCII, (?-u) makes
// all of them ASCII. "^" and "$" stand at lines always; \A and \z at the text, which in line mode is the line. A brace that
// counts nothing is itself: "interface{}", "${x}", "a{". In line mode no class holds "\n", and a pattern that asks for one is
// refused with a hint. Look-around, back-references, atomic groups and possessive repetition are run by a backtracking
// engine under a time limit; Engine says so. Everything else finds its next match in time linear in the text times the size of
// the pattern, which Compile bounds; that may still be minutes. Scanner.Bound ends every engine.
// A class matches encoded code points: bytes that are not UTF-8 are matched by (?-u) only, as in ripgrep.
//
// # How it searches
//
// What every match must hold (a literal, one of up to 64 literals, or a window of byte classes) is looked for with vector
// instructions where the machine has them; a lazily built DFA confirms the line. Without such a filter, or where it passes
// too much, the DFA runs over the whole buffer as four interleaved streams. Where the DFA can't decide (a Unicode word
// boundary beside non-ASCII text) or its cache thrashes, a thread list simulation does.
//
// # Concurrency and memory
//
// A Matcher is safe for concurrent use, a Scanner belongs to one goroutine at a time. The caches of a Scanner are bounded: at
// most three DFAs of about 1 MiB each. The backtracking engine sees at most 384 KiB at a time: see Scanner.Cut. Searching allocates nothing once they are warm, the backtracking engine excepted.
package match

import (
	"slices"
	"sync"
	"time"
	"unicode/utf8"
)

// MaxPattern is the longest pattern in bytes that Compile takes.
const MaxPattern = 4 << 10

// Options say how a pattern is read. The zero value searches line by line, case-sensitively.
type Options struct {
	IgnoreCase   bool
	Multiline    bool          // (?ms): a match may span lines and "." matches "\n"
	Literal      bool          // the pattern is a plain string
	CRLF         bool          // "\r\n" ends a line: "$" matches before it; in line mode the "\r" is no part of the line unless the pattern names it
	NoFallback   bool          // refuse what only the backtracking engine can do
	FallbackTime time.Duration // what one Scanner may spend in the backtracking engine; 0 means 2 s
}

const defaultFallbackTime = 2 * time.Second

// Matcher is a compiled pattern.
type Matcher struct {
	o        Options
	prog     *program // forward
	rev      *program // reversed, for where a match begins
	find     finder   // nil: nothing worth looking for
	exact    bool     // what find finds is a match
	single   bool     // find finds exactly one literal, and that is the match
	near     bool     // what find finds comes in order and at most maxNear bytes behind where the match begins
	words    *wordSet // the matches of a pattern that is several literals and no more, in line mode; else nil
	lead     lead     // what of a match may stand before what find finds
	needs    []literals
	byLine   bool       // multiline, but no match can hold "\n": line mode finds the same
	strip    bool       // CRLF, and "\r" is not named: lines end before "\r\n"
	backward *backtrack // not nil: the program only proposes, this decides
	cache    int        // bytes one DFA may use
	nonASCII bool
	bytes    bool
	pool     sync.Pool
}

// Compile reads a pattern. Every error is a *PatternError.
func Compile(pattern string, o Options) (*Matcher, error) { return compileAt(pattern, o, vectors()) }

// compileAt is Compile for kernels of this level.
func compileAt(pattern string, o Options, v level) (*Matcher, error) {
	if len(pattern) > MaxPattern {
		return nil, &PatternError{Pattern: pattern, Offset: MaxPattern, Why: "pattern is longer than 4 KiB"}
	}
	t, err := parseWith(pattern, o)
	if err == nil && t.exotic != "" && o.NoFallback {
		err = refuse(t.exoAt, "%s needs the backtracking engine, which is off", t.exotic)
	}
	if err != nil {
		return nil, explain(pattern, o, err)
	}
	if o.FallbackTime <= 0 {
		o.FallbackTime = defaultFallbackTime
	}
	m := &Matcher{o: o, cache: dfaBytes, nonASCII: namesNonASCII(pattern, o.Literal), bytes: t.root.hasBytes()}
	if t.exotic != "" {
		b, err := newBacktrack(t.root, o)
		if err != nil {
			return nil, &PatternError{Pattern: pattern, Offset: t.exoAt, Why: "the backtracking engine refuses it: " + err.Error()}
		}
		m.backward = b
	}
	if !m.plan(t, v) {
		return nil, &PatternError{Pattern: pattern, Why: "pattern is too large when its repetitions are written out; use smaller counts"}
	}
	m.pool.New = func() any { return newScanner(m) }
	return m, nil
}

// NonASCII says that the pattern names characters outside ASCII, as they stand, escaped, or by a property, so that only a text
// in UTF-8 can be searched for them.
//
// The long s and the Kelvin sign, which (?i) adds to s and k, are not named: no legacy text spells a word with them.
func (m *Matcher) NonASCII() bool { return m.nonASCII }

// Bytes says that the pattern asks for bytes, as "(?-u)\xff" does, and not for characters only: what a file's bytes spell is nothing to it.
func (m *Matcher) Bytes() bool { return m.bytes }

func (n *node) hasBytes() bool {
	return n.op == opBytes || slices.ContainsFunc(n.subs, (*node).hasBytes)
}

// namesNonASCII takes every \x, \u and \p for one outside ASCII: that costs a look at the encoding, no more.
func namesNonASCII(pattern string, literal bool) bool {
	for i := 0; i < len(pattern); i++ {
		if pattern[i] >= utf8.RuneSelf {
			return true
		}
		if pattern[i] == '\\' && i+1 < len(pattern) && !literal {
			i++
			switch pattern[i] {
			case 'x', 'u', 'U', 'p', 'P':
				return true
			}
		}
	}
	return false
}

// Engine is "linear" or "backtracking".
func (m *Matcher) Engine() string {
	if m.backward != nil {
		return "backtracking"
	}
	return "linear"
}

// Clause is one condition of RequiredLiterals: at least one of Any occurs in every match.
type Clause struct {
	Any  []string // raw bytes
	Fold bool     // compare ASCII letters without case, all other bytes exactly; Any is in small letters then
}

// RequiredLiterals says what the text of every match holds: all of the clauses. It is nil when nothing is known. In line mode
// the literals stand in one line; they hold no "\n".
func (m *Matcher) RequiredLiterals() []Clause {
	var out []Clause
	for _, need := range m.needs {
		if !need.useful() {
			continue
		}
		var c Clause
		for _, l := range need.set {
			c.Fold = c.Fold || l.folds()
		}
		for _, l := range need.set {
			b := l.bytes
			if c.Fold { // a superset where only some letters fold
				b = lowerASCII(b)
			}
			c.Any = append(c.Any, string(b))
		}
		out = append(out, c)
	}
	return out
}

func lowerASCII(b []byte) []byte {
	out := make([]byte, len(b))
	for i, c := range b {
		if c-'A' <= 25 {
			c |= 0x20
		}
		out[i] = c
	}
	return out
}

// Scanner gives a scanner for one goroutine; give it back with Put.
func (m *Matcher) Scanner() *Scanner { return m.ScannerWithin(3 * m.cache) }

// ScannerWithin is Scanner with a bound in bytes on the caches of its automata, for many at a time. Below some 100 KiB patterns
// with many states become slow.
func (m *Matcher) ScannerWithin(bytes int) *Scanner {
	s := m.pool.Get().(*Scanner)
	s.renew(min(bytes/3, m.cache))
	return s
}

// Put takes s back for reuse. s must not be used afterwards.
func (m *Matcher) Put(s *Scanner) { m.pool.Put(s) }
