package edit

import (
	"context"
	"errors"
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
)

type editCase struct {
	name     string
	text     string
	old, new string
	all      bool
	want     string
	strategy string
}

func TestTiers(t *testing.T) {
	for _, c := range []editCase{
		{"exact", "a\nb\nc\n", "b", "B", false, "a\nB\nc\n", StrategyExact},
		{"exact multi-line", "a\nb\nc\n", "a\nb", "x\ny\nz", false, "x\ny\nz\nc\n", StrategyExact},
		{"all", "a b a b a", "a", "xx", true, "xx b xx b xx", StrategyExact},
		{"dollar is literal", "price\n", "price", "$1 $& \\1", false, "$1 $& \\1\n", StrategyExact},
		{"delete keeps the break", "a\nb\nc\n", "b", "", false, "a\n\nc\n", StrategyExact},
		{"delete a line", "a\nb\nc\n", "b\n", "", false, "a\nc\n", StrategyExact},
		{"trailing blanks in new stay", "a\nb\n", "b", "b  \nc\t", false, "a\nb  \nc\t\n", StrategyExact},
		{"no final newline stays so", "a\nb", "b", "c", false, "a\nc", StrategyExact},

		{"single line old inserts CRLF", "a\r\nb\r\nc\r\n", "b", "b1\nb2", false, "a\r\nb1\r\nb2\r\nc\r\n", StrategyExact},
		{"LF old in CRLF", "a\r\nb\r\nc\r\n", "a\nb", "x\ny\nz", false, "x\r\ny\r\nz\r\nc\r\n", StrategyLineEndings},
		{"CRLF old in LF", "a\nb\nc\n", "a\r\nb", "x\r\ny", false, "x\ny\nc\n", StrategyLineEndings},
		{"CRLF new in LF", "a\nb\nc\n", "b", "x\r\ny", false, "a\nx\ny\nc\n", StrategyExact},
		{"mixed: each its own", "a\r\nb\nc\r\nd\n", "a\nb\nc\nd", "a\nB\nc\nd", false, "a\r\nB\nc\r\nd\n", StrategyLineEndings},
		{"mixed: neighbour", "a\r\nb\nc\r\n", "b", "b\nbb", false, "a\r\nb\nbb\nc\r\n", StrategyExact},
		{"mixed: other neighbour", "a\r\nb\nc\r\n", "c", "c\ncc", false, "a\r\nb\nc\r\ncc\r\n", StrategyExact},
		{"last line without break", "a\r\nb", "b", "b\nc", false, "a\r\nb\r\nc", StrategyExact},
		{"CR alone is a character", "a\rb\rc\r", "b", "B", false, "a\rB\rc\r", StrategyExact},
		{"CR alone is quoted as such", "a\rb\rc\r", "a\rb", "x\ry\rz", false, "x\ry\rz\rc\r", StrategyExact},
		{"old starts inside a CRLF", "a\r\nb\r\nc", "\nb", "\nx\ny", false, "a\r\nx\r\ny\r\nc", StrategyLineEndings},
		{"delete from inside a CRLF", "a\r\nb\r\nc", "\nb", "", false, "a\r\nc", StrategyLineEndings},
		{"blank lines in CRLF", "a\r\n\r\nb", "\n\n", "\n", false, "a\r\nb", StrategyLineEndings},
		{"change the endings themselves", "a\r\nb\r\n", "a\r\nb\r\n", "a\nb\n", false, "a\nb\n", StrategyExact},
		{"all over mixed endings", "a\nb\r\na\r\nb\n", "a\nb", "x\ny", true, "x\ny\r\nx\r\ny\n", StrategyLineEndings},
		{"lone CR in an LF file is a character", "a\rb\nc\n", "b", "b\nx", false, "a\rb\nx\nc\n", StrategyExact},

		{"trailing blanks in file", "if x {  \n\ty()\t\n}\n", "if x {\n\ty()\n}", "z", false, "z\n", StrategyTrailingBlanks},
		{"trailing blanks in old", "if x {\n\ty()\n}\n", "if x {  \n\ty() \n}  ", "z", false, "z\n", StrategyTrailingBlanks},
		{"CR before a CRLF stays", "a\r\r\nb \r\r\nc\r\r\n", "b", "B", false, "a\r\r\nB \r\r\nc\r\r\n", StrategyExact},
		{"blanks after the last line stay", "a\nb  \nc\n", "a \nb", "x\ny", false, "x\ny  \nc\n", StrategyTrailingBlanks},
		{"final newline not there", "a\nb", "b\n", "c\n", false, "a\nc", StrategyTrailingBlanks},

		{"curly quotes in file", "say “hi” to ‘Bob’\n", `say "hi" to 'Bob'`, `say "hi" to 'Eve'`, false, "say “hi” to ‘Eve’\n", StrategyQuotes},
		{"curly quotes are wanted", "say “hi” to ‘Bob’\n", `say "hi" to 'Bob'`, `say “yo”`, false, "say “yo”\n", StrategyQuotes},
		{"curly quotes in old", "say \"hi\"\n", "say “hi”", "say “yo”", false, "say \"yo\"\n", StrategyQuotes},
		{"no-break space", "a\u00a0b\n", "a b", "a c", false, "a\u00a0c\n", StrategyQuotes},
		{"dash", "1–2\n", "1-2", "1-3", false, "1–3\n", StrategyQuotes},
		{"ellipsis", "wait…\n", "wait...", "go", false, "go\n", StrategyQuotes},
		{"zero width", "fo\u200bo\n", "foo", "bar", false, "bar\n", StrategyQuotes},
		{"NFD in file", "cafe\u0301 au lait\n", "café au", "the au", false, "the au lait\n", StrategyUnicode},
		{"NFC in file", "café au lait\n", "cafe\u0301 au", "the au", false, "the au lait\n", StrategyUnicode},

		{"spaces for tabs", "func f() {\n\tif x {\n\t\ty()\n\t}\n}\n", "    if x {\n        y()\n    }", "    if x {\n        z()\n        if q {\n            r()\n        }\n    }", false,
			"func f() {\n\tif x {\n\t\tz()\n\t\tif q {\n\t\t\tr()\n\t\t}\n\t}\n}\n", StrategyIndentation},
		{"tabs for spaces", "def f():\n    if x:\n        y()\n", "\tif x:\n\t\ty()", "\tif x:\n\t\tz()\n\telse:\n\t\ty()", false,
			"def f():\n    if x:\n        z()\n    else:\n        y()\n", StrategyIndentation},
		{"two for four", "def f():\n    if x:\n        y()\n", "  if x:\n    y()", "  if x:\n    z()\n    w()", false,
			"def f():\n    if x:\n        z()\n        w()\n", StrategyIndentation},
		{"too shallow", "class A:\n    def f(self):\n        return 1\n\n    def g(self):\n        pass\n", "def f(self):\n    return 1", "def f(self):\n    return 2", false,
			"class A:\n    def f(self):\n        return 2\n\n    def g(self):\n        pass\n", StrategyIndentation},
		{"too deep", "def f():\n    a = 1\n    b = 2\n", "        a = 1\n        b = 2", "        a = 3\n        if a:\n            b = 4", false,
			"def f():\n    a = 3\n    if a:\n        b = 4\n", StrategyIndentation},
		{"first line trimmed", "x {\n\t\tif a {\n\t\t\tb()\n\t\t}\n}\n", "if a {\n            b()\n        }", "if a {\n            c()\n        }", false,
			"x {\n\t\tif a {\n\t\t\tc()\n\t\t}\n}\n", StrategyIndentation},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := Apply([]byte(c.text), []Edit{{c.old, c.new, c.all}}, Options{})
			if err != nil {
				t.Fatal(err)
			}
			if string(r.Content) != c.want || r.Steps[0].Strategy != c.strategy {
				t.Errorf("got %q by %s\nwant %q by %s", r.Content, r.Steps[0].Strategy, c.want, c.strategy)
			}
		})
	}
}

