package mend

import (
	"bytes"
	"math/rand"
	"strings"
	"testing"
)

// sameOrKnown indents as the pairs show, and tells nothing else.
func sameOrKnown(pairs []Pair, in string) (string, bool) {
	same := true
	for _, p := range pairs {
		if p.Old == in {
			return p.File, true
		}
		same = same && p.Old == p.File
	}
	return in, same
}

func TestMerge(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, old, file, new, want string }{
		{"a letter, and new repeats it", "fooos(a, 1)", "fooo(a, 1)", "fooos(a, 2)", "fooo(a, 2)"},
		{"another word is another thing", "f(height, 1)", "f(width, 1)", "f(height, 2)", ""},
		{"so is another short name", "f(db, one)", "f(dc, one)", "f(db, two)", ""},
		{"a letter, and new puts another word there", "fooos(a)", "fooo(a)", "bar(a)", "bar(a)"},
		{"new uses the damaged word again", "fooos(a)", "fooo(a)", "fooos(a) + fooos(b)", "fooo(a) + fooo(b)"},
		{"a word that the file has elsewhere is not mended", "total(a)", "totals(a)", "total(a) + total(b)", ""},
		{"so is one within a word", "f(latin7, a)", "f(latin1, a)", "f(latin7, b)", ""},
		{"another number is another thing", "f(10, a)", "f(11, a)", "f(10, b)", ""},
		{"blanks inside", "a=b", "a = b", "a=c", "a = c"},
		{"blanks inside, and signs of which nothing is known", "a=b", "a = b", "a=b\nx-=y", ""},
		{"blanks that the file has not, and a sign added", "f( a )", "f(a)", "f( a )[0]", "f(a)[0]"},
		{"blanks that the file has not, and new's own", "f( a )", "f(a)", "f( a ) || b", ""},
		{"blanks lost, and new's own", "x=f(a)", "x = f(a)", "x=f(a) || b", ""},
		{"the other quotes", `f('a', 1)`, `f("a", 1)`, `f('a', g(1))`, `f("a", g(1))`},
		{"the other quotes, also in what is new", `f('a', 1)`, `f("a", 1)`, `f('a', 'b')`, ""},
		{"a sign at the end of the line", "a()\nb()", "a();\nb();", "a()\nc()\nb()", ""},
		{"a sign at the end of the line, and a change within", "a(1)\nb()", "a(1);\nb();", "a(x)\nb()", "a(x);\nb();"},
		{"the other quotes, and those within", `f('a', 1)`, `f("a", 1)`, `f('a', 'say "b"')`, ""},
		{"both kinds of quotes in the file", `f('a', 'b')`, `f("a", 'b')`, `f('a', 'b', 'c')`, ""},
		{"a blank at line ends, also of a new line", "a \nb ", "a\nb", "a \nc \nb ", "a\nc\nb"},
		{"more blanks at a line end than was seen", "a \nb ", "a\nb", "a \nc   \nb ", ""},
		{"on which side of an empty line", "a\nb", "a\n\nb", "a\nc\nb", ""},
		{"an empty line, and a change elsewhere", "a\nb c", "a\n\nb c", "a\nb d", "a\n\nb d"},
		{"indentation as seen", "if x\n  y", "\tif x\n\t\ty", "if x\n  y\n  z", "\tif x\n\t\ty\n\t\tz"},
		{"indentation that was not seen", "if x\n  y", "\tif x\n\t\ty", "if x\n  y\n      z", ""},
		{"all capitals lost", "getname()", "getName()", "getname() + other()", ""},
		{"both change the same", "a = 1", "a = b", "a = c", ""},
		{"a line that the file has not so", "f('t')\nf(g)", "f('')\nf(g)", "h('t')\nf(g)", ""},
		{"a word that old has not", "f(a)", "f(ctx, a)", "f(a) + 1", "f(ctx, a) + 1"},
		{"a part of a name", "Count_step(1)", "count_step(1)", "Count_limit(1)", "count_limit(1)"},
		{"a word that begins alike is none", "foos(1)", "foo(1)", "foosball(1)", "foosball(1)"},
		{"a part that the damage only touches", "LOGSYSLOG\nLOG_A", "LOG_SYSLOG\nLOG_A", "LOGSYSLOG\nLOG_limit", "LOG_SYSLOG\nLOG_limit"},
		{"a run of blanks is on one side of what is put in", "a = $b", "a =  $b", "a = c $b", ""},
		{"blanks that both sides of it have", "f(a,b)", "f(a, b)", "f(a,c,b)", "f(a, c, b)"},
		{"double blanks in what is new", "a  (b)", "a (b)", "a  (b)\none  more", ""},
		{"of two tags the one whose place is gone", "fooos\n    </b>\n  </b>", "fooo\n    </b>\n  </b>", "fooos\n  </b>", "fooo\n  </b>"},
		{"an item before an empty line", "- a\n- b", "- a\n\n- b", "- a\n- n\n- b", ""},
		{"an item, and an empty line elsewhere", "- a\n- b\n- c", "- a\n- b\n\n- c", "- a\n- n\n- b\n- c", "- a\n- n\n- b\n\n- c"},
		{"an empty line within what is replaced", "a b\nc d", "a b\n\nc d", "a x\ny d", "a x\n\ny d"},
		{"a word that is the beginning of a line", "# the To b", "#\n# To b", "x\n# the To b", ""},
		{"empty lines of old, and new has its own", "a\n\nb c", "a\nb c", "a\n\nb\n\nc", ""},
		{"a line that old lacks, and one put in there", "* a\n* b", "* a\n*\n* b", "* a\nx\n* b", ""},
		{"a line that old lacks, and one put in elsewhere", "* a\n* b\nc", "* a\n*\n* b\nc", "* a\n* b\nc\nx", "* a\n*\n* b\nc\nx"},
		{"quotes lost, perhaps in what is new", "f(abc)", `f("abc")`, "f(abc)\ng(def)", ""},
		{"quotes lost, and one word for another", "f(abc, one)", `f("abc", one)`, "f(abc, two)", `f("abc", two)`},
		{"deleted", "fooos(a)", "fooo(a)", "", ""},
		{"nothing but blanks", "fooos(a)", "fooo(a)", "  ", ""},
	} {
		foreign := func(w string) bool { return w == "total" }
		got, ok := Merge(c.old, c.file, c.new, sameOrKnown, foreign, Neither)
		if ok != (c.want != "" || c.name == "deleted") || ok && got != c.want {
			t.Errorf("%s: %q, %v; want %q", c.name, got, ok, c.want)
		}
	}
}

