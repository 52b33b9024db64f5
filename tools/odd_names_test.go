package tools

import (
	"slices"
	"testing"

	"moltisfs/internal/engine"
)

// TestOddNames: names that can't be read as they are, told once and in ASCII; a root's own name and
// names of one script are not told.
func TestOddNames(t *testing.T) {
	t.Parallel()
	got := engine.OddNames("/z\u200b", slices.Values([]string{"/z\u200b/ok.txt", "/z\u200b/a\u202egnp.exe",
		"/z\u200b/a\u202egnp.exe", "/z\u200b/ünï.txt", "/z\u200b/日本.txt", "/z\u200b/p\u0430.py", "/z\u200b/e\x1b[2J"}))
	if want := []string{`"a\u202egnp.exe"`, `"p\u0430.py"`, `"e\x1b[2J"`}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	const line = "\n[names that are not what they seem: \"a\\u202eb\"]"
	odd := []string{`"a\u202eb"`}
	if g := (&Glob{Paths: []string{"/a"}, OddNames: odd}).Text(); g != "/a"+line {
		t.Errorf("%q", g)
	}
	g := &Grep{Files: []string{"/r/a\u202eb"}, Counts: []GrepCount{{Path: "/r/b\u202e"}}, Matches: []GrepMatch{{Path: "/r/c\u202e"}}}
	if got := engine.OddNames("/r", g.listed); !slices.Equal(got, []string{`"a\u202eb"`, `"b\u202e"`, `"c\u202e"`}) {
		t.Errorf("%q", got)
	}
	many := []string{"/1\u202e", "/2\u202e", "/3\u202e", "/4\u202e", "/5\u202e", "/6\u202e"}
	if got := engine.OddNames("/", slices.Values(many)); len(got) != 5 {
		t.Errorf("%q", got)
	}
}