func TestRefusals(t *testing.T) {
	is := func(target any) func(error) bool { return func(err error) bool { return errors.As(err, target) } }
	var (
		none *NoMatchError
		many *NotUniqueError
		mt   *EmptyOldError
		same *SameError
		noop *NoopError
		big  *TooLargeError
		num  *TooManyError
		enc  *EncodingError
		unen *UnencodableError
	)
	for _, c := range []struct {
		name, text string
		edits      []Edit
		o          Options
		want       func(error) bool
	}{
		{"nothing", "a\n", []Edit{{Old: "b", New: "c"}}, Options{}, is(&none)},
		{"nothing in nothing", "", []Edit{{Old: "b", New: "c"}}, Options{}, is(&none)},
		{"twice", "a a\n", []Edit{{Old: "a", New: "c"}}, Options{}, is(&many)},
		{"overlapping", "aaa\n", []Edit{{Old: "aa", New: "c"}}, Options{}, is(&many)},
		{"twice loosely", "“a”\n“a”\n", []Edit{{Old: `"a"`, New: "c"}}, Options{}, is(&many)},
		{"indentation twice", "\tif x {\n\t\ty()\n\t}\n\t\tif x {\n\t\t\ty()\n\t\t}\n", []Edit{{Old: "    if x {\n        y()\n    }", New: "c"}}, Options{}, is(&many)},
		{"inconsistent indentation", "if x:\n    a()\n        b()\n", []Edit{{Old: "if x:\n    a()\n    b()", New: "c"}}, Options{}, is(&none)},
		{"similar is not equal", "func foo(a int) {}\n", []Edit{{Old: "func foo(a int64) {}", New: "c"}}, Options{}, is(&none)},
		{"strict", "“a”\n", []Edit{{Old: `"a"`, New: "c"}}, Options{Strict: true}, is(&none)},
		{"empty old", "a", []Edit{{New: "c"}}, Options{}, is(&mt)},
		{"empty old on blanks", "\n", []Edit{{New: "c"}}, Options{}, is(&mt)},
		{"same", "a", []Edit{{Old: "a", New: "a"}}, Options{}, is(&same)},
		{"already so", "“a”\n", []Edit{{Old: `"a"`, New: "“a”"}}, Options{}, is(&noop)},
		{"too large", "aaaa", []Edit{{Old: "a", New: strings.Repeat("b", 300), All: true}}, Options{MaxBytes: 1000}, is(&big)},
		{"too large on the way", "a", []Edit{{Old: "a", New: strings.Repeat("b", 2000)}, {Old: "b", New: "", All: true}}, Options{MaxBytes: 1000}, is(&big)},
		{"too many edits", "a", make([]Edit, 1001), Options{}, is(&num)},
		{"no such charset", "a", []Edit{{Old: "a", New: "b"}}, Options{Encoding: "utf-7"}, is(&enc)},
		{"unencodable", "a", []Edit{{Old: "a", New: "x\ny€"}}, Options{Encoding: "latin1"}, is(&unen)},
	} {
		t.Run(c.name, func(t *testing.T) {
			in := []byte(c.text)
			r, err := Apply(in, c.edits, c.o)
			if err == nil {
				t.Fatalf("got %q", r.Content)
			}
			if !c.want(err) {
				t.Fatalf("got %T: %v", err, err)
			}
			if string(in) != c.text {
				t.Error("the input was changed")
			}
		})
	}
	if unen == nil || unen.Char != '€' || unen.Line != 2 || unen.Column != 2 || unen.Encoding != "iso-8859-1" {
		t.Errorf("unencodable: %+v", unen)
	}
}

