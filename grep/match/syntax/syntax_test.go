package syntax

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

func tree(t *testing.T, pattern string, o Options) *Tree {
	t.Helper()
	parsed, err := Parse(pattern, o)
	if err != nil {
		t.Fatalf("%s: %v", pattern, err)
	}
	return parsed
}

// The sets of code points do what sets do: a look at each of a few code points is the proof.
func TestSets(t *testing.T) {
	t.Parallel()
	const top = 9
	members := func(r []rune) (set [top + 1]bool) {
		for c := range rune(top + 1) {
			set[c] = HasRune(r, c)
		}
		return set
	}
	var sets [][]rune
	for a := range rune(top + 1) {
		for b := range rune(top + 1) {
			for c := range rune(top + 1) {
				sets = append(sets, cleanRanges([]rune{a, b, c, min(c+2, top)}))
			}
		}
	}
	for _, r := range sets {
		for i := 1; i < len(r); i++ {
			if i%2 == 1 && r[i] < r[i-1] || i%2 == 0 && r[i] <= r[i-1]+1 {
				t.Fatalf("%v is not clean", r)
			}
		}
		n := 0
		for c, in := range members(negateRanges(r, top)) {
			if in == HasRune(r, rune(c)) {
				t.Fatalf("%d is in %v and in what it is not", c, r)
			}
			if !in {
				n++
			}
		}
		if n != CountRunes(r) {
			t.Fatalf("%v has %d members, not %d", r, n, CountRunes(r))
		}
	}
	slices.SortFunc(sets, slices.Compare)
	sets = slices.CompactFunc(sets, slices.Equal)
	for _, a := range sets {
		for _, b := range sets {
			for c, in := range members(Intersect(a, b)) {
				if in != (HasRune(a, rune(c)) && HasRune(b, rune(c))) {
					t.Fatalf("%d in both of %v and %v: %v", c, a, b, in)
				}
			}
		}
	}
}

// Classes hold what those of Go hold, folded or not.
func TestClasses(t *testing.T) {
	t.Parallel()
	for _, class := range []string{"[a-c]", "[^a-c]", "[k]", "[ſ]", `[\x{17f}]`, `\pL`, `\PL`, `\p{Greek}`, `[[:alpha:]]`, `[^[:^digit:]x]`, `[\-\]]`, "[]a]", "[^]a]"} {
		for _, fold := range []bool{false, true} {
			n := tree(t, class, Options{IgnoreCase: fold}).Root
			if n.Op != OpClass {
				t.Fatalf("%s is read as %d", class, n.Op)
			}
			flags := "(?s)"
			if fold {
				flags = "(?si)"
			}
			re := regexp.MustCompile("^" + flags + class + "$")
			for r := rune(0); r < 0x600; r++ {
				if got, want := HasRune(n.Ranges, r), r != '\n' && re.MatchString(string(r)); got != want {
					t.Fatalf("%s, folded %v, holds %U: %v; no class holds the end of a line", class, fold, r, got)
				}
			}
		}
	}
}

func TestIsWord(t *testing.T) {
	t.Parallel()
	ranges := WordRanges()
	for r := rune(0); r <= unicode.MaxRune; r++ {
		for len(ranges) > 0 && ranges[1] < r {
			ranges = ranges[2:]
		}
		if IsWordRune(r) != (len(ranges) > 0 && r >= ranges[0]) {
			t.Fatalf("%U is a word character: %v", r, IsWordRune(r))
		}
	}
	for b := range rune(0x100) {
		if IsWordByte(byte(b)) != HasRune(WordASCII, b) {
			t.Fatalf("byte %#x is a word character: %v", b, IsWordByte(byte(b)))
		}
	}
}

// Parts that match nothing but the empty string are left out.
func TestPrune(t *testing.T) {
	t.Parallel()
	if n := tree(t, "((((){1000}){1000}){1000}){1000}", Options{}).Root; Prune(n).Op != OpEmpty {
		t.Error("what matches nothing is still run a million times")
	}
}

// A bad pattern is told where it is bad.
func TestBadPatterns(t *testing.T) {
	t.Parallel()
	for pattern, offset := range map[string]int{
		"foo(": 3, "foo)": 3, "[abc": 0, "*a": 0, "a\nb": 1, `a\nb`: 1, `D:\bin\new\.*`: 6, "\xff": 0,
		`(a)\1`: 3, "a(?=b)": 1, "a(?!b)": 1, "(?<=a)b": 0, "(?<!a)b": 0, "(?>a|ab)c": 0, `(?P<x>a)(?P=x)`: 8, `(?<x>a)\k<x>`: 7, strings.Repeat("a", MaxPattern+1): MaxPattern,
	} {
		_, err := Parse(pattern, Options{})
		if err == nil || err.Pattern != pattern || err.Offset != offset || err.Why == "" {
			t.Errorf("%.20q: %+v, want one at %d", pattern, err, offset)
		}
	}
	if _, err := Parse("\xff", Options{Literal: true}); err == nil {
		t.Error("bytes that are no text are taken for one")
	}
}

func TestLiteralPatterns(t *testing.T) {
	t.Parallel()
	n := tree(t, `a.*[`, Options{Literal: true}).Root
	var got []rune
	for _, s := range n.Subs {
		got = append(got, s.Ranges...)
	}
	if !slices.Equal(got, []rune("aa..**[[")) {
		t.Errorf("%q", got)
	}
}

func TestNamesNonASCII(t *testing.T) {
	t.Parallel()
	for pattern, want := range map[string]bool{"abc": false, "é": true, `\xe9`: true, `\pL`: true, `\\x`: false, `\d`: false, `\`: false, `a\`: false} {
		if got := NamesNonASCII(pattern, false); got != want {
			t.Errorf("%q: %v", pattern, got)
		}
	}
	if NamesNonASCII(`\xe9`, true) || !NamesNonASCII("é", true) {
		t.Error("a literal has no escapes")
	}
}
