package rego

import (
	"context"
	"strings"
	"testing"
	"time"
)

// A policy that takes memory without end is ended for that, long before its time, and denies.
func TestMemory(t *testing.T) {
	// each round makes a text of 200 KB, and keeps it
	l := open(t, "", file(t, head+`allow if {
	all := {x | some i in numbers.range(1, 100000); x := sprintf("%d%s", [i, input.path])}
	count(all) == 0
}`)).links[0].(*local)
	l.time, l.growth = time.Minute, 16<<20
	in := read
	in.Path = strings.Repeat("x", 200_000)
	if yes, err := l.decide(context.Background(), &in); yes || err == nil ||
		!strings.Contains(err.Error(), "took more than 16 MB of memory") {
		t.Errorf("%v, %v", yes, err)
	}
	in.Headers = map[string]string{"a": strings.Repeat("x", maxInput)}
	if yes, err := l.decide(context.Background(), &in); yes || err == nil ||
		!strings.Contains(err.Error(), "over the limit of 1048576") {
		t.Errorf("%v, %v", yes, err)
	}
}
