package replace

import (
	"errors"
	"testing"

	"moltisfs/grep/match"
	"moltisfs/internal/args"
	"moltisfs/internal/edit"
)

func TestApply(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		old, with string
		regex     bool
		in, want  string // "" is no match
		n         int
	}{
		{"a", "b", false, "a ba\nca\n", "b bb\ncb\n", 3},
		{"a.c", "x", false, "abc a.c", "abc x", 1},
		{"$1", "${1}", false, "cost $1", "cost ${1}", 1},
		{"a\nb", "x\ny", false, "a\r\nb\r\na\nb", "x\r\ny\r\nx\ny", 2},
		{"a\nb", "x\ny", false, "a\r\nb\r\n", "x\r\ny\r\n", 1},
		{"none", "x", false, "abc", "", 0},
		{`(\w+)@(\w+)`, "${2} at ${1}", true, "me@home you@work\n", "home at me work at you\n", 2},
		{`(?P<user>\w+)@`, "<${user}>", true, "me@home", "<me>home", 1},
		{`a+`, "[${0}]", true, "aab", "[aa]b", 1},
		{`\$(\d)`, "$${1} ${1}", true, "$7", "${1} 7", 1},
		{`(a)`, "$$1", true, "a", "$1", 1},
		{`x`, "$HOME $ {x}", true, "x", "$HOME $ {x}", 1},
		{`^`, "> ", true, "a\nb\n", "> a\n> b\n", 2},
		{`;$`, "", true, "a;\r\nb;\r\n", "a\r\nb\r\n", 2},
		{`\s+$`, "", true, "a  \r\nb\t\n", "a\r\nb\n", 2},
		{`a\nb`, "x\ny", true, "a\nb\na\nb", "x\ny\nx\ny", 2},
		{`a.*\nb`, "x", true, "ac\nb", "x", 1},
		{`a.*b`, "x", true, "a\nb", "", 0}, // a dot stays within its line
		{`(a)(q)?`, "${2}${1}", true, "a", "a", 1},
		{"x", "y", true, "\xef\xbb\xbfx\n", "\xef\xbb\xbfy\n", 1},
		{"x", "é", false, "\xff\xfex\x00\r\x00\n\x00", "\xff\xfe\xe9\x00\r\x00\n\x00", 1},
	} {
		r, err := Compile(c.old, c.with, c.regex)
		if err != nil {
			t.Errorf("%q: %v", c.old, err)
			continue
		}
		res, err := r.Apply([]byte(c.in), edit.Options{})
		switch {
		case err != nil:
			t.Errorf("%q in %q: %v", c.old, c.in, err)
		case res == nil:
			if c.want != "" {
				t.Errorf("%q in %q: no match", c.old, c.in)
			}
		case string(res.Content) != c.want || res.Replacements != c.n:
			t.Errorf("%q in %q: %q, %d; want %q, %d", c.old, c.in, res.Content, res.Replacements, c.want, c.n)
		}
		m, spans := r.Matcher()
		s := m.Scanner()
		if found := s.Any([]byte(c.in)); found != (c.want != "") && c.in[0] < 0x80 {
			t.Errorf("%q in %q: a search finds it: %v (%v)", c.old, c.in, found, spans)
		}
		m.Put(s)
	}
}

// A call that may mean something else than its sender thinks is refused.
func TestRefuses(t *testing.T) {
	t.Parallel()
	for _, c := range [][2]string{{`(a)`, "$1"}, {`(a)`, "${2}"}, {`(a)`, "${x}"}, {`a`, "${}"}} {
		_, err := Compile(c[0], c[1], true)
		if _, ok := errors.AsType[*args.Error](err); !ok {
			t.Errorf("%q: %v", c, err)
		}
	}
	for _, c := range [][2]string{{`(a`, "x"}, {`(?<=b)(a)`, "${1}"}} {
		_, err := Compile(c[0], c[1], true)
		if _, ok := errors.AsType[*match.PatternError](err); !ok {
			t.Errorf("%q: %v", c, err)
		}
	}
	r, err := Compile(`(\d)`, "<${1}>", true)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Apply([]byte("٣ 4"), edit.Options{}); !errors.Is(err, errGroups) {
		t.Errorf("digits that only one of the two knows: %v", err)
	}
}
