package match

import (
	"errors"
	"testing"
)

// TestSuggest: what is offered instead of a bad pattern means what its writer meant, or nothing is
// offered.
func TestSuggest(t *testing.T) {
	for _, c := range []struct {
		pattern, want string
		o             Options
		multiline     bool
	}{
		{pattern: `a\p{Emoji}+`, want: `a[\x{2600}-\x{27BF}\x{1F300}-\x{1FAFF}]+`},
		{pattern: `[\p{Emoji}a]`, want: `[[\x{2600}-\x{27BF}\x{1F300}-\x{1FAFF}]a]`},
		{pattern: "foo(", want: `foo\(`},
		{pattern: "foo)", want: `foo\)`},
		{pattern: "[abc", want: `\[abc`},
		{pattern: "*x", want: `\*x`},
		{pattern: `D:\bin\new\.*`, want: `D:\\bin\\new\.*`},
		{pattern: "a[", want: `a\[`},
		{pattern: `a\`, want: `a\\`},
		{pattern: `x\h+`, want: `x[ \t]+`},
		{pattern: "x{3,2}", want: "x{2,3}"},
		{pattern: "a{1,100000}", want: "a{1,}"},
		{pattern: "(?:a{1,100000}){0,5000}", want: "(?:a{1,}){0,}"},
		{pattern: "a{100000}"},
		{pattern: `a\nb`, multiline: true},
		{pattern: "a\nb", multiline: true},
		{pattern: `a\Rb`, want: `a\r?\nb`, multiline: true},
		{pattern: `a\R`, want: `a\r?\n`, multiline: true},
		{pattern: `a\Rb`, want: `a\r?\nb`, o: Options{Multiline: true}},
		{pattern: `(0\R`, want: `\(0\r?\n`, multiline: true},
		{pattern: `\R\`, want: `\r?\n\\`, multiline: true},
		{pattern: `D:\Upper\x`, want: `D:\\Upper\\x`},
		{pattern: `c:\temp\new.*\.txt`, want: `c:\\temp\\new.*\.txt`},
		{pattern: `a[\n]`, multiline: true},
	} {
		_, err := Compile(c.pattern, c.o)
		var e *PatternError
		if !errors.As(err, &e) {
			t.Errorf("%q: %v", c.pattern, err)
			continue
		}
		if e.Suggest != c.want || e.Multiline != c.multiline {
			t.Errorf("%q: suggests %q, multiline %v; want %q, %v", c.pattern, e.Suggest, e.Multiline, c.want, c.multiline)
		}
		if e.Multiline {
			c.o.Multiline = true
			if c.want != "" {
				c.pattern = c.want
			}
			if _, err := Compile(c.pattern, c.o); err != nil {
				t.Errorf("%q with multiline: %v", c.pattern, err)
			}
		}
	}
}
