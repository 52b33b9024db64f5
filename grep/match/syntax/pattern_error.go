package syntax

import (
	"strings"
)

// PatternError names the fault of a pattern, its place, and a pattern to write instead.
type PatternError struct {
	Pattern string
	Offset  int    // byte offset into Pattern
	Why     string // one clause without a final period
	Suggest string // a pattern that is accepted, "" when none is known
	// Multiline says that Suggest is accepted with Options.Multiline only. Where Suggest is "" that goes for
	// the pattern as it stands.
	Multiline bool
}

func (e *PatternError) Error() string {
	s := "bad pattern: " + e.Why
	if e.Suggest != "" {
		s += "; try " + e.Suggest
	}
	return s
}

// MaxPattern is the longest pattern in bytes that Parse takes.
const MaxPattern = 4 << 10

// Options say how a pattern is read; see package match.
type Options struct {
	IgnoreCase bool
	Multiline  bool
	Literal    bool
}

// Parse reads a pattern.
func Parse(pattern string, o Options) (*Tree, *PatternError) {
	if len(pattern) > MaxPattern {
		const why = "pattern is longer than 4 KiB"
		return nil, &PatternError{Pattern: pattern, Offset: MaxPattern, Why: why}
	}
	t, err := parseWith(pattern, o)
	if err != nil {
		return nil, explain(pattern, o, err)
	}
	return t, nil
}

// parseWith parses pattern, or quotes it when it is a literal.
func parseWith(pattern string, o Options) (*Tree, *syntaxError) {
	if !o.Literal {
		return parse(pattern, o)
	}
	if i := invalidAt(pattern); i >= 0 {
		return nil, fail(i, "pattern is not valid UTF-8")
	}
	p := &parser{src: pattern, lines: !o.Multiline}
	p.f = flags{fold: o.IgnoreCase, unicode: true}
	var subs []*Node
	for i, r := range pattern {
		n, err := p.literal(r, i)
		if err != nil {
			return nil, err
		}
		subs = append(subs, n)
	}
	return &Tree{Root: Concat(subs), SawCR: p.sawCR}, nil
}

func explain(pattern string, o Options, e *syntaxError) *PatternError {
	out := &PatternError{Pattern: pattern, Offset: min(e.at, len(pattern)), Why: e.why}
	if fixed := drivePath(pattern); fixed != "" {
		_, err := parseWith(fixed, o)
		if err == nil && len(fixed) <= MaxPattern {
			out.Suggest = fixed
			return out
		}
	}
	if e.needsMultiline {
		o.Multiline = true
		_, err := parseWith(pattern, o)
		out.Multiline = err == nil
		return out
	}
	out.Suggest, out.Multiline = suggest(pattern, o, e)
	return out
}

// suggest repairs pattern by the edits that its errors propose, one after the other. Where there is
// none, or they do not help, it takes the whole pattern literally, unless the pattern was
// understood. multiline says that the suggestion needs Options.Multiline.
func suggest(pattern string, o Options, e *syntaxError) (fixed string, multiline bool) {
	fixed, meant, edited := pattern, e.understood, o
	for range 16 {
		if e == nil || !e.hasFix || e.at+e.fixLen > len(fixed) {
			break
		}
		if e.at > 0 && e.fix != "" && fixed[e.at:min(len(fixed), e.at+e.fixLen)] == e.fix {
			break
		}
		fixed = fixed[:e.at] + e.fix + fixed[e.at+e.fixLen:]
		_, err := parseWith(fixed, edited)
		// The line break comes from the edit, not from the pattern: then Multiline helps.
		if err != nil && err.needsMultiline && err.at >= e.at && err.at < e.at+len(e.fix) {
			edited.Multiline, multiline = true, true
			_, err = parseWith(fixed, edited)
		}
		if err == nil {
			if len(fixed) > MaxPattern {
				break
			}
			return fixed, multiline
		}
		e = err
	}
	if meant {
		return "", false
	}
	quoted := quote(pattern)
	if _, err := parseWith(quoted, o); err == nil && len(quoted) <= MaxPattern {
		return quoted, false
	}
	return "", false
}

// drivePath repairs a pattern that begins like a path of Windows: of "D:\Upper" it makes
// "D:\\Upper". Each backslash before a letter or a digit gets a second one. It gives "" for any
// other pattern.
func drivePath(pattern string) string {
	p := strings.TrimPrefix(pattern, "^")
	if len(p) < 4 || !isLetter(p[0]) || p[1:3] != `:\` || !IsWordByte(p[3]) {
		return ""
	}
	var b strings.Builder
	for i := 0; i < len(pattern); i++ {
		b.WriteByte(pattern[i])
		if pattern[i] != '\\' || i+1 == len(pattern) {
			continue
		}
		if IsWordByte(pattern[i+1]) {
			b.WriteByte('\\')
		}
		i++
		b.WriteByte(pattern[i])
	}
	return b.String()
}

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

// quote escapes the characters that have a meaning in a pattern. Braces that count nothing would need no escape,
// but read better with one.
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