// TestSides: what Merge refuses, it makes of either side.
func TestSides(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, old, file, new, first, second string }{
		{"a line beside an empty one", "a\nb", "a\n\nb", "a\nc\nb", "a\nc\n\nb", "a\n\nc\nb"},
		{"an item beside an empty line", "- a\n- b", "- a\n\n- b", "- a\n- n\n- b", "- a\n- n\n\n- b", "- a\n\n- n\n- b"},
		{"an empty line that the file has not", "a\n\nb", "a\nb", "a\n\nc\n\nb", "", ""},
		{"either kind of quotes", `f('a', 1)`, `f("a", 1)`, `f('a', 'b')`, `f("a", "b")`, `f("a", 'b')`},
		{"another number is no reading", "f(10, a)", "f(11, a)", "f(10, b)", "", ""},
	} {
		for side, want := range map[Side]string{First: c.first, Second: c.second} {
			got, ok := Merge(c.old, c.file, c.new, sameOrKnown, func(string) bool { return false }, side)
			if ok != (want != "") || ok && got != want {
				t.Errorf("%s: %q, %v; want %q", c.name, got, ok, want)
			}
		}
	}
}

// TestApprox compares with the plain table of distances.
func TestApprox(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewSource(1))
	letters := func(n int) []byte {
		out := make([]byte, n)
		for i := range out {
			out[i] = "abcd"[r.Intn(4)]
		}
		return out
	}
	found := 0
	for range 400 {
		text := letters(1 + r.Intn(300))
		pattern := letters(1 + r.Intn(150))
		if at := r.Intn(len(text)); r.Intn(2) == 0 && at > 0 {
			pattern = append([]byte{}, text[at/2:at/2+1+r.Intn(len(text)-at/2)]...)
			pattern[r.Intn(len(pattern))] = 'x'
		}
		row := make([]int, len(pattern)+1)
		for i := range row {
			row[i] = i
		}
		best := len(pattern)
		for _, c := range text {
			diagonal := 0
			for i := 1; i <= len(pattern); i++ {
				d := diagonal
				if pattern[i-1] != c {
					d++
				}
				diagonal, row[i] = row[i], min(d, row[i]+1, row[i-1]+1)
			}
			best = min(best, row[len(pattern)])
		}
		budget := Budget
		got, ok := Approx(text, pattern, &budget)
		if ok != (3*best <= len(pattern)) || ok && got.Distance != best {
			t.Fatalf("%q in %q: %+v %v, want %d", pattern, text, got, ok, best)
		}
		if ok {
			found++
			short := Budget
			if l, again := Approx(pattern, text[got.Start:got.End], &short); again && l.Distance > got.Distance {
				t.Fatalf("%q is not so far from %q: %+v", text[got.Start:got.End], pattern, got)
			}
		}
	}
	if found < 50 {
		t.Errorf("only %d found", found)
	}
}

