package edit

import (
	"strings"
	"testing"
)

// TestByMerge: old, as the file has it, and new merge where only the spelling differs; "" is not offered.
func TestByMerge(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, file, old, new, want string }{
		{"a letter, and new repeats it", "count(first, 1)", "countt(first, 1)", "countt(first, 2)", "count(first, 2)"},
		{"a letter, and new puts another word there", "count(first, one)", "countt(first, one)", "bar(first, one)", "bar(first, one)"},
		{"a letter, deleted", "count(first)\nb", "countt(first)\nb", "b", "b"},
		{"new uses the damaged word again", "count(first, one)", "countt(first, one)", "countt(first) + countt(one)", ""},
		{"a part of a name", "count_step(first)", "Count_step(first)", "Count_limit(first)", ""},
		{"another word is another thing", "call(height, 1)", "call(width, 1)", "call(width, 2)", ""},
		{"another number is another thing", "call(first, 11)", "call(first, 10)", "call(second, 10)", ""},
		{"another sign is another thing", "total -= first(one)", "total += first(one)", "total += first(two)", ""},
		{"blanks inside", "call(aa,bb) = cc", "call(aa, bb) = cc", "call(aa, bb) = dd", "call(aa,bb) = dd"},
		{"blanks inside, and signs of which nothing is known", "aa = bb", "aa=bb", "aa=bb\nx-=y", ""},
		{"the other quotes", "call(\"first\", 1)", "call('first', 1)", "call('first', 2)", "call(\"first\", 2)"},
		{"the other quotes, also in what is new", "call(\"first\", 1)", "call('first', 1)", "call('first', 'b')", ""},
		{"a sign at the end of the line", "first(one);\nsecond(two);", "first(one)\nsecond(two)", "first(one)\nx()\nsecond(two)", ""},
		{"a sign at the end of the line, and a change within", "first(one);\nsecond(two);", "first(one)\nsecond(two)", "first(uno)\nsecond(two)", "first(uno);\nsecond(two);"},
		{"on which side of an empty line", "first\n\nsecond", "first\nsecond", "first\nthird\nsecond", ""},
		{"an empty line, and a change elsewhere", "first\n\nsecond one", "first\nsecond one", "first\nsecond two", "first\n\nsecond two"},
		{"an empty line of old, and new has its own", "first\nsecond one", "first\n\nsecond one", "first\n\nthird\n\nsecond one", ""},
		{"all capitals lost", "getName(one)", "getname(one)", "getname(two)", ""},
		{"two places", "countdown(first, 1)\ncountdown(firsts, 1)", "countdown(firstt, 1)", "countdown(firstt, 2)", ""},
		{"a list that is elided", "x {\na\ny\nb\ny", "x {\n...\ny", "x {\n...\nz", ""},
		{"a fence around both", "first(one)", "```\nfirst(one)\n```", "```\nfirst(two)\n```", ""},
		{"a column of a diff", "first one\nsecond two", "-first one\n second two", "+third one\n second two", ""},
		{"lines before the middle of one", "x = first(one, two)", "firs(one, two)", "log()\nfirs(one, two)", ""},
		{"CRLF", "count(first, 1)\r\nnext(one)", "countt(first, 1)\nnext(one)", "countt(first, 2)\nnext(one)", "count(first, 2)\r\nnext(one)"},
		{"a grapheme", "say hello to 👨‍👩‍👧 of them", "say helo to 👨‍👩‍👧 of them", "say helo to 👨‍👩‍👧 of us", "say hello to 👨‍👩‍👧 of us"},
	} {
		for _, strict := range []bool{false, true} {
			text := "// before\n" + c.file + "\n// behind\n"
			_, err := Apply([]byte(text), []Edit{{Old: c.old, New: c.new}}, Options{Strict: strict})
			e, ok := err.(*NoMatchError)
			switch {
			case !ok:
				t.Errorf("%s: %v", c.name, err)
			case c.want == "" && e.Repaired != nil:
				t.Errorf("%s: offered %+v", c.name, *e.Repaired)
			case c.want != "" && e.Repaired == nil:
				t.Errorf("%s: nothing is offered: %+v", c.name, e)
			case c.want != "":
				r, err := Apply([]byte(text), []Edit{*e.Repaired}, Options{Strict: true})
				if err != nil || string(r.Content) != strings.Replace(text, c.file, c.want, 1) {
					t.Errorf("%s: %v, %+v", c.name, err, *e.Repaired)
				}
			}
		}
	}
}
