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

// No run of whole lines around a match with fewer lines than its context is in the text once; where there is no context, none is.
func TestContextsAreTheSmallestOfAll(t *testing.T) {
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
			least := 0
			for n := 1; n <= len(lines) && least == 0; n++ {
				for from := max(0, c.line-n+1); from <= c.line && from+n <= len(lines); from++ {
					if occurrences(text, strings.Join(lines[from:from+n], "\n")) == 1 {
						least = n
					}
				}
			}
			budget := lookBudget
			got, ok := uniqueAround([]byte(text), c.at, c.at+1, &budget)
			if ok != (least > 0) || ok && (occurrences(text, got) != 1 || strings.Count(got, "\n")+1 != least) {
				t.Fatalf("%q, match in line %d: context %q, %v; %d lines would do", text, c.line+1, got, ok, least)
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
