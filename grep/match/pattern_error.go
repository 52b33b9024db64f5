package match

import (
	"strings"
)

// PatternError says what is wrong with a pattern, where, and what to write instead.
type PatternError struct {
	Pattern string
	Offset  int    // byte offset into Pattern
	Why     string // one clause without a final period
	Suggest string // a pattern that is accepted, "" when none is known
	// Multiline: the pattern as it stands is accepted with Options.Multiline.
	Multiline bool
}

func (e *PatternError) Error() string {
	s := "bad pattern: " + e.Why
	if e.Suggest != "" {
		s += "; try " + e.Suggest
	}
	return s
}

// parseWith parses pattern, or quotes it when it is a literal.
func parseWith(pattern string, o Options) (*tree, *syntaxError) {
	if !o.Literal {
		return parse(pattern, o)
	}
	if i := invalidAt(pattern); i >= 0 {
		return nil, fail(i, "pattern is not valid UTF-8")
	}
	p := &parser{src: pattern, lines: !o.Multiline}
	p.f = flags{fold: o.IgnoreCase, unicode: true}
	var subs []*node
	for i, r := range pattern {
		n, err := p.literal(r, i)
		if err != nil {
			return nil, err
		}
		subs = append(subs, n)
	}
	return &tree{root: concatNode(subs), sawCR: p.sawCR}, nil
}

func explain(pattern string, o Options, e *syntaxError) *PatternError {
	out := &PatternError{Pattern: pattern, Offset: min(e.off, len(pattern)), Why: e.why}
	if e.lines {
		o.Multiline = true
		t, err := parseWith(pattern, o)
		out.Multiline = err == nil && (t.exotic == "" || !o.NoFallback)
		return out
	}
	out.Suggest = suggest(pattern, o, e)
	return out
}

// suggest repairs pattern by the edits that its errors propose, one after the other; where there is none, or they do not help,
// it takes the whole pattern literally, unless that was surely not meant.
func suggest(pattern string, o Options, e *syntaxError) string {
	fixed, meant := pattern, e.meant
	for range 16 {
		if e == nil || !e.has || e.off+e.n > len(fixed) {
			break
		}
		if e.off > 0 && e.fix != "" && fixed[e.off:min(len(fixed), e.off+e.n)] == e.fix {
			break
		}
		fixed = fixed[:e.off] + e.fix + fixed[e.off+e.n:]
		t, err := parseWith(fixed, o)
		if err == nil {
			meant = meant || t.exotic != ""
			if t.exotic != "" && o.NoFallback || len(fixed) > MaxPattern {
				break
			}
			return fixed
		}
		e = err
	}
	if meant {
		return ""
	}
	quoted := quote(pattern)
	if t, err := parseWith(quoted, o); err == nil && t.exotic == "" && len(quoted) <= MaxPattern {
		return quoted
	}
	return ""
}

// quote escapes what has a meaning in a pattern; braces that count nothing need none, but read better escaped.
func quote(s string) string {
	var b strings.Builder
	for i := range len(s) {
		if strings.IndexByte(`\.+*?()|[]{}^$`, s[i]) >= 0 {
			b.WriteByte('\\')
		}
		b.WriteByte(s[i])
	}
	return b.String()
}
