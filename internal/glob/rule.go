package glob

import (
	"cmp"
	"slices"
	"strings"
)

// CheckRule checks a pattern for an allow or deny list. It gives nil when the pattern can be
// used. Errors are *SyntaxError.
//
// Such a pattern is for absolute paths: it begins with "/", or with "**/" for any depth. It is
// never expanded (no ~, no variables) and never cleaned. So "." and ".." segments and blanks around
// it are refused: each would make a rule that looks alive and matches nothing.
func CheckRule(pattern string) error {
	_, err := CompileRule(pattern, nil)
	return err
}

// CompileRule compiles a pattern of an allow or deny list, with the checks of CheckRule. fold is
// as in Options.
func CompileRule(pattern string, fold func(run string, ends bool) string) (*Glob, error) {
	fail := func(at int, why string) (*Glob, error) {
		return nil, &SyntaxError{Pattern: pattern, Offset: at, Why: why}
	}
	switch {
	case pattern == "":
		return fail(0, "it is empty; leave it out")
	case pattern != strings.TrimLeft(pattern, " \t\r\n"):
		return fail(0, "begins with a blank")
	case pattern != strings.TrimRight(pattern, " \t\r\n"):
		return fail(len(strings.TrimRight(pattern, " \t\r\n")), "ends in a blank")
	case pattern[0] == '~':
		return fail(0, "~ is not expanded; write the home directory out")
	case pattern[0] == '$':
		return fail(0, "variables are not expanded; write the directory out")
	case pattern[0] == '!':
		return fail(0, "there is no negation; use the other list")
	}
	absolute := pattern
	if pattern == "**" || strings.HasPrefix(pattern, "**/") {
		absolute = "/" + pattern
	} else if pattern[0] != '/' {
		return fail(0, "not absolute; begin with / or, for any depth, with **/")
	}
	g, err := Compile(absolute, Options{Fold: fold})
	if err == nil {
		err = refuseDots(absolute)
	}
	if err != nil {
		if e, ok := err.(*SyntaxError); ok && absolute != pattern {
			return fail(max(e.Offset-1, 0), e.Why)
		}
		return nil, err
	}
	for _, p := range g.patterns {
		if !p.absolute {
			return fail(0, "not absolute in every alternative; begin with / or **/")
		}
	}
	return g, nil
}

// CompileClosing compiles a pattern that closes something. It is CompileRule, and matches what the
// pattern names by its own letters too.
func CompileClosing(pattern string, fold func(run string, ends bool) string) (*Glob, error) {
	g, err := CompileRule(pattern, fold)
	if err != nil {
		return nil, err
	}
	for _, reading := range Letters(pattern) {
		more, err := compile(reading, Options{Fold: fold})
		if e, ok := err.(*SyntaxError); ok {
			return nil, &SyntaxError{Pattern: pattern, Why: e.Why}
		}
		g.patterns = append(g.patterns, more.patterns...)
	}
	return g, nil
}

// maxSigns bounds the readings of a pattern: in one that has more signs, all of a kind are read alike.
const maxSigns = 5

// Letters gives the patterns that a valid rule stands for when its classes, braces or backslashes
// are letters of a name, as in the directories [id] and {lang} of web frameworks. The signs of one
// kind within one segment are read alike. Stars and question marks match themselves anyway. For
// example, Letters("/app/[id]/{a,b}") is /app/\[id\]/{a,b}, /app/[id]/\{a\,b\} and
// /app/\[id\]/\{a\,b\}.
func Letters(pattern string) (readings []string) {
	if pattern == "**" || strings.HasPrefix(pattern, "**/") {
		pattern = "/" + pattern
	}
	nodes, err := parse(pattern)
	if err != nil {
		return nil
	}
	type sign struct {
		segment int
		op      op
	}
	segments := true // tell them apart
	of := func(n node) (s sign) {
		if s.op = n.op; segments {
			s.segment = strings.Count(pattern[:n.at], "/")
		}
		return s
	}
	var signs []sign
	collect := func(n node) bool {
		if !slices.Contains(signs, of(n)) {
			signs = append(signs, of(n))
		}
		return false
	}
	respell(pattern, nodes, collect)
	if len(signs) > maxSigns {
		segments, signs = false, nil
		respell(pattern, nodes, collect)
	}
	for set := 1; set < 1<<len(signs); set++ {
		readings = append(readings, respell(pattern, nodes, func(n node) bool {
			return set>>slices.Index(signs, of(n))&1 == 1
		}))
	}
	return readings
}

// respell writes a pattern anew, with those of its signs as letters that letter says.
func respell(pattern string, nodes []node, letter func(node) bool) string {
	var b strings.Builder
	at := 0
	var write func([]node)
	write = func(nodes []node) {
		for _, n := range nodes {
			if n.end == 0 {
				continue
			}
			if letter(n) {
				b.WriteString(pattern[at:n.at] + Literal(pattern[n.at:n.end]))
				at = n.end
				continue
			}
			for _, g := range n.groups {
				write(g)
			}
		}
	}
	write(nodes)
	return b.String() + pattern[at:]
}

// refuseDots looks for "." and ".." segments in every combination. The pattern is known to parse.
func refuseDots(pattern string) error {
	g, err := Compile(pattern, Options{})
	if err != nil {
		return err
	}
	bad := func(name string) error {
		at := 0
		for _, end := range []string{"/", ",", "}", ""} {
			if i := strings.Index(pattern+"\x00", "/"+name+cmp.Or(end, "\x00")); i >= 0 {
				at = i + 1
				break
			}
		}
		why := `a "` + name + `" segment is never part of a real path`
		return &SyntaxError{Pattern: pattern, Offset: at, Why: why}
	}
	for _, p := range g.patterns {
		for _, name := range p.literal {
			if name == "." || name == ".." {
				return bad(name)
			}
		}
		for _, s := range p.rest {
			if s.shape == shapeLiteral && !s.anyDepth && (s.pre == "." || s.pre == "..") {
				return bad(s.pre)
			}
		}
	}
	return nil
}

// Literal is the pattern that matches path alone.
func Literal(path string) string { return literal.Replace(path) }

var literal = strings.NewReplacer("*", `\*`, "?", `\?`, "[", `\[`, "]", `\]`, "{", `\{`, "}", `\}`,
	"!", `\!`, ",", `\,`, `\`, `\\`)
