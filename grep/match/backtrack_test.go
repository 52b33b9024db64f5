package match

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// backtracked compiles a plain pattern, and the same pattern in a form that only the backtracking
// engine runs.
func backtracked(t *testing.T, p string, multiline bool) (b, plain *Scanner) {
	t.Helper()
	var s []*Scanner
	for _, p := range []string{"(?=)" + p, p} {
		m, err := Compile(p, Options{Multiline: multiline, FallbackTime: time.Minute})
		must(t, err)
		s = append(s, m.Scanner())
	}
	if s[0].m.Engine() != "backtracking" || s[1].m.Engine() != "linear" {
		t.Fatal(s[0].m.Engine(), s[1].m.Engine())
	}
	return s[0], s[1]
}

// TestBacktrackWindows: a text of several windows gives all its matches, wherever the windows end,
// and with bytes that are not UTF-8.
func TestBacktrackWindows(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 1))
	var b strings.Builder
	for b.Len() < 3*backWindow {
		b.WriteString([]string{"foobar", "foo", "é", "中文", "\xff", "\n", " ", strings.Repeat("y", r.IntN(300)), "fo\n o"}[r.IntN(9)])
	}
	patterns := []string{`fooé?`, `fo\s*o`, `é|文`, `y+é`, `\bfoobar`}
	switch {
	case testing.Short():
		patterns = patterns[:1]
	case *soak == 0:
		patterns = patterns[:3]
	}
	for _, p := range patterns {
		for _, multiline := range []bool{true, false} {
			if !multiline && p == `fo\s*o` {
				continue
			}
			text := []byte(b.String())
			if !multiline {
				text = []byte(strings.ReplaceAll(b.String(), "\n", "-"))
			}
			x, plain := backtracked(t, p, multiline)
			want, got := plain.Spans(nil, text, 0, len(text)), x.Spans(nil, text, 0, len(text))
			if len(want) < 100 || !slices.Equal(got, want) {
				t.Errorf("%s, multiline %v: %d matches, want %d", p, multiline, len(got), len(want))
			}
			if !x.Cut() || x.Err() != nil {
				t.Errorf("%s: cut %v, %v", p, x.Cut(), x.Err())
			}
			if cap(x.fallback.runes) > backWindow {
				t.Errorf("%d code points are held", cap(x.fallback.runes))
			}
		}
	}
}

// TestBacktrackForget: another text in the same buffer.
func TestBacktrackForget(t *testing.T) {
	x, _ := backtracked(t, "foo", true)
	buf := []byte("..foo")
	x.NextMatch(buf, 0)
	copy(buf, "foo..")
	x.Forget()
	if at, _, ok := x.NextMatch(buf, 0); !ok || at != 0 {
		t.Error(at, ok)
	}
}

func TestUntil(t *testing.T) {
	m, err := Compile("(?=f)foo", Options{})
	must(t, err)
	s := m.Scanner()
	text := []byte("a foo and a foo")
	s.Bound(time.Now().Add(-time.Second), nil)
	if got := s.Spans(nil, text, 0, len(text)); got != nil || !errors.Is(s.Err(), context.DeadlineExceeded) {
		t.Error(got, s.Err())
	}
	m.Put(s)
	s = m.Scanner()
	if got := s.Spans(nil, text, 0, len(text)); len(got) != 2 || s.Err() != nil {
		t.Error("a new borrower is late as well:", got, s.Err())
	}
}

// TestBacktrackAcrossWindows: a match of up to backOverlap bytes is found even when the window
// shows only its beginning. The next window shows it whole.
func TestBacktrackAcrossWindows(t *testing.T) {
	m, err := Compile(`(?=b)begin[^z]*z`, Options{FallbackTime: time.Minute})
	must(t, err)
	match := "begin" + strings.Repeat("-", backOverlap/2) + "z"
	for _, before := range []int{backContext, backWindow - backOverlap/4, backWindow - 3, backWindow, 2 * backWindow} {
		text := []byte(strings.Repeat("x", before) + match + strings.Repeat("x", backWindow))
		if got := m.Scanner().Spans(nil, text, 0, len(text)); !slices.Equal(got, [][2]int{{before, before + len(match)}}) {
			t.Errorf("behind %d bytes: %v", before, got)
		}
	}
}
