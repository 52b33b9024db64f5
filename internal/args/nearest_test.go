package args

import (
	"strings"
	"testing"
)

func TestNearest(t *testing.T) {
	names := []string{"Read", "Write", "Edit", "MultiEdit", "checkpoint_restore"}
	for _, c := range []struct{ word, want string }{
		{"Raed", "Read"},
		{"read", "Read"},
		{"multi-edit", "MultiEdit"},
		{"CheckpointRestore", "checkpoint_restore"},
		{"Wrote", "Write"},
		{"Delete", ""},
		{"", ""},
		{"x", ""},
		{strings.Repeat("Read", 100), ""},
	} {
		if got := Nearest(c.word, names); got != c.want {
			t.Errorf("%q: %q, want %q", c.word, got, c.want)
		}
	}
}
