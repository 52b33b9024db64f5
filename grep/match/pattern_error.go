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
	// Multiline: Suggest, or where it is "" the pattern as it stands, is accepted with Options.Multiline only.
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
	if fixed := drivePath(pattern); fixed != "" {
		if t, err := parseWith(fixed, o); err == nil && (t.exotic == "" || !o.NoFallback) && len(fixed) <= MaxPattern {
			out.Suggest = fixed
			return out
		}
	}
	if e.lines {
		o.Multiline = true
		t, err := parseWith(pattern, o)
		out.Multiline = err == nil && (t.exotic == "" || !o.NoFallback)
		return out
	}
	out.Suggest, out.Multiline = suggest(pattern, o, e)
	return out
}

// suggest repairs pattern by the edits that its errors propose, one after the other; where there is none, or they do not help,
// it takes the whole pattern literally, unless that was surely not meant. multiline: what it gives needs Options.Multiline.
func suggest(pattern string, o Options, e *syntaxError) (fixed string, multiline bool) {
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
			return fixed, false
		}
		if err.lines && err.off >= e.off && err.off < e.off+len(e.fix) { // the edit asks for it, not the pattern
			o.Multiline = true
			if _, err = parseWith(fixed, o); err == nil {
				return fixed, true
			}
		}
		e = err
	}
	if meant {
		return "", false
	}
	quoted := quote(pattern)
	if t, err := parseWith(quoted, o); err == nil && t.exotic == "" && len(quoted) <= MaxPattern {
		return quoted, false
	}
	return "", false
}

// drivePath is a pattern that begins as a path of Windows does, "D:\\Upper", with a second backslash for each that stands before a
// letter or a digit; "" for any other pattern.
func drivePath(pattern string) string {
	p := strings.TrimPrefix(pattern, "^")
	if len(p) < 4 || !isLetter(p[0]) || p[1:3] != `:\` || !isWordByte(p[3]) {
		return ""
	}
	var b strings.Builder
	for i := 0; i < len(pattern); i++ {
		b.WriteByte(pattern[i])
		if pattern[i] != '\\' || i+1 == len(pattern) {
			continue
		}
		if isWordByte(pattern[i+1]) {
			b.WriteByte('\\')
		}
		i++
		b.WriteByte(pattern[i])
	}
	return b.String()
}

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

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
