package literal

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"moltisfs/grep/match/syntax"
)

// show writes a set: its members in order, ~ before one whose letters may stand in either case.
func show(s Set) string {
	var out []string
	for _, m := range s.Members {
		text := string(m.Bytes)
		if m.Folds() {
			text = "~" + text
		}
		out = append(out, text)
	}
	return strings.Join(out, "|")
}

func extract(t *testing.T, pattern string, o syntax.Options) (whole Set, finite bool, needs []Set) {
	t.Helper()
	tree, err := syntax.Parse(pattern, o)
	if err != nil {
		t.Fatalf("%s: %v", pattern, err)
	}
	return Extract(syntax.Flatten(tree.Root), !o.Multiline)
}

func TestExtract(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pattern, whole string // whole: of a pattern that matches no other strings than these
		needs          []string
	}{
		{"foo", "foo", nil},
		{"(foo|bar)x", "foox|barx", nil},
		{"ab?c", "abc|ac", nil},
		{"ab??c", "ac|abc", nil}, // what is preferred comes first
		{"(?i)ab", "~ab", nil},
		{"x{3}", "xxx", nil},
		{"x{0}y", "y", nil},
		{"foo[0-9]", "foo0|foo1|foo2|foo3|foo4|foo5|foo6|foo7|foo8|foo9", nil},
		{`foo\d`, "", []string{"foo"}}, // every digit of Unicode
		{"foo.*bar", "", []string{"foo", "bar"}},
		{"(a|b)c[0-9]+", "", []string{"ac0|ac1|ac2|ac3|ac4|ac5|ac6|ac7|ac8|ac9|bc0|bc1|bc2|bc3|bc4|bc5|bc6|bc7|bc8|bc9", "0|1|2|3|4|5|6|7|8|9"}},
		{"ab+c", "", []string{"ab", "bc"}},
		{"ab*c", "", []string{"a", "c"}},
		{"(foo.*|bar.*)x", "", []string{"foo|bar", "x"}},
		{"(foo.*|.*)x", "", []string{"x"}}, // one branch does without
		{".*", "", nil},
		{"(abc)*", "", nil},
	} {
		whole, finite, needs := extract(t, c.pattern, syntax.Options{})
		var got []string
		for _, n := range needs {
			got = append(got, show(n))
		}
		if finite != (c.whole != "") || finite && show(whole) != c.whole || !slices.Equal(got, c.needs) {
			t.Errorf("%s: whole %q %v, needs %q; want %q and %q", c.pattern, show(whole), finite, got, c.whole, c.needs)
		}
	}
}

// A match without what is said to be needed would be passed over. The patterns and the texts are put
// together from the same few pieces, and Go's regexp says what matches.
func TestEveryMatchHoldsWhatIsNeeded(t *testing.T) {
	t.Parallel()
	pieces := []string{"a", "b", "ab", "[ab]", "a?", "b*", "a+", "(a|bb)", "(ab)+", "(a|b*)", ".", "b{2}", "(a.*|b)", `\b`, "(?:)"}
	var texts []string
	for n := range 6 {
		for bits := range 1 << n {
			texts = append(texts, strings.NewReplacer("0", "a", "1", "b").Replace(fmt.Sprintf("%0*b", n, bits)[:n]))
		}
	}
	tried := 0
	for _, x := range pieces {
		for _, y := range pieces {
			for _, z := range pieces {
				pattern := x + y + z
				whole, finite, needs := extract(t, pattern, syntax.Options{})
				re := regexp.MustCompile("^(?:" + pattern + ")$")
				if finite {
					needs = append(needs, whole)
				}
				for _, text := range texts {
					is := re.MatchString(text)
					among := slices.ContainsFunc(whole.Members, func(l Literal) bool { return len(l.Bytes) == len(text) && l.At([]byte(text)) })
					if finite && whole.Exact && is != among {
						t.Fatalf("%s matches %q: %v, and is said to match %s only", pattern, text, is, show(whole))
					}
					if !is {
						continue
					}
					tried++
					for _, need := range needs {
						if !slices.ContainsFunc(need.Members, func(l Literal) bool { return strings.Contains(text, string(l.Bytes)) }) {
							t.Fatalf("%s matches %q, and is said to need %s", pattern, text, show(need))
						}
					}
				}
			}
		}
	}
	if tried < 10_000 {
		t.Errorf("only %d matches", tried)
	}
}
