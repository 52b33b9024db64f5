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

// TestOfferedByRule: what each rule offers, and what looks like it and is left alone.
func TestOfferedByRule(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ rule, text, old, new, want string }{
		{"alike", "countdown(aaaa, bbbb, cccc)\n", "countdown(aaaa, bbxbb, cccc)", "countdown(aaaa, bbxbb, dddd)", "countdown(aaaa, bbbb, dddd)\n"},
		{"alike: a part of a word", "countdown(aaaa, bbbb, cccc)\n", "down(aaaa, bbxbb, cccc)", "down(aaaa, bbxbb, dddd)", ""},
		{"dashes", "one -- two three four\n", "one — two three four", "one — two three five", "one -- two three five\n"},
		{"dashes: one too many", "one two three four\n", "one — two three four", "one — two three five", "one two three five\n"},
		{"written as the file escapes", `{"a": "say \"hi\" to them"}` + "\n", `say "hi" to them`, `say "hi" to us`, `{"a": "say \"hi\" to us"}` + "\n"},
		{"written as the file escapes: new adds some", `{"a": "say \"hi\" to them"}` + "\n", `say "hi" to them`, `say "hi" to "us"`, ""},
		{"a list is not numbered lines", "alpha one\nbeta two\n", "1. alpha one\n2. beta two", "1. alpha one\n2. gamma", ""},
	} {
		got := c.text
		r, err := Apply([]byte(c.text), []Edit{{Old: c.old, New: c.new}}, Options{})
		if e, ok := err.(*NoMatchError); ok && e.Repaired != nil {
			r, err = Apply([]byte(c.text), []Edit{*e.Repaired}, Options{Strict: true})
		}
		if err == nil {
			got = string(r.Content)
		}
		if want := c.want; got != want && (want != "" || got != c.text) {
			t.Errorf("%s: %v\n%q, want %q", c.rule, err, got, want)
		}
	}
}

// TestNewMayBeDamagedToo: the place is found, but New adds what may be damaged as Old is. Nothing is written.
func TestNewMayBeDamagedToo(t *testing.T) {
	for _, c := range []struct {
		name, text, old, new string
		all                  bool
	}{
		{"a path in a raw string", "a = 1\nb = 2\n", `a = 1\nb = 2`, `a = 1\np = r'C:\new\table'\nb = 2`, false},
		{"a tab in a literal", "\tx = 1\n", `\tx = 1`, `\tx = re('\t')`, false},
		{"a break in a literal", "a()\nb()\n", `a()\nb()`, `a()\nputs 'x\n'\nb()`, false},
		{"a break in prose", "Hello\nWorld\n", `Hello\nWorld`, `Hello\nuse \n to break\nWorld`, false},
		{"an escape cut in two", "a\nb\n", `a\nb`, `a\tb`, false},
		{"an entity in a literal", "if (a < b) x();", "if (a &lt; b) x();", `if (a &lt; b) x("&lt;");`, false},
		{"nothing but a quote", "It’s John’s book.", "'", `"`, true},
		{"nothing but a dash", "pages 3–7, a — b, −5", "-", "_", true},
		{"nothing but dots", "wait… what", "...", "<rest>", false},
		{"no-break indentation", "def f():\n    a = 1\n", "\u00a0\u00a0\u00a0\u00a0a = 1", "\u00a0\u00a0\u00a0\u00a0a = 1\n\u00a0\u00a0\u00a0\u00a0c = 3", false},
		{"curly quotes of a literal", "x := flag.Int(\"n\", 1)\n", "x := flag.Int(“n”, 1)", "y := flag.Int(“n”, 2)", false},
		{"straight quotes in prose", "say “hi” to ‘Bob’\n", `say "hi" to 'Bob'`, `say "yo"`, false},
		{"a mark in the middle", "a\nb\n", "\ufeffb", "b\n\ufeffc", false},
		{"accents", "cafe\u0301 au lait\n", "café au lait", "café au lait, naïf", false},
		{"spaces of the words rewritten", "foo a\u00a0b bar\n", "foo a b bar", "FOO a b BAR", false},
		{"blanks behind the last line", "a\n    b = 1\t\nc\n", "a \n    b = 1", "a \n    b = 1\nextra", false},
		{"a blank line that is none", "a\nb\n", "a  \nb  ", "a  \n  \nb  ", false},
		{"a here-document", "f() {\n    a\n    b\n}\n", "a\nb", "a\ncat <<EOF\nx\nEOF\nb", false},
		{"a raw string", "def f():\n    a\n    b\n", "a\nb", "a\ns = \"\"\"\ntext\n\"\"\"\nb", false},
		{"a directive", "int f() {\n    a;\n    b;\n}\n", "a;\nb;", "a;\n#ifdef X\nc;\n#endif\nb;", false},
		{"a directive, lines less deep", "int f() {\n    a;\n    b;\n}\n", "  a;\n  b;", "  a;\n#ifdef X\n  c;\n#endif\n  b;", false},
		{"one depth and two rules", "def f():\n    a = 1\n    b = 2\n", "  a = 1\n  b = 2", "  a = 1\n  if a:\n    c = 2", false},
		{"two tabs are eight or four and four", "f {\n\tg {\n\t\ta\n\t}\n}\n", "        a", "        a {\n                b\n        }", false},
		{"moved to the left each for itself", "f() {\n\tif a {\n\t\tb\n\t}\n\tc\n}\n", "\tb\n}\nc", "all(new)", false},
	} {
		r, err := Apply([]byte(c.text), []Edit{{Old: c.old, New: c.new, All: c.all}}, Options{})
		if e, ok := err.(*NoMatchError); !ok || e.Detail == "" || e.Cause == CauseUnknown {
			t.Errorf("%s: %v, %+v", c.name, err, r)
		}
	}
}

