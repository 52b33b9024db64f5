//go:build !linux

package doctor

import "runtime"

func kernel(say sayer) {
	say(Weaker, "kernel", "", "on "+runtime.GOOS+" paths are walked one name after the "+
		"other, and replacing a file is a look and a rename in two steps",
		"SECURITY.md says what that means")
}

// A mountTable is told on Linux only.
type mountTable struct{}

func readMounts(sayer) mountTable { return mountTable{} }

func (mountTable) of(sayer, string) {}
