package glob

import (
	"errors"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestMatch(t *testing.T) {
	for _, c := range []struct{ pattern, yes, no string }{
		{"/x/**", "/x /x/a /x/a/b /x/.h", "/ /xa /y /x2/a x/a"},
		{"/x/**/*", "/x/a /x/a/b", "/x /y"},
		{"/x/*", "/x/a /x/.a", "/x /x/a/b"},
		{"/", "/", "/a a"},
		{"/**", "/ /a /a/b", "a"},
		{"/a/**/b", "/a/b /a/x/b /a/x/y/b /a/b/b", "/a /a/b/c /b"},
		{"/a/**/b/**/c", "/a/b/c /a/b/b/c/c /a/x/b/y/c", "/a/c/b /a/b"},
		{"/a/**/**/b", "/a/b /a/x/b", "/a"},
		{"/p/.env*", "/p/.env /p/.env.local", "/p/env /p/.env/x"},
		{"/p/*.go", "/p/a.go /p/.go", "/p/a.gob /p/x/a.go"},
		{"/p/a*b*c", "/p/abc /p/aXbbYc /p/abcbc", "/p/ab /p/abcd /p/bc"},
		{"/p/?", "/p/a /p/é /p/日", "/p/ab /p"},
		{"/p/*?", "/p/a /p/é", "/p"},
		{"/p/[a-cx]", "/p/a /p/b /p/x", "/p/d /p/ab"},
		{"/p/[!a]", "/p/b /p/é", "/p/a /p"},
		{"/p/[^a]", "/p/b", "/p/a"},
		{"/p/[]a]", "/p/] /p/a", "/p/b"},
		{"/p/[a-]", "/p/a /p/-", "/p/b"},
		{`/p/[\]]`, "/p/]", `/p/\`},
		{`/p/\*`, "/p/*", "/p/a"},
		{`/p/\{a\}`, "/p/{a}", "/p/a"},
		{"/p/{a,b}", "/p/a /p/b", "/p/c /p/{a,b}"},
		{"/p/{a,b/{c,d}}/e", "/p/a/e /p/b/c/e /p/b/d/e", "/p/b/e"},
		{"/p/x{,y}", "/p/x /p/xy", "/p/y"},
		{"/p{,/**}", "/p /p/a /p/a/b", "/q"},
		{"/p/{ts}", "/p/ts", "/p/{ts}"},
		{"/p/a,b", "/p/a,b", "/p/a"},
		{"a/*.go", "a/b.go", "/a/b.go b.go"},
		{"**/*.go", "a.go x/y/a.go", "/a.go a.txt"},
		{"**", "a a/b", "/a"},
		{"/日本/*", "/日本/語", "/日/語"},
	} {
		g, err := Compile(c.pattern, Options{})
		if err != nil {
			t.Errorf("%q: %v", c.pattern, err)
			continue
		}
		for _, p := range strings.Fields(c.yes) {
			if !g.Match(p) {
				t.Errorf("%q does not match %q", c.pattern, p)
			}
		}
		for _, p := range strings.Fields(c.no) {
			if g.Match(p) {
				t.Errorf("%q matches %q", c.pattern, p)
			}
		}
	}
	if g, _ := Compile("**", Options{}); !g.Match("") {
		t.Error("** does not match the relative root")
	}
	if g, _ := Compile("/p/*[!é]", Options{}); g.Match("/p/é") {
		t.Error("a star left half a character to the class")
	}
	if g, _ := Compile("/p/[!a]?", Options{}); !g.Match("/p/\xff\xfe") {
		t.Error("bytes that are no characters are one each")
	}
}

func TestSyntax(t *testing.T) {
	for _, c := range []struct {
		pattern string
		offset  int
		why     string
	}{
		{"", 0, "empty"},
		{"/a/[b", 3, "never closed"},
		{"/a/[", 3, "never closed"},
		{"/a/[]", 3, "never closed"},
		{`/a/[b\`, 3, "never closed"},
		{"/a/[z-a]", 4, "backwards"},
		{"/a/[a/b]", 5, "slash"},
		{"/a/[[:alpha:]]", 4, "named classes"},
		{"/a/{b", 3, "never closed"},
		{"/a/{b,{c}", 3, "never closed"},
		{"/a/b}", 4, "without an opening"},
		{"/a/{1..3}", 3, "ranges"},
		{`/a\`, 2, "backslash"},
		{`/a\/b`, 2, "needs no backslash"},
		{"/a**", 2, "alone"},
		{"/a/**b", 3, "alone"},
		{"/a/***", 3, "alone"},
		{"/a//b", 3, "empty segment"},
		{"/a/", 2, "ends in a slash"},
		{"/a/\x00", 3, "NUL"},
		{"/a/\xff", 3, "UTF-8"},
		{"/" + strings.Repeat("a", MaxLength), MaxLength, "longer"},
		{"/" + strings.Repeat("{a,b}", 9), 1, "256"},
		{"/" + strings.Repeat("{a,{b,c}}", 100), 1, "256"},
		{"/" + strings.Repeat("{a,b}", 8) + strings.Repeat("x", 900), 1, "16384"},
		{"/*" + strings.Repeat("/a", 64), 128, "63 segments"},
	} {
		_, err := Compile(c.pattern, Options{})
		var bad *SyntaxError
		if !errors.As(err, &bad) {
			t.Errorf("%.40q: accepted", c.pattern)
			continue
		}
		if bad.Offset != c.offset || !strings.Contains(bad.Why, c.why) {
			t.Errorf("%.40q: byte %d %s; want byte %d …%s…", c.pattern, bad.Offset, bad.Why, c.offset, c.why)
		}
	}
	if g, err := Compile("src/**.ts", Options{LooseStars: true}); err != nil || !g.Match("src/a.ts") || g.Match("src/x/a.ts") {
		t.Errorf("loose stars: %v", err)
	}
	if _, err := Compile("/"+strings.Repeat("{", 1000), Options{}); err == nil {
		t.Error("1000 open braces accepted")
	}
}

func TestCheckRule(t *testing.T) {
	for _, good := range []string{"/", "/**", "/a", "/a/**", "**/.env", "**", "/a/{b,c}/**", "/a/..b", "/a b/c", "/a/.*", `/a/\~`, "/a/[.]x"} {
		if err := CheckRule(good); err != nil {
			t.Errorf("%q: %v", good, err)
		}
	}
	for _, c := range []struct {
		pattern string
		offset  int
		why     string
	}{
		{"a/b", 0, "not absolute"},
		{"*.go", 0, "not absolute"},
		{"./a", 0, "not absolute"},
		{"~/a", 0, "~"},
		{"~", 0, "~"},
		{"$HOME/a", 0, "variables"},
		{"!/a", 0, "negation"},
		{" /a", 0, "blank"},
		{"/a ", 2, "blank"},
		{"/a\t\n", 2, "blank"},
		{"/a/../b", 3, `".."`},
		{"/a/.git/..", 8, `".."`},
		{"/a/.", 3, `"."`},
		{"/.a/*/./b", 6, `"."`},
		{"/a/{b,..}/c", 0, `".."`},
		{"/a/", 2, "slash"},
		{"**/x/[", 5, "never closed"},
		{"**x", 0, "not absolute"},
		{"{/a,b}", 0, "not absolute"},
		{"", 0, "empty"},
	} {
		var bad *SyntaxError
		if !errors.As(CheckRule(c.pattern), &bad) {
			t.Errorf("%q: accepted", c.pattern)
			continue
		}
		if bad.Pattern != c.pattern && !strings.HasPrefix(c.pattern, "**") {
			t.Errorf("%q: error names %q", c.pattern, bad.Pattern)
		}
		if (c.offset != 0 && bad.Offset != c.offset) || !strings.Contains(bad.Why, c.why) {
			t.Errorf("%q: byte %d %s; want byte %d …%s…", c.pattern, bad.Offset, bad.Why, c.offset, c.why)
		}
	}
	g, err := CompileRule("**/.env", nil)
	if err != nil || !g.Match("/.env") || !g.Match("/a/b/.env") || g.Match("/a/env") {
		t.Errorf("any depth: %v", err)
	}
}

// A hostile pattern on a hostile path costs the product of their lengths at most. With backtracking
// the counts below would be astronomic, and the test would not end.
func TestNoBlowUp(t *testing.T) {
	path := "/" + strings.Repeat("a/", 2000) + "b"
	name := "/" + strings.Repeat("a", 4000)
	for _, pattern := range []string{
		"/" + strings.Repeat("**/a/", 30) + "c",
		"/" + strings.Repeat("**/*/", 30) + "c",
		"/" + strings.Repeat("*a", 400) + "c",
		"/" + strings.Repeat("a*", 400) + "c",
		"/" + strings.Repeat("{a,aa}*", 8) + "c",
		"/**/" + strings.Repeat("?*", 300) + "c",
	} {
		g, err := Compile(pattern, Options{})
		if err != nil {
			t.Fatalf("%.30q: %v", pattern, err)
		}
		if g.Match(path) || g.Match(name) {
			t.Errorf("%.30q matches", pattern)
		}
	}
}

func TestSteps(t *testing.T) {
	g, err := Compile("/a/b/**/c*/d", Options{})
	if err != nil {
		t.Fatal(err)
	}
	p := g.Patterns()[0]
	if got := strings.Join(p.Literal(), "/"); got != "a/b" || !p.absolute {
		t.Errorf("literal %q", got)
	}
	s := p.Start()
	for _, name := range []string{"x", "cc", "d"} {
		if p.Done(s) || p.Rest(s) || !p.Live(s) {
			t.Errorf("before %s: state %b", name, s)
		}
		s = p.Step(s, name)
	}
	if !p.Done(s) || !p.Live(s) {
		t.Errorf("at the end: state %b", s)
	}
	g, _ = Compile("/x/**", Options{})
	p = g.Patterns()[0]
	if s := p.Start(); !p.Rest(s) || !p.Done(s) {
		t.Error("/x/** does not cover all below /x")
	}
	g, _ = Compile("/x", Options{})
	p = g.Patterns()[0]
	if s := p.Start(); p.Rest(s) || p.Live(s) || !p.Done(s) {
		t.Error("/x covers more than itself")
	}
}

func TestFold(t *testing.T) {
	lower := func(run string, ends bool) string {
		if ends {
			run = strings.TrimRight(run, ". ")
		}
		return strings.ToLower(run)
	}
	g, err := Compile("/X/Ab[C-D]*.Txt.", Options{Fold: lower})
	if err != nil {
		t.Fatal(err)
	}
	if !g.Match("/x/abc1.txt") || !g.Match("/x/abd.txt") || g.Match("/x/abe.txt") {
		t.Error("folding literals or classes is broken")
	}
}

// reference translates a pattern into a regular expression over the path with a slash after every
// segment. It is slow, and has nothing in common with the matcher.
func reference(pattern string) *regexp.Regexp {
	var b strings.Builder
	b.WriteString(`(?s)\A(?:`)
	for i, alt := range braces(pattern) {
		if i > 0 {
			b.WriteByte('|')
		}
		if strings.HasPrefix(alt, "/") {
			b.WriteByte('/')
			alt = alt[1:]
		}
		for s := range strings.SplitSeq(alt, "/") { // no slash can be escaped or stand in a class
			switch s {
			case "":
			case "**":
				b.WriteString(`(?:[^/]+/)*`)
			default:
				b.WriteString(`(?:` + segmentRegexp(s) + `)/`)
			}
		}
	}
	b.WriteString(`)\z`)
	return regexp.MustCompile(b.String())
}

func slashed(path string) string {
	if path == "" || path == "/" {
		return path
	}
	return path + "/"
}

func segmentRegexp(s string) string {
	if strings.Trim(s, "*") == "" {
		return `[^/]+`
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		i += size
		switch r {
		case '*':
			b.WriteString(`[^/]*`)
		case '?':
			b.WriteString(`[^/]`)
		case '\\':
			r, size = utf8.DecodeRuneInString(s[i:])
			i += size
			b.WriteString(regexp.QuoteMeta(string(r)))
		case '[':
			b.WriteByte('[')
			if s[i] == '!' || s[i] == '^' {
				b.WriteString(`^/`)
				i++
			}
			one := func() rune {
				if s[i] == '\\' {
					i++
				}
				r, size := utf8.DecodeRuneInString(s[i:])
				i += size
				return r
			}
			for first := true; s[i] != ']' || first; first = false {
				lo := one()
				hi := lo
				if s[i] == '-' && s[i+1] != ']' {
					i++
					hi = one()
				}
				if lo < '/' && '/' < hi { // no class matches a slash
					b.WriteString(`\x{` + hex(lo) + `}-.`)
					lo = '/' + 1
				}
				b.WriteString(`\x{` + hex(lo) + `}-\x{` + hex(hi) + `}`)
			}
			i++
			b.WriteByte(']')
		default:
			b.WriteString(regexp.QuoteMeta(string(r)))
		}
	}
	return b.String()
}

func hex(r rune) string {
	const digits = "0123456789abcdef"
	if r < 16 {
		return digits[r : r+1]
	}
	return hex(r/16) + digits[r%16:r%16+1]
}

// braces multiplies out by rewriting the first group until none is left.
func braces(p string) []string {
	open, depth, inClass, from := -1, 0, -1, 0
	var parts []string
	for i := 0; i < len(p); i++ {
		switch c := p[i]; {
		case c == '\\':
			i++
		case inClass >= 0:
			if c == ']' && i > inClass {
				inClass = -1
			}
		case c == '[':
			inClass = i + 1
			if i+1 < len(p) && (p[i+1] == '!' || p[i+1] == '^') {
				inClass++
			}
		case c == '{':
			if depth++; depth == 1 {
				open, from = i, i+1
			}
		case c == ',' && depth == 1:
			parts, from = append(parts, p[from:i]), i+1
		case c == '}':
			if depth--; depth == 0 {
				var out []string
				for _, part := range append(parts, p[from:i]) {
					out = append(out, braces(p[:open]+part+p[i+1:])...)
				}
				return out
			}
		}
	}
	return []string{p}
}

func FuzzMatch(f *testing.F) {
	for _, p := range []string{"/x/**", "/a/**/b", "**/*.go", "/p/{a,b/{c,d}}/e", "/p/[!a-c]?", `/p/\*[\]]`, "/p{,/**}", "a*b*c", "**/a/**/b*", "**", "/é*[é-í]", "**/**", "/**/*/**"} {
		for _, path := range []string{"/x/a", "a/b", "/p/b/d/e", "", "/", "/é/í", "/a/\xff"} {
			f.Add(p, path)
		}
	}
	f.Add("[--έ]*[--έ]", "/;b/ό") // the range goes across the slash
	f.Fuzz(func(t *testing.T, pattern, path string) {
		if len(pattern) > 60 || len(path) > 100 {
			return
		}
		if strings.Contains(path, "//") || (len(path) > 1 && strings.HasSuffix(path, "/")) {
			return
		}
		g, err := Compile(pattern, Options{})
		if err != nil {
			var bad *SyntaxError
			if !errors.As(err, &bad) || bad.Offset < 0 || bad.Offset > len(pattern) {
				t.Fatalf("%q: odd error %v", pattern, err)
			}
			return
		}
		if !utf8.ValidString(path) { // the regexp package takes a stray byte for U+FFFD
			g.Match(path)
			return
		}
		for _, alt := range braces(pattern) { // rewriting text, the reference makes ** of *{*}; the parser does not
			if strings.Contains(alt, "***") || strings.Count(alt, "**") > strings.Count(pattern, "**") {
				return
			}
		}
		if got, want := g.Match(path), reference(pattern).MatchString(slashed(path)); got != want {
			t.Fatalf("%q on %q: %v, reference says %v (%s)", pattern, path, got, want, reference(pattern))
		}
	})
}

func BenchmarkMatch(b *testing.B) {
	for _, c := range []struct{ name, pattern string }{
		{"tree", "/home/user/project/**"},
		{"suffix", "**/*.pem"},
		{"deep", "/home/**/node_modules/**/x*y"},
	} {
		g, err := CompileRule(c.pattern, nil)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				g.Match("/home/user/project/internal/engine/mutate_test.go")
			}
		})
	}
}