// TestWhatNewLeavesAsItIs: the lines and words that New shares with Old stay as the file has them.
func TestWhatNewLeavesAsItIs(t *testing.T) {
	for _, c := range []editCase{
		{"curly quotes", "It’s “late” – said\n", `It's "late" - said`, `It's "early" - said`, false, "It’s “early” – said\n", StrategyQuotes},
		{"in two places", "It’s one.\nIt’s two.\nIt’s three.\n", "It's one.\nIt's two.\nIt's three.", "It's 1.\nIt's two.\nIt's 3.", false, "It’s 1.\nIt’s two.\nIt’s 3.\n", StrategyQuotes},
		{"everywhere", "It’s a’s. It’s b’s.", "It's", "That's", true, "That’s a’s. That’s b’s.", StrategyQuotes},
		{"a hard break", "para one  \npara two\n", "para one\npara two", "para one\npara 2", false, "para one  \npara 2\n", StrategyTrailingBlanks},
		{"a hard break of the line that changes", "para one  \npara two\n", "para one\npara two", "para 1\npara two", false, "para 1  \npara two\n", StrategyTrailingBlanks},
		{"no-break indentation", "def f():\n    a = 1\n", "\u00a0\u00a0\u00a0\u00a0a = 1", "\u00a0\u00a0\u00a0\u00a0a = 2", false, "def f():\n    a = 2\n", StrategyQuotes},
		{"a mark", "one\ntwo\n", "\ufefftwo", "\ufeffthree", false, "one\nthree\n", StrategyQuotes},
		{"accents", "cafe\u0301 au lait\n", "café au lait", "café au rhum", false, "cafe\u0301 au rhum\n", StrategyUnicode},
		{"a shift by two", "def f():\n    a = 1\n    b = 2\n", "      a = 1", "      a = 1\n      if a:\n          c = 2", false,
			"def f():\n    a = 1\n    if a:\n        c = 2\n    b = 2\n", StrategyIndentation},
		{"a word beside a here-document", "f() {\n    cat <<EOF\n    x\n    EOF\n    b\n}\n", "cat <<EOF\nx\nEOF\nb", "cat <<EOF\nx\nEOF\nb 2", false,
			"f() {\n    cat <<EOF\n    x\n    EOF\n    b 2\n}\n", StrategyIndentation},
		{"CRLF", "say “a”\r\nsay “b”\r\n", "say \"a\"\nsay \"b\"", "say \"a\"\nmore\nsay \"b\"", false, "say “a”\r\nmore\r\nsay “b”\r\n", StrategyQuotes},
		{"escapes", "print(\"a\")\n", `print(\"a\")`, `print(\"b\")`, false, "print(\"b\")\n", StrategyRepaired},
		{"entities, and new ones of that kind", "if a < b {\n", "if a &lt; b {", "if a &lt; b &amp;&amp; c &lt; d {", false, "if a < b && c < d {\n", StrategyRepaired},
		{"entities", "if a < b {\n", "if a &lt; b {", "if a &lt; b && c < d {", false, "if a < b && c < d {\n", StrategyRepaired},
	} {
		r, err := Apply([]byte(c.text), []Edit{{c.old, c.new, c.all}}, Options{})
		if err != nil || string(r.Content) != c.want || r.Steps[0].Strategy != c.strategy {
			t.Errorf("%s: %v, %+v", c.name, err, r)
			continue
		}
		_, err = Apply([]byte(c.text), []Edit{{c.old, c.new, c.all}}, Options{Strict: true})
		e, ok := err.(*NoMatchError)
		if !ok || e.Repaired == nil != c.all {
			t.Errorf("%s: strict: %+v", c.name, err)
		} else if e.Repaired != nil {
			if r, err := Apply([]byte(c.text), []Edit{*e.Repaired}, Options{Strict: true}); err != nil || string(r.Content) != c.want {
				t.Errorf("%s: repaired: %v", c.name, err)
			}
		}
	}
}
