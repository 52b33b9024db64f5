package alternatives

import (
	"slices"
	"strings"
	"testing"
)

// TestPaths: each wrapping is taken off, and the path below it is among the readings.
func TestPaths(t *testing.T) {
	t.Parallel()
	for rule, asked := range map[string][]string{
		"quotes":    {`"/ws/py/a.py"`, "`/ws/py/a.py`", "'py/a.py'", "“/ws/py/a.py”", `/ws/"/ws/py/a.py"`},
		"blanks":    {" /ws/py/a.py ", "/ws/py/a.py\n", "/ws/py/a.py\nand more", "\u200b/ws/py/a.py"},
		"mention":   {"@py/a.py", "@/ws/py/a.py", "[a.py](/ws/py/a.py)", "</ws/py/a.py>", "file_path: /ws/py/a.py"},
		"diff":      {"a/py/a.py", "b/py/a.py"},
		"URL":       {"file:///ws/py/a.py", "file:/ws/py/a.py", "file://localhost/ws/py/a.py", "vscode://file/ws/py/a.py", "/ws/py/%61.py"},
		"variable":  {"${workspaceFolder}/py/a.py", "$PWD/py/a.py", "/ws/${workspaceFolder}/py/a.py", "{{root}}/py/a.py", "<root>/py/a.py", "$(pwd)/py/a.py", "%CD%\\py\\a.py"},
		"home":      {"~/py/a.py"},
		"separator": {`py\a.py`, `/ws\py\a.py`, `\\ws\\py\\a.py`},
		"drive":     {`C:\ws\py\a.py`, "c:/ws/py/a.py", "/c/ws/py/a.py", "/C:/ws/py/a.py"},
		"place":     {"/ws/py/a.py:12", "/ws/py/a.py:12:5", "/ws/py/a.py:12-20", "/ws/py/a.py#L12-L20", "/ws/py/a.py(12,5)", "/ws/py/a.py::test_x", "/ws/py/a.py, line 12", "py/a.py:12"},
		"sandbox":   {"/workspace/py/a.py", "/app/py/a.py"},
		"relative":  {"py/a.py", "./py/a.py", "py//a.py"},
		"sentence":  {"/ws/py/a.py.", "/ws/py/a.py,"},
	} {
		for _, p := range asked {
			if got := Paths(p, "/ws"); !slices.Contains(got, "/ws/py/a.py") {
				t.Errorf("%s: %q is not read as /ws/py/a.py: %q", rule, p, got)
			}
		}
	}
	for _, plain := range []string{"/ws/py/a.py", "/ws/a b/c-d_e.txt", "/ws/[id]/x.ts", "/ws/naïve.txt"} {
		if got := Paths(plain, "/ws"); len(got) > 0 {
			t.Errorf("%q is plain, and read as %q", plain, got)
		}
	}
	for _, p := range []string{"../x", "", "\x00", "a\x00b", "../../etc/passwd"} {
		for _, got := range Paths(p, "/ws") {
			if !strings.HasPrefix(got, "/ws") {
				t.Errorf("%q climbs out: %q", p, got)
			}
		}
	}
}

// FuzzPaths: readings are absolute, clean, and none is asked again.
func FuzzPaths(f *testing.F) {
	for _, p := range []string{"a/../b", `C:\x:12`, "file:///%zz", "~", "${x}", "\"'\"", "[](x)", "::"} {
		f.Add(p)
	}
	f.Fuzz(func(t *testing.T, p string) {
		for i, got := range Paths(p, "/ws") {
			if !strings.HasPrefix(got, "/") || got == p && strings.HasPrefix(p, "/") || i > 40 {
				t.Errorf("%q is read as %q", p, got)
			}
		}
		Suffixes(p)
		CutGlob(p)
		NameGlob(p)
	})
}

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
		{"a  b", "words with any blanks between", `a\s+b`},
		{`a\nb`, "text of several lines", `a\nb`},
		// not so read
		{"abc", "the bare pattern", ""},
		{"a/b/c", "the bare pattern", ""},
		{"rgb", "the bare pattern", ""},
		{"abc", "a basic regular expression", ""},
		{`a\.b`, "a pattern with single backslashes", ""},
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
		{".go", "*.go", false}, {"/src/*.go", "src/*.go", false}, {"[id].ts", `\[id\].ts`, false},
		{"src/", "src/**", false}, {"*.GO", "*.[gG][oO]", false}, {"a/b.go", "**/b.go", false},
		// not so read
		{"src/*.go", "**/*.go", true}, {"!*.go", "*.go", true}, {"*.go", "*", true}, {"[ab].go", "[aA][bB].go", true}, {`a\.go`, "a/.go", true},
	} {
		if got := Globs(c.asked); slices.Contains(got, c.want) == c.not {
			t.Errorf("%q: %q, of which %q", c.asked, got, c.want)
		}
	}
}
