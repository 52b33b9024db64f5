package edit

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// causeCases are each cause with the least text that shows it. What is to be resent is in the file once.
var causeCases = []struct {
	name, text, seen, old string
	strict                bool // a tier takes it
	cause                 string
	line, end             int
	resend                string
}{
	{"tabs for spaces", "func f() {\n\tif x {\n\t\ty()\n\t}\n}\n", "", "    if x {\n        y()\n    }", true, CauseTabsVsSpaces, 2, 4, "\tif x {\n\t\ty()\n\t}"},
	{"too deep", "def f():\n    a = 1\n    b = 2\n", "", "        a = 1\n        b = 2", true, CauseIndentation, 2, 3, "    a = 1\n    b = 2"},
	{"no rule for the indentation", "if x:\n    a()\n        b()\n", "", "if x:\n    a()\n    b()", false, CauseIndentation, 1, 3, "if x:\n    a()\n        b()"},
	{"blanks at line ends", "a() {  \n  b()\n}\n", "", "a() {\n  b()\n}", true, CauseTrailingBlanks, 1, 3, "a() {  \n  b()\n}"},
	{"blanks inside", "x  =  foo(1)\n", "", "x = foo(1)", false, CauseWhitespace, 1, 1, "x  =  foo(1)"},
	{"a blank line more", "a = 1\nb = 2\n", "", "a = 1\n\nb = 2", false, CauseWhitespace, 1, 2, "a = 1\nb = 2"},
	{"typographic quotes", "say “hi” now\n", "", `say "hi" now`, true, CauseQuotes, 1, 1, "say “hi” now"},
	{"no-break space", "10\u00a0km\n", "", "10 km", true, CauseUnicodeSpace, 1, 1, "10\u00a0km"},
	{"decomposed", "cafe\u0301 au lait\n", "", "café au lait", true, CauseNormalisation, 1, 1, "cafe\u0301 au lait"},
	{"escaped", "print(\"a\")\n", "", `print(\"a\")`, true, CauseEscaped, 1, 1, `print("a")`},
	{"entity", "if a < b && c {\n", "", "if a &lt; b &amp;&amp; c {", true, CauseEntity, 1, 1, "if a < b && c {"},
	{"line numbers", "one\ntwo\nthree\n", "", "     2→two\n     3→three", true, CauseLineNumbers, 2, 3, "two\nthree"},
	{"case", "SELECT name FROM users;\n", "", "select name from users;", false, CauseCase, 1, 1, "SELECT name FROM users;"},
	{"stale", "a\ncompletely_different(1)\nc\n", "a\nold_line(2)\nc\n", "old_line(2)", false, CauseStale, 2, 2, "completely_different(1)"},
	{"another word", "func area(width int) int {\n\treturn width\n}\n", "", "func area(height int) int {", false, CauseUnknown, 1, 1, "func area(width int) int {"},
	{"nothing like it", "alpha\nbeta\n", "", "zzz qqq", false, CauseUnknown, 0, 0, ""},
	{"an empty file", "", "", "zzz", false, CauseUnknown, 0, 0, ""},
	{"a blank line too few in strict", "\n\n  \n", "", "\n\n\n", true, CauseUnknown, 0, 0, ""},
}

// TestCauses: each cause, in both modes where both refuse.
func TestCauses(t *testing.T) {
	for _, c := range causeCases {
		t.Run(c.name, func(t *testing.T) {
			_, err := Apply([]byte(c.text), []Edit{{Old: c.old, New: "NEW"}}, Options{Strict: c.strict, Seen: []byte(c.seen)})
			e, ok := err.(*NoMatchError)
			if !ok {
				t.Fatalf("%T %v", err, err)
			}
			if e.Cause != c.cause || e.Line != c.line || e.EndLine != c.end || e.Resend != c.resend {
				t.Fatalf("%+v", e)
			}
			if e.Resend == "" {
				return
			}
			if r, err := Apply([]byte(c.text), []Edit{{Old: e.Resend, New: "NEW"}}, Options{Strict: true}); err != nil || r.Steps[0].Strategy != StrategyExact {
				t.Errorf("resent: %v", err)
			}
			if _, err := Apply([]byte(c.text), []Edit{{Old: c.old, New: indented(c.old, "NEW")}}, Options{}); (err == nil) != c.strict {
				t.Errorf("tolerant: %v", err)
			}
		})
	}
}

