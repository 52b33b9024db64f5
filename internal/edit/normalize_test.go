package edit

import "testing"

// TestFold: what a reader takes for ASCII is folded; signs of other scripts and of mathematics are not.
func TestFold(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]string{
		"\u2018a\u2019": "'a'", "\u201ca\u201d": `"a"`, "1\u20132": "1-2", "a\u2014b": "a-b", "\u22121": "-1", "a\u2026": "a...",
		"a\u00a0b": "a b", "a\u3000b": "a b", "a\u200bb": "ab", "\ufeffa": "a", "so\u00adft": "soft",
		// not touched
		"\u00aba\u00bb": "\u00aba\u00bb", "a\u00b7b": "a\u00b7b", "\u00bd": "\u00bd", "a\u200db": "a\u200db", "\u05f3": "\u05f3",
		"caf\u00e9": "caf\u00e9", "a`b": "a`b", "\u00d7": "\u00d7", "\xff": "\xff",
	} {
		if got := string(Plain([]byte(s))); got != want {
			t.Errorf("%q: %q, want %q", s, got, want)
		}
		if odd := oddRunes(s); (odd != "") != (s != want) {
			t.Errorf("%q: odd %q", s, odd)
		}
	}
}
