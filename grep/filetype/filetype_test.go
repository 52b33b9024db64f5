package filetype

import (
	"errors"
	"slices"
	"testing"
)

// TestUnknownType: only names that are really near are offered, and every one of them is a type.
func TestUnknownType(t *testing.T) {
	for name, want := range map[string][]string{
		"tsx": {"ts"}, "C++": {"cpp"}, "yml": {"yaml"}, "kt": {"kotlin"}, "hpp": {"cpp", "h"}, "markdwn": {"markdown"}, "proto": {"protobuf"}, ".ts": {"ts"}, "*.go": {"go"},
		"csv2": {"csv", "cs"}, "nosuch": nil, "xyzzy": nil, "foo": nil, "q": nil, "\n": nil,
		"golang": {"go"}, "javascript": {"js"}, "pyhton": {"python", "cython"}, "md5": {"md"}, "rs": {"rust"}, "bash": {"sh"}, "dockerfile": {"docker"}, "makefile": {"make"},
	} {
		_, err := Choose([]string{"py," + name})
		var e *Unknown
		if name == "\n" {
			name, err = "", &Unknown{Nearest: nearestTypes("\n")}
		}
		if !errors.As(err, &e) || e.Type != name || !slices.Equal(e.Nearest, want) || e.Error() == "" {
			t.Errorf("%q: %+v, want %q", name, err, want)
		}
		for _, n := range want {
			if _, err := Choose([]string{n}); err != nil {
				t.Error(err)
			}
		}
	}
	for _, name := range commonNames {
		if _, ok := typeGlobs(name); !ok {
			t.Errorf("%q is offered and no type", name)
		}
	}
	all, err := Choose([]string{"all"})
	if err != nil || !all.Match("x.go") || !all.Match("Makefile") || all.Match("x.nosuch") || all.Match("x") {
		t.Error("all is every file of a known type, and no other", err)
	}
}