// TestCarriageReturnsStay: a CR that ends no CRLF is a character, which an edit of lines without it does not lose: it is not found, and said how it is
// written. Lines, patches and places count LF alone, as Read and Grep do.
func TestCarriageReturnsStay(t *testing.T) {
	for text, old := range map[string]string{
		"a\r\r\nb\r\r\n": "a\nb", "a\r\r\nb\r\r\nc": "a\r\nb", "a\r\nb\r\r\nc\r\n": "a\nb\nc", "a\rb\rc": "a\nb", "a \r\r\nb\r\n": "a\nb",
	} {
		r, err := Apply([]byte(text), []Edit{{Old: old, New: old + "B"}}, Options{})
		var none *NoMatchError
		if !errors.As(err, &none) {
			t.Errorf("%q in %q: %+v, %v", old, text, r, err)
		}
	}
	mac := "1,a\r2,b\r3,c\r2,b"
	var twice *NotUniqueError
	if _, err := Apply([]byte(mac), []Edit{{Old: "2,b", New: "x"}}, Options{}); !errors.As(err, &twice) || !reflect.DeepEqual(twice.Lines, []int{1, 1}) {
		t.Errorf("%+v, %v", twice, err)
	}
	r, err := Apply([]byte(mac), []Edit{{Old: "3,c", New: "x"}}, Options{})
	if err != nil || string(r.Content) != "1,a\r2,b\rx\r2,b" || r.Steps[0].Line != 1 || r.LineEnding != "none" || len(r.Patch()) != 1 || r.Patch()[0].OldStart != 1 || r.Patch()[0].OldLines != 1 {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestShownPathStaysInItsLine(t *testing.T) {
	for name, want := range map[string]string{
		"/w/a b": "/w/a b", "/w/ü\\": "/w/ü\\", `C:\x`: `C:\x`, "": "",
		"/w/\x1b[31mred\nforged": `"/w/\x1b[31mred\nforged"`, "/w/\u202ex": `"/w/\u202ex"`, "/w/\u009bx": `"/w/\u009bx"`, "/w/\xff": `"/w/\xff"`, `"/w/\n"`: `"\"/w/\\n\""`,
	} {
		if got := ShownPath(name); got != want {
			t.Errorf("%q is shown as %s, not %s", name, got, want)
		}
	}
}

// TestApplyLooksAtTheClock: between two edits Apply asks whether to go on.
func TestApplyLooksAtTheClock(t *testing.T) {
	var edits []Edit
	for i := range 20 {
		edits = append(edits, Edit{Old: fmt.Sprintf("line %02d", i), New: "x"})
	}
	var text strings.Builder
	for i := range 20 {
		fmt.Fprintf(&text, "line %02d\n", i)
	}
	asked := 0
	r, err := Apply([]byte(text.String()), edits, Options{Err: func() error {
		if asked++; asked > 2 {
			return context.DeadlineExceeded
		}
		return nil
	}})
	if r != nil || !errors.Is(err, context.DeadlineExceeded) || asked > 4 {
		t.Errorf("%v, %v, asked %d times", r, err, asked)
	}
	if r, err := Apply([]byte(text.String()), edits, Options{Err: func() error { return nil }}); err != nil || r.Replacements != 20 {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestEnds: what is offered in the place of old begins and ends where old does, so that nothing of the text that was
// meant is left behind when it is sent with new as it was. want "" is nothing to send.
func TestEnds(t *testing.T) {
	for _, c := range []struct{ text, old, want string }{
		{"def run(self, x):\n    return x\n", "def run(x):", "def run(self, x):"},
		{"    def run(self, x):\n        return x\n", "    def run(x):", "    def run(self, x):"},
		{"    def run(self, x):\n        return x\n", "def run(x):", "def run(self, x):"},
		{"const total = sum(items)\nf()\n", "const total = sum(item)", "const total = sum(items)"},
		{"const total = sum(items) // of all\n", "const total = sum(item)", "const total = sum(items)"},
		{"const total = sum(items) // of all\n", "sum(item)", "sum(items)"},
		{"s = 'hello world'\nt = 1\n", `s = "hello world"`, ""}, // a tier of its own
		{"x = [1, 2, 3]\ny = 2\n", "x = [1, 2, 3)", "x = [1, 2, 3]"},
		{"// note: see below\nf()\n", "# note: see below", "// note: see below"},
		{"<p>a&nbsp;b</p>\n", "<p>a\u00a0b</p>", "<p>a&nbsp;b</p>"},
		{"re = /\\bfoo bar\\b/\n", "re = /\bfoo bar\b/", ""},
		{"⚠️ Warning: x\nb\n", "⚠ Warning: x", "⚠️ Warning: x"},
		{"a ⚠️ Warning: the disk is full\n", "⚠ Warning: the disk was full", "⚠️ Warning: the disk is full"},
		{"👨‍👩‍👧 family of three\nb\n", "👨 family of three", "👨‍👩‍👧 family of three"},
		{"👍🏽 well done, all\nb\n", "👍 well done, all", "👍🏽 well done, all"},
		{"#️⃣ number of it\nb\n", "# number of it", "#️⃣ number of it"},
		{"🇬🇧 English text\nb\n", "🇬 English text", "🇬🇧 English text"},
		{"say hello to all of them 🇬🇧\nb\n", "say hello to all of you 🇬", "say hello to all of them 🇬🇧"},
		{"class A {\n  constructor() {\n    if (x) {\n      a()\n    }\n    this.list = []\n  }\n\n  next() {\n  }\n}\n",
			"  constructor() {\n    made(up)\n  }", "  constructor() {\n    if (x) {\n      a()\n    }\n    this.list = []\n  }"},
		{"class A {\n  constructor() {\n    if (x) {\n      a()\n    }\n    this.list = []\n  }\n\n  next() {\n  }\n}\n",
			"  constructor() {\n    made(up)\n  }\n", "  constructor() {\n    if (x) {\n      a()\n    }\n    this.list = []\n  }\n"},
		{"func A() {\n\tif x {\n\t\ta()\n\t}\n\tb()\n}\n\nfunc B() {\n}\n", "func A() {\n\tmade(up)\n}\n", "func A() {\n\tif x {\n\t\ta()\n\t}\n\tb()\n}\n"},
		{"def a():\n    x = f()\n    if x:\n        return x\n    return y\n\ndef b():\n    pass\n",
			"def a():\n    z = 1\n    return y", "def a():\n    x = f()\n    if x:\n        return x\n    return y"},
		{"def a():\n    x = f()\n    if x:\n        return x\n    return y\n\ndef b():\n    pass\n",
			"def a():\n    z = 1\n    return made.up(z)", ""},
		{"f(a, b,\n  c, d)\ng()\n", "(a, b,\n  c, x)", "(a, b,\n  c, d)"},
	} {
		_, err := Apply([]byte(c.text), []Edit{{Old: c.old, New: "NEW"}}, Options{})
		e, ok := err.(*NoMatchError)
		if !ok {
			if err != nil || c.want != "" {
				t.Errorf("%q: %v", c.old, err)
			}
			continue
		}
		if e.Resend != c.want && (c.want != "" || !strings.Contains(c.text, "\n"+e.Resend+"\n") && !strings.HasPrefix(c.text, e.Resend+"\n")) {
			t.Errorf("%q: resend %q, want %q", c.old, e.Resend, c.want)
		}
		if e.Region == "" || e.Line == 0 {
			t.Errorf("%q: nothing is shown: %+v", c.old, e)
		}
		for _, r := range []*Edit{e.Repaired} {
			if r != nil && strings.Contains(c.text, "🇬🇧") && !strings.Contains(r.Old, "🇬🇧") {
				t.Errorf("%q: %q cuts a flag", c.old, r.Old)
			}
		}
	}
}

// TestEndsOfLines makes slips at both ends of real lines: what is offered for a whole line is all of it, or nothing is.
func TestEndsOfLines(t *testing.T) {
	slips := []func(l string) string{
		func(l string) string { return strings.TrimRight(l, "s);,:") },                        // the end is lost
		func(l string) string { return l[:len(l)-1] + "]" },                                   // another closing sign
		func(l string) string { return l + ";" },                                              // one too many
		func(l string) string { return "x" + l },                                              // at the beginning
		func(l string) string { return l[1:] },                                                // the beginning is lost
		func(l string) string { return strings.NewReplacer(`"`, "'", "'", `"`).Replace(l) },   // other quotes
		func(l string) string { a, b, _ := strings.Cut(l, ", "); return a + b },               // an argument is lost
		func(l string) string { return strings.Replace(l, "(", "(self, ", 1) },                // one is made up
		func(l string) string { return strings.NewReplacer("//", "#", "#", "//").Replace(l) }, // another comment
		func(l string) string {
			return strings.NewReplacer(" == ", " === ", "let ", "const ", "const ", "let ").Replace(l)
		}, // another dialect
	}
	tried, offered, short := 0, 0, 0
	files, err := filepath.Glob("testdata/samples/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, name := range files {
		raw, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		text := string(raw)
		for _, l := range strings.Split(text, "\n") {
			l = strings.Trim(l, " \t\r")
			if len(l) < 12 || strings.Count(text, l) != 1 {
				continue
			}
			for i, slip := range slips {
				old := slip(l)
				if old == l || strings.Contains(text, old) {
					continue
				}
				_, err := Apply([]byte(text), []Edit{{Old: old, New: "NEW"}}, Options{Strict: true})
				e, ok := err.(*NoMatchError)
				if !ok || e.Cause != CauseUnknown {
					continue
				}
				tried++
				if e.Resend == "" {
					continue
				}
				if offered++; !strings.Contains(e.Resend, l) && strings.Contains(l, e.Resend) {
					short++
					t.Errorf("%s: slip %d of %q: offered is only %q", name, i, l, e.Resend)
				}
			}
		}
	}
	t.Logf("%d slips, %d offered, %d cut", tried, offered, short)
	if tried < 100 || offered*2 < tried {
		t.Errorf("%d slips, %d offered", tried, offered)
	}
}

func contextsOf(t *testing.T, text, old string) []Context {
	t.Helper()
	_, err := Apply([]byte(text), []Edit{{Old: old, New: "new"}}, Options{})
	e, ok := errors.AsType[*NotUniqueError](err)
	if !ok {
		t.Fatalf("%q in %q: %v, want not unique", old, text, err)
	}
	return e.Contexts
}

func TestContextsAreTheSmallest(t *testing.T) {
	for _, c := range []struct {
		text, old string
		want      []string
	}{
		{"x = 1\nfoo\nx = 1\nbar\n", "x = 1", []string{"x = 1\nfoo", "foo\nx = 1"}},
		{"foo\nx = 1\nx\nbar\nx = 1\nx\n", "x = 1", []string{"foo\nx = 1", "bar\nx = 1"}},
		{"x\n1\n2\nx\n1\n3\n", "x", []string{"x\n1\n2", "2\nx"}},
		{"aa x\nbb x\n", "x", []string{"aa x", "bb x"}},
		{"x\nx\nx\n", "x", nil},
	} {
		got := contextsOf(t, c.text, c.old)
		for i, w := range c.want {
			if i >= len(got) || got[i].OldString != w {
				t.Errorf("%q in %q: contexts %+v, want %q", c.old, c.text, got, c.want)
				break
			}
		}
	}
}

// TestContextsNeedTheirLines: a context is in the text once, and is not without its first line, nor without its last. Where there is none, all
// of the text is not unique.
func TestContextsNeedTheirLines(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewSource(4))
	for range 3000 {
		lines := make([]string, 4+r.Intn(14))
		for i := range lines {
			lines[i] = []string{"x", "x y", "a", "b", ""}[r.Intn(5)]
		}
		lines[1], lines[len(lines)-1] = "x", "x"
		text := strings.Join(lines, "\n")
		for _, c := range allMatches(text, "x") {
			budget := lookBudget
			got, ok := uniqueAround([]byte(text), c.at, c.at+1, &budget)
			if !ok {
				if occurrences(text, text) == 1 {
					t.Fatalf("%q, match in line %d: no context", text, c.line+1)
				}
				continue
			}
			_, tail, _ := strings.Cut(got, "\n")
			head := got[:max(0, strings.LastIndexByte(got, '\n'))]
			for _, part := range []string{head, tail} {
				at := strings.Index(text, part)
				if part != "" && occurrences(text, part) == 1 && at <= c.at && at+len(part) > c.at {
					t.Fatalf("%q, match in line %d: context %q, and %q would do", text, c.line+1, got, part)
				}
			}
			if occurrences(text, got) != 1 {
				t.Fatalf("%q: context %q is not unique", text, got)
			}
		}
	}
}

type found struct{ at, line int }

func allMatches(text, old string) (out []found) {
	for at := range text {
		if strings.HasPrefix(text[at:], old) {
			out = append(out, found{at, strings.Count(text[:at], "\n")})
		}
	}
	return out
}

// occurrences counts overlapping ones too.
func occurrences(text, s string) int { return len(allMatches(text, s)) }

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
