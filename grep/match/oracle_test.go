package match

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"moltisfs/grep/match/syntax"
)

var (
	soak = flag.Duration("match.soak", 0, "how long TestAgainstRegexp goes on; 0 means a fixed number of rounds")
	seed = flag.Uint64("match.seed", 0, "seed of TestAgainstRegexp; 0 means the clock when soaking, else 1")
)

// generator makes patterns that package regexp and this package read alike on ASCII text, and texts
// that nearly match them.
type generator struct{ *rand.Rand }

func (g generator) pick(s ...string) string { return s[g.IntN(len(s))] }

func (g generator) pattern(depth int) string {
	switch n := g.IntN(14); {
	case depth <= 0 || n < 4:
		return g.pick("a", "b", "c", "foo", "bar", "ab", "K", "s", "_", "9", "x1", `\.`, `\{`, "é", "ß", "ſ", "中", "-", "interface{}", "a{", "BAZ", `\x41`)
	case n < 6:
		return g.pick(".", `\d`, `\w`, `\s`, `\D`, `\W`, `\S`, "[a-c]", "[^a]", "[a-zA-Z_]", "[[:alpha:]]", "[0-9]", `[^\w]`, `[\d_]`, "[K-s]", "[é-中]", "[ab]", "[^b-z]", `[^\s]`)
	case n < 7:
		return g.pick("^", "$", `\b`, `\B`, "", `\A`, `\z`)
	case n < 9:
		return "(?:" + g.pattern(depth-1) + ")" + g.pick("*", "+", "?", "{2}", "{1,3}", "{0,2}", "*?", "+?", "??", "{2,}", "{0}")
	case n < 11:
		return "(" + g.pattern(depth-1) + "|" + g.pattern(depth-1) + ")"
	case n < 12:
		return "(?i:" + g.pattern(depth-1) + ")"
	}
	return g.pattern(depth-1) + g.pattern(depth-1)
}

func (g generator) text(ascii, ends bool) []byte {
	var b bytes.Buffer
	for n := g.IntN(40); n > 0; n-- {
		if g.IntN(40) == 0 { // long enough for the vectors and the streams
			b.WriteString(strings.Repeat(g.pick("xyz ", "a", "\n", "foo", "9 ", "ba\n"), g.IntN(1200)))
		}
		if !ascii && g.IntN(4) == 0 {
			b.WriteString(g.pick("é", "ß", "ſ", "中", "\u212a", "É", "😀", "\u0663"))
			continue
		}
		b.WriteString(g.pick("a", "b", "c", "foo", "bar", "FOO", "K", "k", "s", "S", "_", "9", "x1", ".", "{", "}", " ", "\n", "\n", "\t", "-", "A", "interface{}", "a{", "baz", "1", "12"))
	}
	if ends {
		b.WriteByte('\n')
	}
	return b.Bytes()
}

// goPattern writes a parsed tree in Go's syntax. It is for texts beyond ASCII, on which Go's own \w
// and \b differ from ours.
func goPattern(n *syntax.Node) string {
	var b strings.Builder
	w := func(f string, a ...any) { fmt.Fprintf(&b, f, a...) }
	var walk func(n *syntax.Node)
	walk = func(n *syntax.Node) {
		switch n.Op {
		case syntax.OpNever:
			w(`[^\x00-\x{10FFFF}]`)
		case syntax.OpClass:
			w("[")
			for i := 0; i < len(n.Ranges); i += 2 {
				w(`\x{%x}-\x{%x}`, n.Ranges[i], n.Ranges[i+1])
			}
			w("]")
		case syntax.OpLook:
			w("%s", map[syntax.Look]string{
				syntax.LookTextStart: `\A`, syntax.LookTextEnd: `\z`, syntax.LookLineStart: "(?m:^)",
				syntax.LookLineEnd: "(?m:$)", syntax.LookWord: `\b`, syntax.LookNotWord: `\B`,
			}[n.Look])
		case syntax.OpConcat, syntax.OpAlt, syntax.OpGroup:
			w("(?:")
			for i, s := range n.Subs {
				if n.Op == syntax.OpAlt && i > 0 {
					w("|")
				}
				walk(s)
			}
			w(")")
		case syntax.OpRepeat:
			w("(?:")
			walk(n.Subs[0])
			w(")")
			switch {
			case n.Min == 0 && n.Max < 0:
				w("*")
			case n.Min == 1 && n.Max < 0:
				w("+")
			case n.Min == 0 && n.Max == 1:
				w("?")
			case n.Max < 0:
				w("{%d,}", n.Min)
			default:
				w("{%d,%d}", n.Min, n.Max)
			}
			if n.Lazy {
				w("?")
			}
		}
	}
	walk(n)
	return b.String()
}

