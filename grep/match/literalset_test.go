package match

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
)

// TestCountsWords compares every line and its count of matches with package regexp. The literals of
// a pattern stand alone, side by side, in one another, at the ends of lines and of the text; the
// texts span many vector blocks.
func TestCountsWords(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(5, 6))
	parts := []string{"timeout", "time", "outer", "retry", "retr", "session", "ses", " ", " ", "\n", "x", "aaaa", "aa", "-----------------------------------------------------------------------"}
	for _, pattern := range []string{"timeout|retry|session", "time|timeout|out", "timeout|time|me", "aa|aaa", "aaa|a a", "(un)?retry", "(un)??retry|xx", "re(try|tr)?", "x aa|session"} {
		re := regexp.MustCompile(pattern)
		for _, v := range levels() {
			m, err := compileAt(pattern, Options{}, v)
			must(t, err)
			s := m.Scanner()
			for range times(60) {
				var text []byte
				for n := r.IntN(600); n > 0; n-- {
					text = append(text, parts[r.IntN(len(parts))]...)
				}
				pos := 0
				for number, line := range bytes.SplitAfter(text, []byte("\n")) {
					want := len(re.FindAllIndex(bytes.TrimSuffix(line, []byte("\n")), -1))
					if want == 0 {
						continue
					}
					start, end, ok := s.NextLine(text, pos)
					if !ok || !bytes.Equal(text[start:end], bytes.TrimSuffix(line, []byte("\n"))) {
						t.Fatalf("level %d, %s: line %d of %q: got %q, %v", v, pattern, number, text, text[start:end], ok)
					}
					if got := s.Count(text, start, end); got != want {
						t.Fatalf("level %d, %s: %d matches in %q, want %d", v, pattern, got, line, want)
					}
					pos = min(end+1, len(text))
				}
				if pos < len(text) {
					if start, end, ok := s.NextLine(text, pos); ok {
						t.Fatalf("level %d, %s: %q does not match", v, pattern, text[start:end])
					}
				}
			}
			m.Put(s)
		}
	}
}

// TestFinderReadsNoFurther puts literals at every distance from both ends of texts that end
// before their memory does. What a vector load reads behind the text must not count.
func TestFinderReadsNoFurther(t *testing.T) {
	t.Parallel()
	for _, pattern := range []string{"zqxj", "zqxjkvbnmw", "zq", "(?i)zqxj", "zqxj|wvut", `zq[0-9]x`} {
		for _, v := range levels() {
			m, err := compileAt(pattern, Options{}, v)
			must(t, err)
			s := m.Scanner()
			found := "zqxjkvbnmw"
			if pattern == `zq[0-9]x` {
				found = "zq5xjkvbnm"
			}
			for size := 0; size < 200; size += 200 / times(200) {
				for at := range size + 1 {
					memory := append(bytes.Repeat([]byte("-"), size), "zqxjkvbnmw zq5xjkvbnm wvut"...) // behind the text
					text := memory[:size:size]
					copy(text[at:], found)
					if got, want := s.Any(text), m.slowAny(text); got != want {
						t.Fatalf("level %d, %s in %q: %v", v, pattern, text, got)
					}
				}
			}
			m.Put(s)
		}
	}
}

// TestTwoLiteralsSkip counts lines of a text in which one literal is in every line and the other in few, whichever
// the estimates take for the rarer. The DFA sees few lines; a single line with many candidates is looked at once.
func TestTwoLiteralsSkip(t *testing.T) {
	t.Parallel()
	var text []byte
	for i := range 20_000 {
		text = append(text, "2026 zqxj [worker-17] id=894c239344aa3d89 return the "...)
		if i%1000 == 999 {
			text = append(text, "zqvk"...)
		}
		text = append(text, '\n')
	}
	oneLine := append(bytes.ReplaceAll(text, []byte("\n"), []byte(" ")), '\n')
	for _, pattern := range []string{`zqxj.*zqvk`, `return.*zqvk`, `the .*zqvk`, `\d+ zqxj.* the zqvk`, `=\w+3d89 .*zqvk$`} {
		for _, v := range levels() {
			m, err := compileAt(pattern, Options{}, v)
			must(t, err)
			s := m.Scanner()
			if n := countLines(s, text); n != 20 {
				t.Errorf("level %d, %s: %d lines, want 20", v, pattern, n)
			}
			if n := s.earliest().scanned; n > len(text)/100 {
				t.Errorf("level %d, %s: the DFA saw %d of %d bytes", v, pattern, n, len(text))
			}
			if n := countLines(s, oneLine); n != 0 && n != 1 || (n == 1) != m.slowAny(oneLine[:len(oneLine)-1]) {
				t.Errorf("level %d, %s: %d lines of one", v, pattern, n)
			}
			m.Put(s)
		}
	}
}

// TestLiteralsLearn searches lines that all hold the beginning of every literal. The finder learns to look at the bytes that differ.
func TestLiteralsLearn(t *testing.T) {
	t.Parallel()
	var text []byte
	for i := range 10_000 {
		text = fmt.Appendf(text, "2026-11-01T21:27:36Z ERROR [worker-%d] select user from table\n", i%60)
	}
	text = append(text, "[worker-61] WORKER-63\n"...)
	for _, pattern := range []string{"[worker-60|[worker-61|[worker-62", "user where|user into|worker-61"} {
		m, err := Compile(strings.ReplaceAll(pattern, "[", `\[`), Options{IgnoreCase: true})
		must(t, err)
		if _, ok := m.prefilter.(*teddy); !ok {
			t.Skip("SKIPPED: no vectors here")
		}
		s, lines := m.Scanner(), 0
		for pos, stop := 0, 0; pos < len(text); pos = stop { // it learns between two buffers
			stop = afterLine(text, min(pos+16<<10, len(text)))
			lines += countLines(s, text[pos:stop])
		}
		if lines != 1 || s.cursor.misses > 100 {
			t.Errorf("%s: %d lines, want 1; %d stops in vain since it has learned to look at %v", pattern, lines, s.cursor.misses, s.teddy.off)
		}
	}
}

// slowAny asks the Pike VM.
func (m *Matcher) slowAny(text []byte) bool {
	_, _, ok := newScanner(m).pikeVM().find(text, 0, true)
	return ok
}