// TestCausesAreProven: a cause is named only where nothing else keeps the texts apart. So none is named where another word stands in
// old_string too, and where letter case differs beside it only what was pasted or escaped.
func TestCausesAreProven(t *testing.T) {
	t.Parallel()
	word := regexp.MustCompile(`[a-z]{4,}`)
	n := 0
	for _, c := range causeCases {
		if c.seen != "" || c.cause == CauseUnknown {
			continue
		}
		for _, strict := range []bool{true, false} {
			for _, old := range []string{word.ReplaceAllString(c.old, "qqzzqq"), strings.ToUpper(c.old)} {
				other := strings.Contains(old, "qqzzqq")
				if old == c.old || strings.ToUpper(c.text) == c.text || !other && (c.cause == CauseCase || c.cause == CauseTrailingBlanks) {
					continue
				}
				n++
				_, err := Apply([]byte(c.text), []Edit{{Old: old, New: "x"}}, Options{Strict: strict})
				switch e, ok := err.(*NoMatchError); {
				case !ok || e.Cause == CauseUnknown:
				case !other && slices.Contains([]string{CauseEscaped, CauseEntity, CauseLineNumbers}, e.Cause):
				default:
					t.Errorf("%s: %s named of %q, there is %q", c.name, e.Cause, old, e.Resend)
				}
			}
		}
	}
	if n < 25 {
		t.Errorf("only %d", n)
	}
}

// indented puts the blanks before l that old begins with.
func indented(old, l string) string { return string(indentOf([]byte(old))) + l }

// TestMinified: of a line that is the whole file a refusal shows the place that is meant, not the beginning, and no more than that.
func TestMinified(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&b, "function f%d(a,b){return a.x%d>b.y?a:g(b,%d)}", i, i%7, i*i)
	}
	text := b.String()
	for _, old := range []string{
		"function f1500(a, b) { retrun a.x2>b.y ? a : g(b, 2250001) }",
		"func f1500(a,b){yield a?.x2>b.why?.a:gg(bb, 2250000)}",
		"function f1500(a,b)\n{\n  return a.x2 > c.y ? c : g(b,\n 2250000)",
	} {
		old = strings.ReplaceAll(old, `\n`, "\n")
		_, err := Apply([]byte(text), []Edit{{Old: old, New: "x"}}, Options{})
		e, ok := err.(*NoMatchError)
		if !ok || !strings.Contains(e.Region+e.Resend, "a.x2>b.y?a:g(b,2250000)") || len(e.Region)+len(e.Resend) > 3000 {
			t.Errorf("%q: %v %+v", old, err, e)
		}
	}
	_, err := Apply([]byte(text), []Edit{{Old: "a.x2>b.y", New: "x"}}, Options{})
	many, ok := err.(*NotUniqueError)
	if !ok || len(many.Contexts) != 3 {
		t.Fatalf("%v", err)
	}
	for _, c := range many.Contexts {
		if len(c.OldString) > 300 || strings.Count(text, c.OldString) != 1 || !strings.Contains(c.OldString, "a.x2>b.y") {
			t.Errorf("%q", c.OldString)
		}
	}
}

// TestStrict: exact and line endings only, whatever else would match.
func TestStrict(t *testing.T) {
	for _, c := range []struct{ text, old, strategy string }{
		{"a\nb\n", "a\nb", StrategyExact},
		{"a\r\nb\r\n", "a\nb", StrategyLineEndings},
		{"a\nb\n", "a\r\nb", StrategyLineEndings},
		{"a\rb\r", "a\nb", ""},
		{"a  \nb\n", "a\nb", ""},
		{"a\nb", "b\n", ""},
		{"“a”\n", `"a"`, ""},
		{"\ta\n\tb\n", "a\nb", ""},
		{"e\u0301\n", "é", ""},
		{"a\"b\n", `a\"b`, ""},
	} {
		r, err := Apply([]byte(c.text), []Edit{{Old: c.old, New: "NEW"}}, Options{Strict: true})
		switch {
		case c.strategy == "" && err == nil:
			t.Errorf("%q in %q: by %s", c.old, c.text, r.Steps[0].Strategy)
		case c.strategy != "" && (err != nil || r.Steps[0].Strategy != c.strategy):
			t.Errorf("%q in %q: %v", c.old, c.text, err)
		}
	}
}
