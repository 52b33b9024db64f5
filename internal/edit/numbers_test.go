package edit

import "testing"

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
		got, repeated := stripEach(c.new, c.old, c.sign)
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
		for _, sign := range numberSigns() {
			if out, _, n, _, ok := stripNumbers(s, sign); ok && n > 0 && sign != " " && got == "" {
				got = out
			}
		}
		if got != want {
			t.Errorf("%q: %q, want %q", s, got, want)
		}
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
		u := rewriting{kinds: c.kinds}
		if got := u.systematic(c.old, c.old+c.own, len(c.old), len(c.old+c.own)); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}
