package match

import (
	"bytes"
	"math/rand/v2"
	"regexp"
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

// slowAny asks the Pike VM.
func (m *Matcher) slowAny(text []byte) bool {
	_, _, ok := newScanner(m).pikeVM().find(text, 0, true)
	return ok
}