// TestApproxIsBounded: the searches for one edit share what they may cost.
func TestApproxIsBounded(t *testing.T) {
	t.Parallel()
	text := bytes.Repeat([]byte("abcdefghijklmnopqrstuvwxyz0123456789"), 1000)
	pattern := append(bytes.Clone(text[:10000]), "!!"...)
	budget, n := Budget, 0
	for n < 100 {
		if _, ok := Approx(text, pattern, &budget); !ok {
			break
		}
		n++
	}
	if n == 0 || n > 3 || budget < 0 {
		t.Errorf("%d searches, %d left", n, budget)
	}
	if _, ok := Approx(text, text[:1<<14+1], new(int)); ok {
		t.Error("a pattern of more than 16 KB")
	}
}

func TestReadings(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ rule, old, new, wantOld, wantNew string }{
		{"code_fence", "```go\na\n```", "```go\nb\n```", "a", "b"},
		{"code_fence", "```go\na\n```", "b", "a", "b"},
		{"code_fence", "```go\na\n```", "b\n```\n", "", ""},
		{"tags", "<old_string>a</old_string>", "<new_string>b</new_string>", "a", "b"},
		{"tags", "<div>a</div>", "<div>b</div>", "", ""},
		{"search_markers", "<<<<<<< SEARCH\na\n=======", "b\n>>>>>>> REPLACE", "a", "b"},
		{"search_markers", "<<<<<<< SEARCH\na\n=======\nb\n>>>>>>> REPLACE", "b", "a", "b"},
		{"diff", "-a\n b", "+c\n b", "a\nb", "c\nb"},
		{"diff", " a\n b", " c\n b", "", ""},
		{"diff", "@@ -1,2 +1,2 @@\n-a\n+c\n b\n", "", "a\nb", "c\nb"},
		{"diff", " a\n-b\n c", "", "a\nb\nc", "a\nc"},
		{"diff", "-a\n-b", "", "a\nb", ""},
		{"diff", " a\n b", "", "", ""},
		{"diff", "-a\nb", "+c\nb", "", ""},
		{"diff", "- a", "- b", "", ""},
		{"column", "- a", "- b\n- c", "a", "b\nc"},
		{"column", "> a\n>\n> b", "> c", "a\n\nb", "c"},
		{"column", "- a\nb", "- c\nb", "", ""},
		{"column", "- a", "c", "", ""},
		{"quoted", "`a`", "`b`", "a", "b"},
		{"quoted", "'a'", "b", "", ""},
		{"prefixed", "x.go:7:a\nx.go:8:b", "x.go:7:c", "a\nb", "c"},
		{"prefixed", "L7:a", "L7:b", "a", "b"},
		{"prefixed", "x.go:7:a\nx.go:9:b", "x.go:7:c", "", ""},
		{"visible", "→a·b", "→a·c", "\ta b", "\ta c"},
		{"visible", "    12→a", "    12→b", "", ""},
		{"outer_breaks", "\na\n", "\nb\n", "a", "b"},
		{"outer_breaks", "\na\n", "b\n", "", ""},
	} {
		var o, n string
		for _, x := range Readings(c.old, c.new) {
			if x.Name == c.rule && o == "" {
				o, n = x.Old, x.New
			}
		}
		if o != c.wantOld || n != c.wantNew {
			t.Errorf("%s of %q, %q: %q, %q", c.rule, c.old, c.new, o, n)
		}
	}
	if got := Readings("plain text", "other text"); len(got) > 0 {
		t.Errorf("nothing was put around it: %+v", got)
	}
}

