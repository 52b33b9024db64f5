package glob

import (
	"cmp"
	"strings"
)

// CheckRule tells what is wrong with a pattern for an allow or deny list. It gives nil when the
// pattern can be used. Errors are *SyntaxError.
//
// Such a pattern is for absolute paths: it begins with "/", or with "**/" for any depth. It is
// never expanded (no ~, no variables) and never cleaned. So "." and ".." segments and blanks around
// it are refused: each would make a rule that looks alive and matches nothing.
func CheckRule(pattern string) error {
	_, err := CompileRule(pattern, nil)
	return err
}

// CompileRule compiles a pattern of an allow or deny list, with the checks of CheckRule. fold is
// that of Options.
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
