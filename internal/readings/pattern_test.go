package readings

import (
	"slices"
	"testing"
)

// TestPatterns: each reading of a pattern has its name; a plain word has none but another letter case.
func TestPatterns(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ asked, as, want string }{
		{"/ab+c/", "the bare pattern", "ab+c"},
		{"grep -n 'abc'", "the bare pattern", "abc"},
		{`a\|b`, "a basic regular expression", "a|b"},
		{`f\(x\)`, "a basic regular expression", "f(x)"},
		{`f\\(`, "a pattern with single backslashes", `f\(`},
		{"f(x)", "literal text", `f\(x\)`},
		{"*Handler", "a glob", "Handler"},
		{"a  b", "words with any blanks between", `a\s+b`},
		{`a\nb`, "text of several lines", `a\nb`},
		// not so read
		{"abc", "the bare pattern", ""},
		{"a/b/c", "the bare pattern", ""},
		{"rgb", "the bare pattern", ""},
		{"abc", "a basic regular expression", ""},
		{`a\.b`, "a pattern with single backslashes", ""},
		{"a.*b", "a glob", ""},
		{"(a)*b", "a glob", ""},
		{"ab", "words with any blanks between", ""},
		{"abc", "text of several lines", ""},
	} {
		got := ""
		for _, r := range Patterns(c.asked, true, false) {
			if r.As == c.as && got == "" {
				got = r.Text
			}
		}
		if got != c.want {
			t.Errorf("%q as %s: %q, want %q", c.asked, c.as, got, c.want)
		}
	}
	if got := Patterns("abc", true, false); len(got) > 0 {
		t.Errorf("a plain word is read as %v", got)
	}
}

// TestGlobs: the same of globs.
func TestGlobs(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		asked, want string
		not         bool
	}{
		{`"*.go"`, "*.go", false}, {`src\*.go`, "src/*.go", false}, {`.*\.go$`, "*.go", false}, {"*.(a|b)", "*.{a,b}", false},
		{"*.a | *.b", "*.a,*.b", false}, {".go", "*.go", false}, {"/src/*.go", "src/*.go", false}, {"[id].ts", `\[id\].ts`, false},
		{"src/", "src/**", false}, {"*.GO", "*.[gG][oO]", false}, {"a/b.go", "**/b.go", false},
		// not so read
		{"src/*.go", "**/*.go", true}, {"!*.go", "*.go", true}, {"*.go", "*", true}, {"[ab].go", "[aA][bB].go", true}, {`a\.go`, "a/.go", true},
	} {
		if got := Globs(c.asked); slices.Contains(got, c.want) == c.not {
			t.Errorf("%q: %q, of which %q", c.asked, got, c.want)
		}
	}
	for g, want := range map[string]string{"~/src/*.go": "src/*.go", "${workspaceFolder}/*.go": "*.go", "ws/src/a.go": "src/a.go", "/workspace/**/*.go": "**/*.go",
		"src/*.go": "", "*.go": "", "../x/*.go": "", "/etc/*.conf": "", "wsx/*.go": "", "ws/../../etc/*": ""} {
		got := GlobsBelow(g, "/home/ws")
		if want == "" && len(got) > 0 || want != "" && !slices.Contains(got, want) {
			t.Errorf("%q below the root: %q, want %q", g, got, want)
		}
	}
}