// wantLines gives the lines of text that re matches.
func wantLines(re *regexp.Regexp, text []byte, strip bool) [][2]int {
	var out [][2]int
	for pos := 0; pos < len(text); {
		start, end := lineAround(text, pos, pos)
		pos = end + 1
		if strip && end > start && text[end-1] == '\r' {
			end--
		}
		if re.Match(text[start:end]) {
			out = append(out, [2]int{start, end})
		}
	}
	return out
}

func gotLines(s *Scanner, text []byte) [][2]int {
	var out [][2]int
	for pos := 0; ; {
		start, end, ok := s.NextLine(text, pos)
		if !ok {
			return out
		}
		out = append(out, [2]int{start, end})
		pos = afterLine(text, end)
	}
}

func pairs(x [][]int) [][2]int {
	var out [][2]int
	for _, p := range x {
		out = append(out, [2]int{p[0], p[1]})
	}
	return out
}

// times is n, or an eighth of it in the short run. The race detector makes these loops ten times as
// slow and has nothing to see in them.
func times(n int) int {
	if testing.Short() {
		return n / 8
	}
	return n
}

// levels are all that this machine has.
func levels() []level {
	return []level{scalar, sse2, ssse3, avx2}[:vectors()+1]
}

// checkPattern compares one pattern on one text in both modes; "" when all agree.
func checkPattern(v level, pattern string, text []byte, ascii bool, tweak func(*Matcher, level)) string {
	for _, multiline := range []bool{false, true} {
		o := Options{Multiline: multiline}
		m, err := compileAt(pattern, o, v)
		var re *regexp.Regexp
		var goErr error
		if ascii {
			mode := "(?m)"
			if multiline {
				mode = "(?ms)"
			}
			re, goErr = regexp.Compile(mode + pattern)
		}
		if err != nil {
			if goErr != nil || strings.Contains(pattern, "\n") || strings.Contains(err.Error(), "too large") || strings.Contains(err.Error(), "line break") {
				continue
			}
			return fmt.Sprintf("refused %q: %v", pattern, err)
		}
		if !ascii || goErr != nil {
			read := syntax.Options{IgnoreCase: o.IgnoreCase, Multiline: o.Multiline}
			t, bad := syntax.Parse(pattern, read)
			if bad != nil {
				return "parse: " + bad.Why
			}
			if t.Root.Any(func(n *syntax.Node) bool { return n.Op == syntax.OpLook && n.Look.Word() || n.Op == syntax.OpBytes }) {
				continue // Go has no Unicode word boundary
			}
			if re, goErr = regexp.Compile(goPattern(t.Root)); goErr != nil {
				continue
			}
		}
		if tweak != nil {
			tweak(m, v)
		}
		s := m.Scanner()
		if !multiline {
			want, got := wantLines(re, text, false), gotLines(s, text)
			if !slices.Equal(want, got) {
				return fmt.Sprintf("NextLine %q: got %v, want %v", pattern, clip(got), clip(want))
			}
			if s.Any(text) != (len(want) > 0) {
				return fmt.Sprintf("Any %q: got %v", pattern, len(want) == 0)
			}
			lines := 0
			for pos := 0; ; lines++ {
				start, end, ok := s.NextLine(text, pos)
				if !ok {
					break
				}
				n := s.Count(text, start, end)
				if all := len(re.FindAllIndex(text[start:end], -1)); n != all {
					return fmt.Sprintf("Count %q on %q: got %d, want %d", pattern, text[start:end], n, all)
				}
				pos = afterLine(text, end)
			}
			if lines != len(want) {
				return fmt.Sprintf("NextLine with Count %q: got %d lines, want %d", pattern, lines, len(want))
			}
			for _, l := range want[:min(len(want), 8)] {
				want, got := pairs(re.FindAllIndex(text[l[0]:l[1]], -1)), s.Spans(nil, text[l[0]:l[1]], 0, l[1]-l[0])
				if !slices.Equal(want, got) {
					return fmt.Sprintf("Spans %q on %q: got %v, want %v", pattern, text[l[0]:l[1]], clip(got), clip(want))
				}
			}
		} else {
			want := pairs(re.FindAllIndex(text, -1))
			if s.Any(text) != (len(want) > 0) {
				return fmt.Sprintf("Any multiline %q: got %v", pattern, len(want) == 0)
			}
			if got := s.Spans(nil, text, 0, len(text)); !slices.Equal(want, got) {
				return fmt.Sprintf("Spans multiline %q: got %v, want %v", pattern, clip(got), clip(want))
			}
			begin, end, ok := s.NextMatch(text, 0)
			if ok != (len(want) > 0) || ok && (begin != want[0][0] || end != want[0][1]) {
				return fmt.Sprintf("NextMatch %q: got %d %d %v, want %v", pattern, begin, end, ok, clip(want))
			}
			if len(want) > 1 && want[1][1] > want[1][0] && want[0][1] > want[0][0] {
				begin, end, ok = s.NextMatch(text, want[0][1])
				if !ok || begin < end && (begin != want[1][0] || end != want[1][1]) { // FindAll skips an empty one there
					return fmt.Sprintf("second NextMatch %q: got %d %d %v, want %v", pattern, begin, end, ok, clip(want))
				}
			}
		}
		m.Put(s)
	}
	return ""
}