func TestStripEach(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		new, old, sign, want string
		repeated             bool
	}{
		{"     1→a\nx\n     2→b", "     1→a\n     2→b", "→", "a\nx\nb", true},
		{"1:a\nx\n2:b", "1:a\n2:b", ":", "a\nx\nb", true},
		{"1:a\n7:x", "1:a\n2:b", ":", "a\nx", false},
		{"a\nx", "1:a", ":", "a\nx", false},
	} {
		got, repeated := StripEach(c.new, c.old, c.sign)
		if got != c.want || repeated != c.repeated {
			t.Errorf("%q: %q, %v", c.new, got, repeated)
		}
	}
}

// TestNumberSigns: numbers that count up before each line are taken off, and nothing that is a list, a
// year, or counts otherwise.
func TestNumberSigns(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]string{"     3→a\n     4→b": "a\nb", "3\ta\n4\tb": "a\nb", "3: a\n4: b": "a\nb", "3:a\n4-b": "a\nb", "3 | a\n4 | b": "a\nb",
		"a\n4→b": "a\nb", "9→a\n\n11→b": "a\n\nb",
		"3. a\n4. b": "", "3→a\n5→b": "", "4→a\n3→b": "", "3→a\nb": "", "0→a": "", "3) a\n4) b": "", "123456789→a": ""} {
		got := ""
		for _, sign := range NumberSigns() {
			if out, _, n, _, ok := StripNumbers(s, sign); ok && n > 0 && sign != " " && got == "" {
				got = out
			}
		}
		if got != want {
			t.Errorf("%q: %q, want %q", s, got, want)
		}
	}
}

func TestWholeWords(t *testing.T) {
	t.Parallel()
	text := []byte("für größer als")
	from, to := Whole(text, strings.Index(string(text), "ö")+1, len(text)-1)
	if string(text[from:to]) != "größer als" {
		t.Errorf("%q", text[from:to])
	}
}

// TestSystematic: an escape that new adds is undone only where old shows that all are escaped, and
// where it can't stand for itself.
func TestSystematic(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, kinds, old, own string
		want                  bool
	}{
		{"quotes", `"`, `a(\"x\")`, `b(\"y\")`, true},
		{"quotes, one of them bare", `"`, `a(\"x\")`, `b("y")`, false},
		{"a quote within another", `"`, `a(\"x\")`, `b('\"')`, false},
		{"breaks", "ntr", `a()\nb()`, `c()\nd()`, true},
		{"a break in a literal", "ntr", `a()\nb()`, `c('\n')`, false},
		{"a path", "ntr", `a()\nb()`, `r'C:\new'`, false},
		{"a break that prose speaks of", "ntr", `a\nb`, `use \n to break`, false},
		{"it's no quote", "ntr", `a\nb`, `it's c\nd`, true},
		{"entities", "", "a &lt; b", "c &lt; d", true},
		{"an entity in a literal", "", "a &lt; b", `x("&lt;")`, false},
		{"a sign that is none", "", "a &lt; b", "c < d", false},
	} {
		u := Unescaping{Kinds: c.kinds}
		if got := u.Systematic(c.old, c.old+c.own, len(c.old), len(c.old+c.own)); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

func TestDots(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]bool{"a\n...\nb": true, "a\n  // ... existing code ...\nb": true, "a\nf(...)\nb": false,
		"...\nb": false, "a\n...\nb\n...\nc": false, "a\nb": false, "a\n...\"\nb": false} {
		if _, _, _, ok := Dots(s); ok != want {
			t.Errorf("%q: %v", s, ok)
		}
	}
	if !Deeper("\t\ta\n\n\t\tb\n", "\t}") || Deeper("\t\ta\n\tb\n", "\t}") {
		t.Error("the end of a block is told by its indentation")
	}
}
