//go:build linux

package grep

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"moltisfs/grep/match"
)

// TestStopWithinALine: a deadline or a cancellation that comes within a line ends the search,
// whatever the pattern and the mode. Most of these searches take minutes otherwise.
func TestStopWithinALine(t *testing.T) {
	const soon = 10 * time.Millisecond
	a := strings.Repeat("a", 30_000)
	for name, text := range map[string]string{
		"minified":   strings.Repeat(a+"xy\n", 200), // shared between the workers
		"one line":   strings.Repeat("a", 1<<20),
		"long piece": strings.Repeat("a", 9<<20) + "xy\n",
	} {
		d := FS(fstest.MapFS{"f": &fstest.MapFile{Data: []byte(text)}})
		for _, p := range []string{`[^y]{1000}[^z]{1000}x`, `.{1000}.{1000}x`, `(?:a?){1000}a{1000}`, `a(?:a|b)*c|a`} {
			for _, multiline := range []bool{false, true} {
				m := compile(t, p, match.Options{Multiline: multiline})
				for _, q := range []Query{{Mode: FilesWithMatches}, {Mode: Count}, {Mode: Content, Before: 2}, {Mode: Content, OnlyMatching: true}} {
					q.Matcher, q.Multiline, q.Limit = m, multiline, 5
					ctx, cancel := context.WithTimeout(t.Context(), soon)
					r, err := Search(ctx, Walk{Dir: d, Workers: 2}, q)
					cancel()
					if err != nil || r.Partial != (r.Skipped.Deadline == 1) {
						t.Fatalf("%s, %s, multiline %v, %+v: %+v, %v", name, p, multiline, q, r, err)
					}
					if !r.Partial && q.Mode == Count && p[0] == 'a' {
						t.Errorf("%s, %s, multiline %v: what takes minutes is done: %+v", name, p, multiline, r)
					}
				}
				ctx, cancel := context.WithCancel(t.Context())
				time.AfterFunc(soon, cancel)
				if _, err := Search(ctx, Walk{Dir: d, Workers: 2}, Query{Matcher: m, Multiline: multiline, Mode: Count}); err != nil && !errors.Is(err, context.Canceled) {
					t.Fatal(err)
				}
			}
		}
	}
}
