package edit

import (
	"slices"
	"strings"
	"testing"
)

// TestAmbiguous: where the place is certain and the new text is not, both readings are given, and each applies as it says.
func TestAmbiguous(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, text, old, new string
		want                 []string // the text after either; nil: there are not two
	}{
		{"an escape in what is new", "a = 1\nb = 2\n", `a = 1\nb = 2`, `a = 1\np = '\n'\nb = 2`, []string{"a = 1\np = '\n'\nb = 2\n", "a = 1\n" + `p = '\n'\n` + "b = 2\n"}},
		{"an entity in a string", "if (a < b) x();\n", "if (a &lt; b) x();", `if (a &lt; b) x("&lt;");`, []string{"if (a < b) x(\"<\");\n", "if (a < b) x(\"&lt;\");\n"}},
		{"odd quotes in what is new", "say(\"a\") # one\n", "say(“a”) # one", "say(“a”) # it’s one", []string{"say(\"a\") # it's one\n", "say(\"a\") # it’s one\n"}},
		{"lines that may stay in their column", "if x:\n    a()\n    b()\n", "a()\nb()", "a()\ncat <<EOF\ntext\nEOF\nb()",
			[]string{"if x:\n    a()\n    cat <<EOF\n    text\n    EOF\n    b()\n", "if x:\n    a()\ncat <<EOF\ntext\nEOF\n    b()\n"}},
		{"a block of which the first line was quoted without its indentation", "if x:\n    say(\"a\")\n", "say(“a”)", "if y:\n  say(“a”)",
			[]string{"if x:\n    if y:\n      say(\"a\")\n", "if x:\n    if y:\n  say(\"a\")\n"}},
		{"the same, and entities", "if x:\n    if a < b:\n        c()\n", "if a &lt; b:", "d()\nif a &lt; b:",
			[]string{"if x:\n    d()\n    if a < b:\n        c()\n", "if x:\n    d()\nif a < b:\n        c()\n"}},
		{"a sign at the end, and lines below", "{\n\ta();\n}\n", "{\n    a()", "{\n    a()\n    b()", []string{"{\n\ta();\n\tb()\n}\n", "{\n\ta();\n\tb();\n}\n"}},
		{"numbers that do not follow", "a\nb\n", "1:a\n2:b", "1:a\n7:c\n2:b", []string{"1:a\n7:c\n2:b\n", "a\nc\nb\n"}},
		{"the sign stays where the last line is the same", "{\n\ta();\n}\n", "{\n    a()", "{\n    b()\n    a()", nil},
		{"a line beside an empty one", "f(one)\n\ng(two)\n", "f(one)\ng(two)", "f(one)\nh(three)\ng(two)", []string{"f(one)\nh(three)\n\ng(two)\n", "f(one)\n\nh(three)\ng(two)\n"}},
		{"the other quotes", "call(\"first\", 1)\n", "call('first', 1)", "call('first', g('x'))", []string{"call(\"first\", g(\"x\"))\n", "call(\"first\", g('x'))\n"}},
		{"quotes, and a letter that may be another name", "call(\"first\", db)\n", "call('first', dc)", "call('first', g('x'))", nil},
		{"a line before the middle of one", "    /*/Arrange for callable to be called (this\n", "    Arrange for calable to be called (this", "    x()\n    Arrange for calable to be called (this", nil},
		{"one reading is enough", "if (a < b) x();\n", "if (a &lt; b) x();", "if (a &lt; b) y();", nil},
		{"two places", "x(\"a\")\nx(\"a\")\n", `x(\"a\")`, `x(\"b\")`, nil},
		{"a run of signs", "a\n------------\nb\n", "—————", "—————\nc", nil},
		{"nothing like it", "x\n", `y \" z`, `y \" "`, nil},
	} {
		_, err := Apply([]byte(c.text), []Edit{{Old: c.old, New: c.new}}, Options{})
		e, _ := err.(*NoMatchError)
		if c.want == nil {
			if e != nil && e.Readings != nil {
				t.Errorf("%s: %+v", c.name, e.Readings)
			}
			continue
		}
		if e == nil || e.Repaired != nil {
			t.Errorf("%s: %v, %+v", c.name, err, e)
			continue
		}
		var got []string
		for _, r := range e.Readings {
			done, err := Apply([]byte(c.text), []Edit{r}, Options{Strict: true})
			if err != nil {
				t.Errorf("%s: %+v: %v", c.name, r, err)
				continue
			}
			got = append(got, string(done.Content))
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %s\ngot\n%s", c.name, e.Detail, strings.Join(got, "\n--\n"))
		}
	}
}
