// Package glob matches slash-separated paths against shell patterns.
//
//   - any run of characters within one segment, leading dots included
//     **       alone between slashes: any number of segments, or none; so /x/** covers /x itself
//     ?        one character
//     [a-z]    one of these; [!a-z] and [^a-z] one that is not
//     {a,b}    either; may nest, may hold slashes; at most 256 combinations in one pattern
//     \c       c itself
//
// A pattern is matched against the whole path, byte for byte unless Options.Fold says otherwise. A
// pattern that begins with a slash matches absolute paths only; any other matches relative paths
// only. "*.go" matches in the top directory only: a caller who wants any depth writes **/*.go.
//
// Matching takes at most len(path) times len(expanded pattern) steps and allocates nothing. It
// never goes back to an earlier segment, and within a segment only to the latest star. Paths MUST
// be clean: no empty, "." or ".." segments, and no slash at the end.
//
// Nothing here touches a file system. Everything is immutable once made, and safe for concurrent
// use.
package glob

import (
	"fmt"
	"math/bits"
	"strings"
)

// Limits of one pattern: a hostile one must be cheap to refuse.
const (
	MaxLength       = 1 << 10 // bytes as written
	MaxAlternatives = 256     // combinations of braces
	maxTokens       = 1 << 14 // characters over all combinations
	maxSegments     = 63      // after the leading literal ones: the bits of State, less one
)

// Options is how a pattern is read. The zero value is the strict dialect of the package comment.
type Options struct {
	// Fold, when set, maps every run of literal characters. Then the pattern can be matched against
	// names that went through the same mapping. ends says that the run ends its segment. A class
	// then matches a character when it holds any of its case variants.
	Fold func(run string, ends bool) string
	// LooseStars reads a ** that does not stand alone as a single star, as git and ripgrep do.
	// Otherwise it is refused: a rule that covers less than it seems to is worse than none.
	LooseStars bool
}

// SyntaxError is a pattern that means nothing, or nothing certain.
type SyntaxError struct {
	Pattern string
	Offset  int // byte in Pattern that Why is about
	Why     string
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("glob %q, byte %d: %s", e.Pattern, e.Offset, e.Why)
}

// Glob is a compiled pattern.
type Glob struct {
	patterns []*Pattern
}

// Compile reads a pattern. Its errors are *SyntaxError.
func Compile(pattern string, o Options) (*Glob, error) {
	if len(pattern) > MaxLength {
		return nil, &SyntaxError{Pattern: pattern, Offset: MaxLength, Why: "longer than 1024 bytes"}
	}
	return compile(pattern, o)
}

func compile(pattern string, o Options) (*Glob, error) {
	nodes, err := parse(pattern)
	if err != nil {
		return nil, err
	}
	flat, err := expand(pattern, nodes)
	if err != nil {
		return nil, err
	}
	g := &Glob{}
	for _, tokens := range flat {
		p, err := build(pattern, tokens, o)
		if err != nil {
			return nil, err
		}
		g.patterns = append(g.patterns, p)
	}
	return g, nil
}

// Match reports whether the whole of path matches.
func (g *Glob) Match(path string) bool {
	for _, p := range g.patterns {
		if p.Match(path) {
			return true
		}
	}
	return false
}

// Patterns gives the combinations of the braces. The glob matches where one of them does.
func (g *Glob) Patterns() []*Pattern { return g.patterns }

// Pattern is one combination of the braces. Besides Match it can be run segment by segment, for
// callers that walk a tree or keep many patterns in a trie: the path begins with the Literal
// segments, and Step takes each name after them.
type Pattern struct {
	absolute bool
	literal  []string
	rest     []segment
	reach    []State // reach[i]: position i, and those that a ** reaches by matching nothing
}

// State is the set of positions in a Pattern after some segments, one bit each. 0 means that it can
// no longer match.
type State uint64

// Literal gives the leading segments that hold no wildcard, folded if Options.Fold was given. They
// must not be changed.
func (p *Pattern) Literal() []string { return p.literal }

// Start is the state after the Literal segments.
func (p *Pattern) Start() State { return p.reach[0] }

// Step is the state after one more segment called name.
func (p *Pattern) Step(s State, name string) State {
	var next State
	for s != 0 {
		i := bits.TrailingZeros64(uint64(s))
		s &= s - 1
		switch {
		case i == len(p.rest):
		case p.rest[i].anyDepth:
			next |= p.reach[i]
		case p.rest[i].match(name):
			next |= p.reach[i+1]
		}
	}
	return next
}

// Done reports whether the path so far is a match.
func (p *Pattern) Done(s State) bool { return s>>len(p.rest)&1 == 1 }

// Live reports whether a longer path may be a match.
func (p *Pattern) Live(s State) bool { return s&^(1<<len(p.rest)) != 0 }

// Rest reports whether every longer path is a match.
func (p *Pattern) Rest(s State) bool {
	n := len(p.rest)
	return n > 0 && p.rest[n-1].anyDepth && s>>(n-1)&1 == 1
}

// Match reports whether the whole of path matches.
func (p *Pattern) Match(path string) bool {
	if p.absolute {
		if path == "" || path[0] != '/' {
			return false
		}
		path = path[1:]
	} else if path != "" && path[0] == '/' {
		return false
	}
	more := path != ""
	var name string
	for _, want := range p.literal {
		if !more {
			return false
		}
		if name, path, more = strings.Cut(path, "/"); name != want {
			return false
		}
	}
	s := p.Start()
	for more && s != 0 {
		name, path, more = strings.Cut(path, "/")
		s = p.Step(s, name)
	}
	return p.Done(s)
}

// Names is every segment that holds no wildcard, the Literal ones first.
func (p *Pattern) Names() []string {
	names := append([]string{}, p.literal...)
	for i := range p.rest {
		if s := &p.rest[i]; s.shape == shapeLiteral && !s.anyDepth {
			names = append(names, s.pre)
		}
	}
	return names
}