func clip(x [][2]int) [][2]int { return x[:min(len(x), 12)] }

// TestAgainstRegexp compares with package regexp on generated patterns and texts. -match.soak sets
// a time instead of a number of rounds.
func TestAgainstRegexp(t *testing.T) {
	t.Parallel()
	s := *seed
	if s == 0 {
		s = 1
		if *soak > 0 {
			s = uint64(time.Now().UnixNano())
		}
	}
	g := generator{rand.New(rand.NewPCG(s, 7))}
	rounds, began, all := 0, time.Now(), levels()
	for ; *soak > 0 && time.Since(began) < *soak || *soak == 0 && rounds < times(1500); rounds++ {
		pattern := g.pattern(3)
		for range 3 {
			v := all[g.IntN(len(all))]
			ascii := g.IntN(2) == 0
			text := g.text(ascii, g.IntN(3) > 0)
			way := g.IntN(len(tweaks))
			if why := checkPattern(v, pattern, text, ascii && isASCII(pattern), tweaks[way].do); why != "" {
				t.Fatalf("seed %d round %d, level %d, %s: %s\ntext %q", s, rounds, v, tweaks[way].name, why, text)
			}
		}
	}
	t.Logf("%d patterns x 3 texts x 2 modes, seed %d", rounds, s)
}

// tweaks turn a matcher to strategies that are seldom chosen. All must find the same.
var tweaks = []struct {
	name string
	do   func(*Matcher, level)
}{
	{"as chosen", nil},
	{"portable", func(m *Matcher, _ level) { m.prefilter = portable(m.prefilter) }},
	{"no prefilter", func(m *Matcher, _ level) {
		m.prefilter, m.exact, m.singleLiteral, m.inPlace = nil, false, false, false
	}},
	{"window", func(m *Matcher, v level) {
		m.prefilter, m.exact, m.singleLiteral, m.inPlace = nil, false, false, false
		if f := newWindowPrefilter(m.prog, v); f != nil {
			m.prefilter, m.prefix = f, matchPrefix{maxBytes: -1, newlines: true}
		}
	}},
	{"tiny cache", func(m *Matcher, _ level) { m.dfaMemory = 1 << 10 }},
	{"literals confirmed", func(m *Matcher, _ level) {
		m.exact, m.singleLiteral, m.inPlace = false, false, false
	}},
	{"learned", func(m *Matcher, _ level) {
		if f, ok := m.prefilter.(*teddy); ok {
			m.prefilter = f.learn([]byte(strings.Repeat("foobar ab\nc9_x1 K", 9)))
		}
	}},
	{"line by line", func(m *Matcher, _ level) { m.inPlace = false }},
	{"in place", func(m *Matcher, _ level) {
		if m.prefilter != nil && m.prog.lines && m.prefix.maxBytes >= 0 {
			m.exact, m.singleLiteral, m.inPlace = false, false, true
		}
	}},
}

func portable(f prefilter) prefilter {
	switch f := f.(type) {
	case *pairPrefilter:
		g := *f
		g.level = scalar
		return &g
	case *teddy:
		g := *f
		g.level = scalar
		return &g
	case *windowPrefilter:
		g := *f
		g.level = scalar
		return &g
	}
	return f
}

func isASCII(s string) bool { return strings.IndexFunc(s, func(r rune) bool { return r >= 0x80 }) < 0 }

func FuzzAgainstRegexp(f *testing.F) {
	for _, p := range []string{"foo", "a|b", `\bfoo\b`, "(?i)straße", `[0-9]+\.[0-9]+`, "interface{}", "(a*)*", "(|a)+", "x{2,3}?", "[[(]", "a**", `^\s*$`, `\R`} {
		f.Add(p, "foo bar\ninterface{} 1.2.3\n\naXb")
	}
	f.Fuzz(func(t *testing.T, pattern, text string) {
		if len(pattern) > 60 || len(text) > 4000 || !isASCII(pattern) && !isASCII(text) {
			return
		}
		if strings.Contains(pattern, "(?") && strings.ContainsAny(pattern, "xuUR") { // flags that Go lacks or reads differently
			return
		}
		_, err := Compile(pattern, Options{})
		var pe *PatternError
		if errors.As(err, &pe) && pe.Suggest != "" {
			if _, err := Compile(pe.Suggest, Options{Multiline: pe.Multiline}); err != nil {
				t.Fatalf("%q: suggestion %q: %v", pattern, pe.Suggest, err)
			}
		}
		if err != nil || !isASCII(pattern) || !isASCII(text) {
			return
		}
		for _, v := range levels() {
			if why := checkPattern(v, pattern, []byte(text), false, nil); why != "" {
				t.Fatalf("level %d: %s", v, why)
			}
		}
	})
}

// must ends the test if there is an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
