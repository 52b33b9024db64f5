package edit

import "testing"

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
