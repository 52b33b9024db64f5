package edit

import (
	"errors"
	"math/rand"
	"strings"
	"testing"
)

func contextsOf(t *testing.T, text, old string) []Context {
	t.Helper()
	_, err := Apply([]byte(text), []Edit{{Old: old, New: "new"}}, Options{})
	e, ok := errors.AsType[*NotUniqueError](err)
	if !ok {
		t.Fatalf("%q in %q: %v, want not unique", old, text, err)
	}
	return e.Contexts
}

func TestContextsAreTheSmallest(t *testing.T) {
	for _, c := range []struct {
		text, old string
		want      []string
	}{
		{"x = 1\nfoo\nx = 1\nbar\n", "x = 1", []string{"x = 1\nfoo", "foo\nx = 1"}},
		{"foo\nx = 1\nx\nbar\nx = 1\nx\n", "x = 1", []string{"foo\nx = 1", "bar\nx = 1"}},
		{"x\n1\n2\nx\n1\n3\n", "x", []string{"x\n1\n2", "2\nx"}},
		{"aa x\nbb x\n", "x", []string{"aa x", "bb x"}},
		{"x\nx\nx\n", "x", nil},
	} {
		got := contextsOf(t, c.text, c.old)
		for i, w := range c.want {
			if i >= len(got) || got[i].OldString != w {
				t.Errorf("%q in %q: contexts %+v, want %q", c.old, c.text, got, c.want)
				break
			}
		}
	}
}

// TestContextsNeedTheirLines: a context is in the text once, and is not without its first line, nor without its last. Where there is none, all
// of the text is not unique.
func TestContextsNeedTheirLines(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewSource(4))
	for range 3000 {
		lines := make([]string, 4+r.Intn(14))
		for i := range lines {
			lines[i] = []string{"x", "x y", "a", "b", ""}[r.Intn(5)]
		}
		lines[1], lines[len(lines)-1] = "x", "x"
		text := strings.Join(lines, "\n")
		for _, c := range allMatches(text, "x") {
			budget := lookBudget
			got, ok := uniqueAround([]byte(text), c.at, c.at+1, &budget)
			if !ok {
				if occurrences(text, text) == 1 {
					t.Fatalf("%q, match in line %d: no context", text, c.line+1)
				}
				continue
			}
			_, tail, _ := strings.Cut(got, "\n")
			head := got[:max(0, strings.LastIndexByte(got, '\n'))]
			for _, part := range []string{head, tail} {
				at := strings.Index(text, part)
				if part != "" && occurrences(text, part) == 1 && at <= c.at && at+len(part) > c.at {
					t.Fatalf("%q, match in line %d: context %q, and %q would do", text, c.line+1, got, part)
				}
			}
			if occurrences(text, got) != 1 {
				t.Fatalf("%q: context %q is not unique", text, got)
			}
		}
	}
}

type found struct{ at, line int }

func allMatches(text, old string) (out []found) {
	for at := range text {
		if strings.HasPrefix(text[at:], old) {
			out = append(out, found{at, strings.Count(text[:at], "\n")})
		}
	}
	return out
}

// occurrences counts overlapping ones too.
func occurrences(text, s string) int { return len(allMatches(text, s)) }
