package main

import (
	"runtime/debug"
	"testing"
)

// The memory limit is set, unless GOMEMLIMIT says something else.
func TestMemoryLimit(t *testing.T) {
	old := debug.SetMemoryLimit(-1)
	defer debug.SetMemoryLimit(old)
	for _, row := range []struct {
		env  string
		want int64
	}{{"", 2 << 30}, {"1GiB", 7 << 30}} {
		debug.SetMemoryLimit(7 << 30)
		limitMemory(func(string) string { return row.env })
		if got := debug.SetMemoryLimit(-1); got != row.want {
			t.Errorf("GOMEMLIMIT=%s: %d", row.env, got)
		}
	}
}
