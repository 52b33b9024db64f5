package tools_test

import (
	"strings"
	"testing"

	"moltisfs/tools"
)

// Where the deadline came first, the first line says so: nothing found is not nothing there.
func TestNothingFoundBeforeTheDeadline(t *testing.T) {
	t.Parallel()
	for want, p := range map[string]tools.Payload{
		"No files found\n":                       nil,
		"No files found before the deadline\n":   &tools.Glob{Partial: true},
		"No matches found before the deadline\n": &tools.Grep{Mode: "content", Partial: true},
	} {
		if p == nil {
			p = &tools.Grep{Mode: "files_with_matches"}
		}
		if got := p.Text() + "\n"; !strings.HasPrefix(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
	for _, mode := range []string{"files_with_matches", "count"} {
		if got := (&tools.Grep{Mode: mode, Partial: true}).Text(); !strings.Contains(got, " found before the deadline\n[the deadline came first: there may be more") {
			t.Errorf("%s: %q", mode, got)
		}
	}
}
