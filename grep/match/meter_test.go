package match

import (
	"strings"
	"testing"
)

// TestEveryEngineStops: each engine asks whether to stop, and does no more than a few thousand
// steps afterwards. A case takes minutes when it does not.
func TestEveryEngineStops(t *testing.T) {
	t.Parallel()
	a := strings.Repeat("a", 2<<20)
	ab := strings.Repeat("ab", 1<<20)
	var words []string
	for i := range 60 {
		words = append(words, strings.Repeat("ab", 29)+string(rune('0'+i%10))+string(rune('0'+i/10)))
	}
	any := func(s *Scanner, text []byte) { s.Any(text) }
	spans := func(s *Scanner, text []byte) { s.Spans(nil, text, 0, len(text)) }
	lines := func(s *Scanner, text []byte) {
		for pos := 0; pos < len(text); {
			_, end, ok := s.NextLine(text, pos)
			if !ok {
				return
			}
			pos = afterLine(text, end)
		}
	}
	matches := func(s *Scanner, text []byte) {
		for pos := 0; ; {
			_, end, ok := s.NextMatch(text, pos)
			if !ok {
				return
			}
			pos = max(end, pos+1)
		}
	}
	each := func(s *Scanner, text []byte) {
		s.EachMatch(text, 0, len(text), 0, func(int, int) bool { return true })
	}
	long := func(s *Scanner, text []byte) {
		l := s.LongLine()
		l.Take(text)
		l.End()
	}
	for _, c := range []struct {
		name, pattern, text string
		run                 []func(*Scanner, []byte)
	}{
		{"Pike VM", `[^y]{1000}[^z]{1000}x`, a + "x", []func(*Scanner, []byte){any, spans, lines, matches, each}},
		{"Pike VM, short lines", `[^y]{1000}[^z]{1000}x`, strings.Repeat(a[:3000]+"xy\n", 700), []func(*Scanner, []byte){any, lines, matches}},
		{"new states", `.{1000}.{1000}x`, a + "x", []func(*Scanner, []byte){any, spans, lines, matches, each, long}},
		{"large states", `(?:a?){1000}a{1000}`, a, []func(*Scanner, []byte){spans, matches, each}},
		{"a state for every match", `b(?:a|b)*c|b`, ab, []func(*Scanner, []byte){spans, matches, each}},
		{"one literal", strings.Repeat("ab", 2000) + "aa", ab, []func(*Scanner, []byte){any, lines, matches}},
		{"many literals", strings.Join(words, "|"), strings.Repeat(strings.Repeat("ab", 29)+"0!", 40_000), []func(*Scanner, []byte){any, lines}},
		{"Pike VM by need", `\bä(?:ä?){1000}\b!`, strings.Repeat("ä", 1<<20) + "!", []func(*Scanner, []byte){any, spans, lines}},
	} {
		for _, multiline := range []bool{false, true} {
			m, err := Compile(c.pattern, Options{Multiline: multiline})
			if err != nil {
				t.Fatal(c.name, err)
			}
			for i, run := range c.run {
				s := m.Scanner()
				asked := 0
				s.Bound(func() bool { asked++; return true })
				if run(s, []byte(c.text)); asked == 0 {
					continue // it was short: then it is right
				}
				if asked > 3 || !s.Stopped() {
					t.Errorf("%s, multiline %v, %d: asked %d times, stopped %v", c.name, multiline, i, asked, s.Stopped())
				}
				s.Any([]byte("a")) // nothing is found any more, and nothing breaks
				m.Put(s)
				if s = m.Scanner(); s.Stopped() {
					t.Errorf("%s: a new borrower is stopped as well", c.name)
				}
			}
		}
	}
}

// TestStoppedFindsTruth: what was found before the stop is right.
func TestStoppedFindsTruth(t *testing.T) {
	text := []byte(strings.Repeat("an x here\nand none\n", 20_000))
	for _, p := range []string{`x`, `\bx\b`, `[^y]{1}x`, `n.{1,30}e$`} {
		m, err := Compile(p, Options{})
		must(t, err)
		want := countLines(m.Scanner(), text)
		for _, asks := range []int{0, 1, 3, 9} {
			s := m.Scanner()
			s.Bound(func() bool { asks--; return asks < 0 })
			n := 0
			for pos := 0; ; n++ {
				start, end, ok := s.NextLine(text, pos)
				if !ok {
					break
				}
				if !strings.HasSuffix(string(text[start:end]), "x here") && !strings.Contains(p, "e$") {
					t.Fatalf("%s: %q", p, text[start:end])
				}
				pos = afterLine(text, end)
			}
			if n > want || n < want && !s.Stopped() {
				t.Errorf("%s: %d of %d lines, stopped %v", p, n, want, s.Stopped())
			}
		}
	}
}

// TestCompileIsBounded: a pattern of a few bytes may stand for more than anyone can wait for. It is
// refused, or the parts that add nothing are left out.
func TestCompileIsBounded(t *testing.T) {
	nest := func(inner string, deep int) string {
		for range deep {
			inner = "(" + inner + "){1000}"
		}
		return inner
	}
	for _, c := range []struct {
		pattern string
		ok      bool
	}{
		{nest("", 9), true}, {nest("a{0}", 9), true}, {nest("(?:)(?:)", 9), true}, {nest("()?", 9), true},
		{nest("a", 9), false}, {nest(`\b`, 9), false}, {nest("|a", 9), false},
		{strings.Repeat(`\w`, 2000), false},
	} {
		for _, multiline := range []bool{false, true} {
			m, err := Compile(c.pattern, Options{Multiline: multiline})
			if c.ok != (err == nil) {
				t.Errorf("%.40s: %v", c.pattern, err)
			}
			if err == nil && !m.Scanner().Any([]byte("a")) {
				t.Errorf("%.40s does not match", c.pattern)
			}
		}
	}
}
