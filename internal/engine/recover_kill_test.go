//go:build linux

package engine_test

import (
	"fmt"
	"path/filepath"
	"testing"
)

// A process that takes back what another has left half-way is killed before its N-th system call: the next one finishes that, and no temporary
// file stays.
func TestKilledTakingBack(t *testing.T) {
	littered := 0
	x := grow(t, nil)
	litter := func() []string {
		names, _ := filepath.Glob(x.ws + "/.moltis-*")
		return names
	}
	lay := func() { // a copy of it would be other files
		for _, name := range []string{"a", "b", "c"} {
			x.write(name, "old")
		}
		third := int64(3)
		if x.bestEffort() {
			third = 5 // two for each
		}
		x.cut("rename", third, makes("new", "a", "b", "c"))
		for i, name := range []string{"a", "b", "c"} {
			x.has(name, []string{"new", "new", "old"}[i])
		}
	}
	kills(t, "recover", x, lay, func(n int64, _ bool, _ string) string {
		left := len(litter())
		littered += left
		x.open()
		for _, name := range []string{"a", "b", "c"} {
			x.has(name, "old")
		}
		must(t, x.Close())
		if names := litter(); names != nil {
			t.Errorf("killed before call %d: %v is left", n, names)
		}
		return fmt.Sprint(left)
	})
	if littered == 0 {
		t.Error("no kill ever left a temporary file: the test tests less than it should")
	}
}
